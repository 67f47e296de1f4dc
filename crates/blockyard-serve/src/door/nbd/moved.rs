//! A client on its way from the lane in which it chose an export to the lane that serves the disk of that export.
//!
//! A client moves at the end of its handshake, before its last answer is sent. The kernel then holds no memory of it, and no disk
//! has a request of it. So only its socket, its TLS and bytes move.

use super::client::{Client, Lane};
use super::input::Input;
use super::session::{Choosing, Chosen, Session};
use super::shared::Shared;
use super::tls::TlsOnItsWay;
use crate::clients::peer::Peer;
use crate::lane::memory::Account;
use crate::observation::event::{Happened, REMOVED};
use blockyard::time::Instant;
use std::sync::{Arc, Weak};

/// A client that arrives at a lane.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// It has connected.
    New(Peer),
    /// It comes from another lane.
    Moved(Box<Moved>),
}

/// A client on its way. See the [module](self).
#[derive(Debug)]
pub(crate) struct Moved {
    peer: Peer,
    id: u64,
    came_at: Instant,
    chosen: Chosen,
    tls: Option<TlsOnItsWay>,
    /// Received bytes that have not been parsed.
    unread: Vec<u8>,
    /// The last answer of the handshake.
    answer: Vec<u8>,
}

impl Client {
    /// Returns the client, which has chosen the disk of another lane, in the form in which it moves.
    pub(super) fn depart(self) -> Moved {
        let Self { peer, id, came_at, session, tls, input, mut batch, .. } = self;
        let Session::Handshake(Choosing { chosen: Some(chosen), .. }) = session else {
            unreachable!("a client moves when it has chosen")
        };
        let mut answer = Vec::new();
        batch.take(batch.heads_bytes(), &mut answer);
        let unread = input.unread().to_vec();
        Moved { peer, id, came_at, chosen, tls: tls.map(|tls| tls.pack()), unread, answer }
    }
}

impl Moved {
    /// Takes note that the client does not arrive.
    pub(super) fn turn_away(self, shared: &Shared, happened: Happened) {
        if let Some(disk) = self.chosen.disk.upgrade() {
            disk.gate.leave();
        }
        shared.tell(&self.peer, || happened);
    }

    /// Returns the client in the lane of its disk, or `None` if the disk has been removed meanwhile.
    pub(super) fn arrive(self, shared: &Arc<Shared>, lane: &Lane) -> Option<Client> {
        let Self { peer, id, came_at, chosen, tls, unread, answer } = self;
        let Chosen { agreed, disk, .. } = chosen;
        let number = agreed.export.0;
        let offered = lane.offered.get(&number);
        if offered.is_none_or(|offered| Arc::as_ptr(&offered.disk) != Weak::as_ptr(&disk)) {
            // The gate of that disk counts nobody any more.
            let why = REMOVED.into();
            shared.tell(&peer, || Happened::Gone { export: None, requests: 0, why });
            return None;
        }
        let session = Session::serving_under(agreed);
        let mut client = Client::known(peer, shared, id, came_at, session, &answer);
        client.account = Account::new(number);
        client.tls = tls.map(|tls| Box::new(tls.unpack()));
        client.input = Input::with(&unread, lane.turn);
        client.tell_entered(lane);
        Some(client)
    }
}
