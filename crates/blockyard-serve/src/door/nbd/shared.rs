//! The state that all NBD clients of a server share.

use crate::event::Event;
use blockyard::time::Duration;
use blockyard_wire::nbd::{Exports, Tls as Offer};
use core::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, mpsc};

/// The state that all NBD clients of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) exports: Exports,
    pub(crate) tls: Option<Arc<Tls>>,
    /// The number of the next client.
    pub(crate) next_client: AtomicU64,
    /// The time within which a client must choose an export.
    pub(crate) handshake_deadline: Duration,
    pub(crate) events: Option<mpsc::SyncSender<Event>>,
}

/// The TLS that clients may or must use.
#[derive(Debug)]
pub(crate) struct Tls {
    config: RwLock<Arc<rustls::ServerConfig>>,
    is_required: bool,
}

impl Tls {
    pub(crate) fn new(config: Arc<rustls::ServerConfig>, is_required: bool) -> Self {
        Self { config: RwLock::new(config), is_required }
    }

    pub(super) fn config(&self) -> Arc<rustls::ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration of new sessions.
    pub(crate) fn replace(&self, config: Arc<rustls::ServerConfig>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }
}

impl Shared {
    pub(super) fn offer(&self) -> Offer {
        match &self.tls {
            None => Offer::Off,
            Some(tls) if tls.is_required => Offer::Required,
            Some(_) => Offer::Offered,
        }
    }
}
