//! Reads numbers and pieces from the front of bytes, most significant byte first.

/// The bytes that are left to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// Returns the next `len_bytes` bytes. If there are fewer, reads nothing and returns `None`.
    pub(crate) fn bytes(&mut self, len_bytes: usize) -> Option<&'a [u8]> {
        let (piece, rest) = self.0.split_at_checked(len_bytes)?;
        self.0 = rest;
        Some(piece)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (piece, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*piece)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns the next piece, which is preceded by its length in 32 bits.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).ok()?)
    }
}
