//! The door for NBD clients: a socket, which may carry TLS, and a session of the protocol.
//!
//! ```text
//! socket ─► tls ─► input ─► handshake, parse ─► requests of the lane
//! socket ◄─ tls ◄─ batch ◄─ handshake, answer ◄─ their ends
//! ```
//!
//! What a client says is understood by [`blockyard_wire`].
//!
//! # Rules (cited by number in the code)
//!
//! - **L2.** A connection whose client does not read holds nothing but itself: it is not received
//!   from while its limits are reached, and its answers wait with it.
//! - **L5.** The payload of a long write is received to where it belongs, where the disk says that
//!   nothing can refuse the write any more. A connection that breaks in the middle leaves it done
//!   in part, as a write that nobody answered may be; nothing around it is touched.
//! - **L6.** Once a client asked for TLS, nothing that came before it runs is looked at, and nothing
//!   it sends is taken for said under TLS but what came out of it.

mod answer;
mod batch;
mod client;
mod door;
mod export;
mod handshake;
mod input;
mod parse;
mod session;
mod shared;
mod tls;
mod words;

pub(crate) use client::Client;
pub(crate) use export::exports;
pub(crate) use shared::{Shared, Tls};
