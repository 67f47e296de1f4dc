//! One client: what was received and not understood, what is to be sent, what is under way.

use super::tls::Session;
use crate::batch::Batch;
use crate::job::Place;
use crate::map::{Map, Pages};
use crate::ring::Landing;
use blockyard::time::Instant;
use blockyard_wire::nbd::{Handshake, Limits, Request, Tls, Transmission};
use core::ops::Range;
use std::borrow::Cow;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

/// Room for what is received in the handshake.
const HANDSHAKE_BYTES: usize = 4096;
/// Room for what is received at once after it.
pub(super) const INPUT_BYTES: usize = 256 << 10;
/// Payload up to this length is received with other requests; more goes straight to its [`Target`].
pub(super) const INLINE_BYTES: u64 = 64 << 10;
/// Room for what is received behind a long payload: as a rule the head of the next such write, whose
/// payload shall not be received here and copied.
const HEADS_BYTES: usize = 4096;

// What is waited for has room.
const _: () = assert!(INLINE_BYTES + 1024 <= INPUT_BYTES as u64);

/// Where a session stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// Until this instant at most.
    Handshake { handshake: Handshake, deadline: Instant },
    /// On this disk.
    Transmission { disk: usize, transmission: Transmission },
}

/// A WRITE whose payload is coming.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) request: Request,
    /// Where it goes, if that is decided.
    pub(super) target: Option<Target>,
    /// How much of it is there, in bytes.
    pub(super) received: usize,
    /// When its header came.
    pub(super) since: Instant,
}

/// Where a long payload is received to.
#[derive(Debug)]
pub(super) enum Target {
    /// A buffer, of which the first `lead` bytes are not its own.
    Pages { pages: Rc<Pages>, lead: usize },
    /// The disk's own memory, from this byte on (L5).
    Home { map: Arc<Map>, start: usize },
}

impl Target {
    /// Some of its bytes, from `at` on.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        match self {
            Self::Pages { pages, lead } => pages.write(lead + at, bytes),
            Self::Home { map, start } => map.write(start + at, bytes),
        }
    }

    /// What the kernel is given, and where in that the payload begins.
    pub(super) fn landing(&self) -> (Landing, usize) {
        match self {
            Self::Pages { pages, lead } => (Landing::Pages(Rc::clone(pages)), *lead),
            Self::Home { map, start } => (Landing::Home(Arc::clone(map)), *start),
        }
    }

    /// Where the disk finds it.
    pub(super) fn place(self) -> Place {
        match self {
            Self::Pages { pages, lead } => Place::Pages { pages, lead },
            Self::Home { .. } => Place::Home,
        }
    }
}

/// What is being received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    Nothing,
    Input,
    Payload,
}

/// One client. See the [module](self).
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    pub(super) stage: Stage,
    /// TLS, once it was started.
    pub(super) tls: Option<Box<Session>>,
    /// What was received; away while the kernel writes to it.
    pub(super) input: Option<Rc<[u8]>>,
    /// What of it has not been understood.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) receiving: Receiving,
    /// More was there to be received when something was last.
    pub(super) has_more: bool,
    /// A limit is reached: nothing is understood until something was sent.
    pub(super) waits: bool,
    pub(super) write: Option<Write>,
    /// The last request was a write with a long payload, and the next may be.
    pub(super) writes_long: bool,
    /// What is to be sent next.
    pub(super) batch: Box<Batch>,
    pub(super) spare: Option<Box<Batch>>,
    pub(super) is_sending: bool,
    /// When that was begun, or when a part of it was last known to have gone; and whether it is of
    /// buffers of the lane.
    pub(super) sends_since: Instant,
    pub(super) sends_pages: bool,
    /// Requests there were.
    pub(super) requests: u64,
    /// Why it is over, once it is.
    why: Option<Cow<'static, str>>,
    /// Requests at a disk.
    pub(super) jobs: u32,
    /// Nothing more is read: what is under way is answered, then it is closed.
    pub(super) is_over: bool,
    /// Nothing can be sent any more.
    pub(super) is_dead: bool,
    /// It is on the list of those that wait for memory.
    pub(super) is_held: bool,
    /// It is on the list of those to look after in this turn.
    pub(super) is_listed: bool,
}

