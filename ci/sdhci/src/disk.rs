//! The disk, and the loop that runs it: a request queue over the card's driver over the
//! controller's driver.

use crate::sdhci::Sdhci;
use blockyard::bio::Bio;
use blockyard::host::Host;
use blockyard::policy::Policies;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::unit::{CpuId, QueueId};
use blockyard_mmc::block::{Counts, Mmc, Target};
use blockyard_mmc::board::Board;
use blockyard_mmc::card::Card;
use blockyard_mmc::controller::HostController;
use blockyard_mmc::policy::HostPolicy;

/// One processor, one hardware queue, up to 64 requests in the driver: enough for a card.
const TAGS: TagSetConfig = TagSetConfig::single(64);

/// A disk.
pub(crate) struct Disk {
    host: Host<Mmc<Sdhci>>,
    queue: RequestQueue,
}

impl Disk {
    /// The disk `card` behind `sdhci`.
    ///
    /// # Panics
    ///
    /// Panics if the controller cannot do `policy`.
    pub(crate) fn new(sdhci: Sdhci, card: &Card, policy: HostPolicy, policies: Policies) -> Self {
        let limits = card.limits(sdhci.capabilities()).expect("sectors of the card");
        let target = Target::of(card, sdhci.capabilities());
        let mmc =
            Mmc::new(sdhci, target, policy).expect("controller with the features of the pipeline");
        let host = Host::new(mmc, (), TAGS);
        let config = QueueConfig { max_bios: 256, ..QueueConfig::new(1, 1, limits, policies) };
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self { host, queue }
    }

    /// Returns the counters of rare events.
    pub(crate) fn counts(&self) -> Counts {
        self.host.driver.counts()
    }

    /// Returns the controller.
    pub(crate) const fn sdhci(&mut self) -> &mut Sdhci {
        &mut self.host.driver.controller
    }

    /// Takes the disk apart.
    pub(crate) fn into_sdhci(self) -> Sdhci {
        self.host.driver.controller
    }

    /// Performs `bios`, as many at once as the queue takes. Reports each to `ended` with its
    /// status.
    ///
    /// # Panics
    ///
    /// Panics if a bio is out of range, or of a kind that the disk does not take.
    pub(crate) fn perform(&mut self, bios: &[Bio], mut ended: impl FnMut(&Bio, Status)) {
        let mut bios = bios.iter().peekable();
        while bios.peek().is_some() || !self.queue.is_empty() {
            let now = self.sdhci().now();
            while let Some(&bio) = bios.peek() {
                match self.queue.submit(&mut self.host, CpuId(0), *bio, now) {
                    Ok(()) => bios.next(),
                    // The queue is full: try again after an end.
                    Err(SubmitError::NoTag | SubmitError::TooManyBios) => break,
                    Err(refused) => panic!("{refused}"),
                };
            }
            self.turn();
            while let Some(end) = self.queue.next_ended() {
                ended(&end.bio, end.status);
            }
        }
    }

    /// Does one piece of work that is due, or sleeps.
    fn turn(&mut self) {
        let now = self.sdhci().now();
        if self.host.driver.turn(now) || self.queue.turn(&mut self.host, now) {
            return;
        }
        if !self.queue.is_empty() {
            // At most until the next tick, after which `now` may have passed `poll_at` of driver or
            // queue.
            self.sdhci().sleep(now);
        }
    }
}
