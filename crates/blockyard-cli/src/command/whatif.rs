//! `whatif`: one job under several designs.

use blockyard_sim::profile::{Design, Device};

use crate::cli::Whatif;
use crate::message::Failure;

pub(super) fn whatif(args: &Whatif) -> Result<(), Failure> {
    Device::lookup(&args.device)?;
    args.designs.iter().try_for_each(|design| Design::lookup(design).map(drop))?;
    Err(Failure::Run("`whatif` is not built yet".to_owned()))
}
