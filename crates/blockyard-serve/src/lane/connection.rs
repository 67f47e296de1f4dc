//! One client: what was received and not understood, what is to be sent, what is under way.

use crate::batch::Batch;
use crate::map::Pages;
use blockyard::time::Instant;
use blockyard_wire::nbd::{Handshake, Limits, Request, Tls, Transmission};
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Room for what is received in the handshake.
const HANDSHAKE_BYTES: usize = 4096;
/// Room for what is received at once after it.
pub(super) const INPUT_BYTES: usize = 256 << 10;
/// Payload up to this length is received with other requests; more goes straight to its buffer.
pub(super) const INLINE_BYTES: u64 = 64 << 10;

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
    /// Where it goes, if that is decided: the buffer, where in it, and how much is there.
    pub(super) pages: Option<(Rc<Pages>, usize)>,
    pub(super) received: usize,
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
    /// What is to be sent next.
    pub(super) batch: Box<Batch>,
    pub(super) spare: Option<Box<Batch>>,
    pub(super) is_sending: bool,
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
    pub(super) fn new(fd: OwnedFd, deadline: Instant) -> Self {
        let handshake = Handshake::new(Tls::Off, Limits::DEFAULT);
        let mut batch = Box::<Batch>::default();
        batch.head(|out| out.extend(Handshake::greeting()));
        Self {
            fd,
            stage: Stage::Handshake { handshake, deadline },
            input: Some(vec![0; HANDSHAKE_BYTES].into()),
            from: 0,
            to: 0,
            receiving: Receiving::Nothing,
            has_more: false,
            waits: false,
            write: None,
            batch,
            spare: None,
            is_sending: false,
            jobs: 0,
            is_over: false,
            is_dead: false,
            is_held: false,
            is_listed: false,
        }
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

    /// Whether it can be forgotten: nothing is under way, and nothing will come.
    pub(super) fn is_done(&self) -> bool {
        let is_quiet = self.receiving == Receiving::Nothing && !self.is_sending && self.jobs == 0;
        is_quiet && (self.is_dead || (self.is_over && self.batch.is_empty()))
    }
}
