//! The disk, and the loop that runs it: a request queue over the card's driver over the
//! controller's driver.

use crate::chip::Chip;
use crate::sdhci::Sdhci;
use blockyard::bio::Bio;
use blockyard::driver::Device;
use blockyard::host::Host;
use blockyard::policy::Policies;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, QueueId};
use blockyard_mmc::block::{Mmc, Target};
use blockyard_mmc::board::{Board, bring_up};
use blockyard_mmc::card::Card;
use blockyard_mmc::controller::HostController;
use blockyard_mmc::host::BusyDetect;
use blockyard_mmc::policy::{HostPolicy, Pipeline};

/// One processor, one hardware queue, up to 64 requests in the driver: enough for a card.
/// Nobody waits for a tag: [`Disk::transfer`] submits again after an end.
const TAGS: TagSetConfig = TagSetConfig { max_waiters: 0, ..TagSetConfig::single(64) };

/// A disk.
pub(crate) struct Disk {
    pub(crate) host: Host<Mmc<Sdhci>>,
    pub(crate) card: Card,
    queue: RequestQueue,
}

impl Disk {
    /// Brings up the card of `chip`. All memory is allocated here, except for what it takes to
    /// identify the card again after a reset.
    ///
    /// # Panics
    ///
    /// Panics if there is no card, or if the controller cannot do `pipeline`. A real firmware would
    /// report it.
    pub(crate) fn new(chip: Chip, pipeline: Pipeline) -> Self {
        let mut sdhci = Sdhci::new(chip);
        let card = *bring_up(&mut sdhci).expect("card that is soldered in");
        let limits = card.limits(sdhci.capabilities()).expect("sectors of the card");
        let target = Target::of(&card, sdhci.capabilities());
        let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
        let mmc =
            Mmc::new(sdhci, target, policy).expect("controller with the features of the pipeline");
        let host = Host::new(mmc, (), TAGS);
        let config = QueueConfig {
            max_bios: 256,
            max_waiters: 0,
            ..QueueConfig::new(1, 1, limits, Policies::mq_deadline())
        };
        assert!(config.memory(&TAGS) + Host::memory(&TAGS) < 50_000, "a queue for little memory");
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self { host, card, queue }
    }

    /// The memory of the bios.
    pub(crate) fn ram(&mut self) -> &mut [u8] {
        &mut self.host.driver.controller.chip.ram
    }

    pub(crate) fn now(&self) -> Instant {
        self.host.driver.controller.now()
    }

    /// Submits `bios` and returns when all have ended. A real firmware submits bios as they arise
    /// and never returns; its turns are the same.
    ///
    /// # Errors
    ///
    /// Returns the status of the last bio that failed.
    pub(crate) fn transfer(&mut self, bios: &[Bio]) -> Result<(), Status> {
        let mut bios = bios.iter().copied().peekable();
        let mut result = Ok(());
        loop {
            let now = self.now();
            while let Some(&bio) = bios.peek() {
                match self.queue.submit(&mut self.host, CpuId(0), bio, now) {
                    Ok(()) => bios.next(),
                    // The queue is full: try again after an end.
                    Err(SubmitError::NoTag | SubmitError::TooManyBios) => break,
                    Err(refused) => panic!("{refused}"),
                };
            }
            self.turn();
            while let Some(ended) = self.queue.next_ended() {
                // `ended.bio.cookie` tells whose memory it was.
                if ended.status != Status::Ok {
                    result = Err(ended.status);
                }
            }
            if self.queue.is_empty() && bios.peek().is_none() {
                return result;
            }
        }
    }

    /// Does one piece of work that is due, or sleeps.
    fn turn(&mut self) {
        let now = self.now();
        // The interrupt handler only notes that there is something to read. A handler that does the
        // work itself shares `host` with this loop in critical sections, and a firmware with tasks
        // lets each context run in one of its own. The driver may have finished requests, which the
        // queue takes back; or the queue has requests for the driver.
        if self.host.driver.turn(now) || self.queue.turn(&mut self.host, now) {
            return;
        }
        // Nothing to do: sleep until the next interrupt, or until the instant of queue or driver.
        // (With interrupts masked, WFI returns for an interrupt that came since they were checked.)
        if !self.queue.is_empty() {
            let limit = self.host.driver.poll_at().into_iter().chain(self.queue.poll_at()).min();
            self.host.driver.controller.chip.wait(limit);
        }
    }
}
