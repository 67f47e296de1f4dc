//! Clients that have not chosen an export.
//!
//! The thread that accepts clients registers each of them with its origin before it sends the client to a lane. The client's
//! [`Ticket`] is dropped when it chooses an export, and when it goes. So that thread knows the oldest client of all lanes, and of
//! each origin.

use crate::clients::peer::Origin;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of a registered client. Numbers rise with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NewcomerId(u64);

/// A registered client, as the register has it.
#[derive(Debug)]
struct Entry {
    origin: Origin,
    /// The number of its lane.
    lane: usize,
    is_cut_off: Arc<AtomicBool>,
}

/// The registered clients of all lanes, the oldest first. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Register(Mutex<Registered>);

#[derive(Debug, Default)]
struct Registered {
    next: u64,
    clients: BTreeMap<NewcomerId, Entry>,
}

/// The registration of one client. A drop removes it.
#[derive(Debug)]
pub(crate) struct Ticket {
    register: Arc<Register>,
    id: NewcomerId,
    is_cut_off: Arc<AtomicBool>,
}

impl Ticket {
    /// Returns whether the client has to make room for another one.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Acquire)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.register.lock().clients.remove(&self.id);
    }
}

impl Register {
    /// Registers a client from `origin` that goes to `lane`.
    pub(crate) fn enter(self: &Arc<Self>, origin: Origin, lane: usize) -> Ticket {
        let is_cut_off = Arc::<AtomicBool>::default();
        let mut registered = self.lock();
        let id = NewcomerId(registered.next);
        registered.next += 1;
        let entry = Entry { origin, lane, is_cut_off: Arc::clone(&is_cut_off) };
        registered.clients.insert(id, entry);
        Ticket { register: Arc::clone(self), id, is_cut_off }
    }

    /// Marks a client that has to make room, if it is still registered. Its lane must then wake its doors.
    pub(crate) fn cut_off(&self, id: NewcomerId) {
        if let Some(entry) = self.lock().clients.get(&id) {
            entry.is_cut_off.store(true, Ordering::Release);
        }
    }

    /// Returns the oldest client and the number of its lane, if there are as many clients as `max`.
    pub(crate) fn oldest_of(&self, max: usize) -> Option<(NewcomerId, usize)> {
        Self::oldest(self.lock().clients.iter(), max)
    }

    /// As [`Self::oldest_of`], among the clients from `origin`.
    pub(crate) fn oldest_from(&self, origin: Origin, max: usize) -> Option<(NewcomerId, usize)> {
        let registered = self.lock();
        let from_origin = registered.clients.iter().filter(|(_, one)| one.origin == origin);
        Self::oldest(from_origin, max)
    }

    fn oldest<'a>(
        mut clients: impl Iterator<Item = (&'a NewcomerId, &'a Entry)> + Clone,
        max: usize,
    ) -> Option<(NewcomerId, usize)> {
        let is_full = clients.clone().count() >= max;
        let (id, entry) = clients.next().filter(|_| is_full)?;
        Some((*id, entry.lane))
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_client_of_an_origin_is_known_in_all_lanes() {
        let [here, there] = ["::ffff:10.0.0.1", "2001:db8::1"]
            .map(|text| Origin::of(text.parse().expect("an address")));
        let register = Arc::new(Register::default());
        let [first, second, third, fourth] = [(here, 0), (there, 1), (here, 1), (there, 0)]
            .map(|(origin, lane)| register.enter(origin, lane));
        assert_eq!(register.oldest_of(4), Some((first.id, 0)));
        assert_eq!(register.oldest_of(5), None);
        assert_eq!(register.oldest_from(there, 2), Some((second.id, 1)));
        assert_eq!(register.oldest_from(there, 3), None);
        register.cut_off(first.id);
        assert!(first.is_cut_off() && !third.is_cut_off());
        let first_id = first.id;
        drop((first, second, fourth));
        register.cut_off(first_id);
        assert_eq!(register.oldest_of(1), Some((third.id, 1)));
        assert_eq!(register.oldest_from(there, 1), None);
    }
}
