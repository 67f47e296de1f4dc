//! What the figures of a device rest on.

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
        let count =
            |is: &dyn Fn(&Figure) -> bool| device.figures.iter().filter(|of| is(of)).count();
        Self {
            fitted: count(&|figure| figure.basis() == Basis::Fitted),
            stated: count(&|figure| figure.basis() == Basis::Stated),
            assumed: count(&|figure| figure.basis() == Basis::Assumed),
            varied: count(&|figure| figure.range.is_some()),
        }
    }
}
