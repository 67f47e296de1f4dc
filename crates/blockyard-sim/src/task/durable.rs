//! The flush that ends a synchronous call of a durable direct write.
//!
//! With `O_SYNC` or `O_DSYNC` the bio of a direct write is durable when it ends: it has FUA, or the
//! queue has it followed by a flush. `write`, `pwrite` and their vector forms flush the cache of a
//! block device once more before they return, in Linux up to 7.3. A write by libaio or io_uring
//! ends after its call, so no flush follows.

use super::Task;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;
use blockyard_fio::job::{self, Job, SyncMode};

/// The end of a synchronous call of a durable write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// The calls of the task end with their I/Os.
    None,
    /// No write has ended whose call is under way.
    Idle,
    /// The write of this slot has ended at this instant, and its call is to flush.
    Due(u32, Instant),
    /// The flush is in flight. Its write has ended at this instant.
    Flushing(Instant),
}

/// Whether a flush may follow the writes of `job`: each is durable, and its call waits for it.
pub(crate) fn waits_for_durable_writes(job: &Job) -> bool {
    job.direct && job.sync != SyncMode::None && !job.engine.is_async()
}

/// Whether a sync may follow the writes of `job` to a file of a file system: each is durable, and
/// one at a time is in flight. Asynchronous engines leave it to a worker, which the job awaits.
pub(crate) fn syncs_behind_writes(job: &Job) -> bool {
    job.direct && job.sync != SyncMode::None && job.depth() == 1
}

impl Task {
    /// Ends each call of a write with a flush.
    pub(crate) const fn flush_after_writes(&mut self) {
        self.tail = Tail::Idle;
    }

    /// Returns the flush that is due, with its slot as its cookie.
    #[inline]
    #[must_use]
    pub(crate) fn due_flush(&self) -> Option<(QueueId, Bio)> {
        let Tail::Due(slot, _) = self.tail else { return None };
        let flush = Bio::new(Op::Flush, 0, 0, u64::from(self.id.0) << 32 | u64::from(slot));
        Some((self.feed.last_queue(), flush.with_flags(Flags::SYNC)))
    }

    /// Notes that the queue has accepted the flush that is due.
    pub(crate) fn flush_submitted(&mut self) {
        let Tail::Due(_, since) = self.tail else {
            panic!("a flush should be submitted when it is due, and not {:?}", self.tail)
        };
        self.tail = Tail::Flushing(since);
    }

    /// Returns the time for which a call has been flushing at `now`; 0 if it does not.
    #[inline]
    pub(crate) fn flushing_for(&self, now: Instant) -> Duration {
        if let Tail::Flushing(since) = self.tail { now.since(since) } else { Duration::ZERO }
    }

    /// Notes the end of a bio of `slot` at `now`. Returns whether its call goes on with a flush. A
    /// write that has failed is not flushed.
    #[inline]
    pub(super) fn goes_on_to_flush(&mut self, slot: u32, status: Status, now: Instant) -> bool {
        let is_write = self.slots.get(slot).op == Some(job::Op::Write);
        let goes_on =
            self.tail == Tail::Idle && is_write && status == Status::Ok && !self.is_durable();
        match self.tail {
            Tail::Idle if goes_on => self.tail = Tail::Due(slot, now),
            Tail::Flushing(_) => self.tail = Tail::Idle,
            Tail::None | Tail::Idle | Tail::Due(..) => {}
        }
        goes_on
    }
}
