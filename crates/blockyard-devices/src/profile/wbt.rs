//! The target of writeback throttling in a design: `wbt-latency`.

use blockyard::time::Duration;
use toml::de::DeValue;

use super::linux;
use crate::reader::error::{Problem, ProfileError};
use crate::reader::table::Table;
use crate::reader::value::{Kind, Time};

/// The time in the device that reads may have while writeback is throttled: Linux's `wbt_lat_usec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtLatency {
    /// Writeback is not throttled.
    Off,
    /// 2 ms, and 75 ms at a rotational disk, as in Linux.
    Linux,
    /// This time.
    Target(Duration),
}

/// A time, or the word `off` or `default`.
struct WbtLatencyKind;

impl Kind for WbtLatencyKind {
    type Out = WbtLatency;
    const FIGURE: bool = true;

    fn read(&self, key: &str, value: &DeValue<'_>) -> Result<WbtLatency, Problem> {
        match value.as_str() {
            Some("off") => Ok(WbtLatency::Off),
            Some("default") => Ok(WbtLatency::Linux),
            _ => Time.read(key, value).map(WbtLatency::Target),
        }
    }
}

/// Reads `wbt-latency`. Linux turns throttling off by a time of 0.
pub(super) fn wbt_latency(queue: &Table<'_>) -> Result<WbtLatency, ProfileError> {
    let usual = if linux::THROTTLES_WRITEBACK { WbtLatency::Linux } else { WbtLatency::Off };
    let latency = queue.take_or("wbt-latency", WbtLatencyKind, usual)?;
    if latency == WbtLatency::Target(Duration::ZERO) {
        let words = "`wbt-latency` is above 0: `off` turns writeback throttling off";
        return Err(queue.wrong("wbt-latency", Problem::Contradiction(words)));
    }
    Ok(latency)
}
