//! A disk as one lane sees it, with the lane's count of its clients' requests.

use super::groups::Groups;
use crate::clients::weight::Weight;
use crate::disk::{Change, Disk, Medium, Outbox};
use crate::observation::meter::{Counts, Meter};
use crate::observation::traffic::Traffic;
use blockyard::bio::Submitter;
use blockyard::elevator::bfq::GROUPS_MAX;
use blockyard::time::Instant;
use blockyard_std::parts::job::Jobs;
use blockyard_std::parts::queue::LaneQueue;
use std::rc::Rc;
use std::sync::Arc;

/// A disk as one lane sees it. See the [module](self).
#[derive(Debug)]
pub(crate) struct DiskQueue {
    pub(crate) disk: Arc<Disk>,
    pub(crate) outbox: Rc<Outbox>,
    /// The requests of clients that have ended.
    pub(crate) traffic: Traffic,
    pub(crate) queue: LaneQueue<Medium, Meter>,
    /// Whether the kernel is reading a range of the disk into the page cache.
    pub(crate) is_prefetching: bool,
    groups: Groups,
}

impl DiskQueue {
    pub(crate) fn new(disk: &Arc<Disk>, lane: u32, jobs: &Jobs, meter: Meter) -> Self {
        let outbox = Rc::new(Outbox::default());
        let shape = disk.shape();
        let medium = disk.medium(lane, jobs, &outbox, &shape.tags());
        Self {
            disk: Arc::clone(disk),
            outbox,
            traffic: Traffic::default(),
            queue: LaneQueue::new(shape, medium, meter, jobs),
            is_prefetching: false,
            groups: Groups::default(),
        }
    }

    /// Returns the counters as of `now`, or `None` if the lane keeps none.
    pub(crate) fn counts(&self, now: Instant) -> Option<Counts> {
        self.queue.bios.host.sink.0.as_ref().map(|metered| metered.counts.at(now))
    }

    /// Counts the turns between the arrival of a request and its answer, if the disk is metered.
    #[inline]
    pub(crate) fn count_turns(&mut self, turns: u64) {
        if let Some(metered) = &mut self.queue.bios.host.sink.0 {
            metered.counts.turns_max = metered.counts.turns_max.max(turns);
        }
    }

    /// Gives the client that submits as `submitter` a weight, in a group of its own. The group is
    /// used for requests that the client submits from now on.
    ///
    /// # Errors
    ///
    /// Fails if the disk is not shared by weights, or if [`GROUPS_MAX`] clients have weights; the
    /// error says which.
    pub(crate) fn weigh(
        &mut self,
        submitter: &mut Submitter,
        weight: Weight,
    ) -> Result<(), String> {
        if let Some(why) = self.disk.has_no_weights() {
            return Err(why.to_owned());
        }
        if submitter.group == 0 {
            let most = || format!("{GROUPS_MAX} clients of the export have weights, the most");
            submitter.group = self.groups.take().ok_or_else(most)?;
        }
        let is_weighed = self.queue.bios.weigh_group(submitter.group, weight.into());
        assert!(is_weighed, "group {} has no weight", submitter.group);
        Ok(())
    }

    /// Forgets the weight of a client that has gone.
    pub(crate) fn forget_weight(&mut self, submitter: Submitter) {
        self.groups.give_back(submitter.group);
    }

    /// Changes the layer that `change` is about. Returns whether there is one.
    pub(crate) fn change_layer(&mut self, change: &Change, now: Instant) -> bool {
        self.queue.bios.host.driver.change_layer(change, now)
    }

    /// Ends with an error the requests that layers hold, and has them hold none from `now` on.
    pub(crate) fn let_go(&mut self, now: Instant) {
        self.queue.bios.host.driver.let_go(now);
    }

    pub(crate) fn report_faults(&self) {
        self.queue.bios.host.driver.report_faults(&self.disk.faults);
    }
}
