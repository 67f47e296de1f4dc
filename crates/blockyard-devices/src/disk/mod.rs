//! A hard disk's mechanics: one arm with its heads over turning platters, a cache, and the order of
//! the commands it holds.
//!
//! A command that the cache cannot answer waits for the arm. The arm seeks to the cylinder, waits
//! for the sector, and transfers. When nothing waits after a read, the head reads on along the
//! track into the cache. For a reader that reads in sequence it also does so for a while before it
//! leaves for other work.
//!
//! Left out: the spindle is never asleep and the heads are never parked. No sector is remapped, no
//! read is repeated, and no track is shingled. The disk does not recalibrate with its temperature,
//! nor scan its surface while it is idle. Vibration does not lengthen seeks, and seeks to the
//! inside take as long as those to the outside. What a write does not cover of a sector of the
//! platters is read from there even if the cache has it. There is one arm. A head that has arrived
//! and waits for its sector reads nothing meanwhile. The cache has no table whose entries run out,
//! and flash does not extend it.
//!
//! A flush ends when all writes that were acknowledged before it are on the platters. Writes behind
//! it wait until then. A write with FUA, and any write without a write cache, ends when it is on
//! the platters.
//!
//! Of the head's time, reading ahead counts from the last read that the cache answered, if the next
//! one has to wait for the head.
//!
//! # Rules
//!
//! - **[one-arm]** The arm does one thing at a time, and finishes it. Only reading ahead is broken
//!   off, by any other work, but not the seek to where it begins, nor what the profile has the head
//!   read before it leaves a reader in sequence.

mod ahead;
mod cache;
mod counts;
mod estimate;
mod evidence;
mod geometry;
mod order;
pub(crate) mod profile;
mod rotation;
mod seek;
#[cfg(test)]
mod tests;

use super::load::{Lasting, MediumLoad, Parts, PartsLoad};
use super::medium::{
    Access, CommandId, Medium, MediumCounts, MediumEvent, MediumEvents, MediumUse,
};
use crate::disk::profile::{PlattersProfile, Turns};
use ahead::Ahead;
use blockyard::bio::Op;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use cache::{ReadCache, WriteCache};
use counts::Counts;
use estimate::{Estimate, Movement};
use geometry::{Geometry, Spot};
use order::{Choice, Choices, Destage, Streak};
use rotation::Spindle;
use seek::Seek;
use std::collections::VecDeque;

/// The event at the end of what the arm does.
const ARM_FREE: MediumEvent = MediumEvent(0);
/// The event at which the disk may have been idle for long enough.
const IDLE: MediumEvent = MediumEvent(1);
/// The event at which the arm can serve a command.
const READY: MediumEvent = MediumEvent(2);

/// A command that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: CommandId,
    start: u64,
    end: u64,
    is_write: bool,
    /// When it came.
    since: Instant,
}

/// What the arm does.
#[derive(Clone, Copy, Debug)]
enum Task {
    Command(Held),
    /// It brings so many sectors that were acknowledged to the platters.
    Destage {
        sectors: u64,
    },
    /// It seeks to where it is to read ahead, unless a write has made that out of date.
    Approach(Option<Ahead>),
}

/// A hard disk.
#[derive(Debug)]
pub(crate) struct Platters {
    profile: PlattersProfile,
    /// Sectors of the disk.
    capacity: u64,
    geometry: Geometry,
    spindle: Spindle,
    estimate: Estimate,
    read_seek: Seek,
    write_seek: Seek,
    /// Where the arm stands when it does nothing.
    arm: Spot,
    task: Option<Task>,
    ahead: Option<Ahead>,
    /// What the head could read ahead at the end of a read, in the instant of that end.
    after_read: Option<Ahead>,
    /// What the head reads ahead, or has read, before it leaves for its task.
    leaving: Option<Ahead>,
    /// Commands that wait for the arm, in the order of their arrival.
    held: Vec<Held>,
    /// Writes that wait for room in the cache and flushes, in the order of their arrival. A flush
    /// has no sectors.
    unacknowledged: VecDeque<Held>,
    reads: ReadCache,
    writes: WriteCache,
    /// The first sector of the sweep over acknowledged writes.
    sweep_from: u64,
    /// Whether acknowledged writes go to the platters whenever nothing else is to be done.
    destages: bool,
    /// Commands that the arm has served since it last took a write from the cache.
    commands: u32,
    /// Those of one stream that it has served in a row.
    streak: Streak,
    /// Whether it has begun a batch of them that is to end before any command.
    in_batch: bool,
    /// Whether an [`IDLE`] event is under way.
    waits_for_idle: bool,
    /// When the last command came or ended.
    last_use: Instant,
    ended: VecDeque<CommandId>,
    counts: Counts,
    /// From when on the time of reading ahead counts.
    ahead_counted: Instant,
    buffer_full: Lasting,
}

