//! A depth that lanes share: how much may be under way at a device, in requests and in bytes.
//!
//! Each lane takes from one [`Depth`] and gives back to it: a request before it leaves the elevator, and
//! its bytes when it is known which one. Who finds nothing is noted as waiting, and rung for by the next
//! that gives back. This is all that lanes share on the way of a request, and only disks in files have
//! it: one in memory is done before the next request is looked at.
//!
//! # Rules (cited by name, model-checked in `tests/depth_model.rs`)
//!
//! - **[depth-never-exceeded]** Never is more taken than there is, but for one request that has more bytes than there are,
//!   while no other has any.
//! - **[depth-waiter-rung]** No wake-up is lost: who was refused is rung for after what refused it was given back. A
//!   lane is noted before it tries for the last time, and what is given back is there before the
//!   notes are read. It is rung for once until it tries again.
//! - **[even-share-while-waiting]** While another lane waits, none takes more than its even share of the requests: so every
//!   lane gets that much, whatever the others do.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Most lanes that can share: a bit for each.
pub const SHARING_LANES_MAX: u32 = u64::BITS;

/// Most bytes that a depth can have.
pub const DEPTH_BYTES_MAX: u64 = 1 << 46;

/// What may be under way at a device, and what is. See the [module](self).
#[derive(Debug)]
pub struct Depth {
    requests: Pot,
    bytes: Pot,
    requests_max: u64,
    bytes_max: u64,
    /// [even-share-while-waiting], in requests.
    share: u64,
}

/// What is taken of one thing, and who waits for it.
#[derive(Debug)]
struct Pot {
    taken: AtomicU64,
    /// A bit for each lane that waits.
    waiting: AtomicU64,
    /// A bit for each lane that was rung for and has not tried since.
    rung: AtomicU64,
}

impl Depth {
    /// `requests_max` requests with `bytes_max` bytes of data together, for `lanes` lanes.
    ///
    /// # Panics
    ///
    /// If there are fewer requests than lanes, no lanes, no bytes, or more than
    /// [`SHARING_LANES_MAX`] lanes.
    #[must_use]
    pub fn new(requests_max: u64, bytes_max: u64, lanes: u32) -> Self {
        assert!((1..=SHARING_LANES_MAX).contains(&lanes), "each lane has a bit");
        let share = requests_max / u64::from(lanes);
        assert!(share > 0, "each lane has a request");
        assert!((1..=DEPTH_BYTES_MAX).contains(&bytes_max), "so many bytes can be counted");
        Self { requests: Pot::new(), bytes: Pot::new(), requests_max, bytes_max, share }
    }

    /// Takes one request for `lane`, which has `taken` already. Otherwise the lane is noted: it is named
    /// when it should try again.
    #[must_use]
    pub fn take_request(&self, lane: u32, taken: u64) -> bool {
        let fits = |all| all < self.requests_max;
        self.requests.take(lane, 1, fits, taken >= self.share)
    }

    /// Gives back one request, without its bytes; calls `wake` for each lane that should try again.
    pub fn put_request(&self, wake: impl FnMut(u32)) {
        self.requests.put(1, wake);
    }

    /// Takes the `bytes` of one request that `lane` has taken. Otherwise the lane is noted.
    #[must_use]
    pub fn take_bytes(&self, lane: u32, bytes: u64) -> bool {
        let fits = |all: u64| all == 0 || all + bytes <= self.bytes_max;
        bytes == 0 || self.bytes.take(lane, bytes, fits, false)
    }

    /// Gives back the bytes of one request; calls `wake` for each lane that should try again.
    pub fn put_bytes(&self, bytes: u64, wake: impl FnMut(u32)) {
        if bytes > 0 {
            self.bytes.put(bytes, wake);
        }
    }
}

impl Pot {
    fn new() -> Self {
        let none = || AtomicU64::new(0);
        Self { taken: none(), waiting: none(), rung: none() }
    }

