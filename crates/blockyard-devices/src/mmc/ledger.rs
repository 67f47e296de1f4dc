//! A record of the data moved for each request, with which a controller checks its own request
//! path.
//!
//! # Rules
//!
//! - **[transfer-matches-request]** A transfer for a slot has the direction of that slot's request.
//!   It begins at the sector to which it skips, and stays within the request.
//! - **[completed-request-passed-whole]** If a request completes without an error, all of its data
//!   has passed, from its first sector on without a gap. The card has disowned none of it, as far
//!   as the host heard before it began something else. After that the host cannot attribute the
//!   error, and it counts the acknowledged writes
//!   ([`lost_writes`](blockyard_mmc::block::Counts::lost_writes)). If the interrupt was lost, the
//!   host cannot know ([`doubtful_writes`](blockyard_mmc::block::Counts::doubtful_writes)).
//! - **[failed-transfer-recovered-first]** After a transfer that the controller reported as failed,
//!   no transfer begins before the card has answered CMD13 as ready or has been reset.
//! - **[status-read-after-switch]** Only the status after a switch (CMD6 of eMMC), a setting (CMD49
//!   of SD) or an erase (CMD38) gives the result. So the host gets an answer to CMD13, or resets
//!   the card, before it sends any other command.

use crate::data::event::Place;
use blockyard::bio::Op;
use blockyard::driver::Issue;
use blockyard::unit::DriverTag;
use blockyard_mmc::command::{Command, Direction, Opcode};
use blockyard_mmc::controller::{MmcRequest, Payload, SlotId};

/// The request of a slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: DriverTag,
    sector: u64,
    sectors: u32,
    direction: Option<Direction>,
    /// The number of sectors that have passed, from the first one on.
    passed: u32,
    /// The number of sectors that had passed before the last transfer.
    before: u32,
}

impl Entry {
    const NONE: Self =
        Self { tag: DriverTag(0), sector: 0, sectors: 0, direction: None, passed: 0, before: 0 };
}

/// Blocks of a packed transfer that belong to no request.
fn header_blocks(transaction: &MmcRequest) -> u32 {
    u32::from(transaction.data().is_some_and(|data| data.direction == Direction::Write))
}

