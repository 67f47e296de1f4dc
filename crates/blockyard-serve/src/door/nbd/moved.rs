//! Clients on their way to a lane: from the acceptor, or from the lane in which they chose.
//!
//! A client whose export needs one lane moves from the lane in which it chose to the one that
//! serves the disk. A client moves at the end of its handshake, before its last answer is sent. The
//! kernel then holds no memory of it, and no disk has a request of it. So only its socket, its TLS
//! and bytes move.

use super::client::Client;
use super::input::Input;
use super::newcomers::Ticket;
use super::session::{Choosing, Chosen, Session};
use super::shared::Shared;
use super::tls::{TlsOnItsWay, TlsSession};
use crate::clients::peer::Peer;
use crate::lane::door::{Arrival, Door};
use crate::lane::memory::Account;
use crate::lane::services::Services;
use crate::observation::event::{Happened, REMOVED};
use blockyard::time::Instant;
use std::sync::{Arc, Weak};

/// A client that has connected.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) peer: Peer,
    pub(crate) ticket: Ticket,
    pub(crate) shared: Arc<Shared>,
}

/// A client on its way. See the [module](self).
#[derive(Debug)]
pub(super) struct Moved {
    peer: Peer,
    shared: Arc<Shared>,
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
    /// Returns the client, which has chosen the disk of another lane, in the form in which it
    /// moves.
    pub(super) fn pack(self) -> Moved {
        let Self { peer, shared, id, came_at, session, tls, input, mut batch, .. } = self;
        let Session::Handshake(Choosing { chosen: Some(chosen), .. }) = session else {
            unreachable!("a client moves when it has chosen")
        };
        let mut answer = Vec::new();
        batch.take(batch.heads_bytes(), &mut answer);
        let unread = input.unread().to_vec();
        let tls = tls.map(|tls| tls.pack());
        Moved { peer, shared, id, came_at, chosen, tls, unread, answer }
    }
}

impl Arrival for Newcomer {
    fn open_door(self: Box<Self>, lane: &mut Services) -> Option<Box<dyn Door>> {
        let deadline = lane.now + self.shared.handshake_deadline;
        lane.schedule_wake(deadline);
        let Self { peer, ticket, shared } = *self;
        let mut client = Client::new(peer, &shared, lane.now, deadline);
        client.newcomer = Some(ticket);
        Some(Box::new(client))
    }

    fn turn_away(self: Box<Self>) {
        self.shared.report(&self.peer, || Happened::NoMemory);
    }
}

impl Arrival for Moved {
    fn open_door(self: Box<Self>, lane: &mut Services) -> Option<Box<dyn Door>> {
        Some(Box::new(self.unpack(lane)?))
    }

    fn turn_away(self: Box<Self>) {
        if let Some(disk) = self.chosen.disk.upgrade() {
            disk.gate.leave();
        }
        self.shared.report(&self.peer, || Happened::NoMemory);
    }
}

impl Moved {
    /// Returns the client in the lane of its disk, or `None` if the disk has been removed
    /// meanwhile or there is no memory ([session-fails-without-memory]).
    fn unpack(self, lane: &mut Services) -> Option<Client> {
        let Self { peer, shared, id, came_at, chosen, tls, unread, answer } = self;
        let Chosen { agreed, disk, .. } = chosen;
        let number = agreed.export.0;
        let offered = lane.offered.get(&number);
        let Some(offered) = offered.filter(|it| Arc::as_ptr(&it.disk) == Weak::as_ptr(&disk))
        else {
            // The gate of that disk counts nobody any more.
            let why = REMOVED.into();
            let gone = Happened::Gone { export: None, unknown: None, requests: 0, why };
            shared.report(&peer, || gone);
            return None;
        };
        let Some((input, tls)) = unpack_buffers(&unread, tls, lane.turn) else {
            offered.disk.gate.leave();
            shared.report(&peer, || Happened::NoMemory);
            return None;
        };
        let session = Session::serving_under(agreed, id);
        let mut client = Client::with_session(peer, &shared, id, came_at, session, &answer);
        client.account = Account::new(number);
        client.tls = tls;
        client.input = input;
        client.begin_serving(lane);
        Some(client)
    }
}

/// Returns the input and the TLS of a client in its new lane, or `None` if there is no memory.
fn unpack_buffers(
    unread: &[u8],
    tls: Option<TlsOnItsWay>,
    turn: u64,
) -> Option<(Input, Option<Box<TlsSession>>)> {
    let input = Input::with(unread, turn)?;
    let tls = match tls {
        Some(tls) => Some(Box::new(tls.unpack()?)),
        None => None,
    };
    Some((input, tls))
}
