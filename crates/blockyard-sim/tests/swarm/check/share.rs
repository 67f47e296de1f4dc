//! Checks that shared tags are divided fairly ([tags-shared-fairly]): while several request queues
//! use a tag set, none takes more than its share of a hardware queue's tags.
//!
//! The check needs an elevator, under which a tag is allocated just before the driver is offered
//! the request. Without one a bio allocates its tag when it enters, and other queues may have
//! become active since then. [`waits`](super::waits) checks that a queue which waits for a tag gets
//! one in time.

use super::seam::Seam;
use crate::draw::Plan;
use crate::recorder::Seen;
use blockyard::policy::ElevatorKind;
use blockyard::tag::SHARE_MIN;

#[derive(Debug)]
pub(super) struct Share {
    /// The number of tags of a pool that are not reserved.
    depth: u32,
    has_elevator: Vec<bool>,
}

impl Share {
    pub(super) fn new(plan: &Plan) -> Self {
        let has_elevator = |queue: &blockyard::request_queue::QueueConfig| {
            queue.policies.elevator != ElevatorKind::None
        };
        Self {
            depth: u32::from(plan.tags.depth - plan.tags.reserved),
            has_elevator: plan.queues.iter().map(has_elevator).collect(),
        }
    }

    /// Checks the share when the driver accepts `seen`, which `seam` does not count yet.
    pub(super) fn taken(&self, seen: &Seen, seam: &Seam) {
        let Some((held, users)) = seam.holders(seen) else { return };
        let share = self.depth.div_ceil(users).max(SHARE_MIN);
        let fair = !self.has_elevator[seen.queue.index()] || held < share;
        assert!(
            fair,
            "[tags-shared-fairly] {:?} takes one more than {held} of {share}: {seen:?}",
            seen.queue
        );
    }
}
