//! Inodes: which pages of a file are on the disk, and which transaction has its changes.

use super::super::extents::Extents;
use super::super::jiffies::jiffies;
use super::journal::{Tid, Written};
use blockyard::time::Instant;
use blockyard_devices::profile::PAGE_BYTES;
use core::ops::Range;

/// A file before its first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It has its data.
    Written,
    /// It was created, with all blocks or none, and its whole length or none.
    Created {
        /// Whether all its blocks are reserved.
        has_blocks: bool,
        /// Whether it has its whole length.
        has_length: bool,
    },
}

/// Data of a file that has reached the disk.
#[derive(Clone, Debug)]
pub(in super::super) struct Data {
    /// Its pages. Those of a bio of writeback are of one kind, those of a direct write those of
    /// its range.
    pub(in super::super) pages: Range<u64>,
    /// The length of the file when the bio was submitted, or where the direct write ends, bytes.
    pub(in super::super) len_bytes: u64,
    pub(in super::super) is_direct: bool,
}

/// The inode of a file.
#[derive(Clone, Debug)]
pub(in super::super) struct Inode {
    pub(super) number: u32,
    start: Start,
    /// The pages with data on the disk, if it did not have all at the start.
    written: Extents,
    /// The length as calls see it, and the one on the disk.
    len_bytes: u64,
    disk_len_bytes: u64,
    /// The tick of the last time of change.
    changed_at: Option<u64>,
    /// The last transaction with a change of the inode.
    pub(super) changed: Tid,
    /// The last one with a change that its data needs: a new block or length.
    pub(super) data_changed: Tid,
}

impl Inode {
    /// Returns inode `number` of a file of `len_bytes`.
    pub(in super::super) fn new(number: u32, start: Start, len_bytes: u64) -> Self {
        let is_empty = matches!(start, Start::Created { has_length: false, .. });
        let len_bytes = if is_empty { 0 } else { len_bytes };
        Self {
            number,
            start,
            written: Extents::default(),
            len_bytes,
            disk_len_bytes: len_bytes,
            changed_at: None,
            changed: Tid::NONE,
            data_changed: Tid::NONE,
        }
    }

    /// Writes all of the file before its first use, if it has no length: fio does so for a job that
    /// reads it. A file that has its length keeps its blocks as they are.
    pub(in super::super) fn lay_out(&mut self, len_bytes: u64) {
        debug_assert!(len_bytes > 0, "a file that is read has a length");
        if self.len_bytes == 0 {
            self.start = Start::Written;
            self.len_bytes = len_bytes;
            self.disk_len_bytes = len_bytes;
        }
    }

    pub(super) const fn has_blocks(&self) -> bool {
        matches!(self.start, Start::Written | Start::Created { has_blocks: true, .. })
    }

    /// Returns the last transaction that a sync needs: `fdatasync` if it is `data_only`.
    pub(in super::super) const fn needs(&self, data_only: bool) -> Tid {
        if data_only { self.data_changed } else { self.changed }
    }

    /// Whether `page` has data on the disk.
    pub(in super::super) fn has_data(&self, page: u64) -> bool {
        self.start == Start::Written || self.written.contains(page)
    }

    /// Returns the part of `pages` from the first one with data on the disk to behind the last one;
    /// an empty one if none has data.
    pub(in super::super) fn data_in(&self, pages: Range<u64>) -> Range<u64> {
        if self.start == Start::Written { pages } else { self.written.within(&pages).span() }
    }

    /// Whether a write that ends at byte `end_bytes` makes the file longer.
    pub(in super::super) const fn grows(&self, end_bytes: u64) -> bool {
        end_bytes > self.len_bytes
    }

    /// Returns the first page behind `page` that differs from it in whether it has data on the
    /// disk: a bio writes pages of one kind.
    pub(in super::super) fn end_of_kind(&self, page: u64) -> u64 {
        let end = if self.start == Start::Written {
            None
        } else {
            self.written.end_of(page).or_else(|| self.written.first_from(page))
        };
        end.unwrap_or(u64::MAX)
    }

    /// Returns the number of extents.
    pub(super) fn extents(&self) -> u64 {
        let Start::Created { has_blocks, .. } = self.start else { return 0 };
        // Three written runs, each with a reserved one behind it.
        self.written.runs() * if has_blocks { 2 } else { 1 }
    }

    /// Notes a write that ends at byte `end_bytes`. Returns whether the time of change differs: the
    /// clock of inodes moves with the ticks.
    pub(super) fn wrote(&mut self, end_bytes: u64, now: Instant) -> bool {
        self.len_bytes = self.len_bytes.max(end_bytes);
        self.changed_at.replace(jiffies(now)) != Some(jiffies(now))
    }

    /// Returns the length as calls see it, bytes.
    pub(in super::super) const fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Notes that `data` is on the disk.
    ///
    /// Of a file of 512 bytes, a bio writes page 0 back. If the file has 1024 bytes when the bio
    /// ends, its length on the disk is 512, and the next bio of the page makes it longer.
    pub(super) fn written(&mut self, data: &Data) -> Written {
        let Data { pages, len_bytes, is_direct } = data.clone();
        debug_assert!(pages.start < pages.end, "data without a page");
        // A bio of writeback has pages of one kind, a direct write those of its range.
        let is_new = pages.clone().any(|page| !self.has_data(page));
        let extents_before = self.extents();
        if is_new {
            for page in pages.clone() {
                self.written.insert(page);
            }
        }
        let len_bytes = len_bytes.min(pages.end * PAGE_BYTES);
        let grows = len_bytes > self.disk_len_bytes;
        self.disk_len_bytes = self.disk_len_bytes.max(len_bytes);
        Written {
            converts: is_new && self.has_blocks(),
            allocates: is_new && !self.has_blocks(),
            grows,
            is_direct,
            extents: self.extents(),
            extents_before,
        }
    }
}
