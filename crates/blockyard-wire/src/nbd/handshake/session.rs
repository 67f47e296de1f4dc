//! The stages of a handshake: collects the bytes of one message after the other, and passes whole
//! options to the negotiation.

use super::super::export::Exports;
use super::super::limits::Limits;
use super::super::number::{FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, IHAVEOPT, INIT_PASSWD, opt};
use super::super::read::Reader;
use super::agreed::Agreed;
use super::negotiate::Negotiation;
use super::step::{HandshakeEnd, Step, Tls};
use alloc::vec::Vec;

/// The length of the server's greeting, in bytes.
pub const GREETING_BYTES: usize = 18;
/// The length of the client's answer to the greeting, in bytes.
const CLIENT_FLAGS_BYTES: usize = 4;
const OPTION_HEADER_BYTES: usize = 16;

/// The result of [`Handshake::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "bytes that were not taken must be passed again, and the step says what to do"]
pub struct Received {
    /// The number of bytes that were taken. Pass the rest again with the next call. After
    /// [`Step::Transmit`], the rest belongs to the transmission.
    pub taken: usize,
    /// The next step.
    pub step: Step,
}

/// The meaning of the next bytes.
#[derive(Clone, Copy, Debug)]
enum Stage {
    ClientFlags,
    OptionHeader,
    OptionData {
        option: u32,
        len_bytes: usize,
    },
    /// The data of an option that is too long to be kept.
    Skip {
        option: u32,
        left: u32,
    },
    /// Bytes to discard.
    BeforeTls,
    Transmit(Agreed),
    Over(HandshakeEnd),
}

/// The server's side of a handshake. See the [module](super).
#[derive(Clone, Debug)]
pub struct Handshake {
    limits: Limits,
    negotiation: Negotiation,
    /// Whether the client agreed to fixed newstyle: options have replies.
    fixed: bool,
    stage: Stage,
    /// The bytes of this stage so far. The buffer allocates nothing until the first byte.
    buffer: Vec<u8>,
}

impl Handshake {
    /// Starts the handshake of a new connection. Does not allocate.
    #[must_use]
    pub fn new(tls: Tls, limits: Limits) -> Self {
        Self {
            limits,
            negotiation: Negotiation::new(tls, limits),
            fixed: false,
            stage: Stage::ClientFlags,
            buffer: Vec::new(),
        }
    }

    /// Returns the bytes to send before anything is received.
    #[must_use]
    pub fn greeting() -> [u8; GREETING_BYTES] {
        let mut greeting = [0; GREETING_BYTES];
        greeting[..8].copy_from_slice(&INIT_PASSWD.to_be_bytes());
        greeting[8..16].copy_from_slice(&IHAVEOPT.to_be_bytes());
        greeting[16..].copy_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
        greeting
    }

    /// Reports that TLS is running, and that the following bytes came through it.
    ///
    /// # Panics
    ///
    /// Panics if the last step was not [`Step::StartTls`].
    pub fn tls_started(&mut self) {
        assert!(matches!(self.stage, Stage::BeforeTls), "TLS starts after Step::StartTls");
        self.negotiation.tls_started();
        self.stage = Stage::OptionHeader;
    }

    /// Refuses every option except ABORT from now on, because the server is shutting down.
    pub fn shut_down(&mut self) {
        self.negotiation.shut_down();
    }

    /// Returns the last name that the client asked for and that no export had, for a log: its first
    /// 256 bytes, which need not be UTF-8.
    #[must_use]
    pub fn unknown_export(&self) -> Option<&[u8]> {
        self.negotiation.unknown.as_deref()
    }

    /// Takes `bytes` up to the end of one option, and appends its answer to `out`.
    ///
    /// Bytes may be split anywhere. `exports` are those that the client may use now. They may
    /// change between calls, but an export keeps its number, and a number that another export gets
    /// has the same metadata contexts. Allocates memory for options, at most
    /// [`Limits::option_bytes`], and for `out`: one answer, which lists all exports in the case of
    /// LIST.
    pub fn receive(&mut self, bytes: &[u8], exports: &Exports, out: &mut Vec<u8>) -> Received {
        let mut rest = Reader(bytes);
        let step = loop {
            if let Some(step) = self.advance(&mut rest, exports, out) {
                break step;
            }
        };
        Received { taken: bytes.len() - rest.0.len(), step }
    }

