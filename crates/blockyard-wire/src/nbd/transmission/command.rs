//! The commands of requests.

/// The command of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Read data, which go with the reply.
    Read,
    /// Write the payload.
    Write,
    /// Make every write durable that was answered earlier, on any connection.
    Flush,
    /// Discard data.
    Trim,
    /// Prefetch data that will be read soon.
    Cache,
    /// Make the range read as zeroes.
    WriteZeroes {
        /// The space must stay allocated.
        no_hole: bool,
        /// Fail with [`Errno::NotSupported`](super::super::Errno::NotSupported) instead of being as
        /// slow as a write.
        fast: bool,
    },
    /// Report the status of the range in each context of
    /// [`Request::contexts_left`](super::Request::contexts_left).
    BlockStatus,
}

impl Command {
    /// Returns whether the command changes the data of the export.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes { .. })
    }
}
