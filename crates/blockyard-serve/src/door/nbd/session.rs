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
/// Payload up to this length is received with other requests; more goes straight to its [`Target`].
pub(super) const INLINE_BYTES: u64 = 64 << 10;
/// Room for what is received behind a long payload: as a rule the head of the next such write, whose
/// payload shall not be received here and copied.
const HEADS_BYTES: usize = 4096;

// What is waited for has room.
const _: () = assert!(INLINE_BYTES + 1024 <= INPUT_BYTES as u64);

/// Where a session stands.
#[derive(Debug)]
pub(super) enum Session {
    Handshake(Choosing),
    Transmission(Serving),
}

/// A client that chooses an export.
#[derive(Debug)]
pub(super) struct Choosing {
    pub(super) handshake: Handshake,
    /// Until when it may.
    pub(super) deadline: Instant,
}

/// A client that sends requests.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) disk: usize,
    pub(super) transmission: Transmission,
    pub(super) payload: Payload,
    /// The last write was long, and the next may be.
    pub(super) writes_long: bool,
    /// A limit is reached: nothing is understood until something was sent, or given back.
    pub(super) waits: bool,
    /// Requests there were.
    pub(super) requests: u64,
    /// Requests at the disk, by their tokens.
    pub(super) at_disk: Slab<Request>,
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
    /// Room that is made for what is received.
    pub(super) fn room_bytes(&self) -> usize {
        match self {
            Self::Handshake(_) => HANDSHAKE_BYTES,
            Self::Transmission(_) => INPUT_BYTES,
        }
    }

    /// How much of that is received to at once, where that is less.
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

    /// That of requests.
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
    /// A client of `disk` that has asked for nothing.
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
    /// Takes it out: none is awaited from now on.
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
    /// Some of its bytes, from `at` on.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        match self {
            Self::Buffer { pages, lead } => pages.write(lead + at, bytes),
            Self::Disk { map, start } => map.write(start + at, bytes),
        }
    }

    /// A range of the payload's bytes, for the kernel.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        let (mapping, start): (&Map, _) = match self {
            Self::Buffer { pages, lead } => (pages, *lead),
            Self::Disk { map, start } => (map, *start),
        };
        mapping.span(start + range.start..start + range.end)
    }

    /// Where the disk finds it.
    pub(super) fn place(self) -> Place {
        match self {
            Self::Buffer { pages, lead } => Place::Buffer { pages, lead },
            Self::Disk { .. } => Place::Disk,
        }
    }
}
