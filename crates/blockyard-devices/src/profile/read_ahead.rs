//! The read-ahead of a design: the distance that the page cache reads ahead of a buffered reader.

use blockyard::limits::Limits;
use blockyard::unit::SECTOR_BYTES;

use super::linux;
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::reader::value::{Bytes, OneOf};

/// Bytes of a page of the page cache.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of the longest read-ahead window that a design can set.
const READ_AHEAD_BYTES_MAX: u64 = 64 << 20;
const _: () = assert!(READ_AHEAD_BYTES_MAX.is_multiple_of(PAGE_BYTES));

/// Bytes of the longest window by default (Linux's `VM_READAHEAD_PAGES`).
const READ_AHEAD_BYTES: u64 = 128 << 10;

/// The longest windows of read-ahead, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The usual length: Linux's `read_ahead_kb`. 0: nothing is read ahead.
    pub usual: u64,
    /// The length for a request that is itself longer than `usual`. It matters only above `usual`.
    pub widest: u64,
    /// Whether windows end aligned to their size, as since Linux 6.17.
    pub aligned: bool,
}

impl Reach {
    /// Returns the length of the longest possible window.
    #[must_use]
    pub fn longest(self) -> u64 {
        self.widest.max(self.usual * 2).max(1)
    }

    /// Returns the longest window for a request of this many pages ([window-within-reach]).
    #[must_use]
    pub fn for_request(self, pages: u64) -> u64 {
        if pages > self.usual { pages.min(self.widest).max(self.usual) } else { self.usual }
    }
}

/// The read-ahead of buffered reads: the keys of `[queue]` that begin with `read-ahead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAheadPolicy {
    /// Bytes of the longest window: Linux's `read_ahead_kb`. 0: none. `None`: 128 KiB, or more at a
    /// rotational disk if `rotational_twice`.
    pub bytes: Option<u64>,
    /// Whether the window of a rotational disk is twice its largest request, unless `bytes` is
    /// stated: `two-requests`, as since Linux 6.17, rather than `usual`.
    pub rotational_twice: bool,
    /// Whether a longer request widens windows to its own length, up to the largest request of the
    /// device: `request`, as since Linux 4.10, rather than `setting`.
    pub request_widens: bool,
    /// Whether windows end aligned to their size: `aligned`, as since Linux 6.17, rather than
    /// `whole`.
    pub aligned: bool,
}

impl ReadAheadPolicy {
    /// Returns the longest windows on a device with `limits`.
    #[must_use]
    pub fn reach(&self, limits: &Limits) -> Reach {
        let request_bytes = u64::from(limits.max_sectors) * u64::from(SECTOR_BYTES);
        let is_twice = self.rotational_twice && limits.rotational;
        let least = if is_twice { 2 * request_bytes } else { 0 };
        Reach {
            usual: self.bytes.unwrap_or(least.max(READ_AHEAD_BYTES)) / PAGE_BYTES,
            widest: if self.request_widens { request_bytes / PAGE_BYTES } else { 0 },
            aligned: self.aligned,
        }
    }
}

const READ_AHEAD_CAP: &[(&str, bool)] = &[("setting", false), ("request", true)];
const READ_AHEAD_END: &[(&str, bool)] = &[("whole", false), ("aligned", true)];
const ROTATIONAL: &[(&str, bool)] = &[("usual", false), ("two-requests", true)];

/// Reads the read-ahead of the table `[queue]`.
pub(crate) fn read_ahead(queue: &Table<'_>) -> Result<ReadAheadPolicy, ProfileError> {
    let bytes = queue.take("read-ahead", Bytes(0..=READ_AHEAD_BYTES_MAX))?;
    if !bytes.unwrap_or_default().is_multiple_of(PAGE_BYTES) {
        let words = "`read-ahead` is a whole number of pages of 4KiB";
        return Err(queue.wrong("read-ahead", Problem::Contradiction(words)));
    }
    let request_widens =
        queue.take_or("read-ahead-cap", OneOf(READ_AHEAD_CAP), linux::REQUEST_WIDENS)?;
    let aligned = queue.take_or("read-ahead-end", OneOf(READ_AHEAD_END), linux::ALIGNED)?;
    let rotational_twice =
        queue.take_or("read-ahead-rotational", OneOf(ROTATIONAL), linux::ROTATIONAL_TWICE)?;
    Ok(ReadAheadPolicy { bytes, rotational_twice, request_widens, aligned })
}