impl Platters {
    /// Returns an idle disk by `profile` with `capacity` sectors. `prng` draws the angle at which
    /// it stands at first, and decides on the errors of the firmware's estimates.
    #[must_use]
    pub(super) fn new(profile: PlattersProfile, capacity: u64, mut prng: Prng) -> Self {
        let cylinders = profile.zone_cylinders(capacity) * u64::from(profile.zones);
        let [read_seek, write_seek] = [profile.read, profile.write]
            .map(|times| Seek::new(times, profile.head_switch, cylinders));
        let geometry = Geometry::new(&profile, capacity, [read_seek, write_seek]);
        let phase = prng.below(profile.revolution().as_ns());
        let sector = u64::from(SECTOR_BYTES);
        let cache = profile.cache;
        Self {
            arm: geometry.spot(0),
            estimate: Estimate::new(profile.knowledge(), profile.revolution(), prng),
            spindle: Spindle::new(profile.revolution(), phase),
            reads: ReadCache::new(cache.segments, cache.read / sector / u64::from(cache.segments)),
            writes: WriteCache::new(cache.write / sector),
            profile,
            capacity,
            geometry,
            read_seek,
            write_seek,
            task: None,
            ahead: None,
            after_read: None,
            leaving: None,
            held: Vec::new(),
            unacknowledged: VecDeque::new(),
            sweep_from: 0,
            destages: false,
            commands: 0,
            streak: Streak::default(),
            in_batch: false,
            waits_for_idle: false,
            last_use: Instant::ZERO,
            ended: VecDeque::new(),
            counts: Counts::default(),
            ahead_counted: Instant::ZERO,
            buffer_full: Lasting::new(),
        }
    }

    /// Ends what the arm did, and notes what it can read ahead if that was a read.
    fn finish(&mut self, task: Task, now: Instant) {
        self.catch_up(now);
        self.leaving = None;
        let held = match task {
            Task::Command(held) => held,
            Task::Destage { .. } => return,
            Task::Approach(ahead) => {
                self.ahead = ahead;
                self.ahead_counted = now;
                return;
            }
        };
        debug_assert!(held.since <= now, "{held:?} ends before it came");
        self.last_use = now;
        self.ended.push_back(held.id);
        if !held.is_write {
            let is_stream = held.start > 0 && self.reads.end_of(held.start - 1).is_some();
            self.reads.keep(held.start, held.end);
            self.after_read = self.ahead_of(held.end, is_stream, now);
        }
    }

    /// Acknowledges what can be, and gives the arm something to do if it is free ([one-arm]).
    fn proceed(&mut self, now: Instant, events: &mut MediumEvents) {
        self.acknowledge();
        self.answer_left(now);
        while self.task.is_none() {
            let ahead = self.stop_ahead(now);
            let Some(choice) = self.choose(now) else {
                self.ahead = ahead;
                return self.wait_for_idle(now, events);
            };
            self.start(choice, ahead, now, events);
        }
    }

    fn choose(&mut self, now: Instant) -> Option<Choice> {
        let pressed = !self.unacknowledged.is_empty();
        let begins = pressed || self.writes.is_filled(self.profile.cache.start);
        self.destages = (self.destages || begins) && !self.writes.is_empty();
        self.in_batch &= self.writes.has_batch();
        if self.destages {
            self.writes.fill_batch(self.profile.cache.batch);
        }
        let destage = self.destage(pressed);
        let stream_max = self.profile.stream_max / u64::from(SECTOR_BYTES);
        let choices = Choices {
            order: self.profile.order,
            age_max: self.profile.age_max,
            spent: self.streak.spent(stream_max),
            estimate: &self.estimate,
            held: &self.held[..self.ready(now)],
            writes: &self.writes,
            sweep_from: self.sweep_from,
            destage,
        };
        choices.choose(now, |sector, is_write| self.expected(sector, is_write, now))
    }

