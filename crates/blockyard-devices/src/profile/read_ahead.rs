//! The read-ahead of a design: the distance that the page cache reads ahead of a buffered reader.

use blockyard::limits::Limits;
use blockyard::unit::SECTOR_BYTES;

use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::reader::value::{Bytes, OneOf};

/// Bytes of a page of the page cache.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of the longest read-ahead window that a design can set.
const READ_AHEAD_BYTES_MAX: u64 = 64 << 20;
const _: () = assert!(READ_AHEAD_BYTES_MAX.is_multiple_of(PAGE_BYTES));

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

/// The read-ahead of buffered reads: `read-ahead`, `read-ahead-cap` and `read-ahead-end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAheadPolicy {
    /// Bytes of the longest window: Linux's `read_ahead_kb`, by default 128 KiB. 0: none.
    pub bytes: u64,
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
        debug_assert!(self.bytes.is_multiple_of(PAGE_BYTES), "{} bytes in pages", self.bytes);
        let widest_bytes = if self.request_widens { limits.max_sectors } else { 0 };
        let widest_bytes = u64::from(widest_bytes) * u64::from(SECTOR_BYTES);
        Reach {
            usual: self.bytes / PAGE_BYTES,
            widest: widest_bytes / PAGE_BYTES,
            aligned: self.aligned,
        }
    }
}

const READ_AHEAD_CAP: &[(&str, bool)] = &[("setting", false), ("request", true)];
const READ_AHEAD_END: &[(&str, bool)] = &[("whole", false), ("aligned", true)];

/// Reads `read-ahead`, `read-ahead-cap` and `read-ahead-end` of the table `[queue]`.
pub(crate) fn read_ahead(queue: &Table<'_>) -> Result<ReadAheadPolicy, ProfileError> {
    let bytes = queue.take_or("read-ahead", Bytes(0..=READ_AHEAD_BYTES_MAX), 128 << 10)?;
    if !bytes.is_multiple_of(PAGE_BYTES) {
        let words = "`read-ahead` is a whole number of pages of 4KiB";
        return Err(queue.wrong("read-ahead", Problem::Contradiction(words)));
    }
    let request_widens = queue.take_or("read-ahead-cap", OneOf(READ_AHEAD_CAP), true)?;
    let aligned = queue.take_or("read-ahead-end", OneOf(READ_AHEAD_END), false)?;
    Ok(ReadAheadPolicy { bytes, request_widens, aligned })
}
