//! Packed commands: several requests go over in one transfer, and the card is busy once.
//!
//! A [header](crate::command::packed) lists the requests. A packed write has it as the first block
//! of its transfer; a packed read sends it in a transfer of its own, before that of the data.
//!
//! A packed write is done when the card, no longer busy, says so in response to CMD13. If that
//! response has the exception bit, EXT_CSD is read: it names the first request that failed. The
//! requests before that one are done. That one and those behind it are tried again, each alone and
//! with all its tries. So are all requests if the pack failed and none is named. All requests of a
//! packed read that failed are read again.
//!
//! # Rules
//!
//! - When a request starts, the requests that are ready right behind it join it, as long as they
//!   move data in its direction, need nothing else of CMD23, and fit card and controller. The order
//!   stays.

use super::act::Context;
use super::claim::{BUSY_LIMIT, BusStep, Health, PackStep};
use super::mmc::Mmc;
use super::slot::{Scope, Stage};
use crate::block::slot::Slot;
use crate::card::erase_time::times;
use crate::command::packed::{MAX_ENTRIES, write_header};
use crate::command::{BlockCount, Command, Direction};
use crate::controller::{HostController, MmcRequest, Pack, Payload, SlotId};
use crate::exchange::{Cause, Exchange, Failure};
use crate::host::{BusyDetect, Transfer};
use crate::register::ext_csd::ExtCsd;
use crate::target::Target;
use blockyard::status::Status;
use blockyard::time::Instant;

impl<H: HostController> Mmc<H> {
    /// Packs the requests that are ready right behind `first`, which is about to start.
    pub(super) fn fill_pack(&mut self, first: SlotId) {
        let leader = &self.slots[first.index()];
        let direction = leader.direction();
        debug_assert!(self.pack.is_empty(), "a pack is on the bus");
        let most = match direction {
            Direction::Read => self.pack_limit.reads,
            Direction::Write => self.pack_limit.writes,
        };
        if most < 2 || !leader.can_be_packed() {
            return;
        }
        let capabilities = self.controller.capabilities();
        let max_blocks = u32::from(capabilities.max_blocks);
        let max_segments = match capabilities.transfer {
            Transfer::Pio => u32::MAX,
            Transfer::Dma => u32::from(capabilities.max_segments),
        };
        let mut blocks = 1 + leader.sectors;
        let mut segments = 1 + u32::from(leader.segments);
        self.pack.push(first);
        while self.pack.len() < usize::from(most)
            && let Some(&last) = self.pack.last()
            && let Some(next) = self.ready.behind(last)
        {
            let slot = &mut self.slots[next.index()];
            blocks += slot.sectors;
            segments += u32::from(slot.segments);
            let joins = slot.direction() == direction && slot.can_be_packed();
            if !joins || blocks > max_blocks || segments > max_segments {
                break;
            }
            slot.stage = Stage::OnBus;
            self.ready.take(next);
            self.pack.push(next);
        }
        if self.pack.len() == 1 {
            self.pack.clear();
        }
    }

    /// Makes packed requests ready again, in their order.
    pub(super) fn undo_pack(&mut self) {
        while let Some(slot) = self.pack.pop() {
            self.slots[slot.index()].stage = Stage::Ready;
            self.ready.put_back(slot);
        }
    }

    /// Returns the number of blocks of all packed requests, without the header.
    pub(super) fn packed_blocks(&self) -> u32 {
        self.pack.iter().map(|slot| self.slots[slot.index()].sectors).sum()
    }

    /// Returns the next transfer of the pack: of a packed read first the header, then the data.
    pub(super) fn packed_transfer(&mut self) -> MmcRequest {
        debug_assert!(self.pack.len() > 1, "a pack of {} requests", self.pack.len());
        let Self { pack, slots, target, controller, bus, .. } = self;
        let first = pack.first().expect("request of a pack");
        let direction = slots[first.index()].direction();
        let (_, address) = pack_entry(slots, target, first);
        let header_sent = bus.as_ref().is_some_and(|bus| bus.pack_step == PackStep::HeaderSent);
        if !header_sent {
            write_header(
                controller.block(),
                direction,
                pack.iter().map(|slot| pack_entry(slots, target, slot)),
            );
        }
        let data: u16 = pack.iter().map(|slot| pack_entry(slots, target, slot).0.blocks).sum();
        let (blocks, payload) = match direction {
            Direction::Read if !header_sent => (1, Payload::Block),
            Direction::Read => (data, Payload::Packed(Pack::new(pack))),
            Direction::Write => (1 + data, Payload::Packed(Pack::new(pack))),
        };
        let announce = BlockCount { packed: true, ..BlockCount::new(blocks) };
        let command = match payload {
            Payload::Packed(_) if direction == Direction::Read => {
                Command::read_multiple(address, blocks)
            }
            _ => Command::write_multiple(address, blocks),
        };
        MmcRequest {
            announce: Some(Command::set_block_count(announce)),
            command,
            stop: None,
            continues: false,
            stays_open: false,
            payload,
            // The card may be busy with each request as long as if that came alone.
            limit: match payload {
                Payload::Packed(_) if direction == Direction::Read => target.read_limit,
                Payload::Packed(_) => times(target.write_limit, pack.len() as u64),
                _ => target.write_limit,
            },
        }
    }

