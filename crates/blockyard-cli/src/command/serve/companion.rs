//! The processes beside a server: the service manager that waits for it, the parent that it must not outlive, and the
//! command for which it runs.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, OnceLock};

use blockyard_serve::Address;
use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};
use sd_notify::NotifyState;

use super::ending::{Bell, Cause};
use crate::message::warning;

/// A file with the number of this process. It is removed when it is dropped.
#[derive(Debug)]
pub(super) struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file, whole: it appears under its name when it is complete.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn write(path: &Path) -> io::Result<Self> {
        let own = std::process::id();
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{own}"));
        // A process with this number that was killed may have left one.
        drop(fs::remove_file(&part));
        let mut file = fs::File::create_new(&part)?;
        let written = writeln!(file, "{own}").and_then(|()| fs::rename(&part, path));
        if written.is_err() {
            drop(fs::remove_file(&part));
        }
        written.map(|()| Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Another server may have replaced it.
        let is_ours = fs::read_to_string(&self.0)
            .is_ok_and(|text| text.trim() == std::process::id().to_string());
        if is_ours {
            drop(fs::remove_file(&self.0));
        }
    }
}

/// Tells the service manager, if there is one, that clients can connect.
pub(super) fn notify_ready() {
    notify(NotifyState::Ready);
}

/// Tells the service manager, if there is one, that the server ends.
pub(super) fn notify_stopping() {
    notify(NotifyState::Stopping);
}

fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warning(&format!("NOTIFY_SOCKET: {error}"));
    }
}

/// Makes the kernel send SIGTERM to this process when its parent ends.
///
/// # Errors
///
/// The kernel refuses, or the parent has just ended.
pub(super) fn end_with_parent() -> io::Result<()> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::TERM))?;
    match getppid() == parent {
        true => Ok(()),
        false => Err(io::Error::other("the parent process has ended")),
    }
}

/// The limit of descriptors that this process was started with, and the higher one that it has since.
///
/// The processes that it starts get the former: some programs go through all descriptors up to their limit, or cannot use
/// those from 1024 on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// The number at the start, if it has been raised.
    before: Option<u64>,
    /// The present number; `None` for no limit.
    pub(super) limit: Option<u64>,
}

impl Descriptors {
    /// Raises the limit to the most that the process may have.
    pub(super) fn raise() -> Self {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let is_raised = current != maximum
            && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
        match is_raised {
            true => Self { before: current, limit: maximum },
            false => Self { before: None, limit: current },
        }
    }
}

/// A folder of this user for a socket. It is removed when it is dropped.
#[derive(Debug)]
pub(super) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes the folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be made.
    pub(super) fn new() -> io::Result<Self> {
        let (own, mut number) = (std::process::id(), 0);
        loop {
            let path = std::env::temp_dir().join(format!("blockyard-{own}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                // A process with this number that was killed may have left one.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn socket(&self) -> Address {
        Address::Unix(self.0.join("socket"))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A command that runs beside a server.
#[derive(Debug)]
pub(super) struct Run {
    ended: Arc<OnceLock<io::Result<ExitStatus>>>,
}

impl Run {
    /// Returns the exit code of the command, if it has ended: 128 more than the signal that killed it, as a shell has it.
    ///
    /// # Errors
    ///
    /// The command's end could not be awaited.
    pub(super) fn code(&self) -> io::Result<Option<u8>> {
        let status = match self.ended.get() {
            None => return Ok(None),
            Some(Ok(status)) => status,
            Some(Err(error)) => return Err(error.kind().into()),
        };
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Ok(Some(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
    }
}

/// Runs `command` by a shell, with `uri`, and `unixsocket` or `port`, in its environment, and with the limit of `descriptors`
/// before it was raised. When it ends, the server is asked to end.
///
/// # Errors
///
/// There is no shell, or no thread.
pub(super) fn run(
    command: &str,
    address: &Address,
    has_tls: bool,
    descriptors: Descriptors,
    bell: Bell,
) -> io::Result<Run> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(match descriptors.before {
        Some(limit) => format!("ulimit -S -n {limit}; {command}"),
        None => command.to_owned(),
    });
    let scheme = if has_tls { "nbds" } else { "nbd" };
    match address {
        Address::Unix(path) => {
            shell.env("uri", format!("{scheme}+unix:///?socket={}", path.display()));
            shell.env("unixsocket", path);
        }
        Address::Tcp(address) => {
            shell.env("uri", format!("{scheme}://{address}"));
            shell.env("port", address.rsplit(':').next().unwrap_or_default());
        }
        Address::Stdio => {}
    }
    let mut child = shell.spawn()?;
    let ended = Arc::new(OnceLock::new());
    let run = Run { ended: Arc::clone(&ended) };
    std::thread::Builder::new().name("run".to_owned()).spawn(move || {
        // Before the request: whoever sees that sees the code too.
        ended.set(child.wait()).expect("a command ends once");
        bell.ask(Cause::Run);
    })?;
    Ok(run)
}
