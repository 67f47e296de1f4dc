//! Clients before they reach a lane: sockets, certificates, names, and limits.

pub(crate) mod admission;
pub(crate) mod callers;
pub(crate) mod descriptors;
pub(crate) mod listen;
pub(crate) mod peer;
pub(crate) mod reserve;
pub(crate) mod tls;
pub(crate) mod weight;
