//! The depth of writeback, and the steps by which it follows the latency of reads.

/// The depth at step 0.
const USUAL: u32 = 16;

/// The most writeback in flight, which each step halves or doubles. On a queue of 64 requests:
///
/// | step | -2 | -1 | 0 | 1 | 2 | 3 | 4 |
/// |---|---|---|---|---|---|---|---|
/// | depth | 48 | 31 | 16 | 8 | 4 | 2 | 1 |
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// The requests that the queue has room for.
    queue: u32,
    step: i32,
    most: u32,
    /// Whether a further step up changes nothing.
    is_highest: bool,
}

impl Depth {
    /// Returns step 0 on a queue of `queue` requests.
    pub(super) fn new(queue: u32) -> Self {
        assert!(queue > 0, "a queue has room for a request");
        let mut depth = Self { queue, step: 0, most: 0, is_highest: false };
        depth.calculate();
        depth.is_highest = false;
        depth
    }

    pub(super) const fn step(&self) -> i32 {
        self.step
    }

    /// The limit of writeback that somebody waits for.
    pub(super) const fn most(&self) -> u32 {
        self.most
    }

    /// The limit of other writeback while nobody else uses the disk.
    pub(super) const fn normal(&self) -> u32 {
        if self.most <= 2 { self.most } else { self.most.div_ceil(2) }
    }

    /// The limit of writeback in the background.
    pub(super) const fn background(&self) -> u32 {
        if self.most <= 2 { 1 } else { self.most.div_ceil(4) }
    }

    /// Goes one step up. Returns whether there was one.
    pub(super) fn raise(&mut self) -> bool {
        if self.is_highest {
            return false;
        }
        self.step -= 1;
        self.calculate();
        true
    }

    /// Goes one step down, and from above step 0 back to it if the latency `is_violated`. Returns
    /// whether there was a step.
    pub(super) fn lower(&mut self, is_violated: bool) -> bool {
        if self.most == 1 {
            return false;
        }
        self.step = if self.step < 0 && is_violated { 0 } else { self.step + 1 };
        self.calculate();
        self.is_highest = false;
        true
    }

    /// Calculates the depth of the step (`rq_depth_calc_max_depth`).
    fn calculate(&mut self) {
        let usual = USUAL.min(self.queue);
        (self.most, self.is_highest) = if self.queue == 1 {
            // One more is ready when the device has ended one.
            if self.step > 0 { (1, false) } else { (2, true) }
        } else if self.step > 0 {
            (1 + ((usual - 1) >> self.step.min(31)), false)
        } else {
            let raised = u64::from(usual - 1) << self.step.unsigned_abs().min(31);
            let highest =
                if self.step < 0 { self.queue - self.queue.div_ceil(4) } else { u32::MAX };
            match u32::try_from(1 + raised) {
                Ok(raised) if raised <= highest => (raised, false),
                _ => (highest, true),
            }
        };
        debug_assert!(self.most > 0, "no depth at step {} of {}", self.step, self.queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(depth: &Depth) -> [u32; 4] {
        let step = u32::try_from(depth.step() + 10).unwrap();
        [step, depth.background(), depth.normal(), depth.most()]
    }

    /// From 16: 1 + 15 / 2 = 8, 1 + 15 / 4 = 4, 2, 1; and 1 + 15 x 2 = 31, then 61, of which three
    /// quarters of 64 are left. Half of 31 is 15.5, a quarter 7.75; both are rounded up.
    #[test]
    fn a_step_halves_or_doubles_the_depth_between_1_and_three_quarters_of_the_queue() {
        let mut depth = Depth::new(64);
        assert_eq!(limits(&depth), [10, 4, 8, 16]);
        let down = [[11, 2, 4, 8], [12, 1, 2, 4], [13, 1, 2, 2], [14, 1, 1, 1]];
        for limits_of_step in down {
            assert!(depth.lower(true));
            assert_eq!(limits(&depth), limits_of_step);
        }
        assert!(!depth.lower(true), "the depth is 1");
        for _ in 0..4 {
            assert!(depth.raise());
        }
        assert_eq!(limits(&depth), [10, 4, 8, 16]);
        for limits_of_step in [[9, 8, 16, 31], [8, 12, 24, 48]] {
            assert!(depth.raise());
            assert_eq!(limits(&depth), limits_of_step);
        }
        assert!(!depth.raise(), "three quarters of the queue");
    }

    #[test]
    fn a_violation_above_step_0_leads_back_to_it() {
        let mut depth = Depth::new(1000);
        (0..3).for_each(|_| assert!(depth.raise()));
        assert_eq!((depth.step(), depth.most()), (-3, 121)); // 1 + 15 x 8
        assert!(depth.lower(false));
        assert_eq!((depth.step(), depth.most()), (-2, 61));
        assert!(depth.lower(true));
        assert_eq!((depth.step(), depth.most()), (0, 16));
        assert!(depth.raise(), "the limit of before no longer counts");
    }

    /// A queue of 1 has depth 2, so that the next request is ready, until reads suffer. One of 8
    /// begins with 8; with writes alone it has three quarters, which are fewer.
    #[test]
    fn a_small_queue_has_a_small_depth() {
        let mut one = Depth::new(1);
        assert_eq!(limits(&one), [10, 1, 2, 2]);
        assert!(one.lower(true));
        assert_eq!(limits(&one), [11, 1, 1, 1]);
        let mut eight = Depth::new(8);
        assert_eq!(limits(&eight), [10, 2, 4, 8]);
        assert!(eight.raise());
        assert_eq!(limits(&eight), [9, 2, 3, 6]);
    }

    /// Three quarters of 4,294,967,295 are 3,221,225,471.25.
    #[test]
    fn the_depth_of_the_largest_queue_is_found() {
        let mut largest = Depth::new(u32::MAX);
        while largest.raise() {}
        assert_eq!(largest.most(), 3_221_225_471);
    }
}
