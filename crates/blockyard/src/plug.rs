//! Plugs: a submitter's short private batch.
//!
//! Between [`plug`](crate::request_queue::RequestQueue::plug) and
//! [`unplug`](crate::request_queue::RequestQueue::unplug) the requests of a processor wait here,
//! where later bios of the same batch merge with them. A plug is released when the submitter says
//! so, when it is about to sleep, and when it is full.

use crate::request::{List, Requests};
use crate::unit::RequestId;

/// Requests after which a plug is released.
pub(crate) const PLUG_REQUESTS_MAX: u32 = 32;
/// A request of this many sectors (128 KiB) ends the batch: the next bio releases the plug first.
pub(crate) const PLUG_REQUEST_SECTORS_MAX: u32 = 256;

/// The batch of one processor.
#[derive(Debug, Default)]
pub(crate) struct Plug {
    /// Requests in the order they came.
    pub(crate) list: List,
    /// Whether requests are to be held here.
    pub(crate) active: bool,
}

impl Plug {
    /// Whether the plug must be released before another request is added.
    pub(crate) fn is_full(&self, requests: &Requests) -> bool {
        self.list.len() >= PLUG_REQUESTS_MAX
            || self.list.last().is_some_and(|id| requests[id].sectors >= PLUG_REQUEST_SECTORS_MAX)
    }

    /// Adds a request.
    pub(crate) fn add(&mut self, requests: &mut Requests, id: RequestId) {
        debug_assert!(!self.is_full(requests), "a full plug is released first");
        self.list.push_back(requests, id);
    }
}
