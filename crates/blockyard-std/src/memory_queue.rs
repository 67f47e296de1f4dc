//! The queue of a disk in memory. Its callers work it, one after the other.
//!
//! Memory ends a request in the turn that begins it. So each caller takes the queue, ends all its requests, and passes the queue
//! on: a thread would add two switches to each.

use crate::inbox::Request;
use crate::parts::bio_queue::BioQueue;
use crate::parts::bios::{first_bio, is_last, next_bio};
use crate::parts::clock;
use crate::parts::device::at_once::{AtOnce, CarryOut};
use crate::parts::device::memory::Memory;
use crate::parts::job::{Transfer, job_of};
use crate::parts::queue::Asked;
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
    begun: Vec<Begun>,
}

#[derive(Debug)]
struct Begun {
    request: Request,
    /// The result of the first bio that failed, or `Ok`.
    status: Status,
}

impl MemoryQueue {
    /// Returns the queue of a disk of `shape` in `memory`. Its elevator is a built-in one, which holds no request back. Nothing times
    /// out: no request outlasts a call.
    pub(crate) fn new(shape: Shape, memory: Memory) -> Self {
        debug_assert!(shape.elevator.is_none(), "a foreign elevator may wait for later requests");
        let device = AtOnce::new(Lent { memory, begun: Vec::new() });
        let shape = Shape { timeout: Some(Duration::MAX), ..shape };
        Self { bios: BioQueue::new(&shape, device, ()), shape, report: Report::default() }
    }

    /// Carries out `requests`, and ends their loans.
    pub(crate) fn serve(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        counters: &Counters,
    ) {
        let now = clock::now();
        self.lent().begun.extend(requests.into_iter().map(|request| {
            counters.begun();
            Begun { request, status: Status::Ok }
        }));
        let count = self.lent().begun.len();
        for number in 0..count {
            self.submit(number, count == 1, now);
        }
        self.bios.advance(now);
        while let Some(ended) = self.bios.next_ended() {
            let begun = &mut self.lent().begun[job_of(ended.bio.cookie) as usize];
            if begun.status == Status::Ok {
                begun.status = ended.status;
            }
        }
        assert!(self.bios.is_empty(), "memory ends what it begins");
        for Begun { request, status } in self.bios.host.driver.below.begun.drain(..) {
            let Request { asked: Asked { op, .. }, transfer } = request;
            let Transfer { offset, len, place: loan, .. } = transfer;
            counters.ended(op, len, status == Status::Ok);
            self.report.note(Failure { op, offset, len, status });
            loan.end(status);
        }
    }

    /// Submits the bios of a request.
    #[inline]
    fn submit(&mut self, number: usize, is_alone: bool, now: Instant) {
        let Request { asked, transfer } = &self.bios.host.driver.below.begun[number].request;
        let (block_bytes, most) = (self.shape.block_bytes, self.shape.longest_bio(asked.op));
        let first = first_bio(asked.op, transfer, block_bytes, most);
        let (cookie, flags) = (number as u64, first.flags | asked.flags);
        let mut bio = Bio { cookie, flags, prio: asked.prio, ..first };
        if is_alone && is_last(&bio, transfer) {
            return self.bios.submit_now(bio, now);
        }
        loop {
            self.bios.submit(bio, now);
            let transfer = &self.bios.host.driver.below.begun[number].request.transfer;
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
            let Request { asked, transfer } = &self.begun[job_of(piece.cookie) as usize].request;
            let status = self.memory.carry_out(asked.op, transfer, transfer.bytes_of(&piece));
            if status != Status::Ok {
                return status;
            }
        }
        Status::Ok
    }
}
