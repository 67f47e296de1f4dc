//! The core's request queue with the device below it, and the bios that wait for a tag.
//!
//! # Rules (cited by name)
//!
//! - **[undone-waits-a-turn]** A request that the device gives back undone is issued again in the
//!   next call of [`BioQueue::advance`], not in the same one. So every pass of a call ends requests
//!   or is the last one, and a device that gives back a request for ever occupies no lane for ever.

use crate::parts::shape::Shape;
use blockyard::bio::Bio;
use blockyard::driver::{Device, Outcome};
use blockyard::host::Host;
use blockyard::policy::ElevatorKind;
use blockyard::request::Ended;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::time::Instant;
use blockyard::trace::Sink;
use blockyard::unit::{CpuId, HctxId, QueueId};
use std::collections::VecDeque;

/// The only CPU of a queue.
const CPU: CpuId = CpuId(0);
/// Its only hardware queue.
const HCTX: HctxId = HctxId(0);

/// The least number of bios in a queue, counting the parts of split ones: four for each of 128
/// requests, 72 bytes each; or two for each request that an elevator may hold. Further bios wait
/// before the queue.
const BIOS_MIN: u32 = 512;

/// A request queue that takes bios without end. See the [module](self).
#[derive(Debug)]
pub struct BioQueue<D, S> {
    /// The device and the sink of events.
    pub host: Host<D, S>,
    queue: RequestQueue,
    /// Bios that wait for a tag, the oldest first.
    waiting: VecDeque<Bio>,
    refused: VecDeque<Ended>,
    is_plugged: bool,
    /// Whether there is work for the next call of [`Self::advance`] ([undone-waits-a-turn]).
    is_due: bool,
}

/// What the device has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concluded {
    Nothing,
    /// Requests, and each has ended or continues.
    Requests,
    /// Requests, some of which were given back undone.
    Undone,
}

impl<D: Device, S: Sink> BioQueue<D, S> {
    /// Returns a queue over `device`, which has the tags of [`Shape::tags`].
    pub fn new(shape: &Shape, device: D, sink: S) -> Self {
        let host = Host::new(device, sink, shape.tags());
        let mut config = QueueConfig::new(1, 1, shape.limits.clone(), shape.policies);
        config.timeout = shape.timeout.unwrap_or(config.timeout);
        let held = match shape.policies.elevator {
            ElevatorKind::None => 0,
            _ => shape.policies.sched_depth.tags(shape.depth.into()),
        };
        config.max_bios = BIOS_MIN.max(4 * u32::from(shape.depth)).max(2 * held);
        config.max_waiters = 0; // [`Self::waiting`] has all that wait
        let queue = match shape.elevator {
            None => RequestQueue::new(QueueId(0), config, &host),
            Some(make) => {
                let elevator = make(&config, host.tags().config());
                RequestQueue::with_elevator(QueueId(0), config, &host, elevator)
            }
        };
        let waiting = VecDeque::new();
        let refused = VecDeque::new();
        Self { queue, host, waiting, refused, is_plugged: false, is_due: false }
    }

    /// Gives the submitters of `group` together a weight: see [`RequestQueue::weigh_group`].
    pub fn weigh_group(&mut self, group: u32, weight: u32) -> bool {
        self.queue.weigh_group(group, weight)
    }

    /// Submits `bio`, under a plug that lasts until [`Self::advance`], or as soon as a tag is free.
    #[inline]
    pub fn submit(&mut self, bio: Bio, now: Instant) {
        if !self.is_plugged {
            self.queue.plug(CPU);
            self.is_plugged = true;
        }
        self.submit_now(bio, now);
    }

    /// Submits `bio` in the next call of [`Self::advance`]. Unlike [`Self::submit`], this ends no
    /// other bio.
    pub fn submit_later(&mut self, bio: Bio) {
        self.waiting.push_back(bio);
        self.is_due = true;
    }

    /// As [`Self::submit`], without a plug: for a bio that is alone in its turn.
    #[inline]
    pub fn submit_now(&mut self, bio: Bio, now: Instant) {
        if !self.waiting.is_empty() {
            self.waiting.push_back(bio);
        } else if !self.enters(bio, now) {
            self.advance(now);
            if !self.enters(bio, now) {
                self.waiting.push_back(bio);
            }
        }
    }

    /// Submits `bio`. Returns whether the queue accepted it or rejected it for good; `false` means
    /// that no tag is free.
    #[inline]
    fn enters(&mut self, bio: Bio, now: Instant) -> bool {
        let status = match self.queue.submit(&mut self.host, CPU, bio, now) {
            Ok(()) => return true,
            Err(SubmitError::NoTag | SubmitError::TooManyBios) => return false,
            Err(SubmitError::NotSupported) => Status::NotSupported,
            Err(_) => Status::IoError,
        };
        self.refuse(bio, status);
        true
    }

