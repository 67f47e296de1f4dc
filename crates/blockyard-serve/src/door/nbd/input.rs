//! What was received from a client and has not been understood.

use core::ops::Range;
use std::rc::Rc;

/// What the kernel is receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// Nothing; whether more was there to be received when something was last.
    Nothing { has_more: bool },
    /// What comes, to be understood.
    Input,
    /// The payload of a write.
    Payload,
}

/// What was received and has not been understood.
#[derive(Debug)]
pub(super) struct Input {
    /// Away while the kernel writes to it.
    bytes: Option<Rc<[u8]>>,
    /// What of it has not been understood.
    from: usize,
    to: usize,
    pub(super) receiving: Receiving,
}

impl Input {
    /// An empty one with room for so many bytes.
    pub(super) fn new(room_bytes: usize) -> Self {
        let bytes = Some(vec![0; room_bytes].into());
        Self { bytes, from: 0, to: 0, receiving: Receiving::Nothing { has_more: false } }
    }

    /// What has not been understood.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes()[self.from..self.to]
    }

    /// The next `len` bytes were understood, or copied.
    pub(super) fn take(&mut self, len: usize) {
        debug_assert!(len <= self.to - self.from, "only what came can be understood");
        self.from += len;
    }

    /// The next `len` bytes, which stay where they are until nobody holds them any more.
    pub(super) fn take_shared(&mut self, len: usize) -> (Rc<[u8]>, usize) {
        let start = self.from;
        let bytes = Rc::clone(self.bytes());
        self.take(len);
        (bytes, start)
    }

    /// All that came is thrown away.
    pub(super) fn clear(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    /// Makes room behind what was not understood, in memory of `room_bytes` that nobody else holds.
    pub(super) fn make_room(&mut self, room_bytes: usize) {
        let len = self.to - self.from;
        let input = self.bytes.as_mut().expect("the kernel gave it back");
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

    /// The memory, for the kernel to receive to, and where in it: `most` bytes of the room, or all.
    pub(super) fn lend(&mut self, most: Option<usize>) -> (Rc<[u8]>, Range<usize>) {
        let bytes = self.bytes.take().expect("the kernel gave it back");
        let end = most.map_or(bytes.len(), |most| bytes.len().min(self.to + most));
        (bytes, self.to..end)
    }

    /// The memory comes back with `len` bytes more.
    pub(super) fn received(&mut self, bytes: Rc<[u8]>, len: usize) {
        self.bytes = Some(bytes);
        self.to += len;
    }

    /// Puts what `put` finds for the room there; how many bytes that were.
    pub(super) fn fill<E>(
        &mut self,
        put: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let bytes = self.bytes.as_mut().and_then(Rc::get_mut).expect("room was made");
        let len = put(&mut bytes[self.to..])?;
        self.to += len;
        Ok(len)
    }

    fn bytes(&self) -> &Rc<[u8]> {
        self.bytes.as_ref().expect("the kernel gave it back")
    }
}
