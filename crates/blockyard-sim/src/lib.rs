//! A machine in virtual time: processors, tasks and the page cache around the queueing code of
//! [`blockyard`].
//!
//! ```text
//! blockyard_fio::job -> blockyard_devices::profile::{Device, Design} -> simulate::Simulation ->
//! simulate::Report
//! ```
//!
//! A trace can replace the jobs: pass a [`replay::Replay`] to
//! [`Conditions::replay`](simulate::Conditions::replay).
//!
//! A [`Simulation`](simulate::Simulation) builds a [`World`](world::World) and moves it from event
//! to event. Its queues run the real code. Profiles give the costs of the machine and the device,
//! with the origin of each number. One seed draws everything, and the same seed gives the same
//! report to the last bit.

pub mod fit;
pub mod machine;
pub mod measure;
pub mod page_cache;
pub mod placement;
pub mod replay;
pub mod simulate;
pub mod task;
pub mod world;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
