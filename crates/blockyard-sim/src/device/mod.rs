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
pub mod mmc;
pub mod null;
pub mod stack;

use activity::Activity;
use blockyard::driver::{Accept, Device, Driver, Finished, Issue};
use blockyard::request::Request;
use blockyard::time::Instant;
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use hba::Hba;
use null::Null;
use std::collections::VecDeque;

/// An event of a device's own: the number of one of its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent(pub u32);

/// Events that a device wants scheduled.
pub type Events = VecDeque<(Instant, DeviceEvent)>;

/// One of the modelled devices.
#[derive(Debug)]
pub enum Model {
    /// It does nothing but answer.
    Null(Null),
    /// A SCSI host and its target.
    Hba(Hba),
}

impl Model {
    /// What was handed over since the last call starts at `at`.
    pub fn start(&mut self, at: Instant, events: &mut Events) {
        match self {
            Self::Null(null) => null.start(at, events),
            Self::Hba(hba) => hba.start(at, events),
        }
    }

    /// Whether an interrupt tells of what it was done with after a call.
    #[must_use]
    pub fn interrupts(&self) -> bool {
        match self {
            Self::Null(null) => null.interrupts(),
            Self::Hba(_) => true,
        }
    }

    /// An event of the device's is due.
    pub fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        match self {
            Self::Null(null) => null.event(event, now),
            Self::Hba(hba) => hba.event(event, now, events),
        }
    }

    /// Measuring begins at `now`: what it did so far does not count.
    pub fn forget_activity(&mut self, now: Instant) {
        match self {
            Self::Null(null) => null.activity.forget(now),
            Self::Hba(hba) => hba.activity.forget(now),
        }
    }

    /// When it was busy.
    #[must_use]
    pub const fn activity(&self) -> &Activity {
        match self {
            Self::Null(null) => &null.activity,
            Self::Hba(hba) => &hba.activity,
        }
    }
}

impl Driver for Model {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        match self {
            Self::Null(null) => null.take_budget(queue),
            Self::Hba(hba) => hba.take_budget(queue),
        }
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        match self {
            Self::Null(null) => null.return_budget(queue, budget),
            Self::Hba(hba) => hba.return_budget(queue, budget),
        }
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        match self {
            Self::Null(null) => null.queue_rq(issue),
            Self::Hba(hba) => hba.queue_rq(issue),
        }
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        match self {
            Self::Null(null) => null.finish(queue, hctx, tag, request),
            Self::Hba(hba) => hba.finish(queue, hctx, tag, request),
        }
    }
}

/// A model has no instants of its own to be polled at: its time is in the events that it schedules.
impl Device for Model {
    #[inline]
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        match self {
            Self::Null(null) => null.next_finished(now),
            Self::Hba(hba) => hba.next_finished(now),
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}
