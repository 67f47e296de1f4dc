//! One disk of a drive's host: its front end and its medium.

use super::DriveReport;
use super::engine::SyncEngine;
use super::front::Front;
use crate::family::Setup;
use crate::fronts::profile::DriveProfile;
use crate::medium::{Medium, MediumEvent, MediumEvents, merge_counts};
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
}

impl Disk {
    /// Returns the idle disk number `number` of a host by `profile`, in `setup`.
    pub(super) fn new(profile: &DriveProfile, number: u16, setup: &Setup<'_>) -> Self {
        let shared =
            (profile.disks > 1).then(|| Shared { number, due: BinaryHeap::new(), scheduled: 0 });
        let draws = &setup.draws;
        let prng = if shared.is_some() { draws.fork(number.into()) } else { draws.clone() };
        Self {
            front: profile.front.build(),
            engine: profile.front.engine(),
            medium: profile.medium.build(setup.limits.capacity_sectors, prng),
            shared,
        }
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

    /// Adds what the disk did to `report`. `disks` is the number of disks in it, with this one.
    pub(super) fn add_to(&self, report: &mut DriveReport, disks: u64) {
        let engine_use = self.engine.as_ref().map_or(Duration::ZERO, SyncEngine::used);
        report.engine_use = report.engine_use.max(engine_use);
        report.front_use.merge(self.front.used());
        let used = self.medium.used();
        report.medium_use.used += used.used;
        report.medium_use.units += used.units;
        if disks == 1 {
            report.medium = self.medium.counts();
            report.medium_load = self.medium.load();
        } else {
            merge_counts(&mut report.medium, &self.medium.counts(), disks);
            report.medium_load.merge(&self.medium.load());
        }
    }

    /// Starts counting again.
    pub(super) fn forget(&mut self) {
        self.front.forget();
        self.engine.iter_mut().for_each(SyncEngine::forget);
        self.medium.forget();
    }
}
