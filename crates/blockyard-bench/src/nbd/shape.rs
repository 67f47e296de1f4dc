//! What a connection asks for.

/// What requests do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// READ.
    Read,
    /// WRITE, without FUA.
    Write,
}

/// What is asked for on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What each request does.
    pub direction: Direction,
    /// Bytes of each request.
    pub bytes: usize,
    /// Requests in flight.
    pub depth: usize,
}
