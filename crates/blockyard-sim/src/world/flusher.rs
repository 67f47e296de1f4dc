//! Flushers: each writes the dirty pages of one disk back in the background; nobody waits for it.
//!
//! Linux 6.12 (`wb_workfn`). A flusher looks 5 s after its disk got a dirty page, and 5 s after it
//! has run while there are any (`dirty-writeback`). It then writes the files that have had dirty
//! pages for 30 s (`dirty-expire`), and what is above the background limit or the disk's part of
//! it. A writer that finds more pages than the background limit wakes it, and it does the same; it
//! looks at the age of pages at most every 5 s. An uncached write wakes it, too (Linux 7.3): it
//! writes as many pages, of any kind, as are dirty and transient. Files have turns of one chunk,
//! and a raw disk is as one file. It goes through each in order, from where it stopped, under a
//! plug. It skips pages that are under writeback.

use super::actor::Actor;
use super::buffered::PIECE_BIOS_MAX;
use super::owner::RUN_BIT;
use super::{Event, Failure, World};
use crate::page_cache::{DirtyLimits, Pace, Run, Transfer, timer_end};
use blockyard::bio::Flags;
use blockyard::status::{Status, SubmitError};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};
use blockyard_trace::observe::{ActorId, Work};

/// The maximum number of pages of a flusher under writeback. Linux has no such bound, but tags
/// bound their requests; these are 128 MiB.
pub(crate) const FLUSHER_PAGES_MAX: u32 = 32_768;

/// The maximum number of bios under one plug. Others have their turn between two plugs.
const PLUG_BIOS_MAX: u32 = 1024;

/// The writeback of one disk.
#[derive(Debug)]
pub(super) struct Writeback {
    flusher: ActorId,
    /// Whether the flusher writes, or has been woken to do so.
    is_awake: bool,
    /// Whether an uncached write has woken it since it last began to write for such writes.
    is_kicked: bool,
    /// When the flusher looks next.
    looks_at: Option<Instant>,
    /// The event that wakes it for a look, perhaps for one that was put off meanwhile.
    event_at: Option<Instant>,
    /// When it last looked at the age of pages.
    looked_at_age: Option<Instant>,
    /// The pages that the flusher has under writeback.
    in_flight: u64,
    pub(super) pace: Pace,
}

impl Writeback {
    /// Notes the end of a bio of so many pages, which may be of the flusher.
    pub(super) fn ended(&mut self, pages: u64, is_of_flusher: bool) {
        self.pace.wrote(pages);
        if is_of_flusher {
            debug_assert!(self.in_flight >= pages, "{pages} pages that end must be in flight");
            self.in_flight -= pages;
        }
    }
}

/// The writeback of a machine.
#[derive(Debug)]
pub(super) struct Flushing {
    pub(super) limits: DirtyLimits,
    /// One entry for each disk.
    disks: Vec<Writeback>,
}

impl Flushing {
    pub(super) fn disk(&mut self, disk: QueueId) -> &mut Writeback {
        &mut self.disks[disk.index()]
    }
}

/// Why a flusher writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// There are more pages than the background limit, or than the disk's part of it.
    Background,
    /// A file, or the raw disk, has had dirty pages for too long.
    Age,
    /// An uncached write has ended.
    Uncached,
}

/// A flusher, as an actor.
#[derive(Debug)]
struct Flusher {
    id: ActorId,
    disk: QueueId,
    cpu: CpuId,
    reason: Option<Reason>,
    /// The pages that it is to write for uncached writes, or for their age, and has not written.
    wanted: u64,
    /// The pages that are left of the chunk of the turn; 0 between turns.
    chunk_left: u64,
    /// The bios under the plug, if it is plugged.
    plugged: Option<u32>,
    waits_for_room: bool,
    /// Whether another piece of work follows.
    has_more: bool,
}

/// How a piece of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// It has submitted enough for now.
    Full,
    /// It waits for a tag, for a place of throttled writeback, or for room.
    Waits,
    /// Nothing is left to write.
    Done,
}

