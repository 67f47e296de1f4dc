//! Time limits in EXT_CSD. If a device does not state one, the answer is `None`, and the host
//! decides.

use super::{ExtCsd, SecureFeatures, index, revision};
use blockyard::time::Duration;

/// The unit of erase and trim limits.
const ERASE_UNIT: Duration = Duration::from_ms(300);

impl ExtCsd {
    /// GENERIC_CMD6_TIME (248): returns the limit of any switch without one of its own.
    #[must_use]
    pub(crate) fn generic_switch_time(&self) -> Option<Duration> {
        self.tens_of_ms(revision::V4_5, index::GENERIC_CMD6_TIME)
    }

    /// OUT_OF_INTERRUPT_TIME (198): how long the device is still busy after an interrupt (HPI).
    #[must_use]
    pub(crate) fn out_of_interrupt_time(&self) -> Option<Duration> {
        self.tens_of_ms(revision::V4_41, index::OUT_OF_INTERRUPT_TIME)
    }

    /// ERASE_TIMEOUT_MULT (223): returns the limit of erasing one high-capacity erase group.
    #[must_use]
    pub(crate) fn erase_group_time(&self) -> Option<Duration> {
        let factor = self.bits_since(revision::V4_3, index::ERASE_TIMEOUT_MULT);
        times(ERASE_UNIT, u64::from(factor))
    }

    /// TRIM_MULT (232): returns the limit of trimming or discarding within one erase group.
    #[must_use]
    pub(crate) fn trim_time(&self) -> Option<Duration> {
        times(ERASE_UNIT, u64::from(self.bits_since(revision::V4_4, index::TRIM_MULT)))
    }

    /// SEC_ERASE_MULT (230): returns the limit of erasing one erase group securely.
    #[must_use]
    pub(crate) fn secure_erase_time(&self) -> Option<Duration> {
        self.secure_time(index::SEC_ERASE_MULT)
    }

    /// SEC_TRIM_MULT (229): returns the limit of trimming within one erase group securely.
    #[must_use]
    pub(crate) fn secure_trim_time(&self) -> Option<Duration> {
        self.secure_time(index::SEC_TRIM_MULT)
    }

    fn secure_time(&self, at: u16) -> Option<Duration> {
        let supported = self.secure_features().has(SecureFeatures::SECURE_ERASE);
        let group = self.erase_group_time().filter(|_| supported)?;
        times(group, u64::from(self.byte(at)))
    }

    fn tens_of_ms(&self, revision: u8, at: u16) -> Option<Duration> {
        times(Duration::from_ms(10), u64::from(self.bits_since(revision, at)))
    }
}

/// Returns `unit` multiplied by `times`; `None` for zero, by which a device states nothing.
fn times(unit: Duration, factor: u64) -> Option<Duration> {
    (factor != 0).then(|| Duration::from_ns(unit.as_ns() * factor))
}
