//! Flash memory behind a translation layer: dies on channels, a write buffer, a cache of
//! single-level cells.
//!
//! A write ends when the buffer has taken it. The buffer writes whole programs, each on the next
//! die that is free, and the room of a program is free again when it has ended. A read takes its
//! die and then its channel. A program takes its die, which does nothing else while the data waits
//! for the channel and is carried, and then programs. Data that has not been programmed is read
//! from the buffer. Data of the row that a die has read last is read from its register.
//!
//! The map is scaled: it has `simulated` bytes of flash and spare, whatever the drive's capacity.
//! `fill` of them hold data, in units that all addresses share: two whose distance is a multiple of
//! that data have one entry. So memory does not depend on the capacity or on the length of a run,
//! and every address holds data until it is discarded. Writes that are uniform over the drive see
//! the collection of the whole drive, sooner; writes to a part of it that is larger than the data
//! of the map see all data overwritten.
//!
//! Left out:
//!
//! - of the translation layer: the read of the rest of a unit of which only a part is written,
//!   writes of the map other than those of flushes, with the blocks for them, and collection in
//!   idle time before a die is short of free blocks. Collection moves data within a die;
//! - of a discard: reads and writes of the map, the wait of dies and of other commands, and parts
//!   of units. It takes the same time whatever data there was;
//! - of the cache of single-level cells: where its data lies, so reads of it are not faster and it
//!   takes no blocks from collection; its blocks and their erases; its places that a flush leaves
//!   empty; and that it shrinks as the drive fills. Only its amount and times count;
//! - of the pages of a word line: which of them has the data. Each read of a page draws its time
//!   anew (`read_spread`), one of data in the cache of single-level cells too;
//! - of dies and channels: cache programs, which load while another one runs; reads of a die whose
//!   program waits for its data; reads of single planes; the time of commands on the channel;
//!   retries of other reads than a command's; wear, heat and power states.
//!
//! Of the units that share an entry of the map, one represents all, by a fixed hash. A discard
//! empties the entry if it has that one. So a discard of a tenth of the drive empties a tenth of
//! the map. Data in the buffer is written nonetheless. A discard changes the map when it arrives.
//! Discards end one after the other, each after a fixed time and one proportional to its length,
//! whatever data there was. The medium serves other commands meanwhile.
//!
//! Where the front end fetches the data of writes, a write asks for as much of it as the buffer has
//! room for, and ends when all is there. Until then its data delays no read.
//!
//! A write for which the buffer has no room waits, and so do the writes behind it. By
//! `full-buffer`, other commands that arrive behind it begin immediately, or wait in line with the
//! writes: all of them, or those of the hardware queue of such a write.
//!
//! # Rules
//!
//! - **[bounded-memory]** Accepted profiles have so few units, places, blocks and pages of the map
//!   that flash takes less than 1 GiB of memory.
//! - **[bounded-map-reads]** A write that needs a page of the map is let into the buffer while
//!   fewer such pages are being read than the buffer has units.

mod ahead;
mod buffer;
mod channel;
mod closed;
mod collect;
mod counts;
mod die;
pub(crate) mod evidence;
mod flushes;
mod map;
mod map_memory;
mod precondition;
pub(crate) mod profile;
mod slc;
#[cfg(test)]
mod tests;
mod turns;
mod work;

use super::load::{Lasting, MediumLoad, Parts, PartsLoad, WorkTimes};
use super::medium::{
    Access, CommandId, Medium, MediumCounts, MediumEvent, MediumEvents, MediumUse, Wanted,
};
use crate::flash::profile::{
    BLOCKS_MAX, BUFFER_MAX, FLUSH_MAP_MAX, FlashProfile, FullBuffer, MAP_MEMORY_MAX, SIMULATED_MAX,
    SPARE_MAX, UNIT_BYTES,
};
use ahead::ReadAhead;
use blockyard::bio::Op;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use buffer::Buffer;
use channel::Channel;
use collect::Collection;
use core::ops::Range;
use counts::Counts;
use die::{Die, PageRead, Reader};
use flushes::{After, Flushes};
use map::Map;
use map_memory::MapMemory;
use slc::SlcCache;
use std::collections::VecDeque;

