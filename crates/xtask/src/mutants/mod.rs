//! Plants faults into a copy of Blockyard's source, and sees which of them the tests catch:
//! `./ci.sh mutants`.
//!
//! - [`fault`] finds every place of a file where a fault can be planted, from the syntax alone.
//! - [`plant`] writes faults into the text of a file, each behind a switch.
//! - [`area`] names the parts of the source that must be tested well, and draws samples of their
//!   faults.
//! - [`equivalent`] reads the list of faults that no test can see.
//! - [`copy`] keeps the copy of the repository, and builds its tests.
//! - [`run`] runs single tests with one fault switched on.
//! - [`report`] is the step: it draws the samples and prints the survivors.
//! - [`session`] builds a sample and runs the tests in stages.
//!
//! All faults of a sample are compiled into one build. `BLOCKYARD_FAULT=17` switches fault 17 on.
//! With the path of a file instead of a number, a test writes the faults there that it reaches, so
//! that only tests which reach a fault run with it.

pub mod area;
pub mod copy;
pub mod equivalent;
pub mod fault;
pub mod plant;
pub mod report;
pub mod run;
pub mod session;
