//! The door for NBD clients: a socket, which may carry TLS, and a session of the protocol.
//!
//! ```text
//! socket ─► tls ─► input ─► handshake, parse ─► requests of the lane
//! socket ◄─ tls ◄─ batch ◄─ handshake, answer ◄─ ended requests
//! ```
//!
//! [`blockyard_wire`] understands the protocol.
//!
//! A READ takes memory of the lane for all of its data. A long WRITE takes memory as its payload
//! arrives, each time at most as much again as has arrived: a header alone holds no memory of the
//! pool.
//!
//! A status is looked up in slices. In each turn, the lane looks up at most
//! [`LOOKUPS_OF_A_TURN`](crate::lane::services::LOOKUPS_OF_A_TURN) runs of data and holes, for one
//! client. The next turn serves the next client that waits for lookups.
//!
//! # Rules (cited by name)
//!
//! - **[unread-replies-hold-one-client]** A client that does not read its replies delays no other
//!   client. While it has reached its limits, nothing is received from it, and only its own answers
//!   wait.
//! - **[payload-received-in-place]** The payload of a long write is received into the disk's own
//!   memory if nothing can refuse the write any more. If the connection then breaks, the write
//!   stays done in part, as a write without an answer may be. No byte outside its range changes.
//! - **[unread-status-is-short]** A client holds at most 100 KiB of answers to BLOCK_STATUS that
//!   were not sent: two batches, each of 32 KiB, other headers and a last status of 8 KiB for each
//!   context.
//! - **[nothing-before-tls]** Once a client has asked for TLS, bytes that arrive before TLS starts
//!   are discarded. From then on, only decrypted bytes are parsed.

mod answer;
mod batch;
mod client;
mod door;
mod export;
mod handshake;
mod input;
mod moved;
mod newcomers;
mod parse;
mod session;
mod shared;
mod tls;
mod words;

pub(crate) use export::exports;
pub(crate) use moved::Newcomer;
pub(crate) use newcomers::NewcomerId;
pub(crate) use shared::{Shared, Tls};
