//! What is on the media, held against what ought to be; losses of power.

use super::{Event, Failure, World};
use crate::data::verify::{Verified, Verifier};
use crate::observe::Observer;
use blockyard::bio::Bio;
use blockyard::request::Ended;
use blockyard::status::SubmitError;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};

/// Most losses of power that are looked at in a run: each takes a look at all that is on the media.
pub const POWER_CUTS_MAX: usize = 100_000;

/// Why a stack has media.
const KEPT: &str = "what is verified is kept";

impl<O: Observer> World<O> {
    /// Holds what is on the media of the stack, which keeps them, against what ought to be.
    pub fn verify(&mut self, verifier: Verifier) {
        self.verifier = Some(Box::new(verifier));
    }

    /// Asks at `at` what would be left if the power went, and then after each `period` unless that
    /// is zero: at most once with a period. [`Self::verify`] comes first.
    pub fn cut_power(&mut self, at: Instant, period: Duration) {
        self.events.push(at, Event::PowerCut(period));
    }

    /// What was verified, if anything is: with what is on the media now. All bios have ended.
    #[must_use]
    pub fn verified(&self) -> Option<Verified> {
        let verifier = self.verifier.clone()?;
        Some(verifier.finish(self.host.driver.media().expect(KEPT), self.now))
    }

    pub(super) fn power_cut(&mut self, period: Duration) {
        let verifier = self.verifier.as_mut().expect("whoever cuts the power verifies");
        if verifier.power_cuts() >= POWER_CUTS_MAX {
            self.failure = Some(Failure::PowerCuts);
            return;
        }
        self.host.driver.update_media(self.now);
        verifier.power_cut(self.host.driver.media_mut().expect(KEPT), self.now);
        // Where nothing else is to come, nothing will ever be left but the same.
        let goes_on = self.next_event.is_some() || !self.events.is_empty();
        if period > Duration::ZERO && goes_on {
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
