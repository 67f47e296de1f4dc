//! `./ci.sh STEP [ARGUMENT...]`: runs a step, or lists the steps.

use std::process::ExitCode;
use xtask::console::complain;
use xtask::steps;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match steps::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure.0);
            ExitCode::FAILURE
        }
    }
}
