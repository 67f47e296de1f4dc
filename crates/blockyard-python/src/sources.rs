//! Jobs, devices and designs as Python passes them: a name for messages, and the text.

use blockyard_fio::job::{JobFile, SystemSource, parse_bytes};
use blockyard_devices::profile::{Design, Device, Override};

use crate::refusal::Refusal;

/// A job: its name and the bytes of its file.
pub(crate) type JobText = (String, Vec<u8>);
/// A key of a device's profile, and the value that replaces its own.
pub(crate) type Value = (String, String);
/// A device: its name, its text and the values that replace those of the text.
pub(crate) type DeviceText = (String, String, Vec<Value>);
/// A design: its name and its text, which is empty for `SCHEDULER+HOST`.
pub(crate) type DesignText = (String, String);

pub(crate) fn job((name, bytes): &JobText) -> Result<JobFile, Refusal> {
    Ok(parse_bytes(name, bytes, &SystemSource)?)
}

pub(crate) fn device((name, text, set): &DeviceText) -> Result<Device, Refusal> {
    Ok(Device::parse_with(name, text, &overrides(set))?)
}

pub(crate) fn design((name, text): &DesignText) -> Result<Design, Refusal> {
    Ok(if text.is_empty() { Design::lookup(name)? } else { Design::parse(name, text)? })
}

pub(crate) fn overrides(set: &[Value]) -> Vec<Override> {
    let of = |(key, value): &Value| Override { key: key.clone(), value: value.clone() };
    set.iter().map(of).collect()
}

/// The notes about a job.
pub(crate) fn notes(job: &JobFile) -> impl Iterator<Item = String> {
    job.notes.iter().map(ToString::to_string)
}
