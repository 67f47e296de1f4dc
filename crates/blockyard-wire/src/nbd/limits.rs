//! What one connection may use.

use super::number::PAYLOAD_BYTES_DEFAULT;

/// What one connection may use, in the handshake and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest option that is kept to be understood, in bytes of its data. Of a longer one the data
    /// is read and thrown away, and the reply says that it is too big.
    pub option_bytes: u32,
    /// Most bytes that are read only to be thrown away: of one option, or of the payload of one
    /// refused request. The connection of who sends more is ended.
    pub skipped_bytes: u32,
    /// Most queries in one option about metadata contexts.
    pub queries: u32,
    /// Most requests that are taken and whose replies have not been sent.
    pub requests: u32,
    /// Most bytes of data of such requests, read and written.
    pub request_bytes: u64,
}

impl Limits {
    /// Enough for every client known, and not much for a server to spend on one.
    pub const DEFAULT: Self = Self {
        option_bytes: 64 << 10,
        skipped_bytes: PAYLOAD_BYTES_DEFAULT,
        queries: 1024,
        requests: 256,
        request_bytes: 2 * PAYLOAD_BYTES_DEFAULT as u64,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
