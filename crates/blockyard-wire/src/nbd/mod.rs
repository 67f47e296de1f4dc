//! The server's side of NBD: a [`Handshake`], then a [`Transmission`].
//!
//! ```text
//! received bytes ─► Handshake::receive ─► answers; StartTls, End, or Transmit(Agreed)
//!                                                                       │
//! received bytes ─► Transmission::next ─► Request ─► I/O ─► answer ─► header + data ─► sent
//!                   the payload of a WRITE bypasses it
//! ```
//!
//! Each is a value with one owner. It takes bytes and results, and returns the next step. Sockets,
//! memory, TLS and deadlines belong to the runtime. The handshake copies the options that it
//! parses, and allocates up to a limit. The transmission copies only headers, and does not
//! allocate. The rules are in [`handshake`] and [`transmission`].
//!
//! A runtime must ensure the following:
//!
//! - It offers `CAN_MULTI_CONN` only for an export whose flush on one connection covers the writes
//!   that were answered on all connections.
//! - After [`TransmissionEnd::Disconnected`], it answers the requests in flight, sends the replies,
//!   and closes the connection.
//! - After the header of a successful READ, it sends the data. If it cannot, it closes the
//!   connection.
//! - A write with FUA is durable before its answer. A flush covers every write that was answered
//!   before the flush came.

pub mod context;
pub mod errno;
pub mod export;
pub mod flags;
pub mod handshake;
pub mod limits;
pub mod number;
mod read;
pub mod transmission;
mod write;

pub use context::{BASE_ALLOCATION, ContextSet, MetaContext, STATE_HOLE, STATE_ZERO};
pub use errno::Errno;
pub use export::{BlockSizes, EXPORTS_MAX, Export, ExportError, ExportIndex, Exports};
pub use flags::ExportFlags;
pub use handshake::{Agreed, Handshake, HandshakeEnd, Headers, Step, Tls};
pub use limits::Limits;
pub use transmission::{
    ANSWER_BYTES_MAX, Command, Event, Part, REQUEST_BYTES_MAX, Request, Transmission,
    TransmissionEnd,
};
