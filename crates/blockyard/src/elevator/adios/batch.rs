//! Batches: requests that have left the trees and go in the order of their batch.
//!
//! There are two pages: requests go from one while the other is filled.

use super::kind::{KINDS, Kind};
use crate::policy::AdiosBatchOrder;
use crate::request::{List, Requests};
use crate::unit::RequestId;

/// The list of requests that somebody waits for, where the batch is in the elevator's order.
const WAITED_FOR: usize = 0;
/// The list of the others, by sector.
const SWEPT: usize = 1;

/// A batch.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// By kind; in [`AdiosBatchOrder::Sweep`] those waited for, the others, and other kinds last.
    pub(super) lists: [List; KINDS],
    pub(super) order: AdiosBatchOrder,
}

impl Page {
    const EMPTY: Self = Self { lists: [List::new(); KINDS], order: AdiosBatchOrder::Kinds };

    pub(super) fn is_empty(&self) -> bool {
        self.lists.iter().all(List::is_empty)
    }

    /// Adds a request at the end of its list.
    pub(super) fn push(
        &mut self,
        requests: &mut Requests,
        id: RequestId,
        kind: Kind,
        is_waited_for: bool,
    ) {
        let at = match self.order {
            AdiosBatchOrder::Sweep if is_waited_for && kind != Kind::Other => WAITED_FOR,
            AdiosBatchOrder::Sweep if kind != Kind::Other => SWEPT,
            _ => kind.index(),
        };
        self.lists[at].push_back(requests, id);
    }

    /// Takes the next request: the first of the first list that has one. `backwards`: the last, of
    /// the list by sector.
    pub(super) fn pop(&mut self, requests: &mut Requests, backwards: bool) -> Option<RequestId> {
        let at = self.lists.iter().position(|list| !list.is_empty())?;
        let list = &mut self.lists[at];
        if !(backwards && at == SWEPT) {
            return list.pop_front(requests);
        }
        let last = list.last()?;
        list.remove(requests, last);
        Some(last)
    }

    /// Whether the sweep of this batch begins at its end: the head, at `head_sector`, is behind the
    /// middle between its first and last request.
    pub(super) fn is_swept_backwards(&self, requests: &Requests, head_sector: u64) -> bool {
        if self.order != AdiosBatchOrder::Sweep {
            return false;
        }
        let Some(first) = self.lists[SWEPT].first() else { return false };
        let Some(last) = self.lists[SWEPT].last() else { return false };
        head_sector > requests[first].sector.midpoint(requests[last].sector)
    }

    /// The list that is to be sorted by sector.
    pub(super) const fn swept_mut(&mut self) -> &mut List {
        &mut self.lists[SWEPT]
    }
}

/// The page from which requests go, and the one behind it.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pages: [Page; 2],
    front: usize,
}

impl Pages {
    pub(super) const fn new() -> Self {
        Self { pages: [Page::EMPTY; 2], front: 0 }
    }

    pub(super) const fn front(&self) -> &Page {
        &self.pages[self.front]
    }

    pub(super) const fn front_mut(&mut self) -> &mut Page {
        &mut self.pages[self.front]
    }

    pub(super) const fn back(&self) -> &Page {
        &self.pages[1 - self.front]
    }

    pub(super) const fn back_mut(&mut self) -> &mut Page {
        &mut self.pages[1 - self.front]
    }

    /// Brings the other page to the front.
    pub(super) fn flip(&mut self) {
        debug_assert!(self.front().is_empty(), "a batch that has not gone");
        self.front = 1 - self.front;
    }
}
