//! The inbox of a lane: requests from other threads.
//!
//! # Rules (cited by name)
//!
//! - **[sleeper-is-rung]** A lane that finds nothing in its inbox marks itself as asleep before it
//!   waits. Whoever puts something in afterwards takes the mark away and rings the bell.

use crate::parts::bell;
use crate::parts::job::Transfer;
use crate::parts::loan::Loan;
use crate::parts::queue::Asked;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A request of a caller.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) asked: Asked,
    /// The range on the disk, with the memory and the caller that waits for it.
    pub(crate) transfer: Transfer<Loan>,
}

impl Request {
    /// Returns a request for `len` bytes from `offset` on, whose data is in `loan`.
    pub(crate) const fn new(asked: Asked, offset: u64, len: u64, loan: Loan) -> Self {
        Self { asked, transfer: Transfer::with(offset, len, loan) }
    }
}

/// The inbox of a lane. See the [module](self).
#[derive(Debug)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    bell: Arc<OwnedFd>,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<Request>,
    is_asleep: bool,
    is_closed: bool,
}

impl Inbox {
    /// Returns the empty inbox of the lane that waits on `bell`.
    pub(crate) fn new(bell: Arc<OwnedFd>) -> Self {
        Self { state: Mutex::default(), bell }
    }

    /// Passes requests to the lane, which gets them in one turn. Drops them if the inbox is closed.
    pub(crate) fn put(&self, requests: impl IntoIterator<Item = Request>) {
        let mut state = self.lock();
        if !state.is_closed {
            state.requests.extend(requests);
            self.wake(state);
        }
    }

    /// Refuses all further requests.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.wake(state);
    }

    /// Moves all requests to `to`, which is empty. Returns whether the inbox is closed.
    pub(crate) fn take(&self, to: &mut Vec<Request>) -> bool {
        debug_assert!(to.is_empty(), "requests of the last turn have begun");
        let mut state = self.lock();
        state.is_asleep = false;
        core::mem::swap(&mut state.requests, to);
        state.is_closed
    }

    /// Marks the lane as asleep, unless there is something that it has not seen
    /// ([sleeper-is-rung]). Returns whether it may wait. `knows_end` says whether it knows that the
    /// inbox is closed.
    pub(crate) fn may_sleep(&self, knows_end: bool) -> bool {
        let mut state = self.lock();
        state.is_asleep = state.requests.is_empty() && state.is_closed == knows_end;
        state.is_asleep
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let was_asleep = core::mem::take(&mut state.is_asleep); // [sleeper-is-rung]
        drop(state);
        if was_asleep {
            bell::ring(&self.bell);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner) // a panic leaves the list whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks [sleeper-is-rung].
    #[test]
    fn a_lane_is_rung_only_while_it_sleeps() {
        let bell = Arc::new(bell::bell().expect("a descriptor should be left"));
        let inbox = Inbox::new(Arc::clone(&bell));
        assert!(inbox.may_sleep(false));
        inbox.put([]);
        assert!(is_rung(&bell), "it slept");
        inbox.put([]);
        assert!(!is_rung(&bell), "it is awake");
        assert!(inbox.may_sleep(false));
        inbox.close();
        assert!(is_rung(&bell), "it must hear of the end");
        assert!(!inbox.may_sleep(false), "it has not seen the end");
        assert!(inbox.take(&mut Vec::new()) && inbox.may_sleep(true));
    }

    fn is_rung(bell: &impl std::os::fd::AsFd) -> bool {
        rustix::io::read(bell, &mut [0; 8]).is_ok()
    }
}