    /// Advances one stage. Returns `None` if the next stage can follow immediately.
    fn advance(
        &mut self,
        rest: &mut Reader<'_>,
        exports: &Exports,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        match self.stage {
            Stage::ClientFlags => {
                if !self.fill_buffer(rest, CLIENT_FLAGS_BYTES) {
                    return Some(Step::Receive);
                }
                self.client_flags()
            }
            Stage::OptionHeader => {
                if !self.fill_buffer(rest, OPTION_HEADER_BYTES) {
                    return Some(Step::Receive);
                }
                self.option_header()
            }
            Stage::OptionData { option, len_bytes } => {
                if !self.fill_buffer(rest, len_bytes) {
                    return Some(Step::Receive);
                }
                let data = core::mem::take(&mut self.buffer);
                self.stage = Stage::OptionHeader;
                let step = self.negotiation.option(option, &data, exports, out);
                self.enter(step, rest);
                Some(step)
            }
            Stage::Skip { option, left } => Some(self.skip(option, left, rest, out)),
            Stage::BeforeTls => {
                rest.0 = &[];
                Some(Step::StartTls)
            }
            Stage::Transmit(agreed) => Some(Step::Transmit(agreed)),
            Stage::Over(end) => Some(self.end(end, rest)),
        }
    }

    /// Moves bytes to the buffer until it has `len_bytes`. Returns whether it has.
    fn fill_buffer(&mut self, rest: &mut Reader<'_>, len_bytes: usize) -> bool {
        debug_assert!(self.buffer.len() <= len_bytes, "the buffer holds bytes of one stage");
        let wanted = (len_bytes - self.buffer.len()).min(rest.0.len());
        self.buffer.extend_from_slice(rest.bytes(wanted).expect("no more bytes than are left"));
        self.buffer.len() == len_bytes
    }

    fn client_flags(&mut self) -> Option<Step> {
        let flags = Reader(&self.buffer).u32().expect("gathered client flags");
        self.buffer.clear();
        let fixed = u32::from(FLAG_FIXED_NEWSTYLE);
        let no_zeroes = u32::from(FLAG_NO_ZEROES);
        if flags & !(fixed | no_zeroes) != 0 {
            self.stage = Stage::Over(HandshakeEnd::NotNewstyle);
            return None;
        }
        if flags & fixed != 0 {
            self.fixed = true;
        }
        if flags & no_zeroes != 0 {
            self.negotiation.omit_zeroes();
        }
        self.stage = Stage::OptionHeader;
        None
    }

    fn option_header(&mut self) -> Option<Step> {
        let mut header = Reader(&self.buffer);
        let magic = header.u64().expect("gathered option header");
        let option = header.u32().expect("gathered option header");
        let len_bytes = header.u32().expect("gathered option header");
        self.buffer.clear();
        self.stage = if magic != IHAVEOPT {
            Stage::Over(HandshakeEnd::BadMagic)
        } else if !self.fixed && option != opt::EXPORT_NAME {
            Stage::Over(HandshakeEnd::NotFixed)
        } else if len_bytes <= self.limits.option_bytes {
            let len_bytes = usize::try_from(len_bytes).expect("option that fits into memory");
            Stage::OptionData { option, len_bytes }
        } else if option == opt::EXPORT_NAME || len_bytes > self.limits.skipped_bytes {
            Stage::Over(HandshakeEnd::TooLong)
        } else {
            Stage::Skip { option, left: len_bytes }
        };
        None
    }

    /// Reads the data of a long option to the end, and then answers it ([one-final-option-reply]).
    fn skip(&mut self, option: u32, left: u32, rest: &mut Reader<'_>, out: &mut Vec<u8>) -> Step {
        let now = u32::try_from(rest.0.len()).map_or(left, |here| here.min(left));
        rest.0 = &rest.0[usize::try_from(now).expect("no more bytes than are left")..];
        self.stage = Stage::Skip { option, left: left - now };
        if left > now {
            return Step::Receive;
        }
        self.stage = Stage::OptionHeader;
        let step = self.negotiation.long_option(option, out);
        self.enter(step, rest);
        step
    }

    fn enter(&mut self, step: Step, rest: &mut Reader<'_>) {
        match step {
            Step::Receive | Step::Answer => {}
            Step::StartTls => {
                self.stage = Stage::BeforeTls;
                rest.0 = &[];
            }
            Step::Transmit(agreed) => self.stage = Stage::Transmit(agreed),
            Step::End(end) => {
                self.end(end, rest);
            }
        }
    }

    /// Discards this and all further bytes.
    fn end(&mut self, end: HandshakeEnd, rest: &mut Reader<'_>) -> Step {
        self.stage = Stage::Over(end);
        rest.0 = &[];
        Step::End(end)
    }
}
