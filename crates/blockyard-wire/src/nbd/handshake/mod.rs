//! The handshake, fixed newstyle: from the first byte of a connection to the choice of an export.
//!
//! [`Handshake::receive`] takes the bytes of the client and appends the bytes to send. Each call
//! handles one option, so the appended bytes are limited to one answer. `option` parses the data of
//! options, `negotiate` decides about them, and `answer` writes the replies.
//!
//! # Rules
//!
//! - **[one-final-option-reply]** Every option except EXPORT_NAME has exactly one final reply, an
//!   ACK or an error, under its own number. This includes unknown options. The data of an option
//!   are read to the end.
//! - STARTTLS forgets everything that was agreed before. Bytes that arrive before TLS is
//!   running are discarded, because their sender is unknown.
//! - If TLS is required, only STARTTLS and ABORT are answered without it.
//! - **[contexts-of-last-set]** The contexts are those that the last SET_META_CONTEXT chose. There
//!   are none if that option failed, or named another export than the client enters.
//! - A feature that needs structured replies is offered only once they are agreed
//!   on. Extended headers include structured replies, and cannot be given up again.
//!
//! INFO and GO run the same code and give the same answers. Nothing follows the ACK of GO.
//! EXPORT_NAME cannot be refused, so a client that may not enter its export is disconnected. A
//! client without fixed newstyle may send no other option. Contexts are sent in the order of the
//! export's list, each once, however many queries name it.

mod agreed;
mod answer;
mod negotiate;
mod option;
mod session;
mod step;

pub use agreed::{Agreed, Headers};
pub use session::{GREETING_BYTES, Handshake, Received};
pub use step::{HandshakeEnd, Step, Tls};
