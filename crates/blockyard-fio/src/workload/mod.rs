//! The I/Os of a job instance, one at a time.
//!
//! A [`Generator`] turns a [`Job`](crate::job::Job) into its sequence of reads, writes, trims and
//! syncs; a [`Pacer`] gives the earliest time of each. Both are pure: no clock, no I/O, no
//! allocation per I/O. The same seed gives the same sequence on every machine.
//!
//! In a sequential pattern, reads, writes and trims each have their own position, as in fio.
//!
//! # Rules
//!
//! - **[io-in-its-file]** Every I/O begins in the region of its file, or in a zone of the file, and
//!   ends within the file. It is not longer than the job allows. Only an I/O of a job with one
//!   length may end behind the region, as in fio.
//!
//! Uniform random offsets visit each block once before any block repeats, unless the job has
//! `norandommap` or `blockalign`. As in fio, a used block that is drawn again stands for the next
//! free one, so that the last I/Os of a pass are close to each other. Memory grows with the I/Os,
//! up to a bit for each block.
//!
//! Offsets repeat from run to run with `randrepeat` (fio's default) or `randseed`. All other draws
//! repeat with `allrandrepeat` or `randseed`. All remaining draws depend on the seed of the run.
//! With `randrepeat`, each pass repeats the draws of the first. The sequences have fio's
//! distributions but not fio's numbers.

mod cursor;
mod distribution;
mod generator;
mod length;
mod pacer;
mod permutation;
mod prng;
mod progress;
mod random_map;
mod turns;
mod zone;

pub use generator::{Generator, Io, IoOp, SyncCall};
pub use pacer::Pacer;
pub use permutation::Permutation;
pub use prng::Prng;
