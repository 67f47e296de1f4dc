//! Flushes: what makes a volatile cache durable, in sequence with data.
//!
//! A write that asks for [`Flags::PREFLUSH`] or [`Flags::FUA`], and a bio that is nothing but a
//! flush, become requests that take `Steps`: a flush before, their data, a flush after. Those that
//! are at a flush wait in the `FlushQueue` of their hardware queue, and one flush command serves
//! all that waited when it began. Moving a request from step to step is
//! [`request_queue`](crate::request_queue)'s part.
//!
//! # Rules
//!
//! - **F1.** The steps follow from the bio and the device. Without a volatile cache there are none:
//!   the flags are dropped, and a bio that is nothing but a flush ends at once. With one: preflush
//!   asks for a flush before, data for the data, and FUA for a flush after where the device has no
//!   FUA of its own ([`Limits::fua`]; FUA of its own is for writes only).
//! - **F2.** A flush covers only requests that waited before it began, so only writes that ended
//!   before it was sent.
//! - **F3.** A failure of a step ends the request with it; a flush that fails fails all it covers.
//! - **C1.** One flush of a hardware queue is under way at a time.
//! - **C2.** While data of a sequence is under way no flush begins, so that those that will want a
//!   flush behind that data share one.
//! - **C3.** C2 no longer holds once somebody has waited [`HOLD_MAX`].

use crate::bio::{Bio, Flags, Op};
use crate::limits::Limits;
use crate::request::{List, Requests};
use crate::time::{Duration, Instant};
use crate::unit::RequestId;

/// How long data under way may hold a flush back (C3): 5 s, as in Linux.
pub const HOLD_MAX: Duration = Duration::from_secs(5);

/// What a request has still to do for its durability, as a set. Empty: it is not part of a
/// sequence, or has come to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps(u8);

impl Steps {
    pub(crate) const NONE: Self = Self(0);
    const PREFLUSH: Self = Self(1);
    const DATA: Self = Self(2);
    const POSTFLUSH: Self = Self(4);

    /// The steps of `bio`, whose flags mean something on a device with `limits` (F1).
    pub(crate) fn of(bio: &Bio, limits: &Limits) -> Self {
        if !limits.write_cache {
            return Self::NONE;
        }
        if bio.op == Op::Flush {
            return Self::PREFLUSH;
        }
        let before = bio.flags.contains(Flags::PREFLUSH);
        let after = bio.flags.contains(Flags::FUA) && !has_fua(bio.op, limits);
        match (before, after) {
            (false, false) => Self::NONE,
            (true, false) => Self(Self::PREFLUSH.0 | Self::DATA.0),
            (false, true) => Self(Self::DATA.0 | Self::POSTFLUSH.0),
            (true, true) => Self(Self::PREFLUSH.0 | Self::DATA.0 | Self::POSTFLUSH.0),
        }
    }

    /// Whether there is nothing to do.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The step to take now, of a set that is not empty.
    pub(crate) const fn next(self) -> Step {
        if self.0 & Self::PREFLUSH.0 != 0 {
            Step::Flush
        } else if self.0 & Self::DATA.0 != 0 {
            Step::Data
        } else {
            Step::Flush
        }
    }

    /// What is left when the step to take now has been taken.
    pub(crate) const fn taken(self) -> Self {
        Self(self.0 & (self.0.wrapping_sub(1)))
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait for a flush, before or after the data.
    Flush,
    /// The request itself.
    Data,
}

/// Whether the device makes a request of `op` durable by itself.
fn has_fua(op: Op, limits: &Limits) -> bool {
    limits.fua && op == Op::Write
}

/// The flags with which the data of a sequence goes to the device: what a flush does for it is no
/// longer asked for, and it never merges.
pub(crate) fn data_flags(op: Op, flags: Flags, limits: &Limits) -> Flags {
    let emulated = if has_fua(op, limits) { Flags::NONE } else { Flags::FUA };
    flags.without(Flags::PREFLUSH | emulated) | Flags::NO_MERGE
}

/// Who waits for flushes of one hardware queue.
#[derive(Debug, Default)]
pub(crate) struct FlushQueue {
    /// For the next one.
    waiting: List,
    /// For the one under way (F2).
    covered: List,
    /// When the first of `waiting` came.
    since: Instant,
    /// Data of sequences that is staged or with the driver (C2).
    data: u32,
    /// A flush is staged or with the driver (C1).
    under_way: bool,
}

impl FlushQueue {
    /// How many requests wait.
    pub(crate) const fn len(&self) -> u32 {
        self.waiting.len() + self.covered.len()
    }

