//! The state that all NBD clients of a server share.

use crate::event::Event;
use blockyard::time::Duration;
use blockyard_wire::nbd::{Exports, Tls as Offer};
use std::sync::{Arc, mpsc};

/// The state that all NBD clients of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) exports: Exports,
    pub(crate) tls: Option<Tls>,
    /// How long a client may take to choose an export.
    pub(crate) handshake_deadline: Duration,
    /// The receiver of log events.
    pub(crate) events: Option<mpsc::SyncSender<Event>>,
}

/// How clients may use TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) config: Arc<rustls::ServerConfig>,
    pub(crate) is_required: bool,
}

impl Shared {
    /// The TLS that the handshake offers.
    pub(super) fn offer(&self) -> Offer {
        match &self.tls {
            None => Offer::Off,
            Some(tls) if tls.is_required => Offer::Required,
            Some(_) => Offer::Offered,
        }
    }
}