impl Flusher {
    const fn new(id: ActorId, disk: QueueId, cpu: CpuId) -> Self {
        Self {
            id,
            disk,
            cpu,
            reason: None,
            wanted: 0,
            chunk_left: 0,
            plugged: None,
            waits_for_room: false,
            has_more: false,
        }
    }

    /// Whether there are more pages than the limits of the background.
    fn is_over_background(&self, world: &mut World<'_>) -> bool {
        let limits = world.flushing.as_ref().map(|flushing| flushing.limits);
        limits.is_some_and(|limits| world.cache.is_over_background(self.disk, limits, world.now))
    }

    /// Whether pages are too old, if the flusher has not looked for `dirty-writeback`.
    fn are_pages_old(&self, world: &mut World<'_>) -> bool {
        let now = world.now;
        let period = world.machine.dirty_writeback;
        let looked = &mut world.writeback(self.disk).looked_at_age;
        // As in Linux, nobody looks at the age of pages if the time between two looks is 0.
        if period == Duration::ZERO || looked.is_some_and(|at| now < at + period) {
            return false;
        }
        *looked = Some(now);
        world.cache.is_due(self.disk, world.machine.dirty_expire, now)
    }

    /// Returns why the flusher begins to write, if it does. Uncached writes come first, and then
    /// the age of pages.
    fn new_reason(&mut self, world: &mut World<'_>) -> Option<Reason> {
        let is_kicked = core::mem::take(&mut world.writeback(self.disk).is_kicked);
        self.wanted = if is_kicked { world.cache.levels().transient(self.disk) } else { 0 };
        if self.wanted > 0 {
            return Some(Reason::Uncached);
        }
        if self.are_pages_old(world) {
            // It ends, however fast others write: with as many pages as are dirty now.
            self.wanted = world.cache.levels().dirty();
            return Some(Reason::Age);
        }
        self.is_over_background(world).then_some(Reason::Background)
    }

    /// Begins the next turn, if there is a reason to.
    fn begin_turn(&mut self, world: &mut World<'_>) -> bool {
        debug_assert_eq!(self.chunk_left, 0, "the turn before should have ended");
        let (wanted, age) = match self.reason {
            Some(Reason::Age) => (self.wanted, world.machine.dirty_expire),
            Some(Reason::Uncached) => (self.wanted, Duration::ZERO),
            _ if self.is_over_background(world) => (u64::MAX, Duration::ZERO),
            _ => (0, Duration::ZERO),
        };
        let now = world.now;
        if wanted == 0 || !world.cache.begin_turn(self.disk, age, now) {
            return false;
        }
        let is_idle = world.cache.levels().is_idle(self.disk);
        let pace = &mut world.writeback(self.disk).pace;
        // After a quiet time the count begins anew: the rate of 4 s without a page says nothing.
        pace.begin(now, is_idle);
        pace.measure(now);
        self.chunk_left = pace.chunk(wanted);
        true
    }

    /// Submits bios until enough are submitted.
    fn write(&mut self, world: &mut World<'_>, cost: &mut Duration) -> Piece {
        for _ in 0..PIECE_BIOS_MAX {
            if self.chunk_left == 0 && !self.begin_turn(world) {
                return Piece::Done;
            }
            let in_flight = world.writeback(self.disk).in_flight;
            let room = u64::from(FLUSHER_PAGES_MAX).saturating_sub(in_flight);
            let most = self.chunk_left.min(room.max(1));
            let Some((file, pages, next)) = world.cache.next_of_turn(self.disk, most) else {
                world.cache.end_turn(self.disk, false, world.now);
                self.chunk_left = 0;
                continue;
            };
            if room == 0 {
                self.waits_for_room = true;
                return Piece::Waits;
            }
            if self.plugged.is_none() {
                world.queues[self.disk.index()].plug(self.cpu);
            }
            *self.plugged.get_or_insert(0) += 1;
            let count = pages.end - pages.start;
            let run = Run { file, pages, transfer: Transfer::WriteBack };
            match world.submit_run(self.id, self.disk, run) {
                Ok(spent) => *cost += spent,
                Err(SubmitError::NoTag | SubmitError::Throttled) => return Piece::Waits,
                Err(reason) => {
                    world.failure.get_or_insert(Failure::Refused(None, reason));
                    return Piece::Done;
                }
            }
            world.cache.go_on(self.disk, next);
            self.wanted = self.wanted.saturating_sub(count);
            self.chunk_left -= count;
            if self.chunk_left == 0 {
                world.cache.end_turn(self.disk, true, world.now);
            }
        }
        Piece::Full
    }

