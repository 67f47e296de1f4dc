//! The gate of a disk: counts the clients inside, and closes.
//!
//! # Rules (cited by name)
//!
//! - **[gate-decides-once]** Whether a disk has clients and whether it closes is decided in one step, so a client either is
//!   counted before the gate closes, or does not enter. A client in front of a closed gate waits until an operator's
//!   command has ended: only then it is known whether the export is gone, and which size it has.

use core::sync::atomic::{AtomicUsize, Ordering};

/// The bit of a closed gate, above the number of clients.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// The gate of a disk. See the [module](self).
#[derive(Debug)]
pub(crate) struct Gate {
    /// The number of clients inside, and [`CLOSED`].
    clients: AtomicUsize,
    clients_max: usize,
}

/// The state of the gate as a client meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It is inside.
    Entered,
    /// As many clients as may be are inside.
    Full,
    /// The gate is closed.
    Closed,
}

impl Gate {
    /// Returns an open gate for at most `clients_max` clients at a time; `None` for no limit.
    pub(crate) fn new(clients_max: Option<usize>) -> Self {
        let clients_max = clients_max.unwrap_or(usize::MAX).min(CLOSED - 1);
        Self { clients: AtomicUsize::new(0), clients_max }
    }

    /// Lets one more client in, if the gate is open and there is room.
    pub(crate) fn enter(&self) -> Entry {
        // A closed gate counts as more clients than any limit, so it lets nobody in either.
        match self.clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, |clients| {
            (clients < self.clients_max).then_some(clients + 1)
        }) {
            Ok(_) => Entry::Entered,
            Err(clients) if clients & CLOSED != 0 => Entry::Closed,
            Err(_) => Entry::Full,
        }
    }

    /// Lets a client out that has [entered](Self::enter).
    pub(crate) fn leave(&self) {
        self.clients.fetch_sub(1, Ordering::AcqRel);
    }

    /// Closes the gate, if there are no clients inside or `force` is set.
    ///
    /// # Errors
    ///
    /// Returns the number of clients inside. The gate is still open.
    pub(crate) fn close(&self, force: bool) -> Result<(), usize> {
        let closed = self.clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, |clients| {
            (clients == 0 || force).then_some(clients | CLOSED)
        });
        closed.map(drop)
    }

    /// Opens the gate again. The clients that wait in front of it must be told.
    pub(crate) fn open(&self) {
        self.clients.fetch_and(!CLOSED, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks [gate-decides-once].
    #[test]
    fn a_gate_with_clients_closes_by_force_only() {
        let gate = Gate::new(Some(1));
        assert_eq!((gate.enter(), gate.enter()), (Entry::Entered, Entry::Full));
        assert_eq!(gate.close(false), Err(1));
        assert_eq!(gate.close(true), Ok(()));
        assert_eq!(gate.enter(), Entry::Closed, "closed comes before full");
        gate.leave();
        assert_eq!(gate.enter(), Entry::Closed);
        gate.open();
        assert_eq!(gate.enter(), Entry::Entered);
        gate.leave();
        assert_eq!(gate.close(false), Ok(()));
    }

    /// Each thread goes in and out; whoever closes an empty gate is alone until it opens again.
    #[test]
    fn nobody_is_inside_a_gate_that_was_closed_without_force() {
        let gate = Gate::new(None);
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        if gate.enter() == Entry::Entered {
                            inside.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            gate.leave();
                        }
                    }
                });
            }
            for _ in 0..20_000 {
                if gate.close(false).is_ok() {
                    assert_eq!(inside.load(Ordering::SeqCst), 0, "[gate-decides-once]");
                    gate.open();
                }
            }
        });
    }
}
