//! The steps of `./ci.sh`, and the tools that only they use.
//!
//! - [`steps`] has the table of all steps, and a function for each.
//! - [`command`] runs the programs of a step, and prints each before it runs.
//! - [`console`] prints the lines of a step and reports the checks that did not run.
//! - [`install`] finds the programs that a step needs, and installs those that are missing.
//! - [`project`] names the packages, the folders and the lists of targets.
//! - [`tidy`] checks the source of the whole repository.
//! - [`mutants`] plants faults into the source, and finds those that no test catches.
//!
//! `ci.sh` builds this crate and starts it in the root of the repository, with `CARGO_TARGET_DIR`
//! set.

pub mod command;
pub mod console;
pub mod install;
pub mod mutants;
pub mod project;
pub mod steps;
pub mod tidy;
