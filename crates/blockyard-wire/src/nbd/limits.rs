//! The limits of a connection.

use super::number::PAYLOAD_BYTES_DEFAULT;

/// The limits of a connection, during the handshake and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest data of an option that is kept, in bytes. The data of a longer option are read
    /// and discarded, and the reply is an error.
    pub option_bytes: u32,
    /// The maximum number of bytes that are read only to be discarded: of one option, or of the
    /// payload of one refused request. A connection that sends more is ended.
    pub skipped_bytes: u32,
    /// The maximum number of queries in one option about metadata contexts.
    pub queries: u32,
    /// The maximum number of requests in flight: those that were taken and whose replies have not
    /// been sent.
    pub requests: u32,
    /// The maximum amount of data of the requests in flight, read and written, in bytes.
    pub request_bytes: u64,
}

impl Limits {
    /// Limits that suffice for every known client and are affordable for a server.
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
