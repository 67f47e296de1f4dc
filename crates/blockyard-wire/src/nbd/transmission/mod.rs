//! Transmission: requests from bytes, replies to bytes.
//!
//! [`Transmission::next`] reads one request from the front of what was received; payload never
//! passes through it. A [`Request`] is a value that exists once: it is kept while its I/O is under
//! way and given back for the reply. Nothing here allocates.
//!
//! # Rules (cited by number in the code)
//!
//! - **T1.** A request that was taken has one final reply. A [`Request`] cannot be copied, and
//!   [`Transmission::answer`] consumes it. Replies may come in any order; cookies are not looked at.
//! - **T2.** Payload of a request that is refused is read to its end: the next request is behind it. No
//!   error ends a session; only what makes the next request impossible to find does.
//! - **T3.** Without structured replies every reply is simple. With them a READ never has a simple
//!   one, not even for an error. With extended headers nothing has.
//! - **T4.** A command that is not offered, a flag that is unknown, not offered or not of this command:
//!   EINVAL. FUA is of every command where it is offered.
//! - **T5.** Where nothing may be written: EPERM.
//! - **T6.** Beyond the end: ENOSPC for WRITE and WRITE_ZEROES, EINVAL for the others. Off the minimum
//!   block: EINVAL.
//! - **T7.** More than is read at once: EOVERFLOW; EINVAL where replies are simple. What carries no
//!   data may be of any length.
//! - **T8.** Without a byte to work on, what is legal succeeds at once. BLOCK_STATUS, whose success
//!   would have to tell something, is EINVAL.
//! - **T9.** ENOTSUP is an answer to FAST_ZERO only; elsewhere it is sent as EINVAL.
//! - **T10.** Past a limit no request is taken, until replies have been *sent*. DISC is taken always.
//! - **T11.** Chunks of a READ follow each other without gap, to its end; with DF there is one.
//! - **T12.** Of status: see [`StatusChunk`].
//! - **T13.** What comes behind DISC, or behind what cannot be understood, is not looked at.

mod check;
mod header;
mod reply;
mod request;
mod status;

pub use reply::{ANSWER_BYTES_MAX, Answer, Part};
pub use request::{Command, Request};
pub use status::{STATUS_BYTES_MIN, StatusChunk};

use super::context::CONTEXTS_MAX;
use super::errno::Errno;
use super::handshake::Agreed;
use super::limits::Limits;
use super::read::Reader;
use header::Header;
pub use header::REQUEST_BYTES_MAX;

/// What [`Transmission::next`] found.
#[derive(Debug)]
#[must_use = "bytes that were not taken must be given again, and a request must be answered"]
pub struct Next {
    /// How many of the bytes it took. The rest comes again with the next call.
    pub taken: usize,
    /// What it found there.
    pub event: Event,
}

/// What was found in the bytes received.
#[derive(Debug)]
pub enum Event {
    /// More must be received, until there are this many bytes: [`REQUEST_BYTES_MAX`] or less.
    More {
        /// Bytes to call again with, those not taken included.
        at_least: usize,
    },
    /// The payload of the WRITE that came before is next: take it from behind what was taken, or
    /// receive it where it shall go, and say so by [`Transmission::payload_taken`].
    Payload {
        /// Bytes of it that are still to come.
        left: u64,
    },
    /// Something to do; [`answer`](Transmission::answer) it when it is done.
    Request(Request),
    /// Nothing to do: [`answer`](Transmission::answer) it with this.
    Settled(Request, Result<(), Errno>),
    /// Too much is under way (T10): send replies, then call again.
    Wait,
    /// Nothing more is read. Answer what is under way, send it, and close the connection.
    End(TransmissionEnd),
}

/// Why nothing more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransmissionEnd {
    /// The client said DISC.
    Disconnected,
    /// What should be a request does not begin like one.
    BadMagic,
    /// A request that is refused has more payload than is even thrown away.
    TooLong,
}

/// What one request holds of the limits, from when it was taken until its reply was sent (T10).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is not given back is missing for ever"]
pub struct Charge {
    bytes: u64,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Header,
    Payload {
        left: u64,
    },
    /// Payload of a request that was refused (T2).
    Skip {
        left: u64,
    },
    Over(TransmissionEnd),
}

/// The server's side of one session after its handshake. See the [module](self).
#[derive(Debug)]
pub struct Transmission {
    agreed: Agreed,
    limits: Limits,
    stage: Stage,
    shutting_down: bool,
    /// What is under way: taken, and its reply not sent.
    requests: u32,
    request_bytes: u64,
}

// A request with the names of all contexts is the longest there is.
const _: () = assert!(REQUEST_BYTES_MAX == 32 + 8 + 4 * CONTEXTS_MAX);