/// Sectors of a unit.
const UNIT_SECTORS: u64 = UNIT_BYTES / SECTOR_BYTES as u64;
/// Sectors of a GiB.
const GIB_SECTORS: u64 = (1 << 30) / SECTOR_BYTES as u64;

/// The memory of flash stays below 1 GiB for every profile that is accepted ([bounded-memory]).
const _: () = {
    let units = SIMULATED_MAX / UNIT_BYTES;
    let places = units * (100 + SPARE_MAX as u64) / 100;
    // For each unit its place and a bit; for each place its unit, and whether its row is old if it
    // has one place; for each block its valid units, its neighbours and its age, and its number
    // while it is free.
    let map = units * 4 + units / 8 + places * (4 + 1) + BLOCKS_MAX * (4 + 8 + 8 + 4);
    // For each die, the ends of a list for each number of valid units in a block. A die has five
    // blocks at least.
    let lists = places / 5 * 8;
    // A page of the map; and what the buffer keeps of each of its units, and of each program of a
    // step of a flush. Its lists grow by doubling.
    let memory = MAP_MEMORY_MAX / UNIT_BYTES * 8;
    let buffer = (BUFFER_MAX + FLUSH_MAP_MAX) / UNIT_BYTES * Buffer::PER_UNIT_BYTES * 2;
    assert!(map + lists + memory + buffer < 1 << 30);
};

/// The event at which a die has done something, with its number; below it lie commands.
const DIE: u32 = 1 << 28;
/// The event at which a channel has carried something, with its number.
const CHANNEL: u32 = 1 << 29;
/// The event at which the host may have been idle for long enough.
const IDLE: u32 = 1 << 30;

/// The medium.
#[derive(Debug)]
pub(crate) struct Flash {
    profile: FlashProfile,
    /// Units that the host sees.
    capacity: u64,
    map: Map,
    map_memory: Option<MapMemory>,
    dies: Vec<Die>,
    channels: Vec<Channel<Transfer>>,
    collections: Vec<Collection>,
    buffer: Buffer,
    ahead: ReadAhead,
    slc: SlcCache,
    /// The die of the next program.
    next_die: usize,
    commands: Vec<Command>,
    /// Writes that wait for the buffer, and what waits behind them; the first is a write.
    waiting: VecDeque<Waiting>,
    /// Data that is to be fetched, for which the buffer keeps room.
    wanted: VecDeque<Wanted>,
    flushes: Flushes,
    /// Pages of the map that are read for writes.
    replaced: u64,
    /// When the last discard ends.
    discarded_at: Instant,
    /// When the host last asked for something, and whether an event will look at that.
    host_at: Instant,
    looking: bool,
    ended: VecDeque<CommandId>,
    counts: Counts,
    /// Time of the channels.
    carried: WorkTimes,
    buffer_full: Lasting,
    /// For how long there were discards that had not ended.
    discarding: Lasting,
    /// Draws the times of reads, and retries.
    prng: Prng,
}

/// A command that has begun.
#[derive(Clone, Debug, Default)]
struct Command {
    /// Its parts that have not ended. It ends with the last.
    parts: u32,
    /// The units that a read asks for, or those of a write that are on their way.
    units: Range<u64>,
    /// Pages of the map that a read waits for.
    missed: u32,
    /// The sectors of a write that are on their way.
    sectors: Range<u64>,
    /// Whether a write whose data is on its way must be durable when it ends.
    fua: bool,
}

/// A command that has not begun, because a write finds no room in the buffer.
#[derive(Clone, Debug)]
struct Waiting {
    id: CommandId,
    access: Access,
    /// The units of a write that the buffer does not have, or keeps no room for.
    units: Range<u64>,
    /// Whether the data is in the host's memory, and must be fetched.
    is_far: bool,
}

/// What a channel carries.
#[derive(Clone, Copy, Debug)]
enum Transfer {
    /// Data of a program to this die.
    In(usize),
    /// Data that was read from this die.
    Out(usize, PageRead),
}

