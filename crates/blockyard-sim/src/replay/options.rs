//! The options of a replay: pace, speed, mapping of addresses, disk.

use core::str::FromStr;

use blockyard::time::Instant;
use blockyard_text::quantity;

/// When a record is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At its own instant, however many are outstanding: an open loop. Each processor of the trace
    /// is a submitter.
    Open,
    /// In the order of the trace, as soon as fewer than this many are outstanding: a closed loop
    /// with one submitter.
    Closed(u32),
    /// After the same delay from its process's previous event as in the trace: think time. Each
    /// process is a submitter. The event is the process's latest issue or completion, and the
    /// process must have no more I/Os outstanding than it had in the trace.
    Think,
}

/// The speed of a replay relative to the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Thousandths; 1000 is the recorded speed.
    thousandths: u64,
}

impl Speed {
    /// The recorded speed.
    pub const RECORDED: Self = Self { thousandths: 1000 };

    /// Converts an instant of the trace to virtual time.
    pub(super) fn scale(self, at: Instant) -> Instant {
        debug_assert!(self.thousandths > 0, "a speed is positive");
        if self == Self::RECORDED {
            return at;
        }
        let scaled = u128::from(at.as_ns()) * 1000 / u128::from(self.thousandths);
        Instant::from_ns(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

/// Parses `2`, `2x` or `0.5x`, with up to three decimals.
impl FromStr for Speed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a factor from 0.001 to 1000000, such as 2x or 0.5x";
        let digits = text.strip_suffix('x').unwrap_or(text);
        let thousandths = quantity::scaled_decimal(digits, 1000);
        let thousandths = thousandths.filter(|factor| (1..=1_000_000_000).contains(factor));
        thousandths.map(|thousandths| Self { thousandths }).ok_or(WRONG)
    }
}

/// The mapping of addresses beyond the end of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Addresses wrap around to the start of the device. Contiguous ranges stay contiguous.
    Wrap,
    /// Addresses are scaled so that the end of the trace's disk becomes the end of the device.
    /// Distances keep their proportions, but contiguous ranges do not stay contiguous.
    Scale,
}

/// The way a trace is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// When a record is issued.
    pub pace: Pace,
    /// The speed of the trace's clock. It has no effect in a closed loop.
    pub speed: Speed,
    /// The mapping of addresses beyond the end; with `None` they are an error.
    pub map: Option<Map>,
    /// The one disk to replay, by name or by number; `None` replays all disks.
    pub disk: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { pace: Pace::Open, speed: Speed::RECORDED, map: None, disk: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor() {
        fn ns(text: &str) -> Result<u64, &str> {
            text.parse::<Speed>().map(|speed| speed.scale(Instant::from_ns(3_000)).as_ns())
        }
        assert_eq!(ns("1"), Ok(3_000));
        assert_eq!(ns("2x"), Ok(1_500));
        assert_eq!(ns("0.5"), Ok(6_000));
        assert_eq!(ns("1.5x"), Ok(2_000));
        for wrong in ["", "x", "0", "-1", "2 x", "1e3", "0.0001", ".5", "0.+1", "2000000"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }
}
