//! What a job instance asks for, I/O by I/O.
//!
//! A [`Generator`] turns a [`Job`](crate::job::Job) into its sequence of reads, writes, trims and
//! syncs; a [`Pacer`] says how early each may be issued. Both are pure: no clock, no I/O, no
//! allocation per I/O, and the same on every machine for the same seed.
//!
//! # Rules
//!
//! - **W1.** Every I/O lies within the region of its file and is not longer than the job allows.
//! - **W2.** Uniform random offsets of one length fall on each block once before any repeats,
//!   unless the job says `norandommap` or sets `blockalign`. A permutation keeps this, not a map:
//!   memory does not grow with the region.
//! - **W3.** Reads, writes and trims each keep their own place in a sequential pattern, as in fio.
//! - **W4.** Offsets repeat from run to run with `randrepeat` (fio's default) or `randseed`, the
//!   other draws with `allrandrepeat` or `randseed`; what does not repeat follows the run's seed.
//!
//! The sequences are not fio's own: same laws, different numbers.

mod cursor;
mod distribution;
mod generator;
mod length;
mod pacer;
mod permutation;
mod prng;

pub use generator::{Generator, Io, IoOp};
pub use pacer::Pacer;
pub use permutation::Permutation;
pub use prng::Prng;