impl Flash {
    /// Returns idle flash by `profile` for `capacity` sectors; `prng` draws what was overwritten
    /// before, times of reads, and retries.
    pub(super) fn new(profile: FlashProfile, capacity: u64, mut prng: Prng) -> Self {
        let mut map = Map::new(&profile);
        let mut collections: Vec<_> =
            (0..profile.all_dies()).map(|die| Collection::of_die(die, &profile)).collect();
        let dies = collections.len();
        debug_assert!(dies.is_multiple_of(profile.channels.into()), "channels have as many dies");
        precondition::precondition(&profile, &mut map, &mut collections, &mut prng);
        Self {
            capacity: capacity / UNIT_SECTORS,
            map_memory: profile.map_memory.map(MapMemory::new),
            dies: (0..dies).map(|_| Die::new(profile.registers)).collect(),
            channels: (0..profile.channels).map(|_| Channel::new()).collect(),
            buffer: Buffer::new(profile.buffer / UNIT_BYTES, map.row_units()),
            ahead: ReadAhead::new(profile.read_ahead / UNIT_BYTES, profile.read_streams.into()),
            slc: SlcCache::new(profile.slc / UNIT_BYTES, map.row_units() as u64, dies),
            map,
            collections,
            next_die: 0,
            commands: Vec::new(),
            waiting: VecDeque::new(),
            wanted: VecDeque::new(),
            flushes: Flushes::default(),
            replaced: 0,
            discarded_at: Instant::ZERO,
            host_at: Instant::ZERO,
            looking: false,
            ended: VecDeque::new(),
            counts: Counts::default(),
            carried: WorkTimes::NONE,
            buffer_full: Lasting::new(),
            discarding: Lasting::new(),
            prng,
            profile,
        }
    }

    /// Returns the entry of `unit` in the map.
    fn entry(&self, unit: u64) -> u32 {
        number(unit % self.map.units())
    }

    /// Begins to read the units of `id`, or the pages of the map which they need.
    fn read(&mut self, id: CommandId, now: Instant, events: &mut MediumEvents) {
        let units = self.commands[id.0 as usize].units.clone();
        let mut missed = 0;
        for page in MapMemory::pages(&units) {
            if self.must_read(page) {
                missed += 1;
                self.read_map(page, Reader::Map(id), now, events);
            }
        }
        if missed == 0 {
            return self.read_data(id, now, events);
        }
        let command = &mut self.commands[id.0 as usize];
        command.missed = missed;
        command.parts += 1;
    }

    /// Uses `page` of the map. Returns whether it must be read from flash first.
    fn must_read(&mut self, page: u64) -> bool {
        self.map_memory.as_mut().is_some_and(|memory| memory.misses(page))
    }

    /// Begins to read a page of the map.
    fn read_map(&mut self, page: u64, reader: Reader, now: Instant, events: &mut MediumEvents) {
        let die = usize::try_from(page % self.dies.len() as u64).expect("dies should be few");
        self.read_page(die, PageRead::new(reader, 1, now), now, events);
    }

    /// Begins to read the page of the map with the place of data that a write of `unit` replaces,
    /// if it is not in memory: what was there must be known to be invalid.
    fn read_replaced(&mut self, unit: u64, now: Instant, events: &mut MediumEvents) {
        let page = MapMemory::pages(&(unit..unit + 1)).start;
        if self.must_read(page) {
            self.replaced += 1;
            self.read_map(page, Reader::Replaced, now, events);
        }
    }

    /// Notes whether writes wait for room in the buffer, which then counts as full, and whether a
    /// discard is under way.
    fn note_use(&mut self, now: Instant) {
        let waits = !self.waiting.is_empty() && !self.buffer.has_room(1);
        self.buffer_full.note(waits, self.buffer.has_program(), now);
        self.discarding.note(self.discarded_at > now, false, now);
    }

    /// How many more units may wait for their page of the map ([bounded-map-reads]).
    const fn knowable(&self) -> u64 {
        self.buffer.capacity().saturating_sub(self.replaced + self.buffer.promised())
    }

    /// Notes that a page of the map is there, and reads the units of `id` after the last one.
    fn read_mapped(&mut self, id: CommandId, now: Instant, events: &mut MediumEvents) {
        let command = &mut self.commands[id.0 as usize];
        debug_assert!(command.missed > 0 && command.parts > 0, "{command:?} should miss a page");
        command.missed -= 1;
        if command.missed == 0 {
            self.read_data(id, now, events);
            self.end_part(id);
        }
    }

