//! Modelled devices: drivers on one side, virtual time on the other.
//!
//! A model accepts requests as a [`Driver`] at the instant a processor hands them over; the world
//! then tells it when that processor was done ([`Model::start`]), and it says when it will be done
//! itself by scheduling events of its own. What it is done with is pulled, as of any [`Device`]:
//! after each of its events, and of each call, for what it did within that. [`stack`] puts layers
//! over a model.

pub mod activity;
mod cache;
pub mod hba;
pub mod live;
pub mod mmc;
pub mod null;
pub mod pmem;
pub mod stack;
pub mod terms;

use crate::data::deed::{Deed, Keeper, Place};
use activity::Activity;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, TimedOut};
use blockyard::request::Request;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use hba::Hba;
use mmc::host::MmcHost;
use null::Null;
use pmem::Pmem;
use std::collections::VecDeque;
use terms::{Completion, Dispatch};

/// An event of a device's own: the number of one of its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent(pub u32);

/// Events that a device wants scheduled.
pub type Events = VecDeque<(Instant, DeviceEvent)>;

/// One of the modelled devices, told apart on every call: by a tag of its own, as
/// [`stack::Stack`].
#[derive(Debug)]
#[repr(u8)]
pub enum Model {
    /// It does nothing but answer.
    Null(Null),
    /// A SCSI host and its target.
    Hba(Hba),
    /// An eMMC device or SD card, and its host.
    Mmc(Box<MmcHost>),
    /// Persistent memory.
    Pmem(Box<Pmem>),
}

impl Model {
    /// What was handed over since the last call starts at `at`.
    pub fn start(&mut self, at: Instant, events: &mut Events) {
        match self {
            Self::Null(null) => null.start(at, events),
            Self::Hba(hba) => hba.start(at, events),
            // Its driver starts what it starts itself, by acts.
            Self::Mmc(_) => {}
            // It is done with it.
            Self::Pmem(_) => {}
        }
    }

    /// How the hardware queues of this device are dispatched.
    #[must_use]
    pub const fn dispatch(&self) -> Dispatch {
        match self {
            Self::Null(_) | Self::Hba(_) | Self::Pmem(_) => Dispatch::Direct,
            Self::Mmc(_) => Dispatch::HostThread,
        }
    }

    /// How this device completes requests of a hardware queue that is not polled.
    #[must_use]
    pub const fn completion(&self) -> Completion {
        match self {
            Self::Null(null) => null.completion(),
            Self::Hba(_) => Completion::Interrupt,
            Self::Mmc(_) => Completion::HostInterrupt,
            Self::Pmem(_) => Completion::WithinCall,
        }
    }

    /// An event of the device's is due.
    pub fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        match self {
            Self::Null(null) => null.event(event, now),
            Self::Hba(hba) => hba.event(event, now, events),
            Self::Mmc(mmc) => mmc.event(event, now, events),
            Self::Pmem(_) => unreachable!("it schedules none"),
        }
    }

    /// Measuring begins at `now`: what it did so far does not count.
    pub fn forget_activity(&mut self, now: Instant) {
        match self {
            Self::Null(null) => null.activity.forget(now),
            Self::Hba(hba) => hba.activity.forget(now),
            Self::Mmc(mmc) => mmc.forget(now),
            Self::Pmem(pmem) => pmem.forget(now),
        }
    }

    /// When it had commands.
    const fn activity(&self) -> &Activity {
        match self {
            Self::Null(null) => &null.activity,
            Self::Hba(hba) => &hba.activity,
            Self::Mmc(mmc) => &mmc.activity,
            Self::Pmem(pmem) => &pmem.activity,
        }
    }

    /// Time until `now` in which it was at work.
    #[must_use]
    pub fn busy(&self, now: Instant) -> Duration {
        match self {
            Self::Mmc(mmc) => mmc.busy(now),
            _ => self.activity().busy(),
        }
    }

    /// Mean time in which it was not, between two in which it was.
    #[must_use]
    pub fn mean_gap(&self) -> Duration {
        match self {
            Self::Mmc(mmc) => mmc.mean_gap(),
            _ => self.activity().mean_gap(),
        }
    }

    /// Sum over time of the commands that it had, in command-nanoseconds.
    #[must_use]
    pub const fn held_ns(&self) -> u128 {
        self.activity().held_ns()
    }

    /// Takes the time that calls since the last one kept the calling processor busy, beside the costs of
    /// the path.
    #[inline]
    pub fn take_spent(&mut self) -> Duration {
        match self {
            Self::Pmem(pmem) => pmem.take_spent(),
            Self::Null(_) | Self::Hba(_) | Self::Mmc(_) => Duration::ZERO,
        }
    }

    /// The host path of an eMMC device or SD card.
    #[must_use]
    pub fn mmc(&self) -> Option<&MmcHost> {
        match self {
            Self::Mmc(mmc) => Some(mmc),
            _ => None,
        }
    }

    /// Persistent memory.
    #[must_use]
    pub fn pmem(&self) -> Option<&Pmem> {
        match self {
            Self::Pmem(pmem) => Some(pmem),
            _ => None,
        }
    }

    /// As [`Self::mmc`].
    pub fn mmc_mut(&mut self) -> Option<&mut MmcHost> {
        match self {
            Self::Mmc(mmc) => Some(mmc),
            _ => None,
        }
    }
}

/// Makes the same call on the model.
macro_rules! each {
    ($model:expr, $device:ident => $call:expr) => {
        match $model {
            Model::Null($device) => $call,
            Model::Hba($device) => $call,
            Model::Mmc($device) => $call,
            Model::Pmem($device) => $call,
        }
    };
}

impl Driver for Model {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        each!(self, device => device.take_budget(queue))
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        each!(self, device => device.return_budget(queue, budget));
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        each!(self, device => device.prepare(issue));
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        each!(self, device => device.unprepare(issue));
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        each!(self, device => device.queue_rq(issue))
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        each!(self, device => device.commit(queue, hctx, now));
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        each!(self, device => device.timed_out(queue, hctx, tag, request, now))
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        each!(self, device => device.finish(queue, hctx, tag, request));
    }
}

/// A card decides itself what it holds, and memory knows it.
impl Keeper for Model {
    fn keeps_data(&self) -> bool {
        match self {
            Self::Mmc(mmc) => mmc.keeps_data(),
            Self::Pmem(pmem) => pmem.keeps_data(),
            Self::Null(_) | Self::Hba(_) => false,
        }
    }

    fn keep_up(&mut self, now: Instant) {
        match self {
            Self::Mmc(mmc) => mmc.keep_up(now),
            Self::Pmem(pmem) => pmem.keep_up(now),
            Self::Null(_) | Self::Hba(_) => {}
        }
    }

    fn next_deed(&mut self) -> Option<Deed<Place>> {
        match self {
            Self::Mmc(mmc) => mmc.next_deed(),
            Self::Pmem(pmem) => pmem.next_deed(),
            Self::Null(_) | Self::Hba(_) => None,
        }
    }
}

/// What models do in time is in the events that they schedule. Only the request path of a host has
/// instants to be polled at, those of the core.
impl Device for Model {
    #[inline]
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        each!(self, device => device.next_finished(now))
    }

    fn poll_at(&self) -> Option<Instant> {
        self.mmc()?.poll_at()
    }
}
