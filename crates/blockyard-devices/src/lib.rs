//! Modelled block devices: a driver on one side, events in virtual time on the other.
//!
//! ```text
//! profile::Device (a file with its figures) -> Model -> world, or live::Live in real time
//! ```
//!
//! A [`profile`] is the data of a device or of a design, with the origin of each number. A
//! [`Model`] is what a profile of a device builds, and [`pairing`] says which designs suit it.
//! [`terms`] says how a machine drives it, [`stack`] puts layers over it, [`live`] drives one in
//! real time and without a world, and [`data`] keeps what was written and checks what is read.

pub mod activity;
mod btt;
mod cache;
pub mod charges;
pub mod compare;
pub mod counters;
pub(crate) mod crosspoint;
pub mod data;
pub(crate) mod disk;
pub mod event;
mod families;
mod family;
#[cfg(test)]
mod fixed;
pub(crate) mod flash;
pub mod fronts;
pub mod knobs;
pub mod live;
pub mod load;
mod machine;
pub mod medium;
pub mod mmc;
mod model;
pub mod null;
pub mod pairing;
pub mod pmem;
#[cfg(test)]
mod probe;
pub mod profile;
mod reader;
pub mod scsi;
pub mod stack;
pub mod tables;
pub mod terms;
pub(crate) mod volume;

pub use families::{FamilyEvidence, FamilyFigures, FamilyLimit, FamilyReport, Model};
pub use family::{Explained, Limit, LimitingPart, Queues};
pub use terms::{DeviceEvent, Events};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
