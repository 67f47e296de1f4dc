//! A thread that submits bios.

use crate::draw::SubmitterPlan;
use blockyard::bio::{Bio, Flags};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use std::collections::BTreeSet;

/// The event for which a submitter sleeps, apart from the end of its own bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asleep {
    No,
    ForTag,
    /// For a place of throttled writeback.
    ForPlace,
    ForMemory,
}

#[derive(Debug)]
pub(crate) struct Submitter {
    pub(crate) plan: SubmitterPlan,
    /// The number of bios that remain to be submitted.
    pub(crate) left: u64,
    pub(crate) asleep: Asleep,
    /// A bio that was drawn and not yet accepted.
    drawn: Option<Bio>,
    /// The start and end of the last bio.
    at: (u64, u64),
    under_way: BTreeSet<u64>,
}

impl Submitter {
    pub(crate) fn new(plan: SubmitterPlan) -> Self {
        let at = plan.zone;
        let under_way = BTreeSet::new();
        Self { plan, left: 0, asleep: Asleep::No, drawn: None, at, under_way }
    }

    pub(crate) fn may_submit(&self) -> bool {
        self.left > 0 && (self.under_way.len() as u64) < self.plan.depth
    }

    /// Returns the bio to submit under the number `cookie`: the one that was refused, or a new one.
    pub(crate) fn next_bio(&mut self, prng: &mut Prng, limits: &Limits, cookie: u64) -> Bio {
        let bio = match self.drawn {
            Some(bio) => Bio { cookie, ..bio },
            None => {
                let drawn = self.plan.bio(prng, limits, self.at, cookie);
                drawn.with_submitter(self.plan.submitter)
            }
        };
        self.drawn = Some(bio);
        bio
    }

    /// Clears `flag` for the next try.
    pub(crate) fn retry_without(&mut self, flag: Flags) {
        if let Some(bio) = &mut self.drawn {
            bio.flags = bio.flags.without(flag);
        }
    }

    pub(crate) fn taken(&mut self, cookie: u64) {
        let bio = self.drawn.take().expect("an accepted bio should have been drawn");
        if bio.sectors > 0 {
            self.at = (bio.sector, bio.end_sector());
        }
        self.under_way.insert(cookie);
        self.left -= 1;
    }

    pub(crate) fn owns(&self, cookie: u64) -> bool {
        self.under_way.contains(&cookie)
    }

    /// Records the end of one of the submitter's bios. Returns whether the submitter waited for
    /// that bio.
    pub(crate) fn ended(&mut self, cookie: u64) -> bool {
        let full = self.under_way.len() as u64 >= self.plan.depth;
        self.under_way.remove(&cookie);
        full && self.left > 0
    }
}
