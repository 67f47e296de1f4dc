//! Programming in a card, and the busy time that it causes.

use super::busy::Work;
use super::fate::When;
use super::transfer::Transfer;
use super::{Card, one_in};
use crate::mmc::profile::Gather;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use blockyard_mmc::command::Direction;
use blockyard_mmc::command::status::Status;

impl Card {
    /// Passes the received part of a page on to be programmed, at `at`.
    pub(super) fn page_complete(&mut self, transfer: &mut Transfer, at: Instant) {
        let (whole, missing) = core::mem::take(&mut transfer.page);
        let sectors = whole - missing;
        if sectors == 0 {
            return;
        }
        let bytes = u64::from(sectors) * u64::from(SECTOR_BYTES);
        let first = self.unit_sector(transfer.sector - u64::from(sectors));
        let mut cost = self.programming(transfer, first, sectors);
        if let Some(units) = &mut self.units {
            cost += units.write(first, u64::from(sectors));
        }
        let fails = match transfer.stays_open {
            true => core::mem::take(&mut transfer.page_fails),
            false => self.program_fails(),
        };
        if fails {
            match &transfer.packed {
                None => self.errors |= Status::ERROR,
                Some(packed) => self.background.packed_failed(packed.entry),
            }
        }
        self.engine.push(at, bytes, cost);
        let when = self.when_certain(transfer);
        if transfer.stays_open {
            self.completed_open(transfer);
        } else if let Some(fate) = &mut self.fate {
            let lie = transfer.sector - u64::from(sectors)..transfer.sector;
            match fails {
                true => fate.fails(lie),
                false => fate.received(transfer.handed_on, lie, self.engine.last_page(), when),
            }
        }
        self.memory_time += cost;
        self.is_soiled |= self.cache_on() && !transfer.durable;
        self.background.add(bytes);
        transfer.handed_on += sectors;
    }

    /// Draws whether the next page cannot be programmed.
    pub(super) fn program_fails(&mut self) -> bool {
        one_in(&mut self.prng, self.timing.faults.program_one_in)
    }

    /// Returns the time to program `sectors` of a page that begin at `first`, stalls included.
    fn programming(&mut self, transfer: &mut Transfer, first: u64, sectors: u32) -> Duration {
        let write = &self.timing.write;
        let page = write.page_bytes / SECTOR_BYTES;
        let gathers = write.gather != Gather::Command && self.ends_early(transfer.durable);
        let mut charged = if gathers { sectors } else { page };
        (transfer.parts, transfer.last_part) = (transfer.parts + 1, charged);
        let mut cost = Duration::ZERO;
        if core::mem::take(&mut transfer.begins) {
            let begun = self.sequences.begin(first);
            transfer.follows &= begun.follows;
            charged += begun.rest;
            cost += if begun.follows { Duration::ZERO } else { write.jump };
            // Once for a packed command.
            cost += if transfer.handed_on == 0 { write.command } else { Duration::ZERO };
        }
        self.sequences.fill(sectors, gathers);
        if !gathers && sectors < page {
            cost += write.partial;
        }
        cost + self.pages(charged)
    }

    /// Draws the time to program `sectors` of pages, stalls included.
    fn pages(&mut self, sectors: u32) -> Duration {
        let write = &self.timing.write;
        let page = write.page_bytes / SECTOR_BYTES;
        let ns = write.program.as_ns() * u64::from(sectors) / u64::from(page);
        let figure = Duration::from_ns(ns);
        let mut cost = write.spread.map_or(figure, |spread| spread.draw(figure, &mut self.prng));
        if let Some(stall) = &self.timing.stall
            && self.prng.below(u64::from(stall.one_in_pages) * u64::from(page)) < u64::from(sectors)
        {
            let length = stall.length;
            cost += stall.spread.map_or(length, |spread| spread.draw(length, &mut self.prng));
        }
        cost
    }

    /// Programs all open pages as they are, from `at` on.
    pub(super) fn close_pages(&mut self, at: Instant) {
        let rest = self.sequences.close_pages();
        if rest > 0 {
            let cost = self.pages(rest);
            self.engine.push(at, 0, cost);
            self.memory_time += cost;
        }
    }

    /// Returns whether a write ends busy before it is programmed.
    fn ends_early(&self, durable: bool) -> bool {
        !durable && (self.cache_on() || self.timing.write.early)
    }

    /// Returns when a page of `transfer` is certain ([certain-once-programmed]).
    pub(super) fn when_certain(&self, transfer: &Transfer) -> When {
        if transfer.durable {
            When::Programmed
        } else if self.cache_on() {
            When::Flushed
        } else if self.timing.write.early {
            When::Now
        } else {
            When::Programmed
        }
    }

    /// Adds what the end of a write costs beyond its pages: planes that it leaves idle, and the
    /// close of its last page if only CMD12 tells its end.
    ///
    /// With 4 planes, 6 pages are programmed in two turns, as 8 would be.
    fn end_pages(&mut self, transfer: &Transfer, at: Instant) {
        let write = &self.timing.write;
        let planes = u32::from(write.parallel);
        let idle = transfer.parts.next_multiple_of(planes) - transfer.parts;
        let is_told = transfer.open_ended && transfer.parts > 0;
        let percent = if is_told { write.open_end.into() } else { 0 };
        let mut cost = Duration::from_ns(write.program.as_ns() * percent / 100);
        if idle > 0 {
            cost += self.pages(idle * transfer.last_part);
        }
        if cost > Duration::ZERO {
            self.engine.push(at, 0, cost);
            self.memory_time += cost;
        }
    }

    /// Ends a write that has all its data at `at`. Returns the end of the busy time.
    pub(super) fn finish_write(&mut self, transfer: &mut Transfer, at: Instant) -> Instant {
        debug_assert_eq!(transfer.direction, Direction::Write, "{transfer:?}");
        self.page_complete(transfer, at);
        self.end_pages(transfer, at);
        let early = self.ends_early(transfer.durable);
        let done = if early { at } else { self.engine.done_at().max(at) };
        let write = &self.timing.write;
        let finish = write.follow.filter(|_| transfer.follows).unwrap_or(write.finish);
        let until = done + finish;
        // The memory closes what was written, and programs nothing meanwhile: 8 pages of 1.6 ms and
        // 1 ms to close take 13.8 ms, however much the buffer holds.
        if early && write.follow.is_some() {
            self.engine.push(at, 0, finish);
            self.memory_time += finish;
        }
        let work = Work::Write { sectors: transfer.handed_on, kept: early, finish };
        self.set_busy(at, until, work);
        until
    }
}
