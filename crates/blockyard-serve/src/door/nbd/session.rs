//! The states of a session: a client that chooses an export, and one that sends requests.

use crate::job::Place;
use crate::map::{Map, Pages, Span};
use crate::slab::Slab;
use blockyard::time::Instant;
use blockyard_wire::nbd::{Handshake, Request, Transmission};
use core::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Room for what is received in the handshake.
const HANDSHAKE_BYTES: usize = 4096;
/// Room for what is received at once after it.
const INPUT_BYTES: usize = 256 << 10;
/// Payload up to this length is received with other requests; longer payload is received at its [`Target`].
pub(super) const INLINE_BYTES: u64 = 64 << 10;
/// Room for the bytes behind a long payload. Usually they are the header of the next long write, whose
/// payload must not arrive here, where it would be copied.
const HEADS_BYTES: usize = 4096;

// A header and its inline payload fit.
const _: () = assert!(INLINE_BYTES + 1024 <= INPUT_BYTES as u64);

/// The state of a session.
#[derive(Debug)]
pub(super) enum Session {
    Handshake(Choosing),
    Transmission(Serving),
}

/// A client that chooses an export.
#[derive(Debug)]
pub(super) struct Choosing {
    pub(super) handshake: Handshake,
    /// When the client is cut off if it has not chosen.
    pub(super) deadline: Instant,
}

/// A client that sends requests.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) disk: usize,
    pub(super) transmission: Transmission,
    pub(super) payload: Payload,
    /// The last write was long, so the next one may be long too.
    pub(super) writes_long: bool,
    /// A limit is reached: no request is parsed until a reply was sent or memory was given back.
    pub(super) waits: bool,
    /// The number of requests so far.
    pub(super) requests: u64,
    /// Requests at the disk, by their tokens.
    pub(super) at_disk: Slab<AtDisk>,
}

/// A request whose header has come, and which waits for memory or for its payload.
#[derive(Debug)]
pub(super) enum Payload {
    /// None is.
    None,
    /// The header has come; the payload has no target yet.
    Announced { request: Request },
    /// A READ, for which there is no memory yet.
    Read { request: Request },
    /// A BLOCK_STATUS, of which these runs are known ([status-in-slices]).
    Status(Box<Scan>),
    /// It is received to its target: of the bytes that the lane granted memory for, so many are there, the last since that instant.
    Landing { request: Request, since: Instant, target: Target, received: usize, granted: usize },
}

/// A request at the disk.
#[derive(Debug)]
pub(super) struct AtDisk {
    pub(super) request: Request,
    /// The turn in which its last bytes arrived.
    pub(super) arrived: u64,
}

/// What is known of the range of a BLOCK_STATUS.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) request: Request,
    /// From the start of the range: the length of each run in bytes, and whether it holds data.
    pub(super) runs: Vec<(u64, bool)>,
    /// Where the next run begins.
    pub(super) offset: u64,
}

/// Where a long payload is received to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A buffer, of which the first `lead` bytes are not its own.
    Buffer { pages: Rc<Pages>, lead: usize },
    /// The disk's own memory, from this byte on ([payload-received-in-place]).
    Disk { map: Arc<Map>, start: usize },
}

impl Session {
    /// The size of the input buffer, in bytes.
    pub(super) fn room_bytes(&self) -> usize {
        match self {
            Self::Handshake(_) => HANDSHAKE_BYTES,
            Self::Transmission(_) => INPUT_BYTES,
        }
    }

    /// The most bytes to receive at once, if less than the room.
    pub(super) fn receives_at_most(&self) -> Option<usize> {
        match self {
            Self::Transmission(serving) if serving.writes_long => Some(HEADS_BYTES),
            _ => None,
        }
    }

    /// Requests at a disk.
    #[inline]
    pub(super) fn at_disk(&self) -> usize {
        match self {
            Self::Handshake(_) => 0,
            Self::Transmission(serving) => serving.at_disk.len(),
        }
    }

    /// Whether a limit is reached ([unread-replies-hold-one-client]).
    #[inline]
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Transmission(Serving { waits: true, .. }))
    }

    /// The state of a client that sends requests.
    ///
    /// # Panics
    ///
    /// In the handshake.
    #[inline]
    pub(super) fn serving(&mut self) -> &mut Serving {
        match self {
            Self::Transmission(serving) => serving,
            Self::Handshake(_) => unreachable!("requests come after the handshake"),
        }
    }
}

impl Serving {
    /// A client of `disk` that has sent no request.
    pub(super) fn new(disk: usize, transmission: Transmission) -> Self {
        Self {
            disk,
            transmission,
            payload: Payload::None,
            writes_long: false,
            waits: false,
            requests: 0,
            at_disk: Slab::new(),
        }
    }
}

impl Payload {
    /// Takes the payload out; no payload is awaited afterwards.
    pub(super) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::None)
    }

    /// Since when no byte has come for which there is memory, if one is awaited.
    pub(super) fn idles_since(&self) -> Option<Instant> {
        match self {
            Self::Landing { since, target: Target::Buffer { .. }, received, granted, .. }
                if received < granted =>
            {
                Some(*since)
            }
            _ => None,
        }
    }
}

impl Target {
    /// Writes `bytes` at `at` of the payload.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        match self {
            Self::Buffer { pages, lead } => pages.write(lead + at, bytes),
            Self::Disk { map, start } => map.write(start + at, bytes),
        }
    }

    /// A range of the payload as memory for the kernel.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        let (mapping, start): (&Map, _) = match self {
            Self::Buffer { pages, lead } => (pages, *lead),
            Self::Disk { map, start } => (map, *start),
        };
        mapping.span(start + range.start..start + range.end)
    }

    /// Where the disk finds the payload.
    pub(super) fn place(self) -> Place {
        match self {
            Self::Buffer { pages, lead } => Place::Buffer { pages, lead },
            Self::Disk { .. } => Place::Disk,
        }
    }
}
