//! The groups by which the elevator of a disk knows clients with weights.

use blockyard::elevator::bfq::GROUPS_MAX;

/// The groups of a disk, each of which one client may have. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Whether a client has the group with one number more than the index. Group 0 is that of
    /// clients without weights.
    taken: [bool; GROUPS_MAX],
}

impl Groups {
    /// Takes a group that no client has, or returns `None` if [`GROUPS_MAX`] clients have weights.
    pub(crate) fn take(&mut self) -> Option<u32> {
        let free = self.taken.iter().position(|taken| !taken)?;
        self.taken[free] = true;
        Some(u32::try_from(free).expect("the number of a group, of which there are few") + 1)
    }

    /// Gives back a group, or does nothing if it is group 0.
    pub(crate) fn give_back(&mut self, group: u32) {
        if let Some(at) = (group as usize).checked_sub(1) {
            self.taken[at] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_one_client_at_a_time() {
        let mut groups = Groups::default();
        let all: Vec<_> = core::iter::from_fn(|| groups.take()).collect();
        assert_eq!(all, Vec::from_iter(1..=15), "group 0 is nobody's");
        groups.give_back(0);
        assert_eq!(groups.take(), None);
        groups.give_back(7);
        assert_eq!([groups.take(), groups.take()], [Some(7), None]);
    }
}
