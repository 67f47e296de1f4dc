//! A depth that lanes share: how much may be under way at a device, in requests and in bytes.
//!
//! Each lane takes from one [`Depth`] and gives back to it. Who finds nothing is noted as waiting, and
//! rung for by the next that gives back. This is all that lanes share on the way of a request, and
//! only disks in files have it: one in memory is done before the next request is looked at.
//!
//! # Rules (cited by number in the code, model-checked in `tests/depth_model.rs`)
//!
//! - **P1.** Never is more taken than there is, but for one request alone that has more bytes than
//!   there are.
//! - **P2.** No wake-up is lost: who was refused is rung for after what refused it was given back. A
//!   lane is noted before it tries for the last time, and what is given back is there before the
//!   notes are read. It is rung for once until it tries again.
//! - **P3.** While another lane waits, none takes more than its even share of the requests: so every
//!   lane gets that much, whatever the others do.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Most lanes that can share: a bit for each.
pub const SHARING_LANES_MAX: u32 = u64::BITS;

/// What is taken is counted in one word: requests above, bytes below.
const REQUEST: u64 = 1 << 48;

/// What may be under way at a device, and what is. See the [module](self).
#[derive(Debug)]
pub struct Depth {
    taken: AtomicU64,
    /// A bit for each lane that waits.
    waiting: AtomicU64,
    /// A bit for each lane that was rung for and has not tried since.
    rung: AtomicU64,
    requests_max: u64,
    bytes_max: u64,
    /// P3, in requests.
    share: u64,
}

impl Depth {
    /// `requests_max` requests with `bytes_max` bytes of data together, for `lanes` lanes.
    ///
    /// # Panics
    ///
    /// If there are fewer requests than lanes, no lanes, no bytes, or more than 2^15 requests, 2^46
    /// bytes or [`SHARING_LANES_MAX`] lanes.
    #[must_use]
    pub fn new(requests_max: u64, bytes_max: u64, lanes: u32) -> Self {
        assert!((1..=SHARING_LANES_MAX).contains(&lanes), "each lane has a bit");
        let share = requests_max / u64::from(lanes);
        assert!(share > 0 && requests_max <= 1 << 15, "requests are counted in 16 bits");
        assert!((1..=1 << 46).contains(&bytes_max), "bytes are counted in 48 bits");
        let none = || AtomicU64::new(0);
        let (taken, waiting, rung) = (none(), none(), none());
        Self { taken, waiting, rung, requests_max, bytes_max, share }
    }

    /// Takes one request with `bytes` for `lane`, which has `in_flight` already. Otherwise the lane is
    /// noted: [`Self::put`] names it when it should try again.
    #[must_use]
    pub fn take(&self, lane: u32, in_flight: u32, bytes: u64) -> bool {
        let bit = 1 << lane;
        if self.rung.load(Ordering::Acquire) & bit != 0 {
            self.rung.fetch_and(!bit, Ordering::AcqRel);
        }
        let has_share = u64::from(in_flight) >= self.share;
        let waiting = self.waiting.load(Ordering::Acquire);
        let gives_way = has_share && waiting & !bit != 0; // P3
        if !gives_way && self.try_take(bytes) {
            if waiting & bit != 0 {
                self.waiting.fetch_and(!bit, Ordering::AcqRel);
            }
            return true;
        }
        // Who waits still will give back, and see this lane's bit then.
        let others = self.waiting.fetch_or(bit, Ordering::AcqRel) & !bit;
        fence(Ordering::SeqCst); // P2: of this try and the look of `put`, one sees the other
        if (has_share && others != 0) || !self.try_take(bytes) {
            return false;
        }
        self.waiting.fetch_and(!bit, Ordering::AcqRel);
        true
    }

    /// Gives back one request with `bytes`; calls `wake` for each lane that should try again.
    pub fn put(&self, bytes: u64, mut wake: impl FnMut(u32)) {
        self.taken.fetch_sub(REQUEST + bytes, Ordering::AcqRel);
        fence(Ordering::SeqCst); // P2: as in `take`
        let waiting = self.waiting.load(Ordering::Acquire);
        if waiting == 0 {
            return;
        }
        let rung = self.rung.fetch_or(waiting, Ordering::AcqRel);
        let mut woken = waiting & !rung; // P2
        while woken != 0 {
            wake(woken.trailing_zeros());
            woken &= woken - 1;
        }
    }

    fn try_take(&self, bytes: u64) -> bool {
        let mut taken = self.taken.load(Ordering::Acquire);
        loop {
            let (requests, taken_bytes) = (taken / REQUEST, taken % REQUEST);
            let fits = requests < self.requests_max && taken_bytes + bytes <= self.bytes_max;
            if taken > 0 && !fits {
                return false; // P1
            }
            let more = taken + REQUEST + bytes;
            let swapped =
                self.taken.compare_exchange_weak(taken, more, Ordering::AcqRel, Ordering::Acquire);
            match swapped {
                Ok(_) => return true,
                Err(now) => taken = now,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn woken(depth: &Depth, bytes: u64) -> Vec<u32> {
        let mut lanes = Vec::new();
        depth.put(bytes, |lane| lanes.push(lane));
        lanes
    }

    #[test]
    fn requests_and_bytes_are_limits_but_for_one_alone() {
        let depth = Depth::new(2, 1000, 2);
        assert!(depth.take(0, 0, 5000), "more than there is, and alone");
        assert!(!depth.take(0, 1, 1));
        assert_eq!(woken(&depth, 5000), [0]);
        assert!(depth.take(0, 0, 600));
        assert!(!depth.take(1, 0, 600));
        assert!(depth.take(1, 0, 400));
        assert!(!depth.take(1, 1, 0), "there are two");
    }

    #[test]
    fn while_another_waits_nobody_goes_beyond_its_share() {
        let depth = Depth::new(4, 1000, 2);
        assert!((0..4).all(|in_flight| depth.take(0, in_flight, 1)), "nobody else wants it");
        assert!(!depth.take(1, 0, 1));
        assert_eq!(woken(&depth, 1), [1]);
        assert!(!depth.take(0, 3, 1), "P3");
        assert_eq!(woken(&depth, 1), [0], "the other was rung for and has not tried");
        assert!(!depth.take(0, 2, 1), "P3");
        assert!(depth.take(1, 0, 1));
        assert!(!depth.take(1, 2, 1), "P3: now the first one waits");
        assert!(depth.take(1, 1, 1));
    }
}
