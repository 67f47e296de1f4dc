//! Packed commands: several requests go over in one transfer, and the card is busy once.
//!
//! # Rules
//!
//! - **Q1.** As a request starts, those ready right behind it join it, as long as they move data in its
//!   direction, need nothing else of CMD23, and fit card and controller. The order stays.
//! - **Q2.** A header says what there is ([`packed`](crate::command::packed)). Writes have it as the
//!   first block of their transfer; for reads it is a transfer of its own, before theirs.
//! - **Q3.** Writes are done when the card, not busy any more, says so (CMD13). Where it then says that
//!   something exceptional is up, EXT_CSD is read: it names the first that failed.
//! - **Q4.** Those before the one that is named are done. It and those behind it are tried again, each
//!   alone and with all its tries; and so are all, where something failed and none is named. Of reads
//!   that failed, all are read again.

use super::errand::{BUSY_LIMIT, Errand};
use super::slot::{Slot, Stage};
use super::{Context, Mmc, Target};
use crate::card::erase_time::times;
use crate::command::packed::{MAX_ENTRIES, write_header};
use crate::command::{BlockCount, Command, Direction};
use crate::controller::{HostController, MmcRequest, Pack, Payload, SlotId};
use crate::exchange::{Cause, Exchange, Failure};
use crate::host::{BusyDetect, HostCapabilities, Transfer};
use crate::policy::{Bounce, HostPolicy, Packed, Pipeline};
use crate::register::ext_csd::ExtCsd;
use blockyard::status::Status;
use blockyard::time::Instant;

/// How many requests go in one packed command at most: writes, and reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Most {
    writes: u8,
    reads: u8,
}

impl Most {
    /// What `policy` wants of `target` behind a host with `capabilities`; `None`: one of them cannot.
    ///
    /// A controller must take the header and two requests in one, and what it copies in bounce buffers
    /// must not be in one buffer for all. A command queue takes no packed commands.
    pub(super) fn of(
        policy: &HostPolicy,
        target: &Target,
        capabilities: &HostCapabilities,
    ) -> Option<Self> {
        let [writes, reads] = match policy.packed {
            Packed::Off => return Some(Self::default()),
            Packed::Write => [target.packed_writes, 0],
            Packed::ReadWrite => [target.packed_writes, target.packed_reads],
        };
        if policy.pipeline == Pipeline::Cqe {
            return None;
        }
        let enough = |most: u8| most >= 2;
        let card = enough(writes) && (policy.packed == Packed::Write || enough(reads));
        let segments = capabilities.transfer == Transfer::Pio || capabilities.max_segments >= 3;
        let host = segments && policy.bounce != Bounce::Sync;
        let [writes, reads] = [writes, reads].map(|most| most.min(MAX_ENTRIES));
        (card && host).then_some(Self { writes, reads })
    }

    /// The larger of the two.
    pub(super) fn most(self) -> u8 {
        self.writes.max(self.reads)
    }
}

