//! The request queue, and the driver below it.

use super::io::{Io, place};
use super::{Design, Failure};
use crate::card::Identity;
use alloc::vec::Vec;
use blockyard::bio::Op;
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::request::Piece;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};

/// The processor of all submissions.
const CPU: CpuId = CpuId(0);
/// The time of everything: see the header of [`disk`](super).
const NOW: Instant = Instant::ZERO;
/// The most sectors of one erase: 32 MiB, for which a card may take seconds.
const MAX_ERASE_SECTORS: u32 = 1 << 16;

/// The I/Os of the call that runs, as requests.
#[derive(Debug)]
pub(super) struct Staged {
    queue: RequestQueue,
    host: Host<Slot>,
}

impl Staged {
    pub(super) fn new(identity: &Identity, design: Design) -> Self {
        assert!(design.bios >= 2, "a split I/O takes two bios");
        let limits = Limits {
            max_sectors: design.max_sectors,
            max_segments: u16::MAX,
            max_discard_sectors: if identity.can_erase() { MAX_ERASE_SECTORS } else { 0 },
            ..Limits::new(identity.sectors())
        };
        let config = QueueConfig {
            max_bios: design.bios,
            max_waiters: 0,
            run_batch_max: u32::from(design.depth),
            timeout: Duration::MAX,
            ..QueueConfig::new(1, 1, limits, design.policies)
        };
        let host = Host::new(Slot::new(design.bios), (), TagSetConfig::single(design.depth));
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self { queue, host }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Submits as many of `ios` as there is room for, from `next` on, as one batch. Returns the
    /// next one.
    pub(super) fn submit_from(&mut self, mut next: usize, ios: &mut [Io<'_>]) -> usize {
        self.queue.plug(CPU);
        while let Some(io) = ios.get_mut(next) {
            io.result = match self.queue.submit(&mut self.host, CPU, io.bio(next), NOW) {
                Err(SubmitError::NoTag | SubmitError::TooManyBios) => {
                    debug_assert!(!self.is_empty(), "an empty queue has room for an I/O");
                    break;
                }
                refused_or_not => refused_or_not.map_err(Failure::Refused),
            };
            next += 1;
        }
        self.queue.unplug(&mut self.host, CPU, NOW);
        self.turn();
        next
    }

    /// Returns the request that the card is to do now, with its pieces.
    pub(super) fn taken(&self) -> Option<(Taken, &[Piece])> {
        let slot = &self.host.driver;
        slot.taken.map(|taken| (taken, slot.pieces.as_slice()))
    }

    /// Takes back the request that the card did. The next one follows.
    pub(super) fn end(&mut self, outcome: Outcome) {
        let taken = self.host.driver.taken.take().expect("a request that ends was taken");
        self.host.driver.ended = Some(Finished { outcome, ..taken.finished });
        self.turn();
    }

    /// Returns the place and result of an I/O that has ended.
    pub(super) fn next_ended(&mut self) -> Option<(usize, Result<(), Failure>)> {
        let ended = self.queue.next_ended()?;
        let is_ok = ended.status == Status::Ok;
        let result = if is_ok { Ok(()) } else { Err(Failure::Failed(ended.status)) };
        Some((place(ended.bio.cookie), result))
    }

    /// Ends all that a dropped future left ([memory-is-the-calls]).
    pub(super) fn drop_leftovers(&mut self) {
        while !self.is_empty() {
            self.turn();
            if self.host.driver.taken.is_some() {
                self.end(Outcome::Done(Status::IoError));
            }
            while self.queue.next_ended().is_some() {}
        }
        debug_assert!(self.host.driver.taken.is_none(), "an empty queue with a request");
    }

    fn turn(&mut self) {
        let _ = self.queue.turn(&mut self.host, NOW);
    }
}

/// No request is left when the queue goes.
impl Drop for Staged {
    fn drop(&mut self) {
        self.drop_leftovers();
    }
}

/// A request of the card's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Whose it is. The outcome follows.
    finished: Finished,
    pub(super) op: Op,
    pub(super) sector: u64,
    pub(super) sectors: u32,
}

/// The driver: room for one request.
#[derive(Debug)]
struct Slot {
    taken: Option<Taken>,
    /// The pieces of `taken`.
    pieces: Vec<Piece>,
    ended: Option<Finished>,
}

impl Slot {
    fn new(bios: u32) -> Self {
        Self { taken: None, pieces: Vec::with_capacity(bios as usize), ended: None }
    }
}

impl Driver for Slot {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if self.taken.is_some() || self.ended.is_some() {
            return Accept::Busy(Busy::Device);
        }
        let Issue { queue, hctx, tag, .. } = *issue;
        let finished = Finished { queue, hctx, tag, outcome: Outcome::Again };
        let request = issue.request();
        let op = request.op;
        let sector = request.sector;
        let sectors = request.sectors;
        self.taken = Some(Taken { finished, op, sector, sectors });
        self.pieces.clear();
        self.pieces.extend(issue.pieces());
        debug_assert_eq!(
            self.pieces.iter().map(|piece| piece.sectors).sum::<u32>(),
            sectors,
            "the pieces of a request are all of it"
        );
        Accept::Queued
    }
}

impl Device for Slot {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.ended.take()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.ended.map(|_| NOW)
    }
}
