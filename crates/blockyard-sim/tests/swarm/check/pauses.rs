//! Checks that no bio enters a frozen queue and the requests inside end ([frozen-admits-none]), and
//! that a quiesced queue offers nothing to the driver ([quiesced-sends-none]).

use super::ends::Ends;
use crate::draw::Plan;
use crate::recorder::Seen;
use blockyard::bio::{Bio, Flags};
use blockyard::status::SubmitError;
use blockyard::unit::QueueId;

/// The number of open freezes and quiesces of each queue.
#[derive(Debug)]
pub(crate) struct Pauses {
    frozen: Vec<u32>,
    quiesced: Vec<u32>,
}

impl Pauses {
    pub(super) fn new(plan: &Plan) -> Self {
        let none = vec![0; plan.queues.len()];
        Self { frozen: none.clone(), quiesced: none }
    }

    pub(crate) fn frozen(&mut self, queue: QueueId) {
        self.frozen[queue.index()] += 1;
    }

    pub(crate) fn thawed(&mut self, queue: QueueId) {
        self.frozen[queue.index()] -= 1;
    }

    pub(crate) fn quiesced(&mut self, queue: QueueId) {
        self.quiesced[queue.index()] += 1;
    }

    pub(crate) fn resumed(&mut self, queue: QueueId) {
        self.quiesced[queue.index()] -= 1;
    }

    pub(super) fn entered(&self, queue: QueueId, bio: &Bio) {
        assert_eq!(self.frozen[queue.index()], 0, "[frozen-admits-none] {bio:?} entered");
    }

    /// `bio` was refused.
    pub(crate) fn refused(&self, queue: QueueId, bio: &Bio, refused: SubmitError) {
        let right = match (self.frozen[queue.index()] > 0, bio.flags.contains(Flags::NOWAIT)) {
            (true, true) => refused == SubmitError::WouldBlock,
            (true, false) => refused == SubmitError::Frozen,
            (false, _) => refused != SubmitError::Frozen,
        };
        assert!(right, "[frozen-admits-none] {refused:?} of {bio:?}");
    }

    pub(super) fn offered(&self, seen: &Seen) {
        assert_eq!(
            self.quiesced[seen.queue.index()],
            0,
            "[quiesced-sends-none] {seen:?} is offered"
        );
    }

    /// The queue reports that it is empty.
    pub(crate) fn drained(queue: QueueId, ends: &Ends) {
        let left = ends.open_of(queue);
        assert_eq!(left, 0, "[frozen-admits-none] {queue:?} reports that it is empty");
    }
}
