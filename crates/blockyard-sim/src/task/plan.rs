//! The plan of a task: what it does after a step, or which event it sleeps for.

use super::calls::InCall;
use super::durable::Tail;
use super::source::{NextIo, Source};
use super::state::{Sleep, State};
use super::think::Pause;
use super::{Buffered, BufferedStep, Task};
use crate::page_cache::PageCache;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;
use blockyard_fio::job::Op;

/// The next action of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Take a step: reap results and issue more I/Os while there is room.
    Step,
    /// Continue the current call with no other thread in between: submit bios.
    Submit,
    /// Continue the current call with no other thread in between: copy from or to a page.
    CopyPage,
    /// Sleep until enough I/Os have completed, a page has been read or a tag is free.
    AwaitCompletions,
    /// Sleep until this instant.
    AwaitInstant(Instant),
    /// Sleep until a record is delivered or an I/O has completed.
    AwaitRecord,
    /// Sleep until the task has a turn in its flow, or until this instant.
    AwaitTurn(Instant),
    /// The task has ended.
    End,
}

impl Task {
    /// Returns the next action at `now`. Unless it is [`Plan::Step`], the task now sleeps or has
    /// ended. If the task `has_turn`, it is not ahead of its share in its flow.
    pub(crate) fn plan(&mut self, now: Instant, has_turn: bool) -> Plan {
        // Unless something below says otherwise, the next step follows.
        self.state = State::Ready;
        self.end_issue_if_over(now);
        if self.due_flush().is_some() {
            return Plan::Submit;
        }
        if self.is_pre_reading() {
            return Plan::Step;
        }
        match self.calls.in_call {
            InCall::None => {}
            InCall::Waits(_) => {
                self.state = State::Asleep(Sleep::Call);
                return Plan::AwaitCompletions;
            }
            InCall::Returns(_) => return Plan::Step,
        }
        self.update_draining();
        let outstanding = self.outstanding();
        let reaps_first = outstanding > 0 && (self.draining || self.pauses.is_due());
        // A job with rates for reads and writes chooses the direction when there is room, and not
        // before.
        let draws = !(reaps_first && self.feed.source.chooses_late());
        if draws {
            self.draw(now);
        }
        let is_known = self.feed.next().is_some();
        if let Source::Recorded(recorded) = &self.feed.source {
            let more = is_known || !(self.feed.has_ended() || recorded.ended());
            if recorded.timed() || (more && !is_known) {
                return self.plan_recorded(now, more);
            }
        }
        let is_finishing = draws && !is_known;
        // A pause that is due begins when the last result has been reaped. A job that ends does not
        // pause first.
        if outstanding == 0 && !is_finishing {
            self.begin_pause(now);
        }
        let due = self.next_due().unwrap_or(Instant::MAX);
        // A job whose search is to try another depth waits for all its I/Os.
        if self.settles_depth() && outstanding > 0 {
            return self.await_completions(outstanding);
        }
        let is_refused = core::mem::take(&mut self.calls.is_busy) && outstanding > 0;
        if self.draining || is_refused {
            return self.await_completions(self.shape.complete_min.min(outstanding));
        }
        // A job that ends waits for all its I/Os, but in fio a last one that fills the depth first
        // waits for one. 6 I/Os at depth 4 are reaped in calls for 1, 1, 1 and 3 of them.
        if is_finishing {
            return if outstanding > 0 { self.await_completions(outstanding) } else { self.end() };
        }
        self.plan_issue(now, due, has_turn)
    }

