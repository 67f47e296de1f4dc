//! A door without a socket, whose client is a callback that gives rounds of requests.
//!
//! The requests of a round are submitted together, and the next round follows when all of them have
//! ended. Data moves directly between the disk and the client's memory. Tests use this door to
//! check a lane without a protocol, and benchmarks use it to measure the lane's own cost.

use crate::lane::door::{AfterTurn, Arrival, Door};
use crate::lane::lent::Lent;
use crate::lane::services::Services;
use blockyard::bio::{Flags, Op};
use blockyard::status::Status;
use blockyard_std::parts::job::{Owner, Place, Transfer};
use blockyard_std::parts::map::Map;
use blockyard_std::parts::queue::Asked;
use core::fmt;
use core::ops::Range;
use std::io;
use std::rc::Rc;
use std::sync::mpsc;

/// A request of a client in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The operation.
    pub op: Op,
    /// The first byte on the disk.
    pub offset: u64,
    /// The length in bytes. A read or write covers whole blocks.
    pub len: u64,
    /// The offset of the data in the client's memory, in bytes.
    pub at: usize,
    /// The write must be durable at completion.
    pub fua: bool,
}

/// A callback that appends the requests of the next round, or none to end the client. It sees the
/// client's memory with the data that earlier rounds have read.
pub type Next = Box<dyn FnMut(&Memory, &mut Vec<Ask>) + Send>;

/// The memory of a client.
#[derive(Debug)]
pub struct Memory(Rc<Map>);

impl Memory {
    /// Copies `bytes` into the memory at offset `at`.
    ///
    /// # Panics
    ///
    /// Panics if the bytes end beyond the memory.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        self.0.write(at, bytes);
    }

    /// Returns a copy of the bytes of `range`.
    ///
    /// # Panics
    ///
    /// Panics if `range` ends beyond the memory.
    #[must_use]
    pub fn read(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.read(range, &mut bytes);
        bytes
    }
}

/// A client in memory.
pub struct Rounds {
    /// The index of the disk that the client uses.
    pub disk: usize,
    /// The size of the client's memory in bytes.
    pub memory_bytes: usize,
    /// The source of the client's requests.
    pub next: Next,
    /// A channel that receives the status of each request, in the order in which the requests end.
    pub ended: Option<mpsc::Sender<(Ask, Status)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client is ready for its next round.
    Asking,
    /// The client waits for the requests of a round to end.
    Waiting,
    /// The client submits no more requests.
    Over,
}

/// A door for a client in memory. See the [module](self).
pub(crate) struct MemoryDoor {
    disk: usize,
    memory: Memory,
    next: Next,
    ended: Option<mpsc::Sender<(Ask, Status)>>,
    /// The requests of the current round. A token is an index into this list.
    round: Vec<Ask>,
    /// The number of requests of the round that have not ended.
    left: usize,
    stage: Stage,
}

impl MemoryDoor {
    fn submit(&mut self, number: u32, lane: &mut Services) {
        self.round.clear();
        (self.next)(&self.memory, &mut self.round);
        self.stage = if self.round.is_empty() { Stage::Over } else { Stage::Waiting };
        self.left = self.round.len();
        for (token, ask) in (0..).zip(&self.round) {
            let needs_memory = match ask.op {
                Op::Read => lane.disk(self.disk).needs_pages(),
                Op::Write => true,
                _ => false,
            };
            let place = match needs_memory {
                true => Place::Guest { memory: Rc::clone(&self.memory.0), start: ask.at },
                false => Place::NoBuffer,
            };
            let transfer = Transfer { place, ..Transfer::new(ask.offset, ask.len) };
            let owner = Owner::Door { door: number, token };
            let flags = if ask.fua { Flags::FUA } else { Flags::NONE };
            lane.submit(owner, self.disk, Asked { flags, ..Asked::from(ask.op) }, transfer);
        }
    }
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Arrival for Rounds {
    fn open_door(self: Box<Self>, lane: &mut Services) -> Option<Box<dyn Door>> {
        let Self { disk, memory_bytes, next, ended } = *self;
        lane.ensure_queue(disk);
        let memory = Map::new(memory_bytes).expect("the client's memory should be mappable");
        Some(Box::new(MemoryDoor {
            disk,
            memory: Memory(Rc::new(memory)),
            next,
            ended,
            round: Vec::new(),
            left: 0,
            stage: Stage::Asking,
        }))
    }

    fn turn_away(self: Box<Self>) {}
}

impl Door for MemoryDoor {
    fn process_input(&mut self, number: u32, lane: &mut Services) {
        if self.stage == Stage::Asking {
            self.submit(number, lane);
        }
    }

    fn take_back(&mut self, _: u32, _: Lent, _: io::Result<usize>, _: bool, _: &mut Services) {
        unreachable!("a client in memory lends nothing to the kernel")
    }

    fn finish_request(
        &mut self,
        token: u32,
        status: Status,
        transfer: Transfer,
        lane: &mut Services,
    ) {
        let ask = &self.round[token as usize];
        let is_on_disk = matches!(transfer.place, Place::NoBuffer);
        if ask.op == Op::Read && status == Status::Ok && is_on_disk {
            let (map, range) = lane.disk(self.disk).own_data(ask.offset, ask.len);
            self.memory.0.write_from(ask.at, map, range);
        }
        if let Some(ended) = &self.ended {
            // The receiver may have been dropped.
            let _ = ended.send((*ask, status));
        }
        self.left -= 1;
        if self.left == 0 && self.stage == Stage::Waiting {
            self.stage = Stage::Asking;
        }
    }

    fn end_turn(&mut self, number: u32, lane: &mut Services) -> AfterTurn {
        if self.stage == Stage::Asking {
            lane.schedule_door(number);
        }
        match self.stage == Stage::Over && self.left == 0 {
            true => AfterTurn::Close,
            false => AfterTurn::Keep,
        }
    }

    fn disk(&self) -> Option<usize> {
        Some(self.disk)
    }

    fn cut_off(&mut self, _number: u32, _why: &'static str, _lane: &mut Services) {
        unreachable!("a client in memory holds nothing of the lane")
    }

    fn start_drain(&mut self, number: u32, _why: &'static str, lane: &mut Services) {
        self.stage = Stage::Over;
        lane.schedule_door(number);
    }

    fn close(self: Box<Self>, _lane: &mut Services) {}
}
