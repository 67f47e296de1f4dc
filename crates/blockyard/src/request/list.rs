//! Lists of requests.

use super::bios::NONE;
use super::pool::{Request, Requests};
use crate::unit::RequestId;

/// A doubly linked list of requests; the links are in the pool ([on-one-list]).
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }

    /// The number of requests on the list.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first request.
    #[must_use]
    pub const fn first(&self) -> Option<RequestId> {
        if self.first == NONE { None } else { Some(RequestId(self.first)) }
    }

    /// The last request.
    #[must_use]
    pub const fn last(&self) -> Option<RequestId> {
        if self.last == NONE { None } else { Some(RequestId(self.last)) }
    }

    /// Adds `id`, which is on no list, at the end.
    pub fn push_back(&mut self, requests: &mut Requests, id: RequestId) {
        let last = self.last;
        let rq = &mut requests[id];
        debug_assert!(rq.next == NONE && rq.prev == NONE, "[on-one-list]");
        rq.prev = last;
        match requests.slots.get_mut(last as usize) {
            Some(before) => before.next = id.0,
            None => self.first = id.0,
        }
        self.last = id.0;
        self.len += 1;
    }

    /// Adds `id`, which is on no list, at the front.
    pub fn push_front(&mut self, requests: &mut Requests, id: RequestId) {
        let first = self.first;
        let rq = &mut requests[id];
        debug_assert!(rq.next == NONE && rq.prev == NONE, "[on-one-list]");
        rq.next = first;
        match requests.slots.get_mut(first as usize) {
            Some(behind) => behind.prev = id.0,
            None => self.last = id.0,
        }
        self.first = id.0;
        self.len += 1;
    }

    /// Removes the first request and returns it.
    pub fn pop_front(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let id = self.first()?;
        self.remove(requests, id);
        Some(id)
    }

    /// Removes `id`, which is on this list.
    pub fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        let rq = &mut requests[id];
        let Request { prev, next, .. } = *rq;
        rq.prev = NONE;
        rq.next = NONE;
        match requests.slots.get_mut(prev as usize) {
            Some(before) => before.next = next,
            None => self.first = next,
        }
        match requests.slots.get_mut(next as usize) {
            Some(behind) => behind.prev = prev,
            None => self.last = prev,
        }
        self.len -= 1;
    }

    /// Puts `id`, which is on no list, in the place of `other`, and removes `other`.
    pub fn replace(&mut self, requests: &mut Requests, other: RequestId, id: RequestId) {
        let Request { prev, next, .. } = requests[other];
        let rq = &mut requests[id];
        debug_assert!(rq.next == NONE && rq.prev == NONE, "[on-one-list]");
        rq.prev = prev;
        rq.next = next;
        let removed = &mut requests[other];
        removed.prev = NONE;
        removed.next = NONE;
        match requests.slots.get_mut(prev as usize) {
            Some(before) => before.next = id.0,
            None => self.first = id.0,
        }
        match requests.slots.get_mut(next as usize) {
            Some(behind) => behind.prev = id.0,
            None => self.last = id.0,
        }
    }

    /// Moves all requests of `other` to the end of this list; constant time.
    pub fn append(&mut self, requests: &mut Requests, other: &mut Self) {
        let taken = core::mem::take(other);
        if taken.is_empty() {
            return;
        }
        match requests.slots.get_mut(self.last as usize) {
            Some(last) => {
                last.next = taken.first;
                requests.slots[taken.first as usize].prev = self.last;
                self.last = taken.last;
                self.len += taken.len;
            }
            None => *self = taken,
        }
    }

    /// Returns the requests from the last to the first.
    pub fn iter_back<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = RequestId> + 'a {
        let mut at = self.last;
        core::iter::from_fn(move || {
            let slot = requests.slots.get(at as usize)?;
            let id = RequestId(at);
            at = slot.prev;
            Some(id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn list(requests: &mut Requests, ids: [u32; 3]) -> List {
        let mut list = List::new();
        ids.into_iter().for_each(|id| list.push_back(requests, RequestId(id)));
        list
    }

    #[test]
    fn appended_lists_are_one_in_both_directions() {
        let mut requests = Requests::new(6);
        let mut one = list(&mut requests, [0, 1, 2]);
        one.append(&mut requests, &mut List::new());
        let mut other = list(&mut requests, [3, 4, 5]);
        one.append(&mut requests, &mut other);
        assert_eq!((one.len(), other.len()), (6, 0));
        let back: Vec<_> = one.iter_back(&requests).map(|id| id.0).collect();
        assert_eq!(back, [5, 4, 3, 2, 1, 0]);
        let popped = core::iter::from_fn(|| one.pop_front(&mut requests)).map(|id| id.0);
        assert_eq!(popped.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_request_that_was_replaced_is_on_no_list() {
        let mut requests = Requests::new(4);
        for at in 0..3 {
            let mut queue = list(&mut requests, [0, 1, 2]);
            queue.replace(&mut requests, RequestId(at), RequestId(3));
            queue.push_back(&mut requests, RequestId(at));
            let mut expected = [0, 1, 2].map(|id| if id == at { 3 } else { id }).to_vec();
            expected.push(at);
            let popped = core::iter::from_fn(|| queue.pop_front(&mut requests)).map(|id| id.0);
            assert_eq!(popped.collect::<Vec<_>>(), expected);
        }
    }
}
