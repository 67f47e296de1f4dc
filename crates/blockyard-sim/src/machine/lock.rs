//! A model of what only one processor has at a time: a lock with the data that it guards, or a word
//! that processors change. Processors get it in the order in which they ask, and hold it while
//! their work lasts.
//!
//! A piece of work makes all acquisitions of a lock in one go: the lock is held for as long as by
//! all of them together, and the processor waits once. A piece of work takes one lock after
//! another. A lock serves pieces of work in the order of their begins, without a gap.
//!
//! An acquisition takes longer if another processor had the lock before: cache lines move. That is
//! so for the first acquisition of a piece of work if its processor was not the last one, and for
//! all others while another processor wants the lock.
//!
//! Every acquisition, hold, move and wait is counted for one holder, so the counts of all holders
//! add up to those of the lock. A piece of work waits for its first acquisition; if it asked for
//! the lock before it began, it waits as the holder that it asked for.

use blockyard::time::{Duration, Instant};
use blockyard::unit::CpuId;
use serde::Serialize;
use std::collections::VecDeque;

/// The answer to a processor that requests a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The processor has the lock.
    Granted,
    /// The processor spins. The first waiter also gets the instant at which the lock is free.
    Wait(Option<Instant>),
}

/// What holds a lock: the kind of work that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LockHolder {
    /// A bio enters the queue: a merge is tried, and a bio that does not merge gets a request.
    Submit,
    /// Requests enter the scheduler.
    Insert,
    /// A request leaves the scheduler, and the driver accepts or refuses it.
    Dispatch,
    /// A request ends.
    Complete,
}

impl LockHolder {
    /// All of them, in the order in which a request meets them.
    pub const ALL: [Self; 4] = [Self::Submit, Self::Insert, Self::Dispatch, Self::Complete];

    /// Returns its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Insert => "insert",
            Self::Dispatch => "dispatch",
            Self::Complete => "complete",
        }
    }
}

/// A hold of a lock, from its acquisition until the lock is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What holds the lock.
    pub by: LockHolder,
    /// The time for which it does, without a move of cache lines.
    pub time: Duration,
}

/// The counts of each holder, in the order of [`LockHolder::ALL`].
pub(crate) type CountsByHolder = [LockCounts; LockHolder::ALL.len()];

/// The use that was made of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockCounts {
    /// The number of acquisitions.
    pub acquisitions: u64,
    /// The acquisitions for which cache lines moved.
    pub moves: u64,
    /// The time for which the lock was held, with those moves.
    pub held: Duration,
    /// The longest time for which one acquisition held the lock, with its move.
    pub longest_hold: Duration,
    /// The time that processors waited for the lock.
    pub waited: Duration,
    /// The longest wait of a piece of work.
    pub longest_wait: Duration,
}

impl LockCounts {
    /// Returns these counts and `other` as one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            acquisitions: self.acquisitions + other.acquisitions,
            moves: self.moves + other.moves,
            held: self.held + other.held,
            longest_hold: self.longest_hold.max(other.longest_hold),
            waited: self.waited + other.waited,
            longest_wait: self.longest_wait.max(other.longest_wait),
        }
    }

    /// Returns the counts of all holders together.
    #[must_use]
    pub fn sum(of: &CountsByHolder) -> Self {
        of.iter().copied().fold(Self::default(), Self::and)
    }
}

/// The time that a piece of work spends for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Until the processor has the lock.
    pub wait: Duration,
    /// Until it gives the lock back.
    pub held: Duration,
}

/// The state of one lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contended {
    free_at: Instant,
    /// The processor that had the lock last.
    last: Option<CpuId>,
    waiters: VecDeque<CpuId>,
    counts: CountsByHolder,
}

impl Contended {
    /// Requests the lock for `cpu` at `now`.
    pub(crate) fn ask(&mut self, cpu: CpuId, now: Instant) -> Ask {
        debug_assert!(!self.waiters.contains(&cpu), "{cpu:?} already waits for the lock");
        if self.waiters.is_empty() && self.free_at <= now {
            return Ask::Granted;
        }
        let first = self.waiters.is_empty();
        self.waiters.push_back(cpu);
        Ask::Wait(first.then_some(self.free_at))
    }

