//! Chunks of block status.

use super::super::context::MetaContext;
use super::super::handshake::Headers;
use super::super::number::{DESCRIPTORS_MAX, chunk};
use super::super::write::Writer;
use super::command::Command;
use super::request::Request;
use super::session::Transmission;

/// The minimum size of a buffer for a chunk of status, in bytes: the header and one descriptor,
/// both extended.
pub const STATUS_BYTES_MIN: usize = 56;
/// The longest extent of a compact descriptor, in bytes: a multiple of every minimum block.
const COMPACT_EXTENT_MAX: u64 = 0xffff_0000;

const _: () = assert!(STATUS_BYTES_MIN == 40 + 16, "an extended header and descriptor");

/// A descriptor that may still be extended.
#[derive(Clone, Copy, Debug)]
struct Extent {
    len: u64,
    state: u32,
}

/// The status of a range in one context, as extents from its start:
///
/// - Neighbours with the same state form one descriptor. No descriptor is empty.
/// - No extent ends beyond the export, or starts after the end of the requested range.
/// - With REQ_ONE there is one descriptor, which does not exceed the requested range.
/// - There are at most 2^20 descriptors, and no more than the buffer has room for.
///
/// Extents that do not fit are omitted, and a client asks again from the first of them on.
#[derive(Debug)]
#[must_use = "a chunk must be finished"]
pub struct StatusChunk<'a> {
    transmission: &'a Transmission,
    request: &'a Request,
    context: MetaContext,
    reported_max: u64,
    /// The number of bytes reported, including the last extent.
    reported: u64,
    /// The last extent, which is not written yet.
    last: Option<Extent>,
    full: bool,
    count: u32,
    head: &'a mut [u8],
    descriptors: Writer<'a>,
}

impl Transmission {
    /// Starts the chunk for `context`. The chunk fills the front of `out`, which should have room
    /// for the wanted number of descriptors, 16 bytes each, and must have at least
    /// [`STATUS_BYTES_MIN`] bytes.
    ///
    /// # Panics
    ///
    /// Panics if `out` is too short, if `request` is not a BLOCK_STATUS, or if `context` is not one
    /// of [`Request::contexts_left`].
    pub fn status<'a>(
        &'a self,
        request: &'a mut Request,
        context: MetaContext,
        out: &'a mut [u8],
    ) -> StatusChunk<'a> {
        assert!(out.len() >= STATUS_BYTES_MIN, "a buffer for a header and one descriptor");
        assert!(request.command() == Some(Command::BlockStatus), "only BLOCK_STATUS has a status");
        assert!(request.contexts_left.contains(context), "each context is reported once");
        request.contexts_left.remove(context);
        let to_end = self.agreed.size_bytes - request.offset();
        let reported_max = if request.wants_one() { request.len() } else { to_end };
        let head_bytes = if self.agreed.headers == Headers::Extended { 40 } else { 24 };
        let (head, descriptors) = out.split_at_mut(head_bytes);
        StatusChunk {
            transmission: self,
            request,
            context,
            reported_max,
            reported: 0,
            last: None,
            full: false,
            count: 0,
            head,
            descriptors: Writer::new(descriptors),
        }
    }
}

impl StatusChunk<'_> {
    /// Adds an extent of `len_bytes` in `state`. Returns whether more extents are wanted. If not,
    /// further extents are ignored.
    ///
    /// # Panics
    ///
    /// Panics if `len_bytes` is 0.
    pub fn push(&mut self, len_bytes: u64, state: u32) -> bool {
        assert!(len_bytes > 0, "an extent is not empty");
        debug_assert!(self.reported <= self.reported_max, "no extent ends beyond the range");
        if self.full {
            return false;
        }
        let len = len_bytes.min(self.reported_max - self.reported);
        match self.last {
            Some(last) if last.state == state => self.set_last(last.len, len, state),
            Some(last) => {
                if !self.has_room_for_two() {
                    self.full = true;
                    return false;
                }
                self.write(last);
                self.set_last(0, len, state);
            }
            None => self.set_last(0, len, state),
        }
        self.full |= self.reported >= self.request.len().min(self.reported_max);
        !self.full
    }

    /// Ends the chunk. Returns the number of bytes of `out` that it fills.
    ///
    /// # Panics
    ///
    /// Panics if no extent was added.
    #[must_use]
    pub fn finish(mut self) -> usize {
        let last = self.last.take().expect("at least one extent");
        self.write(last);
        let extended = self.is_extended();
        let len_bytes = (self.descriptors.len_bytes() + if extended { 8 } else { 4 }) as u64;
        let kind = if extended { chunk::BLOCK_STATUS_EXT } else { chunk::BLOCK_STATUS };
        let mut head = Writer::new(self.head);
        self.transmission.chunk(self.request, kind, false, len_bytes, &mut head);
        head.u32(u32::from(self.context.0));
        if extended {
            head.u32(self.count);
        }
        head.len_bytes() + self.descriptors.len_bytes()
    }

    /// Sets the last extent to a length of `before` plus `more`, or to the longest that a
    /// descriptor can hold.
    fn set_last(&mut self, before: u64, more: u64, state: u32) {
        let extent_max = if self.is_extended() { u64::MAX } else { COMPACT_EXTENT_MAX };
        let len = (before + more).min(extent_max);
        self.full |= len < before + more;
        self.reported += len - before;
        self.last = Some(Extent { len, state });
    }

    fn has_room_for_two(&self) -> bool {
        let descriptor_bytes = if self.is_extended() { 16 } else { 8 };
        !self.request.wants_one()
            && self.count + 1 < DESCRIPTORS_MAX
            && self.descriptors.room_bytes() >= 2 * descriptor_bytes
    }

    fn write(&mut self, extent: Extent) {
        self.count += 1;
        if self.is_extended() {
            self.descriptors.u64(extent.len);
            self.descriptors.u64(u64::from(extent.state));
        } else {
            self.descriptors.u32(u32::try_from(extent.len).expect("length of a compact extent"));
            self.descriptors.u32(extent.state);
        }
    }

    fn is_extended(&self) -> bool {
        self.transmission.agreed.headers == Headers::Extended
    }
}
