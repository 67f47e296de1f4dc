//! The input buffer of a client: received bytes that have not been parsed.

use crate::clients::reserve;
use core::ops::Range;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// No receive; `has_more` says that the socket held more bytes after the last one.
    Nothing { has_more: bool },
    /// Bytes to be parsed.
    Input,
    /// The payload of a write.
    Payload,
}

/// Received bytes that have not been parsed.
#[derive(Debug)]
pub(super) struct Input {
    /// The buffer; `None` while the kernel writes to it.
    bytes: Option<Rc<[u8]>>,
    /// The unparsed bytes are at `from..to`.
    from: usize,
    to: usize,
    pub(super) receiving: Receiving,
    /// The turn in which bytes arrived last.
    pub(super) arrived: u64,
}

impl Default for Input {
    /// Returns an input without room.
    fn default() -> Self {
        let receiving = Receiving::Nothing { has_more: false };
        Self { bytes: Some(Rc::default()), from: 0, to: 0, receiving, arrived: 0 }
    }
}

impl Input {
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes()[self.from..self.to]
    }

    /// Removes the next `len` bytes, which have been parsed or copied.
    pub(super) fn take(&mut self, len: usize) {
        debug_assert!(len <= self.to - self.from, "only received bytes can be removed");
        self.from += len;
    }

    /// Removes the next `len` bytes and returns a shared buffer with their index. They stay in
    /// place while it is held.
    pub(super) fn take_shared(&mut self, len: usize) -> (Rc<[u8]>, usize) {
        let start = self.from;
        let bytes = Rc::clone(self.bytes());
        self.take(len);
        (bytes, start)
    }

    pub(super) fn clear(&mut self) {
        self.from = 0;
        self.to = 0;
    }

    /// Makes room after the unparsed bytes, in a buffer of `room_bytes` without other owners.
    /// Returns `false`, and changes nothing, if there is no memory for such a buffer
    /// ([session-fails-without-memory]).
    #[must_use]
    pub(super) fn make_room(&mut self, room_bytes: usize) -> bool {
        let len = self.to - self.from;
        let input = self.bytes.as_mut().expect("input buffer that the kernel returned");
        match Rc::get_mut(input) {
            Some(bytes) if bytes.len() >= room_bytes => {
                if self.from > 0 {
                    bytes.copy_within(self.from..self.to, 0);
                }
            }
            _ => {
                let unread = &input[self.from..self.to];
                let Some(bytes) = reserve::copied_buffer(unread, room_bytes) else { return false };
                *input = bytes;
            }
        }
        self.from = 0;
        self.to = len;
        true
    }

    /// Returns the buffer to lend to the kernel, with the range to receive into: at most `most`
    /// bytes.
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

    /// Returns an input with `unread` bytes, which arrived in `turn`, or `None` if there is no
    /// memory ([session-fails-without-memory]).
    pub(super) fn with(unread: &[u8], turn: u64) -> Option<Self> {
        let bytes = reserve::copied_buffer(unread, unread.len())?;
        Some(Self { bytes: Some(bytes), to: unread.len(), arrived: turn, ..Self::default() })
    }

    /// Calls `put` to fill the room. Returns the number of bytes that it put there.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::reserve::tests::without_memory;

    /// [session-fails-without-memory]: 4 KiB would still fit, but only in the reserve of 1 MiB.
    #[test]
    fn the_input_of_a_moved_client_does_not_take_the_reserve() {
        let moved = Input::with(&[7; 4096], 3).expect("there is memory");
        assert_eq!((moved.unread(), moved.arrived), (&[7; 4096][..], 3));
        let test = "door::nbd::input::tests::the_input_of_a_moved_client_does_not_take_the_reserve";
        without_memory(test, || assert!(Input::with(&[7; 4096], 3).is_none()));
    }
}
