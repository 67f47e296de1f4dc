//! Evidence of a SCSI host: the load on the port of its target.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::profile::HbaProfile;
use crate::compare::RunLoad;
use blockyard::time::Duration;
use blockyard_text::number::{approximate, ratio};

/// The share of the time in which the target's port works. Reads and writes are taken to have their
/// share of the commands by their share of the bytes.
pub(crate) fn link_percent(hba: &HbaProfile, load: &RunLoad) -> f64 {
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
