//! A request that was taken and has not been answered.

use super::super::context::ContextSet;
use super::super::errno::Errno;
use super::super::number::{cmd, cmd_flag};
use super::Charge;
use super::header::Header;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Read; the data goes with the reply.
    Read,
    /// Write the payload.
    Write,
    /// What was answered before, on any connection, is to be durable.
    Flush,
    /// Nobody needs what is there.
    Trim,
    /// It will be read soon.
    Cache,
    /// Make it read as zeroes.
    WriteZeroes {
        /// Room must stay allocated for it.
        no_hole: bool,
        /// Rather fail with [`Errno::NotSupported`] than be as slow as writing.
        fast: bool,
    },
    /// Tell what is there, for each context of [`Request::contexts_left`].
    BlockStatus,
}

impl Command {
    /// Whether it changes what is on the export.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes { .. })
    }
}

/// A request that was taken and has not been answered. It cannot be copied, and is consumed by its
/// answer (T1).
#[derive(Debug)]
#[must_use = "every request is answered"]
pub struct Request {
    command: Option<Command>,
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    len: u64,
    /// How far chunks of a READ have come (T11).
    pub(super) replied: u64,
    /// Whose status has not been told.
    pub(super) contexts_left: ContextSet,
    pub(super) charge: Charge,
}

impl Request {
    pub(super) fn new(header: &Header, checked: Result<Command, Errno>, charge: Charge) -> Self {
        Self {
            command: checked.ok(),
            flags: header.flags,
            kind: header.kind,
            cookie: header.cookie,
            offset: header.offset,
            len: header.len,
            replied: 0,
            contexts_left: header.contexts,
            charge,
        }
    }

    /// What it asks for; nothing where it was refused by the protocol.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        self.command
    }

    /// Where it begins, in bytes. Within the export, unless refused.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its length in bytes. It ends within the export, unless refused.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an empty one is settled")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether what it writes must be durable when it is answered. On what writes nothing it has no
    /// meaning.
    #[must_use]
    pub fn fua(&self) -> bool {
        self.flags & cmd_flag::FUA != 0
    }

    /// The client's number for it.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Whether the data of a READ must go in one piece (T11).
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        self.flags & cmd_flag::DF != 0
    }

    /// Contexts whose status has not been told.
    #[must_use]
    pub fn contexts_left(&self) -> ContextSet {
        self.contexts_left
    }

    /// Whether a status has one extent only.
    pub(super) fn wants_one(&self) -> bool {
        self.flags & cmd_flag::REQ_ONE != 0
    }

    /// Whether it is a READ, be it refused (T3).
    pub(super) fn is_read(&self) -> bool {
        self.kind == cmd::READ
    }

    /// The error that may be sent for `errno` (T9).
    pub(super) fn legal(&self, errno: Errno) -> Errno {
        let fast = matches!(self.command, Some(Command::WriteZeroes { fast: true, .. }));
        if errno == Errno::NotSupported && !fast { Errno::Invalid } else { errno }
    }
}
