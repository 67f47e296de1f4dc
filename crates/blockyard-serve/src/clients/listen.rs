//! The sockets at which clients arrive: unix and TCP sockets, bound here or inherited, and standard input.

use core::fmt;
use core::str::FromStr;
use rustix::fd::OwnedFd;
use rustix::fs::{Gid, Mode, chmod, chown};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, bind, connect,
    getpeername, getsockname, listen, socket_with, sockopt,
};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clients::peer::Peer;
use blockyard_std::parts::words::error_words;

/// The pause after a client could not be accepted, most likely for lack of descriptors. The client stays in the
/// backlog meanwhile, so a poll would return at once and the thread would spin.
pub(crate) const ACCEPT_REST: Duration = Duration::from_millis(50);

/// The backlog of a unix socket: as long as the kernel allows.
const BACKLOG: i32 = -1;

/// An address at which clients arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket at this path.
    Unix(PathBuf),
    /// TCP, as `HOST:PORT`; the host may be a name or an address, IPv6 in brackets.
    Tcp(String),
    /// No address: the one client is connected to standard input.
    Stdio,
}

/// The reason why the server cannot listen at an [`Address`].
#[derive(Debug)]
pub enum ListenError {
    /// The text is none of `unix:PATH`, `HOST:PORT` and `stdio`.
    Unknown(String),
    /// Another server accepts connections at this path.
    Busy(PathBuf),
    /// The file at this path is not a socket.
    NotASocket(PathBuf),
    /// An inherited descriptor is not a listening socket, or standard input is not a socket with a client.
    Unsuitable(&'static str),
    /// The system refuses to listen at this address.
    Refused(String, io::Error),
}

impl FromStr for Address {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        match text.strip_prefix("unix:") {
            Some("") => return Err(ListenError::Unknown(text.to_owned())),
            Some(path) => return Ok(Self::Unix(path.into())),
            None => {}
        }
        if text == "stdio" {
            return Ok(Self::Stdio);
        }
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        match port.map(|(_, port)| port.parse::<u16>()) {
            Some(Ok(_)) => Ok(Self::Tcp(text.to_owned())),
            _ => Err(ListenError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => f.write_str(address),
            Self::Stdio => f.write_str("stdio"),
        }
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(text) => {
                write!(f, "{text}: an address is unix:PATH, HOST:PORT or stdio")
            }
            Self::Busy(path) => {
                write!(f, "unix:{}: another server answers there", path.display())
            }
            Self::NotASocket(path) => {
                write!(f, "unix:{}: there is something that is no socket", path.display())
            }
            Self::Unsuitable(words) => f.write_str(words),
            Self::Refused(address, error) => write!(f, "{address}: {}", error_words(error)),
        }
    }
}

impl core::error::Error for ListenError {}

/// The users that may connect to a unix socket. Without a mode, the umask decides; without a group, the process's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Access {
    pub(crate) mode: Option<u32>,
    pub(crate) group: Option<u32>,
}

impl Access {
    /// Only the user of this process may connect.
    pub(crate) const PRIVATE: Self = Self { mode: Some(0o600), group: None };
}

/// A listening socket. A drop removes the file of a unix socket that was bound here.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: Address,
    fd: OwnedFd,
    /// The device and inode of a unix socket's file, so that a drop removes no other file.
    file: Option<(u64, u64)>,
}

impl Listener {
    /// Listens at `address`. Replaces the socket that a dead server left behind.
    ///
    /// # Errors
    ///
    /// Any [`ListenError`] except [`ListenError::Unknown`].
    ///
    /// # Panics
    ///
    /// Panics if `address` is [`Address::Stdio`].
    pub(crate) fn bind(address: &Address, access: Access) -> Result<Self, ListenError> {
        match address {
            Address::Unix(path) => {
                remove_stale(path)?;
                let bound = bind_unix(path, access);
                let fd = bound.map_err(|errno| refused(address, errno.into()))?;
                Self::from_listening(address.clone(), fd)
            }
            Address::Tcp(text) => {
                let (bound, fd) = bind_tcp(text).map_err(|error| refused(address, error))?;
                Self::from_listening(bound, fd)
            }
            Address::Stdio => unreachable!("no client arrives at standard input later"),
        }
    }

    /// Takes over a socket that is already listening. A drop does not remove its file.
    ///
    /// # Errors
    ///
    /// The socket is not listening, or is neither unix nor TCP.
    pub(crate) fn inherit(fd: &OwnedFd) -> Result<Self, ListenError> {
        const WORDS: &str = "what was handed over is no socket that listens";
        let fd = fd.try_clone().map_err(|_| ListenError::Unsuitable(WORDS))?;
        if !sockopt::socket_acceptconn(&fd).unwrap_or(false) {
            return Err(ListenError::Unsuitable(WORDS));
        }
        let address = address_of(&fd).ok_or(ListenError::Unsuitable(WORDS))?;
        let mut listener = Self::from_listening(address, fd)?;
        listener.file = None; // the file belongs to the process that bound the socket
        Ok(listener)
    }

    fn from_listening(address: Address, fd: OwnedFd) -> Result<Self, ListenError> {
        // A client may hang up before it is accepted: the accept must not block then.
        rustix::io::ioctl_fionbio(&fd, true).map_err(|errno| refused(&address, errno.into()))?;
        let file = match &address {
            Address::Unix(path) => file_at(path),
            Address::Tcp(_) | Address::Stdio => None,
        };
        Ok(Self { address, fd, file })
    }

