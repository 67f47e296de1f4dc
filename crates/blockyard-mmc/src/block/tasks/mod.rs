//! The types of a command queue: its state, the steps in which that state changes, the marks of its
//! tasks, and direct commands. Their behaviour is in [`cqe`](super::cqe).

pub(super) mod change;
pub(super) mod direct_command;
pub(super) mod mark;
pub(super) mod state;
