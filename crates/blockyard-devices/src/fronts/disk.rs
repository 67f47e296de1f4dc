//! One disk of a drive's host: its front end and its medium.

use super::DiskReport;
use super::engine::SyncEngine;
use super::fetches::Fetches;
use super::front::Front;
use crate::activity::Activity;
use crate::family::Setup;
use crate::fronts::profile::DriveProfile;
use crate::medium::{Medium, MediumEvent, MediumEvents};
use blockyard::time::{Duration, Instant};
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// A disk.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) front: Box<dyn Front>,
    /// The part that holds commands back while the medium works, if there is one.
    pub(super) engine: Option<SyncEngine>,
    pub(super) medium: Box<dyn Medium>,
    /// The data of writes that the medium asks for; `None`: it comes with their commands.
    pub(super) fetches: Option<Fetches>,
    /// `None`: the disk is alone, so its events need no number of it.
    shared: Option<Shared>,
}

/// What a disk needs that shares its host with others.
#[derive(Debug)]
struct Shared {
    /// Its number, which a device event has in place of the medium's.
    number: u16,
    /// Events of the medium by time, and then in the order in which it scheduled them.
    due: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    scheduled: u64,
    /// Commands of this disk: those of the host are of all its disks.
    activity: Activity,
}

impl Disk {
    /// Returns the idle disk number `number` of a host by `profile`, in `setup`.
    pub(super) fn new(profile: &DriveProfile, number: u16, setup: &Setup<'_>) -> Self {
        let shared = (profile.disks > 1).then(|| Shared {
            number,
            due: BinaryHeap::new(),
            scheduled: 0,
            activity: Activity::default(),
        });
        let draws = &setup.draws;
        let prng = if shared.is_some() { draws.fork(number.into()) } else { draws.clone() };
        let front = profile.front.build();
        let medium = profile.medium.build(setup.limits.capacity_sectors, prng);
        let fetched = front.fetched_sectors().filter(|_| medium.fetches());
        let engine = profile.front.engine();
        Self { front, engine, medium, fetches: fetched.map(Fetches::new), shared }
    }

    /// Returns the number in the device event for `event` of the medium, which is due at `at`.
    pub(super) fn schedule(&mut self, event: MediumEvent, at: Instant) -> u32 {
        let Some(shared) = &mut self.shared else { return event.0 };
        shared.scheduled += 1;
        shared.due.push(Reverse((at, shared.scheduled, event.0)));
        shared.number.into()
    }

    /// Handles the event of the medium whose device event, with `number`, is due at `now`.
    pub(super) fn handle(&mut self, number: u32, now: Instant, events: &mut MediumEvents) {
        let event = self.shared.as_mut().map_or(number, |shared| {
            let Reverse((at, _, event)) = shared.due.pop().expect("a device event has one here");
            debug_assert_eq!(at, now, "device events come in the order of their times");
            event
        });
        self.medium.event(MediumEvent(event), now, events);
    }

    /// Counts the start of a command.
    pub(super) fn count_begin(&mut self, now: Instant) {
        if let Some(shared) = &mut self.shared {
            shared.activity.begin(now);
        }
    }

    /// Counts the end of a command.
    pub(super) fn count_end(&mut self, now: Instant) {
        if let Some(shared) = &mut self.shared {
            shared.activity.end(now);
        }
    }

    /// Returns what the disk did. `held_ns` is the time of all commands of its host, which are
    /// those of a disk that is alone.
    pub(super) fn report(&self, held_ns: u128) -> DiskReport {
        DiskReport {
            held_ns: self.shared.as_ref().map_or(held_ns, |shared| shared.activity.held_ns()),
            front_use: self.front.used(),
            engine_use: self.engine.as_ref().map_or(Duration::ZERO, SyncEngine::used),
            medium_use: self.medium.used(),
            medium: self.medium.counts(),
            medium_load: self.medium.load(),
        }
    }

    /// Starts counting again at `now`.
    pub(super) fn forget(&mut self, now: Instant) {
        if let Some(shared) = &mut self.shared {
            shared.activity.forget(now);
        }
        self.front.forget();
        self.engine.iter_mut().for_each(SyncEngine::forget);
        self.medium.forget();
    }
}
