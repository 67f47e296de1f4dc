//! The seam between kyber and the two ways in which it turns latencies into depths.

use super::domain::{DOMAINS, Domain, Tokens};
use crate::time::{Duration, Instant};

/// What a request took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    /// From its submission on.
    pub(super) total: Duration,
    /// From its start in the device on.
    pub(super) device: Duration,
}

/// How latencies become depths.
pub(super) trait Adjust: core::fmt::Debug {
    /// A request of `domain` has completed. `due` is when depths are to be adjusted: this may set
    /// it where it is not set.
    fn completed(&mut self, domain: Domain, took: Took, now: Instant, due: &mut Option<Instant>);

    /// Adjusts depths as of `at`, and says when to do it again; `None`: that is for
    /// [`Self::completed`] to say.
    fn adjust(&mut self, at: Instant, tokens: &mut [Tokens; DOMAINS]) -> Option<Instant>;
}
