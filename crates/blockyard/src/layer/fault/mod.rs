//! [`Faulty`]: injects faults by named rules.
//!
//! The device below sees every request that is not failed or refused here, and completes it: a lost request is a lost
//! completion. An offer that the device below refuses has not taken place: it matches no fault rule, and nothing is
//! drawn for it. The fault chosen for an offer holds until the request completes. A request that the device below gives
//! back undone passes up unchanged, whatever a fault rule said: the request comes again and is judged anew.

mod rule;

pub use rule::{Action, Count, FaultRule, Turns, When};

use super::held::Held;
use super::tagged::{Slot, Tagged};
use crate::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome, TimedOut};
use crate::prng::Prng;
use crate::request::Request;
use crate::status::Status;
use crate::tag::TagSetConfig;
use crate::time::{Duration, Instant, earlier};
use crate::unit::{DriverTag, HctxId, QueueId};
use alloc::vec::Vec;
use rule::Rules;

/// What happens to the completion of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It passes up unchanged.
    Plain,
    /// It passes up with this outcome.
    Outcome(Outcome),
    /// It passes up after this delay.
    Late(Duration),
    /// It does not pass up. Whether the request is given up on time-out, and its completion if that
    /// came.
    Lost { gives_up: bool, came: Option<Finished> },
}

impl From<Option<Action>> for Fate {
    fn from(action: Option<Action>) -> Self {
        match action {
            Some(Action::Error(status)) => Self::Outcome(Outcome::Done(status)),
            Some(Action::Again) => Self::Outcome(Outcome::Again),
            Some(Action::Delay(delay)) => Self::Late(delay),
            Some(Action::Lose) => Self::Lost { gives_up: false, came: None },
            Some(Action::TimeOut) => Self::Lost { gives_up: true, came: None },
            _ => Self::Plain,
        }
    }
}

/// The fault layer.
#[derive(Clone, Debug)]
pub struct Faulty<D> {
    /// The device into which faults are injected.
    pub below: D,
    rules: Rules,
    lifted: bool,
    /// Whether completions are neither held nor lost ([let-go-ends-held]).
    lets_go: bool,
    /// The fate of each request below.
    fates: Tagged<Fate>,
    held: Held,
    /// Requests in flight that will complete, by queue.
    coming: Vec<u32>,
    /// Completions that came and were dropped.
    lost: u64,
}

impl<D> Faulty<D> {
    /// Returns `below` with the faults of `rules`, whose times begin at [`Instant::ZERO`]; chances are drawn from
    /// `draws`.
    ///
    /// # Panics
    ///
    /// Panics if a rule is to fire on every 0th match.
    #[must_use]
    pub fn new(below: D, rules: Vec<FaultRule>, draws: Prng, tags: &TagSetConfig) -> Self {
        assert_fire(&rules);
        Self {
            below,
            rules: Rules::new(rules, draws),
            lifted: false,
            lets_go: false,
            fates: Tagged::new(Fate::Plain, tags),
            held: Held::new(tags),
            coming: alloc::vec![0; usize::from(tags.queues)],
            lost: 0,
        }
    }

    /// Replaces the rules, with counts of zero. Their times begin `now`. Faults already chosen for requests in flight
    /// remain.
    ///
    /// # Panics
    ///
    /// Panics if a rule is to fire on every 0th match.
    pub fn set_rules(&mut self, rules: Vec<FaultRule>, now: Instant) {
        assert_fire(&rules);
        self.rules.set(rules, now);
    }

    /// Disables all rules from now on. Faults already chosen for requests in flight remain.
    pub const fn lift(&mut self) {
        self.lifted = true;
    }

    /// Disables all rules from now on, and fails the requests whose completions are held or lost: at `now`, or when
    /// they come from below ([let-go-ends-held]).
    pub fn let_go(&mut self, now: Instant) {
        self.lift();
        self.lets_go = true;
        for fate in self.fates.values_mut() {
            if let Fate::Lost { came, .. } = fate
                && let Some(finished) = came.take()
            {
                self.held.hold(finished, now);
            }
        }
        self.held.fail_all();
    }

    /// Returns the rules in order, with the counts of each.
    pub fn counts(&self) -> impl Iterator<Item = (&FaultRule, Count)> {
        self.rules.counts()
    }

    /// Returns how many completions came from below and were dropped.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Forgets a request that the device below no longer has.
    fn forget(&mut self, queue: QueueId, slot: Slot) {
        let fate = core::mem::replace(&mut self.fates[slot], Fate::Plain);
        debug_assert!(
            matches!(fate, Fate::Lost { .. }) || self.coming[queue.index()] > 0,
            "{slot:?}"
        );
        self.coming[queue.index()] -= u32::from(!matches!(fate, Fate::Lost { .. }));
    }

