//! The work of dies and channels: its order, and its consequences.

use super::collect::Step;
use super::die::{Operation, PageRead, Reader, Writer};
use super::slc::FoldReason;
use super::{CHANNEL, DIE, Flash, Transfer};
use crate::flash::profile::DieOrder;
use crate::load::Work;
use crate::medium::{MediumEvent, MediumEvents};
use blockyard::time::{Duration, Instant};

impl Flash {
    /// Asks for a page read of `die`.
    pub(super) fn read_page(
        &mut self,
        die: usize,
        mut read: PageRead,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        if self.profile.order == DieOrder::Arrival {
            let given = u64::from(self.profile.queued) * self.dies.len() as u64;
            read.before = self.buffer.number_after(given);
        }
        if self.dies[die].joins(&read, self.buffer.has_program()) {
            return self.carry_joined(die, read, now, events);
        }
        self.dies[die].ask(read);
        self.serve_read(die, now, events);
    }

    /// Lets the channel carry `read`, of a row that is in a register of `die` for another read.
    fn carry_joined(
        &mut self,
        die: usize,
        read: PageRead,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        self.counts.joined += 1;
        self.carry(die, PageRead { retries: 0, ..read }, now, events);
    }

    /// Lets the channel carry what `read` has read from `die`.
    fn carry(&mut self, die: usize, read: PageRead, now: Instant, events: &mut MediumEvents) {
        let work = Operation::Read(read).work();
        self.transfer(die, Transfer::Out(die, read), work, read.units.into(), now, events);
    }

    /// Lets `die` begin the next read at once if it is idle or can suspend what it does.
    fn serve_read(&mut self, die: usize, now: Instant, events: &mut MediumEvents) {
        if self.dies[die].is_idle() {
            return self.serve(die, now, events);
        }
        if let Some(cost) = self.profile.suspend
            && self.dies[die].suspend(cost, &self.profile, now)
        {
            self.counts.suspends += 1;
            self.begin_read(die, cost, now, events);
        }
    }

    /// Lets an idle `die` begin what it does next.
    pub(super) fn serve(&mut self, die: usize, now: Instant, events: &mut MediumEvents) {
        if self.dies[die].is_idle()
            && !self.begin_read(die, Duration::ZERO, now, events)
            && !self.begin_work(die, now, events)
            && !self.keeps_place(die)
            && let Some(read) = self.dies[die].idle_read()
        {
            self.sense(die, read, Duration::ZERO, now, events);
        }
    }

    /// Begins the next read of `die` after `cost`, unless other work must go first.
    fn begin_read(
        &mut self,
        die: usize,
        cost: Duration,
        now: Instant,
        events: &mut MediumEvents,
    ) -> bool {
        let due = self.dies[die].holds_work() || self.has_due_program(die);
        let read = self.dies[die].next_read(due, &self.profile);
        read.is_some_and(|read| {
            self.sense(die, read, cost, now, events);
            true
        })
    }

    /// Whether a program of the buffer waits that the next read of `die` may have to let pass: any,
    /// or in the order of arrival one that was ready before it.
    fn has_due_program(&self, die: usize) -> bool {
        match self.profile.order {
            DieOrder::ReadsFirst | DieOrder::Shares => self.buffer.has_program(),
            DieOrder::Arrival => {
                let first = self.dies[die].first_read();
                first.is_some_and(|read| self.buffer.has_program_before(read.before))
            }
        }
    }

    /// Whether reads of an idle `die` let it wait for data of its own that is on the channel, which
    /// the programs before them need moved. Reads do not slip into the gaps of that collection.
    fn keeps_place(&self, die: usize) -> bool {
        self.profile.order == DieOrder::Arrival
            && self.has_due_program(die)
            && (self.collections[die].is_moving() || self.slc.is_reading(die))
    }

    fn sense(
        &mut self,
        die: usize,
        read: PageRead,
        cost: Duration,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        let time = match &self.profile.read_spread {
            Some(spread) => spread.draw(self.profile.read, &mut self.prng),
            None => self.profile.read,
        };
        self.counts.used += cost + time;
        match read.reader {
            Reader::Command(_) => self.counts.reads += 1,
            Reader::Ahead(_) => self.counts.ahead += 1,
            Reader::Map(_) | Reader::Replaced => self.counts.map_reads += 1,
            Reader::Collection | Reader::Fold(_) => {}
        }
        debug_assert!(read.asked_at <= now, "{read:?} begins before it was asked for");
        let waited = (now + cost).since(read.asked_at);
        self.counts.read_wait += waited;
        if matches!(read.reader, Reader::Command(_) | Reader::Map(_)) {
            self.counts.command_wait += waited;
        }
        let end = self.dies[die].begin(Operation::Read(read), cost + time, now);
        events.push_back((end, die_event(die)));
    }

