//! The disk, and the loop that runs it: a request queue over the card's driver over the controller's.

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
use blockyard_mmc::block::{Context, Mmc, Target};
use blockyard_mmc::card::Card;
use blockyard_mmc::controller::HostController;
use blockyard_mmc::host::BusyDetect;
use blockyard_mmc::policy::{HostPolicy, Pipeline};

/// One processor, one hardware queue, up to 64 requests at the driver: all that a card needs.
const TAGS: TagSetConfig = TagSetConfig::single(64);

/// A disk.
pub(crate) struct Disk {
    pub(crate) host: Host<Mmc<Sdhci>>,
    pub(crate) card: Card,
    queue: RequestQueue,
}

impl Disk {
    /// Brings the card of `chip` up. All memory is allocated here, but for what it takes to identify
    /// the card once more after a reset.
    ///
    /// # Panics
    ///
    /// If there is no card, or `pipeline` needs what the controller has not. A firmware would tell.
    pub(crate) fn new(chip: Chip, pipeline: Pipeline) -> Self {
        let mut sdhci = Sdhci::new(chip);
        let card = *sdhci.identify().expect("a card is soldered in");
        let limits = card.limits(sdhci.capabilities()).expect("it has sectors");
        let target = Target::of(&card, sdhci.capabilities());
        let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
        let mmc = Mmc::new(sdhci, target, policy).expect("the controller can do it");
        let host = Host::new(mmc, (), TAGS);
        let config = QueueConfig {
            max_bios: 256,
            ..QueueConfig::new(1, 1, limits, Policies::mq_deadline())
        };
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self { host, card, queue }
    }

    /// The memory that bios name.
    pub(crate) fn ram(&mut self) -> &mut [u8] {
        &mut self.host.driver.controller.chip.ram
    }

    pub(crate) fn now(&self) -> Instant {
        self.host.driver.controller.chip.now()
    }

    /// Does `bios` and returns when all have ended. A firmware submits when something comes up and
    /// runs for ever; the turns are the same.
    ///
    /// # Errors
    ///
    /// What the last one that failed has failed with.
    pub(crate) fn transfer(&mut self, bios: &[Bio]) -> Result<(), Status> {
        let mut bios = bios.iter().copied().peekable();
        let mut result = Ok(());
        loop {
            let now = self.now();
            while let Some(&bio) = bios.peek() {
                match self.queue.submit(&mut self.host, CpuId(0), bio, now) {
                    Ok(()) => bios.next(),
                    // Full: when something has ended.
                    Err(SubmitError::NoTag | SubmitError::TooManyBios) => break,
                    Err(refused) => panic!("{refused}"),
                };
            }
            self.turn();
            while let Some(ended) = self.queue.next_ended() {
                // `ended.bio.cookie` says whose memory it was.
                if ended.status != Status::Ok {
                    result = Err(ended.status);
                }
            }
            if self.queue.is_empty() && bios.peek().is_none() {
                return result;
            }
        }
    }

    /// Does one thing that is to be done, or sleeps.
    fn turn(&mut self) {
        let now = self.now();
        let mmc = &mut self.host.driver;
        // The interrupt handler. Where it comes by itself, in the midst of what is below, it and the
        // loop take turns with `host` by a critical section; or it just wakes the loop, as here.
        while let Some(event) = mmc.controller.next_event() {
            mmc.interrupt(event, now);
        }
        while mmc.step(Context::Interrupt, now).is_some() {}
        // What may take a while: one step, then look at interrupts again. Where there are tasks, these
        // are two, and `Mmc::pending` says when they are to be woken.
        if mmc.step(Context::Deferred, now).is_some() || mmc.step(Context::Thread, now).is_some() {
            return;
        }
        // The driver is done with requests, which the queue takes back, or the queue has some for it.
        if self.queue.turn(&mut self.host, now) {
            return;
        }
        // Nothing to do: until the next interrupt, or until one of both wants to look again. (WFI with
        // interrupts masked returns for one that came since they were looked at.)
        if !self.queue.is_empty() {
            let limit = self.host.driver.poll_at().into_iter().chain(self.queue.poll_at()).min();
            self.host.driver.controller.chip.wait(limit);
        }
    }
}