    /// Returns when acknowledged writes go to the platters. `pressed` says whether commands wait
    /// for room in the cache.
    fn destage(&self, pressed: bool) -> Destage {
        let cache = self.profile.cache;
        debug_assert!(!self.destages || !self.writes.is_empty(), "there are writes to bring");
        match cache.turns {
            _ if !self.destages => Destage::Never,
            Turns::Batch | Turns::Position if pressed && self.commands >= cache.batch => {
                Destage::Now
            }
            Turns::Position => Destage::Nearest,
            Turns::Batch if self.in_batch => Destage::Now,
            Turns::OneEach if pressed && self.commands > 0 => Destage::Now,
            _ => Destage::WhenIdle,
        }
    }

    /// Returns the number of commands that the arm can serve. All become ready in the order in
    /// which they came.
    fn ready(&self, now: Instant) -> usize {
        let overhead = self.profile.overhead;
        self.held.partition_point(|held| held.since + overhead <= now)
    }

    /// Returns the time of the seek from `arm` to `spot`.
    fn seek(&self, arm: Spot, spot: &Spot, is_write: bool) -> Duration {
        let curve = if is_write { &self.write_seek } else { &self.read_seek };
        let distance = spot.cylinder.abs_diff(arm.cylinder);
        curve.time(distance, spot.head != arm.head)
    }

    /// Returns the time after which the firmware expects the head at `sector`, in nanoseconds.
    /// Without errors, it is that of [`Self::position`].
    fn expected(&self, sector: u64, is_write: bool, now: Instant) -> i64 {
        let sector = if is_write { sector - sector % self.profile.physical() } else { sector };
        let spot = self.geometry.spot(sector);
        let seek = self.seek(self.arm, &spot, is_write);
        let movement = Movement { from: self.arm.cylinder.into(), to: sector, seek };
        self.estimate.access(movement, |arrival| {
            self.spindle.wait(now + Duration::from_ns(arrival), spot.begin)
        })
    }

    /// Returns the time of the seek from `arm` to `spot`, which begins at `now`, and the time for
    /// which the head then waits there.
    fn position(
        &self,
        arm: Spot,
        spot: &Spot,
        is_write: bool,
        now: Instant,
    ) -> (Duration, Duration) {
        let seek = self.seek(arm, spot, is_write);
        (seek, self.spindle.wait(now + seek, spot.begin))
    }

    /// Starts `choice`. `ahead` is what the head did until now.
    fn start(
        &mut self,
        choice: Choice,
        mut ahead: Option<Ahead>,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        let (first, end, task) = match choice {
            Choice::Command { at, overdue } => {
                let held = self.held.remove(at);
                self.counts.overdue += u64::from(overdue);
                self.streak.add(held.start, held.end);
                if !held.is_write {
                    self.ahead = ahead;
                    if self.is_cached(held, now) {
                        self.counts.cached_reads += 1;
                        return self.ended.push_back(held.id);
                    }
                    ahead = self.ahead.take();
                }
                let first =
                    if held.is_write { held.start } else { self.reads.held(held.start, held.end) };
                (first, held.end, Task::Command(held))
            }
            Choice::Destage { start, end } => {
                let end = end.min(self.geometry.spot(start).track_end);
                self.writes.remove(start, end);
                self.sweep_from = end;
                self.in_batch = self.profile.cache.turns == Turns::Batch && self.writes.has_batch();
                self.counts.destages += 1;
                (start, end, Task::Destage { sectors: end - start })
            }
        };
        debug_assert!(first < end && end <= self.capacity, "{choice:?} has no sectors");
        let is_write = !matches!(task, Task::Command(Held { is_write: false, .. }));
        let edges = if is_write { self.read_edges(first, end) } else { Duration::ZERO };
        let (first, end) = if is_write { self.whole(first, end) } else { (first, end) };
        let (begins, ends) = match ahead {
            // The head is just there.
            Some(ahead) if !is_write && ahead.reached(&self.geometry, now) == first => {
                self.count_ahead(ahead, now);
                (now, (ahead.since + self.geometry.transfer(ahead.from, end)).max(now))
            }
            ahead => {
                let leaves = self.linger(ahead.or(self.after_read), first, is_write, now);
                let begins = self.move_to(first, is_write, leaves) + edges;
                (begins, begins + self.geometry.transfer(first, end))
            }
        };
        debug_assert!(now <= begins && begins <= ends, "a transfer ends after it begins");
        self.counts.passing += ends.since(begins);
        self.counts.transfer += self.geometry.transfer(first, end);
        self.arm = self.geometry.spot(end - 1);
        self.commands = match task {
            Task::Command(_) => self.commands.saturating_add(1),
            _ => 0,
        };
        self.task = Some(task);
        events.push_back((ends, ARM_FREE));
    }