    /// Turns a refusal that no completion would end into one for lack of a resource
    /// ([busy-promise-kept]).
    fn kept_promise(&self, queue: QueueId, busy: Busy) -> Busy {
        match busy {
            Busy::Device if self.coming[queue.index()] == 0 => Busy::Resource,
            Busy::Host if self.coming.iter().all(|coming| *coming == 0) => Busy::Resource,
            busy => busy,
        }
    }
}

fn assert_fire(rules: &[FaultRule]) {
    let never = rules.iter().find(|rule| rule.when.turns == Turns::Every(0));
    assert!(never.is_none(), "every 0th match: {never:?}");
}

impl<D: Driver> Faulty<D> {
    /// Answers with a refusal or failure of this layer's own.
    fn answer(&mut self, issue: &Issue<'_>, answer: Accept) -> Accept {
        if issue.last {
            self.below.commit(issue.queue, issue.hctx, issue.now); // [last-or-commit]: the device below does not see the last request
        }
        answer
    }

    fn pass(&mut self, issue: &Issue<'_>, action: Option<Action>) -> Accept {
        let effect = action.and_then(Action::effect).unwrap_or(issue.effect());
        let answer = self.below.queue_rq(&issue.with_effect(effect));
        if answer == Accept::Queued {
            let fate = Fate::from(action);
            self.coming[issue.queue.index()] += u32::from(!matches!(fate, Fate::Lost { .. }));
            self.fates[(issue.hctx, issue.tag)] = fate;
        }
        answer
    }
}

impl<D: Driver> Driver for Faulty<D> {
    crate::pass_on!(below: take_budget, return_budget, prepare, unprepare, commit);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if self.lifted {
            return self.pass(issue, None);
        }
        let verdict = self.rules.judge(issue);
        let answer = match verdict.action {
            Some(Action::Fail(status)) => self.answer(issue, Accept::Failed(status)),
            Some(Action::Busy(busy)) => {
                let busy = self.kept_promise(issue.queue, busy);
                self.answer(issue, Accept::Busy(busy))
            }
            action => {
                let answer = self.pass(issue, action);
                // The offer has not taken place. It comes again, and would count twice.
                if let Accept::Busy(_) = answer {
                    return answer;
                }
                answer
            }
        };
        self.rules.note(issue, verdict);
        answer
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        self.forget(queue, (hctx, tag));
        self.below.finish(queue, hctx, tag, request);
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        match self.fates[(hctx, tag)] {
            Fate::Lost { gives_up: true, came: Some(_) } => {
                TimedOut::Ended(Outcome::Done(Status::Timeout))
            }
            Fate::Lost { came: Some(_), .. } => TimedOut::Reset,
            _ if self.held.has((hctx, tag)) => TimedOut::Reset,
            // The device below still works on it and would complete it under a tag that may belong
            // to another request.
            _ => {
                let answer = self.below.timed_out(queue, hctx, tag, request, now);
                if answer == TimedOut::Ended(Outcome::AgainPrepared) {
                    self.forget(queue, (hctx, tag)); // it gets no `finish`
                }
                answer
            }
        }
    }
}

impl<D: Device> Device for Faulty<D> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        while let Some(finished) = self.below.next_finished(now) {
            let undone = matches!(finished.outcome, Outcome::Again | Outcome::AgainPrepared);
            match &mut self.fates[(finished.hctx, finished.tag)] {
                // It comes again and is judged anew: a fault now would end a request that has not been done.
                _ if undone => self.held.hold(finished, now),
                Fate::Plain => self.held.hold(finished, now),
                Fate::Outcome(outcome) => {
                    self.held.hold(Finished { outcome: *outcome, ..finished }, now);
                }
                // [let-go-ends-held]
                Fate::Late(_) | Fate::Lost { .. } if self.lets_go => self.held.hold(finished, now),
                Fate::Late(delay) => self.held.hold(finished, now + *delay),
                // The device below has completed it, and has room again; nobody above learns of that.
                Fate::Lost { came, .. } => {
                    *came = Some(finished);
                    self.lost += 1;
                }
            }
        }
        let finished = self.held.next(now)?;
        if finished.outcome == Outcome::AgainPrepared {
            self.forget(finished.queue, (finished.hctx, finished.tag)); // it gets no `finish`
        }
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        earlier(self.held.next_at(), self.below.poll_at())
    }
}