    /// Lets `die` go on with or begin other work than reads of commands, and returns whether there
    /// was any. It collects when no program of the buffer can go to it: because none waits, or
    /// because it has no free block.
    fn begin_work(&mut self, die: usize, now: Instant, events: &mut MediumEvents) -> bool {
        if let Some(end) = self.dies[die].resume(now) {
            events.push_back((end, die_event(die)));
            return true;
        }
        self.begin_map_program(die, now, events)
            || self.begin_fold(die, now, events)
            || self.begin_program(die, now, events)
            || self.begin_collection(die, now, events)
    }

    /// Continues to fold the cache of single-level cells on `die`, or begins to: the host is idle,
    /// or the cache is full.
    fn begin_fold(&mut self, die: usize, now: Instant, events: &mut MediumEvents) -> bool {
        if let Some((units, reason)) = self.slc.take_ready(die) {
            self.counts.folded += u64::from(units);
            if reason == FoldReason::FullCache {
                self.counts.forced_folds += u64::from(units);
            }
            let operation = Operation::Program(Writer::Fold(reason), None);
            self.load(die, operation, units.into(), self.profile.program, now, events);
            return true;
        }
        let Some(reason) = self.fold_reason(now) else { return false };
        let units = self.slc.begin_fold(die, reason);
        units.is_some_and(|units| {
            let read = PageRead::new(Reader::Fold(reason), units, now);
            self.sense(die, read, Duration::ZERO, now, events);
            true
        })
    }

    /// Returns why a row of the cache of single-level cells should be folded at `now`, if one
    /// should.
    fn fold_reason(&self, now: Instant) -> Option<FoldReason> {
        if self.must_fold() && self.buffer.has_program() {
            return Some(FoldReason::FullCache);
        }
        self.is_idle(now).then_some(FoldReason::IdleHost)
    }

    fn must_fold(&self) -> bool {
        self.slc.is_full() && !self.profile.slc_bypass
    }

    /// Begins the next program of the buffer on `die` if it has room.
    fn begin_program(&mut self, die: usize, now: Instant, events: &mut MediumEvents) -> bool {
        let short = self.map.is_short(die);
        let owes = short && self.collections[die].owes();
        if !self.map.has_room(die) || owes || self.must_fold() {
            return false;
        }
        let Some(program) = self.buffer.take_program() else { return false };
        if short {
            self.collections[die].owe(&self.map);
        }
        let units = program.units.len() as u64;
        let row = self.map.program(die, &program.units);
        let single = self.slc.takes(units);
        self.counts.slc_programs += u64::from(single);
        let work = self.slc.work(single);
        self.counts.past_cache += if work == Work::PastCache { units } else { 0 };
        self.watch(now, events);
        let time = if single { self.profile.slc_program } else { self.profile.program };
        let size = u32::try_from(units).expect("a program should be small");
        let writer = Writer::Buffer(program.number, size, work);
        let operation = Operation::Program(writer, Some(row));
        self.load(die, operation, units, time, now, events);
        true
    }

    /// Begins the next program of the buffer on `die` if it is one of the map, for a flush. It
    /// needs no room on the die: the blocks of the map are apart.
    fn begin_map_program(&mut self, die: usize, now: Instant, events: &mut MediumEvents) -> bool {
        let Some((number, units)) = self.buffer.take_map_program() else { return false };
        self.counts.map_writes += units;
        let operation = Operation::Program(Writer::Map(number), None);
        self.load(die, operation, units, self.profile.slc_program, now, events);
        true
    }

    /// Begins the next step of collection on `die`.
    fn begin_collection(&mut self, die: usize, now: Instant, events: &mut MediumEvents) -> bool {
        match self.collections[die].next_step(&mut self.map, die) {
            None => return false,
            Some(Step::Read(units)) => {
                let read = PageRead::new(Reader::Collection, units, now);
                self.sense(die, read, Duration::ZERO, now, events);
            }
            Some(Step::Program(units)) => {
                let (row, placed) = self.map.program_moved(die, &units);
                self.counts.collected += placed;
                let operation = Operation::Program(Writer::Collection, Some(row));
                let time = self.profile.program;
                self.load(die, operation, units.len() as u64, time, now, events);
            }
            Some(Step::Erase(block)) => {
                let time = self.collections[die].time_of_erase(&self.profile);
                self.counts.used += time;
                let end =
                    self.dies[die].begin_fresh(Operation::Erase(block), time, &self.profile, now);
                events.push_back((end, die_event(die)));
            }
        }
        true
    }

