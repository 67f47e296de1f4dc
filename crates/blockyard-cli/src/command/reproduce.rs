//! `reproduce`: published experiments, figure beside figure.

use crate::cli::Reproduce;
use crate::message::Failure;

pub(super) fn reproduce(_: &Reproduce) -> Result<(), Failure> {
    Err(Failure::Run("`reproduce` is not built yet".to_owned()))
}
