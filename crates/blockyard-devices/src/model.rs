//! Modelled devices: drivers on one side, virtual time on the other.
//!
//! A model accepts requests as a [`Driver`] at the instant at which a processor hands them over. The world
//! then reports the instant at which that processor was done ([`Model::start`]), and the model schedules events.
//! The world pulls completed requests after each event and each call, as from any [`Device`]. [`terms`]
//! says who runs a model's hardware queues and how its requests complete; [`stack`] puts layers over a
//! model; [`live`] drives one without a world.

use crate::activity::Activity;
use crate::data::event::{DataEvent, Place, ReportsData};
use crate::fronts::Drive;
use crate::mmc::host::MmcHost;
use crate::null::Null;
use crate::pmem::Pmem;
use crate::scsi::Hba;
use crate::terms::{Completion, DeviceEvent, Dispatch, Events};
use blockyard::driver::{Device, Driver};
use blockyard::time::{Duration, Instant};

/// A modelled device. Every call compares the tag of this enum, so the tag must not be merged into those of the
/// variants; [`crate::stack::Stack`] does the same.
#[derive(Debug)]
#[repr(u8)]
pub enum Model {
    /// A device that only completes requests.
    Null(Null),
    /// A SCSI host and its target.
    Hba(Hba),
    /// An eMMC device or SD card, and its host.
    Mmc(Box<MmcHost>),
    /// Persistent memory.
    Pmem(Box<Pmem>),
    /// A drive: a front end over a medium.
    Drive(Box<Drive>),
    /// A device that records the calls made on it.
    #[cfg(test)]
    Probe(crate::probe::Probe),
}

impl Model {
    /// Starts the commands that were handed over since the last call, at `at`.
    pub fn start(&mut self, at: Instant, events: &mut Events) {
        match self {
            Self::Null(null) => null.start(at, events),
            Self::Hba(hba) => hba.start(at, events),
            Self::Drive(drive) => drive.start(at, events),
            // The host's driver starts requests by its acts; persistent memory has completed them.
            _ => {}
        }
    }

    /// Returns the way in which the hardware queues of this device are dispatched.
    #[must_use]
    pub const fn dispatch(&self) -> Dispatch {
        match self {
            Self::Mmc(_) => Dispatch::HostThread,
            _ => Dispatch::Direct,
        }
    }

    /// Returns the way in which this device completes requests of a hardware queue that is not polled.
    #[must_use]
    pub const fn completion(&self) -> Completion {
        match self {
            Self::Null(null) => null.completion(),
            Self::Mmc(_) => Completion::HostInterrupt,
            Self::Pmem(_) => Completion::WithinCall,
            Self::Drive(_) => Completion::Vector,
            _ => Completion::Interrupt,
        }
    }

    /// Whether requests complete only in [`Self::event`], one at most in each: then none is left for the work that
    /// handles a completion. A drive may announce several in one event.
    #[must_use]
    pub const fn completes_one_by_one(&self) -> bool {
        matches!(self, Self::Hba(_))
    }

    /// Handles an event of the device that is due.
    ///
    /// # Panics
    ///
    /// Panics if this device never scheduled an event.
    pub fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        match self {
            Self::Null(null) => null.event(event, now),
            Self::Hba(hba) => hba.event(event, now, events),
            Self::Mmc(mmc) => mmc.event(event, now, events),
            Self::Drive(drive) => drive.event(event, now, events),
            _ => unreachable!("{event:?} of a device that schedules no events"),
        }
    }

    /// Starts measuring at `now`, and forgets earlier activity.
    pub fn forget_activity(&mut self, now: Instant) {
        match self {
            Self::Mmc(mmc) => mmc.forget(now),
            Self::Pmem(pmem) => pmem.forget(now),
            Self::Null(null) => null.activity.forget(now),
            Self::Hba(hba) => hba.activity.forget(now),
            Self::Drive(drive) => drive.forget(now),
            #[cfg(test)]
            Self::Probe(_) => {}
        }
    }

    /// Returns the times at which this device had commands.
    const fn activity(&self) -> &Activity {
        match self {
            Self::Null(null) => &null.activity,
            Self::Hba(hba) => &hba.activity,
            Self::Mmc(mmc) => &mmc.activity,
            Self::Pmem(pmem) => &pmem.activity,
            Self::Drive(drive) => &drive.activity,
            #[cfg(test)]
            Self::Probe(_) => panic!("no test asks a probe for its activity"),
        }
    }

    /// Returns the time until `now` in which this device had work.
    #[must_use]
    pub fn busy(&self, now: Instant) -> Duration {
        match self {
            Self::Mmc(mmc) => mmc.busy(now),
            _ => self.activity().busy(),
        }
    }

    /// Returns the mean time between two periods of work.
    #[must_use]
    pub fn mean_gap(&self) -> Duration {
        match self {
            Self::Mmc(mmc) => mmc.mean_gap(),
            _ => self.activity().mean_gap(),
        }
    }

    /// The sum over time of outstanding commands, in command-nanoseconds.
    #[must_use]
    pub const fn held_ns(&self) -> u128 {
        self.activity().held_ns()
    }

    /// Takes the time that the calling processor spent in the device since the last call, apart from the costs
    /// of the path.
    #[inline]
    pub fn take_spent(&mut self) -> Duration {
        match self {
            Self::Pmem(pmem) => pmem.take_spent(),
            Self::Drive(drive) => drive.take_spent(),
            _ => Duration::ZERO,
        }
    }

    /// Returns the MMC host, if this device is one.
    #[must_use]
    pub fn mmc(&self) -> Option<&MmcHost> {
        match self {
            Self::Mmc(mmc) => Some(mmc),
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

    /// Returns the drive, if this device is one.
    #[must_use]
    pub fn drive(&self) -> Option<&Drive> {
        match self {
            Self::Drive(drive) => Some(drive),
            _ => None,
        }
    }

    /// Returns the persistent memory, if this device is one.
    #[must_use]
    pub fn pmem(&self) -> Option<&Pmem> {
        match self {
            Self::Pmem(pmem) => Some(pmem),
            _ => None,
        }
    }
}

impl Driver for Model {
    blockyard::pass_on!(
        Self::{Null, Hba, Mmc, Pmem, Drive, #[cfg(test)] Probe}:
        take_budget, return_budget, prepare, unprepare, queue_rq, commit, timed_out, finish
    );
}

/// Cards and persistent memory keep their own data; other devices do not.
impl ReportsData for Model {
    fn keeps_data(&self) -> bool {
        match self {
            Self::Mmc(mmc) => mmc.keeps_data(),
            Self::Pmem(pmem) => pmem.keeps_data(),
            _ => false,
        }
    }

    fn advance_data(&mut self, now: Instant) {
        match self {
            Self::Mmc(mmc) => mmc.advance_data(now),
            Self::Pmem(pmem) => pmem.advance_data(now),
            _ => {}
        }
    }

    fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
        match self {
            Self::Mmc(mmc) => mmc.next_data_event(),
            Self::Pmem(pmem) => pmem.next_data_event(),
            _ => None,
        }
    }
}

/// Models act in time by the events that they schedule. Only the request path of an MMC host has instants
/// at which to be polled.
impl Device for Model {
    blockyard::pass_on!(Self::{Null, Hba, Mmc, Pmem, Drive, #[cfg(test)] Probe}: next_finished);

    fn poll_at(&self) -> Option<Instant> {
        self.mmc()?.poll_at()
    }
}