    /// `id`, which is on no list, waits for a flush.
    pub(crate) fn wait(&mut self, requests: &mut Requests, id: RequestId, now: Instant) {
        if self.waiting.is_empty() {
            self.since = now;
        }
        self.waiting.push_back(requests, id);
    }

    /// Data of a sequence is on its way.
    pub(crate) const fn data_began(&mut self) {
        self.data += 1;
    }

    /// Data of a sequence has ended.
    pub(crate) const fn data_ended(&mut self) {
        self.data -= 1;
    }

    /// A flush begins, if it may (C1 to C3): the first request that it covers.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<RequestId> {
        let held = self.held_until().is_some_and(|until| now < until);
        if self.under_way || held {
            return None;
        }
        let first = self.waiting.first()?;
        self.covered = core::mem::take(&mut self.waiting);
        self.under_way = true;
        Some(first)
    }

    /// When C2 ceases to hold a flush back that nothing else does.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        let held = self.data > 0 && !self.under_way && !self.waiting.is_empty();
        held.then(|| self.since + HOLD_MAX)
    }

    /// The flush under way has ended: the requests that it covered.
    pub(crate) fn end(&mut self) -> List {
        self.under_way = false;
        core::mem::take(&mut self.covered)
    }

    /// Whether a flush is staged or with the driver.
    pub(crate) const fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// The first request that the flush under way covers.
    pub(crate) const fn first_covered(&self) -> Option<RequestId> {
        self.covered.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a sequence does, step by step: `f` a flush, `d` the data.
    fn steps(op: Op, flags: Flags, write_cache: bool, fua: bool) -> alloc::string::String {
        let limits = Limits { write_cache, fua, ..Limits::new(1024) };
        let mut steps = Steps::of(&Bio::new(op, 0, 8, 0).with_flags(flags), &limits);
        let mut text = alloc::string::String::new();
        while !steps.is_empty() {
            text.push(if steps.next() == Step::Flush { 'f' } else { 'd' });
            steps = steps.taken();
        }
        text
    }

    #[test]
    fn the_steps_follow_from_the_flags_and_the_cache() {
        let (pre, fua) = (Flags::PREFLUSH, Flags::FUA);
        let both = pre | fua;
        for (flags, volatile, native) in
            [(Flags::NONE, "", ""), (pre, "fd", "fd"), (fua, "df", ""), (both, "fdf", "fd")]
        {
            assert_eq!(steps(Op::Write, flags, true, false), volatile, "{flags:?}");
            assert_eq!(steps(Op::Write, flags, true, true), native, "{flags:?} with FUA");
            assert_eq!(steps(Op::Write, flags, false, false), "", "{flags:?} without a cache");
            assert_eq!(steps(Op::Discard, flags, true, true), volatile, "discard {flags:?}");
        }
        assert_eq!(steps(Op::Flush, Flags::NONE, true, false), "f");
    }

    #[test]
    fn the_device_is_asked_for_fua_only_where_it_has_it() {
        let limits = Limits { write_cache: true, fua: true, ..Limits::new(1024) };
        let flags = Flags::PREFLUSH | Flags::FUA | Flags::SYNC;
        let native = Flags::FUA | Flags::SYNC | Flags::NO_MERGE;
        assert_eq!(data_flags(Op::Write, flags, &limits), native);
        assert_eq!(data_flags(Op::WriteZeroes, flags, &limits), Flags::SYNC | Flags::NO_MERGE);
    }
}
