//! Recorded I/O, issued again in virtual time.
//!
//! A [`Replay`] is a [`Trace`](blockyard_trace::Trace) with the pace and the place on a device. A
//! [`Player`] hands its records to the tasks of a world. What a thread submitted under one plug is
//! submitted by one call again.

mod calls;
mod limits;
mod options;
mod placing;
mod plan;
mod player;

pub use limits::OUTSTANDING_MAX;
pub use options::{Map, Options, Pace, Speed};
pub use plan::{Replay, ReplayError};
pub use player::{Delivery, Due, Player};
