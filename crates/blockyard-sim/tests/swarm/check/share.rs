//! Shared tags are divided fairly ([tags-shared-fairly]): while several request queues use a tag set, none takes more
//! of a hardware queue's tags than its share.
//!
//! Checked where a tag is taken just before the driver is offered the request: with an elevator.
//! Without one a tag is taken when a bio enters, and others may have come since. That who waits gets
//! some in time is for [`waits`](super::waits).

use super::seam::Seam;
use crate::draw::Plan;
use crate::recorder::Seen;
use blockyard::policy::ElevatorKind;
use blockyard::tag::SHARE_MIN;

#[derive(Debug)]
pub(super) struct Share {
    /// Tags of a pool that are not reserved.
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

    /// The driver takes `seen`, which `seam` does not count yet.
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
