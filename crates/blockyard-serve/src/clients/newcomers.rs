//! Clients that have not chosen an export.
//!
//! The thread that accepts clients registers each of them with its origin before it sends the client to a lane, and the
//! lane removes it. So that thread knows the oldest client of all lanes, and of each origin.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The number of a registered client. Numbers rise with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// The registered clients of all lanes, the oldest first. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Register(Mutex<Registered>);

#[derive(Debug, Default)]
struct Registered {
    next: u64,
    /// The origin of each client, and the number of its lane.
    clients: BTreeMap<Ticket, (Origin, usize)>,
}

impl Register {
    /// Registers a client from `origin` that goes to `lane`.
    pub(crate) fn enter(&self, origin: Origin, lane: usize) -> Ticket {
        let mut registered = self.lock();
        let ticket = Ticket(registered.next);
        registered.next += 1;
        registered.clients.insert(ticket, (origin, lane));
        ticket
    }

    pub(crate) fn leave(&self, ticket: Ticket) {
        self.lock().clients.remove(&ticket);
    }

    /// Returns the oldest client and the number of its lane, if there are as many clients as `max`.
    pub(crate) fn oldest_of(&self, max: usize) -> Option<(Ticket, usize)> {
        Self::oldest(self.lock().clients.iter(), max)
    }

    /// As [`Self::oldest_of`], among the clients from `origin`.
    pub(crate) fn oldest_from(&self, origin: Origin, max: usize) -> Option<(Ticket, usize)> {
        Self::oldest(self.lock().clients.iter().filter(|(_, (from, _))| *from == origin), max)
    }

    fn oldest<'a>(
        mut clients: impl Iterator<Item = (&'a Ticket, &'a (Origin, usize))> + Clone,
        max: usize,
    ) -> Option<(Ticket, usize)> {
        let is_full = clients.clone().count() >= max;
        let (ticket, (_, lane)) = clients.next().filter(|_| is_full)?;
        Some((*ticket, *lane))
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The doors of one lane whose clients are registered.
#[derive(Debug)]
pub(crate) struct Newcomers {
    register: Arc<Register>,
    doors: BTreeMap<Ticket, u32>,
}

impl Newcomers {
    pub(crate) fn new(register: Arc<Register>) -> Self {
        Self { register, doors: BTreeMap::new() }
    }

    /// Adds the door of a registered client.
    pub(crate) fn put(&mut self, ticket: Ticket, door: u32) {
        self.doors.insert(ticket, door);
    }

    /// Removes a door, if it is in the list: its client has chosen an export, or has gone.
    pub(crate) fn remove(&mut self, door: u32) {
        let ticket =
            self.doors.iter().find(|(_, other)| **other == door).map(|(ticket, _)| *ticket);
        if let Some(ticket) = ticket {
            self.take(ticket);
        }
    }

    /// Removes the door of a client and returns its number.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<u32> {
        let door = self.doors.remove(&ticket)?;
        self.register.leave(ticket);
        Some(door)
    }

    /// Removes a client for which no door was opened.
    pub(crate) fn forget(&self, ticket: Ticket) {
        self.register.leave(ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_client_of_an_origin_is_known_in_all_lanes() {
        let origin = |text: &str| Origin::of(text.parse().expect("an address"));
        let (here, there) = (origin("::ffff:10.0.0.1"), origin("2001:db8::1"));
        assert_eq!(here, origin("10.0.0.1"));
        assert_eq!(there, origin("2001:db8::ffff:1"), "a network is one origin");
        assert_ne!(there, origin("2001:db8:0:1::1"));
        let register = Arc::new(Register::default());
        let tickets = [(here, 0), (there, 1), (here, 1), (there, 0)];
        let tickets = tickets.map(|(origin, lane)| register.enter(origin, lane));
        assert_eq!(register.oldest_of(4), Some((tickets[0], 0)));
        assert_eq!(register.oldest_of(5), None);
        assert_eq!(register.oldest_from(there, 2), Some((tickets[1], 1)));
        assert_eq!(register.oldest_from(there, 3), None);
        let mut lane = Newcomers::new(Arc::clone(&register));
        lane.put(tickets[0], 7);
        lane.put(tickets[3], 8);
        lane.remove(8);
        assert_eq!((lane.take(tickets[0]), lane.take(tickets[0])), (Some(7), None));
        lane.forget(tickets[1]);
        assert_eq!(register.oldest_of(1), Some((tickets[2], 1)));
        assert_eq!(register.oldest_from(there, 1), None);
    }
}