    /// Returns the sectors from `start` to `end` with what they lack of sectors of the platters.
    fn whole(&self, start: u64, end: u64) -> (u64, u64) {
        debug_assert!(start < end, "a write has a sector");
        let physical = self.profile.physical();
        (start - start % physical, end.next_multiple_of(physical).min(self.capacity))
    }

    /// Counts the turns in which the head reads what a write of the sectors from `start` to `end`
    /// does not cover of its first and last sector of the platters, before it can write these.
    /// Returns their time: one turn, or two if the sectors are on different tracks.
    ///
    /// With physical sectors of 8, a write of 3 to 11 reads 0 to 16 in one turn, and writes them in
    /// the next.
    fn read_edges(&mut self, start: u64, end: u64) -> Duration {
        let whole = self.whole(start, end);
        let [front, back] = [whole.0 < start, end < whole.1];
        let is_one_track = end <= self.geometry.spot(start).track_end;
        let turns =
            if is_one_track { (front || back).into() } else { u64::from(front) + u64::from(back) };
        let time = Duration::from_ns(turns * self.profile.revolution().as_ns());
        self.counts.rotation += time;
        time
    }

    /// Counts a movement of the arm that begins at `now`, and returns when `sector` begins to pass
    /// the head.
    fn move_to(&mut self, sector: u64, is_write: bool, now: Instant) -> Instant {
        debug_assert!(self.task.is_none(), "[one-arm]");
        let spot = self.geometry.spot(sector);
        let (seek, wait) = self.position(self.arm, &spot, is_write, now);
        self.counts.moved(spot.cylinder != self.arm.cylinder, seek, wait);
        self.arm = spot;
        now + seek + wait
    }

    /// Acknowledges the writes that have room, up to the first that has none, and ends flushes.
    fn acknowledge(&mut self) {
        let leaving = match self.task {
            Some(Task::Destage { sectors }) => sectors,
            _ => 0,
        };
        while let Some(&Held { id, start, end, .. }) = self.unacknowledged.front() {
            let is_flush = start == end;
            if is_flush && (leaving > 0 || !self.writes.is_empty()) {
                return; // it ends when the earlier writes are on the platters
            }
            self.destages &= !is_flush;
            if !is_flush {
                if !self.writes.has_room(end - start, leaving) {
                    return;
                }
                self.writes.add(start, end);
                self.counts.cached_writes += 1;
            }
            self.unacknowledged.pop_front();
            self.ended.push_back(id);
        }
    }

    /// Asks for an event when the disk may have been idle for long enough to write what it has
    /// acknowledged.
    fn wait_for_idle(&mut self, now: Instant, events: &mut MediumEvents) {
        if !self.writes.is_empty() && !self.waits_for_idle {
            self.waits_for_idle = true;
            let at = (self.last_use + self.profile.cache.idle).max(now);
            events.push_back((at, IDLE));
        }
    }

    /// Whether the cache has the sectors of a read. If it does, the head reads on ahead of the
    /// reader if it reads there. If the read waited for that, the time counts
    /// as the head's.
    fn is_cached(&mut self, read: Held, now: Instant) -> bool {
        let ahead = self.ahead;
        self.catch_up(now);
        let is_written = self.writes.has(read.start, read.end);
        if !is_written && self.reads.held(read.start, read.end) < read.end {
            return false;
        }
        if let Some(ahead) = ahead
            && read.since < now
        {
            self.count_ahead(ahead, now);
        }
        if !is_written {
            self.streak.add_cached(read.start, read.end);
            self.keep_ahead(read.end, now);
        }
        true
    }

