//! Checks of Blockyard's own source, which its tests apply to the whole repository.
//!
//! - [`tree`] finds the crates of the workspace and the files of their modules.
//! - [`modules`] finds circular dependencies between the files of a crate.
//! - [`rules`] finds the rules that module headers declare, and where they are cited.
//! - [`count`] counts lines, functions and assertions.
//!
//! `cargo run -p blockyard-tidy` prints the counts. The parser is `syn`: what stands inside the
//! arguments of macros is not seen as paths.

pub mod count;
pub mod modules;
pub mod rules;
pub mod tree;
