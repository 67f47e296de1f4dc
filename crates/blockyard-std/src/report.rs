//! The report of a shutdown.

use crate::error::Error;
use crate::stats::Stats;
use blockyard::bio::Op;
use blockyard::status::Status;

/// The number of failures that a [`Report`] describes.
const FAILURES_MAX: usize = 64;

/// The fate of a disk's requests. See [`Disk::shutdown`](crate::Disk::shutdown).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a failed flush means lost writes"]
pub struct Report {
    /// The result of the last flush. A disk without a cache needs none.
    pub flush: Result<(), Error>,
    /// The number of requests that failed since the disk was opened, whether or not somebody looked
    /// at their results.
    pub failures: u64,
    /// The first 64 of them, in the order in which they ended.
    pub failed: Vec<Failure>,
    /// The counts of all requests.
    pub stats: Stats,
}

/// A request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The operation.
    pub op: Op,
    /// The first byte on the disk.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
    /// The result.
    pub status: Status,
}

impl Default for Report {
    fn default() -> Self {
        Self { flush: Ok(()), failures: 0, failed: Vec::new(), stats: Stats::default() }
    }
}

impl Report {
    /// Counts a request that has ended as a failure, if it is one.
    pub(crate) fn note(&mut self, ended: Failure) {
        if ended.status == Status::Ok {
            return;
        }
        self.failures += 1;
        if self.failed.len() < FAILURES_MAX {
            self.failed.push(ended);
        }
    }

    /// Returns the first failure as an error, or `Ok` if there was none and the last flush
    /// succeeded.
    ///
    /// # Errors
    ///
    /// Fails if a request or the last flush failed.
    pub fn ok(&self) -> Result<(), Error> {
        match self.failed.first() {
            Some(failure) => Err(Error::Failed(failure.status)),
            None => self.flush,
        }
    }
}