    /// Lets the head read on ahead of a reader at sector `reader`, who read from the cache, if it
    /// reads there or is on the way there.
    fn keep_ahead(&mut self, reader: u64, now: Instant) {
        let Some(held_end) = self.reads.end_of(reader - 1) else { return };
        let limit = self.ahead_limit(reader);
        let ahead = match &mut self.task {
            Some(Task::Approach(ahead)) => ahead,
            _ => &mut self.ahead,
        };
        if let Some(ahead) = ahead
            && (ahead.from..=ahead.limit).contains(&held_end)
        {
            ahead.limit = ahead.limit.max(limit);
            ahead.reader = ahead.reader.max(reader);
            ahead.is_stream = true;
            // Nobody has waited for what the head has read by now.
            self.ahead_counted = self.ahead_counted.max(now);
        }
    }

    /// Lets an arm that has nothing to do read ahead of a reader at sector `reader`, who read from
    /// the cache, once less than half a segment is left.
    fn resume_ahead(&mut self, reader: u64, now: Instant, events: &mut MediumEvents) {
        if self.task.is_some() || self.ahead.is_some() || !self.held.is_empty() {
            return;
        }
        let Some(held_end) = self.reads.end_of(reader - 1) else { return };
        if held_end - reader < self.reads.segment / 2 {
            self.read_ahead(held_end, reader, now, events);
        }
    }

    /// Keeps `held` until the arm serves it, which it can when the firmware has prepared it.
    fn hold(&mut self, held: Held, events: &mut MediumEvents) {
        let ready = held.since + self.profile.overhead;
        if ready > held.since {
            events.push_back((ready, READY));
        }
        if let Some(passed) = self.passed_before_leaving(held).filter(|&passed| passed > ready) {
            events.push_back((passed, READY));
        }
        self.held.push(held);
    }

    /// Counts the time for which `ahead` read what a command waits for now. Of 4 ms of reading
    /// ahead, the last one counts if the cache answered a read after 3 ms.
    fn count_ahead(&mut self, ahead: Ahead, now: Instant) {
        debug_assert!(self.task.is_none(), "[one-arm]");
        let end = ahead.since + self.geometry.transfer(ahead.from, ahead.limit);
        self.counts.passing += now.min(end).since(self.ahead_counted);
        self.ahead_counted = self.ahead_counted.max(now);
    }

    /// Notes whether writes wait for room in the cache, which then counts as full.
    fn note_buffer_full(&mut self, now: Instant) {
        let waits = self.unacknowledged.front().is_some_and(|held| held.start < held.end);
        self.buffer_full.note(waits, false, now);
    }

    /// Returns the sector before which the head stops that reads ahead for a reader at `reader`.
    fn ahead_limit(&self, reader: u64) -> u64 {
        (reader + self.reads.segment).min(self.capacity)
    }

    /// Lets the head read ahead from sector `from` on, for a reader at sector `reader`.
    fn read_ahead(&mut self, from: u64, reader: u64, now: Instant, events: &mut MediumEvents) {
        debug_assert!(self.task.is_none() && self.ahead.is_none(), "[one-arm]");
        debug_assert!(reader <= from, "the head reads ahead of its reader at {reader}");
        let limit = self.ahead_limit(reader);
        if from >= limit {
            return;
        }
        let spot = self.geometry.spot(from);
        let (seek, wait) = self.position(self.arm, &spot, false, now);
        // The turn after the seek may be broken off, so it counts when a read has waited for it.
        self.counts.moved(spot.cylinder != self.arm.cylinder, seek, Duration::ZERO);
        self.arm = spot;
        let ahead = Ahead { from, since: now + seek + wait, limit, reader, is_stream: true };
        self.task = Some(Task::Approach(Some(ahead)));
        events.push_back((now + seek, ARM_FREE));
    }

