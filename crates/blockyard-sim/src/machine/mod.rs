//! The virtual machine: processors that run one thing at a time, what each step costs them, and
//! the locks they wait for.

pub mod cost;
pub mod cpu;
pub mod lock;
pub mod poll;
