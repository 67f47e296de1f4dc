//! The state of a task: what it does now, or which event it sleeps for.

use super::Task;
use blockyard::time::{Duration, Instant};

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The task runs, or waits for its processor. Its next step submits and reaps nothing.
    Ready,
    /// The task runs, or waits for its processor. Its next step reaps results first.
    Reaping,
    /// The task sleeps.
    Asleep(Sleep),
    /// The requests that the task dispatched in the driver have been started. Its next step returns
    /// from that call.
    LeavingDriver,
    /// The task has ended.
    Over,
}

/// The event that a task sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sleep {
    /// This many completed I/Os, which the task then reaps.
    Completions(u32),
    /// An instant.
    Instant,
    /// This instant, or a completed I/O.
    InstantOrCompletion(Instant),
    /// A record, or a completed I/O.
    Record,
    /// A turn in its flow, or this instant.
    Turn(Instant),
    /// This instant, in a call that dirties pages too fast.
    Pause(Instant),
    /// A page that is being read or written back, or a commit of the journal.
    Page,
    /// The end of one of the task's own bios, to submit another one.
    Room,
    /// A tag, or a place of throttled writeback.
    Tag,
    /// The end of the I/O of its call.
    Call,
    /// The start of the requests that it has dispatched.
    Driver,
}

/// A wait for a tag, from the first refusal of a bio until the queue takes the bio.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagWait {
    since: Instant,
    /// How often the queue has refused the bio.
    refusals: u32,
}

impl State {
    /// Returns the state after a wake-up.
    const fn woken(self) -> Self {
        match self {
            Self::Asleep(Sleep::Completions(_)) => Self::Reaping,
            Self::Asleep(_) | Self::LeavingDriver => Self::Ready,
            Self::Ready | Self::Reaping | Self::Over => self,
        }
    }

    /// Whether a task in this state is woken by a completed I/O, now that so many wait to be
    /// reaped.
    const fn is_woken_by(self, completed: usize) -> bool {
        match self {
            Self::Asleep(Sleep::Completions(wanted)) => completed >= wanted as usize,
            Self::Asleep(Sleep::InstantOrCompletion(_) | Sleep::Record) => true,
            _ => false,
        }
    }
}

impl Task {
    /// Whether the task has ended.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether the task sleeps for a tag.
    #[must_use]
    pub(crate) fn waits_for_tag(&self) -> bool {
        self.state == State::Asleep(Sleep::Tag)
    }

    /// Whether the task sleeps until it may submit another bio.
    #[must_use]
    pub(crate) fn waits_for_room(&self) -> bool {
        self.state == State::Asleep(Sleep::Room)
    }

    /// Whether the task sleeps for a turn.
    #[must_use]
    pub(crate) const fn waits_for_turn(&self) -> bool {
        matches!(self.state, State::Asleep(Sleep::Turn(_)))
    }

    /// Whether the task sleeps in the driver.
    #[must_use]
    pub(crate) fn is_in_driver(&self) -> bool {
        self.state == State::Asleep(Sleep::Driver)
    }

    /// Wakes the task, whatever it sleeps for.
    pub(crate) const fn wake(&mut self) {
        self.state = self.state.woken();
    }

    /// Notes that the I/O of a call that waits for it has ended. Returns whether the task must be
    /// woken.
    pub(super) fn wake_for_call(&mut self) -> bool {
        let wakes = self.state == State::Asleep(Sleep::Call);
        if wakes {
            self.wake();
        }
        wakes
    }

    /// Notes that an I/O has completed. Returns whether the task must be woken.
    pub(super) fn wake_for_completion(&mut self) -> bool {
        let wakes = self.state.is_woken_by(self.slots.completed());
        if wakes {
            self.wake();
        }
        wakes
    }

    /// Notes that the write of the current call has ended, and a flush is due. Returns whether the
    /// task must be woken.
    pub(super) fn wake_for_flush(&mut self) -> bool {
        // The write is the only I/O in flight, so the task waits for it.
        let wakes = self.state.is_woken_by(usize::MAX) || self.state == State::Asleep(Sleep::Call);
        if wakes {
            self.wake();
        }
        wakes
    }

