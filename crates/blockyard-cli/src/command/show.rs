//! `show`: prints the file of a built-in profile.

use std::io::Write;

use blockyard_sim::profile::builtin;

use crate::cli::Show;
use crate::message::Failure;

pub(super) fn show(args: &Show, out: &mut dyn Write) -> Result<(), Failure> {
    Ok(out.write_all(builtin(&args.name)?.text.as_bytes())?)
}
