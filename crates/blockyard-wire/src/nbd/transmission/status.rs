//! Chunks of block status.

use super::super::context::MetaContext;
use super::super::handshake::Headers;
use super::super::number::{DESCRIPTORS_MAX, chunk};
use super::super::write::Writer;
use super::{Command, Request, Transmission};

/// Fewest bytes a chunk of status must be given: its header and one descriptor, extended.
pub const STATUS_BYTES_MIN: usize = 56;
/// Longest extent of a compact descriptor, in bytes: a multiple of every minimum block.
const COMPACT_EXTENT_MAX: u64 = 0xffff_0000;

/// A descriptor that may still grow.
#[derive(Clone, Copy, Debug)]
struct Extent {
    len: u64,
    state: u32,
}

/// The status of a range in one context, extent by extent from its beginning (T12):
///
/// - neighbours of the same state are one descriptor; none is empty;
/// - nothing is told beyond the export, and nothing after the end of what was asked for is begun;
/// - with REQ_ONE there is one descriptor, and it does not go beyond what was asked for;
/// - there are 2^20 descriptors at most, and no more than there is room for.
///
/// What does not fit is left out: a client asks again from there.
#[derive(Debug)]
#[must_use = "a chunk is finished"]
pub struct StatusChunk<'a> {
    transmission: &'a Transmission,
    request: &'a Request,
    context: MetaContext,
    /// What is told at most, in bytes.
    told_max: u64,
    /// What has been told with the last extent, in bytes.
    told: u64,
    /// The last one, not written yet.
    last: Option<Extent>,
    full: bool,
    /// Descriptors written.
    count: u32,
    head: &'a mut [u8],
    descriptors: Writer<'a>,
}

impl Transmission {
    /// Begins the chunk of `context`. It fills the front of `out`, which should have room for as many
    /// descriptors as are wanted: 16 bytes each, and [`STATUS_BYTES_MIN`] at least.
    ///
    /// # Panics
    ///
    /// If `out` is too short, `request` is no BLOCK_STATUS, or `context` is none of
    /// [`Request::contexts_left`].
    pub fn status<'a>(
        &'a self,
        request: &'a mut Request,
        context: MetaContext,
        out: &'a mut [u8],
    ) -> StatusChunk<'a> {
        assert!(out.len() >= STATUS_BYTES_MIN, "one descriptor must have room");
        assert!(request.command() == Some(Command::BlockStatus), "it asks for no status");
        assert!(request.contexts_left.contains(context), "each context is told once");
        request.contexts_left.remove(context);
        let to_end = self.agreed.size_bytes - request.offset();
        let told_max = if request.wants_one() { request.len() } else { to_end };
        let head_bytes = if self.agreed.headers == Headers::Extended { 40 } else { 24 };
        let (head, descriptors) = out.split_at_mut(head_bytes);
        StatusChunk {
            transmission: self,
            request,
            context,
            told_max,
            told: 0,
            last: None,
            full: false,
            count: 0,
            head,
            descriptors: Writer::new(descriptors),
        }
    }
}

impl StatusChunk<'_> {
    /// The next `len_bytes` are in `state`. Whether more is wanted; where it is not, more is left out.
    ///
    /// # Panics
    ///
    /// If `len_bytes` is 0.
    pub fn push(&mut self, len_bytes: u64, state: u32) -> bool {
        assert!(len_bytes > 0, "an extent has a length");
        if self.full {
            return false;
        }
        let len = len_bytes.min(self.told_max - self.told);
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
        self.full |= self.told >= self.request.len().min(self.told_max);
        !self.full
    }

    /// Ends the chunk; how many bytes of `out` it fills.
    ///
    /// # Panics
    ///
    /// If nothing was pushed.
    #[must_use]
    pub fn finish(mut self) -> usize {
        let last = self.last.take().expect("a status tells of something");
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

    /// Makes the last extent `before` and `more` long, or as long as a descriptor can tell.
    fn set_last(&mut self, before: u64, more: u64, state: u32) {
        let extent_max = if self.is_extended() { u64::MAX } else { COMPACT_EXTENT_MAX };
        let len = (before + more).min(extent_max);
        self.full |= len < before + more;
        self.told += len - before;
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
            self.descriptors.u32(u32::try_from(extent.len).expect("it was cut"));
            self.descriptors.u32(extent.state);
        }
    }

    fn is_extended(&self) -> bool {
        self.transmission.agreed.headers == Headers::Extended
    }
}