    /// Begins to read the units of `id`. Units in one row are read together.
    fn read_data(&mut self, id: CommandId, now: Instant, events: &mut MediumEvents) {
        let mut left = self.commands[id.0 as usize].units.clone();
        while let Some((row, units, count)) = self.next_group(&mut left) {
            let found = self.ahead.find(row, &units, id);
            self.counts.ahead_used += u64::from(found.is_some());
            if found != Some(false) {
                self.commands[id.0 as usize].parts += 1;
            }
            if found.is_none() {
                let row = (row, units.start / self.map.units());
                self.read_group(Reader::Command(id), row, count, now, events);
            }
        }
    }

    /// Takes the first of the units that are left which lie in flash, with those behind it up to
    /// the first one in another row. Returns the row, these units, and how many of them it has.
    fn next_group(&self, left: &mut Range<u64>) -> Option<(u32, Range<u64>, u32)> {
        let first = left.find_map(|unit| Some((self.row_in_flash(unit)?, unit)));
        let (row, first) = first?;
        let mut count = 1;
        while left.start < left.end {
            let other = self.row_in_flash(left.start);
            if other.is_some_and(|other| other != row) {
                break;
            }
            count += u32::from(other.is_some());
            left.start += 1;
        }
        Some((row, first..left.start, count))
    }

    /// Returns the row of `unit`, unless its data is in the buffer or nowhere.
    fn row_in_flash(&self, unit: u64) -> Option<u32> {
        let row = self.map.row_of(self.entry(unit))?;
        let die = self.map.die_of_row(row);
        (!self.dies[die].programs(row)).then_some(row)
    }

    /// Reads ahead of a read of `units`, if it continues another one. Pages of the map are not read
    /// ahead: it ends with the page that the read has used.
    fn read_ahead(&mut self, units: &Range<u64>, now: Instant, events: &mut MediumEvents) {
        let Some(mut left) = self.ahead.follow(units) else { return };
        left.end = left.end.min(self.capacity);
        if self.map_memory.is_some() {
            left.end = left.end.min(MapMemory::end_of_page(units.end - 1));
        }
        while let Some((row, units, count)) = self.next_group(&mut left) {
            let of_map = (row, units.start / self.map.units());
            let number = self.ahead.add(row, units);
            self.read_group(Reader::Ahead(number), of_map, count, now, events);
        }
    }

    fn read_group(
        &mut self,
        reader: Reader,
        row: (u32, u64),
        units: u32,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        let mut read = PageRead::new(reader, units, now);
        read.row = Some(row);
        if let Some(retries) = self.profile.retries.filter(|_| self.map.is_old(row.0)) {
            read.retries = retries.draw_number(&mut self.prng);
        }
        self.read_page(self.map.die_of_row(row.0), read, now, events);
    }

    /// Lets waiting writes into the buffer while it has room, and begins the commands that wait
    /// behind them.
    fn admit(&mut self, now: Instant, events: &mut MediumEvents) {
        while let Some(mut next) = self.waiting.pop_front() {
            if next.access.op != Op::Write {
                self.start(next.id, next.access, now, events);
                continue;
            }
            if next.is_far {
                self.want(&mut next);
            }
            while !next.units.is_empty() && self.buffer.has_room(1) && self.knowable() > 0 {
                let unit = next.units.start;
                next.units.start += 1;
                self.take_in(unit, now, events);
            }
            if !next.units.is_empty() {
                return self.waiting.push_front(next);
            }
            if !next.is_far {
                self.end_write(next.id, next.access.fua, now, events);
            }
            self.begin_behind(next.access, now, events);
        }
    }

    /// Keeps room for as many units of `write` as there is, and asks for their data.
    fn want(&mut self, write: &mut Waiting) {
        let left = write.units.end - write.units.start;
        let units = left.min(self.buffer.room()).min(self.knowable());
        if units == 0 {
            return;
        }
        self.buffer.promise(units);
        let Access { start, sectors, .. } = write.access;
        // The first and the last unit may be parts.
        let from = start.max(write.units.start * UNIT_SECTORS);
        write.units.start += units;
        let to = (start + u64::from(sectors)).min(write.units.start * UNIT_SECTORS);
        let sectors = u32::try_from(to - from).expect("a part of a command is no longer than it");
        self.wanted.push_back(Wanted { id: write.id, sectors });
    }

