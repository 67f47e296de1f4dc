//! Transmission: turns bytes into requests, and results into replies.
//!
//! [`Transmission::next`] takes one request from the front of the received bytes; payload never
//! passes through it. A [`Request`] is a unique value, which the caller keeps during the I/O and
//! gives back for the reply. Nothing here allocates. `header` parses requests, `check` is the table
//! of errors, `reply` and `status` write replies.
//!
//! # Rules
//!
//! - **[one-final-reply]** Every request that was taken gets one final reply. A [`Request`] cannot
//!   be copied, and [`Transmission::answer`] consumes it. Replies may be sent in any order, and
//!   cookies mean nothing to the server.
//! - The payload of a refused request is read to the end, because the next request
//!   follows it. No error ends a session, unless the next request cannot be found.
//! - Without structured replies, every reply is simple. With them, a READ never has a
//!   simple reply, not even for an error. With extended headers, no reply is simple.
//! - **[no-request-past-limits]** Past a limit, no request is taken until replies have been *sent*.
//!   DISC is always taken.
//! - **[read-chunks-contiguous]** The chunks of a READ follow each other without a gap, to its end.
//!   With DF there is one chunk.
//!
//! TRIM is advice, so its range need not be aligned. The server gets the minimum blocks that are
//! within the range. Without any, the request succeeds immediately.
//!
//! A legal request for no bytes succeeds immediately. BLOCK_STATUS is the exception, with EINVAL,
//! because its success would have to report something. ENOTSUP is sent only for FAST_ZERO;
//! otherwise it is replaced by EINVAL. Bytes after DISC, or after an invalid magic number, are
//! ignored.
//!
//! # Errors of a request
//!
//! | request | error |
//! |---|---|
//! | a command that the export does not offer | EINVAL |
//! | a flag that is unknown, not offered or not valid for the command | EINVAL |
//! | a write to a read-only export | EPERM |
//! | a range beyond the end of the export | ENOSPC for WRITE and WRITE_ZEROES, otherwise EINVAL |
//! | a range that is not aligned to the minimum block | EINVAL |
//! | a READ that is too long | EOVERFLOW, or EINVAL if replies are simple |
//!
//! If FUA is offered, it is valid for all commands. TRIM takes a range that is not aligned, and so
//! does WRITE_ZEROES with `partial_zeroes`. A command that carries no data may have any length.

mod charge;
mod check;
mod command;
mod header;
mod reply;
mod request;
mod session;
mod status;

pub use charge::Charge;
pub use command::Command;
pub use header::REQUEST_BYTES_MAX;
pub use reply::{ANSWER_BYTES_MAX, Answer, Part};
pub use request::Request;
pub use session::{Event, Next, Transmission, TransmissionEnd};
pub use status::{STATUS_BYTES_MIN, StatusChunk};
