//! The processes beside a server: the service manager that waits for it, the parent that it must not outlive, and the
//! command for which it runs.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;

use blockyard_serve::Address;
use rustix::process::{Signal, set_parent_process_death_signal};
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
/// The kernel refuses.
pub(super) fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
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
        let path = std::env::temp_dir().join(format!("blockyard-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
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

/// Runs `command` by a shell, with `uri`, and `unixsocket` or `port`, in its environment. When it ends, the server is asked
/// to end.
///
/// # Errors
///
/// There is no shell, or no thread.
pub(super) fn run(
    command: &str,
    address: &Address,
    has_tls: bool,
    bell: Bell,
) -> io::Result<JoinHandle<io::Result<ExitStatus>>> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
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
    std::thread::Builder::new().name("run".to_owned()).spawn(move || {
        let ended = child.wait();
        bell.ask(Cause::Run);
        ended
    })
}
