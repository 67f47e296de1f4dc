//! Requests and the bios they carry: pools behind index handles.
//!
//! A [`Request`] is one or more merged bios of one op, contiguous except that a discard may hold
//! several ranges. Elevators and drivers see requests. All memory is reserved when the pools are
//! made: there are as many requests as tags, and as many bios as the queue's configuration says.
//!
//! # Rules
//!
//! - **[request-life-cycle]** A request is idle, staged, in flight or complete, and moves only idle
//!   → staged → in flight → complete → idle. Two exceptions: a requeue, or a wait for the flush
//!   behind the data, moves it back to staged; and a staged request whose last step was a flush
//!   becomes complete.
//! - **[on-one-list]** A request is on at most one [`List`] at a time. The links are in the
//!   request.
//! - **[bio-ends-once]** A bio is in at most one request, and ends once.

mod bios;
mod list;
mod pool;
mod steps;

pub(crate) use bios::{BioId, max_part_sectors, segments_of_part};
pub use bios::{Bios, Ended, Piece};
pub use list::List;
pub(crate) use pool::Released;
pub use pool::{Request, Requests, StageTimes, State};
pub(crate) use steps::{Step, Steps, data_flags};
