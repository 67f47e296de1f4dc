//! The requests of a connection.

/// The operation of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// READ.
    Read,
    /// WRITE, without FUA.
    Write,
}

impl Direction {
    /// Its name on the command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// The requests of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The operation of each request.
    pub direction: Direction,
    /// The length of each request, in bytes.
    pub bytes: usize,
    /// The number of requests in flight.
    pub depth: usize,
}