    /// Ends `bio`, which was not submitted, with `status`.
    pub fn refuse(&mut self, bio: Bio, status: Status) {
        self.refused.push_back(Ended { bio, status });
    }

    /// Returns a bio that has ended, each exactly once.
    #[inline]
    pub fn next_ended(&mut self) -> Option<Ended> {
        self.queue.next_ended().or_else(|| self.refused.pop_front())
    }

    /// Does everything that can be done now: runs the queue, concludes completed requests, and
    /// submits the bios that waited for their tags. After that, [`Self::poll_at`] says whether
    /// requests wait for the next call.
    pub fn advance(&mut self, now: Instant) {
        if self.is_plugged {
            self.is_plugged = false;
            self.queue.unplug(&mut self.host, CPU, now);
        }
        self.is_due = false;
        self.conclude_finished(now);
        loop {
            self.run(now); // bios in the queue precede the waiting ones
            let has_entered = self.enter_waiting(now);
            match self.conclude_finished(now) {
                Concluded::Nothing if !has_entered => return,
                Concluded::Nothing | Concluded::Requests => {}
                Concluded::Undone => {
                    self.is_due = true; // [undone-waits-a-turn]
                    return;
                }
            }
        }
    }

    /// Concludes the requests that the device has finished.
    #[inline]
    fn conclude_finished(&mut self, now: Instant) -> Concluded {
        let mut all = Concluded::Nothing;
        while let Some(finished) = self.host.driver.next_finished(now) {
            match finished.outcome {
                Outcome::Again | Outcome::AgainPrepared => all = Concluded::Undone,
                _ if all == Concluded::Nothing => all = Concluded::Requests,
                _ => {}
            }
            let concluded = self.queue.conclude(&mut self.host, &finished, now);
            concluded.expect("a request that the device completes is one that it owned");
        }
        all
    }

    /// Submits bios that wait, as long as tags are free. Returns whether any was submitted.
    #[inline]
    fn enter_waiting(&mut self, now: Instant) -> bool {
        let mut has_entered = false;
        while let Some(&bio) = self.waiting.front()
            && self.enters(bio, now)
        {
            has_entered = true;
            self.waiting.pop_front();
        }
        has_entered
    }

    /// Runs the queue after another lane has given back depth, since requests may wait for that.
    pub fn try_again(&mut self, now: Instant) {
        let _ = self.queue.run(&mut self.host, HCTX, now);
    }

    #[inline]
    fn run(&mut self, now: Instant) {
        loop {
            let hctx = match self.queue.next_run(&mut self.host, now) {
                Some(run) => run.hctx,
                None => match self.host.next_starved() {
                    Some((_, hctx)) => hctx,
                    None => return,
                },
            };
            let _ = self.queue.run(&mut self.host, hctx, now);
        }
    }

    /// Whether every bio has ended, and was returned.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.waiting.is_empty() && self.refused.is_empty()
    }

    /// Returns the instant at which to call [`Self::advance`] if no event occurs earlier.
    pub fn poll_at(&self) -> Option<Instant> {
        let now = (self.is_plugged || self.is_due).then_some(Instant::ZERO);
        [now, self.queue.poll_at(), self.host.driver.poll_at()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::bio::Op;
    use blockyard::device::null::NullDevice;
    use blockyard::limits::Limits;
    use blockyard::policy::{Policies, SchedDepth};

    /// A disk in memory relies on an empty queue as the proof that its requests have ended. One
    /// whose bio waited for a tag, or whose refusal nobody had seen, was empty.
    #[test]
    fn a_queue_whose_bios_wait_is_not_empty() {
        let no_tags = Policies { sched_depth: SchedDepth::Fixed(0), ..Policies::mq_deadline() };
        let mut waiting = queue_after(no_tags, Op::Write);
        assert_eq!((waiting.next_ended(), waiting.is_empty()), (None, false));
        let mut refused = queue_after(Policies::NONE, Op::Discard);
        assert!(!refused.is_empty());
        assert_eq!(refused.next_ended().map(|ended| ended.status), Some(Status::NotSupported));
        assert!(refused.is_empty());
    }

    fn queue_after(policies: Policies, op: Op) -> BioQueue<NullDevice, ()> {
        let shape = Shape {
            limits: Limits { max_discard_sectors: 0, ..Limits::new(1 << 11) },
            policies,
            elevator: None,
            depth: 1,
            block_bytes: 1,
            timeout: None,
            takes_slices: false,
            takes_long_ranges: false,
        };
        let mut queue = BioQueue::new(&shape, NullDevice::new(1, 1), ());
        queue.submit(Bio::new(op, 0, 8, 0), Instant::ZERO);
        queue.advance(Instant::ZERO);
        queue
    }
}
