//! A door without a socket. Its client is a callback that gives rounds of requests, and its memory
//! stands for a guest's.
//!
//! The requests of a round are submitted together, and the next round follows when all of them have
//! ended. Data moves directly between the disk and the client's memory. Tests use this door to check a
//! lane without a protocol, and benchmarks use it to measure the lane's own cost.

use crate::disk::Data;
use crate::lane::door::{Door, Settled};
use crate::lane::services::Services;
use crate::observation::overview::Visitor;
use blockyard::bio::Op;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_std::parts::job::{Owner, Place, Transfer};
use blockyard_std::parts::map::Map;
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

/// A callback that appends the requests of the next round, or none to end the client. It sees the client's
/// memory with the data that earlier rounds have read.
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

/// The memory that this door lends to the kernel: none.
#[derive(Debug)]
pub(crate) enum Nothing {}

type Lane = Services<Nothing>;

impl MemoryDoor {
    fn submit(&mut self, number: u32, lane: &mut Lane) {
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
                false => Place::Nowhere,
            };
            let transfer = Transfer { place, ..Transfer::new(ask.offset, ask.len) };
            let owner = Owner::Door { door: number, token };
            lane.submit(owner, self.disk, ask.op, transfer, ask.fua);
        }
    }
}

impl Door for MemoryDoor {
    type Arrival = Rounds;
    type Shared = ();
    type Memory = Nothing;

    fn open(arrival: Rounds, (): &(), lane: &mut Lane) -> Option<Self> {
        let Rounds { disk, memory_bytes, next, ended } = arrival;
        lane.serve_disk(disk);
        let memory = Map::new(memory_bytes).expect("the client's memory should be mappable");
        let (memory, stage) = (Memory(Rc::new(memory)), Stage::Asking);
        Some(Self { disk, memory, next, ended, round: Vec::new(), left: 0, stage })
    }

    fn leave(self, _lane: &mut Lane) -> Rounds {
        unreachable!("a client in memory stays in its lane")
    }

    fn turn_away(_arrival: Rounds, _shared: &()) {}

    fn ready(&mut self, number: u32, lane: &mut Lane) {
        if self.stage == Stage::Asking {
            self.submit(number, lane);
        }
    }

    fn returned(&mut self, _: u32, memory: Nothing, _: io::Result<usize>, _: bool, _: &mut Lane) {
        match memory {}
    }

    fn ended(&mut self, token: u32, status: Status, transfer: Transfer, lane: &mut Lane) {
        let ask = self.round[token as usize];
        if ask.op == Op::Read
            && status == Status::Ok
            && matches!(transfer.place, Place::Nowhere)
            && let Data::Disk(map, range) = lane.disk(self.disk).data(transfer)
        {
            self.memory.0.write_from(ask.at, map, range);
        }
        if let Some(ended) = &self.ended {
            // The receiver may have been dropped.
            let _ = ended.send((ask, status));
        }
        self.left -= 1;
        if self.left == 0 && self.stage == Stage::Waiting {
            self.stage = Stage::Asking;
        }
    }

    fn settle(&mut self, number: u32, lane: &mut Lane) -> Settled {
        if self.stage == Stage::Asking {
            lane.list(number);
        }
        match self.stage == Stage::Over && self.left == 0 {
            true => Settled::Done,
            false => Settled::Stays,
        }
    }

    fn wake(&mut self, _number: u32, _lane: &mut Lane) {}

    fn holds_since(&self, _anything: bool) -> Option<Instant> {
        None
    }

    fn disk(&self) -> Option<usize> {
        Some(self.disk)
    }

    fn visitor(&self, _now: Instant) -> Option<Visitor> {
        None
    }

    fn cut_off(&mut self, _number: u32, _why: &'static str, _lane: &mut Lane) {
        unreachable!("a client in memory holds nothing of the lane")
    }

    fn end(&mut self, number: u32, _why: &'static str, lane: &mut Lane) {
        self.stage = Stage::Over;
        lane.list(number);
    }

    fn close(self, _lane: &mut Lane) {}
}
