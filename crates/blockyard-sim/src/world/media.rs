//! Checks of the data on the media, and power cuts.

use super::{Event, Failure, World};
use blockyard::bio::Bio;
use blockyard::request::Ended;
use blockyard::status::SubmitError;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId, SECTOR_BYTES};
use blockyard_devices::data::verify::{Verified, Verifier};

/// The maximum number of power cuts in a run. Each power cut checks all data on the media.
pub const POWER_CUTS_MAX: usize = 100_000;

/// The `expect` text for the media of a world that verifies data.
const KEPT: &str = "media of a world that verifies";

impl World<'_> {
    /// Verifies the data on the media of the stack with `verifier`. The stack must keep data.
    pub fn verify(&mut self, verifier: Verifier) {
        assert!(self.host.driver.media().is_some(), "a stack under verification must keep data");
        self.verifier = Some(Box::new(verifier));
    }

    /// Checks at `at`, and again after each nonzero `period`, which data would survive a power cut.
    /// Call this after [`Self::verify`], and at most once with a period.
    pub(crate) fn cut_power(&mut self, at: Instant, period: Duration) {
        assert!(self.verifier.is_some(), "a world with power cuts must verify its data");
        self.events.push(at, Event::PowerCut(period));
    }

    /// Returns the result of all checks, with a last check of the media. All bios must have ended.
    #[must_use]
    pub fn verified(&self) -> Option<Verified> {
        let verifier = self.verifier.clone()?;
        Some(verifier.finish(self.host.driver.media().expect(KEPT), self.now))
    }

    pub(super) fn power_cut(&mut self, period: Duration) {
        let dirty_bytes = self.load().dirty_bytes;
        let in_memory = dirty_bytes.map(|bytes| bytes / u64::from(SECTOR_BYTES));
        let verifier =
            self.verifier.as_mut().expect("a world with power cuts should have a verifier");
        if verifier.power_cuts() >= POWER_CUTS_MAX {
            self.failure = Some(Failure::PowerCuts);
            return;
        }
        self.host.driver.update_media(self.now);
        verifier.power_cut(self.host.driver.media_mut().expect(KEPT), in_memory, self.now);
        // Without further events every later power cut would leave the same data.
        let has_events = self.next_event.is_some() || !self.events.is_empty();
        if period > Duration::ZERO && has_events {
            self.cut_power(self.now + period, period);
        }
    }

    /// Checks the data of a bio that has ended. The world must verify data.
    #[inline(never)] // few runs verify data
    pub(super) fn verify_end(&mut self, queue: QueueId, ended: &Ended) {
        let verifier = self.verifier.as_mut().expect("a world that verifies");
        verifier.ended(self.host.driver.media_mut().expect(KEPT), queue, ended, self.now);
    }

    pub(super) fn submit(
        &mut self,
        queue: QueueId,
        cpu: CpuId,
        bio: Bio,
    ) -> Result<(), SubmitError> {
        self.note_elevator(queue);
        let target = &mut self.queues[queue.index()];
        let Some(verifier) = &mut self.verifier else {
            return target.submit(&mut self.host, cpu, bio, self.now);
        };
        verifier.submitting(self.host.driver.media_mut().expect(KEPT), &bio);
        // The verifier knows of a write before the device can: a power cut may come at any instant
        // from here on.
        let taken = target.submit(&mut self.host, cpu, bio, self.now);
        match taken {
            Ok(()) => verifier.submitted(queue, &bio),
            Err(_) => verifier.refused(self.host.driver.media_mut().expect(KEPT), &bio),
        }
        taken
    }
}
