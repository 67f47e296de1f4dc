//! Checkers. Each panics with the name of its rule in brackets, by which canaries recognise it.
//!
//! [`Checkers`] passes them the events of submitters, the driver and the trace.

pub(crate) mod accounts;
mod cover;
mod data;
mod ends;
mod flushes;
mod hardware_queues;
mod merges;
mod pauses;
mod progress;
mod seam;
mod sequence;
mod share;
mod timeouts;
mod waits;

use crate::draw::Plan;
use crate::flaw::{Flaw, Striker};
use crate::recorder::{Key, Seen};
use blockyard::bio::{Bio, Op};
use blockyard::driver::{Accept, Outcome, TimedOut};
use blockyard::prng::Prng;
use blockyard::request::Ended;
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::QueueId;

/// All checkers.
pub(crate) struct Checkers {
    plan: Plan,
    striker: Striker,
    pub(crate) ends: ends::Ends,
    cover: cover::Cover,
    pub(crate) progress: progress::Progress,
    pub(crate) waits: waits::Waits,
    pub(crate) seam: seam::Seam,
    pub(crate) flushes: flushes::Flushes,
    pub(crate) hardware_queues: hardware_queues::HardwareQueues,
    pub(crate) pauses: pauses::Pauses,
    pub(crate) timeouts: timeouts::Timeouts,
    share: share::Share,
    pub(crate) data: data::Data,
}

impl Checkers {
    pub(crate) fn new(plan: &Plan, flaw: Option<Flaw>, draws: Prng) -> Self {
        Self {
            striker: Striker::new(flaw),
            ends: ends::Ends::default(),
            cover: cover::Cover::default(),
            progress: progress::Progress::new(plan),
            waits: waits::Waits::new(plan),
            seam: seam::Seam::new(plan),
            flushes: flushes::Flushes::new(plan),
            hardware_queues: hardware_queues::HardwareQueues::new(plan),
            pauses: pauses::Pauses::new(plan),
            timeouts: timeouts::Timeouts::new(plan),
            share: share::Share::new(plan),
            data: data::Data::new(plan, draws),
            plan: plan.clone(),
        }
    }

    /// A bio was accepted.
    pub(crate) fn entered(&mut self, queue: QueueId, bio: Bio, now: Instant, faulty: bool) {
        self.pauses.entered(queue, &bio);
        self.flushes.entered(queue, &bio, now);
        self.ends.entered(queue, bio, sequence::needs_flush(&bio, self.limits(queue)));
        if !faulty {
            self.waits.entered(bio.cookie, now);
        }
        self.progress.moved(now);
    }

    fn limits(&self, queue: QueueId) -> &blockyard::limits::Limits {
        &self.plan.queues[queue.index()].limits
    }

    /// The driver was offered a request.
    pub(crate) fn offered(&mut self, seen: &Seen, now: Instant) {
        self.pauses.offered(seen);
        if let Accept::Busy(_) = seen.answer {
            return;
        }
        self.progress.moved(now);
        let limits = &self.plan.queues[seen.queue.index()].limits;
        if self.striker.strikes(Flaw::MixOps) {
            let other = Seen { op: Op::Flush, ..seen.clone() };
            merges::check(&self.ends, &other, limits);
        }
        merges::check(&self.ends, seen, limits);
        for piece in &seen.pieces {
            self.cover.sent(self.ends.bio(piece.cookie), piece);
        }
        if let Accept::Failed(status) = seen.answer {
            self.done(seen, status, now);
            return;
        }
        self.flushes.taken(seen, &self.ends, now, &mut self.striker);
        self.timeouts.taken(seen.key(), now);
        self.share.taken(seen, &self.seam);
        self.seam.taken(seen);
    }

    /// The driver is done with a request.
    pub(crate) fn finished(&mut self, key: Key, outcome: Outcome, now: Instant) {
        let seen = self.seam.finished(key);
        self.timeouts.finished(key, now);
        self.progress.moved(now);
        if let Outcome::Done(status) = outcome {
            self.done(&seen, status, now);
        } else {
            seen.pieces.iter().for_each(|piece| self.cover.back(piece));
            self.flushes.back(&seen);
        }
    }

    /// A request has ended, in the driver or before it got there.
    fn done(&mut self, seen: &Seen, status: Status, now: Instant) {
        for piece in &seen.pieces {
            self.cover.done(piece);
            if status != Status::Ok {
                self.ends.part_failed(piece.cookie, status);
            }
        }
        if seen.op == Op::Flush && status != Status::Ok {
            self.ends.flush_failed(seen.queue, status);
        }
        let is_data = seen.op != Op::Flush;
        if !(is_data && self.striker.strikes(Flaw::HideDataEnd)) {
            self.flushes.done(seen, status, &mut self.ends, now);
        }
    }

    /// The driver was asked about a request that timed out.
    pub(crate) fn timed_out(&mut self, key: Key, answer: TimedOut, now: Instant) {
        self.timeouts.asked(key, now);
        self.progress.retried();
        if let TimedOut::Ended(outcome) = answer {
            self.finished(key, outcome, now);
        }
    }

    /// A bio has ended.
    pub(crate) fn ended(&mut self, queue: QueueId, ended: &Ended, now: Instant) {
        let bio = *self.ends.bio(ended.bio.cookie);
        let whole = ended.status == Status::Ok || !sequence::needs_flush(&bio, self.limits(queue));
        self.cover.ended(&bio, whole);
        self.flushes.ended(queue, bio.cookie);
        self.ends.ended(queue, ended);
        self.waits.ended(queue.index(), bio.cookie, now);
    }

    /// A frozen queue reports that it is empty.
    pub(crate) fn drained(&self, queue: QueueId) {
        pauses::Pauses::drained(queue, &self.ends);
    }
}