    /// Ends the writing. The flusher goes on if uncached writes have woken it meanwhile, or if
    /// there was another reason than the background, and there is that, too. Otherwise it plans its
    /// next look.
    fn rest(&mut self, world: &mut World<'_>) {
        let ended = self.reason.take();
        self.chunk_left = 0;
        let is_other = ended.is_some_and(|reason| reason != Reason::Background);
        let is_over = is_other && self.is_over_background(world);
        self.has_more = world.writeback(self.disk).is_kicked || is_over;
        world.writeback(self.disk).is_awake = self.has_more;
        world.plan_look(self.disk);
    }
}

impl Flusher {
    /// Whether the time of a look has come, which is then taken. An event that comes early, since
    /// the look was put off, is followed by another one.
    fn takes_look(&self, world: &mut World<'_>) -> bool {
        let now = world.now;
        let writeback = world.writeback(self.disk);
        writeback.event_at = writeback.event_at.filter(|at| *at > now);
        let looks = writeback.looks_at.is_some_and(|at| at <= now);
        if looks {
            writeback.looks_at = None;
        }
        world.plan_event(self.disk);
        looks
    }
}

impl Actor for Flusher {
    fn act(&mut self, world: &mut World<'_>, _cpu: CpuId) -> Duration {
        let now = world.now;
        let looks = self.takes_look(world);
        // A flusher that writes has another piece of work before it, or waits.
        let writes_already = looks && self.reason.is_some();
        // The event is that of a look that was put off meanwhile.
        let is_early = !looks && self.reason.is_none() && !world.writeback(self.disk).is_awake;
        if writes_already || is_early {
            return Duration::ZERO;
        }
        self.waits_for_room = false;
        if self.reason.is_none() {
            // Whatever has woken it, the next look is put off until it has run.
            world.writeback(self.disk).looks_at = None;
            self.reason = self.new_reason(world);
            world.cache.begin_turns(self.disk);
        }
        let mut cost = Duration::ZERO;
        let piece = match self.reason {
            Some(_) => {
                world.writeback(self.disk).is_awake = true;
                self.write(world, &mut cost)
            }
            None => Piece::Done,
        };
        self.has_more = piece == Piece::Full;
        if self.plugged.is_some_and(|bios| !self.has_more || bios >= PLUG_BIOS_MAX) {
            self.plugged = None;
            world.queues[self.disk.index()].unplug(&mut world.host, self.cpu, now);
            cost += world.follow_up(self.disk, false);
        }
        if piece == Piece::Done {
            self.rest(world);
        }
        cost
    }

    fn plan_next(&mut self, world: &mut World<'_>, cpu: CpuId, _cost: Duration) -> Duration {
        if core::mem::take(&mut self.has_more) {
            let work = Work::Actor(self.id);
            match self.plugged {
                // Nothing waits under a plug.
                Some(_) => world.cpus[cpu.index()].push_next(work),
                None => world.cpus[cpu.index()].push(work),
            }
        }
        Duration::ZERO
    }

    fn on_bio_end(&mut self, _world: &mut World<'_>, _number: u32, _status: Status) -> bool {
        core::mem::take(&mut self.waits_for_room)
    }
}

