//! Rules: which requests, how often, and what becomes of them.
//!
//! The rules are asked in order, and the first that fires decides; those behind it are not asked
//! about that offer. A rule *matches* an offer by op, queue, sectors and time. It *fires* on those of its
//! matches that [`Turns`] names, by their number, and that chance picks.

use crate::bio::Op;
use crate::driver::{Busy, DataEffect, Issue};
use crate::prng::Prng;
use crate::status::Status;
use crate::time::{Duration, Instant};
use crate::unit::QueueId;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// A fault rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// The name of the rule in reports.
    pub name: String,
    /// When it fires.
    pub when: When,
    /// What it does to the request.
    pub then: Action,
}

/// When a rule fires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// On requests of these ops; if empty, of every op. An [`Action`] that concerns only writes is
    /// applied only to writes.
    pub ops: Vec<Op>,
    /// On requests of this queue; `None`: of every queue.
    pub queue: Option<QueueId>,
    /// On requests that touch one of these sectors; `None`: on any.
    pub sectors: Option<Range<u64>>,
    /// On requests offered at these times since the rules were set; `None`: at any time.
    pub during: Option<Range<Duration>>,
    /// On these of the matches, by number.
    pub turns: Turns,
    /// On one in this many of those, by chance; on each of them if `None` or 1.
    pub one_in: Option<u64>,
}

/// Selects matches of a rule by number; the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turns {
    /// Every match.
    #[default]
    All,
    /// Each match whose number is divisible by this. Not 0.
    Every(u64),
    /// Each match from the first number to the second, both included.
    Between(u64, u64),
}

/// The effect of a rule on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The driver fails the request at once; the device never sees it.
    Fail(Status),
    /// The device accepts the request and ends it with this status, without touching its data.
    Error(Status),
    /// The request completes later, by this much.
    Delay(Duration),
    /// The driver refuses the request for now. [`Busy::Device`] and [`Busy::Host`] become
    /// [`Busy::Resource`] if no request is in flight whose completion would make room
    /// ([busy-promise-kept]).
    Busy(Busy),
    /// The device accepts the request, does nothing, and gives it back for another try.
    Again,
    /// The device carries out the request, but its completion never comes.
    Lose,
    /// Like [`Action::Lose`]; but when the queue asks about the request after its timeout, the
    /// driver gives it up with [`Status::Timeout`].
    TimeOut,
    /// Only this many sectors of a write, from its first, reach the medium; the write is reported
    /// as done.
    TearWrite(u32),
    /// A write does not reach the medium, but is reported as done.
    LoseWrite,
    /// A write reaches the medium at this sector instead of its own, and is reported as done.
    MisdirectWrite(u64),
}

impl Action {
    /// Returns the effect that the device below is to have on the data.
    pub(super) const fn effect(self) -> Option<DataEffect> {
        match self {
            Self::Error(_) | Self::Again | Self::LoseWrite => Some(DataEffect::Nowhere),
            Self::TearWrite(sectors) => Some(DataEffect::First(sectors)),
            Self::MisdirectWrite(sector) => Some(DataEffect::At(sector)),
            _ => None,
        }
    }

    /// Whether it concerns what a write leaves on the medium.
    #[must_use]
    pub const fn is_of_writes(self) -> bool {
        matches!(self, Self::TearWrite(_) | Self::LoseWrite | Self::MisdirectWrite(_))
    }
}

/// How often a rule matched and fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Offers that matched.
    pub matched: u64,
    /// Offers on which it fired.
    pub fired: u64,
}

/// Rules, their counts, and the stream from which chances are drawn.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    rules: Vec<FaultRule>,
    counts: Vec<Count>,
    draws: Prng,
    /// The instant at which the rules were set.
    since: Instant,
}

/// The decision of the rules about an offer, before it is known whether the offer counts.
pub(super) struct Verdict {
    /// The rule that fires.
    fired: Option<usize>,
    /// Its action.
    pub(super) action: Option<Action>,
    /// The stream after this offer's draws.
    draws: Prng,
}

impl Rules {
    pub(super) fn new(rules: Vec<FaultRule>, draws: Prng) -> Self {
        let counts = alloc::vec![Count::default(); rules.len()];
        Self { rules, counts, draws, since: Instant::ZERO }
    }

    /// Replaces the rules, with counts of zero. Their times begin `now`.
    pub(super) fn set(&mut self, rules: Vec<FaultRule>, now: Instant) {
        self.counts.clear();
        self.counts.resize(rules.len(), Count::default());
        self.rules = rules;
        self.since = now;
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&FaultRule, Count)> {
        self.rules.iter().zip(self.counts.iter().copied())
    }

    /// Returns the decision about an offer. Nothing changes until [`Self::note`].
    pub(super) fn judge(&self, issue: &Issue<'_>) -> Verdict {
        // The offer may be refused below, and come again: its draws count only from `note` on.
        let mut draws = self.draws.clone();
        let fired = self.rules.iter().zip(&self.counts).position(|(rule, count)| {
            rule.matches(issue, self.since) && rule.when.fires_at(count.matched + 1, &mut draws)
        });
        let action = fired.map(|at| self.rules[at].then);
        Verdict { fired, action, draws }
    }

    /// Notes that the offer of `verdict` took place.
    pub(super) fn note(&mut self, issue: &Issue<'_>, verdict: Verdict) {
        let asked = verdict.fired.map_or(self.rules.len(), |at| at + 1);
        for (rule, count) in self.rules[..asked].iter().zip(&mut self.counts) {
            count.matched += u64::from(rule.matches(issue, self.since));
        }
        if let Some(at) = verdict.fired {
            self.counts[at].fired += 1;
        }
        self.draws = verdict.draws;
    }
}

impl FaultRule {
    /// Whether it matches an offer. The rules were set at `since`.
    fn matches(&self, issue: &Issue<'_>, since: Instant) -> bool {
        let When { ops, queue, sectors, during, .. } = &self.when;
        let request = issue.request();
        (ops.is_empty() || ops.contains(&request.op))
            && (!self.then.is_of_writes() || request.op == Op::Write)
            && queue.is_none_or(|queue| queue == issue.queue)
            && sectors.as_ref().is_none_or(|sectors| {
                request.sector < sectors.end && sectors.start < request.end_sector()
            })
            && during.as_ref().is_none_or(|during| during.contains(&issue.now.since(since)))
    }
}

impl When {
    /// Whether the match with this number fires.
    fn fires_at(&self, number: u64, draws: &mut Prng) -> bool {
        let turn = match self.turns {
            Turns::All => true,
            Turns::Every(n) => number.is_multiple_of(n),
            Turns::Between(first, last) => (first..=last).contains(&number),
        };
        turn && self.one_in.is_none_or(|n| draws.below(n) == 0)
    }
}
