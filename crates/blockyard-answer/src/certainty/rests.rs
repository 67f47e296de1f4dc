//! The origins of the parameters of a device.

use blockyard_devices::profile::{Basis, Device, Figure};
use serde::Serialize;

/// The number of a device's figures by what they rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rests {
    /// Computed from published measurements.
    pub fitted: usize,
    /// Stated by a document, or a default of Linux.
    pub stated: usize,
    /// Assumed.
    pub assumed: usize,
    /// Assumed, and with a range, so that readings vary them.
    pub varied: usize,
}

impl Rests {
    /// Counts the figures of `device`.
    #[must_use]
    pub fn of(device: &Device) -> Self {
        Self {
            fitted: count(device, |figure| figure.basis() == Basis::Fitted),
            stated: count(device, |figure| figure.basis() == Basis::Stated),
            assumed: count(device, |figure| figure.basis() == Basis::Assumed),
            varied: count(device, |figure| figure.range.is_some()),
        }
    }
}

/// The figures of a device that `is` accepts.
fn count(device: &Device, is: impl Fn(&Figure) -> bool) -> usize {
    device.figures.iter().filter(|of| is(of)).count()
}
