//! Checkers. Each panics with its name in brackets, so that canaries can say which one fired.

pub(crate) mod accounts;
pub(crate) mod cover;
pub(crate) mod ends;
pub(crate) mod merges;
pub(crate) mod progress;
pub(crate) mod waits;
