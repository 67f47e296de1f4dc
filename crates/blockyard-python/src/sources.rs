//! Jobs, devices and designs as Python passes them: a name for messages, and the text.

use blockyard_devices::profile::{Design, Device, Override};
use blockyard_fio::job::{JobFile, SystemSource, parse_bytes};

use crate::refusal::Refusal;

/// A job: its name and the bytes of its file.
pub(crate) type JobText = (String, Vec<u8>);
/// A key of a device's profile, and the value that replaces its own.
pub(crate) type Value = (String, String);
/// A device: its name, its text and the values that replace those of the text.
pub(crate) type DeviceText = (String, String, Vec<Value>);
/// A design: its name, its text, which is empty for `SCHEDULER+HOST`, and the values that replace
/// those of the text. Device and design of a point have the same values: each takes its own.
pub(crate) type DesignText = (String, String, Vec<Value>);

pub(crate) fn job((name, bytes): &JobText) -> Result<JobFile, Refusal> {
    Ok(parse_bytes(name, bytes, &SystemSource)?)
}

pub(crate) fn device((name, text, set): &DeviceText) -> Result<Device, Refusal> {
    let set: Vec<_> = overrides(set).into_iter().filter(|of| !of.is_of_design()).collect();
    Ok(Device::parse_with(name, text, &set)?)
}

pub(crate) fn design((name, text, set): &DesignText) -> Result<Design, Refusal> {
    let set: Vec<_> = overrides(set).into_iter().filter(Override::is_of_design).collect();
    Ok(if text.is_empty() {
        Design::lookup_with(name, &set)?
    } else {
        Design::parse_with(name, text, &set)?
    })
}

pub(crate) fn overrides(set: &[Value]) -> Vec<Override> {
    let of = |(key, value): &Value| Override { key: key.clone(), value: value.clone() };
    set.iter().map(of).collect()
}

/// The notes about a job.
pub(crate) fn notes(job: &JobFile) -> impl Iterator<Item = String> {
    job.notes.iter().map(ToString::to_string)
}
