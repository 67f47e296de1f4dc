//! Counters of the requests that a server handles for its clients.

use blockyard::bio::Op;

/// The requests that clients have made since the server started, and its present load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads that have ended, successfully or not.
    pub reads: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Writes that have ended, successfully or not.
    pub writes: u64,
    /// Bytes of these writes.
    pub written_bytes: u64,
    /// Requests in flight.
    pub in_flight: usize,
    /// Connected clients.
    pub clients: usize,
}

impl Traffic {
    /// Counts a request of `bytes` that has ended.
    #[inline]
    pub(crate) const fn count(&mut self, op: Op, bytes: u64) {
        match op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Op::Write => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            _ => {}
        }
    }

    /// Adds the traffic of another lane, whose `clients` are not counted.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
        self.in_flight += other.in_flight;
    }
}
