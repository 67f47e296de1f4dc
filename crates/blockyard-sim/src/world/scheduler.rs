//! The elevators of the queues: weights of control groups, and BFQ's counts.

use super::World;
use blockyard::elevator::bfq::Counts;
use blockyard_fio::job::Cgroup;

/// What BFQ has done in all queues together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BfqReport {
    /// The sums of the counts of all queues.
    pub counts: Counts,
    /// The number of queues.
    pub queues: u16,
}

impl World<'_> {
    /// Gives the control groups of the jobs their weights in the elevator of each queue.
    pub(crate) fn weigh_groups(&mut self, groups: &[Cgroup<'_>]) {
        for queue in &mut self.queues {
            for group in groups {
                self.ignores_groups |= !queue.weigh_group(group.number, group.weight);
            }
        }
    }

    /// Whether a group was given a weight, and the elevators do not share the device among groups.
    #[must_use]
    pub(crate) const fn ignores_groups(&self) -> bool {
        self.ignores_groups
    }

    /// Returns what BFQ has done, if it is the scheduler.
    #[must_use]
    pub(crate) fn bfq(&self) -> Option<BfqReport> {
        let mut counts = Counts::default();
        for queue in &self.queues {
            counts.add(&queue.bfq_counts()?);
        }
        let queues = u16::try_from(self.queues.len()).unwrap_or(u16::MAX);
        Some(BfqReport { counts, queues })
    }
}
