//! Checks of the data on the media, and losses of power.

use super::{Event, Failure, World};
use crate::data::verify::{Verified, Verifier};
use crate::observe::Observer;
use blockyard::bio::Bio;
use blockyard::request::Ended;
use blockyard::status::SubmitError;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};

/// The most power cuts of a run: each is a check of all data on the media.
pub const POWER_CUTS_MAX: usize = 100_000;

/// The message if a world that verifies has no media.
const KEPT: &str = "media of a world that verifies";

impl<O: Observer> World<O> {
    /// Checks the data on the media of the stack, which keeps it, by `verifier`.
    pub fn verify(&mut self, verifier: Verifier) {
        assert!(self.host.driver.media().is_some(), "the stack keeps no data");
        self.verifier = Some(Box::new(verifier));
    }

    /// Checks at `at` what would be left if the power went, and again after each `period` unless that is zero.
    /// Call this at most once with a period, after [`Self::verify`].
    pub fn cut_power(&mut self, at: Instant, period: Duration) {
        assert!(self.verifier.is_some(), "power cuts in a world that verifies nothing");
        self.events.push(at, Event::PowerCut(period));
    }

    /// The result of the checks, with the data on the media now. All bios have ended.
    #[must_use]
    pub fn verified(&self) -> Option<Verified> {
        let verifier = self.verifier.clone()?;
        Some(verifier.finish(self.host.driver.media().expect(KEPT), self.now))
    }

    pub(super) fn power_cut(&mut self, period: Duration) {
        let verifier = self.verifier.as_mut().expect("verifier of a world with power cuts");
        if verifier.power_cuts() >= POWER_CUTS_MAX {
            self.failure = Some(Failure::PowerCuts);
            return;
        }
        self.host.driver.update_media(self.now);
        verifier.power_cut(self.host.driver.media_mut().expect(KEPT), self.now);
        // Without further events every later power cut would leave the same.
        let has_events = self.next_event.is_some() || !self.events.is_empty();
        if period > Duration::ZERO && has_events {
            self.cut_power(self.now + period, period);
        }
    }

    pub(super) fn verify_end(&mut self, queue: QueueId, ended: &Ended) {
        if let Some(verifier) = &mut self.verifier {
            verifier.ended(self.host.driver.media_mut().expect(KEPT), queue, ended, self.now);
        }
    }

    pub(super) fn submit(
        &mut self,
        queue: QueueId,
        cpu: CpuId,
        bio: Bio,
    ) -> Result<(), SubmitError> {
        let target = &mut self.queues[queue.index()];
        let Some(verifier) = &mut self.verifier else {
            return target.submit(&mut self.host, cpu, bio, self.now);
        };
        verifier.submitting(self.host.driver.media_mut().expect(KEPT), &bio);
        let taken = target.submit(&mut self.host, cpu, bio, self.now);
        match taken {
            Ok(()) => verifier.submitted(queue, &bio),
            Err(_) => verifier.refused(self.host.driver.media_mut().expect(KEPT), &bio),
        }
        taken
    }
}
