//! The state of a transmission: takes requests and their payload from bytes, within the limits of a
//! connection.

use super::super::context::CONTEXTS_MAX;
use super::super::errno::Errno;
use super::super::handshake::Agreed;
use super::super::limits::Limits;
use super::super::read::Reader;
use super::charge::Charge;
use super::check;
use super::command::Command;
use super::header::{Header, REQUEST_BYTES_MAX, Unread};
use super::request::Request;

/// The result of [`Transmission::next`].
#[derive(Debug)]
#[must_use = "bytes that were not taken must be passed again, and a request must be answered"]
pub struct Next {
    /// The number of bytes that were taken. Pass the rest again with the next call.
    pub taken: usize,
    /// The event that the bytes caused.
    pub event: Event,
}

/// The meaning of received bytes.
#[derive(Debug)]
pub enum Event {
    /// Too few bytes: receive more.
    More {
        /// The number of bytes needed by the next call, including those that were not taken: at
        /// most [`REQUEST_BYTES_MAX`].
        at_least: usize,
    },
    /// The payload of the preceding WRITE is next. Take it from the bytes after the taken ones, or
    /// receive it directly into its place, and report it with [`Transmission::payload_taken`].
    Payload {
        /// The number of bytes of the payload that have not been taken.
        left: u64,
    },
    /// A request to carry out, and then to [`answer`](Transmission::answer).
    Request(Request),
    /// A request that needs no work: [`answer`](Transmission::answer) it with this result.
    Settled(Request, Result<(), Errno>),
    /// Too much is in flight ([no-request-past-limits]): send replies, then call again.
    Wait,
    /// The session reads no further bytes. Answer the requests in flight, send the replies, and
    /// close the connection.
    End(TransmissionEnd),
}

/// The reason why a session reads no further bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransmissionEnd {
    /// The client sent DISC.
    Disconnected,
    /// A request does not start with the magic number.
    BadMagic,
    /// A refused request has too much payload to be read and discarded.
    TooLong,
}

/// The meaning of the next bytes.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Header,
    Payload {
        left: u64,
    },
    /// The payload of a refused request.
    Skip {
        left: u64,
    },
    Over(TransmissionEnd),
}

/// The server's side of a session after the handshake. See the [module](super).
#[derive(Debug)]
pub struct Transmission {
    pub(super) agreed: Agreed,
    limits: Limits,
    stage: Stage,
    shutting_down: bool,
    /// The number of requests in flight: those that were taken and whose replies have not been
    /// sent.
    requests: u32,
    /// The data of these requests, in bytes.
    request_bytes: u64,
}

// A request with the numbers of all contexts is the longest one.
const _: () = assert!(REQUEST_BYTES_MAX == 32 + 8 + 4 * CONTEXTS_MAX);

impl Transmission {
    /// Starts a session.
    ///
    /// # Panics
    ///
    /// Panics if the limits do not permit one request with the maximum data of the export.
    #[must_use]
    pub fn new(agreed: Agreed, limits: Limits) -> Self {
        assert!(limits.requests > 0, "the limits permit no request: raise Limits::requests");
        assert!(
            u64::from(agreed.blocks.maximum) <= limits.request_bytes,
            "the limits permit {} bytes, but a request may have {}: raise Limits::request_bytes",
            limits.request_bytes,
            agreed.blocks.maximum,
        );
        let stage = Stage::Header;
        Self { agreed, limits, stage, shutting_down: false, requests: 0, request_bytes: 0 }
    }

    /// Returns the agreement of the handshake.
    #[must_use]
    pub fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// Returns the number of requests that were taken and whose replies have not been sent.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.requests
    }

    /// Returns the amount of data of these requests, in bytes.
    #[must_use]
    pub fn bytes_in_flight(&self) -> u64 {
        self.request_bytes
    }

    /// Answers every request with ESHUTDOWN from now on.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// Takes the next request from the front of `bytes`, which start after the bytes that the last
    /// call took and the payload that was reported since.
    ///
    /// Bytes may be split anywhere. The call costs a few comparisons, whatever the length of the
    /// request.
    pub fn next(&mut self, bytes: &[u8]) -> Next {
        let mut rest = Reader(bytes);
        self.skip(&mut rest);
        let event = match self.stage {
            Stage::Header => self.request(&mut rest),
            Stage::Payload { left } => Event::Payload { left },
            Stage::Skip { .. } => Event::More { at_least: 1 },
            Stage::Over(end) => {
                rest.0 = &[];
                Event::End(end)
            }
        };
        Next { taken: bytes.len() - rest.0.len(), event }
    }

    /// Returns the number of bytes of the last WRITE's payload that have not been taken.
    #[must_use]
    pub fn payload_left(&self) -> u64 {
        match self.stage {
            Stage::Payload { left } => left,
            _ => 0,
        }
    }

    /// Reports that `bytes` of the payload have been taken.
    ///
    /// # Panics
    ///
    /// Panics if `bytes` exceeds [`payload_left`](Self::payload_left).
    pub fn payload_taken(&mut self, bytes: u64) {
        let left = self.payload_left().checked_sub(bytes).expect("no more than the payload left");
        self.stage = if left == 0 { Stage::Header } else { Stage::Payload { left } };
    }

    /// Discards the rest of the payload as it arrives.
    pub fn skip_payload(&mut self) {
        if let Stage::Payload { left } = self.stage {
            self.stage = Stage::Skip { left };
        }
    }

    /// Reports that a reply has been sent completely, including its data, or will never be sent.
    pub fn sent(&mut self, charge: Charge) {
        debug_assert!(
            self.requests > 0 && charge.bytes <= self.request_bytes,
            "[no-request-past-limits]: a charge is given back once"
        );
        self.requests -= 1;
        self.request_bytes -= charge.bytes;
    }

    /// Discards the payload of a refused request.
    fn skip(&mut self, rest: &mut Reader<'_>) {
        let Stage::Skip { left } = self.stage else { return };
        let here = usize::try_from(left).map_or(rest.0.len(), |left| left.min(rest.0.len()));
        rest.0 = &rest.0[here..];
        let left = left - here as u64;
        self.stage = if left == 0 { Stage::Header } else { Stage::Skip { left } };
    }

    fn request(&mut self, rest: &mut Reader<'_>) -> Event {
        let mut header = match Header::parse(rest.0, &self.agreed) {
            Ok(header) => header,
            Err(Unread::More { at_least }) => return Event::More { at_least },
            Err(Unread::BadMagic) => return self.end(rest, TransmissionEnd::BadMagic),
        };
        if header.is_disconnect() {
            return self.end(rest, TransmissionEnd::Disconnected);
        }
        let checked = match self.shutting_down {
            true => Err(Errno::Shutdown),
            false => check::check(&header, &self.agreed),
        };
        let bytes = checked.map_or(0, |command| header.data_bytes(command));
        debug_assert!(self.request_bytes <= self.limits.request_bytes, "[no-request-past-limits]");
        if self.requests >= self.limits.requests
            || bytes > self.limits.request_bytes - self.request_bytes
        {
            return Event::Wait; // [no-request-past-limits]
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
        if checked == Ok(Command::Trim) {
            // With blocks of 512 bytes, a TRIM of 100 to 1600 takes 512 to 1536.
            header.keep_whole_blocks(self.agreed.blocks.minimum);
        }
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
        Ok(_) if request.len() == 0 => Event::Settled(request, Ok(())),
        Ok(_) => Event::Request(request),
        Err(errno) => Event::Settled(request, Err(errno)),
    }
}