    /// Plans the issue of the next I/O, which is `due`: its rate or a pause may hold it back, or
    /// its flow.
    fn plan_issue(&mut self, now: Instant, due: Instant, has_turn: bool) -> Plan {
        let outstanding = self.outstanding();
        // As in fio, a job that is ahead of its rate sleeps for as long as it is ahead now, but
        // only after all results.
        if due > now && outstanding > 0 && !self.shape.offload {
            self.pauses.begin_early(Pause::of(due.since(now)));
        }
        if self.pauses.is_due() {
            return self.await_completions(1);
        }
        // A job whose next I/O is due after its end sleeps until its end.
        let due = due.min(self.stop_at);
        if due <= now {
            return if has_turn { Plan::Step } else { self.await_turn(now) };
        }
        if outstanding == 0 {
            self.state = State::Asleep(Sleep::Instant);
            return Plan::AwaitInstant(due);
        }
        // Results do not wait for the instant: they are reaped as they come.
        if self.slots.completed() > 0 {
            self.state = State::Reaping;
            return Plan::Step;
        }
        self.state = State::Asleep(Sleep::InstantOrCompletion(due));
        Plan::AwaitInstant(due)
    }

    /// Plans like [`Self::plan`], but for recorded I/Os with times. `more` says whether records may
    /// follow. Results are reaped as they arrive, and an I/O that is due does not wait for them.
    fn plan_recorded(&mut self, now: Instant, more: bool) -> Plan {
        let outstanding = self.outstanding();
        if !more {
            return if outstanding > 0 { self.await_completions(1) } else { self.end() };
        }
        if self.slots.completed() > 0 {
            self.state = State::Reaping;
            return Plan::Step;
        }
        let is_full = outstanding == self.shape.depth;
        let is_known = self.feed.next().is_some();
        let due = if is_known { self.next_due() } else { Some(Instant::MAX) };
        match due {
            Some(due) if due <= now && !is_full => Plan::Step,
            // The record waits for an I/O before it, or for a slot.
            None => self.await_completions(1),
            Some(_) if is_full => self.await_completions(1),
            Some(due) if is_known => {
                self.state = State::Asleep(Sleep::InstantOrCompletion(due));
                Plan::AwaitInstant(due)
            }
            Some(_) => {
                self.state = State::Asleep(Sleep::Record);
                Plan::AwaitRecord
            }
        }
    }

    /// A job whose depth was reached issues nothing more until no more than the low mark are in
    /// flight.
    fn update_draining(&mut self) {
        let outstanding = self.outstanding();
        if outstanding >= self.depth() {
            self.draining = true;
        } else if outstanding <= self.shape.low {
            self.draining = false;
        }
    }

    /// Begins the pause that is due, if one is. No I/O is in flight.
    fn begin_pause(&mut self, now: Instant) {
        debug_assert!(self.slots.completed() == 0, "a pause begins when all results are reaped");
        let Some(pause) = self.pauses.begin(now) else { return };
        if let Source::Generated(generated) = &mut self.feed.source
            && pause.is_not_caught_up
        {
            generated.exempt_pause(pause.length);
        }
    }

    fn end(&mut self) -> Plan {
        self.state = State::Over;
        Plan::End
    }

    /// Issues no more I/Os if the time of the job is over.
    pub(super) fn end_issue_if_over(&mut self, now: Instant) {
        if now >= self.stop_at {
            self.feed.end();
        }
    }

    /// Issues no more I/Os if the time of the job is over. A call that has slept for a tag, or for
    /// a place of throttled writeback, has begun before, and goes on.
    pub(crate) fn begin_no_call_if_over(&mut self, now: Instant) {
        if self.calls.current.left == 0 {
            self.end_issue_if_over(now);
        }
    }

    /// Sleeps for a turn: for the pause of its job, once its I/Os in flight have ended, or until
    /// there is a turn.
    fn await_turn(&mut self, now: Instant) -> Plan {
        let pause = self.share.map_or(Duration::ZERO, |share| share.pause);
        if pause == Duration::ZERO {
            self.state = State::Asleep(Sleep::Turn(self.stop_at));
            return Plan::AwaitTurn(self.stop_at);
        }
        // fio's pause of a flow begins when nothing is in flight.
        if self.outstanding() > 0 {
            return self.await_completions(self.outstanding());
        }
        self.state = State::Asleep(Sleep::Instant);
        Plan::AwaitInstant(now + pause)
    }