/// The maximum number of slots and of driver tags.
const SLOTS: usize = 256;

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The slot of the request with each tag.
    slots: Vec<usize>,
    /// The slots of the last transfer.
    last: Vec<usize>,
    /// A transfer failed, and the host has not recovered from it
    /// ([failed-transfer-recovered-first]).
    failed: bool,
    /// The host has not read the result of a switch or an erase ([status-read-after-switch]).
    owes_question: bool,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            entries: vec![Entry::NONE; SLOTS],
            slots: vec![SLOTS; SLOTS],
            last: Vec::new(),
            failed: false,
            owes_question: false,
        }
    }

    /// Records that `command` goes to the card and whether a readable response comes back.
    ///
    /// # Panics
    ///
    /// Panics if this breaks [status-read-after-switch].
    pub(super) fn sent(&mut self, command: &Command, is_answered: bool) {
        use Opcode::{
            Erase, InterruptByStatus, InterruptByStop, SendStatus, StopTransmission, Switch,
            WriteExtension,
        };
        match command.opcode {
            SendStatus => self.owes_question &= !is_answered,
            InterruptByStatus | InterruptByStop | StopTransmission => {}
            opcode => {
                assert!(
                    !self.owes_question,
                    "[status-read-after-switch] {command} before the card was asked"
                );
                self.owes_question = matches!(opcode, Switch | Erase | WriteExtension);
            }
        }
    }

    /// Records that `slot` has the request of `issue`.
    pub(super) fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        let request = issue.request();
        debug_assert_eq!(
            self.slots[issue.tag.index()],
            SLOTS,
            "{:?} already has a request",
            issue.tag
        );
        self.slots[issue.tag.index()] = slot.index();
        self.entries[slot.index()] = Entry {
            tag: issue.tag,
            sector: request.sector,
            sectors: request.sectors,
            direction: match request.op {
                Op::Read => Some(Direction::Read),
                Op::Write => Some(Direction::Write),
                _ => None,
            },
            ..Entry::NONE
        };
    }

    /// Returns the request to which block `from` of `transaction` belongs. The header of a packed
    /// command does not count.
    pub(super) fn place(&self, transaction: &MmcRequest, from: u32) -> Option<Place> {
        match transaction.payload {
            Payload::None | Payload::Block => None,
            Payload::Slot { slot, skip } => {
                Some(Place { tag: self.entry(slot).tag, from: skip + from })
            }
            Payload::Packed(pack) => {
                let mut before = 0;
                let slot = pack.slots().iter().find(|slot| {
                    before += self.entry(**slot).sectors;
                    from < before
                })?;
                let entry = self.entry(*slot);
                Some(Place { tag: entry.tag, from: from - (before - entry.sectors) })
            }
        }
    }

    fn entry(&self, slot: SlotId) -> &Entry {
        &self.entries[slot.index()]
    }

    /// Records that `transaction` begins.
    ///
    /// # Panics
    ///
    /// Panics if this breaks [transfer-matches-request] or [failed-transfer-recovered-first].
    pub(super) fn begin(&mut self, transaction: &MmcRequest) {
        // A request path uses these commands to ask about the data that has passed.
        let opcode = transaction.command.opcode;
        if !matches!(opcode, Opcode::SendStatus | Opcode::StopTransmission) {
            self.leaves();
        }
        let Some(data) = transaction.data() else { return };
        assert!(
            !self.failed,
            "[failed-transfer-recovered-first] {transaction:?} before the card was asked"
        );
        let (slot, skip) = match transaction.payload {
            Payload::None | Payload::Block => return,
            Payload::Slot { slot, skip } => (slot, skip),
            Payload::Packed(pack) => {
                let mut entries = pack.slots().iter().map(|slot| self.entry(*slot));
                let blocks = entries.clone().map(|entry| entry.sectors).sum::<u32>();
                let fits = u32::from(data.blocks) == blocks + header_blocks(transaction)
                    && entries.all(|entry| entry.direction == Some(data.direction));
                assert!(fits, "[transfer-matches-request] {transaction:?}");
                return;
            }
        };
        let entry = &self.entries[slot.index()];
        let fits = skip + u32::from(data.blocks) <= entry.sectors
            && u64::from(transaction.command.argument) == entry.sector + u64::from(skip)
            && entry.direction == Some(data.direction);
        assert!(fits, "[transfer-matches-request] {transaction:?} for {entry:?}");
    }

    /// Records that the controller reports a failed transfer.
    pub(super) const fn failed(&mut self) {
        self.failed = true;
    }

    /// Records that the card has answered as ready or was reset.
    pub(super) const fn recovered(&mut self) {
        self.failed = false;
    }

    /// Records that the card was reset, so nothing is in flight.
    pub(super) const fn reset(&mut self) {
        self.recovered();
        self.owes_question = false;
    }

    /// Records that the first `blocks` blocks of `transaction` have passed without an error.
    pub(super) fn passed(&mut self, transaction: &MmcRequest, blocks: u32) {
        debug_assert!(
            transaction.data().is_some_and(|data| blocks <= u32::from(data.blocks)),
            "{blocks} blocks of {transaction:?}"
        );
        let (slot, skip) = match transaction.payload {
            Payload::None | Payload::Block => return,
            Payload::Slot { slot, skip } => (slot, skip),
            Payload::Packed(pack) => {
                let mut left = blocks.saturating_sub(header_blocks(transaction));
                self.last.clear();
                for slot in pack.slots() {
                    let entry = &mut self.entries[slot.index()];
                    let came = left.min(entry.sectors);
                    left -= came;
                    entry.before = entry.passed;
                    entry.passed = entry.passed.max(came);
                    self.last.push(slot.index());
                }
                return;
            }
        };
        let entry = &mut self.entries[slot.index()];
        entry.before = entry.passed;
        if skip <= entry.passed {
            entry.passed = entry.passed.max(skip + blocks);
        }
        self.last.clear();
        self.last.push(slot.index());
    }

    /// Records that the last transfer has left the bus. The card can no longer disown it.
    pub(super) fn leaves(&mut self) {
        self.last.clear();
    }

    /// Records that the card disowns the last transfer: of a packed one, all entries from `from`
    /// (from 1) on.
    pub(super) fn disowned(&mut self, from: Option<u8>) {
        let before = usize::from(from.map_or(0, |from| from.saturating_sub(1)));
        for last in self.last.drain(..).skip(before) {
            let entry = &mut self.entries[last];
            entry.passed = entry.before;
        }
    }

    /// Records that the request with `tag` has ended, without an error (`well`) or with one.
    ///
    /// # Panics
    ///
    /// Panics if this breaks [completed-request-passed-whole].
    pub(super) fn ended(&mut self, tag: DriverTag, well: bool) {
        // The record has no slot for a request without data.
        let slot = core::mem::replace(&mut self.slots[tag.index()], SLOTS);
        let Some(entry) = self.entries.get(slot) else { return };
        let moves = entry.direction.is_some();
        assert!(
            !well || !moves || entry.passed == entry.sectors,
            "[completed-request-passed-whole] {entry:?}"
        );
    }
}
