//! NBD, the server's side: a [`Handshake`], then a [`Transmission`].
//!
//! ```text
//! received bytes ─► Handshake::receive ─► answers; StartTls, End, or Transmit(Agreed)
//!                                                                       │
//! received bytes ─► Transmission::next ─► Request ─► I/O ─► answer ─► header + data ─► sent
//!                   WRITE payload goes past it, to where it is wanted
//! ```
//!
//! Each is a value with one owner: bytes and results come in, what to do comes out. Sockets, memory,
//! TLS and deadlines are the runtime's. The handshake copies what it must understand and allocates up
//! to a limit; the transmission copies nothing but headers and allocates nothing.
//!
//! The rules are numbered in [`handshake`] (H1–H8) and [`transmission`] (T1–T13), and each has a test
//! of its own. What the runtime must see to:
//!
//! - **R1.** It says `CAN_MULTI_CONN` only of an export whose flush on one connection covers what was
//!   answered on all of them.
//! - **R2.** After [`TransmissionEnd::Disconnected`] it answers what is under way, sends the answers,
//!   and then closes.
//! - **R3.** Once the header of a READ says that it is done its data must follow; where it cannot, the
//!   connection is closed.
//! - **R4.** FUA means durable before the answer; a flush covers every write answered before it came.

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
pub use export::{BlockSizes, Export, ExportError, ExportIndex, Exports};
pub use flags::ExportFlags;
pub use handshake::{Agreed, Handshake, HandshakeEnd, Headers, Step, Tls};
pub use limits::Limits;
pub use transmission::{
    ANSWER_BYTES_MAX, Command, Event, Part, REQUEST_BYTES_MAX, Request, Transmission,
    TransmissionEnd,
};
