//! fio's job files, and the I/Os that a job asks for.
//!
//! [`job`] reads job files and command lines as fio does, and resolves them to [`Job`](job::Job)s. [`workload`] gives the I/Os of
//! an instance of a job, in fio's order. Nothing here knows a device, a queue or a clock.

pub mod job;
pub mod workload;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
