//! The handshake, fixed newstyle: from the first byte of a connection to the choice of an export.
//!
//! [`Handshake::receive`] is given what came from the client and appends what is to be sent; it
//! handles one option a call, so that what it appends is bounded by one answer.
//!
//! # Rules (cited by number in the code)
//!
//! - **H1.** Every option but EXPORT_NAME has exactly one final reply, an ACK or an error, under its
//!   own number; options nobody knows too. Their data is read to its end, whatever it is.
//! - **H2.** STARTTLS forgets all that was agreed before. Bytes that came before TLS runs are
//!   thrown away: who sent them is not known.
//! - **H3.** Where TLS is required nothing but STARTTLS and ABORT is answered before it. After it
//!   nobody is told that it is required.
//! - **H4.** INFO and GO are answered by the same code, with the same words. Nothing follows the ACK
//!   of GO.
//! - **H5.** Contexts are what the last SET_META_CONTEXT chose, none where it failed, and none where
//!   it was for another export than the one that is entered.
//! - **H6.** What can be told only in a structured reply is offered only once those are agreed on.
//!   Extended headers are above structured replies, and nothing leads back from them.
//! - **H7.** EXPORT_NAME cannot be refused: a client that may not have what it asks for is cut off. One
//!   that did not answer to fixed newstyle may send nothing else.
//! - **H8.** What a client repeats is answered once: contexts are sent in the order of the export's
//!   list, each once, however many queries name it.

mod answer;
mod haggle;
mod option;

use super::context::ContextSet;
use super::export::{BlockSizes, ExportIndex, Exports};
use super::flags::ExportFlags;
use super::limits::Limits;
use super::number::{FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, IHAVEOPT, INIT_PASSWD, opt, rep};
use super::read::Reader;
use alloc::vec::Vec;
use answer::Answer;

/// What a server sends first, in bytes.
pub const GREETING_BYTES: usize = 18;
/// The client's answer to the greeting, in bytes.
const CLIENT_FLAGS_BYTES: usize = 4;
/// An option without its data, in bytes.
const OPTION_HEADER_BYTES: usize = 16;

/// Whether a server talks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tls {
    /// Never.
    Off,
    /// If the client asks for it.
    Offered,
    /// Always (H3).
    Required,
}

/// How requests and replies look after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Headers {
    /// Simple replies only.
    Simple,
    /// Structured replies.
    Structured,
    /// Extended requests and replies.
    Extended,
}

/// What the two sides agreed on, and what the chosen export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The chosen export.
    pub export: ExportIndex,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its block sizes.
    pub blocks: BlockSizes,
    /// What the client was told it can do.
    pub flags: ExportFlags,
    /// How requests and replies look.
    pub headers: Headers,
    /// What BLOCK_STATUS answers for.
    pub contexts: ContextSet,
}

/// What [`Handshake::receive`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "bytes that were not taken must be given again, and the step says what to do"]
pub struct Received {
    /// How many of the bytes it took. The rest comes again with the next call, or, after
    /// [`Step::Transmit`], belongs to the transmission.
    pub taken: usize,
    /// What to do now.
    pub step: Step,
}

/// What to do after [`Handshake::receive`]. What was appended is to be sent in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Receive more.
    Receive,
    /// Send the answer, then call again, if only with the bytes that were not taken.
    Answer,
    /// Send the answer, then start TLS, then say so by [`Handshake::tls_started`]. Every byte
    /// received before is thrown away (H2).
    StartTls,
    /// Send the answer, and go on with a [`Transmission`](super::Transmission).
    Transmit(Agreed),
    /// Send the answer, and close the connection.
    End(HandshakeEnd),
}

/// Why a handshake came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandshakeEnd {
    /// The client said ABORT.
    Aborted,
    /// Its first flags are none of ours: a client of the old style, or of another protocol.
    NotNewstyle,
    /// What should be an option does not begin like one.
    BadMagic,
    /// A client without fixed newstyle sent another option than EXPORT_NAME (H7).
    NotFixed,
    /// An option is longer than is even thrown away.
    TooLong,
    /// EXPORT_NAME named an export there is not (H7).
    NoSuchExport,
    /// EXPORT_NAME where TLS is required (H3, H7).
    TlsRequired,
    /// EXPORT_NAME after extended headers were agreed on (H7).
    ExtendedHeaders,
    /// EXPORT_NAME while the server is going away (H7).
    ShuttingDown,
}

