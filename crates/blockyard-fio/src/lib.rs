//! fio's job files, the I/Os that a job asks for, and fio's output.
//!
//! [`job`] reads job files and command lines as fio does, and resolves them to [`Job`](job::Job)s.
//! [`workload`] gives the I/Os of an instance of a job, in fio's order. [`measure`] counts what
//! became of them, and [`output`] writes the figures in fio's layouts. Nothing here knows a device
//! or a queue, and all instants are passed in.

pub mod job;
pub mod measure;
pub mod output;
pub mod workload;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
