//! The queue of a disk in memory. Its callers work it, one after the other.
//!
//! Memory ends a request in the turn that begins it. So each caller takes the queue, ends all its
//! requests, and passes the queue on: a thread would add two switches to each.

use crate::inbox::Request;
use crate::parts::bio_queue::BioQueue;
use crate::parts::bios::{first_bio, is_last, next_bio};
use crate::parts::clock;
use crate::parts::device::at_once::{AtOnce, CarryOut};
use crate::parts::device::memory::Memory;
use crate::parts::job::{Transfer, job_of};
use crate::parts::shape::Shape;
use crate::report::{Failure, Report};
use crate::stats::Counters;
use blockyard::bio::Bio;
use blockyard::driver::{DataEffect, Issue};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};

/// The queue of a disk in memory. See the [module](self).
#[derive(Debug)]
pub(crate) struct MemoryQueue {
    bios: BioQueue<AtOnce<Lent>, ()>,
    shape: Shape,
    report: Report,
}

/// The device: the memory of the disk, and that of the caller's requests.
#[derive(Debug)]
struct Lent {
    memory: Memory,
    /// The requests of the caller, by the cookies of their bios.
    begun: Vec<Request>,
}

impl MemoryQueue {
    /// Returns the queue of a disk of `shape` in `memory`. Its elevator is a built-in one, which
    /// holds no request back. Nothing times out: no request outlasts a call.
    pub(crate) fn new(shape: Shape, memory: Memory) -> Self {
        debug_assert!(shape.elevator.is_none(), "a foreign elevator may wait for later requests");
        let device = AtOnce::new(Lent { memory, begun: Vec::new() });
        let shape = Shape { timeout: Some(Duration::MAX), ..shape };
        Self { bios: BioQueue::new(&shape, device, ()), shape, report: Report::default() }
    }

    /// Carries out `request`, and returns it with its result noted in its loan, which the caller
    /// ends.
    #[inline]
    pub(crate) fn serve_one(&mut self, request: Request, counters: &Counters) -> Request {
        self.lent().begun.push(request);
        self.carry_out(counters);
        self.lent().begun.pop().expect("the request that was pushed")
    }

    /// As [`Self::serve_one`], for several requests.
    pub(crate) fn serve(&mut self, requests: &mut Vec<Request>, counters: &Counters) {
        core::mem::swap(&mut self.lent().begun, requests);
        self.carry_out(counters);
        core::mem::swap(&mut self.lent().begun, requests);
    }

    /// Carries out the requests that have begun. The result of each is that of the first of its
    /// bios that failed, or of its last one.
    fn carry_out(&mut self, counters: &Counters) {
        let now = clock::now();
        let count = self.lent().begun.len();
        for number in 0..count {
            counters.begun();
            self.submit(number, count == 1, now);
        }
        self.bios.advance(now);
        while let Some(ended) = self.bios.next_ended() {
            let loan = &self.lent().begun[job_of(ended.bio.cookie) as usize].transfer.place;
            if loan.status().is_none_or(|status| status == Status::Ok) {
                loan.end(ended.status);
            }
        }
        assert!(self.bios.is_empty(), "memory ends what it begins");
        for Request { asked, transfer } in &self.bios.host.driver.below.begun {
            let op = asked.op;
            let &Transfer { offset, len, ref place, .. } = transfer;
            let status = place.status().expect("a request of which every bio has ended");
            counters.ended(op, len, status == Status::Ok);
            self.report.note(Failure { op, offset, len, status });
        }
    }

    /// Submits the bios of a request.
    #[inline]
    fn submit(&mut self, number: usize, is_alone: bool, now: Instant) {
        let Request { asked, transfer } = &self.bios.host.driver.below.begun[number];
        let block_bytes = self.shape.block_bytes;
        let most = self.shape.longest_bio(asked.op);
        let first = first_bio(asked.op, transfer, block_bytes, most);
        let cookie = number as u64;
        let flags = first.flags | asked.flags;
        let mut bio = Bio { cookie, flags, prio: asked.prio, ..first };
        if is_alone && is_last(&bio, transfer) {
            return self.bios.submit_now(bio, now);
        }
        loop {
            self.bios.submit(bio, now);
            let transfer = &self.bios.host.driver.below.begun[number].transfer;
            match next_bio(&bio, transfer, block_bytes, most) {
                Some(next) => bio = next,
                None => return,
            }
        }
    }

    /// Returns what became of the requests.
    pub(crate) fn finish(self, counters: &Counters) -> Report {
        Report { stats: counters.read(), ..self.report }
    }

    const fn lent(&mut self) -> &mut Lent {
        &mut self.bios.host.driver.below
    }
}

impl CarryOut for Lent {
    #[inline]
    fn carry_out(&mut self, issue: &Issue<'_>) -> Status {
        if issue.effect() == DataEffect::Nowhere {
            return Status::Ok;
        }
        for piece in issue.pieces() {
            let Request { asked, transfer } = &self.begun[job_of(piece.cookie) as usize];
            let status = self.memory.carry_out(asked.op, transfer, transfer.bytes_of(&piece));
            if status != Status::Ok {
                return status;
            }
        }
        Status::Ok
    }
}