    /// Acts on the end of a transfer of the pack; the card may be busy.
    pub(super) fn packed_transfer_ended(&mut self, exchange: &Exchange, now: Instant) {
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            return self.recover(now);
        }
        let asks = match self.policy.busy {
            _ if !exchange.ends_busy() => return self.packed_transfer_succeeded(now),
            BusyDetect::Line => BusStep::PollLine,
            BusyDetect::Status | BusyDetect::Hardware => BusStep::Status,
        };
        let bus = self.bus.as_mut().expect("claim of a pack");
        bus.watch(asks, now + BUSY_LIMIT, now);
    }

    /// Acts on a transfer of the pack of which the card has reported no error.
    pub(super) fn packed_transfer_succeeded(&mut self, now: Instant) {
        let reads = !self.packs_writes();
        let bus = self.bus.as_mut().expect("claim of a pack");
        if reads && bus.pack_step != PackStep::HeaderSent {
            bus.pack_step = PackStep::HeaderSent;
            bus.next(BusStep::Transfer, now);
        } else if !reads && bus.has_exception() {
            bus.pack_step = PackStep::Judging;
            bus.next(BusStep::ReadExtCsd, now);
        } else {
            self.end_pack(MAX_ENTRIES);
        }
    }

    /// Acts on the `failure` of the pack, after the card has been recovered.
    pub(super) fn packed_failed(&mut self, failure: Failure, now: Instant) {
        let writes = self.packs_writes();
        let bus = self.bus.as_mut().expect("claim of a pack");
        let is_told = writes && matches!(failure.cause, Cause::Card(_)) && bus.has_exception();
        if is_told && bus.pack_step != PackStep::Judging {
            bus.recovered();
            bus.pack_step = PackStep::Judging;
            bus.next(BusStep::ReadExtCsd, now);
        } else {
            self.end_pack(0);
        }
    }

    /// Acts on EXT_CSD, which names the request of the pack that failed.
    pub(super) fn packed_judged(&mut self, ext_csd: Option<&ExtCsd>) {
        let failed = self.bus.as_ref().is_none_or(|bus| bus.health != Health::Well);
        let done = match ext_csd.map(ExtCsd::packed_failure) {
            Some(Some(entry)) => entry.saturating_sub(1),
            Some(None) if !failed => MAX_ENTRIES,
            _ => 0,
        };
        self.end_pack(done);
    }

    /// Returns whether the requests of the pack are writes.
    fn packs_writes(&self) -> bool {
        let first = self.pack.first().expect("request of a pack");
        self.slots[first.index()].direction() == Direction::Write
    }

    /// Ends the pack, whose first `done` requests are done. The bus is free.
    fn end_pack(&mut self, done: u8) {
        debug_assert!(!self.pack.is_empty(), "no pack to end");
        self.bus.as_mut().expect("claim of a pack").pack_step = PackStep::Done(done);
        self.release_bus(Status::Ok);
    }

    /// Takes the pack off the bus. Its first `done` requests end well; or all end with `status`, if
    /// that is an error.
    pub(super) fn retire_packed(&mut self, done: u8, status: Status, by: Context) {
        debug_assert!(self.bus.is_none(), "[one-claim-on-bus]: the pack still has the bus");
        let done = usize::from(done).min(self.pack.len());
        let ends_all = self.card_gone || status != Status::Ok;
        let ended = if ends_all { self.pack.len() } else { done };
        for at in 0..ended {
            let slot = self.pack[at];
            if status == Status::Ok && at < done {
                self.retire(slot, Status::Ok, by);
            } else {
                self.retire(slot, if status == Status::Ok { Status::Gone } else { status }, by);
            }
        }
        self.pack.drain(..ended);
        if self.pack.is_empty() {
            return self.ready.advance();
        }
        for slot in &self.pack {
            self.slots[slot.index()].scope = Scope::Alone;
        }
        self.undo_pack();
    }
}

/// Returns the block count and the address of the request in `slot`, as the header of a pack lists
/// them.
fn pack_entry(slots: &[Slot], target: &Target, slot: &SlotId) -> (BlockCount, u32) {
    let of = &slots[slot.index()];
    let blocks = u16::try_from(of.sectors).expect("blocks of an accepted request");
    let address = target.addressing.argument(of.sector);
    (BlockCount::new(blocks), address.expect("address of an accepted request"))
}