    /// Returns the time on the course between sector `sector` and the one before it.
    fn gap(&self, sector: u64) -> Duration {
        let before = self.geometry.spot(sector - 1);
        let spot = self.geometry.spot(sector);
        Duration::from_ns(spot.begin - before.end)
    }

    /// Keeps what the head has read ahead until `now`.
    fn catch_up(&mut self, now: Instant) {
        if let Some(leaving) = self.leaving {
            self.reads.keep(leaving.from, leaving.reached(&self.geometry, now));
        }
        let Some(ahead) = self.ahead else { return };
        debug_assert!(self.task.is_none(), "[one-arm]");
        let reached = ahead.reached(&self.geometry, now);
        self.reads.keep(ahead.from, reached);
        if reached == ahead.limit {
            self.arm = self.geometry.spot(reached - 1);
            self.ahead = None;
        }
    }

    /// As [`Self::catch_up`], and lets the head do so no longer. Returns what it did if it did
    /// until now.
    fn stop_ahead(&mut self, now: Instant) -> Option<Ahead> {
        self.catch_up(now);
        let ahead = self.ahead.take()?;
        self.arm = self.geometry.spot(ahead.reached(&self.geometry, now));
        Some(ahead)
    }

    /// Forgets what was read of the sectors from `start` to `end`, which are written.
    fn forget_read(&mut self, start: u64, end: u64, now: Instant) {
        self.catch_up(now);
        let is_old = |ahead: &mut Ahead| start < ahead.limit && ahead.from < end;
        if let Some(Task::Approach(ahead)) = &mut self.task {
            ahead.take_if(is_old);
        }
        if self.ahead.as_mut().is_some_and(is_old) {
            self.stop_ahead(now);
        }
        self.leaving.take_if(is_old);
        self.reads.forget(start, end);
    }
}

impl Medium for Platters {
    fn begin(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        self.last_use = now;
        let start = access.start;
        let end = access.start + u64::from(access.sectors);
        debug_assert!(end <= self.capacity, "{access:?} is beyond the end of the disk");
        let is_write = matches!(access.op, Op::Write | Op::WriteZeroes);
        let held = Held { id, start, end, is_write, since: now };
        match access.op {
            Op::Read if self.is_cached(held, now) => {
                self.counts.cached_reads += 1;
                self.ended.push_back(id);
                self.resume_ahead(end, now, events);
            }
            Op::Read => self.hold(held, events),
            Op::Write | Op::WriteZeroes => {
                self.forget_read(start, end, now);
                if self.writes.is_on() && !access.fua {
                    self.unacknowledged.push_back(held);
                } else {
                    self.writes.remove(start, end);
                    // FUA, or no write cache: the write ends when it is on the platters.
                    self.hold(held, events);
                }
            }
            Op::Flush => self.unacknowledged.push_back(held),
            // A disk has nothing to discard, and a profile with a disk promises no discards.
            _ => self.ended.push_back(id),
        }
        self.proceed(now, events);
        self.note_buffer_full(now);
    }

    fn event(&mut self, event: MediumEvent, now: Instant, events: &mut MediumEvents) {
        if event == IDLE {
            self.waits_for_idle = false;
            self.destages |= now.since(self.last_use) >= self.profile.cache.idle;
        }
        if event != ARM_FREE {
            self.proceed(now, events);
            return self.note_buffer_full(now);
        }
        let task = self.task.take().expect("the arm did something");
        self.finish(task, now);
        self.proceed(now, events);
        if let Some(ahead) = self.after_read.take().filter(|_| self.task.is_none()) {
            self.ahead_counted = now;
            self.ahead = Some(ahead);
        }
        self.note_buffer_full(now);
    }

    fn next_ended(&mut self) -> Option<CommandId> {
        self.ended.pop_front()
    }

    fn counts(&self) -> MediumCounts {
        self.counts.named()
    }

    fn used(&self) -> MediumUse {
        MediumUse { used: self.counts.used(), units: 1 }
    }

    fn load(&self) -> MediumLoad {
        MediumLoad {
            parts: vec![PartsLoad::of_work(Parts::Head, 1, self.counts.work())],
            buffer_full: self.buffer_full.time(),
            ..MediumLoad::default()
        }
    }

    fn forget(&mut self) {
        self.counts = Counts::default();
        self.buffer_full.forget();
    }
}
