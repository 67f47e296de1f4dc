//! Parses the header of a request.

use super::super::context::{CONTEXTS_MAX, ContextSet, MetaContext};
use super::super::handshake::{Agreed, Headers};
use super::super::number::{EXTENDED_REQUEST_MAGIC, REQUEST_MAGIC, cmd, cmd_flag};
use super::super::read::Reader;
use super::command::Command;

const COMPACT_BYTES: usize = 28;
const EXTENDED_BYTES: usize = 32;
/// The size of the length at the start of BLOCK_STATUS's payload, in bytes.
const STATUS_LENGTH_BYTES: usize = 8;
/// The size of a context's number in that payload, in bytes.
const STATUS_CONTEXT_BYTES: usize = 4;
/// The maximum number of bytes of a request that must be passed in one piece. They do not include
/// the payload of a WRITE.
pub const REQUEST_BYTES_MAX: usize =
    EXTENDED_BYTES + STATUS_LENGTH_BYTES + STATUS_CONTEXT_BYTES * CONTEXTS_MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) flags: u16,
    pub(super) kind: u16,
    pub(super) cookie: u64,
    pub(super) offset: u64,
    /// The length of the request's range, in bytes.
    pub(super) len: u64,
    /// The contexts that BLOCK_STATUS asks for. Empty if its payload is not a list of some that
    /// were agreed on, each once.
    pub(super) contexts: ContextSet,
    /// The length in bytes of the header and of the payload that was parsed with it.
    len_bytes: usize,
    /// The length in bytes of the payload that was not parsed.
    payload_left: u64,
}

pub(super) enum Unread {
    More { at_least: usize },
    BadMagic,
}

impl Header {
    #[inline]
    pub(super) fn parse(bytes: &[u8], agreed: &Agreed) -> Result<Self, Unread> {
        let extended = agreed.headers == Headers::Extended;
        let len_bytes = if extended { EXTENDED_BYTES } else { COMPACT_BYTES };
        let more = Unread::More { at_least: len_bytes };
        let mut rest = Reader(bytes);
        let magic = if extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC };
        if rest.u32().is_some_and(|found| found != magic) {
            return Err(Unread::BadMagic);
        }
        let header = Self::fields(&mut rest, agreed, len_bytes).ok_or(more)?;
        if header.names_contexts() { header.with_contexts(rest, agreed) } else { Ok(header) }
    }

    fn fields(rest: &mut Reader<'_>, agreed: &Agreed, len_bytes: usize) -> Option<Self> {
        let extended = agreed.headers == Headers::Extended;
        let flags = rest.u16()?;
        let kind = rest.u16()?;
        let cookie = rest.u64()?;
        let offset = rest.u64()?;
        let len = if extended { rest.u64()? } else { u64::from(rest.u32()?) };
        // qemu 10 sends extended WRITEs without the flag, but with their payload.
        let has_payload = kind == cmd::WRITE || extended && flags & cmd_flag::PAYLOAD_LEN != 0;
        let payload_left = if has_payload { len } else { 0 };
        let contexts = if payload_left > 0 { ContextSet::EMPTY } else { agreed.contexts };
        Some(Self { flags, kind, cookie, offset, len, contexts, len_bytes, payload_left })
    }

    /// Returns whether the payload is a list of contexts with a possible length.
    fn names_contexts(&self) -> bool {
        let shortest = (STATUS_LENGTH_BYTES + STATUS_CONTEXT_BYTES) as u64;
        let longest = (REQUEST_BYTES_MAX - EXTENDED_BYTES) as u64;
        self.kind == cmd::BLOCK_STATUS && (shortest..=longest).contains(&self.payload_left)
    }

    fn with_contexts(mut self, rest: Reader<'_>, agreed: &Agreed) -> Result<Self, Unread> {
        let payload_bytes = usize::try_from(self.payload_left).expect("payload of a short request");
        let at_least = self.len_bytes + payload_bytes;
        let more = Unread::More { at_least };
        let mut payload = Reader(rest.0.get(..payload_bytes).ok_or(more)?);
        self.len = payload.u64().expect("payload with at least a length");
        self.contexts = named(payload, agreed.contexts).unwrap_or(ContextSet::EMPTY);
        self.len_bytes = at_least;
        self.payload_left = 0;
        Ok(self)
    }

    /// Shrinks the range, which lies within an export, to the blocks of `block` bytes that lie
    /// within it.
    pub(super) fn keep_whole_blocks(&mut self, block: u32) {
        let end = (self.offset + self.len) / u64::from(block) * u64::from(block);
        self.offset = self.offset.next_multiple_of(block.into());
        self.len = end.saturating_sub(self.offset);
    }

    pub(super) fn is_disconnect(&self) -> bool {
        self.kind == cmd::DISC
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    pub(super) fn payload_left(&self) -> u64 {
        self.payload_left
    }

    pub(super) fn data_bytes(&self, command: Command) -> u64 {
        match command {
            Command::Read | Command::Write => self.len,
            _ => 0,
        }
    }
}

/// Returns the contexts in `list`, if each was agreed on and is named once.
fn named(mut list: Reader<'_>, agreed: ContextSet) -> Option<ContextSet> {
    let mut set = ContextSet::EMPTY;
    while !list.0.is_empty() {
        let context = MetaContext(u8::try_from(list.u32()?).ok()?);
        if !agreed.contains(context) || set.contains(context) {
            return None;
        }
        set.insert(context);
    }
    Some(set)
}
