//! How long a card may be busy after an erase.

use crate::register::ssr::EraseTiming;
use blockyard::time::Duration;

/// The least that an erase is granted, however small.
const ERASE_MIN: Duration = Duration::from_secs(1);

/// How long busy after an erase may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EraseTime {
    /// So long, whatever is erased.
    Fixed(Duration),
    /// So long for each unit that the range touches, but no less than [`ERASE_MIN`].
    Each { unit_sectors: u32, time: Duration },
    /// What an SD card tells of its allocation units.
    Told { unit_sectors: u32, timing: EraseTiming },
}

impl EraseTime {
    /// That of a range. Saturates.
    pub(super) fn limit(&self, sector: u64, sectors: u64) -> Duration {
        match self {
            Self::Fixed(limit) => *limit,
            Self::Each { unit_sectors, time } => {
                times(*time, touched(sector, sectors, *unit_sectors)).max(ERASE_MIN)
            }
            Self::Told { unit_sectors, timing } => {
                timing.limit(touched(sector, sectors, *unit_sectors))
            }
        }
    }
}

/// How many aligned units of `unit` sectors a range touches.
fn touched(sector: u64, sectors: u64, unit: u32) -> u64 {
    let unit = u64::from(unit);
    match sectors {
        0 => 0,
        _ => (sector.saturating_add(sectors - 1)) / unit - sector / unit + 1,
    }
}

/// `span` so many times. Saturates.
pub(crate) fn times(span: Duration, factor: u64) -> Duration {
    Duration::from_ns(span.as_ns().saturating_mul(factor))
}
