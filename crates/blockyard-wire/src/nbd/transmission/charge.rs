//! The charge of a request against a connection's limits.

/// The part of the limits that one request uses, from the call that takes it until its reply has
/// been sent ([no-request-past-limits]).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a charge that is not given back is lost to the connection"]
pub struct Charge {
    pub(super) bytes: u64,
}
