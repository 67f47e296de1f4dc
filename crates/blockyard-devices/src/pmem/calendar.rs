//! The resources that processors share: locks, and the channels to the memory.
//!
//! All steps of an operation are known when it begins, so they are entered here at once. An
//! operation that begins later may still go first in a gap that is long enough.

use blockyard::time::Instant;
use std::collections::VecDeque;

/// The times at which a lock is held.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    /// The start and end of each span in nanoseconds. Spans are in order and do not overlap.
    held: VecDeque<(u64, u64)>,
}

impl Calendar {
    /// Forgets the time before `now`, which no later call asks about.
    pub(super) fn forget_before(&mut self, now: Instant) {
        while self.held.front().is_some_and(|(_, end)| *end <= now.as_ns()) {
            self.held.pop_front();
        }
    }

    /// Returns the earliest instant, at `from` or later, from which the lock is free for `len`
    /// nanoseconds.
    pub(super) fn fit(&self, from: u64, len: u64) -> u64 {
        let mut at = from;
        for &(begin, end) in &self.held {
            if at + len <= begin {
                break;
            }
            at = at.max(end);
        }
        at
    }

    /// Holds the lock from `begin`, which [`fit`](Self::fit) returned, to `end`, which may be later
    /// than planned.
    pub(super) fn hold(&mut self, begin: u64, end: u64) {
        debug_assert!(begin <= end, "held from {begin} to {end}");
        let at = self.held.partition_point(|(other, _)| *other < begin);
        self.held.insert(at, (begin, end));
    }
}

/// Channels to the memory, by slots of time.
#[derive(Debug)]
pub(super) struct Channels {
    /// The work, in picoseconds, that fits into a slot.
    room: u64,
    /// The work in each slot, from slot number `first` on.
    used: VecDeque<u64>,
    first: u64,
}

/// Nanoseconds of a slot.
const SLOT: u64 = 1024;
const PS_PER_NS: u64 = 1000;

impl Channels {
    /// Returns unused channels.
    pub(super) fn new(channels: u16) -> Self {
        assert!(channels > 0, "memory needs at least one channel");
        let room = SLOT * PS_PER_NS * u64::from(channels);
        Self { room, used: VecDeque::new(), first: 0 }
    }

    /// Forgets the time before `now`, which no later call asks about.
    pub(super) fn forget_before(&mut self, now: Instant) {
        let slot = now.as_ns() / SLOT;
        while self.first < slot && self.used.pop_front().is_some() {
            self.first += 1;
        }
        self.first = self.first.max(slot);
    }

    fn used(&mut self, slot: u64) -> &mut u64 {
        let at =
            usize::try_from(slot - self.first).expect("a slot should be close to the first one");
        if at >= self.used.len() {
            self.used.resize(at + 1, 0);
        }
        &mut self.used[at]
    }

    /// Passes work that occupies one channel for `work_ps` picoseconds, from `from` on and in no
    /// less than `ns`. Returns the instant of its end.
    pub(super) fn pass(&mut self, from: u64, work_ps: u64, ns: u64) -> u64 {
        let mut at = from.max(self.first * SLOT);
        let mut left = work_ps;
        while left > 0 {
            let slot = at / SLOT;
            let rest_ns = (slot + 1) * SLOT - at;
            let by_processor = if ns == 0 { left } else { scale(work_ps, rest_ns, ns).max(1) };
            let room = self.room;
            let used = self.used(slot);
            debug_assert!(*used <= room, "slot {slot} is overfull");
            let passed = left.min(by_processor).min(room - *used);
            *used += passed;
            left -= passed;
            at = if left == 0 { at + scale(ns, passed, work_ps) } else { (slot + 1) * SLOT };
        }
        at.max(from + ns)
    }
}

/// `a * b / c`.
fn scale(a: u64, b: u64, c: u64) -> u64 {
    let scaled = u128::from(a) * u128::from(b) / u128::from(c);
    u64::try_from(scaled).expect("the time of an operation should fit 64 bits of ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_later_may_go_before_where_it_fits() {
        let mut lock = Calendar::default();
        lock.hold(100, 200);
        assert_eq!(lock.fit(0, 100), 0);
        assert_eq!(lock.fit(1, 100), 200);
        assert_eq!(lock.fit(150, 10), 200);
        lock.hold(0, 100);
        lock.hold(250, 300);
        assert_eq!(lock.fit(0, 50), 200);
        assert_eq!(lock.fit(0, 51), 300);
        lock.forget_before(Instant::from_ns(250));
        assert_eq!(lock.fit(240, 51), 300);
    }

    #[test]
    fn what_passes_alone_takes_its_processors_time() {
        let mut channels = Channels::new(2);
        for from in [0, 1000, 5000] {
            assert_eq!(channels.pass(from, 100_000, 3000), from + 3000);
        }
    }

    #[test]
    fn together_they_pass_no_faster_than_channels_let_them() {
        let mut channels = Channels::new(1);
        // Eight operations, each of which needs the whole channel for one slot.
        let ends: Vec<_> = (0..8).map(|_| channels.pass(0, SLOT * PS_PER_NS, 100)).collect();
        assert!(ends.is_sorted());
        let last = *ends.last().expect("eight operations should have ends");
        assert!((7 * SLOT..=8 * SLOT).contains(&last), "{ends:?}");
        // An operation that comes later in order uses the earlier free time.
        let mut channels = Channels::new(1);
        assert_eq!(channels.pass(10 * SLOT, SLOT * PS_PER_NS, 100), 10 * SLOT + 100);
        assert_eq!(channels.pass(0, SLOT * PS_PER_NS, 100), 100);
    }
}
