//! The states of a session: a client that chooses an export, and one that sends requests.

use super::shared::Visible;
use crate::clients::weight::Weight;
use crate::disk::Disk;
use crate::lane::lent::Lent;
use blockyard::bio::Submitter;
use blockyard::time::Instant;
use blockyard_std::parts::job::Place;
use blockyard_std::parts::map::{Map, Pages, Span};
use blockyard_std::parts::slab::Slab;
use blockyard_wire::nbd::{Agreed, Handshake, Limits, Request, Transmission};
use core::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// The size of the input buffer in the handshake, in bytes.
const HANDSHAKE_BYTES: usize = 4096;
/// The size of the input buffer after the handshake, in bytes.
const INPUT_BYTES: usize = 256 << 10;
/// A payload up to this length is received with other requests. A longer one is received into its
/// [`Target`].
pub(super) const INLINE_BYTES: u64 = 64 << 10;
/// The bytes to receive in one call after a long payload. Usually they are the header of the next
/// long write, whose payload must not arrive in the input buffer: it would have to be copied.
const HEADS_BYTES: usize = 4096;

// The input buffer has room for a header and its inline payload.
const _: () = assert!(INLINE_BYTES + 1024 <= INPUT_BYTES as u64);

#[derive(Debug)]
pub(super) enum Session {
    Handshake(Choosing),
    Transmission(Serving),
}

/// A client that chooses an export.
#[derive(Debug)]
pub(super) struct Choosing {
    pub(super) handshake: Handshake,
    /// The instant at which the client is cut off if it has not chosen.
    pub(super) deadline: Instant,
    /// The exports that the client may choose, as last looked up.
    pub(super) exports: Option<Visible>,
    /// Whether the client has chosen an export whose gate is closed.
    pub(super) waits: bool,
    /// The choice of a client whose disk another lane serves.
    pub(super) chosen: Option<Chosen>,
}

/// The choice of a client whose disk another lane serves.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) agreed: Agreed,
    /// The disk, which an operator may remove before the client arrives at its lane.
    pub(super) disk: Weak<Disk>,
    /// The number of that lane.
    pub(super) home: usize,
}

/// A client that sends requests.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) disk: usize,
    pub(super) transmission: Transmission,
    pub(super) payload: Payload,
    /// Whether the last write was long: the next one is then likely to be long too.
    pub(super) writes_long: bool,
    /// Whether a limit is reached: no request is parsed until a reply has been sent or memory has
    /// been given back.
    pub(super) waits: bool,
    pub(super) requests: u64,
    /// The bytes of reads and writes that have ended.
    pub(super) moved_bytes: u64,
    /// The client as the elevator of the disk knows it.
    pub(super) submitter: Submitter,
    /// The weight of the client, if it has one.
    pub(super) weight: Option<Weight>,
    /// Requests at the disk, by their tokens.
    pub(super) at_disk: Slab<AtDisk>,
    /// Requests at the disk that the client, whose connection is broken, has abandoned.
    pub(super) abandoned: usize,
}

/// A request whose header has arrived, and which waits for memory, lookups or its payload.
#[derive(Debug)]
pub(super) enum Payload {
    /// No request waits.
    None,
    /// A WRITE whose payload has no target yet.
    Announced { request: Request },
    /// A READ that waits for memory.
    Read { request: Request },
    /// A BLOCK_STATUS that waits for the lookups of a further turn.
    Status(Box<Scan>),
    /// A WRITE whose payload is being received into its target. The lane has granted memory for
    /// `granted` bytes; `received` bytes have arrived, the last of them at `since`.
    Landing { request: Request, since: Instant, target: Target, received: usize, granted: usize },
}

#[derive(Debug)]
pub(super) struct AtDisk {
    pub(super) request: Request,
    /// The turn in which its last bytes arrived.
    pub(super) arrived: u64,
}