impl Transmission {
    /// A session on which nothing has been asked.
    ///
    /// # Panics
    ///
    /// If the limits do not allow one request, with the most data the export takes at once.
    #[must_use]
    pub fn new(agreed: Agreed, limits: Limits) -> Self {
        assert!(limits.requests > 0, "without a request there is no session");
        assert!(
            u64::from(agreed.blocks.maximum) <= limits.request_bytes,
            "one request of the largest size must be allowed"
        );
        let stage = Stage::Header;
        Self { agreed, limits, stage, shutting_down: false, requests: 0, request_bytes: 0 }
    }

    /// What was agreed on in the handshake.
    #[must_use]
    pub fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// How many requests have been taken and their replies not sent.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.requests
    }

    /// How many bytes of data they have.
    #[must_use]
    pub fn bytes_in_flight(&self) -> u64 {
        self.request_bytes
    }

    /// From now on every request is answered by ESHUTDOWN.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// The next request at the front of `bytes`, which begin where the last call stopped and where
    /// payload said to be taken ends.
    ///
    /// Bytes may be cut anywhere. A few comparisons, whatever the length of what is asked for.
    pub fn next(&mut self, bytes: &[u8]) -> Next {
        let mut rest = Reader(bytes);
        self.skip(&mut rest);
        let event = match self.stage {
            Stage::Header => self.request(&mut rest),
            Stage::Payload { left } => Event::Payload { left },
            Stage::Skip { .. } => Event::More { at_least: 1 },
            Stage::Over(end) => {
                rest.0 = &[]; // T13
                Event::End(end)
            }
        };
        Next { taken: bytes.len() - rest.0.len(), event }
    }

    /// Bytes of payload of the last WRITE that are still to come.
    #[must_use]
    pub fn payload_left(&self) -> u64 {
        match self.stage {
            Stage::Payload { left } => left,
            _ => 0,
        }
    }

    /// `bytes` of the payload have been taken.
    ///
    /// # Panics
    ///
    /// If that is more than [`payload_left`](Self::payload_left).
    pub fn payload_taken(&mut self, bytes: u64) {
        let left = self.payload_left().checked_sub(bytes).expect("no more payload was to come");
        self.stage = if left == 0 { Stage::Header } else { Stage::Payload { left } };
    }

    /// Nobody wants the payload that is still to come: [`next`](Self::next) throws it away.
    pub fn skip_payload(&mut self) {
        if let Stage::Payload { left } = self.stage {
            self.stage = Stage::Skip { left };
        }
    }

    /// A reply was sent to its last byte, data included, or will never be.
    pub fn sent(&mut self, charge: Charge) {
        self.requests -= 1;
        self.request_bytes -= charge.bytes;
    }

    /// T2.
    fn skip(&mut self, rest: &mut Reader<'_>) {
        let Stage::Skip { left } = self.stage else { return };
        let here = usize::try_from(left).map_or(rest.0.len(), |left| left.min(rest.0.len()));
        rest.0 = &rest.0[here..];
        let left = left - here as u64;
        self.stage = if left == 0 { Stage::Header } else { Stage::Skip { left } };
    }

    fn request(&mut self, rest: &mut Reader<'_>) -> Event {
        let header = match Header::parse(rest.0, &self.agreed) {
            Ok(header) => header,
            Err(header::Unread::More { at_least }) => return Event::More { at_least },
            Err(header::Unread::BadMagic) => return self.end(rest, TransmissionEnd::BadMagic),
        };
        if header.is_disconnect() {
            return self.end(rest, TransmissionEnd::Disconnected);
        }
        let checked = match self.shutting_down {
            true => Err(Errno::Shutdown),
            false => check::check(&header, &self.agreed),
        };
        let bytes = checked.map_or(0, |command| header.data_bytes(command));
        if self.requests >= self.limits.requests
            || bytes > self.limits.request_bytes - self.request_bytes
        {
            return Event::Wait; // T10
        }
        if checked.is_err() && header.payload_left() > u64::from(self.limits.skipped_bytes) {
            return self.end(rest, TransmissionEnd::TooLong);
        }
        rest.0 = &rest.0[header.len_bytes()..];
        self.requests += 1;
        self.request_bytes += bytes;
        self.stage = match header.payload_left() {
            0 => Stage::Header,
            left if checked.is_ok() => Stage::Payload { left },
            left => Stage::Skip { left },
        };
        event(Request::new(&header, checked, Charge { bytes }), checked)
    }

    fn end(&mut self, rest: &mut Reader<'_>, end: TransmissionEnd) -> Event {
        self.stage = Stage::Over(end);
        rest.0 = &[];
        Event::End(end)
    }
}

fn event(request: Request, checked: Result<Command, Errno>) -> Event {
    match checked {
        Ok(Command::Flush) => Event::Request(request),
        Ok(_) if request.len() == 0 => Event::Settled(request, Ok(())), // T8
        Ok(_) => Event::Request(request),
        Err(errno) => Event::Settled(request, Err(errno)),
    }
}
