//! Disks that behave like a modelled device. This module joins models and server.

use std::sync::Arc;

use blockyard::driver;
use blockyard::limits::Limits;
use blockyard_devices::live::Live;
use blockyard_devices::pairing;
use blockyard_devices::profile::{Design, Device, FaultRules, NoCard};
use blockyard_serve::Behaviour;

use crate::message::Failure;

/// A device with the design of its host.
#[derive(Debug)]
pub(super) struct Modelled {
    device: Device,
    design: Design,
    seed: u64,
}

impl Modelled {
    /// Returns the built-in device of this name, or the device in the file at this path, under
    /// `design` and with the `faults` of its card and host.
    pub(super) fn new(
        name: &str,
        design: &Design,
        faults: Option<&FaultRules>,
        seed: u64,
    ) -> Result<Arc<Self>, Failure> {
        let mut device = Device::lookup(name)?;
        if let Some(faults) = faults {
            device = faults.strike(&device).map_err(|NoCard| no_card(faults))?.into_owned();
        }
        Live::under(&device, design, seed)?;
        let device = device.under(design).into_owned();
        Ok(Arc::new(Self { device, design: design.clone(), seed }))
    }
}

/// Returns the failure that `faults` has faults of a card while the disk does not behave like a
/// card.
pub(super) fn no_card(faults: &FaultRules) -> Failure {
    let words = "`[card]` and `[host]` only work with --as an eMMC or SD device";
    Failure::Input(format!("{}: {words}", faults.name))
}

impl Behaviour for Modelled {
    fn limits(&self) -> &Limits {
        &self.device.limits
    }

    fn depth(&self) -> u16 {
        pairing::depth(&self.device, &self.design)
    }

    fn device(&self) -> Box<dyn driver::Device> {
        let device = Live::under(&self.device, &self.design, self.seed);
        Box::new(device.expect("a model that was built before should build again"))
    }
}
