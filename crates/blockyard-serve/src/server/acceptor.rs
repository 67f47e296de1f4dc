//! The thread that accepts clients and assigns them to lanes.
//!
//! If a client arrives and the server is full, or has as many clients that have not chosen an
//! export as it may have, the oldest of those is cut off. If as many of those as one origin may
//! have come from the client's address or user, the oldest of that origin is cut off, so no origin
//! can push out the clients of others.

use crate::clients::descriptors;
use crate::clients::listen::{ACCEPT_REST, Listener};
use crate::clients::peer::Peer;
use crate::door::nbd::{self, NewcomerId};
use crate::lane::entrance::{Entrance, Message};
use crate::observation::event::Happened;
use core::sync::atomic::{AtomicUsize, Ordering};
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
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
    /// The state that all clients share.
    pub(crate) doors: Arc<nbd::Shared>,
    /// The number of doors of all lanes.
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) stop: Arc<OwnedFd>,
    pub(crate) connections_max: usize,
}

/// The lanes that have started. A drop drains them: the server is ending, or another part of it
/// cannot start.
pub(crate) struct Begun(pub(crate) Vec<Entrance>);

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
            self.assign_to_lane(client);
        }
        loop {
            let sources = self.listeners.iter().map(AsFd::as_fd).chain([self.stop.as_fd()]);
            let mut sources: Vec<_> =
                sources.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            if poll(&mut sources, None).is_err() {
                continue; // a signal
            }
            let (stop, arrivals) = sources.split_last().expect("the bell is a source");
            if !stop.revents().is_empty() {
                break;
            }
            for (source, listener) in arrivals.iter().zip(&self.listeners) {
                if !source.revents().is_empty() {
                    self.accept_client(listener);
                }
            }
        }
        // Connections are refused from now on, before the lanes drain.
        drop(self.listeners);
    }

    fn accept_client(&self, listener: &Listener) {
        match listener.accept() {
            Ok(Some(client)) => self.assign_to_lane(client),
            Ok(None) => {}
            Err(_) => std::thread::sleep(ACCEPT_REST),
        }
    }

    /// Sends a client to the lane with the fewest clients, if there is room.
    fn assign_to_lane(&self, client: Peer) {
        self.make_room(&client);
        // A client that would use a descriptor of the operator's share is cut off too.
        if self.is_full() || !descriptors::suits_client(&client.fd) {
            self.doors.report(&client, || Happened::CutOff);
            return; // the client's socket is closed here
        }
        let lanes = self.lanes.0.iter().enumerate();
        let (lane, entrance) = lanes
            .min_by_key(|(_, entrance)| entrance.load.load(Ordering::Relaxed))
            .expect("at least one lane");
        // Counted before the lane opens the door: otherwise the next client would see the old
        // number.
        self.connections.fetch_add(1, Ordering::Relaxed);
        entrance.load.fetch_add(1, Ordering::Relaxed);
        let ticket = self.doors.newcomers.enter(client.origin, lane);
        let shared = Arc::clone(&self.doors);
        let newcomer = nbd::Newcomer { peer: client, ticket, shared };
        entrance.send(Message::Arrival(Box::new(newcomer)));
    }

    /// Cuts off the client that has to make room for `client`, if there is one, and waits until its
    /// lane has done so.
    fn make_room(&self, client: &Peer) {
        let Some((silent, lane)) = self.find_silent_client(client) else { return };
        self.doors.newcomers.cut_off(silent);
        self.lanes.0[lane].send(Message::WakeDoors);
        let until = Instant::now() + ROOM_WAIT;
        // First the client leaves the register, then, when nothing of it is in flight, its door
        // closes.
        while self.find_silent_client(client).is_some_and(|(oldest, _)| oldest == silent)
            && Instant::now() < until
        {
            std::thread::sleep(ROOM_POLL);
        }
        while self.is_full() && Instant::now() < until {
            std::thread::sleep(ROOM_POLL);
        }
    }

    /// Returns the client that has to make room for `client`, and the number of its lane.
    ///
    /// With 1024 clients at most, 256 may be silent, and 64 of one origin. The 65th of an origin
    /// pushes out the oldest of that origin, even if there are only 65 in all.
    fn find_silent_client(&self, client: &Peer) -> Option<(NewcomerId, usize)> {
        let silent_max = newcomers_max(self.connections_max);
        let register = &self.doors.newcomers;
        register.oldest_from(client.origin, newcomers_of_origin_max(silent_max)).or_else(|| {
            // A full server needs a place for the new client: one silent client is enough to take
            // it from.
            register.oldest_of(if self.is_full() { 0 } else { silent_max })
        })
    }

    fn is_full(&self) -> bool {
        self.connections.load(Ordering::Relaxed) >= self.connections_max
    }
}

/// Returns the maximum number of clients that have not chosen an export: a quarter of all, or
/// sixteen if that is more, within `connections_max`. A client can then open several connections at
/// once.
fn newcomers_max(connections_max: usize) -> usize {
    (connections_max / 4).max(connections_max.min(16))
}

/// Returns how many of these clients may come from one origin: a quarter, or sixteen if that is
/// more.
fn newcomers_of_origin_max(newcomers_max: usize) -> usize {
    (newcomers_max / 4).max(16)
}
