//! Control groups of jobs, of which the schedulers of the queues may know.

use super::World;
use blockyard_fio::job::Cgroup;

impl<O> World<O> {
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
}
