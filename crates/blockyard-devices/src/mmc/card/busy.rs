//! The time for which a card holds DAT0 low, and the work that it does meanwhile.

use blockyard::time::{Duration, Instant};

/// The work that keeps a card busy, and what an interrupt does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A write of `sectors` that ends with `finish`. If `kept`, they are in the cache, and an
    /// interrupt leaves them there.
    Write { sectors: u32, kept: bool, finish: Duration },
    /// Background operations.
    Background,
    /// Flushing the cache, or erasing: an interrupt leaves the rest as it was.
    Divisible,
    /// Work that cannot be interrupted, or that has already been interrupted.
    Indivisible,
}

/// The time for which the card holds DAT0 low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) since: Instant,
    pub(super) until: Instant,
    pub(super) work: Work,
}
