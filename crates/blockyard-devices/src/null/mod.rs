//! A device that does nothing but complete requests, with the knobs of Linux's null_blk.

pub(crate) mod profile;

use super::activity::Activity;
use super::cache::{self, Cache};
use super::terms::Completion;
use super::{DeviceEvent, Events};
use crate::cache::CacheProfile;
use crate::data::event::ReportsData;
use crate::family::FamilyModel;
use crate::null::profile::{NullCompletion, NullProfile};
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use std::collections::VecDeque;

/// The model.
#[derive(Debug)]
pub struct Null {
    profile: NullProfile,
    /// The instant at which the data of all accepted requests has passed, under a bandwidth limit.
    passed_at: Instant,
    /// Requests with their bytes and the extra time of the cache.
    handed_over: Vec<(Finished, u64, Duration)>,
    /// Requests that have completed and were not pulled yet.
    finished: VecDeque<Finished>,
    /// Requests in flight, by hardware queue and tag.
    waiting: Vec<Option<Finished>>,
    cache: Option<Cache>,
    activity: Activity,
}

impl Null {
    /// Returns a device with `hctxs` hardware queues by `profile` and `cache`.
    #[must_use]
    pub fn new(profile: NullProfile, hctxs: u16, cache: Option<CacheProfile>) -> Self {
        let commands = usize::from(hctxs) * usize::from(profile.depth);
        Self {
            profile,
            passed_at: Instant::ZERO,
            handed_over: Vec::new(),
            finished: VecDeque::new(),
            waiting: vec![None; commands],
            cache: cache.map(|cache| Cache::new(cache, profile.disks)),
            activity: Activity::default(),
        }
    }

    /// Returns the instant at which `bytes` handed over at `at` have passed under the bandwidth
    /// limit.
    fn pass(&mut self, at: Instant, bytes: u64) -> Instant {
        let Some(per_second) = self.profile.bandwidth_limit else { return at };
        let begin = self.passed_at.max(at);
        self.passed_at = begin + transfer_time(bytes, per_second);
        self.passed_at
    }
}

/// Returns the time for `bytes` at `per_second` bytes per second, rounded up.
pub(super) fn transfer_time(bytes: u64, per_second: u64) -> Duration {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(per_second));
    Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

impl Driver for Null {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let finished = Finished {
            queue: issue.queue,
            hctx: issue.hctx,
            tag: issue.tag,
            outcome: Outcome::Done(Status::Ok),
        };
        let within_call = self.profile.completion == NullCompletion::None;
        let longer = cache::longer(&mut self.cache, issue);
        if within_call && self.profile.bandwidth_limit.is_none() && longer == Duration::ZERO {
            self.finished.push_back(finished);
            return Accept::Queued;
        }
        let bytes = u64::from(issue.request().sectors) * u64::from(SECTOR_BYTES);
        self.handed_over.push((finished, bytes, longer));
        Accept::Queued
    }
}

impl FamilyModel for Null {
    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn activity_mut(&mut self) -> &mut Activity {
        &mut self.activity
    }

    fn completion(&self) -> Completion {
        match self.profile.completion {
            NullCompletion::None | NullCompletion::Softirq => Completion::Uninterrupted,
            NullCompletion::Timer => Completion::Interrupt,
        }
    }

    fn start(&mut self, at: Instant, events: &mut Events) {
        let mut handed_over = core::mem::take(&mut self.handed_over);
        for (finished, bytes, longer) in handed_over.drain(..) {
            let delay = match self.profile.completion {
                NullCompletion::None | NullCompletion::Softirq => Duration::ZERO,
                NullCompletion::Timer => self.profile.completion_time,
            };
            let due = (at + delay + longer).max(self.pass(at, bytes));
            self.activity.begin(at);
            let slot = u32::from(finished.hctx.0) * u32::from(self.profile.depth)
                + u32::from(finished.tag.0);
            let before = self.waiting[slot as usize].replace(finished);
            debug_assert_eq!(before, None, "two requests under one driver tag");
            events.push_back((due, DeviceEvent(slot)));
        }
        self.handed_over = handed_over;
    }

    fn event(&mut self, event: DeviceEvent, now: Instant, _events: &mut Events) {
        self.activity.end(now);
        let finished = self.waiting[event.0 as usize].take();
        debug_assert!(finished.is_some(), "{event:?} belongs to no request");
        self.finished.extend(finished);
    }
}

impl Device for Null {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop_front()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }
}

impl ReportsData for Null {}
