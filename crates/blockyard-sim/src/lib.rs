//! Blockyard in virtual time: a virtual machine, modelled devices and fio jobs around the queueing
//! code of [`blockyard`].
//!
//! ```text
//! job::parse_file -> profile::{Device, Design} -> simulate::Simulation -> simulate::Report -> answer
//! ```
//!
//! A trace can replace the jobs: pass a [`replay::Trace`] to
//! [`Conditions::replay`](simulate::Conditions::replay).
//!
//! A [`Simulation`](simulate::Simulation) builds a [`World`](world::World) and moves it from event
//! to event. Its queues run the real code. Profiles give the costs of the machine and the device, with
//! the origin of each number. One seed draws everything, and the same seed gives the same answer to the
//! last bit.

pub mod answer;
pub mod data;
pub mod device;
pub mod event;
pub mod fit;
pub mod job;
pub mod log;
pub mod machine;
pub mod measure;
pub mod observe;
pub mod output;
pub mod page_cache;
pub mod parallel;
pub mod placement;
pub mod profile;
pub mod replay;
pub mod reproduce;
pub mod simulate;
pub mod task;
mod words;
pub mod workload;
pub mod world;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
