//! Replies: small headers into the caller's buffer, with the data to be sent behind them named.

use super::super::errno::Errno;
use super::super::handshake::Headers;
use super::super::number::{
    EXTENDED_REPLY_MAGIC, REPLY_FLAG_DONE, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk,
};
use super::super::write::Writer;
use super::{Charge, Command, Request, Transmission};

/// Most bytes one answer, or one part of it, writes: an extended header and the place of a hole.
pub const ANSWER_BYTES_MAX: usize = 44;
/// The offset before data, in bytes.
const OFFSET_BYTES: u64 = 8;
/// Offset and size of a hole, in bytes.
const HOLE_BYTES: u64 = 12;
/// An error and the length of its message, which is empty, in bytes.
const ERROR_BYTES: u64 = 6;

/// The end of a reply.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what it says is to be sent"]
pub struct Answer {
    /// How many bytes were written.
    pub header_bytes: usize,
    /// How many bytes of data are to be sent behind them: what is left of a READ, from where its
    /// parts ended.
    pub data_bytes: u64,
    /// To be given to [`Transmission::sent`] once both have been sent.
    pub charge: Charge,
}

/// A part of a READ, from where the part before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// This many bytes follow.
    Data(u32),
    /// This many bytes are zeroes, and do not follow.
    Hole(u32),
}

impl Transmission {
    /// Ends the reply to `request`. Writes [`ANSWER_BYTES_MAX`] bytes at most to the front of `out`.
    ///
    /// For a READ that is done: whatever its parts have not told follows as data, all of it if there
    /// were none.
    ///
    /// # Panics
    ///
    /// If `out` is too short, a request that the protocol refused is said to be done, or status has
    /// not been told for each context.
    pub fn answer(&self, request: Request, result: Result<(), Errno>, out: &mut [u8]) -> Answer {
        let mut writer = Writer::new(out);
        let data_bytes = match result {
            Ok(()) => self.done(&request, &mut writer),
            Err(errno) => {
                self.failed(&request, request.legal(errno), &mut writer);
                0
            }
        };
        Answer { header_bytes: writer.len_bytes(), data_bytes, charge: request.charge }
    }

    /// A part of the reply to a READ, of which more follows. Writes [`ANSWER_BYTES_MAX`] bytes at most
    /// to the front of `out`, and returns how many. The data of [`Part::Data`] is to be sent behind them.
    ///
    /// # Panics
    ///
    /// If `out` is too short, replies are simple, `request` is no READ, the part is empty or ends
    /// beyond it, or it must not be fragmented and this is not all of it (T11).
    pub fn part(&self, request: &mut Request, part: Part, out: &mut [u8]) -> usize {
        assert!(self.agreed.headers != Headers::Simple, "simple replies have no parts");
        assert!(request.command() == Some(Command::Read), "only reads are told in parts");
        let (Part::Data(len) | Part::Hole(len)) = part;
        let offset = request.offset() + request.replied;
        request.replied += u64::from(len);
        assert!(len > 0 && request.replied <= request.len(), "a part is within its request");
        let whole = u64::from(len) == request.len();
        assert!(whole || !request.dont_fragment(), "this READ is not to be fragmented");
        let mut writer = Writer::new(out);
        match part {
            Part::Data(_) => {
                let len_bytes = OFFSET_BYTES + u64::from(len);
                self.chunk(request, chunk::OFFSET_DATA, false, len_bytes, &mut writer);
                writer.u64(offset);
            }
            Part::Hole(_) => {
                self.chunk(request, chunk::OFFSET_HOLE, false, HOLE_BYTES, &mut writer);
                writer.u64(offset);
                writer.u32(len);
            }
        }
        writer.len_bytes()
    }

    /// Returns how many bytes of data follow.
    #[inline]
    fn done(&self, request: &Request, writer: &mut Writer<'_>) -> u64 {
        let command = request.command().expect("a request that was refused is not done");
        let left = match command {
            Command::Read => request.len() - request.replied,
            _ => 0,
        };
        let told = command != Command::BlockStatus || request.contexts_left.is_empty();
        assert!(told, "status is told for each context");
        if self.is_simple(request) && command != Command::BlockStatus {
            simple(request, 0, writer);
        } else if left > 0 {
            self.chunk(request, chunk::OFFSET_DATA, true, OFFSET_BYTES + left, writer);
            writer.u64(request.offset() + request.replied);
        } else {
            self.chunk(request, chunk::NONE, true, 0, writer);
        }
        left
    }

    fn failed(&self, request: &Request, errno: Errno, writer: &mut Writer<'_>) {
        if self.agreed.headers == Headers::Simple {
            return simple(request, errno.number(), writer);
        }
        self.chunk(request, chunk::ERROR, true, ERROR_BYTES, writer);
        writer.u32(errno.number());
        writer.u16(0);
    }

    /// Whether success is told in a simple reply (T3).
    fn is_simple(&self, request: &Request) -> bool {
        match self.agreed.headers {
            Headers::Simple => true,
            Headers::Structured => !request.is_read(),
            Headers::Extended => false,
        }
    }

    /// The header of a chunk with `len_bytes` behind it.
    pub(super) fn chunk(
        &self,
        request: &Request,
        kind: u16,
        done: bool,
        len_bytes: u64,
        writer: &mut Writer<'_>,
    ) {
        let extended = self.agreed.headers == Headers::Extended;
        writer.u32(if extended { EXTENDED_REPLY_MAGIC } else { STRUCTURED_REPLY_MAGIC });
        writer.u16(if done { REPLY_FLAG_DONE } else { 0 });
        writer.u16(kind);
        writer.u64(request.cookie());
        if extended {
            writer.u64(request.offset());
            writer.u64(len_bytes);
        } else {
            writer.u32(u32::try_from(len_bytes).expect("reads are short enough"));
        }
    }
}

fn simple(request: &Request, error: u32, writer: &mut Writer<'_>) {
    writer.u32(SIMPLE_REPLY_MAGIC);
    writer.u32(error);
    writer.u64(request.cookie());
}
