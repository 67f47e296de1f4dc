//! Replies: writes headers to the caller's buffer, and says which data to send after them.

use super::super::errno::Errno;
use super::super::handshake::Headers;
use super::super::number::{
    EXTENDED_REPLY_MAGIC, REPLY_FLAG_DONE, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk,
};
use super::super::write::Writer;
use super::charge::Charge;
use super::command::Command;
use super::request::Request;
use super::session::Transmission;

/// The maximum number of bytes that an answer or a part of one writes: an extended header and the
/// position of a hole.
pub const ANSWER_BYTES_MAX: usize = 44;
const OFFSET_BYTES: u64 = 8;
/// The size of a hole's offset and length, in bytes.
const HOLE_BYTES: u64 = 12;
/// The size of an error and of the length of its empty message, in bytes.
const ERROR_BYTES: u64 = 6;

/// The end of a reply.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the answer is to be sent"]
pub struct Answer {
    /// The number of bytes written.
    pub header_bytes: usize,
    /// The number of data bytes to send after them: the rest of a READ after its parts.
    pub data_bytes: u64,
    /// The charge to pass to [`Transmission::sent`] once all bytes have been sent.
    pub charge: Charge,
}

/// A part of a READ, which starts where the last part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// This many bytes follow.
    Data(u32),
    /// This many bytes are zero, and do not follow.
    Hole(u32),
}

impl Transmission {
    /// Ends the reply to `request` ([one-final-reply]). Writes at most [`ANSWER_BYTES_MAX`] bytes
    /// to the front of `out`.
    ///
    /// After a successful READ, everything that its parts did not cover follows as data.
    ///
    /// # Panics
    ///
    /// Panics if `out` is too short, if `result` is a success but the protocol refused the request,
    /// or if the status of a context is missing.
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

    /// Writes the next part of the reply to a READ: at most [`ANSWER_BYTES_MAX`] bytes, to the
    /// front of `out`. Returns their number. Send the data of a [`Part::Data`] after them.
    ///
    /// # Panics
    ///
    /// Panics if `out` is too short, if replies are simple, if `request` is not a READ, if the part
    /// is empty or ends beyond the request, or if the READ must not be fragmented and this is not
    /// all of it ([read-chunks-contiguous]).
    pub fn part(&self, request: &mut Request, part: Part, out: &mut [u8]) -> usize {
        assert!(self.agreed.headers != Headers::Simple, "a simple reply has no parts");
        assert!(request.command() == Some(Command::Read), "only the reply to a READ has parts");
        let (Part::Data(len) | Part::Hole(len)) = part;
        let offset = request.offset() + request.replied;
        request.replied += u64::from(len);
        assert!(len > 0 && request.replied <= request.len(), "a part lies within its request");
        let whole = u64::from(len) == request.len();
        assert!(whole || !request.dont_fragment(), "a READ with DF has one part");
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

    /// Writes a successful reply. Returns the number of data bytes that follow.
    #[inline]
    fn done(&self, request: &Request, writer: &mut Writer<'_>) -> u64 {
        let command = request.command().expect("command of a request that was not refused");
        let left = match command {
            Command::Read => request.len() - request.replied,
            _ => 0,
        };
        let is_complete = command != Command::BlockStatus || request.contexts_left.is_empty();
        assert!(is_complete, "the status of each context precedes the answer");
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

    /// Returns whether success has a simple reply.
    fn is_simple(&self, request: &Request) -> bool {
        match self.agreed.headers {
            Headers::Simple => true,
            Headers::Structured => !request.is_read(),
            Headers::Extended => false,
        }
    }

    /// Writes the header of a chunk with `len_bytes` after it.
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
            writer.u32(u32::try_from(len_bytes).expect("length of a chunk that `check` limited"));
        }
    }
}

fn simple(request: &Request, error: u32, writer: &mut Writer<'_>) {
    writer.u32(SIMPLE_REPLY_MAGIC);
    writer.u32(error);
    writer.u64(request.cookie());
}
