//! A door without a socket: its client is a list of rounds, and its memory is a guest's.
//!
//! The requests of a round are submitted together, and the next round follows when all of them have
//! ended. Data is read into the client's memory and written from there, wherever the disk keeps it. For
//! tests of what a lane does for its doors, and for counts of what that costs.

use super::Door;
use crate::disk::Data;
use crate::job::{Owner, Place, Transfer};
use crate::map::Map;
use crate::services::Services;
use blockyard::bio::Op;
use blockyard::status::Status;
use blockyard::time::Instant;
use core::ops::Range;
use std::io;
use std::rc::Rc;
use std::sync::mpsc;

/// A request of a client in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What is to be done.
    pub op: Op,
    /// The first byte on the disk.
    pub offset: u64,
    /// How many bytes; of data, whole blocks.
    pub len: u64,
    /// Where the data is in the client's memory.
    pub at: usize,
    /// Durable when it is answered.
    pub fua: bool,
}

/// What gives the next round of requests, and no more when there is none: it sees the client's memory, with
/// what the rounds before read into it.
pub type Next = Box<dyn FnMut(&Memory, &mut Vec<Ask>) + Send>;

/// The memory of a client.
#[derive(Debug)]
pub struct Memory(Rc<Map>);

impl Memory {
    /// Puts `bytes` there from `at` on.
    ///
    /// # Panics
    ///
    /// If that ends beyond the memory.
    pub fn write(&self, at: usize, bytes: &[u8]) {
        self.0.write(at, bytes);
    }

    /// The bytes there.
    ///
    /// # Panics
    ///
    /// If some are beyond the memory.
    #[must_use]
    pub fn read(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.read(range, &mut bytes);
        bytes
    }
}

/// A client in memory.
pub struct Rounds {
    /// Which disk it asks.
    pub disk: usize,
    /// Bytes of its memory.
    pub memory_bytes: usize,
    /// What it asks for.
    pub next: Next,
    /// Where it is told how each request ended, in the order of their ends; nowhere where nobody asks.
    pub ended: Option<mpsc::Sender<(Ask, Status)>>,
}

/// What the client is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It asks for the next round.
    Asking,
    /// It waits for the requests of a round.
    Waiting,
    /// It asks for nothing any more.
    Over,
}

/// A door for a client in memory. See the [module](self).
pub(crate) struct MemoryDoor {
    disk: usize,
    memory: Memory,
    next: Next,
    ended: Option<mpsc::Sender<(Ask, Status)>>,
    /// The requests of a round; a token is a place here.
    round: Vec<Ask>,
    /// How many of them have not ended.
    left: usize,
    stage: Stage,
}

/// It lends nothing to the kernel.
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

    fn open(arrival: Rounds, (): &(), _lane: &mut Lane) -> Self {
        let Rounds { disk, memory_bytes, next, ended } = arrival;
        let memory = Map::new(memory_bytes).expect("mapping of the client's memory");
        let (memory, stage) = (Memory(Rc::new(memory)), Stage::Asking);
        Self { disk, memory, next, ended, round: Vec::new(), left: 0, stage }
    }

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
            // Who asked may have gone.
            let _ = ended.send((ask, status));
        }
        self.left -= 1;
        if self.left == 0 && self.stage == Stage::Waiting {
            self.stage = Stage::Asking;
        }
    }

    fn settle(&mut self, number: u32, lane: &mut Lane) -> bool {
        if self.stage == Stage::Asking {
            lane.list(number);
        }
        self.stage == Stage::Over && self.left == 0
    }

    fn wake(&mut self, _number: u32, _lane: &mut Lane) {}

    fn holds_since(&self, _anything: bool) -> Option<Instant> {
        None
    }

    fn cut_off(&mut self, _number: u32, _lane: &mut Lane) {
        unreachable!("a client in memory holds nothing of the lane")
    }

    fn end(&mut self, number: u32, lane: &mut Lane) {
        self.stage = Stage::Over;
        lane.list(number);
    }

    fn close(self, _lane: &mut Lane) {}
}
