//! The work that every call leaves to its caller by the contract.

use super::{Event, Machine};
use crate::flaw::Flaw;
use crate::submitter::Asleep;
use blockyard::driver::Device;
use blockyard::hardware_queue::Run;
use blockyard::request::Ended;
use blockyard::time::Duration;
use blockyard::unit::QueueId;
use core::sync::atomic::{AtomicU64, Ordering};

impl Machine {
    /// Does or schedules all work that a call left to its caller.
    pub(super) fn drain(&mut self) {
        loop {
            let runs = self.drain_runs() + self.drain_starved();
            self.drain_ends();
            self.drain_woken();
            if runs == 0 {
                break;
            }
        }
        for queue in (0..).map(QueueId).take(self.queues.len()) {
            self.schedule_poll(queue);
        }
        self.schedule_device();
    }

    fn drain_runs(&mut self) -> u64 {
        let mut runs = 0;
        for at in 0..self.queues.len() {
            let queue = self.queues[at].id();
            while let Some(run) = self.next_run(at) {
                if self.striker.strikes(Flaw::ForgetRun) {
                    continue;
                }
                if run.deferred || self.plan.defers_all {
                    if self.deferred.insert((queue, run.hctx)) {
                        self.later(self.plan.run_delay_max, Event::Run(queue, run.hctx));
                    }
                } else {
                    self.run_hctx(queue, run.hctx);
                    runs += 1;
                }
            }
        }
        runs
    }

    /// Returns the next run of a queue. This call also asks the driver about timed-out requests.
    fn next_run(&mut self, at: usize) -> Option<Run> {
        let run = self.queues[at].next_run(&mut self.host, self.now);
        self.after_call();
        run
    }

    fn drain_starved(&mut self) -> u64 {
        let mut runs = 0;
        while let Some((queue, hctx)) = self.host.next_starved() {
            self.run_hctx(queue, hctx);
            runs += 1;
        }
        runs
    }

    fn drain_ends(&mut self) {
        for at in 0..self.queues.len() {
            while let Some(ended) = self.queues[at].next_ended() {
                let queue = self.queues[at].id();
                self.end(queue, &ended);
                if self.striker.strikes(Flaw::EndTwice) {
                    self.end(queue, &ended);
                }
                self.wake_for_bio(queue);
            }
        }
    }

    pub(super) fn end(&mut self, queue: QueueId, ended: &Ended) {
        self.checkers.ended(queue, ended, self.now);
        self.checkers.data.ended(self.host.driver.media(), queue, ended, self.now);
        let at = self.submitters.iter().position(|s| s.owns(ended.bio.cookie));
        let at = at.expect("a bio that ends should have a submitter");
        if self.submitters[at].ended(ended.bio.cookie) {
            self.later(self.submitters[at].plan.think_max, Event::Step(at));
        }
    }

    /// Lets submitters that found no memory for a bio of `queue` retry, because a bio has ended.
    fn wake_for_bio(&mut self, queue: QueueId) {
        for at in 0..self.submitters.len() {
            let submitter = &mut self.submitters[at];
            if submitter.plan.queue == queue && submitter.asleep == Asleep::ForMemory {
                submitter.asleep = Asleep::No;
                self.later(Duration::ZERO, Event::Step(at));
            }
        }
    }

    fn drain_woken(&mut self) {
        for at in 0..self.queues.len() {
            while let Some(waiter) = self.queues[at].next_woken(&mut self.host) {
                self.wake(waiter);
            }
        }
    }

    fn wake(&mut self, waiter: u64) {
        let at = usize::try_from(waiter).expect("a waiter should be the number of a submitter");
        let submitter = &mut self.submitters[at];
        let waited = matches!(submitter.asleep, Asleep::ForTag | Asleep::ForPlace);
        assert!(waited, "[no-lost-wake-up] {at} did not wait");
        if submitter.asleep == Asleep::ForPlace && self.striker.strikes(Flaw::ForgetThrottled) {
            return;
        }
        submitter.asleep = Asleep::No;
        self.later(self.plan.run_delay_max, Event::Step(at));
    }

    fn schedule_device(&mut self) {
        let Some(mut at) = self.host.driver.poll_at() else { return };
        if self.device_at.is_some_and(|earlier| earlier <= at) {
            return;
        }
        self.device_at = Some(at);
        if self.striker.flaw == Some(Flaw::OutsideInfluence) {
            static OUTSIDE: AtomicU64 = AtomicU64::new(0);
            at = at + Duration::from_ns(OUTSIDE.fetch_add(1, Ordering::Relaxed));
        }
        self.events.push(at.max(self.now), Event::Device);
    }

    fn schedule_poll(&mut self, queue: QueueId) {
        if self.striker.flaw == Some(Flaw::ForgetPolls) {
            return;
        }
        let Some(at) = self.queues[queue.index()].poll_at() else { return };
        let at = at.max(self.now);
        if self.polls.insert((queue, at)) {
            self.events.push(at, Event::Poll(queue));
        }
    }
}
