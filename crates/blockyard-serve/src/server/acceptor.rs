//! The thread that accepts clients and assigns them to lanes.
//!
//! # Rules (cited by name)
//!
//! - **[silent-client-makes-room]** If a client arrives and the server is full, or has as many clients that have not chosen an
//!   export as it may have, the oldest of those is cut off. If as many of those as one origin may have come from the
//!   client's address or user, the oldest of that origin is cut off, so no origin can push out the clients of others.

use crate::clients::descriptors;
use crate::clients::listen::{ACCEPT_REST, Listener};
use crate::clients::peer::Peer;
use crate::door::nbd;
use crate::lane::Shared;
use crate::lane::entrance::{Entrance, Message};
use crate::observation::event::{ClientEvent, Event, Happened};
use core::sync::atomic::Ordering;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The time for which the server waits until a lane has cut off a silent client.
const ROOM_WAIT: Duration = Duration::from_secs(1);
/// The interval at which the server checks for that.
const ROOM_POLL: Duration = Duration::from_micros(100);

/// The thread that accepts clients and assigns them to lanes.
pub(crate) struct Acceptor {
    pub(crate) listeners: Vec<Listener>,
    /// The client at standard input, if any. It is connected before the server starts.
    pub(crate) client: Option<Peer>,
    pub(crate) lanes: Begun,
    pub(crate) shared: Arc<Shared>,
    /// The channel that receives an event for each client that is cut off.
    pub(crate) events: Option<mpsc::SyncSender<Event>>,
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) connections_max: usize,
}

/// The lanes that have started. A drop drains them: the server is ending, or another part of it cannot start.
pub(crate) struct Begun(pub(crate) Vec<Entrance<nbd::Arrival>>);

impl Drop for Begun {
    fn drop(&mut self) {
        for entrance in &self.0 {
            entrance.send(Message::Drain);
        }
    }
}

impl Acceptor {
    /// Accepts clients until `stop` rings. The lanes then drain.
    pub(crate) fn run(mut self) {
        if let Some(client) = self.client.take() {
            self.deal(client);
        }
        loop {
            let sources = self.listeners.iter().map(AsFd::as_fd).chain([self.stop.as_fd()]);
            let mut sources: Vec<_> =
                sources.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            if poll(&mut sources, None).is_err() {
                continue; // a signal
            }
            let has_come = |at: usize| !sources[at].revents().is_empty();
            if has_come(self.listeners.len()) {
                break;
            }
            for (at, listener) in self.listeners.iter().enumerate() {
                if has_come(at) {
                    self.welcome(listener);
                }
            }
        }
        // Connections are refused from now on, before the lanes drain.
        drop(self.listeners);
    }

    fn welcome(&self, listener: &Listener) {
        match listener.accept() {
            Ok(Some(client)) => self.deal(client),
            Ok(None) => {}
            Err(_) => std::thread::sleep(ACCEPT_REST),
        }
    }

    /// Sends a client to the lane with the fewest clients, if there is room ([silent-client-makes-room]).
    fn deal(&self, client: Peer) {
        let connections = || self.shared.connections.load(Ordering::Relaxed);
        let silent = || {
            let is_full = connections() >= self.connections_max;
            let all_max = newcomers_max(self.connections_max);
            let (register, origin) = (&self.shared.newcomers, client.origin);
            let of_origin = register.oldest_from(origin, newcomers_of_origin_max(all_max));
            of_origin.or_else(|| register.oldest_of(if is_full { 0 } else { all_max }))
        };
        if let Some((ticket, lane)) = silent() {
            self.lanes.0[lane].send(Message::CutOff(ticket));
            let until = Instant::now() + ROOM_WAIT;
            while silent().is_some_and(|(oldest, _)| oldest == ticket) && Instant::now() < until {
                std::thread::sleep(ROOM_POLL);
            }
            while connections() >= self.connections_max && Instant::now() < until {
                std::thread::sleep(ROOM_POLL);
            }
        }
        // [operator-has-descriptors]
        if connections() >= self.connections_max || !descriptors::suits_client(&client.fd) {
            if let Some(events) = &self.events {
                let event = ClientEvent { client: client.name, happened: Happened::CutOff };
                drop(events.try_send(Event::Client(event)));
            }
            return; // closed
        }
        let lanes = self.lanes.0.iter().enumerate();
        let least = lanes.min_by_key(|(_, entrance)| entrance.load.load(Ordering::Relaxed));
        let (lane, entrance) = least.expect("at least one lane");
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        entrance.load.fetch_add(1, Ordering::Relaxed);
        let ticket = self.shared.newcomers.enter(client.origin, lane);
        entrance.send(Message::Arrival(nbd::Arrival::New(client), Some(ticket)));
    }
}

/// Returns the maximum number of clients that have not chosen an export: a quarter of all, or sixteen if that is
/// more, within `connections_max`. A client can then open several connections at once.
fn newcomers_max(connections_max: usize) -> usize {
    (connections_max / 4).max(connections_max.min(16))
}

/// Returns how many of these clients may come from one origin: a quarter, or sixteen if that is more.
fn newcomers_of_origin_max(newcomers_max: usize) -> usize {
    (newcomers_max / 4).max(16)
}
