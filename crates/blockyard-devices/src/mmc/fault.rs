//! The faults of a controller, and the removal of its card.

use crate::mmc::profile::HostFaults;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};

/// Draws the faults.
#[derive(Debug)]
pub(super) struct Faults {
    odds: HostFaults,
    prng: Prng,
}

impl Faults {
    pub(super) const fn new(odds: HostFaults, prng: Prng) -> Self {
        Self { odds, prng }
    }

    /// Returns whether an interrupt is lost.
    pub(super) fn loses_interrupt(&mut self) -> bool {
        self.one_in(self.odds.interrupt_lost_one_in)
    }

    /// Returns whether the bus cannot be used from interrupt context.
    pub(super) fn is_not_now(&mut self) -> bool {
        self.one_in(self.odds.not_now_one_in)
    }

    /// Returns whether the sampling point has drifted.
    pub(super) fn drifts(&mut self) -> bool {
        self.one_in(self.odds.drift_one_in)
    }

    /// Returns whether tuning finds no sampling point.
    pub(super) fn fails_tuning(&mut self) -> bool {
        self.one_in(self.odds.tuning_fails_one_in)
    }

    /// Returns the instant of the card's removal, if that has happened by `at`.
    pub(super) fn gone_by(&self, at: Instant) -> Option<Instant> {
        let removed = self.odds.removed_at.map(|after: Duration| Instant::ZERO + after);
        removed.filter(|removed| *removed <= at)
    }

    fn one_in(&mut self, odds: Option<u32>) -> bool {
        odds.is_some_and(|odds| self.prng.below(u64::from(odds)) == 0)
    }
}
