//! A rig for crashes of a BTT: runs threads in every order within bounds, and at each step visits
//! all states that a crash may leave.
#![allow(dead_code, unused_imports, reason = "each test uses only a part of the rig")]
#![allow(clippy::cast_possible_truncation, reason = "arenas are small")]

mod crash;
mod judge;
mod linux;
mod omit;
mod paths;
mod recorder;
mod run;
mod shape;
mod solo;

pub(crate) use crash::State;
pub(crate) use omit::{Omission, Omissions};
pub(crate) use recorder::{Recorder, Regions};
pub(crate) use run::{Mix, Op, draw, explore, explore_data};
pub(crate) use shape::{Media, Shape, Value};
pub(crate) use solo::Solo;