    pub(crate) fn accept(&self) -> io::Result<Option<Peer>> {
        match acceptfrom_with(&self.fd, SocketFlags::CLOEXEC) {
            Ok((client, address)) => {
                if matches!(self.address, Address::Tcp(_)) {
                    // The options are optional: a client works without them.
                    let _ = sockopt::set_tcp_nodelay(&client, true);
                    let _ = sockopt::set_socket_keepalive(&client, true);
                }
                Ok(Some(Peer::from_accepted(client, address)))
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address
            && self.file.is_some()
            && file_at(path) == self.file
        {
            // A failure is harmless: the file may be gone already.
            drop(std::fs::remove_file(path));
        }
    }
}

/// Returns the client that is connected to standard input, if [`Address::Stdio`] is among `addresses`.
///
/// # Errors
///
/// Standard input has no client, or is listed twice: two doors would then read from one socket.
pub(crate) fn client_at_stdin(addresses: &[Address]) -> Result<Option<Peer>, ListenError> {
    match addresses.iter().filter(|address| **address == Address::Stdio).count() {
        0 => return Ok(None),
        1 => {}
        _ => return Err(ListenError::Unsuitable("standard input has one client, not several")),
    }
    let stdin = io::stdin();
    let client = stdin.as_fd().try_clone_to_owned().ok();
    let client = client.filter(|client| getpeername(client).is_ok());
    client
        .map(|client| Some(Peer::from_connected(client)))
        .ok_or(ListenError::Unsuitable("standard input is no socket with a client"))
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn refused(address: &Address, error: io::Error) -> ListenError {
    ListenError::Refused(address.to_string(), error)
}

/// Returns the address of a listening socket, or `None` if it is neither unix nor TCP.
fn address_of(fd: &OwnedFd) -> Option<Address> {
    let name = getsockname(fd).ok()?;
    if let Ok(address) = SocketAddr::try_from(name.clone()) {
        return Some(Address::Tcp(address.to_string()));
    }
    let address = SocketAddrUnix::try_from(name).ok()?;
    let path = address.path().map(|path| path.to_string_lossy().into_owned());
    Some(Address::Unix(path.unwrap_or_default().into()))
}

/// Listens at `text`, which is `HOST:PORT`. Returns the address with the port that the system chose for port 0.
fn bind_tcp(text: &str) -> io::Result<(Address, OwnedFd)> {
    let addresses: Vec<_> = text.to_socket_addrs()?.collect();
    let listener = TcpListener::bind(&*addresses)?;
    let bound = listener.local_addr()?;
    Ok((Address::Tcp(bound.to_string()), listener.into()))
}

/// Connects to the socket at `path` and hangs up, without waiting.
fn try_connect(path: &Path) -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

/// Binds a unix socket and listens. Nobody can connect before the socket listens, and then its file has its access.
fn bind_unix(path: &Path, access: Access) -> rustix::io::Result<OwnedFd> {
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    if let Err(errno) = grant_access(path, access).and_then(|()| listen(&fd, BACKLOG)) {
        drop(std::fs::remove_file(path));
        return Err(errno);
    }
    Ok(fd)
}

fn grant_access(path: &Path, access: Access) -> rustix::io::Result<()> {
    if let Some(group) = access.group {
        chown(path, None, Some(Gid::from_raw(group)))?;
    }
    if let Some(mode) = access.mode {
        chmod(path, Mode::from_raw_mode(mode))?;
    }
    Ok(())
}

fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    let address = Address::Unix(path.to_owned());
    match try_connect(path) {
        // EAGAIN means a full backlog: the server is alive, but does not accept just now.
        Ok(()) | Err(Errno::AGAIN) => Err(ListenError::Busy(path.to_owned())),
        // No process has the socket open. After any other error, its server may be alive.
        Err(Errno::CONNREFUSED) => {
            std::fs::remove_file(path).map_err(|error| refused(&address, error))
        }
        Err(errno) => Err(refused(&address, errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Address> {
        text.parse().ok()
    }

    #[test]
    fn an_address_is_a_path_or_a_host_and_a_port() {
        assert_eq!(parse("unix:/tmp/x"), Some(Address::Unix("/tmp/x".into())));
        assert_eq!(parse("[::1]:10809"), Some(Address::Tcp("[::1]:10809".to_owned())));
        assert_eq!(parse("localhost:0"), Some(Address::Tcp("localhost:0".to_owned())));
        for wrong in ["unix:", "/tmp/x", "localhost", ":10809", "localhost:", "localhost:65536"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_socket_whose_server_is_dead_is_replaced() {
        let path = std::env::temp_dir().join(format!("blockyard-stale-{}", std::process::id()));
        let address = Address::Unix(path.clone());
        // Its server is alive, but no client can connect to such a socket.
        let datagrams = std::os::unix::net::UnixDatagram::bind(&path)
            .expect("datagram socket in the folder for temporary files");
        assert!(matches!(
            Listener::bind(&address, Access::default()),
            Err(ListenError::Refused(..))
        ));
        assert!(path.exists(), "a live socket was removed");
        drop(datagrams);
        std::fs::remove_file(&path).expect("removal of a socket's file");
        // Its server is alive but never accepts, so the backlog fills up.
        let address_of = SocketAddrUnix::new(&path).expect("path short enough for a socket");
        let busy = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
        let busy = busy.expect("descriptor of a socket");
        rustix::net::bind(&busy, &address_of).expect("socket at a free path");
        rustix::net::listen(&busy, 0).expect("backlog of a bound socket");
        for _ in 0..3 {
            assert!(matches!(
                Listener::bind(&address, Access::default()),
                Err(ListenError::Busy(_))
            ));
        }
        drop(busy);
        std::fs::remove_file(&path).expect("removal of a socket's file");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("socket at a free path"));
        drop(Listener::bind(&address, Access::default()).expect("listener in place of a dead one"));
        assert!(!path.exists());
    }
}