    /// Reaps results once so many I/Os are completed.
    fn await_completions(&mut self, wanted: u32) -> Plan {
        debug_assert!(
            0 < wanted && wanted <= self.outstanding(),
            "{wanted} I/Os must be in flight to complete"
        );
        if self.slots.completed() >= wanted as usize {
            self.state = State::Reaping;
            return Plan::Step;
        }
        self.state = State::Asleep(Sleep::Completions(wanted));
        Plan::AwaitCompletions
    }

    /// Returns the buffered I/O.
    ///
    /// # Panics
    ///
    /// If the task does not use the page cache.
    pub(crate) fn buffered(&mut self) -> &mut Buffered {
        self.buffered.as_mut().expect("a task in a buffered call should have buffered I/O")
    }

    /// Closes the files, if the next I/O is the first of another pass, and their pages are dropped
    /// before it. If its file begins anew, those of the file are dropped.
    pub(crate) fn close_after_pass(&mut self, cache: &PageCache) {
        let Source::Generated(generated) = &self.feed.source else { return };
        let passes = generated.passes_done();
        let file = self.feed.next().map(|io| io.file);
        let anew = file.map(|file| (file, generated.begun_anew(file)));
        if let Some(buffered) = &mut self.buffered {
            buffered.close_after_pass(passes, cache);
            if let Some((file, times)) = anew {
                buffered.drop_anew(file, times);
            }
        }
    }

    /// Returns the next step of the current call; `None` if no call uses the page cache.
    #[inline]
    #[must_use]
    pub(crate) fn buffered_step(&self, cache: &PageCache) -> Option<BufferedStep> {
        let buffered = self.buffered.as_deref()?;
        buffered.in_call().then(|| buffered.next(cache))
    }

    /// Begins to write back what the task dirtied on `disks`, which nobody else has open, although
    /// its job has ended. Returns whether there is something to wait for.
    pub(crate) fn begin_to_close(&mut self, disks: &[QueueId], cache: &PageCache) -> bool {
        let begins = self.buffered().begin_to_close(disks, cache);
        if begins {
            self.state = State::Ready;
        }
        begins
    }

    /// Returns the disks of the files that the task has opened through the page cache.
    pub(crate) fn disks_used(&self, cache: &PageCache) -> Vec<QueueId> {
        let buffered = self.buffered.as_deref();
        buffered.map_or_else(Vec::new, |buffered| buffered.open_disks(cache))
    }

    /// Returns those of them that the task still has open.
    pub(crate) fn open_disks(&self, cache: &PageCache) -> Vec<QueueId> {
        if self.has_ended { Vec::new() } else { self.disks_used(cache) }
    }

    /// Begins a call at `now` for the I/O of [`Self::next_bio`]. Returns whether it is a sync.
    pub(crate) fn begin_buffered(&mut self, now: Instant, cache: &PageCache) -> bool {
        let io = self.feed.next().expect("an I/O should come from `next_bio`");
        let NextIo { bio, kind, sync, file, offset_bytes, len_bytes, .. } = *io;
        let slot = self.slots.next_free().expect("an I/O should have a slot");
        self.call(now);
        self.submitted(now);
        self.end_call();
        if matches!(kind, None | Some(Op::Write)) {
            self.buffered().clocks.start(slot, now);
        }
        self.buffered().begin(slot, file, offset_bytes, len_bytes, (bio, sync), cache);
        kind.is_none()
    }

    /// Returns from the call at `now`.
    pub(crate) fn end_buffered(&mut self, status: Status, now: Instant, cache: &PageCache) {
        self.buffered().end_pre_read(status);
        // A sync of disks is no I/O of the job, nor is a read before it begins.
        let Some(slot) = self.buffered().end_call(cache) else { return };
        // The call that submits is the one that copies, so its end is the submission too.
        if self.is_async() && !matches!(self.tail, Tail::Flushing(_)) {
            self.slots.set_submitted(slot, now);
        }
        self.completed(slot, status, now);
    }
}
