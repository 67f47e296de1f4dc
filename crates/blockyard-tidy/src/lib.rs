//! Checks of Blockyard's own source, which its tests apply to the whole repository.
//!
//! - [`tree`] finds the crates of the workspace and the files of their modules.
//! - [`modules`] finds circular dependencies between the files of a crate.
//! - [`rules`] finds the rules that module headers declare, and where they are cited.
//! - [`architecture`] makes the rows of modules in docs/ARCHITECTURE.md.
//! - [`count`] counts lines, functions and assertions.
//!
//! `cargo run -p blockyard-tidy` prints the counts. `syn` parses the source, and sees no
//! paths inside the arguments of macros.

pub mod architecture;
pub mod count;
pub mod modules;
pub mod rules;
pub mod tree;
