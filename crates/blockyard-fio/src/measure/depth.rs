//! The queue depths of jobs: I/Os in flight, submitted and completed at a time, in fio's classes.

/// Counts in fio's seven classes of a number of I/Os.
pub type Classes = [u64; 7];

/// The three distributions of depths that fio reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    /// I/Os by the number in flight just after their submission: 1, then from 2, 4, 8, 16, 32
    /// and 64 on.
    pub level: Classes,
    /// Calls by the number of I/Os that they submitted: none, then up to 4, 8, 16, 32, 64 and more.
    pub submit: Classes,
    /// Calls by the number of results that they reaped, in the same classes.
    pub complete: Classes,
}

impl Depths {
    /// Counts a call that submitted `ios`, of which `counted` are reads, writes or trims. `depth`
    /// I/Os are in flight after it.
    pub fn submitted(&mut self, ios: u32, counted: u32, depth: u32) {
        debug_assert!(counted <= ios, "syncs are among the I/Os of a call");
        self.level[level_class(depth)] += u64::from(counted);
        self.submit[batch_class(ios)] += 1;
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.add_times(other, 1);
    }

    /// Adds `other` so many `times`.
    pub fn add_times(&mut self, other: &Self, times: u64) {
        for (mine, others) in [
            (&mut self.level, &other.level),
            (&mut self.submit, &other.submit),
            (&mut self.complete, &other.complete),
        ] {
            mine.iter_mut().zip(others).for_each(|(mine, others)| *mine += others * times);
        }
    }

    /// Whether never more than one I/O was in flight.
    #[must_use]
    pub fn one_at_a_time(&self) -> bool {
        self.level[1..].iter().all(|ios| *ios == 0)
    }

    /// Counts a call that reaped the results of `ios`.
    pub fn completed(&mut self, ios: u32) {
        self.complete[batch_class(ios)] += 1;
    }
}

/// Returns the class of a depth of at least 1.
fn level_class(depth: u32) -> usize {
    depth.max(1).ilog2().min(6) as usize
}

fn batch_class(ios: u32) -> usize {
    const UP_TO: [u32; 6] = [0, 4, 8, 16, 32, 64];
    UP_TO.iter().position(|most| ios <= *most).unwrap_or(UP_TO.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_depths_begin_with_their_name() {
        let of = [1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 4096].map(level_class);
        assert_eq!(of, [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
    }

    #[test]
    fn classes_of_batches_end_with_their_name() {
        let of = [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65].map(batch_class);
        assert_eq!(of, [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]);
    }

    #[test]
    fn a_batch_counts_each_io_once_and_the_call_once() {
        let mut depths = Depths::default();
        depths.submitted(5, 4, 9);
        depths.completed(3);
        assert_eq!(depths.level, [0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(depths.submit, [0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(depths.complete, [0, 1, 0, 0, 0, 0, 0]);
    }
}
