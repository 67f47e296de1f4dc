//! The other end of a connection: a socket, and the name of the client for a log.
//!
//! # Safety
//!
//! The only unsafe call is an ioctl that writes a number.
#![allow(unsafe_code, reason = "an ioctl has no safe form; see Safety above")]

use rustix::fd::OwnedFd;
use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::{AddressFamily, SocketAddrAny, getpeername, sockopt};
use std::net::{IpAddr, SocketAddr};

/// The number of `SIOCOUTQ`, which libc does not name: bytes that the other end has not acknowledged.
const SIOCOUTQ: Opcode = 0x5411;

/// The bits of an IPv6 address that name a network: one host may use all addresses of a network.
const NETWORK: u128 = !0 << 64;

/// Where a client comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An IPv4 address, or an IPv6 network.
    Address(IpAddr),
    /// The user at the other end of a unix socket.
    User(u32),
    Unknown,
}

impl Origin {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() & NETWORK).into()),
            address @ IpAddr::V4(_) => address,
        })
    }
}

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
    pub(crate) fn from_accepted(fd: OwnedFd, address: Option<SocketAddrAny>) -> Self {
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

    /// Returns the number of bytes that were sent and that the client's system has not acknowledged.
    pub(crate) fn unreceived_bytes(&self) -> u32 {
        // SAFETY: `SIOCOUTQ` of a socket writes an `int`.
        let unreceived = unsafe { ioctl(&self.fd, Getter::<SIOCOUTQ, libc::c_int>::new()) };
        unreceived.map_or(0, |bytes| u32::try_from(bytes).unwrap_or(0))
    }

    /// Returns the client at a socket that is connected already.
    pub(crate) fn from_connected(fd: OwnedFd) -> Self {
        let address = getpeername(&fd).ok().flatten();
        Self::from_accepted(fd, address)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_an_ipv6_network_are_one_origin() {
        let [v4, mapped_v4, v6, neighbour, other_network] =
            ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"]
                .map(|text| Origin::of(text.parse().expect("an address")));
        assert_eq!(mapped_v4, v4);
        assert_eq!(neighbour, v6);
        assert_ne!(other_network, v6);
    }
}
