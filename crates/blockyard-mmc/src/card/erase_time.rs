//! Time limits of erases.

use crate::register::ssr::EraseTiming;
use blockyard::time::Duration;

/// The shortest limit of an erase, however small.
const ERASE_MIN: Duration = Duration::from_secs(1);

/// The time limits of a card's erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EraseTime {
    /// The same time for every erase.
    Fixed(Duration),
    /// A time for each unit that the range touches, but no less than [`ERASE_MIN`].
    Each { unit_sectors: u32, time: Duration },
    /// What an SD card states of its allocation units.
    Stated { unit_sectors: u32, timing: EraseTiming },
}

impl EraseTime {
    /// Returns the limit for a range. Saturates.
    pub(super) fn limit(&self, sector: u64, sectors: u64) -> Duration {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Each { unit_sectors, time } => {
                times(*time, touched(sector, sectors, *unit_sectors)).max(ERASE_MIN)
            }
            Self::Stated { unit_sectors, timing } => {
                timing.limit(touched(sector, sectors, *unit_sectors))
            }
        }
    }
}

/// Returns how many aligned units of `unit` sectors a range touches.
fn touched(sector: u64, sectors: u64, unit: u32) -> u64 {
    let unit = u64::from(unit);
    debug_assert!(unit > 0, "units of no sectors");
    sector.saturating_add(sectors).div_ceil(unit) - sector / unit
}

/// Returns `span` multiplied by `factor`. Saturates.
pub(crate) fn times(span: Duration, factor: u64) -> Duration {
    Duration::from_ns(span.as_ns().saturating_mul(factor))
}
