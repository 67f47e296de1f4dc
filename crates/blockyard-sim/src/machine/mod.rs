//! The virtual machine: processors that do one thing at a time, the cost of each step, the locks
//! that processors wait for, and the completions of polled hardware queues.

pub mod cost;
pub mod cpu;
pub mod lock;
pub mod locks;
pub mod poll;
pub(crate) mod worker;
