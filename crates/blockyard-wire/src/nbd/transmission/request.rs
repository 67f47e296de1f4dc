//! A request that was taken and has not been answered.

use super::super::context::ContextSet;
use super::super::errno::Errno;
use super::super::number::{cmd, cmd_flag};
use super::charge::Charge;
use super::command::Command;
use super::header::Header;

/// A request that was taken and has not been answered. It cannot be copied, and its answer consumes
/// it ([one-final-reply]).
#[derive(Debug)]
#[must_use = "every request must be answered"]
pub struct Request {
    command: Option<Command>,
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    len: u64,
    /// The number of bytes of a READ that chunks have covered ([read-chunks-contiguous]).
    pub(super) replied: u64,
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

    /// Returns the command, or `None` if the protocol refused the request.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        self.command
    }

    /// Returns the offset in bytes. It lies within the export, unless the request was refused.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the length in bytes. The range ends within the export, unless the request was
    /// refused.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an empty request is settled immediately")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether a write must be durable when it is answered. Other commands ignore this.
    #[must_use]
    pub fn fua(&self) -> bool {
        self.flags & cmd_flag::FUA != 0
    }

    /// Returns the client's number for the request.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Returns whether the data of a READ must be sent in one chunk ([read-chunks-contiguous]).
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        self.flags & cmd_flag::DF != 0
    }

    /// Returns the contexts whose status has not been reported.
    #[must_use]
    pub fn contexts_left(&self) -> ContextSet {
        self.contexts_left
    }

    /// Returns whether a status may have only one extent.
    #[must_use]
    pub fn wants_one(&self) -> bool {
        self.flags & cmd_flag::REQ_ONE != 0
    }

    /// Returns whether the request is a READ, refused or not.
    pub(super) fn is_read(&self) -> bool {
        self.kind == cmd::READ
    }

    /// Returns the error to send for `errno`.
    pub(super) fn legal(&self, errno: Errno) -> Errno {
        let fast = matches!(self.command, Some(Command::WriteZeroes { fast: true, .. }));
        if errno == Errno::NotSupported && !fast { Errno::Invalid } else { errno }
    }
}