/// What has been agreed on: what STARTTLS forgets (H2).
#[derive(Clone, Copy, Debug)]
struct Haggled {
    headers: Headers,
    /// Of the last SET_META_CONTEXT (H5).
    contexts: Option<(ExportIndex, ContextSet)>,
}

impl Haggled {
    const NOTHING: Self = Self { headers: Headers::Simple, contexts: None };
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
enum Stage {
    ClientFlags,
    OptionHeader,
    OptionData {
        option: u32,
        len_bytes: usize,
    },
    /// Data of an option that is too long to be kept.
    Skip {
        option: u32,
        left: u32,
    },
    /// Thrown away (H2).
    BeforeTls,
    Transmit(Agreed),
    Over(HandshakeEnd),
}

/// The server's side of one handshake. See the [module](self).
#[derive(Debug)]
pub struct Handshake {
    limits: Limits,
    tls: Tls,
    tls_runs: bool,
    shutting_down: bool,
    /// Of the client's flags: options have replies; no zeroes after EXPORT_NAME.
    fixed: bool,
    no_zeroes: bool,
    haggled: Haggled,
    stage: Stage,
    /// The bytes of this stage that came so far. Holds no memory until something came.
    buffer: Vec<u8>,
}

impl Handshake {
    /// A connection on which nothing has been said. Allocates nothing.
    #[must_use]
    pub fn new(tls: Tls, limits: Limits) -> Self {
        Self {
            limits,
            tls,
            tls_runs: false,
            shutting_down: false,
            fixed: false,
            no_zeroes: false,
            haggled: Haggled::NOTHING,
            stage: Stage::ClientFlags,
            buffer: Vec::new(),
        }
    }

    /// What to send first, before anything is received.
    #[must_use]
    pub fn greeting() -> [u8; GREETING_BYTES] {
        let mut greeting = [0; GREETING_BYTES];
        greeting[..8].copy_from_slice(&INIT_PASSWD.to_be_bytes());
        greeting[8..16].copy_from_slice(&IHAVEOPT.to_be_bytes());
        greeting[16..].copy_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
        greeting
    }

    /// TLS runs: what comes now came through it.
    ///
    /// # Panics
    ///
    /// If it was not asked for by [`Step::StartTls`].
    pub fn tls_started(&mut self) {
        assert!(matches!(self.stage, Stage::BeforeTls), "TLS starts when the client asked for it");
        self.tls_runs = true;
        self.stage = Stage::OptionHeader;
    }

    /// From now on every option but ABORT is refused, as the server is going away.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// Takes `bytes` up to the end of one option, and appends the answer to it to `out`.
    ///
    /// Bytes may be cut anywhere. `exports` should be the same in every call. Allocates for options
    /// ([`Limits::option_bytes`] at most) and for `out`: one answer, which for LIST has all exports.
    pub fn receive(&mut self, bytes: &[u8], exports: &Exports, out: &mut Vec<u8>) -> Received {
        let mut rest = Reader(bytes);
        let step = loop {
            if let Some(step) = self.advance(&mut rest, exports, out) {
                break step;
            }
        };
        Received { taken: bytes.len() - rest.0.len(), step }
    }

