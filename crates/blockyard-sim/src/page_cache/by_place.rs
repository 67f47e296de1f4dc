//! Files by their places on the disks, so that a cache with many files finds them as fast as one
//! with few.

use super::FileId;
use crate::placement::Placement;
use blockyard::unit::QueueId;
use std::collections::{BTreeMap, BTreeSet};

/// The files of a cache, and those with pages that are not on the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct ByPlace {
    /// The disk, the place and the length of each file, in bytes.
    all: BTreeMap<(QueueId, u64, u64), FileId>,
    /// The disk and the place of files with dirty pages or pages under writeback.
    unwritten: BTreeSet<(QueueId, u64, FileId)>,
}

const fn key(placement: Placement) -> (QueueId, u64, u64) {
    let Placement { queue, base_bytes, len_bytes } = placement;
    (queue, base_bytes, len_bytes)
}

impl ByPlace {
    pub(super) fn insert(&mut self, placement: Placement, file: FileId) {
        let old = self.all.insert(key(placement), file);
        debug_assert!(old.is_none(), "{placement:?} is that of {old:?}");
    }

    pub(super) fn find(&self, placement: Placement) -> Option<FileId> {
        self.all.get(&key(placement)).copied()
    }

    /// Notes whether `file` has dirty pages or pages under writeback.
    pub(super) fn note(&mut self, placement: Placement, file: FileId, is_unwritten: bool) {
        debug_assert_eq!(self.find(placement), Some(file), "{placement:?}");
        let key = (placement.queue, placement.base_bytes, file);
        if is_unwritten {
            self.unwritten.insert(key);
        } else {
            self.unwritten.remove(&key);
        }
    }

    /// Returns such files of `disk` and their places, from a place on, in order.
    pub(super) fn unwritten(
        &self,
        disk: QueueId,
        from_bytes: u64,
    ) -> impl Iterator<Item = (u64, FileId)> + '_ {
        let from = (disk, from_bytes, FileId(0));
        let on_disk = self.unwritten.range(from..).take_while(move |of| of.0 == disk);
        on_disk.map(|(_, base_bytes, file)| (*base_bytes, *file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(queue: u16, base_bytes: u64) -> Placement {
        Placement { queue: QueueId(queue), base_bytes, len_bytes: 4096 }
    }

    fn of_disk_1(files: &ByPlace, from_bytes: u64) -> Vec<(u64, FileId)> {
        files.unwritten(QueueId(1), from_bytes).collect()
    }

    #[test]
    fn unwritten_files_are_found_in_the_order_of_their_disk() {
        let mut files = ByPlace::default();
        let places = [place(1, 8192), place(1, 0), place(0, 4096), place(2, 0)];
        for (number, placement) in places.into_iter().enumerate() {
            files.insert(placement, FileId(number));
            files.note(placement, FileId(number), true);
        }
        assert_eq!(files.find(place(1, 0)), Some(FileId(1)));
        assert_eq!(files.find(place(0, 0)), None);
        assert_eq!(of_disk_1(&files, 0), [(0, FileId(1)), (8192, FileId(0))]);
        assert_eq!(of_disk_1(&files, 1), [(8192, FileId(0))]);
        files.note(place(1, 0), FileId(1), false);
        assert_eq!(of_disk_1(&files, 0), [(8192, FileId(0))]);
    }
}