    /// Puts the data of `unit` into the buffer, which has room for it.
    fn take_in(&mut self, unit: u64, now: Instant, events: &mut MediumEvents) {
        let entry = self.entry(unit);
        self.counts.written += 1;
        if self.map.buffer(entry) {
            self.counts.combined += 1;
            return;
        }
        self.read_replaced(unit, now, events);
        if self.buffer.put(entry) {
            self.dispatch(now, events);
        }
    }

    /// Ends the write `id`, whose data is in the buffer.
    fn end_write(&mut self, id: CommandId, fua: bool, now: Instant, events: &mut MediumEvents) {
        events.push_back((now + self.profile.buffered, MediumEvent(id.0)));
        if fua {
            self.flush(id, now, events);
        }
    }

    /// Begins the command `id`. The data of a write is there unless it `is_far`.
    fn enter(
        &mut self,
        id: CommandId,
        mut access: Access,
        is_far: bool,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        // Without a cache that the host flushes, a write is durable when it ends.
        access.fua |= !self.profile.has_write_cache();
        debug_assert!(id.0 < DIE, "a command's number must not be that of another event");
        self.host_at = now;
        self.watch(now, events);
        let end = access.start + u64::from(access.sectors);
        let units = access.start / UNIT_SECTORS..end.div_ceil(UNIT_SECTORS);
        let slot = id.0 as usize;
        self.commands.resize(self.commands.len().max(slot + 1), Command::default());
        debug_assert_eq!(self.commands[slot].parts, 0, "{id:?} has not ended");
        // The first part is what a command takes without flash.
        let sectors = if is_far { access.start..end } else { 0..0 };
        let fua = access.fua;
        self.commands[slot] = Command { parts: 1, units: units.clone(), missed: 0, sectors, fua };
        if access.op == Op::Write {
            let room = self.buffer.has_room(units.end - units.start);
            self.counts.stalls += u64::from(!room || !self.waiting.is_empty());
            self.waiting.push_back(Waiting { id, access, units, is_far });
            self.admit(now, events);
        } else if self.is_held(access) {
            self.counts.held_reads += u64::from(access.op == Op::Read);
            self.waiting.push_back(Waiting { id, access, units, is_far });
        } else {
            self.start(id, access, now, events);
        }
        self.note_use(now);
    }

    /// Whether `access` would wait behind a write that waits, as the profile's `full-buffer` says.
    fn is_held(&self, access: Access) -> bool {
        match self.profile.full_buffer {
            FullBuffer::Writes => false,
            FullBuffer::Queue => self.waiting.iter().any(|of| of.access.queue == access.queue),
            FullBuffer::Commands => !self.waiting.is_empty(),
        }
    }

    /// Begins what waited behind `write` alone, if each hardware queue waits by itself.
    fn begin_behind(&mut self, write: Access, now: Instant, events: &mut MediumEvents) {
        if self.profile.full_buffer != FullBuffer::Queue {
            return;
        }
        let is_of_queue = |of: &Waiting| of.access.queue == write.queue;
        while let Some(at) = self.waiting.iter().position(is_of_queue)
            && self.waiting[at].access.op != Op::Write
        {
            let Waiting { id, access, .. } = self.waiting.remove(at).expect("it is there");
            self.start(id, access, now, events);
        }
    }

    /// Begins `id`, which is no write.
    fn start(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        match access.op {
            Op::Read => {
                events.push_back((now + self.profile.buffered, MediumEvent(id.0)));
                self.read(id, now, events);
                let units = self.commands[id.0 as usize].units.clone();
                self.read_ahead(&units, now, events);
            }
            Op::Discard | Op::WriteZeroes => {
                let end = access.start + u64::from(access.sectors);
                // Only whole units lose their data.
                self.discard(access.start.div_ceil(UNIT_SECTORS)..end / UNIT_SECTORS);
                let end = self.end_of_discard(access.sectors, now);
                events.push_back((end, MediumEvent(id.0)));
            }
            _ if self.profile.protected && self.profile.protected_flush > Duration::ZERO => {
                events.push_back((now + self.profile.protected_flush, MediumEvent(id.0)));
            }
            _ => {
                self.flush(id, now, events);
                self.end_part(id);
            }
        }
    }

