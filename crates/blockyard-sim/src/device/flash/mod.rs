//! Flash memory behind a translation layer: dies on channels, a write buffer, a cache of single-level cells.
//!
//! A write ends when the buffer has taken it. The buffer writes whole programs, on the dies in turn, and a place in it
//! is free again when its program has ended. A read takes its die and then its channel.
//!
//! The map is scaled: it has `simulated` bytes of units, whatever the drive's capacity, and units whose distance is a
//! multiple of them share an entry. Memory does not depend on the capacity or on the length of a run. Writes that are
//! uniform over the drive see the collection of the whole drive, sooner; writes to a part of it that is larger than
//! the simulated span see all of the data overwritten.
//!
//! Left out: the read of the rest of a unit of which only a part is written, misses of the map in a drive without
//! memory of its own, read retries, wear, the location of data in the cache of single-level cells (only its amount
//! and times count) and reads of data whose program has not ended from the buffer. Collection moves data within a die.
//!
//! Too simple for latencies beside writes: a read waits for all the work that its die has taken, not only for the program
//! under way; it holds its channel from the end of its read on, so that a busy die keeps a channel from others; a
//! suspended program ends as if it had not been suspended; a die that collects empties a block in one piece. A discard
//! of any `simulated` bytes of addresses empties the map.

mod map;
#[cfg(test)]
mod tests;

use super::medium::{
    Access, CommandId, Medium, MediumCounts, MediumEvent, MediumEvents, MediumUse,
};
use crate::profile::{FlashProfile, UNIT_BYTES};
use crate::workload::Prng;
use blockyard::bio::Op;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use map::Map;
use std::collections::VecDeque;

/// Sectors of a unit.
const UNIT_SECTORS: u64 = UNIT_BYTES / SECTOR_BYTES as u64;
/// The event at which a program ended, with the number of its units; below it lie commands.
const PROGRAMMED: u32 = 1 << 30;
/// The event at which the cache may be folded.
const FOLD: u32 = PROGRAMMED - 1;

/// The medium.
#[derive(Debug)]
pub(super) struct Flash {
    profile: FlashProfile,
    map: Map,
    dies: Vec<Die>,
    /// For each channel, the instant from which it is free.
    channels: Vec<Instant>,
    /// Units that wait for the next program.
    pending: Vec<u32>,
    /// The die of the next program.
    next_die: usize,
    /// Units in the buffer, and how many it takes.
    buffered: u64,
    buffer_units: u64,
    /// Writes that wait for the buffer: their next unit, and the one after their last.
    waiting: VecDeque<(CommandId, Access, u64, u64)>,
    /// The instant from which all data that the buffer gave away is in flash.
    durable_at: Instant,
    /// Units in the cache of single-level cells, and whether an event to fold them is under way.
    slc_used: u64,
    folding: bool,
    host_at: Instant,
    ended: VecDeque<CommandId>,
    counts: Counts,
}

/// A die.
#[derive(Clone, Copy, Debug, Default)]
struct Die {
    /// The instant from which all its work is done.
    free_at: Instant,
    /// The instant from which its reads are done.
    reads_at: Instant,
}

/// What the memory did.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    host: u64,
    moved: u64,
    erases: u64,
    reads: u64,
    programs: u64,
    slc_programs: u64,
    folded: u64,
    combined: u64,
    stalls: u64,
    read_wait: Duration,
    used: Duration,
}

impl Flash {
    /// Returns idle flash by `profile`; `prng` draws what was overwritten before.
    pub(super) fn new(profile: FlashProfile, mut prng: Prng) -> Self {
        let dies = usize::from(profile.channels) * usize::from(profile.dies);
        Self {
            map: Map::new(&profile, &mut prng),
            dies: vec![Die::default(); dies],
            channels: vec![Instant::ZERO; profile.channels.into()],
            pending: Vec::new(),
            next_die: 0,
            buffered: 0,
            buffer_units: profile.buffer / UNIT_BYTES,
            waiting: VecDeque::new(),
            durable_at: Instant::ZERO,
            slc_used: 0,
            folding: false,
            host_at: Instant::ZERO,
            ended: VecDeque::new(),
            counts: Counts::default(),
            profile,
        }
    }

    /// Returns the entry of `unit` in the map.
    fn fold(&self, unit: u64) -> u32 {
        u32::try_from(unit % self.map.units()).expect("a unit of the map should be a u32")
    }

