//! What a request uses of a connection's limits.

/// What one request uses of the limits, from when it is taken until its reply was sent
/// ([no-request-past-limits]).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a charge that is not given back is lost to the connection"]
pub struct Charge {
    pub(super) bytes: u64,
}