    /// Carries `units`, a row at most, to `die` for `operation`, a program that takes `time` then
    /// ([row-at-once]).
    fn load(
        &mut self,
        die: usize,
        operation: Operation,
        units: u64,
        time: Duration,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        debug_assert!(matches!(operation, Operation::Program(..)), "only a program loads data");
        debug_assert!(units <= self.map.row_units() as u64, "[row-at-once] {units} units");
        self.counts.programs += 1;
        self.counts.padded += self.map.row_units() as u64 - units;
        self.counts.used += time;
        self.dies[die].load(operation, time, &self.profile, now);
        self.transfer(die, Transfer::In(die), operation.work(), units, now, events);
    }

    fn transfer(
        &mut self,
        die: usize,
        transfer: Transfer,
        work: Work,
        units: u64,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        debug_assert!(units > 0, "a transfer for die {die} carries no data");
        let channel = die % self.channels.len();
        let time = Duration::from_ns(self.profile.transfer.as_ns().saturating_mul(units));
        self.carried.add(work, time);
        if let Some(end) = self.channels[channel].ask(transfer, time, now) {
            events.push_back((end, channel_event(channel)));
        }
    }

    /// Ends what `die` does, unless that was suspended.
    pub(super) fn end_on_die(&mut self, die: usize, now: Instant, events: &mut MediumEvents) {
        match self.dies[die].end(now) {
            None => return,
            Some(Operation::Read(read)) => {
                self.dies[die].fill(&read);
                self.carry(die, read, now, events);
                while let Some(joined) = self.dies[die].next_joined() {
                    self.carry_joined(die, joined, now, events);
                }
            }
            Some(Operation::Program(Writer::Collection | Writer::Fold(_), _)) => {}
            Some(Operation::Program(Writer::Buffer(number, units, _), _)) => {
                self.flushes.soil();
                self.end_program(number, units, now, events);
                self.admit(now, events);
            }
            Some(Operation::Program(Writer::Map(number), _)) => {
                self.end_program(number, 0, now, events);
                self.end_map_program(now, events);
            }
            Some(Operation::Erase(block)) => {
                self.counts.erases += 1;
                self.map.erase(die, block);
            }
        }
        self.serve(die, now, events);
    }

    /// Ends the program `number` of the buffer, which had `units` of data, and the waits of flushes
    /// for it.
    fn end_program(&mut self, number: u64, units: u32, now: Instant, events: &mut MediumEvents) {
        self.buffer.end(number, units);
        while let Some(id) = self.buffer.next_flushed() {
            self.persist_map(id, now, events);
        }
    }

    /// Ends the transfer of `channel` that is under way.
    pub(super) fn end_on_channel(
        &mut self,
        channel: usize,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        let (transfer, next) = self.channels[channel].end(now);
        events.extend(next.map(|end| (end, channel_event(channel))));
        match transfer {
            Transfer::In(die) => self.dies[die].loaded(now),
            Transfer::Out(die, mut read) if read.retries > 0 => {
                self.dies[die].drain();
                self.counts.retries += 1;
                read.retries -= 1;
                read.asked_at = now;
                self.dies[die].ask_first(read);
                return self.serve_read(die, now, events);
            }
            Transfer::Out(die, read) => {
                self.dies[die].drain();
                match read.reader {
                    Reader::Command(id) => self.end_part(id),
                    Reader::Ahead(number) => {
                        let waiting = self.ahead.arrived(number);
                        waiting.into_iter().for_each(|id| self.end_part(id));
                    }
                    Reader::Map(id) => self.read_mapped(id, now, events),
                    Reader::Replaced => {
                        debug_assert!(self.replaced > 0, "no write asked for a page of the map");
                        self.replaced -= 1;
                        self.admit(now, events);
                    }
                    Reader::Collection => self.collections[die].moved(),
                    Reader::Fold(_) => self.slc.read(die),
                }
            }
        }
        let (Transfer::In(die) | Transfer::Out(die, _)) = transfer;
        self.serve(die, now, events);
    }

    /// Lets an idle die with room take the next program of the buffer, the dies in turn.
    pub(super) fn dispatch(&mut self, now: Instant, events: &mut MediumEvents) {
        debug_assert!(self.next_die < self.dies.len(), "die {} is next", self.next_die);
        let dies = self.dies.len();
        for nth in 0..dies {
            let die = (self.next_die + nth) % dies;
            if self.dies[die].is_idle() {
                self.serve(die, now, events);
            }
            if !self.buffer.has_program() {
                self.next_die = (die + 1) % dies;
                return;
            }
        }
    }
}

pub(super) fn die_event(die: usize) -> MediumEvent {
    MediumEvent(DIE + u32::try_from(die).expect("dies should be at most 4096"))
}

fn channel_event(channel: usize) -> MediumEvent {
    MediumEvent(CHANNEL + u32::try_from(channel).expect("channels should be at most 64"))
}