    /// Lets `id` wait until all data in the buffer and then its places in the map are in flash,
    /// unless the buffer survives a loss of power: then it takes a time of its own.
    fn flush(&mut self, id: CommandId, now: Instant, events: &mut MediumEvents) {
        if self.profile.protected {
            return;
        }
        if self.buffer.cut() {
            self.dispatch(now, events);
        }
        self.commands[id.0 as usize].parts += 1;
        if !self.buffer.wait(id) {
            self.persist_map(id, now, events);
        }
    }

    /// Lets `id`, a flush whose data is in flash, wait until the map is too.
    fn persist_map(&mut self, id: CommandId, now: Instant, events: &mut MediumEvents) {
        if self.profile.flush_steps == 0 || !self.flushes.wait(id) {
            return self.end_part(id);
        }
        self.begin_round(now, events);
    }

    /// Begins a round of flushes if some wait for one and none is under way.
    fn begin_round(&mut self, now: Instant, events: &mut MediumEvents) {
        if self.flushes.begin(self.profile.flush_steps) {
            self.begin_step(now, events);
        }
    }

    /// Begins the next step of a round of flushes.
    fn begin_step(&mut self, now: Instant, events: &mut MediumEvents) {
        let programs = self.buffer.put_map(self.profile.flush_units());
        self.flushes.begin_step(programs);
        self.dispatch(now, events);
    }

    /// Ends a program of the map.
    fn end_map_program(&mut self, now: Instant, events: &mut MediumEvents) {
        match self.flushes.end_program() {
            After::Programs => {}
            After::Step => self.begin_step(now, events),
            After::Round(flushed) => {
                flushed.into_iter().for_each(|id| self.end_part(id));
                self.begin_round(now, events);
            }
        }
    }

    /// Forgets the data of `units`: of each entry of the map whose one unit they have.
    fn discard(&mut self, units: Range<u64>) {
        let capacity = self.capacity;
        let simulated = self.map.units();
        let length = units.end.saturating_sub(units.start).min(simulated);
        let start = if length < simulated { units.start % simulated } else { 0 };
        let end = start + length;
        for entries in [start..end.min(simulated), 0..end.saturating_sub(simulated)] {
            let entries = number(entries.start)..number(entries.end);
            self.map.discard(entries, |entry| {
                units.contains(&representative(entry, capacity, simulated))
            });
        }
    }

    /// Returns when a discard of `sectors` that arrives now has ended: after the ones before it.
    fn end_of_discard(&mut self, sectors: u32, now: Instant) -> Instant {
        let per_gib = u128::from(self.profile.discard_per_gib.as_ns());
        let length = per_gib * u128::from(sectors) / u128::from(GIB_SECTORS);
        let length = Duration::from_ns(u64::try_from(length).unwrap_or(u64::MAX));
        self.discarded_at = self.discarded_at.max(now) + self.profile.discard + length;
        self.discarded_at
    }

    /// Returns from when on the host will have been idle for long enough.
    fn idle_at(&self) -> Instant {
        self.host_at + self.profile.slc_idle
    }

    /// Whether the host has been idle for long enough.
    fn is_idle(&self, now: Instant) -> bool {
        self.idle_at() <= now && self.waiting.is_empty() && !self.buffer.has_program()
    }

    /// Sees to it that an event looks whether the host is idle, while there is something to fold.
    fn watch(&mut self, now: Instant, events: &mut MediumEvents) {
        if !self.slc.is_empty() && !core::mem::replace(&mut self.looking, true) {
            // The buffer may go on for longer than that after the host's last command.
            events.push_back((self.idle_at().max(now), MediumEvent(IDLE)));
        }
    }

    /// Lets idle dies fold if the host has been idle, and looks again later if it was not.
    fn look(&mut self, now: Instant, events: &mut MediumEvents) {
        debug_assert!(self.looking, "an event should look whether the host is idle");
        self.looking = false;
        if self.idle_at() > now {
            return self.watch(now, events);
        }
        (0..self.dies.len()).for_each(|die| self.serve(die, now, events));
    }

