//! A depth that lanes share: a limit on the requests, and on their bytes, in flight at a device.
//!
//! All lanes take from one [`Depth`] and give back to it. A lane takes a request before the request
//! leaves the elevator, and takes its bytes once it knows which request that is. A lane that is
//! refused is marked as waiting, and the next lane that gives back wakes it. Lanes share nothing
//! else on the path of a request. Only disks in files have a depth: a disk in memory completes each
//! request before the next.
//!
//! # Rules (cited by name, model-checked in `tests/depth_model.rs`)
//!
//! - **[depth-never-exceeded]** Lanes never take more than the depth, with one exception: a request
//!   with more bytes than the whole depth is admitted while no other request has bytes.
//! - **[depth-waiter-rung]** No wake-up is lost: a refused lane is woken after the depth that it
//!   lacked has been given back. A lane is marked before its last try, and the depth is given back
//!   before the marks are read. A lane is woken once until it tries again.
//! - **[even-share-while-waiting]** While another lane waits, no lane takes more than its even
//!   share of the requests. So every lane gets its share, whatever the others do.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The largest number of lanes that can share a depth, since each lane has a bit of a `u64`.
pub const SHARING_LANES_MAX: u32 = u64::BITS;

/// The largest limit on bytes that a depth can have.
pub const DEPTH_BYTES_MAX: u64 = 1 << 46;

/// The limits on requests and bytes in flight at a device, and their use. See the [module](self).
#[derive(Debug)]
pub struct Depth {
    requests: Pot,
    bytes: Pot,
    requests_max: u64,
    bytes_max: u64,
    /// The even share of a lane, in requests ([even-share-while-waiting]).
    share: u64,
}

/// The taken amount of one resource, requests or bytes, and the lanes that wait for it.
#[derive(Debug)]
struct Pot {
    taken: AtomicU64,
    /// A bit for each lane that waits.
    waiting: AtomicU64,
    /// A bit for each lane that has been woken and has not tried since.
    rung: AtomicU64,
}

impl Depth {
    /// Returns a depth of `requests_max` requests and `bytes_max` bytes of data in total, for
    /// `lanes` lanes.
    ///
    /// # Panics
    ///
    /// Panics if `lanes` is not within 1 to [`SHARING_LANES_MAX`], if `requests_max` is less than
    /// `lanes`, or if `bytes_max` is not within 1 to [`DEPTH_BYTES_MAX`].
    #[must_use]
    pub fn new(requests_max: u64, bytes_max: u64, lanes: u32) -> Self {
        assert!((1..=SHARING_LANES_MAX).contains(&lanes), "the lanes are between 1 and 64");
        let share = requests_max / u64::from(lanes);
        assert!(share > 0, "there is at least one request for each lane");
        assert!(
            (1..=DEPTH_BYTES_MAX).contains(&bytes_max),
            "the bytes are between 1 and the largest limit"
        );
        Self { requests: Pot::new(), bytes: Pot::new(), requests_max, bytes_max, share }
    }

    /// Takes one request for `lane`, which already holds `taken` requests. Returns `false` if it
    /// cannot; the lane is then marked as waiting, and will be woken when it should try again.
    #[must_use]
    pub fn take_request(&self, lane: u32, taken: u64) -> bool {
        self.requests.take(lane, 1, |all| all < self.requests_max, taken >= self.share)
    }

    /// Gives back one request, without its bytes. Calls `wake` for each lane that should try again.
    pub fn put_request(&self, wake: impl FnMut(u32)) {
        self.requests.put(1, wake);
    }

    /// Takes the `bytes` of a request that `lane` has taken. Returns `false` if it cannot; the lane
    /// is then marked as waiting.
    #[must_use]
    pub fn take_bytes(&self, lane: u32, bytes: u64) -> bool {
        bytes == 0
            || self.bytes.take(
                lane,
                bytes,
                |all: u64| all == 0 || all + bytes <= self.bytes_max,
                false,
            )
    }

    /// Gives back the bytes of one request. Calls `wake` for each lane that should try again.
    pub fn put_bytes(&self, bytes: u64, wake: impl FnMut(u32)) {
        if bytes > 0 {
            self.bytes.put(bytes, wake);
        }
    }
}

impl Pot {
    fn new() -> Self {
        Self { taken: AtomicU64::new(0), waiting: AtomicU64::new(0), rung: AtomicU64::new(0) }
    }

    /// Takes `amount` for `lane` if `fits` accepts the amount taken so far. A lane that
    /// `has_share`, its even share, gives way to other lanes that wait
    /// ([even-share-while-waiting]).
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
        // A lane that still waits will give back later, and will see this lane's bit then.
        let others = self.waiting.fetch_or(bit, Ordering::AcqRel) & !bit;
        // [depth-waiter-rung]: either this try sees the depth that `put` gave back, or `put` sees
        // the bit.
        fence(Ordering::SeqCst);
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
        // [depth-never-exceeded]
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
                fits(taken).then_some(taken + amount)
            })
            .is_ok()
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
        assert!(
            depth.take_bytes(0, 5000),
            "no other request has bytes, so this one may exceed the limit"
        );
        assert!(!depth.take_bytes(1, 1));
        assert!(
            depth.take_request(1, 1) && depth.take_bytes(1, 0),
            "a request without data takes no bytes"
        );
        let mut lanes = Vec::new();
        depth.put_bytes(5000, |lane| lanes.push(lane));
        assert_eq!(
            lanes,
            [1],
            "lane 1 still waits for bytes, although it took another request since"
        );
        assert!(depth.take_bytes(1, 600) && depth.take_bytes(0, 400));
        assert!(!depth.take_bytes(0, 1));
    }

    /// Checks [even-share-while-waiting].
    #[test]
    fn no_lane_exceeds_its_share_while_another_waits() {
        let depth = Depth::new(4, 1000, 2);
        assert!((0..4).all(|taken| depth.take_request(0, taken)), "no other lane waits");
        assert!(!depth.take_request(1, 0));
        assert_eq!(woken(&depth), [1]);
        assert!(!depth.take_request(0, 3), "[even-share-while-waiting]");
        assert_eq!(woken(&depth), [0], "lane 1 was woken already and has not tried since");
        assert!(!depth.take_request(0, 2), "[even-share-while-waiting]");
        assert!(depth.take_request(1, 0));
        assert!(!depth.take_request(1, 2), "[even-share-while-waiting]: now lane 0 waits");
        assert!(depth.take_request(1, 1));
    }
}
