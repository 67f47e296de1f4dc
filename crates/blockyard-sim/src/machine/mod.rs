//! The virtual machine: processors that run one thing at a time, the cost of each step, the locks for which
//! processors wait, and the completions of polled hardware queues.

pub mod cost;
pub mod cpu;
pub mod lock;
pub mod poll;
