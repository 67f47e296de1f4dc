//! The processes that run along with a server: the service manager that waits for it, and the
//! command for which it runs. The parent is in [`parent`](super::parent).

use core::time::Duration;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use blockyard_serve::Address;
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process, setrlimit,
    waitid,
};
use sd_notify::NotifyState;

use super::ending::{Bell, Cause, Ending};
use crate::message::{Failure, error, warning};

/// The time for which the end of the program waits for the service manager.
const LAST_WORDS: Duration = Duration::from_millis(500);

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

/// The service manager, if there is one, that hears what the server does.
///
/// A thread talks to it, as a manager may leave its socket full for ever: nothing waits for it but
/// for [`Self::end`], for a limited time.
#[derive(Debug)]
pub(super) struct Manager {
    tell: Sender<NotifyState<'static>>,
    told: Receiver<()>,
}

impl Manager {
    pub(super) fn find() -> Self {
        let (tell, states) = channel();
        let (done, told) = channel();
        let thread = std::thread::Builder::new().spawn(move || {
            for state in states {
                if let Err(error) = sd_notify::notify(&[state]) {
                    warning(&format!("NOTIFY_SOCKET: {error}"));
                }
            }
            drop(done);
        });
        if let Err(error) = thread {
            warning(&format!("NOTIFY_SOCKET: no thread: {error}"));
        }
        Self { tell, told }
    }

    /// Tells it that clients can connect.
    pub(super) fn is_ready(&self) {
        self.say(NotifyState::Ready);
    }

    /// Tells it that the server ends.
    pub(super) fn is_stopping(&self) {
        self.say(NotifyState::Stopping);
    }

    fn say(&self, state: NotifyState<'static>) {
        let _ = self.tell.send(state); // there may be no thread
    }

    /// Waits until it has heard everything, for half a second at most.
    pub(super) fn end(self) {
        drop(self.tell);
        if self.told.recv_timeout(LAST_WORDS) == Err(RecvTimeoutError::Timeout) {
            warning("NOTIFY_SOCKET: the service manager does not read its socket");
        }
    }
}

/// The limit of descriptors that this process was started with, and the higher one that it has
/// since.
///
/// The processes that it starts get the former: some programs go through all descriptors up to
/// their limit, or cannot use those from 1024 on.
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
        let own = std::process::id();
        let mut number = 0;
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

/// A command that runs along with a server.
///
/// Its process is not reaped before [`Self::conclude`], so that no other process can have its
/// number.
#[derive(Debug)]
pub(super) struct Run(Child);

impl Run {
    /// Ends the command of a server that has ended as `served` says: an error of the server is a
    /// line of the log, and the exit code is that of the command. The command has until `until`, or
    /// another signal, to end.
    pub(super) fn conclude(
        mut self,
        served: Result<(), Failure>,
        cause: Option<Cause>,
        ending: &mut Ending,
        until: Instant,
    ) -> Result<(), Failure> {
        if self.code()?.is_none() {
            // A terminal has signalled the command as well, which may have to clean up.
            if cause != Some(Cause::Terminal) {
                // This fails only if it has ended.
                let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
            }
            ending.wait_for_run(until);
        }
        let Some(code) = self.code()? else {
            let words = "the command of --run has not ended";
            return served.and(Err(Failure::Run(words.to_owned())));
        };
        if let Err(failure) = served {
            error(&failure.words());
        }
        if code == 0 { Ok(()) } else { Err(Failure::Verdict(code)) }
    }

    /// Returns the exit code of the command, if it has ended: 128 more than the signal that killed
    /// it, as a shell has it.
    fn code(&mut self) -> io::Result<Option<u8>> {
        let Some(status) = self.0.try_wait()? else { return Ok(None) };
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Ok(Some(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
    }
}

/// Runs `command` by a shell, with `uri`, and `unixsocket` or `port`, in its environment: the
/// address of the export called `export`. It has the limit of `descriptors` before it was raised.
/// When the command ends, the server is asked to end.
///
/// # Errors
///
/// There is no shell, or no thread.
pub(super) fn run(
    command: &str,
    address: &Address,
    export: &str,
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
    let export = percent_encoded(export.as_bytes());
    match address {
        Address::Unix(path) => {
            let socket = percent_encoded(path.as_os_str().as_bytes());
            shell.env("uri", format!("{scheme}+unix:///{export}?socket={socket}"));
            shell.env("unixsocket", path);
        }
        Address::Tcp(address) => {
            let slash = if export.is_empty() { "" } else { "/" };
            shell.env("uri", format!("{scheme}://{address}{slash}{export}"));
            shell.env("port", address.rsplit(':').next().unwrap_or_default());
        }
        Address::Stdio => {}
    }
    let child = shell.spawn()?;
    let number = Pid::from_child(&child);
    std::thread::Builder::new().name("run".to_owned()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(number), options));
        bell.ask(Cause::Run);
    })?;
    Ok(Run(child))
}

/// Returns `bytes` as a part of a URI: all but letters, digits and `-._~/` as `%XX`.
fn percent_encoded(bytes: &[u8]) -> String {
    let encoded = bytes.iter().map(|byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(*byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}