    /// One stage. Nothing if the next can follow at once.
    fn advance(
        &mut self,
        rest: &mut Reader<'_>,
        exports: &Exports,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        match self.stage {
            Stage::ClientFlags => {
                if !self.gather(rest, CLIENT_FLAGS_BYTES) {
                    return Some(Step::Receive);
                }
                self.client_flags()
            }
            Stage::OptionHeader => {
                if !self.gather(rest, OPTION_HEADER_BYTES) {
                    return Some(Step::Receive);
                }
                self.option_header()
            }
            Stage::OptionData { option, len_bytes } => {
                if !self.gather(rest, len_bytes) {
                    return Some(Step::Receive);
                }
                let data = core::mem::take(&mut self.buffer);
                self.stage = Stage::OptionHeader;
                let step = self.haggle(option, &data, exports, out);
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

    /// Moves bytes to the buffer until it has `len_bytes`; whether it has.
    fn gather(&mut self, rest: &mut Reader<'_>, len_bytes: usize) -> bool {
        let wanted = (len_bytes - self.buffer.len()).min(rest.0.len());
        self.buffer.extend_from_slice(rest.bytes(wanted).expect("there are as many"));
        self.buffer.len() == len_bytes
    }

    fn client_flags(&mut self) -> Option<Step> {
        let flags = Reader(&self.buffer).u32().expect("they were gathered");
        self.buffer.clear();
        let (fixed, no_zeroes) = (u32::from(FLAG_FIXED_NEWSTYLE), u32::from(FLAG_NO_ZEROES));
        if flags & !(fixed | no_zeroes) != 0 {
            self.stage = Stage::Over(HandshakeEnd::NotNewstyle);
            return None;
        }
        (self.fixed, self.no_zeroes) = (flags & fixed != 0, flags & no_zeroes != 0);
        self.stage = Stage::OptionHeader;
        None
    }

    fn option_header(&mut self) -> Option<Step> {
        let mut header = Reader(&self.buffer);
        let magic = header.u64().expect("it was gathered");
        let option = header.u32().expect("it was gathered");
        let len_bytes = header.u32().expect("it was gathered");
        self.buffer.clear();
        self.stage = if magic != IHAVEOPT {
            Stage::Over(HandshakeEnd::BadMagic)
        } else if !self.fixed && option != opt::EXPORT_NAME {
            Stage::Over(HandshakeEnd::NotFixed)
        } else if len_bytes <= self.limits.option_bytes {
            let len_bytes = usize::try_from(len_bytes).expect("options are kept in memory");
            Stage::OptionData { option, len_bytes }
        } else if option == opt::EXPORT_NAME || len_bytes > self.limits.skipped_bytes {
            Stage::Over(HandshakeEnd::TooLong)
        } else {
            Stage::Skip { option, left: len_bytes }
        };
        None
    }

    /// H1: the data of an option that is too long is read to its end, then it is answered.
    fn skip(&mut self, option: u32, left: u32, rest: &mut Reader<'_>, out: &mut Vec<u8>) -> Step {
        let now = u32::try_from(rest.0.len()).map_or(left, |here| here.min(left));
        rest.0 = &rest.0[usize::try_from(now).expect("no more than there is")..];
        self.stage = Stage::Skip { option, left: left - now };
        if left > now {
            return Step::Receive;
        }
        if option == opt::SET_META_CONTEXT {
            self.haggled.contexts = None; // H5
        }
        self.stage = Stage::OptionHeader;
        let mut answer = Answer { option, out };
        match self.refusal(option) {
            None if option == opt::ABORT => {
                answer.ack();
                self.end(HandshakeEnd::Aborted, rest)
            }
            None => {
                answer.error(rep::ERR_TOO_BIG, "the option is too long");
                Step::Answer
            }
            Some((error, why)) => {
                answer.error(error, why);
                Step::Answer
            }
        }
    }

    /// Follows the step an option led to.
    fn enter(&mut self, step: Step, rest: &mut Reader<'_>) {
        match step {
            Step::Receive | Step::Answer => {}
            Step::StartTls => {
                self.stage = Stage::BeforeTls;
                self.haggled = Haggled::NOTHING; // H2
                rest.0 = &[];
            }
            Step::Transmit(agreed) => self.stage = Stage::Transmit(agreed),
            Step::End(end) => {
                self.end(end, rest);
            }
        }
    }

    /// Nothing that comes now matters.
    fn end(&mut self, end: HandshakeEnd, rest: &mut Reader<'_>) -> Step {
        self.stage = Stage::Over(end);
        rest.0 = &[];
        Step::End(end)
    }
}