    /// Takes the lock for work of `cpu` that began at `now`, or as soon as it is free, before all
    /// waiters. A processor that was granted the lock does not wait. `busy` is how long the work
    /// has waited for other locks or held them: it has waited for this one too meanwhile. `holds`
    /// are those of the work, one or more. `transfer` is the time of a move between processors.
    pub(crate) fn take(
        &mut self,
        cpu: CpuId,
        now: Instant,
        busy: Duration,
        holds: &[Hold],
        transfer: Duration,
    ) -> Taken {
        debug_assert!(!holds.is_empty(), "{cpu:?} uses a lock without an acquisition");
        let begin = self.free_at.max(now);
        // The lock is free at 100 ns. Work that began at 20 ns and has spent 30 ns for other locks
        // waits for 50 ns more.
        let wait = begin.since(begin.min(now + busy));
        let is_wanted = wait > Duration::ZERO || !self.waiters.is_empty();
        let mut moves = self.last.is_some_and(|last| last != cpu);
        let mut held = Duration::ZERO;
        for &Hold { by, time } in holds {
            let held_once = if moves { time + transfer } else { time };
            let counts = &mut self.counts[by as usize];
            counts.acquisitions += 1;
            counts.moves += u64::from(moves);
            counts.held += held_once;
            counts.longest_hold = counts.longest_hold.max(held_once);
            held += held_once;
            // Between two acquisitions of this work, a processor that wants the lock pulls its
            // lines over.
            moves = is_wanted;
        }
        self.free_at = begin + held;
        self.last = Some(cpu);
        // The wait is counted once, for the holder that acquires the lock first.
        self.note_wait(holds[0].by, wait);
        Taken { wait, held }
    }

    /// Whether some work holds the lock at `now`.
    #[must_use]
    pub(crate) fn is_taken(&self, now: Instant) -> bool {
        self.free_at > now
    }

    /// Grants the lock, if it is free at `now`, to the processor that has waited longest.
    pub(crate) fn grant(&mut self, now: Instant) -> Option<CpuId> {
        if self.free_at > now { None } else { self.waiters.pop_front() }
    }

    /// Counts a `wait` that has ended, for the holder that the lock was wanted for.
    pub(crate) fn note_wait(&mut self, by: LockHolder, wait: Duration) {
        let counts = &mut self.counts[by as usize];
        counts.waited += wait;
        counts.longest_wait = counts.longest_wait.max(wait);
    }

    /// Returns when to call [`Self::grant`] again; `None` if no processor waits.
    #[must_use]
    pub(crate) fn next_grant(&self) -> Option<Instant> {
        (!self.waiters.is_empty()).then_some(self.free_at)
    }

    /// Returns the counts of each holder.
    #[must_use]
    pub(crate) const fn counts(&self) -> &CountsByHolder {
        &self.counts
    }

    /// Resets the counts.
    pub(crate) fn forget(&mut self) {
        self.counts = CountsByHolder::default();
    }
}

#[cfg(test)]
mod tests {
    use super::LockHolder::{Dispatch, Insert, Submit};
    use super::*;

    const fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    const fn ns(ns: u64) -> Duration {
        Duration::from_ns(ns)
    }

    const fn by(by: LockHolder, time_ns: u64) -> Hold {
        Hold { by, time: ns(time_ns) }
    }

    /// Takes a lock whose moves are free, for so many nanoseconds. Returns the wait and the time
    /// held, in nanoseconds.
    fn take(lock: &mut Contended, cpu: u16, now: u64, time_ns: u64) -> (u64, u64) {
        let holds = [by(Submit, time_ns)];
        let Taken { wait, held } = lock.take(CpuId(cpu), at(now), ns(0), &holds, ns(0));
        (wait.as_ns(), held.as_ns())
    }

    /// [lock-before-work]
    #[test]
    fn processors_get_the_lock_in_turn_and_not_before_it_is_free() {
        let mut lock = Contended::default();
        assert_eq!(lock.ask(CpuId(0), at(10)), Ask::Granted);
        assert_eq!(take(&mut lock, 0, 10, 30), (0, 30));
        assert_eq!(lock.ask(CpuId(1), at(20)), Ask::Wait(Some(at(40))));
        assert_eq!(lock.ask(CpuId(2), at(25)), Ask::Wait(None));
        assert_eq!((lock.grant(at(40)), lock.next_grant()), (Some(CpuId(1)), Some(at(40))));
        assert_eq!(take(&mut lock, 1, 40, 5), (0, 5));
        assert_eq!(lock.next_grant(), Some(at(45)));
        assert_eq!((lock.grant(at(45)), lock.next_grant()), (Some(CpuId(2)), None));
    }

