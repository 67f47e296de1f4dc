//! The seam between kyber and the two ways in which it turns latencies into depths.

use super::domain::{DOMAINS, Domain, Tokens};
use crate::time::{Duration, Instant};

/// The latencies of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    /// From its submission to its end.
    pub(super) total: Duration,
    /// From its start in the device to its end.
    pub(super) device: Duration,
}

/// Turns latencies into depths.
pub(super) trait Adjust: core::fmt::Debug {
    /// Notes that a request of `domain` has completed. `due` is when depths are to be adjusted;
    /// this may set it if it is not set.
    fn completed(&mut self, domain: Domain, took: Took, now: Instant, due: &mut Option<Instant>);

    /// Adjusts depths as of `at`. Returns when to do so again, or `None` if [`Self::completed`]
    /// decides that.
    fn adjust(&mut self, at: Instant, tokens: &mut [Tokens; DOMAINS]) -> Option<Instant>;
}
