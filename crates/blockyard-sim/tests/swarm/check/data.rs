//! Checks reads, the final contents and the contents after a power loss against the sequential
//! model of [`history`](blockyard_devices::data::history).

use crate::draw::Plan;
use blockyard::bio::Bio;
use blockyard::prng::Prng;
use blockyard::request::Ended;
use blockyard::time::Instant;
use blockyard::unit::QueueId;
use blockyard_devices::data::history::Cache;
use blockyard_devices::data::medium::Media;
use blockyard_devices::data::verify::{Found, Verified, Verifier};

pub(crate) struct Data {
    verifier: Verifier,
}

impl Data {
    pub(super) fn new(plan: &Plan, draws: Prng) -> Self {
        let cache = if plan.is_volatile() { Cache::Volatile } else { Cache::WriteThrough };
        let disks =
            u16::try_from(plan.queues.len()).expect("the number of disks should fit 16 bits");
        Self { verifier: Verifier::new(disks, cache, draws) }
    }

    /// Prepares for the submission of `bio`. Call [`Self::taken`] or [`Self::refused`] next.
    pub(crate) fn submitting(&mut self, media: &mut Media, bio: &Bio) {
        self.verifier.submitting(media, bio);
    }

    pub(crate) fn taken(&mut self, queue: QueueId, bio: &Bio) {
        self.verifier.submitted(queue, bio);
    }

    pub(crate) fn refused(&self, media: &mut Media, bio: &Bio) {
        self.verifier.refused(media, bio);
    }

    pub(crate) fn ended(&mut self, media: &mut Media, queue: QueueId, ended: &Ended, now: Instant) {
        self.verifier.ended(media, queue, ended, now);
    }

    /// Checks the data that a power cut would leave now.
    pub(crate) fn power_cut(&mut self, media: &mut Media, now: Instant) {
        self.verifier.power_cut(media, None, now);
    }

    /// Checks the final contents after all bios have ended. Returns the number of sectors checked.
    pub(crate) fn finish(&mut self, media: &mut Media, now: Instant) -> Verified {
        self.power_cut(media, now);
        let verified = self.verifier.finish(media, now);
        if let Some(first) = verified.violations.first() {
            let checker = match first.found {
                Found::AfterPowerCut => "durability",
                Found::Read(_) | Found::AtEnd => "data",
            };
            panic!("[{checker}] {first}, and {} more", verified.violation_count - 1);
        }
        verified
    }
}