    /// Reads units `first..end`, and returns when the last is there.
    fn read(&mut self, first: u64, end: u64, now: Instant) -> Instant {
        let page_units = u32::try_from(self.profile.page / UNIT_BYTES).expect("a page is small");
        let mut done = now + self.profile.buffered;
        let mut last = (u32::MAX, now);
        for unit in first..end {
            let unit = self.fold(unit);
            let Some(place) = self.map.place(unit) else { continue };
            if self.pending.contains(&unit) {
                continue;
            }
            let die = self.map.die_of(place);
            if last.0 != place / page_units {
                last = (place / page_units, self.read_page(die, now));
            }
            done = done.max(self.transfer(die, 1, last.1));
        }
        done
    }

    /// Reads a page of `die`, and returns when its register holds it. A read goes before programs and erases if the die
    /// can suspend them.
    fn read_page(&mut self, die: usize, now: Instant) -> Instant {
        let die = &mut self.dies[die];
        let busy = die.free_at > now.max(die.reads_at);
        let (begin, cost) = match self.profile.suspend {
            Some(suspend) if busy => (now.max(die.reads_at) + suspend, suspend),
            _ => (now.max(die.free_at), Duration::ZERO),
        };
        die.reads_at = begin + self.profile.read;
        die.free_at = (die.free_at + cost + self.profile.read).max(die.reads_at);
        debug_assert!(die.free_at >= die.reads_at, "a die's reads are among its work");
        self.counts.reads += 1;
        self.counts.used += self.profile.read;
        self.counts.read_wait += begin.since(now);
        die.reads_at
    }

    /// Carries `units` of `die` over its channel from `from` at the earliest, and returns when they are there.
    fn transfer(&mut self, die: usize, units: u64, from: Instant) -> Instant {
        let at = die % self.channels.len();
        let channel = &mut self.channels[at];
        *channel = (*channel).max(from) + times(self.profile.transfer, units);
        *channel
    }

    /// Lets waiting writes into the buffer while it has room.
    fn admit(&mut self, now: Instant, events: &mut MediumEvents) {
        while let Some((id, access, mut unit, end)) = self.waiting.pop_front() {
            while unit < end && self.buffered < self.buffer_units {
                let entry = self.fold(unit);
                unit += 1;
                self.counts.host += 1;
                if self.pending.contains(&entry) {
                    self.counts.combined += 1;
                    continue;
                }
                self.buffered += 1;
                self.pending.push(entry);
                if self.pending.len() as u64 == self.profile.program_units() {
                    self.program(now, events);
                }
            }
            if unit < end {
                return self.waiting.push_front((id, access, unit, end));
            }
            debug_assert!(self.buffered <= self.buffer_units, "the buffer has a limit");
            let durable = if access.fua { self.settle(now, events) } else { now };
            events.push_back((durable.max(now + self.profile.buffered), MediumEvent(id.0)));
        }
    }

    /// Returns when all data in the buffer is durable, after a program of what waits.
    fn settle(&mut self, now: Instant, events: &mut MediumEvents) -> Instant {
        if self.profile.protected {
            return now;
        }
        if !self.pending.is_empty() {
            self.program(now, events);
        }
        self.durable_at.max(now)
    }

    /// Programs the units that wait, on the next die.
    fn program(&mut self, now: Instant, events: &mut MediumEvents) {
        let (at, units) = (self.map.with_room(self.next_die), self.pending.len() as u64);
        self.next_die = (at + 1) % self.dies.len();
        let (mut moved, mut erased) = (0, 0);
        for unit in &self.pending {
            let collected = self.map.put(at, *unit);
            moved += collected.moved;
            erased += collected.erased;
        }
        (units..self.profile.program_units()).for_each(|_| self.map.pad(at));
        self.pending.clear();
        let slc = (self.slc_used + units) * UNIT_BYTES <= self.profile.slc;
        let own = if slc { self.profile.slc_program } else { self.profile.program };
        let collection = self.moving(moved) + times(self.profile.erase, erased);
        let there = self.transfer(at, units, now);
        let die = &mut self.dies[at];
        die.free_at = die.free_at.max(there) + collection + own;
        let end = die.free_at;
        self.durable_at = self.durable_at.max(end);
        self.counts.used += collection + own;
        self.counts.moved += moved;
        self.counts.erases += erased;
        self.counts.programs += 1;
        self.counts.slc_programs += u64::from(slc);
        let event = PROGRAMMED + u32::try_from(units).expect("a program has few units");
        events.push_back((end, MediumEvent(event)));
        if slc {
            self.slc_used += units;
            if !core::mem::replace(&mut self.folding, true) {
                events.push_back((now + self.profile.slc_idle, MediumEvent(FOLD)));
            }
        }
    }

