//! Errors in replies: [`Errno`] has the eight values of the protocol, and no other value can be
//! sent.

use core::fmt;

/// An error in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Errno {
    /// EPERM: the export is read-only.
    NotPermitted,
    /// EIO: the device failed.
    Io,
    /// ENOMEM: the server has no memory for the request.
    NoMemory,
    /// EINVAL: an unknown command or flag, or an impossible combination or range.
    Invalid,
    /// ENOSPC: the range ends beyond the export, or the storage is full, including quotas and file
    /// size limits.
    NoSpace,
    /// EOVERFLOW: the read is too long.
    Overflow,
    /// ENOTSUP: zeroing would not be faster than writing.
    NotSupported,
    /// ESHUTDOWN: the server is shutting down.
    Shutdown,
}

impl Errno {
    /// All errors.
    pub const ALL: [Self; 8] = [
        Self::NotPermitted,
        Self::Io,
        Self::NoMemory,
        Self::Invalid,
        Self::NoSpace,
        Self::Overflow,
        Self::NotSupported,
        Self::Shutdown,
    ];

    /// Returns the number on the wire.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::NotPermitted => 1,
            Self::Io => 5,
            Self::NoMemory => 12,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::Overflow => 75,
            Self::NotSupported => 95,
            Self::Shutdown => 108,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "operation not permitted",
            Self::Io => "input/output error",
            Self::NoMemory => "cannot allocate memory",
            Self::Invalid => "invalid argument",
            Self::NoSpace => "no space left on device",
            Self::Overflow => "value too large",
            Self::NotSupported => "operation not supported",
            Self::Shutdown => "server is shutting down",
        })
    }
}

impl core::error::Error for Errno {}
