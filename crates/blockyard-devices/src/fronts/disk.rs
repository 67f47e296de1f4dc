//! One disk of a drive's host: its front end and its medium.

use super::DriveReport;
use super::engine::SyncEngine;
use super::front::Front;
use crate::fronts::profile::DriveProfile;
use crate::medium::{Medium, MediumEvent, MediumEvents, merge_counts};
use blockyard::prng::Prng;
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
    /// Commands that have taken budget or been handed over.
    pub(super) outstanding: u16,
    /// Events of the medium by time, and then in the order in which it scheduled them. Only disks
    /// that share their host with others keep them here.
    due: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    scheduled: u64,
}

impl Disk {
    /// Returns an idle disk by `profile` with `capacity` sectors. `prng` supplies the random
    /// numbers of its medium.
    pub(super) fn new(profile: &DriveProfile, capacity: u64, prng: Prng) -> Self {
        Self {
            front: profile.front.build(),
            engine: profile.front.engine(),
            medium: profile.medium.build(capacity, prng),
            outstanding: 0,
            due: BinaryHeap::new(),
            scheduled: 0,
        }
    }

    /// Keeps an event of the medium, so that a device event has to name only the disk.
    pub(super) fn keep(&mut self, at: Instant, event: MediumEvent) {
        self.scheduled += 1;
        self.due.push(Reverse((at, self.scheduled, event.0)));
    }

    /// Handles the earliest event that was kept, which is due at `now`.
    pub(super) fn handle_kept(&mut self, now: Instant, events: &mut MediumEvents) {
        let Reverse((at, _, event)) = self.due.pop().expect("each device event has one kept");
        debug_assert_eq!(at, now, "device events come in the order of their times");
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
