//! The sectors that jobs share: whether what they do there fits together.

use crate::placement::Placement;
use blockyard_fio::job::{Job, Op};

/// The use of a file by a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    queue: u16,
    base_bytes: u64,
    end_bytes: u64,
    /// Whether the job discards.
    trims: bool,
    /// Whether the job writes through the page cache.
    dirties: bool,
    job: usize,
}

/// The files of all jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Sharing(Vec<Use>);

impl Sharing {
    /// Adds the files of job number `at`.
    pub(super) fn add(&mut self, at: usize, job: &Job, placements: &[Placement]) {
        let dirties = !job.direct && job.pattern.mix.ops().contains(&Op::Write);
        self.0.extend(placements.iter().map(|place| Use {
            queue: place.queue.0,
            base_bytes: place.base_bytes,
            end_bytes: place.base_bytes + place.len_bytes,
            trims: job.pattern.mix.ops().contains(&Op::Trim),
            dirties,
            job: at,
        }));
    }

    /// Returns the later one of two jobs that cannot share their sectors, if there are any.
    pub(super) fn unfit(mut self) -> Option<usize> {
        if !self.0.iter().any(|used| used.dirties) {
            return None;
        }
        self.0.sort_unstable();
        self.0.dedup();
        // The files of a disk are in the order of their first byte, so those that begin within one
        // follow it.
        self.0.iter().enumerate().find_map(|(at, one)| {
            let behind = self.0[at + 1..].iter();
            let mut within = behind
                .take_while(|other| other.queue == one.queue && other.base_bytes < one.end_bytes);
            within.find(|other| one.clashes_with(other)).map(|other| one.job.max(other.job))
        })
    }
}

impl Use {
    /// Whether the two uses, which overlap, cannot be modelled together.
    fn clashes_with(&self, other: &Self) -> bool {
        debug_assert!(self.base_bytes <= other.base_bytes, "{self:?} comes before {other:?}");
        let same_file = (self.base_bytes, self.end_bytes) == (other.base_bytes, other.end_bytes);
        (self.dirties || other.dirties) && (self.trims || other.trims || !same_file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the job that cannot share its sectors. A use is (first, end, trims, dirties).
    fn unfit(uses: &[(u64, u64, bool, bool)]) -> Option<usize> {
        let uses = uses.iter().enumerate();
        let uses = uses.map(|(job, &(base_bytes, end_bytes, trims, dirties))| Use {
            queue: 0,
            base_bytes,
            end_bytes,
            trims,
            dirties,
            job,
        });
        Sharing(uses.collect()).unfit()
    }

    #[test]
    fn dirty_pages_are_not_shared_with_discards_or_another_file() {
        assert_eq!(unfit(&[(0, 8, false, true), (0, 8, false, true)]), None);
        assert_eq!(unfit(&[(0, 8, false, true), (8, 9, true, false)]), None);
        assert_eq!(unfit(&[(0, 8, false, true), (0, 8, true, false)]), Some(1));
        assert_eq!(unfit(&[(0, 8, false, true), (4, 9, false, false)]), Some(1));
        assert_eq!(unfit(&[(4, 6, false, false), (0, 8, false, true)]), Some(1));
        assert_eq!(unfit(&[(0, 8, true, false), (0, 8, false, false)]), None, "nobody writes");
    }
}