    #[test]
    fn work_that_has_not_asked_waits_until_the_lock_is_free_and_others_wait_for_it() {
        let mut lock = Contended::default();
        take(&mut lock, 0, 0, 100);
        assert_eq!(lock.ask(CpuId(1), at(50)), Ask::Wait(Some(at(100))));
        assert_eq!(take(&mut lock, 0, 60, 20), (40, 20));
        assert_eq!((lock.grant(at(100)), lock.next_grant()), (None, Some(at(120))));
        assert_eq!(lock.grant(at(120)), Some(CpuId(1)));
        lock.note_wait(Submit, ns(70));
        let counts = LockCounts {
            acquisitions: 2,
            moves: 0,
            held: ns(120),
            longest_hold: ns(100),
            waited: ns(110),
            longest_wait: ns(70),
        };
        assert_eq!(LockCounts::sum(lock.counts()), counts);
        lock.forget();
        assert_eq!((*lock.counts(), lock.next_grant()), (CountsByHolder::default(), None));
    }

    /// A processor submits two bios, inserts them and removes one, while another one that had the
    /// lock wants it back: each acquisition moves cache lines, which takes 7 ns. Then it removes
    /// one more, and nobody wants the lock.
    #[test]
    fn each_holder_has_its_holds_moves_and_waits_and_together_they_are_those_of_the_lock() {
        let mut lock = Contended::default();
        take(&mut lock, 0, 0, 100);
        let work = [by(Submit, 5), by(Submit, 8), by(Insert, 60), by(Dispatch, 30)];
        // It began at 20 ns, and the lock is free at 100 ns.
        let taken = lock.take(CpuId(1), at(20), ns(0), &work, ns(7));
        assert_eq!((taken.wait, taken.held), (ns(80), ns(5 + 8 + 60 + 30 + 4 * 7)));
        let taken = lock.take(CpuId(1), at(300), ns(0), &[by(Dispatch, 40)], ns(7));
        assert_eq!((taken.wait, taken.held), (ns(0), ns(40)));
        lock.note_wait(Dispatch, ns(9));
        fn counts(acquisitions: u64, moves: u64, holds: [u64; 2], waits: [u64; 2]) -> LockCounts {
            LockCounts {
                acquisitions,
                moves,
                held: ns(holds[0]),
                longest_hold: ns(holds[1]),
                waited: ns(waits[0]),
                longest_wait: ns(waits[1]),
            }
        }
        let expected = [
            counts(3, 2, [100 + 12 + 15, 100], [80, 80]),
            counts(1, 1, [67, 67], [0, 0]),
            counts(2, 1, [37 + 40, 40], [9, 9]),
            LockCounts::default(),
        ];
        assert_eq!(*lock.counts(), expected);
        let together = counts(6, 4, [127 + 67 + 77, 100], [89, 80]);
        assert_eq!(LockCounts::sum(lock.counts()), together);
    }

    /// Work that takes two locks, each taken for 100 ns more, waits for 100 ns and not for 200.
    #[test]
    fn a_processor_that_waits_for_one_lock_does_not_wait_for_another_at_the_same_time() {
        let mut first = Contended::default();
        let mut second = Contended::default();
        take(&mut first, 0, 0, 100);
        take(&mut second, 0, 0, 100);
        let mut busy = ns(0);
        let waits = [&mut first, &mut second].map(|lock| {
            let taken = lock.take(CpuId(1), at(0), busy, &[by(Submit, 10)], ns(0));
            busy += taken.wait + taken.held;
            taken.wait.as_ns()
        });
        assert_eq!((waits, busy), ([100, 0], ns(120)));
    }

    #[test]
    fn cache_lines_move_when_another_processor_had_the_lock_or_wants_it() {
        let mut lock = Contended::default();
        let three = [by(Submit, 30), by(Insert, 30), by(Dispatch, 40)];
        fn held(lock: &mut Contended, cpu: u16, now: u64, three: &[Hold; 3]) -> u64 {
            lock.take(CpuId(cpu), at(now), ns(0), three, ns(7)).held.as_ns()
        }
        assert_eq!([held(&mut lock, 0, 0, &three), held(&mut lock, 0, 200, &three)], [100, 100]);
        assert_eq!(held(&mut lock, 1, 300, &three), 107);
        assert_eq!(lock.ask(CpuId(0), at(310)), Ask::Wait(Some(at(407))));
        assert_eq!(held(&mut lock, 1, 407, &three), 114);
        assert_eq!(LockCounts::sum(lock.counts()).moves, 3);
    }
}
