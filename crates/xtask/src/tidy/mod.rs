//! Checks of Blockyard's own source, which its tests apply to the whole repository.
//!
//! - [`tree`] finds the crates of the workspace and the files of their modules.
//! - [`modules`] finds circular dependencies between the files of a crate.
//! - [`rules`] finds the rules that module headers declare, and where they are cited.
//! - [`style`] finds long functions, files and lines, closures that should be functions, and tuples
//!   of variables.
//! - [`ratchet`] compares their numbers with those that are still allowed.
//! - [`count`] counts lines, functions and assertions.
//! - [`report`] prints what the others find.
//!
//! `./ci.sh tidy` prints the counts. `syn` parses the source, and sees no
//! paths inside the arguments of macros.

pub mod count;
pub mod modules;
pub mod ratchet;
pub mod report;
pub mod rules;
pub mod style;
pub mod tree;
