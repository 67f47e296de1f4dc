//! Latencies by window.
//!
//! Each kind of I/O has its own windows. An I/O that ends when its window has reached its length
//! still belongs to the window and closes it. The window is logged with the time of that I/O, and
//! the next one begins at the last multiple of the length. A window without I/Os is not logged.

use crate::job::Op;

/// The windows of one log.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    window_ms: u64,
    /// Log the largest value instead of the mean.
    largest: bool,
    of: [Window; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    begun_ms: u64,
    count: u64,
    sum: u128,
    largest: u64,
}

impl Windows {
    pub(super) fn new(window_ms: u64, largest: bool) -> Self {
        Self { window_ms, largest, of: [Window::default(); 3] }
    }

    /// Adds the value of an I/O that ended at `at_ms`. Returns the value of the window if this
    /// closes it.
    pub(super) fn add(&mut self, op: Op, value: u64, at_ms: u64) -> Option<u64> {
        debug_assert!(self.window_ms > 0, "a log without windows has no `Windows`");
        let window = &mut self.of[op as usize];
        // The I/O that closes a window counts before the window is emptied.
        window.count += 1;
        window.sum += u128::from(value);
        window.largest = window.largest.max(value);
        if at_ms.saturating_sub(window.begun_ms) < self.window_ms {
            return None;
        }
        let value = window.value(self.largest);
        *window = Window { begun_ms: at_ms - at_ms % self.window_ms, ..Window::default() };
        value
    }

    /// Returns the values of the open windows, and empties them.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = (Op, u64)> + use<> {
        let largest = self.largest;
        let ops = Op::ALL.into_iter().zip(core::mem::take(&mut self.of));
        ops.filter_map(move |(op, window)| Some((op, window.value(largest)?)))
    }
}

impl Window {
    /// Returns the largest value or the rounded mean; `None` if there are no values.
    fn value(&self, largest: bool) -> Option<u64> {
        let count = u128::from(self.count);
        debug_assert!(self.sum <= count * u128::from(self.largest), "no value exceeds the largest");
        let mean = (self.sum + count / 2).checked_div(count)?;
        let mean = u64::try_from(mean).expect("a mean should not exceed the largest value");
        Some(if largest { self.largest } else { mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the logged lines of I/Os, which are given as (ms, kind, value) in order.
    fn lines(window_ms: u64, largest: bool, ios: &[(u64, Op, u64)]) -> Vec<(u64, Op, u64)> {
        let mut windows = Windows::new(window_ms, largest);
        let mut all = Vec::new();
        for &(at_ms, op, value) in ios {
            all.extend(windows.add(op, value, at_ms).map(|value| (at_ms, op, value)));
        }
        all.extend(windows.rest().map(|(op, value)| (u64::MAX, op, value)));
        all
    }

    /// The instants at which fio closed windows of 300 ms with an I/O every 250 ms.
    #[test]
    fn windows_close_at_the_same_times_as_in_fio() {
        let ios: Vec<_> = (0..12).map(|n| (250 * n, Op::Read, n)).collect();
        let lines = lines(300, false, &ios);
        let at: Vec<_> = lines.iter().map(|line| line.0).collect();
        assert_eq!(at, [500, 750, 1000, 1250, 1500, 2000, 2250, 2500, 2750]);
        assert_eq!(lines[0].2, 1, "the mean of 0, 1 and 2: a window includes its last I/O");
    }

    #[test]
    fn each_kind_has_its_own_windows() {
        let ios = [(0, Op::Read, 8), (1, Op::Write, 3), (10, Op::Read, 5), (11, Op::Read, 1)];
        let of_read = [(10, Op::Read, 7), (u64::MAX, Op::Read, 1)];
        assert_eq!(lines(10, false, &ios), [of_read[0], of_read[1], (u64::MAX, Op::Write, 3)]);
        assert_eq!(lines(10, true, &ios)[0], (10, Op::Read, 8));
    }

    proptest! {
        #[test]
        fn each_value_is_in_exactly_one_window(
            mut ios in proptest::collection::vec((0u64..500, 1u64..1000), 1..60),
            window_ms in 1u64..80,
        ) {
            ios.sort_unstable();
            let ios: Vec<_> = ios.into_iter().map(|(at, value)| (at, Op::Write, value)).collect();
            let (mut rest, mut begun) = (&ios[..], 0);
            let mut expected = Vec::new();
            while !rest.is_empty() {
                let closing = rest.iter().position(|io| io.0 >= begun + window_ms);
                let (window, others) = rest.split_at(closing.map_or(rest.len(), |at| at + 1));
                let sum: u64 = window.iter().map(|io| io.2).sum();
                let mean = (2 * sum + window.len() as u64) / (2 * window.len() as u64);
                let at = closing.map_or(u64::MAX, |at| rest[at].0);
                expected.push((at, Op::Write, mean));
                begun = at / window_ms * window_ms;
                rest = others;
            }
            prop_assert_eq!(lines(window_ms, false, &ios), expected);
        }
    }
}
