//! The parent process, which a server started with `--exit-with-parent` does not outlive.
//!
//! The server ends when the process that started it has ended: all of it, not only the thread that
//! started the server, and even if it ended before the server looked.
//!
//! When a parent ends, the kernel gives its children to another process: number 1, or a subreaper.
//! A program can only ask for its present parent, so the following shows that the parent is not the
//! starter:
//!
//! - It has another number than the option gives.
//! - It is in another session, and this process leads none. A child is in the session of its parent
//!   until it begins its own.
//! - It is process 1 in another process group, and this process leads none.
//!
//! If the starter ended before that and was in the session and the group of process 1, as a script
//! that is started by the first program of a container, only the number shows it.

use std::io;
use std::os::fd::OwnedFd;

use nix::errno::Errno as NixErrno;
use nix::unistd::{self, getpgid, getsid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, set_parent_process_death_signal,
};

use super::ending::{Bell, Cause};
use crate::cli::Parent;
use crate::message::Failure;

/// Asks for the end of the server when its parent ends, or has already ended.
///
/// Linux before 5.3 has no descriptors for processes, and a parent in another namespace has no
/// number. The kernel then sends SIGTERM, when the thread of the parent ends that started the
/// server.
///
/// # Errors
///
/// The parent has ended, or has another number than `wanted`.
pub(super) fn watch(wanted: Parent, bell: Bell) -> Result<(), Failure> {
    let parent = getppid();
    let process = parent.map(|parent| pidfd_open(parent, PidfdFlags::empty()));
    let process = match process {
        Some(Ok(process)) => Some(process),
        Some(Err(Errno::SRCH)) => return Err(gone()),
        Some(Err(_)) | None => {
            set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from)?;
            None
        }
    };
    // If it is still the parent, the descriptor or the signal is that of the parent.
    if getppid() != parent || !may_be_starter(parent, wanted).map_err(io::Error::from)? {
        return Err(gone());
    }
    if let Some(process) = process {
        std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
            await_end(&process);
            bell.ask(Cause::Parent);
        })?;
    }
    Ok(())
}

fn gone() -> Failure {
    Failure::Run("--exit-with-parent: the process that started this server has ended".to_owned())
}

fn may_be_starter(parent: Option<Pid>, wanted: Parent) -> Result<bool, NixErrno> {
    let Some(parent) = parent.map(Pid::as_raw_nonzero) else {
        return Ok(wanted == Parent::Any);
    };
    if let Parent::Number(number) = wanted {
        return Ok(i64::from(parent.get()) == i64::from(number));
    }
    let own = unistd::getpid();
    let parent = unistd::Pid::from_raw(parent.get());
    let session = getsid(None)?;
    let group = getpgid(None)?;
    let is_in_session = session == own || session == getsid(Some(parent))?;
    let is_in_group = parent.as_raw() != 1 || group == own || group == getpgid(Some(parent))?;
    Ok(is_in_session && is_in_group)
}

fn await_end(process: &OwnedFd) {
    while poll(&mut [PollFd::new(process, PollFlags::IN)], None).is_err() {}
}
