//! The other end of a connection: a socket, and the name of the client for a log.

use crate::newcomers::Origin;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrAny, getpeername, sockopt};
use std::net::{IpAddr, SocketAddr};

/// The other end of a connection. See the [module](self).
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) fd: OwnedFd,
    /// The address and port, or the process at the other end of a unix socket. The name stays valid after the client
    /// has hung up.
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// The address of a client over TCP.
    pub(crate) address: Option<IpAddr>,
}

impl Peer {
    /// Returns the client that was accepted from `address`.
    pub(crate) fn accepted(fd: OwnedFd, address: Option<SocketAddrAny>) -> Self {
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        let (name, origin) = match address {
            Some(address) => (address.to_string(), Origin::of(address.ip())),
            None => process_of(&fd),
        };
        Self { fd, name, origin, address: address.map(|address| address.ip()) }
    }

    /// Whether its replies are lost if the connection is closed with received bytes unread: TCP.
    pub(crate) fn is_reset_by_unread_bytes(&self) -> bool {
        sockopt::socket_domain(&self.fd) != Ok(AddressFamily::UNIX)
    }

    /// Returns the client at a socket that is connected already.
    pub(crate) fn connected(fd: OwnedFd) -> Self {
        let address = getpeername(&fd).ok().flatten();
        Self::accepted(fd, address)
    }
}

fn process_of(client: &OwnedFd) -> (String, Origin) {
    match sockopt::socket_peercred(client) {
        Ok(process) => {
            let user = process.uid.as_raw();
            (format!("process {} of user {user}", process.pid.as_raw_nonzero()), Origin::User(user))
        }
        Err(_) => ("of an unknown address".to_owned(), Origin::Unknown),
    }
}
