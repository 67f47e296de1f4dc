//! The clients that may use a disk, by address and certificate, and their number at a time.

use crate::clients::peer::{Origin, Peer};
use core::fmt;
use core::str::FromStr;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The clients that may use a disk. A client that may not does not see the export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// A client comes from one of these places; empty for any place.
    pub places: Vec<Place>,
    /// A client has a certificate for one of these names, as a DNS name or IP address in its
    /// subjectAltName; empty for any client.
    pub names: Vec<ServerName<'static>>,
    /// The maximum number of clients at a time; `None` for no limit.
    pub clients_max: Option<usize>,
}

/// A place from which clients come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The addresses whose first `bits` bits are those of `address`.
    Network {
        /// An address of the network.
        address: IpAddr,
        /// The number of bits that name the network.
        bits: u8,
    },
    /// A unix socket, used by any user or by the user with this number.
    Unix(Option<u32>),
}

impl Admission {
    /// Returns whether `peer`, which has shown `certificate`, may use the disk.
    pub(crate) fn admits(&self, peer: &Peer, certificate: Option<&CertificateDer<'_>>) -> bool {
        let admits_place = self.places.is_empty() || self.places.iter().any(|it| it.has(peer));
        admits_place && (self.names.is_empty() || self.has_name_of(certificate))
    }

    /// Returns whether `certificate` is for one of the names.
    fn has_name_of(&self, certificate: Option<&CertificateDer<'_>>) -> bool {
        let parsed = certificate.and_then(|it| ParsedCertificate::try_from(it).ok());
        parsed.is_some_and(|certificate| {
            self.names.iter().any(|name| verify_server_name(&certificate, name).is_ok())
        })
    }
}

impl Place {
    pub(crate) fn has(&self, peer: &Peer) -> bool {
        match (*self, peer.address, peer.origin) {
            (Self::Network { address, bits }, Some(from), _) => is_within(from, address, bits),
            (Self::Unix(None), None, Origin::User(_)) => true,
            (Self::Unix(Some(user)), None, Origin::User(from)) => user == from,
            _ => false,
        }
    }
}

/// Returns whether the first `bits` bits of both addresses are equal.
fn is_within(from: IpAddr, network: IpAddr, bits: u8) -> bool {
    // 10.1.2.3 and 10.0.0.0 differ first in bit 15, so both are in 10.0.0.0/8 and /15, but not in
    // the same /16.
    let equal_bits = match (from.to_canonical(), network) {
        (IpAddr::V4(from), IpAddr::V4(network)) => {
            (from.to_bits() ^ network.to_bits()).leading_zeros()
        }
        (IpAddr::V6(from), IpAddr::V6(network)) => {
            (from.to_bits() ^ network.to_bits()).leading_zeros()
        }
        _ => return false,
    };
    equal_bits >= u32::from(bits)
}

/// Returns the message about a text that is no [`Place`].
fn no_place(text: &str) -> String {
    format!("{text}: not an address, a network such as 10.0.0.0/8, `unix` or `unix:USER-ID`")
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unix" {
            return Ok(Self::Unix(None));
        }
        if let Some(user) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(Some(user.parse().map_err(|_| no_place(text))?)));
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| no_place(text))?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| no_place(text))?;
        let address = address.to_canonical();
        let most = match address {
            IpAddr::V4(_) => Ipv4Addr::BITS,
            IpAddr::V6(_) => Ipv6Addr::BITS,
        };
        let bits = bits.unwrap_or(most);
        match u8::try_from(bits) {
            Ok(few) if bits <= most => Ok(Self::Network { address, bits: few }),
            _ => Err(no_place(text)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network { address, bits } => write!(f, "{address}/{bits}"),
            Self::Unix(None) => f.write_str("unix"),
            Self::Unix(Some(user)) => write!(f, "unix:{user}"),
        }
    }
}