impl Connection {
    /// A connection that is to be greeted.
    pub(super) fn new(fd: OwnedFd, deadline: Instant, tls: Tls) -> Self {
        let handshake = Handshake::new(tls, Limits::DEFAULT);
        let mut batch = Box::<Batch>::default();
        batch.head(|out| out.extend(Handshake::greeting()));
        Self {
            fd,
            stage: Stage::Handshake { handshake, deadline },
            tls: None,
            input: Some(vec![0; HANDSHAKE_BYTES].into()),
            from: 0,
            to: 0,
            receiving: Receiving::Nothing,
            has_more: false,
            waits: false,
            write: None,
            writes_long: false,
            batch,
            spare: None,
            is_sending: false,
            sends_since: Instant::ZERO,
            sends_pages: false,
            requests: 0,
            why: None,
            jobs: 0,
            is_over: false,
            is_dead: false,
            is_held: false,
            is_listed: false,
        }
    }

    /// Where in the input the next bytes go.
    pub(super) fn room(&self, input: &[u8]) -> Range<usize> {
        let end = if self.writes_long { self.to + HEADS_BYTES } else { input.len() };
        self.to..end.min(input.len())
    }

    /// Makes room behind what was not understood, in memory that nobody else holds.
    pub(super) fn make_room(&mut self) {
        let len = self.to - self.from;
        let is_handshake = matches!(self.stage, Stage::Handshake { .. });
        let wanted = if is_handshake { HANDSHAKE_BYTES } else { INPUT_BYTES };
        let input = self.input.as_mut().expect("the kernel gave it back");
        match Rc::get_mut(input) {
            Some(bytes) if bytes.len() >= wanted => {
                if self.from > 0 {
                    bytes.copy_within(self.from..self.to, 0);
                }
            }
            _ => {
                let mut bytes = vec![0; wanted];
                bytes[..len].copy_from_slice(&input[self.from..self.to]);
                *input = bytes.into();
            }
        }
        (self.from, self.to) = (0, len);
    }

    /// What comes from now on comes through TLS; what came before was thrown away.
    pub(super) fn start_tls(&mut self, session: Session) {
        assert!(self.batch.is_empty() && !self.is_sending, "the answer was sent without TLS");
        (self.from, self.to) = (0, 0);
        self.tls = Some(Box::new(session));
    }

    /// Nothing more is read of it. The first reason is the one that is told.
    pub(super) fn end(&mut self, why: impl Into<Cow<'static, str>>) {
        self.is_over = true;
        self.why.get_or_insert_with(|| why.into());
    }

    /// Why it is over.
    pub(super) fn why(&self) -> Cow<'static, str> {
        self.why.clone().expect("it is over")
    }

    /// Since when its client lets lie what it has to take, or to send the rest of, if it does. Of what
    /// it has to take that counts which keeps memory of the lane, or `all`.
    pub(super) fn idles_since(&self, all: bool) -> Option<Instant> {
        let sends = self.is_sending && (all || self.sends_pages);
        let keeps = |write: &&Write| matches!(write.target, Some(Target::Pages { .. }));
        let receives = self.write.as_ref().filter(keeps).map(|write| write.since);
        let since = receives.into_iter().chain(sends.then_some(self.sends_since)).min();
        since.filter(|_| !self.is_dead)
    }

    /// Whether there is something to send.
    pub(super) fn has_to_send(&self) -> bool {
        !self.batch.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_to_send())
    }

    /// Opens what came through TLS, for the payload that is awaited or to be understood; whether
    /// there was something.
    ///
    /// # Errors
    ///
    /// TLS cannot go on, or has ended.
    pub(super) fn open(&mut self) -> io::Result<bool> {
        if self.tls.is_none() {
            return Ok(false);
        }
        if let Some(Write { target: Some(target), received, .. }) = &mut self.write {
            let Stage::Transmission { transmission, .. } = &mut self.stage else {
                unreachable!("writes come after the handshake")
            };
            let tls = self.tls.as_mut().expect("it was there");
            let left = usize::try_from(transmission.payload_left()).expect("payload is short");
            let start = *received;
            let bytes = tls.open(left, |at, bytes| target.write(start + at, bytes))?;
            *received += bytes;
            transmission.payload_taken(bytes as u64);
            return Ok(bytes > 0);
        }
        self.make_room();
        let tls = self.tls.as_mut().expect("it was there");
        let input = self.input.as_mut().and_then(Rc::get_mut).expect("there is room");
        let bytes = tls.open_to(&mut input[self.to..])?;
        self.to += bytes;
        Ok(bytes > 0)
    }

    /// Whether it can be forgotten: nothing is under way, and nothing will come.
    pub(super) fn is_done(&self) -> bool {
        let is_quiet = self.receiving == Receiving::Nothing && !self.is_sending && self.jobs == 0;
        is_quiet && (self.is_dead || (self.is_over && !self.has_to_send()))
    }
}
