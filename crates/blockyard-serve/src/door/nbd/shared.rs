//! The state that all NBD clients of a server share.

use super::export::exports;
use super::newcomers::Register;
use crate::clients::peer::Peer;
use crate::disk::roster::Roster;
use crate::observation::event::{ClientEvent, Event, Happened};
use blockyard::time::Duration;
use blockyard_wire::nbd::{ExportError, Exports, Tls as Offer};
use core::sync::atomic::AtomicU64;
use rustls::pki_types::CertificateDer;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};

/// The state that all NBD clients of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) roster: Arc<Roster>,
    /// The exports of the disks in the roster, and the edition of the roster that they are of.
    exports: Mutex<(u64, Arc<Exports>)>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// The number of the next client.
    pub(crate) next_client: AtomicU64,
    /// The time within which a client must choose an export.
    pub(crate) handshake_deadline: Duration,
    pub(crate) events: Option<mpsc::SyncSender<Event>>,
    /// The clients of all lanes that have not chosen an export.
    pub(crate) newcomers: Arc<Register>,
}

/// The exports that one client may choose.
#[derive(Debug)]
pub(super) struct Visible {
    edition: u64,
    has_certificate: bool,
    pub(super) exports: Arc<Exports>,
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
    /// Returns the state of the clients that choose among the disks of `roster`.
    ///
    /// # Errors
    ///
    /// The exports contradict each other.
    pub(crate) fn new(roster: &Arc<Roster>) -> Result<Self, ExportError> {
        // The edition is read first: a change in between makes the exports older than their edition says, and they are made anew.
        let edition = roster.edition();
        let exports = Arc::new(exports(&roster.all())?);
        Ok(Self {
            roster: Arc::clone(roster),
            exports: Mutex::new((edition, exports)),
            tls: None,
            next_client: 1.into(),
            handshake_deadline: Duration::MAX,
            events: None,
            newcomers: Arc::default(),
        })
    }

    /// Brings `visible` up to date: the exports that `peer` may choose, after it has shown `certificate`.
    pub(super) fn look_up<'a>(
        &self,
        visible: &'a mut Option<Visible>,
        peer: &Peer,
        certificate: Option<&CertificateDer<'_>>,
    ) -> &'a Exports {
        let edition = self.roster.edition();
        let has_certificate = certificate.is_some();
        let is_current = visible
            .as_ref()
            .is_some_and(|it| it.edition == edition && it.has_certificate == has_certificate);
        if !is_current {
            let disks = self.roster.all();
            let all = self.exports(edition);
            let admitted: BTreeSet<_> = disks
                .iter()
                .filter(|listed| listed.disk.admission.admits(peer, certificate))
                .map(|listed| listed.number)
                .collect();
            let exports = match admitted.len() == disks.len() {
                true => all,
                false => Arc::new(all.only(|index| admitted.contains(&index.0))),
            };
            *visible = Some(Visible { edition, has_certificate, exports });
        }
        &visible.as_ref().expect("exports, which were looked up").exports
    }

    /// Returns the exports of all disks, which are made anew after each change of the roster.
    fn exports(&self, edition: u64) -> Arc<Exports> {
        let mut exports = self.exports.lock().unwrap_or_else(PoisonError::into_inner);
        if exports.0 != edition {
            let new = super::export::exports(&self.roster.all());
            *exports = (edition, Arc::new(new.expect("exports that were checked before listing")));
        }
        Arc::clone(&exports.1)
    }

    /// Reports an event of the client `peer`.
    pub(crate) fn report(&self, peer: &Peer, happened: impl FnOnce() -> Happened) {
        if let Some(events) = &self.events {
            // A lane never waits for the log: a full channel drops the event.
            let event = ClientEvent { client: peer.name.clone(), happened: happened() };
            drop(events.try_send(Event::Client(event)));
        }
    }

    pub(super) fn offer(&self) -> Offer {
        match &self.tls {
            None => Offer::Off,
            Some(tls) if tls.is_required => Offer::Required,
            Some(_) => Offer::Offered,
        }
    }
}