impl<H: HostController> Mmc<H> {
    /// `first` is about to start: what is ready behind it joins it (Q1).
    pub(super) fn gather(&mut self, first: SlotId) {
        let leader = &self.slots[first.index()];
        let direction = leader.direction;
        let most = match direction {
            Direction::Read => self.most_packed.reads,
            Direction::Write => self.most_packed.writes,
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
            let joins = slot.direction == direction && slot.can_be_packed();
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

    /// What was packed and did not start after all is ready again, in its order.
    pub(super) fn scatter(&mut self) {
        while let Some(slot) = self.pack.pop() {
            self.slots[slot.index()].stage = Stage::Ready;
            self.ready.put_back(slot);
        }
    }

    /// Blocks of all that is packed, the header apart.
    pub(super) fn packed_blocks(&self) -> u32 {
        self.pack.iter().map(|slot| self.slots[slot.index()].sectors).sum()
    }

    /// The next transfer of what is packed (Q2).
    pub(super) fn packed_transfer(&mut self) -> MmcRequest {
        let Self { pack, slots, target, controller, bus, .. } = self;
        let entry = |slot: &SlotId| {
            let of = &slots[slot.index()];
            let blocks = u16::try_from(of.sectors).expect("looked at when it was taken");
            let address = target.addressing.argument(of.sector);
            (BlockCount::new(blocks), address.expect("looked at when it was taken"))
        };
        let direction = slots[pack[0].index()].direction;
        let (_, address) = entry(&pack[0]);
        let header_sent = bus.as_ref().is_some_and(|bus| bus.header_sent);
        if !header_sent {
            write_header(controller.block(), direction, pack.iter().map(entry));
        }
        let data: u16 = pack.iter().map(|slot| entry(slot).0.blocks).sum();
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
            payload,
            // The card may be busy with each as long as if it came alone.
            limit: match payload {
                Payload::Packed(_) if direction == Direction::Read => target.read_limit,
                Payload::Packed(_) => times(target.write_limit, pack.len() as u64),
                _ => target.write_limit,
            },
        }
    }

    /// A transfer of what is packed is over, but for the card's busy.
    pub(super) fn packed_transferred(&mut self, exchange: &Exchange, now: Instant) {
        if let Some(failure) = exchange.failure() {
            self.failed(failure);
            return self.recover(now);
        }
        let asks = match self.policy.busy {
            _ if !exchange.ends_busy() => return self.packed_well(now),
            BusyDetect::Line => Errand::Line,
            BusyDetect::Status | BusyDetect::Hardware => Errand::Status, // Q3
        };
        let bus = self.bus.as_mut().expect("its transfer is over");
        bus.watch(asks, now + BUSY_LIMIT, now);
    }

    /// A transfer of what is packed went well, as far as the card has said without being asked.
    pub(super) fn packed_well(&mut self, now: Instant) {
        let reads = self.slots[self.pack[0].index()].direction == Direction::Read;
        let bus = self.bus.as_mut().expect("its transfer went well");
        if reads && !bus.header_sent {
            bus.header_sent = true;
            bus.next(Errand::Transfer, now);
        } else if !reads && bus.exception {
            bus.judged = true;
            bus.next(Errand::Look, now); // Q3
        } else {
            self.unpack(MAX_ENTRIES);
        }
    }

    /// What is packed failed with `failure`, and the card is well again.
    pub(super) fn packed_failed(&mut self, failure: Failure, now: Instant) {
        let bus = self.bus.as_mut().expect("its transfer has failed");
        let writes = self.slots[self.pack[0].index()].direction == Direction::Write;
        let is_told = writes && matches!(failure.cause, Cause::Card(_)) && bus.exception;
        if is_told && !bus.judged {
            (bus.failure, bus.judged) = (None, true);
            bus.next(Errand::Look, now); // Q3
        } else {
            self.unpack(0);
        }
    }

    /// EXT_CSD has been read to learn what of the pack failed (Q4).
    pub(super) fn packed_judged(&mut self, ext_csd: Option<&ExtCsd>) {
        let failed = self.bus.as_ref().is_none_or(|bus| bus.failed_once);
        let done = match ext_csd.map(ExtCsd::packed_failure) {
            Some(Some(entry)) => entry.saturating_sub(1),
            Some(None) if !failed => MAX_ENTRIES,
            _ => 0,
        };
        self.unpack(done);
    }

    /// The first `done` of what is packed are done; the bus is free.
    fn unpack(&mut self, done: u8) {
        self.bus.as_mut().expect("the pack has the bus").packed_done = done;
        self.release_bus(Status::Ok);
    }

    /// The pack leaves the bus: with its first `done` done, or all with `status` where that is not well.
    pub(super) fn retire_packed(&mut self, done: u8, status: Status, by: Context) {
        let done = usize::from(done).min(self.pack.len());
        let ends_all = self.gone || status != Status::Ok;
        let ended = if ends_all { self.pack.len() } else { done };
        for at in 0..ended {
            let slot = self.pack[at];
            if status == Status::Ok && at < done {
                self.slots[slot.index()].done = self.slots[slot.index()].sectors;
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
            self.slots[slot.index()].alone = true; // Q4
        }
        self.scatter();
    }
}

impl Slot {
    /// Whether it needs nothing but its blocks, and all of them.
    pub(super) const fn can_be_packed(&self) -> bool {
        self.operation.is_none() && !self.reliable && !self.alone
    }
}