    /// Notes that a record has arrived, or that none will. Returns whether the task must run.
    pub(super) fn wake_for_record(&mut self) -> bool {
        let wakes = self.state == State::Asleep(Sleep::Record);
        if wakes {
            self.wake();
        }
        wakes
    }

    /// Notes that the instant of a sleep has come. Returns whether the task must run. The result is
    /// false if another event has already woken the task.
    pub(crate) fn on_alarm(&mut self, now: Instant) -> bool {
        // The alarm of an earlier sleep may still be pending. The instant tells them apart where an
        // event may end the sleep early.
        let is_due = match self.state {
            State::Asleep(Sleep::Instant) => true,
            State::Asleep(Sleep::InstantOrCompletion(at) | Sleep::Turn(at) | Sleep::Pause(at)) => {
                at == now
            }
            _ => false,
        };
        if is_due {
            self.wake();
        }
        is_due
    }

    /// Sleeps until the transfer of a page or a commit has ended.
    pub(crate) const fn sleep_for_page(&mut self) {
        debug_assert!(self.buffered.is_some(), "only buffered I/O may wait for a page");
        self.state = State::Asleep(Sleep::Page);
    }

    /// Sleeps until one of the task's own bios has ended, to submit another one.
    pub(crate) const fn sleep_for_room(&mut self) {
        debug_assert!(self.buffered.is_some(), "only buffered I/O has bios without a slot");
        self.state = State::Asleep(Sleep::Room);
    }

    /// Sleeps until `until` in a call that dirties pages too fast.
    pub(crate) const fn pause_until(&mut self, until: Instant) {
        debug_assert!(self.buffered.is_some(), "only buffered I/O dirties pages");
        self.state = State::Asleep(Sleep::Pause(until));
    }

    /// Notes that the queue has refused the bio at `now`: the task sleeps for a tag.
    pub(crate) fn sleep_for_tag(&mut self, now: Instant) {
        let has_bio =
            self.feed.next().is_some() || self.buffered.is_some() || self.due_flush().is_some();
        debug_assert!(has_bio, "only a task with a bio may wait for a tag");
        // A task that a tag has woken, and that is refused again, continues the same wait.
        let wait = self.tag_wait.get_or_insert(TagWait { since: now, refusals: 0 });
        wait.refusals += 1;
        self.state = State::Asleep(Sleep::Tag);
    }

    /// Notes that the queue throttles writeback: the task sleeps until its bio has a place.
    pub(crate) const fn sleep_for_place(&mut self) {
        self.state = State::Asleep(Sleep::Tag);
    }

    /// Ends a wait for a tag at `now`. Returns how long it lasted.
    pub(crate) fn end_tag_wait(&mut self, now: Instant) -> Duration {
        self.tag_wait.take().map_or(Duration::ZERO, |wait| now.since(wait.since))
    }

    /// Whether the queue has refused the bio of [`Self::next_bio`] before.
    #[must_use]
    pub(crate) const fn was_refused(&self) -> bool {
        self.tag_wait.is_some()
    }

    /// Returns how often a tag has woken the task and the queue has then refused its bio again.
    #[must_use]
    pub(crate) fn refused_wakes(&self) -> u32 {
        // Of three refusals, the first began the wait, and the other two followed wake-ups.
        self.tag_wait.map_or(0, |wait| wait.refusals - 1)
    }

    /// Sleeps in the driver, before its call returns.
    pub(crate) const fn sleep_in_driver(&mut self) {
        self.state = State::Asleep(Sleep::Driver);
    }

    /// Lets the call of the task in the driver return.
    pub(crate) fn leave_driver(&mut self) {
        debug_assert!(self.is_in_driver(), "{:?} leaves a driver in which it is not", self.id);
        self.state = State::LeavingDriver;
    }

    /// Returns from the driver, if the task was there. It then does nothing else in this step, and
    /// plans what it does next.
    pub(crate) fn return_from_driver(&mut self) -> bool {
        let returns = self.state == State::LeavingDriver;
        if returns {
            self.state = State::Ready;
        }
        returns
    }
}
