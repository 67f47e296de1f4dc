//! `run`: one job under one design.

use blockyard_sim::profile::{Design, Device};

use crate::cli::Run;
use crate::message::Failure;

pub(super) fn run(args: &Run) -> Result<(), Failure> {
    Device::lookup(&args.device)?;
    Design::lookup(&args.design)?;
    Err(Failure::Run("`run` is not built yet".to_owned()))
}
