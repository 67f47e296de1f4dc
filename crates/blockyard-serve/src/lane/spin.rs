//! The time that a lane polls for completions before it sleeps.
//!
//! A client that sends its next request as soon as it has the last answer needs a few microseconds
//! for it. Waking a thread takes about the same time. So a lane that has nothing to do looks for
//! completions for a while before it sleeps. Between two looks it leaves its processor to any
//! thread that is ready: the client may need it.
//!
//! A lane spins for [`LIMIT`] at most, and begins when it has submitted all it has: the end of its
//! own sends is no find. A spin fails if it finds nothing within that time. Then the lane sleeps
//! without a spin for the next waits: for one, and for twice as many after each further spin that
//! fails, up to [`PAUSES_MAX`]. A spin that finds something halves that number. So where no spin
//! finds anything, one wait of [`PAUSES_MAX`] has a spin.
//!
//! Two kinds of lane sleep without a spin. One whose process has only one processor does: its
//! client needs that one. So does one that has ended more than [`FEW`] requests since it last
//! looked: they share the cost of the sleep, and spinning would cost more.

use blockyard::time::{Duration, Instant};
use std::thread;

/// The longest spin: twice what a wake-up takes, and what a client on another processor takes for
/// its next request.
const LIMIT: Duration = Duration::from_us(20);
/// The most waits without a spin.
const PAUSES_MAX: u32 = 1024;

/// The most requests that a lane may have ended before it spins.
const FEW: u32 = 2;

/// The spins of a lane.
#[derive(Debug)]
pub(super) struct Spin {
    /// Whether the process has several processors.
    has_others: bool,
    /// The begin of the spin that is under way.
    since: Option<Instant>,
    /// Waits without a spin after the last spin that failed.
    pauses: u32,
    /// How many of them are left.
    left: u32,
    /// Requests that have ended since the last look.
    ended: u32,
}

impl Spin {
    /// Returns the spins of a lane of a process with so many processors.
    pub(super) const fn new(processors: usize) -> Self {
        Self { has_others: processors > 1, since: None, pauses: 0, left: 0, ended: 0 }
    }

    /// Notes that `count` requests have ended.
    pub(super) const fn count_ended_requests(&mut self, count: u32) {
        self.ended = self.ended.saturating_add(count);
    }

    /// Returns whether requests have ended since the last look.
    pub(super) const fn has_ended_requests(&self) -> bool {
        self.ended > 0
    }

    /// Returns whether a lane that has nothing to do at `now` looks once more instead of sleeping.
    /// It `submits` something with this look, or has submitted it all.
    pub(super) fn should_look_again(&mut self, submits: bool, now: Instant) -> bool {
        let ended = core::mem::take(&mut self.ended);
        if ended > 0 || submits {
            // The lane has worked since the last look, so that spin is over, and it has not failed.
            self.since = None;
        }
        if let Some(since) = self.since {
            if now.since(since) < LIMIT {
                thread::yield_now();
                return true;
            }
            self.pause_spinning();
            return false;
        }
        // Without a second processor the client cannot run while this lane spins. After three spins
        // that failed, four waits go by without one. 16 clients share one sleep.
        if !self.has_others || self.left > 0 || ended > FEW {
            self.left = self.left.saturating_sub(1);
            return false;
        }
        // While its own sends are in flight, the next completion is theirs. The spin begins at the
        // look after them.
        self.since = (!submits).then_some(now);
        true
    }

    /// Notes that the lane has found a completion at `now`.
    pub(super) fn note_completion(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        if now.since(since) < LIMIT {
            self.pauses /= 2;
        } else {
            // Another thread had the processor meanwhile, so the client was not quick, or the spin
            // was in its way.
            self.pause_spinning();
        }
    }

    /// Notes that the lane has something to do without a look: a spin under way has neither failed
    /// nor found anything.
    pub(super) const fn reset(&mut self) {
        self.since = None;
        self.ended = 0;
    }

    /// Ends a spin that has failed, and lets the next waits go by without one.
    fn pause_spinning(&mut self) {
        self.since = None;
        // 1, 2, 4 and so on up to 1024 waits.
        self.pauses = (2 * self.pauses).clamp(1, PAUSES_MAX);
        self.left = self.pauses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets waits begin one after another, and ends each after `found_after` microseconds. Returns
    /// the microseconds that each spun.
    fn spins(spin: &mut Spin, waits: u32, found_after: u64) -> Vec<u64> {
        let mut now = Instant::ZERO;
        fn wait(now: &mut Instant, found_after: u64, spin: &mut Spin) -> u64 {
            let begin = *now;
            // The first look submits an answer, whose end is a completion.
            let mut looks = spin.should_look_again(true, *now);
            spin.note_completion(*now);
            while looks && now.since(begin) < Duration::from_us(found_after) {
                looks = spin.should_look_again(false, *now);
                *now = *now + Duration::from_us(u64::from(looks));
            }
            let spun = now.since(begin).as_ns() / 1000;
            spin.note_completion(*now);
            *now = begin + Duration::from_us(found_after);
            spun
        }
        (0..waits).map(|_| wait(&mut now, found_after, spin)).collect()
    }

    #[test]
    fn a_lane_spins_for_a_client_that_answers_at_once() {
        assert_eq!(spins(&mut Spin::new(2), 3, 5), [5, 5, 5]);
        assert_eq!(spins(&mut Spin::new(1), 3, 5), [0, 0, 0]);
    }

    /// Another thread has the lane's processor for a millisecond of the spin.
    #[test]
    fn a_completion_after_the_longest_spin_is_no_find() {
        let mut spin = Spin::new(2);
        assert!(spin.should_look_again(false, Instant::ZERO), "the spin begins");
        spin.note_completion(Instant::ZERO + Duration::from_ms(1));
        assert!(!spin.should_look_again(false, Instant::ZERO + Duration::from_ms(1)), "it failed");
    }

    #[test]
    fn a_lane_that_has_ended_many_requests_sleeps_at_once() {
        let mut spin = Spin::new(2);
        let mut after = |ended| {
            spin.count_ended_requests(ended);
            let spins = spin.should_look_again(false, Instant::ZERO);
            spin.note_completion(Instant::ZERO);
            spins
        };
        assert_eq!([0, 1, FEW, FEW + 1, 16].map(&mut after), [true, true, true, false, false]);
        assert!(after(1), "the next wait is another one");
    }

    /// One wait with a spin, then 1, 2 and 4 waits without, as spins of 20 us find nothing.
    #[test]
    fn a_lane_whose_spins_fail_sleeps_and_soon_hardly_spins() {
        let mut spin = Spin::new(2);
        assert_eq!(spins(&mut spin, 9, 100), [20, 0, 20, 0, 0, 20, 0, 0, 0]);
        let later = spins(&mut spin, 100_000, 100);
        let failed = later.iter().filter(|&&spun| spun > 0).count();
        assert!((90..120).contains(&failed), "{failed} spins in 100,000 waits");
        // A client that answers immediately is found again when the pauses are over.
        let again = spins(&mut spin, 3000, 5);
        assert!(again.iter().filter(|&&spun| spun > 0).count() > 900, "{again:?}");
    }
}
