//! A modelled device as what a disk behaves as: where simulator and server meet.

use std::sync::Arc;

use blockyard::driver;
use blockyard::limits::Limits;
use blockyard_serve::Behaviour;
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate;

use crate::message::Failure;

/// A device, and the design that its host follows.
#[derive(Debug)]
pub(super) struct Modelled {
    device: Device,
    design: Design,
    seed: u64,
}

impl Modelled {
    /// The device of this name, or of the file at this path, under `design`.
    pub(super) fn new(name: &str, design: &Design, seed: u64) -> Result<Arc<Self>, Failure> {
        let device = Device::lookup(name)?;
        simulate::live(&device, design, seed)?;
        Ok(Arc::new(Self { device, design: design.clone(), seed }))
    }
}

impl Behaviour for Modelled {
    fn limits(&self) -> &Limits {
        &self.device.limits
    }

    fn depth(&self) -> u16 {
        simulate::depth(&self.device, &self.design)
    }

    fn device(&self) -> Box<dyn driver::Device> {
        let device = simulate::live(&self.device, &self.design, self.seed);
        Box::new(device.expect("it could be had before"))
    }
}