    /// Returns the time in which a die moves `units`, which lie on pages of their own.
    fn moving(&self, units: u64) -> Duration {
        let programs = units.div_ceil(self.profile.program_units());
        times(self.profile.read, units) + times(self.profile.program, programs)
    }

    /// Folds one program on each die if the host is idle, and asks to be called again while data is left.
    fn fold_cache(&mut self, now: Instant, events: &mut MediumEvents) {
        let idle_at = self.host_at + self.profile.slc_idle;
        let mut again = idle_at;
        if idle_at <= now {
            let cost = self.moving(self.profile.program_units());
            for die in &mut self.dies {
                let units = self.slc_used.min(self.profile.program_units());
                if units > 0 {
                    die.free_at = die.free_at.max(now) + cost;
                    again = again.max(die.free_at);
                    self.slc_used -= units;
                    self.counts.folded += units;
                    self.counts.used += cost;
                }
            }
        }
        self.folding = self.slc_used > 0;
        if self.folding {
            events.push_back((again, MediumEvent(FOLD)));
        }
    }
}

impl Medium for Flash {
    fn begin(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        debug_assert!(id.0 < FOLD, "a command's number must not be that of another event");
        self.host_at = now;
        let first = access.start / UNIT_SECTORS;
        let end = (access.start + u64::from(access.sectors)).div_ceil(UNIT_SECTORS);
        match access.op {
            Op::Read => {
                let end = self.read(first, end, now);
                events.push_back((end, MediumEvent(id.0)));
            }
            Op::Write => {
                self.counts.stalls += u64::from(self.buffered + (end - first) > self.buffer_units);
                self.waiting.push_back((id, access, first, end));
                self.admit(now, events);
            }
            Op::Discard | Op::WriteZeroes => {
                // Only whole units lose their data.
                let first = access.start.div_ceil(UNIT_SECTORS);
                let end = (access.start + u64::from(access.sectors)) / UNIT_SECTORS;
                for unit in first..end.min(first + self.map.units()) {
                    let unit = self.fold(unit);
                    self.pending.retain(|other| {
                        *other != unit || {
                            self.buffered -= 1;
                            false
                        }
                    });
                    self.map.unmap(unit);
                }
                events.push_back((now + self.profile.buffered, MediumEvent(id.0)));
                self.admit(now, events);
            }
            _ => {
                let end = self.settle(now, events);
                events.push_back((end, MediumEvent(id.0)));
            }
        }
    }

    fn event(&mut self, event: MediumEvent, now: Instant, events: &mut MediumEvents) {
        match event.0 {
            FOLD => self.fold_cache(now, events),
            PROGRAMMED.. => {
                let units = u64::from(event.0 - PROGRAMMED);
                debug_assert!(units <= self.buffered, "a program frees only what the buffer has");
                self.buffered -= units;
                self.admit(now, events);
            }
            id => self.ended.push_back(CommandId(id)),
        }
    }

    fn next_ended(&mut self) -> Option<CommandId> {
        self.ended.pop_front()
    }

    fn counts(&self) -> MediumCounts {
        let c = &self.counts;
        let written = c.host - c.combined;
        vec![
            ("units_written", c.host),
            ("units_combined", c.combined),
            ("units_collected", c.moved),
            ("write_amplification_percent", (written + c.moved) * 100 / written.max(1)),
            ("pages_read", c.reads),
            ("programs", c.programs),
            ("slc_programs", c.slc_programs),
            ("units_folded", c.folded),
            ("erases", c.erases),
            ("buffer_stalls", c.stalls),
            ("read_wait_ns", c.read_wait.as_ns()),
        ]
    }

    fn used(&self) -> MediumUse {
        let units = u32::try_from(self.dies.len()).expect("dies should be at most 4096");
        MediumUse { used: self.counts.used, units }
    }

    fn forget(&mut self) {
        self.counts = Counts::default();
    }
}

fn times(time: Duration, n: u64) -> Duration {
    Duration::from_ns(time.as_ns().saturating_mul(n))
}
