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
//! - **[memory-follows-bytes]** A READ takes memory of the lane for all of its data. A long WRITE takes at most as much as has arrived
//!   of it, once more: a header alone holds nothing of the pool.
//! - **[status-in-slices]** A turn of the lane looks up at most [`LOOKUPS_OF_A_TURN`](crate::services::LOOKUPS_OF_A_TURN) runs of data and
//!   holes, for one client. The next turn goes on, with the next client that asks.
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
