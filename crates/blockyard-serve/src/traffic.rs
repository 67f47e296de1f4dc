//! What a server does for its clients, for who watches it run.

use blockyard::bio::Op;

/// What was done for clients since the begin, and what there is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads that were answered, however they ended.
    pub reads: u64,
    /// Bytes of these.
    pub read_bytes: u64,
    /// Writes that were answered, however they ended.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Requests under way now.
    pub in_flight: usize,
    /// Clients there are now.
    pub clients: usize,
}

impl Traffic {
    /// A request with so many bytes is over.
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

    /// What another lane has, too.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.written_bytes += other.written_bytes;
        self.in_flight += other.in_flight;
    }
}
