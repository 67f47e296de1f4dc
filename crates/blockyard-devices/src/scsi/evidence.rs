//! Evidence of a SCSI host: the load on the port of its target.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::profile::HbaProfile;
use crate::charges::Resource;
use crate::compare::{RunLoad, USED_UP};
use crate::family::{LimitingPart, link};
use blockyard::time::Duration;
use blockyard_text::number::{approximate, ratio};
use core::fmt;
use serde::Serialize;

/// The part of a SCSI host that limits a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HbaLimit {
    /// The link to the device.
    Link {
        /// Utilisation of the link.
        percent: f64,
    },
}

impl LimitingPart for HbaLimit {
    fn is_of_disk(&self) -> bool {
        true
    }

    fn resources(&self, _load: &RunLoad) -> Vec<Resource> {
        vec![Resource::Link]
    }
}

impl fmt::Display for HbaLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Link { percent: used } = self;
        f.write_str(&link(*used))
    }
}

/// What limits a run of this `load` on `hba`, if that is its link.
pub(crate) fn limit(hba: &HbaProfile, load: &RunLoad) -> Option<HbaLimit> {
    let percent = link_percent(hba, load);
    debug_assert!(percent >= 0.0, "a link that is in use for {percent} % of the time");
    (percent >= USED_UP).then_some(HbaLimit::Link { percent })
}

/// The share of the time in which the target's port works. Reads and writes are taken to have their
/// share of the commands by their share of the bytes.
fn link_percent(hba: &HbaProfile, load: &RunLoad) -> f64 {
    let commands_per_byte = ratio(approximate(load.commands), approximate(load.bytes));
    let seconds = seconds_of(load.read_bytes, hba.port_read, hba.link_read, commands_per_byte)
        + seconds_of(load.written_bytes, hba.port_write, hba.link_write, commands_per_byte);
    100.0 * ratio(seconds * approximate(load.bytes_per_s), approximate(load.bytes))
}

/// Seconds for which `bytes` and their commands use the link in one direction.
fn seconds_of(bytes: u64, port: Duration, rate: u64, commands_per_byte: f64) -> f64 {
    let of_commands = commands_per_byte * approximate(port.as_ns()) / 1e9;
    approximate(bytes) * (of_commands + ratio(1.0, approximate(rate)))
}