    /// Takes `amount` for `lane`, where it `fits` with all that is taken. Who `has_share` gives way to
    /// others that wait ([even-share-while-waiting]).
    fn take(&self, lane: u32, amount: u64, fits: impl Fn(u64) -> bool, has_share: bool) -> bool {
        let bit = 1 << lane;
        if self.rung.load(Ordering::Acquire) & bit != 0 {
            self.rung.fetch_and(!bit, Ordering::AcqRel);
        }
        let waiting = self.waiting.load(Ordering::Acquire);
        let gives_way = has_share && waiting & !bit != 0; // [even-share-while-waiting]
        if !gives_way && self.try_take(amount, &fits) {
            if waiting & bit != 0 {
                self.waiting.fetch_and(!bit, Ordering::AcqRel);
            }
            return true;
        }
        // Who waits still will give back, and see this lane's bit then.
        let others = self.waiting.fetch_or(bit, Ordering::AcqRel) & !bit;
        fence(Ordering::SeqCst); // [depth-waiter-rung]: of this try and the look of `put`, one sees the other
        if (has_share && others != 0) || !self.try_take(amount, &fits) {
            return false;
        }
        self.waiting.fetch_and(!bit, Ordering::AcqRel);
        true
    }

    fn put(&self, amount: u64, mut wake: impl FnMut(u32)) {
        self.taken.fetch_sub(amount, Ordering::AcqRel);
        fence(Ordering::SeqCst); // [depth-waiter-rung]: as in `take`
        let waiting = self.waiting.load(Ordering::Acquire);
        if waiting == 0 {
            return;
        }
        let rung = self.rung.fetch_or(waiting, Ordering::AcqRel);
        let mut woken = waiting & !rung; // [depth-waiter-rung]
        while woken != 0 {
            wake(woken.trailing_zeros());
            woken &= woken - 1;
        }
    }

    fn try_take(&self, amount: u64, fits: impl Fn(u64) -> bool) -> bool {
        let more = |taken| fits(taken).then_some(taken + amount); // [depth-never-exceeded]
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn woken(depth: &Depth) -> Vec<u32> {
        let mut lanes = Vec::new();
        depth.put_request(|lane| lanes.push(lane));
        lanes
    }

    #[test]
    fn no_more_requests_are_taken_than_there_are() {
        let depth = Depth::new(2, 1000, 2);
        assert!(depth.take_request(0, 0) && depth.take_request(1, 0));
        assert!(!depth.take_request(1, 1));
        assert_eq!(woken(&depth), [1]);
        assert!(depth.take_request(1, 1));
    }

    #[test]
    fn bytes_are_limited_except_for_a_request_that_is_alone() {
        let depth = Depth::new(4, 1000, 2);
        assert!(depth.take_request(0, 0) && depth.take_request(1, 0));
        assert!(depth.take_bytes(0, 5000), "more than there are, and no other has any");
        assert!(!depth.take_bytes(1, 1));
        assert!(depth.take_request(1, 1) && depth.take_bytes(1, 0), "without data");
        let mut lanes = Vec::new();
        depth.put_bytes(5000, |lane| lanes.push(lane));
        assert_eq!(lanes, [1], "its other request does not make it forgotten");
        assert!(depth.take_bytes(1, 600) && depth.take_bytes(0, 400));
        assert!(!depth.take_bytes(0, 1));
    }

    /// Checks [even-share-while-waiting].
    #[test]
    fn no_lane_exceeds_its_share_while_another_waits() {
        let depth = Depth::new(4, 1000, 2);
        assert!((0..4).all(|taken| depth.take_request(0, taken)), "nobody else wants it");
        assert!(!depth.take_request(1, 0));
        assert_eq!(woken(&depth), [1]);
        assert!(!depth.take_request(0, 3), "[even-share-while-waiting]");
        assert_eq!(woken(&depth), [0], "the other was rung for and has not tried");
        assert!(!depth.take_request(0, 2), "[even-share-while-waiting]");
        assert!(depth.take_request(1, 0));
        assert!(!depth.take_request(1, 2), "[even-share-while-waiting]: now the first one waits");
        assert!(depth.take_request(1, 1));
    }
}
