//! Reading ahead: the head stays on the course of the disk until other work comes, or until the
//! segment is full.
//!
//! For a reader in sequence the head also reads before it leaves for other work: a least number of
//! sectors in any case, and for as long as it would otherwise wait where it goes. If the seek takes
//! 5 ms and the sector comes round in 8 ms, it reads for 3 ms and then leaves. A read is in
//! sequence if it continues what a segment of the cache holds.

use super::geometry::{Geometry, Spot};
use super::{Held, Platters};
use crate::disk::profile::Leaving;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// A head that reads on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The first sector that it reads.
    pub(super) from: u64,
    /// When that sector begins to pass the head.
    pub(super) since: Instant,
    /// The first sector that it does not read.
    pub(super) limit: u64,
    /// The sector that its reader reads next.
    pub(super) reader: u64,
    /// Whether its reader reads in sequence.
    pub(super) is_stream: bool,
}

impl Ahead {
    /// Returns the first sector that it has not read completely at `now`.
    pub(super) fn reached(&self, geometry: &Geometry, now: Instant) -> u64 {
        debug_assert!(self.from < self.limit, "{self:?} reads nothing");
        match now > self.since {
            true => geometry.passed(self.from, self.limit, now.since(self.since)),
            false => self.from,
        }
    }

    /// Returns when it has read the sectors before `end`.
    fn passes(&self, geometry: &Geometry, end: u64) -> Instant {
        match end > self.from {
            true => self.since + geometry.transfer(self.from, end),
            false => self.since,
        }
    }
}

impl Platters {
    /// Returns what a head that has just read the sector before `end` reads ahead, if the cache has
    /// room for it.
    pub(super) fn ahead_of(&self, end: u64, is_stream: bool, now: Instant) -> Option<Ahead> {
        let limit = self.ahead_limit(end);
        (end < limit).then(|| {
            let since = now + self.gap(end);
            Ahead { from: end, since, limit, reader: end, is_stream }
        })
    }

    /// Lets a head that reads ahead as `ahead` read on for a stream before it moves to sector
    /// `first`. Returns when it leaves.
    pub(super) fn linger(
        &mut self,
        ahead: Option<Ahead>,
        first: u64,
        is_write: bool,
        now: Instant,
    ) -> Instant {
        let Some(ahead) = ahead.filter(|ahead| ahead.is_stream) else { return now };
        if !is_write && (ahead.from..=ahead.limit).contains(&first) {
            return now; // the head passes over the rest on its way
        }
        let sectors = self.profile.cache.ahead_least / u64::from(SECTOR_BYTES);
        let least = (ahead.reader + sectors).min(ahead.limit);
        let due = match least > ahead.from {
            true => ahead.passes(&self.geometry, least).max(now),
            false => now,
        };
        let leaves = match self.profile.cache.leaving {
            Leaving::InTime => self.latest(ahead, first, is_write, due),
            Leaving::AtOnce => due,
        };
        debug_assert!(now <= leaves, "the head leaves in the past");
        let limit = ahead.reached(&self.geometry, leaves);
        if leaves > now {
            self.arm = self.standing(ahead, leaves);
        }
        self.leaving = (ahead.from < limit).then_some(Ahead { limit, ..ahead });
        self.counts.passing += leaves.since(now);
        leaves
    }

    /// Returns where the head is at `at` that reads ahead as `ahead`.
    fn standing(&self, ahead: Ahead, at: Instant) -> Spot {
        self.geometry.spot(ahead.reached(&self.geometry, at).min(ahead.limit - 1))
    }

    /// Returns the time of the seek to `spot` of a head that reads ahead as `ahead` until `at`.
    fn seek_at(&self, ahead: Ahead, at: Instant, spot: &Spot, is_write: bool) -> Duration {
        self.seek(self.standing(ahead, at), spot, is_write)
    }

    /// Returns the latest instant at which a head that reads ahead as `ahead` has something to read
    /// and arrives at sector `first` as early as if it left at `due`.
    fn latest(&self, ahead: Ahead, first: u64, is_write: bool, due: Instant) -> Instant {
        let spot = self.geometry.spot(first);
        let (seek, wait) = self.position(self.standing(ahead, due), &spot, is_write, due);
        let arrives = due + seek + wait;
        let spare = wait.as_ns().saturating_sub(self.estimate.margin().as_ns());
        // The head may be on another track by then, from where the seek takes a little longer.
        let later = self.seek_at(ahead, due + Duration::from_ns(spare), &spot, is_write);
        let longer = later.as_ns().saturating_sub(seek.as_ns());
        let latest = due + Duration::from_ns(spare.saturating_sub(longer));
        if latest + self.seek_at(ahead, latest, &spot, is_write) > arrives {
            return due;
        }
        latest.min(ahead.passes(&self.geometry, ahead.limit)).max(due)
    }

    /// Returns when the head passes the end of the read `held`, if it does so before it leaves for
    /// its task.
    pub(super) fn passed_before_leaving(&self, held: Held) -> Option<Instant> {
        let leaving = self.leaving.filter(|_| !held.is_write)?;
        let passes = leaving.from < held.end && held.end <= leaving.limit;
        passes.then(|| leaving.passes(&self.geometry, held.end))
    }

    /// Answers the reads that wait for the arm and whose sectors the head has read before it left.
    pub(super) fn answer_left(&mut self, now: Instant) {
        if self.leaving.is_none() {
            return;
        }
        self.catch_up(now);
        let ready = self.ready(now);
        let mut at = 0;
        self.held.retain(|held| {
            let waits = at >= ready || held.is_write;
            at += 1;
            if waits || self.reads.held(held.start, held.end) < held.end {
                return true;
            }
            self.counts.cached_reads += 1;
            self.ended.push_back(held.id);
            false
        });
    }
}
