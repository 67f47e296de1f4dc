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

/// The payload of a WRITE that is coming.
#[derive(Debug)]
pub(super) enum Payload {
    /// None is.
    None,
    /// The header came at that instant, and nobody decided where the payload goes.
    Announced { request: Request, since: Instant },
    /// It is received to where it goes; so many bytes are there.
    Landing { request: Request, since: Instant, target: Target, received: usize },
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

    /// Since when it keeps memory of the lane, if it does.
    pub(super) fn keeps_since(&self) -> Option<Instant> {
        match self {
            Self::Landing { since, target: Target::Buffer { .. }, .. } => Some(*since),
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
