//! Clients before they reach a lane: the sockets at which they arrive, their certificates and names, and the limits on them.

pub(crate) mod admission;
pub(crate) mod callers;
pub(crate) mod descriptors;
pub(crate) mod listen;
pub(crate) mod peer;
pub(crate) mod reserve;
pub(crate) mod tls;
