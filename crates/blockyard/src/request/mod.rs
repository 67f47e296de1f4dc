//! Requests and the bios they carry: pools behind index handles.
//!
//! A [`Request`] is one or more merged bios, of one op and contiguous (a discard may hold several
//! ranges); it is what elevators and drivers see. All memory is reserved when the pools are made:
//! there are as many requests as tags, and as many bios as the queue's configuration says.
//!
//! # Rules
//!
//! - **R1.** A request is idle, staged, in flight or complete, and moves only idle → staged → in
//!   flight → complete → idle; or back from in flight to staged, by a requeue or to wait for a
//!   flush behind its data; or from staged to complete when that flush was all it waited for.
//! - **R2.** A request is on at most one [`List`] at a time; the links are in the request.
//! - **R3.** A bio is in at most one request, and ends once.

mod bios;
mod list;
mod pool;
mod steps;

pub(crate) use bios::{BioId, max_part_sectors, segments_of_part};
pub use bios::{Bios, Ended, Piece};
pub use list::List;
pub use pool::{Request, Requests, StageTimes, State};
pub(crate) use steps::{Step, Steps, data_flags};
