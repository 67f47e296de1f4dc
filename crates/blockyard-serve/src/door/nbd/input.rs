//! Received bytes that were not parsed yet.

use core::ops::Range;
use std::rc::Rc;

/// The receive that is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// None; `has_more`: the socket held more bytes after the last receive.
    Nothing { has_more: bool },
    /// Bytes to be parsed.
    Input,
    /// The payload of a write.
    Payload,
}

/// Received bytes that were not parsed yet.
#[derive(Debug)]
pub(super) struct Input {
    /// `None` while the kernel writes to it.
    bytes: Option<Rc<[u8]>>,
    /// The bytes that were not parsed yet are at `from..to`.
    from: usize,
    to: usize,
    pub(super) receiving: Receiving,
    /// The turn in which bytes arrived last.
    pub(super) arrived: u64,
}

impl Input {
    /// An empty input with room for `room_bytes`.
    pub(super) fn new(room_bytes: usize) -> Self {
        let bytes = Some(vec![0; room_bytes].into());
        Self {
            bytes,
            from: 0,
            to: 0,
            receiving: Receiving::Nothing { has_more: false },
            arrived: 0,
        }
    }

    /// The bytes that were not parsed yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes()[self.from..self.to]
    }

    /// The next `len` bytes were understood, or copied.
    pub(super) fn take(&mut self, len: usize) {
        debug_assert!(len <= self.to - self.from, "only received bytes can be removed");
        self.from += len;
    }

    /// Removes the next `len` bytes and shares them: they stay in place for as long as anybody holds them.
    pub(super) fn take_shared(&mut self, len: usize) -> (Rc<[u8]>, usize) {
        let start = self.from;
        let bytes = Rc::clone(self.bytes());
        self.take(len);
        (bytes, start)
    }

    /// Discards all received bytes.
    pub(super) fn clear(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    /// Makes room behind the unparsed bytes, in a buffer of `room_bytes` that nobody else holds.
    pub(super) fn make_room(&mut self, room_bytes: usize) {
        let len = self.to - self.from;
        let input = self.bytes.as_mut().expect("input buffer that the kernel returned");
        match Rc::get_mut(input) {
            Some(bytes) if bytes.len() >= room_bytes => {
                if self.from > 0 {
                    bytes.copy_within(self.from..self.to, 0);
                }
            }
            _ => {
                let mut bytes = vec![0; room_bytes];
                bytes[..len].copy_from_slice(&input[self.from..self.to]);
                *input = bytes.into();
            }
        }
        (self.from, self.to) = (0, len);
    }

    /// Lends the buffer to the kernel, with the range to receive into: at most `most` bytes.
    pub(super) fn lend(&mut self, most: Option<usize>) -> (Rc<[u8]>, Range<usize>) {
        let bytes = self.bytes.take().expect("input buffer that the kernel returned");
        let end = most.map_or(bytes.len(), |most| bytes.len().min(self.to + most));
        (bytes, self.to..end)
    }

    /// Takes the buffer back, with `len` more bytes in it.
    pub(super) fn received(&mut self, bytes: Rc<[u8]>, len: usize) {
        self.bytes = Some(bytes);
        self.to += len;
    }

    /// Lets `put` fill the room, and returns the number of bytes that it put there.
    pub(super) fn fill<E>(
        &mut self,
        put: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let bytes = self.bytes.as_mut().and_then(Rc::get_mut).expect("input buffer with one owner");
        let len = put(&mut bytes[self.to..])?;
        self.to += len;
        Ok(len)
    }

    fn bytes(&self) -> &Rc<[u8]> {
        self.bytes.as_ref().expect("input buffer that the kernel returned")
    }
}
