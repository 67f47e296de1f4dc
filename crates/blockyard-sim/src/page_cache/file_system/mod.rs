//! The file system on the disks of a world: inodes, and a journal for each disk.
//!
//! ```text
//! a write ─► time of change ───────────┐
//! writeback ends ─► new blocks, size ──┴─► running ─► committing ─► committed
//!                                          transaction: a sync asks for it, or it is old
//! ```
//!
//! The world has the threads that commit.

mod inode;
mod journal;

pub(crate) use inode::Start;
pub(super) use inode::{Data, Inode};
pub(crate) use journal::{Commit, Journal, State, Tid};

use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::{QueueId, SECTOR_BYTES};
use blockyard_devices::profile::{self, FileSystemRules, PAGE_BYTES};
use core::ops::Range;

/// A file system on each disk.
#[derive(Clone, Debug)]
pub(crate) struct FileSystem {
    rules: FileSystemRules,
    journals: Vec<Journal>,
}

/// Returns the bytes of the journal of `rules` on a disk of `disk_bytes`, in its middle, where both
/// mke2fs and mkfs.xfs put it. It takes at most an eighth of the disk.
///
/// On a disk of 1 GiB, a journal of 64 MiB takes the bytes from 512 to 576 MiB.
pub(crate) fn place_of_journal(rules: &FileSystemRules, disk_bytes: u64) -> Range<u64> {
    if rules.journal == profile::Journal::None {
        return 0..0;
    }
    let start = (disk_bytes / 2).next_multiple_of(PAGE_BYTES);
    let len = rules.journal_bytes.min(disk_bytes / 8) / PAGE_BYTES * PAGE_BYTES;
    start..start + len
}

impl FileSystem {
    /// Returns a new file system of `profile` on so many disks of `disk_bytes`.
    pub(crate) fn new(profile: &profile::FileSystem, disks: usize, disk_bytes: u64) -> Self {
        let Range { start, end } = place_of_journal(&profile.rules, disk_bytes);
        let sectors = start / u64::from(SECTOR_BYTES)..end / u64::from(SECTOR_BYTES);
        let journal = Journal::new(profile, sectors);
        debug_assert!(disks > 0, "a world has a disk");
        Self { rules: profile.rules, journals: vec![journal; disks] }
    }

    /// Returns the journal of `disk`.
    pub(crate) fn journal(&mut self, disk: QueueId) -> &mut Journal {
        &mut self.journals[disk.index()]
    }

    /// Returns the state of transaction `tid` of `disk`.
    pub(crate) fn state(&self, disk: QueueId, tid: Tid) -> State {
        self.journals[disk.index()].state(tid)
    }

    /// Returns the error of the journal of `disk`, if it has one.
    pub(super) fn error(&self, disk: QueueId) -> Option<Status> {
        self.journals[disk.index()].error()
    }

    /// Returns the pages of the longest bio of data.
    pub(super) const fn write_max_pages(&self) -> u64 {
        self.rules.write_max_bytes / PAGE_BYTES
    }

    pub(super) const fn plugs(&self) -> bool {
        self.rules.plugs
    }

    /// Whether the disks have journals.
    pub(crate) fn has_journals(&self) -> bool {
        self.rules.journal != profile::Journal::None
    }

    /// Notes a write to `inode` of `disk` that ends at byte `end_bytes`.
    pub(super) fn wrote(&mut self, inode: &mut Inode, disk: QueueId, end_bytes: u64, now: Instant) {
        if inode.wrote(end_bytes, now) {
            inode.changed = self.journal(disk).change(now, inode.number);
        }
    }

    /// Notes the creation of `inode` on `disk`.
    pub(super) fn created(&mut self, inode: &mut Inode, disk: QueueId, now: Instant) {
        let tid = self.journal(disk).create(now, inode.number, inode.has_blocks());
        (inode.changed, inode.data_changed) = (tid, tid);
    }

    /// Notes that `data` of `inode` is on `disk`.
    pub(super) fn written(&mut self, inode: &mut Inode, disk: QueueId, data: &Data, now: Instant) {
        let written = inode.written(data);
        if !written.needs_commit() {
            return;
        }
        let tid = self.journal(disk).write_back(now, inode.number, written);
        (inode.changed, inode.data_changed) = (tid, tid);
    }
}
