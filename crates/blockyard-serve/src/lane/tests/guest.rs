//! A door like the queue of a virtual machine, for tests.
//!
//! The data of its requests is in ranges of the guest's memory, another thread wakes it, and the
//! guest may reset the queue.

use crate::lane::door::{AfterTurn, Arrival, Door};
use crate::lane::lent::Lent;
use crate::lane::services::Services;
use blockyard::bio::Op;
use blockyard::status::Status;
use blockyard_std::parts::job::{GuestRanges, Owner, Place, Transfer};
use blockyard_std::parts::map::Map;
use blockyard_std::parts::queue::Asked;
use core::ops::Range;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::mpsc;

/// A request of a guest. Its length is that of its ranges.
#[derive(Clone, Debug)]
pub(super) struct GuestRequest {
    pub(super) op: Op,
    pub(super) offset: u64,
    pub(super) ranges: Vec<Range<usize>>,
}

/// One step of a guest. The next one follows when its requests have ended.
#[derive(Debug)]
pub(super) enum Step {
    /// Writes bytes into the guest's memory.
    Fill(usize, Vec<u8>),
    /// Submits requests, whose tokens are their places in the list.
    Submit(Vec<GuestRequest>),
    /// Submits requests and abandons them in the same turn.
    SubmitAndReset(Vec<GuestRequest>),
    /// Waits until another thread wakes the doors of the lane.
    AwaitWake,
}

/// What a guest has seen when its door closes.
#[derive(Debug)]
pub(super) struct Seen {
    /// The token and status of each request that ended, in order.
    pub(super) ends: Vec<(u32, Status)>,
    /// Requests whose memory came back after they had been abandoned.
    pub(super) reclaimed: usize,
    pub(super) memory: Vec<u8>,
}

/// A guest that arrives.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) memory_bytes: usize,
    pub(super) steps: VecDeque<Step>,
    pub(super) seen: mpsc::Sender<Seen>,
}

/// The door of a guest. See the [module](self).
struct GuestDoor {
    memory: Rc<Map>,
    steps: VecDeque<Step>,
    /// The requests of the present step that have not ended, by token.
    waiting: Vec<Option<(Op, Rc<GuestRanges>)>>,
    abandoned: usize,
    is_awaiting_wake: bool,
    seen: Seen,
    seen_by: mpsc::Sender<Seen>,
}

/// The number of the only disk.
const DISK: usize = 0;

impl Arrival for Guest {
    fn open_door(self: Box<Self>, lane: &mut Services) -> Option<Box<dyn Door>> {
        lane.ensure_queue(DISK);
        let memory = Map::new(self.memory_bytes).expect("the guest's memory should be mappable");
        Some(Box::new(GuestDoor {
            memory: Rc::new(memory),
            steps: self.steps,
            waiting: Vec::new(),
            abandoned: 0,
            is_awaiting_wake: false,
            seen: Seen { ends: Vec::new(), reclaimed: 0, memory: Vec::new() },
            seen_by: self.seen,
        }))
    }

    fn turn_away(self: Box<Self>) {}
}

impl GuestDoor {
    fn is_busy(&self) -> bool {
        self.is_awaiting_wake || self.waiting.iter().any(Option::is_some)
    }

    fn submit(&mut self, number: u32, requests: Vec<GuestRequest>, lane: &mut Services) {
        self.waiting.clear();
        for (token, GuestRequest { op, offset, ranges }) in (0..).zip(requests) {
            let len = ranges.iter().map(|range| range.len() as u64).sum();
            let data = Rc::new(GuestRanges::new(Rc::clone(&self.memory), ranges.into()));
            // A disk that keeps its data in memory answers reads from there.
            let place = match op {
                Op::Read if !lane.disk(DISK).needs_pages() => Place::NoBuffer,
                Op::Read | Op::Write => Place::GuestRanges(Rc::clone(&data)),
                _ => Place::NoBuffer,
            };
            self.waiting.push(Some((op, data)));
            let owner = Owner::Door { door: number, token };
            lane.submit(owner, DISK, Asked::from(op), Transfer::with(offset, len, place));
        }
    }
}

impl Door for GuestDoor {
    fn process_input(&mut self, number: u32, lane: &mut Services) {
        while !self.is_busy() {
            match self.steps.pop_front() {
                None => return,
                Some(Step::Fill(at, bytes)) => self.memory.write(at, &bytes),
                Some(Step::Submit(requests)) => self.submit(number, requests, lane),
                Some(Step::SubmitAndReset(requests)) => {
                    self.submit(number, requests, lane);
                    self.waiting.clear();
                    self.abandoned += lane.abandon_requests(number);
                }
                Some(Step::AwaitWake) => self.is_awaiting_wake = true,
            }
        }
    }

    fn take_back(&mut self, _: u32, _: Lent, _: io::Result<usize>, _: bool, _: &mut Services) {
        unreachable!("this door lends nothing to the kernel")
    }

    fn finish_request(
        &mut self,
        token: u32,
        status: Status,
        transfer: Transfer,
        lane: &mut Services,
    ) {
        let (op, data) = self.waiting[token as usize].take().expect("a request that has not ended");
        if op == Op::Read && matches!(transfer.place, Place::NoBuffer) {
            let (map, range) = lane.disk(DISK).own_data(transfer.offset, transfer.len);
            data.fill_from(0, map, range);
        }
        self.seen.ends.push((token, status));
    }

    /// [abandoned-request-keeps-memory]: the data is still the guest's own memory.
    fn reclaim_memory(&mut self, transfer: Transfer, _lane: &mut Services) {
        if let Place::GuestRanges(data) = &transfer.place {
            assert!(Rc::ptr_eq(data.memory(), &self.memory), "the memory of an abandoned request");
        }
        self.abandoned -= 1;
        self.seen.reclaimed += 1;
    }

    fn end_turn(&mut self, number: u32, lane: &mut Services) -> AfterTurn {
        if self.is_busy() {
            return AfterTurn::Keep;
        }
        if !self.steps.is_empty() {
            lane.schedule_door(number);
            return AfterTurn::Keep;
        }
        if self.abandoned > 0 { AfterTurn::Keep } else { AfterTurn::Close }
    }

    fn on_wake(&mut self, number: u32, lane: &mut Services) {
        self.is_awaiting_wake = false;
        lane.schedule_door(number);
    }

    fn disk(&self) -> Option<usize> {
        Some(DISK)
    }

    fn cut_off(&mut self, _number: u32, _why: &'static str, _lane: &mut Services) {
        unreachable!("nobody disconnects this guest")
    }

    fn start_drain(&mut self, _number: u32, _why: &'static str, _lane: &mut Services) {
        unreachable!("the lane ends after this guest")
    }

    fn close(mut self: Box<Self>, _lane: &mut Services) {
        self.memory.read(0..self.memory.len(), &mut self.seen.memory);
        let Self { seen, seen_by, .. } = *self;
        seen_by.send(seen).expect("the test waits for what the guest has seen");
    }
}
