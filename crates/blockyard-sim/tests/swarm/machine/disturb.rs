//! Disturbances from outside at any moment: queues frozen and quiesced, power cuts, and stray
//! completions.

use super::{Event, Machine};
use crate::draw::{Pause, PausePlan, one_in};
use crate::flaw::Flaw;
use blockyard::driver::{Finished, Outcome};
use blockyard::request_queue::NotInFlight;
use blockyard::status::Status;
use blockyard::unit::{DriverTag, HctxId, QueueId};

impl Machine {
    pub(super) fn disturb(&mut self) {
        if self.plan.power_cuts.contains(&self.summary.events) {
            self.checkers.data.power_cut(self.host.driver.media(), self.now);
        }
        if one_in(&mut self.prng, self.plan.strays) {
            self.complete_a_stray();
            self.drain();
        }
        while let Some(at) = self.draining.iter().position(|queue| self.is_drained(*queue)) {
            let queue = self.draining.swap_remove(at);
            self.checkers.drained(queue);
            self.resume(queue, Pause::Freeze);
            self.drain();
        }
    }

    fn is_drained(&self, queue: QueueId) -> bool {
        self.queues[queue.index()].is_empty()
    }

    pub(super) fn pause(&mut self, plan: PausePlan) {
        let PausePlan { queue, how, lasts, .. } = plan;
        let target = &mut self.queues[queue.index()];
        match how {
            Pause::Freeze => {
                self.summary.freezes += 1;
                self.checkers.pauses.frozen(queue);
                if self.striker.flaw != Some(Flaw::ForgetFreeze) {
                    target.freeze(&mut self.host, self.now);
                }
            }
            Pause::Quiesce => {
                self.summary.quiesces += 1;
                self.checkers.pauses.quiesced(queue);
                if self.striker.flaw != Some(Flaw::ForgetQuiesce) {
                    target.quiesce();
                }
            }
        }
        match lasts {
            Some(lasts) => self.events.push(self.now + lasts, Event::Resume(queue, how)),
            None => self.draining.push(queue),
        }
        self.checkers.progress.moved(self.now);
    }

    pub(super) fn resume(&mut self, queue: QueueId, how: Pause) {
        self.pauses -= 1;
        let target = &mut self.queues[queue.index()];
        match how {
            Pause::Freeze => {
                self.checkers.pauses.thawed(queue);
                if self.striker.flaw != Some(Flaw::ForgetFreeze) {
                    target.unfreeze();
                }
            }
            Pause::Quiesce => {
                self.checkers.pauses.resumed(queue);
                if self.striker.flaw != Some(Flaw::ForgetQuiesce) {
                    target.unquiesce();
                }
            }
        }
        self.checkers.progress.moved(self.now);
    }

    /// Reports a late completion or one of no request. It must change nothing ([first-end-wins]).
    fn complete_a_stray(&mut self) {
        let tags = self.plan.tags;
        fn below(machine: &mut Machine, count: usize) -> u16 {
            u16::try_from(machine.prng.below(count as u64))
                .expect("a number below the count should fit 16 bits")
        }
        let queue = QueueId(below(self, self.queues.len()));
        let hctx = HctxId(below(self, usize::from(tags.hctxs)));
        let tag = DriverTag(below(self, usize::from(tags.depth) + 1));
        let mut key = (queue, hctx, tag);
        if self.checkers.seam.owns(key) {
            return;
        }
        if let Some(owned) = self.checkers.seam.first()
            && self.striker.strikes(Flaw::StrayHits)
        {
            key = owned;
        }
        let (queue, hctx, tag) = key;
        let outcomes = [Outcome::Done(Status::Ok), Outcome::Again, Outcome::AgainPrepared];
        let outcome = self.prng.pick(&outcomes);
        let finished = Finished { queue, hctx, tag, outcome };
        let of = &mut self.queues[queue.index()];
        let known = of.conclude(&mut self.host, &finished, self.now);
        assert_eq!(known, Err(NotInFlight), "[first-end-wins] {finished:?}");
        self.summary.strays += 1;
    }
}