impl World<'_> {
    /// Adds a flusher for each disk. Without them only syncs write dirty pages back. The kernel
    /// raises the part of a quiet disk in the background limit, or does not.
    pub(crate) fn flush(&mut self, raises_part: bool) {
        let limits = DirtyLimits::of(&self.machine, raises_part);
        let cpu = self.flusher_cpu();
        let disks = (0..self.queues.len()).map(|disk| {
            let disk = QueueId(u16::try_from(disk).expect("disks should fit 16 bits"));
            let flusher = self.add_sleeping_actor(cpu, |id| Box::new(Flusher::new(id, disk, cpu)));
            Writeback {
                flusher,
                is_awake: false,
                is_kicked: false,
                looks_at: None,
                event_at: None,
                looked_at_age: None,
                in_flight: 0,
                pace: Pace::new(limits),
            }
        });
        let disks = disks.collect();
        self.flushing = Some(Flushing { limits, disks });
    }

    /// Returns the processor of the flushers: the threads of jobs fill the others first.
    const fn flusher_cpu(&self) -> CpuId {
        CpuId(self.machine.cpus - 1)
    }

    pub(super) fn writeback(&mut self, disk: QueueId) -> &mut Writeback {
        self.flushing.as_mut().expect("a disk with a flusher").disk(disk)
    }

    /// Plans the next look of a flusher, if its disk has dirty pages.
    pub(super) fn plan_look(&mut self, disk: QueueId) {
        let period = self.machine.dirty_writeback;
        // As in Linux, there are no looks if the time between two of them is 0.
        if !self.cache.levels().is_dirty(disk) || period == Duration::ZERO {
            return;
        }
        let now = self.now;
        let writeback = self.writeback(disk);
        if writeback.looks_at.is_none() {
            writeback.looks_at = Some(timer_end(now, period));
            self.plan_event(disk);
        }
    }

    /// Plans the event that wakes a flusher for its next look, unless there is one.
    fn plan_event(&mut self, disk: QueueId) {
        let writeback = self.writeback(disk);
        let Some(at) = writeback.looks_at.filter(|_| writeback.event_at.is_none()) else { return };
        writeback.event_at = Some(at);
        let flusher = writeback.flusher;
        self.wake_actor_at(flusher, at);
    }

    /// Wakes the flusher of a disk for the pages of an uncached write on `cpu`, whose last copy
    /// takes `copy`. Returns the cost.
    pub(super) fn kick_flusher(&mut self, disk: QueueId, cpu: CpuId, copy: Duration) -> Duration {
        if self.flushing.is_none() {
            return Duration::ZERO;
        }
        let writeback = self.writeback(disk);
        writeback.is_kicked = true;
        if core::mem::replace(&mut writeback.is_awake, true) {
            return Duration::ZERO;
        }
        let flusher = writeback.flusher;
        self.totals.wakeups += 1;
        let wakeup = self.machine.wakeup;
        if self.flusher_cpu() == cpu {
            // On the writer's own processor it runs before the writer's next call.
            self.cpus[cpu.index()].push(Work::Actor(flusher));
        } else {
            self.count_interrupt_of(self.flusher_cpu());
            self.schedule_soon(self.now + copy + wakeup, Event::WakeActor(flusher));
        }
        wakeup
    }

    /// Wakes the flusher of a disk, unless it writes. Returns the cost.
    pub(super) fn wake_flusher(&mut self, disk: QueueId) -> Duration {
        let writeback = self.writeback(disk);
        if core::mem::replace(&mut writeback.is_awake, true) {
            return Duration::ZERO;
        }
        let flusher = writeback.flusher;
        self.wake_actor(flusher)
    }

    /// Submits the bio of a run of pages for the flusher of `disk`, actor `id`.
    fn submit_run(
        &mut self,
        id: ActorId,
        disk: QueueId,
        run: Run,
    ) -> Result<Duration, SubmitError> {
        let bio = self.cache.bio_of(&run).with_flags(Flags::WRITEBACK | Flags::BACKGROUND);
        let number = RUN_BIT | self.cache.next_number();
        let cost = self.submit_numbered(id, disk, bio, number)?;
        self.writeback(disk).in_flight += run.pages.end - run.pages.start;
        self.cache.submitted(run);
        Ok(cost + self.complete_within_call())
    }
}