/// The progress of a BLOCK_STATUS.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) request: Request,
    /// The runs found so far, from the start of the range: the length of each in bytes, and whether
    /// it is data.
    pub(super) runs: Vec<(u64, bool)>,
    pub(super) offset: u64,
}

/// The memory into which a long payload is received.
#[derive(Debug)]
pub(super) enum Target {
    /// A buffer, in which the payload starts after `lead` bytes.
    Buffer { pages: Rc<Pages>, lead: usize },
    /// The disk's own memory, from this byte on ([payload-received-in-place]).
    Disk { map: Arc<Map>, start: usize },
}

impl Session {
    /// Returns the session of the client with the number `id`, which sends requests under the
    /// terms of `agreed`.
    pub(super) fn serving_under(agreed: Agreed, id: u64) -> Self {
        let transmission = Transmission::new(agreed, Limits::DEFAULT);
        Self::Transmission(Serving::new(agreed.export.0, transmission, id))
    }

    pub(super) fn room_bytes(&self) -> usize {
        match self {
            Self::Handshake(_) => HANDSHAKE_BYTES,
            Self::Transmission(_) => INPUT_BYTES,
        }
    }

    /// Returns the limit on bytes to receive in one call, if it is less than the size of the input
    /// buffer.
    pub(super) fn receives_at_most(&self) -> Option<usize> {
        match self {
            Self::Transmission(serving) if serving.writes_long => Some(HEADS_BYTES),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn at_disk(&self) -> usize {
        match self {
            Self::Handshake(_) => 0,
            Self::Transmission(serving) => serving.at_disk.len() + serving.abandoned,
        }
    }

    /// Returns whether a limit is reached ([unread-replies-hold-one-client]), or a gate is closed.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        match self {
            Self::Handshake(choosing) => choosing.waits,
            Self::Transmission(serving) => serving.waits,
        }
    }

    /// Returns the state of a client that sends requests.
    ///
    /// # Panics
    ///
    /// Panics during the handshake.
    #[inline]
    pub(super) fn serving(&mut self) -> &mut Serving {
        match self {
            Self::Transmission(serving) => serving,
            Self::Handshake(_) => unreachable!("requests come after the handshake"),
        }
    }
}

impl Serving {
    pub(super) fn new(disk: usize, transmission: Transmission, id: u64) -> Self {
        // Clients 2^32 apart have one number, and never meet.
        let process = u32::try_from(id % (1 << 32)).expect("a remainder that has 32 bits");
        Self {
            disk,
            transmission,
            payload: Payload::None,
            writes_long: false,
            waits: false,
            requests: 0,
            moved_bytes: 0,
            submitter: Submitter { process, group: 0 },
            weight: None,
            at_disk: Slab::default(),
            abandoned: 0,
        }
    }
}

impl Payload {
    /// Takes the payload out; no payload is awaited afterwards.
    pub(super) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::None)
    }

    /// Returns the instant of the last arrival, if the client has yet to send bytes for which it
    /// holds memory.
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
    /// Writes `bytes` at offset `at` of the payload.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        match self {
            Self::Buffer { pages, lead } => pages.write(lead + at, bytes),
            Self::Disk { map, start } => map.write(start + at, bytes),
        }
    }

    /// Returns a range of the payload as memory for the kernel.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        let (mapping, start): (&Map, _) = match self {
            Self::Buffer { pages, lead } => (pages, *lead),
            Self::Disk { map, start } => (map, *start),
        };
        mapping.span(start + range.start..start + range.end)
    }

    /// Returns the memory as the kernel holds it while it receives.
    pub(super) fn lend(&self) -> Lent {
        match self {
            Self::Buffer { pages, .. } => Lent::Pages { _pages: Rc::clone(pages) },
            Self::Disk { map, .. } => Lent::Map { _map: Arc::clone(map) },
        }
    }

    pub(super) fn place(self) -> Place {
        match self {
            Self::Buffer { pages, lead } => Place::Buffer { pages, lead },
            Self::Disk { .. } => Place::Disk,
        }
    }
}
