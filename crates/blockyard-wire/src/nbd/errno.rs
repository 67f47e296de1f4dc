//! What an error may be: [`Errno`] has the eight values of the protocol, and no other can be sent.

use core::fmt;

/// An error in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Errno {
    /// EPERM: the export is read-only.
    NotPermitted,
    /// EIO: the device failed.
    Io,
    /// ENOMEM: the server had no memory for it.
    NoMemory,
    /// EINVAL: no such command or flag, or not this way, not there.
    Invalid,
    /// ENOSPC: the export ends there, or what is under it is full. Quotas and sizes of files count.
    NoSpace,
    /// EOVERFLOW: more than is read at once.
    Overflow,
    /// ENOTSUP: zeroing would not be faster than writing (T9).
    NotSupported,
    /// ESHUTDOWN: the server is going away.
    Shutdown,
}

impl Errno {
    /// All of them.
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

    /// The number that is sent.
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
