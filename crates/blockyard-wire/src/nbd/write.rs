//! Writes numbers to bytes, most significant byte first.

/// Fills bytes from the front.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    len_bytes: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, len_bytes: 0 }
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    pub(crate) fn room_bytes(&self) -> usize {
        self.out.len() - self.len_bytes
    }

    /// Panics if there is no room.
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.out[self.len_bytes..][..N].copy_from_slice(&bytes);
        self.len_bytes += N;
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.put(number.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.put(number.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.put(number.to_be_bytes());
    }
}
