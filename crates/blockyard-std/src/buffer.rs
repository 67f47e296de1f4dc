//! Memory for direct I/O.

use core::fmt;
use core::ops::{Deref, DerefMut};

/// The alignment of a [`Buffer`], in bytes: a page, which suffices for direct I/O to every device.
const ALIGN_BYTES: usize = 4096;

/// Bytes that begin at a page, so that direct I/O can use them without a copy.
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Returns `len` zeroes.
    ///
    /// # Panics
    ///
    /// Panics if `len` and a page are more than `isize::MAX`. If there is no memory, the process is
    /// aborted, as for a `Vec`.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let all = len.checked_add(ALIGN_BYTES - 1).expect("length of a buffer");
        let bytes = vec![0; all].into_boxed_slice();
        let start = bytes.as_ptr().addr().next_multiple_of(ALIGN_BYTES) - bytes.as_ptr().addr();
        Self { bytes, start, len }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).finish_non_exhaustive()
    }
}
