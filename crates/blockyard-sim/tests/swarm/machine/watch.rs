//! The reports to the checkers after every call, and the completions of the device.

use super::Machine;
use crate::flaw::Flaw;
use crate::recorder::{Seen, Told};
use blockyard::bio::Op;
use blockyard::driver::{Accept, Device, Finished, Outcome};
use blockyard::request::Ended;
use blockyard::status::Status;
use blockyard::trace::Action;

impl Machine {
    /// Passes the calls at the driver's seam to the checkers. Call this after every call.
    pub(super) fn after_call(&mut self) {
        self.host.driver.checked().call_ended();
        self.host.driver.checked_below().call_ended();
        self.tell_steps();
        if self.host.driver.inner.sink.told.is_empty() {
            return;
        }
        let mut told = core::mem::take(&mut self.host.driver.inner.sink.told);
        for one in told.drain(..) {
            match one {
                Told::Offered(seen) => self.tell_offered(seen),
                Told::TimedOut(key, answer) => self.checkers.timed_out(key, answer, self.now),
                Told::Permit(queue) => self.checkers.seam.permit(queue),
                Told::Returned(queue) => self.checkers.seam.returned(queue),
            }
        }
        self.host.driver.inner.sink.told = told;
        self.checkers.seam.call_ended(&self.host);
        if self.plan.checks_each_step {
            self.queues.iter().for_each(|queue| queue.self_check(&self.host));
        }
    }

    fn tell_steps(&mut self) {
        let mut steps = core::mem::take(&mut self.host.sink.steps);
        for step in steps.drain(..) {
            let policies = &self.plan.queues[step.queue.index()].policies;
            let flaw = match step.action {
                Action::Issue if step.op.is_passthrough() => Some(Flaw::HideDirect),
                Action::Schedule if policies.issues_directly() => Some(Flaw::HideSchedule),
                _ => None,
            };
            if !flaw.is_some_and(|flaw| self.striker.strikes(flaw)) {
                self.checkers.hardware_queues.step(&step);
            }
        }
        self.host.sink.steps = steps;
    }

    fn tell_offered(&mut self, mut seen: Seen) {
        let taken = !matches!(seen.answer, Accept::Busy(_));
        let has_data = taken && !seen.pieces.is_empty();
        if has_data && self.striker.strikes(Flaw::LoseRequest) {
            seen.pieces.clear();
        }
        if has_data && self.striker.strikes(Flaw::ShiftPiece) {
            seen.pieces[0].sector += 1;
        }
        self.checkers.offered(&seen, self.now);
        if has_data && self.striker.strikes(Flaw::DuplicateRequest) {
            self.checkers.offered(&seen, self.now);
        }
    }

    /// Completes the requests that the device has finished.
    pub(super) fn take_finished(&mut self) {
        while let Some(finished) = self.host.driver.next_finished(self.now) {
            if self.striker.strikes(Flaw::LoseCompletion) {
                continue;
            }
            if self.striker.strikes(Flaw::PretendEnd) {
                self.pretend_end(&finished);
                continue;
            }
            self.complete(finished);
            if self.striker.strikes(Flaw::CompleteTwice) {
                self.complete(finished);
            }
            self.after_call();
        }
    }

    fn pretend_end(&mut self, finished: &Finished) {
        let key = (finished.queue, finished.hctx, finished.tag);
        let pieces = self.checkers.seam.pieces(key);
        self.checkers.finished(key, Outcome::Done(Status::Ok), self.now);
        for piece in pieces {
            let bio = *self.checkers.ends.bio(piece.cookie);
            self.end(finished.queue, &Ended { bio, status: Status::Ok });
        }
    }

    fn complete(&mut self, mut finished: Finished) {
        let key = (finished.queue, finished.hctx, finished.tag);
        let is_flush = self.checkers.seam.op(key) == Some(Op::Flush);
        self.checkers.finished(key, finished.outcome, self.now);
        let failed = matches!(finished.outcome, Outcome::Done(status) if status != Status::Ok);
        let hides = if is_flush { Flaw::HideFlushError } else { Flaw::HideError };
        if failed && self.striker.strikes(hides) {
            finished.outcome = Outcome::Done(Status::Ok);
        }
        let target = &mut self.queues[finished.queue.index()];
        let known = target.conclude(&mut self.host, &finished, self.now);
        assert!(known.is_ok(), "[bio-ends-once] the queue does not know {finished:?}");
    }
}
