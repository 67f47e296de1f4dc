//! Runs of equal calls of a task: writes within pages that are dirty, one call after the other.
//!
//! Such a call changes no page. Its times are those of the call before it, only later, so a run of
//! them leaves the task as its last call alone would.

use super::Buffered;
use crate::page_cache::PageCache;
use crate::task::Task;
use crate::task::calls::InCall;
use crate::task::durable::Tail;
use crate::task::source::Source;
use crate::task::state::State;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard_devices::profile::PAGE_BYTES;
use blockyard_fio::job::{Job, Op, SyncMode};
use blockyard_fio::measure::Taken;
use core::ops::Range;

/// Whether an instance of `job` may make runs of equal calls: it issues one write after the other,
/// as soon as it can, and each changes pages alone.
pub(crate) fn may_repeat(job: &Job) -> bool {
    let writes = job.pattern.mix.ops().contains(&Op::Write) && !job.direct;
    let is_plain = job.sync == SyncMode::None && !job.is_mapped() && !job.uncached;
    let is_alone = job.depth() == 1 && !job.engine.is_async();
    writes && is_plain && is_alone && job.thinktime_ns == 0 && !job.command_priority.is_used()
}

impl Task {
    /// Returns the result that the task reaps at `now`, if it is that of a write whose call did
    /// nothing but copy, ended now, and cost what a write of its length does (`cost`). The next
    /// call is like it if it writes within a dirty page.
    pub(crate) fn repeatable(&self, cost: impl Fn(u32) -> Duration, now: Instant) -> Option<Taken> {
        let reaps = self.state == State::Reaping && self.calls.in_call == InCall::None;
        if !self.may_repeat || !reaps || self.has_ended {
            return None;
        }
        let buffered = self.buffered.as_deref().filter(|buffered| buffered.rests())?;
        let Source::Generated(generated) = &self.feed.source else { return None };
        let is_paced = generated.has_rate() || self.pauses.is_due() || self.share.is_some();
        if is_paced || self.targets.look_at_each() || self.tail != Tail::None {
            return None;
        }
        let taken = self.slots.only_completed(now)?;
        let took = cost(taken.len_bytes);
        let begun = Instant::from_ns(now.as_ns().checked_sub(took.as_ns())?);
        let is_measured = begun >= self.measuring.from();
        // The call takes its time before it returns, and its result is reaped then.
        let is_only_copied = taken.late == Duration::ZERO
            && (taken.slat, taken.clat, taken.completed) == (took, Duration::ZERO, now)
            && buffered.clocks.is_only_in_memory(begun, now);
        let is_write = taken.op == Some(Op::Write) && taken.status == Status::Ok;
        (is_write && is_measured && is_only_copied).then_some(taken)
    }

    /// Returns the instant from which on a call is not like the one before it: the job is over, or
    /// a sample is due.
    pub(crate) fn repeatable_until(&self) -> Instant {
        self.stop_at.min(self.measuring.meter.next_at())
    }

    /// Makes up to `most` calls like that of `taken`, the first one at `now`. Returns their number.
    pub(crate) fn repeat(
        &mut self,
        taken: &Taken,
        most: u64,
        now: Instant,
        cache: &PageCache,
    ) -> u64 {
        let rates_from = self.measuring.begun();
        let mut dirty = (0, 0..0);
        let mut last = None;
        let mut calls = 0;
        while calls < most && self.repeats_next(taken.len_bytes, &mut dirty, cache) {
            last = Some(self.feed.pass(now, rates_from));
            calls += 1;
        }
        if let Some(io) = last {
            let took = taken.slat;
            let begun = now + Duration::from_ns(took.as_ns() * (calls - 1));
            let slot = self.slots.redo((io.file, io.offset_bytes), begun, begun + took);
            self.buffered().clocks.redo_in_memory(slot, begun, begun + took);
        }
        calls
    }

    /// Whether the next I/O is a write of `len_bytes` within one page that is dirty. `dirty` is a
    /// range of dirty pages, with the number of its file.
    fn repeats_next(
        &self,
        len_bytes: u32,
        dirty: &mut (u16, Range<u64>),
        cache: &PageCache,
    ) -> bool {
        let Source::Generated(generated) = &self.feed.source else { return false };
        let Some(io) = self.feed.next() else { return false };
        let Some(buffered) = self.buffered.as_deref() else { return false };
        let page = io.offset_bytes / PAGE_BYTES;
        let is_like = io.kind == Some(Op::Write) && io.len_bytes == len_bytes;
        let begun_anew = (generated.passes_done(), generated.begun_anew(io.file));
        if !is_like || buffered.drops_before(io.file, begun_anew) {
            return false;
        }
        if dirty.0 != io.file || !dirty.1.contains(&page) {
            *dirty = (io.file, buffered.dirty_around(io.file, page, cache));
        }
        let end = io.offset_bytes + u64::from(len_bytes);
        dirty.1.contains(&page) && end <= (page + 1) * PAGE_BYTES
    }
}

impl Buffered {
    /// Whether nothing is to be done before the next I/O, of which it is not known what that needs.
    const fn rests(&self) -> bool {
        let is_open = self.placements.is_empty() && self.pre_read.is_none();
        let waits = self.looks.is_some() || self.pause.is_some() || self.plugged.is_some();
        is_open && !waits && !self.in_call() && !self.is_direct() && !self.writes_before_drop
    }

    /// Whether pages are dropped before an I/O of file number `file`, when so many passes have
    /// ended and its I/Os have begun anew so often.
    fn drops_before(&self, file: u16, (passes, times): (u64, u64)) -> bool {
        let known = self.begun_anew.get(usize::from(file)).copied().unwrap_or(0);
        self.drops && (passes, times) != (self.passes_before, known)
    }

    /// Returns dirty pages of file number `file` around `page`; an empty range if that is clean.
    fn dirty_around(&self, file: u16, page: u64, cache: &PageCache) -> Range<u64> {
        let stream = self.streams.get(usize::from(file));
        stream.map_or(0..0, |stream| cache.dirty_around(stream.file, page))
    }
}
