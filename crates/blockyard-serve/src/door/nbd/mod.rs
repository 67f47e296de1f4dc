//! The door for NBD clients: a socket, which may carry TLS, and a session of the protocol.
//!
//! ```text
//! socket ─► tls ─► input ─► handshake, parse ─► requests of the lane
//! socket ◄─ tls ◄─ batch ◄─ handshake, answer ◄─ their ends
//! ```
//!
//! [`blockyard_wire`] understands the protocol.
//!
//! # Rules (cited by name)
//!
//! - **[unread-replies-hold-one-client]** A client that does not read its replies delays no other client: nothing is received from it
//!   while its limits are reached, and only its own answers wait.
//! - **[payload-received-in-place]** The payload of a long write is received into the disk's own memory, where the disk says that
//!   nothing can refuse the write any more. A connection that breaks in the middle leaves the write done
//!   in part, as a write without an answer may be; no byte around it changes.
//! - **[nothing-before-tls]** Once a client has asked for TLS, bytes that came before TLS runs are thrown away. From then on
//!   only bytes that came out of TLS are understood.

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