    /// Ends a part of `id`.
    fn end_part(&mut self, id: CommandId) {
        let command = &mut self.commands[id.0 as usize];
        debug_assert!(command.parts > 0, "command {id:?} has ended");
        command.parts -= 1;
        if command.parts == 0 {
            self.ended.push_back(id);
        }
    }
}

/// Returns the unit that represents all units of `entry` of a map of `simulated` entries: of a
/// drive of 1000 units and a map of 100, one of 5, 105, ... 905 for entry 5.
fn representative(entry: u32, capacity: u64, simulated: u64) -> u64 {
    let entry = u64::from(entry);
    let sharing = capacity.saturating_sub(entry).div_ceil(simulated).max(1);
    let hash = entry.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    entry + hash % sharing * simulated
}

/// Returns the number of a unit of the map.
fn number(unit: u64) -> u32 {
    u32::try_from(unit).expect("a unit of the map should be a u32")
}

impl Medium for Flash {
    fn begin(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        self.enter(id, access, false, now, events);
    }

    fn fetches(&self) -> bool {
        true
    }

    fn announce(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        debug_assert_eq!(access.op, Op::Write, "only writes have data to fetch");
        self.enter(id, access, true, now, events);
    }

    fn next_wanted(&mut self) -> Option<Wanted> {
        self.wanted.pop_front()
    }

    fn arrived(&mut self, wanted: Wanted, now: Instant, events: &mut MediumEvents) {
        let Wanted { id, sectors } = wanted;
        let command = &mut self.commands[id.0 as usize];
        command.sectors.start += u64::from(sectors);
        debug_assert!(command.sectors.start <= command.sectors.end, "{wanted:?} is too much");
        let is_whole = command.sectors.is_empty();
        let fua = command.fua;
        // Of a unit that is on its way in two pieces, the second completes it.
        let to = if is_whole { command.units.end } else { command.sectors.start / UNIT_SECTORS };
        let units = command.units.start..to;
        command.units.start = to;
        for unit in units {
            self.buffer.arrive();
            self.take_in(unit, now, events);
        }
        if is_whole {
            self.end_write(id, fua, now, events);
        }
        // What replaced data in the buffer gives its room back.
        self.admit(now, events);
        self.note_use(now);
    }

    fn event(&mut self, event: MediumEvent, now: Instant, events: &mut MediumEvents) {
        match event.0 {
            IDLE.. => self.look(now, events),
            CHANNEL.. => self.end_on_channel((event.0 - CHANNEL) as usize, now, events),
            DIE.. => self.end_on_die((event.0 - DIE) as usize, now, events),
            id => self.end_part(CommandId(id)),
        }
        self.note_use(now);
    }

    fn next_ended(&mut self) -> Option<CommandId> {
        self.ended.pop_front()
    }

    fn counts(&self) -> MediumCounts {
        self.counts.named()
    }

    fn used(&self) -> MediumUse {
        let units = u32::try_from(self.dies.len()).expect("dies should be at most 4096");
        MediumUse { used: self.counts.used, units }
    }

    fn load(&self) -> MediumLoad {
        debug_assert!(!self.dies.is_empty(), "flash should have a die");
        let mut work = WorkTimes::NONE;
        self.dies.iter().for_each(|die| work.merge(die.work()));
        let [channels, dies] = [self.channels.len(), self.dies.len()]
            .map(|units| u32::try_from(units).expect("dies should be at most 4096"));
        MediumLoad {
            parts: vec![
                PartsLoad::of_work(Parts::Channels, channels, self.carried),
                PartsLoad::of_work(Parts::Dies, dies, work),
                PartsLoad::of_time(Parts::Discards, 1, self.discarding.time()),
            ],
            buffer_full: self.buffer_full.time(),
            waited: self.counts.command_wait,
            written: Some(self.counts.written()),
        }
    }

    fn forget(&mut self) {
        self.counts = Counts::default();
        self.carried = WorkTimes::NONE;
        self.buffer_full.forget();
        self.discarding.forget();
        self.dies.iter_mut().for_each(Die::forget);
    }
}
