//! What passed for which request: a controller that checks its own request path.
//!
//! - **L1.** A transfer for a slot is of that slot's request: its direction, its sectors from the one
//!   that the transfer skips to, and no more than it has.
//! - **L2.** A request that ends well has passed whole: from its first sector on without a gap, and
//!   nothing that the card disowned, as far as the host heard of it before something else was begun. After that
//!   it is too late to be sure who is told, and what was told already is counted
//!   ([`lost_writes`](blockyard_mmc::block::Counts::lost_writes)). What the host did not hear, as the interrupt got
//!   lost, it cannot tell ([`doubtful_writes`](blockyard_mmc::block::Counts::doubtful_writes)).
//! - **L3.** After a transfer of which the controller said that it failed, none is begun before the card was
//!   asked (CMD13) and was ready, or was reset.
//! - **L4.** How a switch (CMD6 of eMMC) or an erase (CMD38) went only the status after it says. So the card is
//!   asked (CMD13), and answers or is reset, before it is told to do anything else.

use crate::data::deed::Place;
use blockyard::bio::Op;
use blockyard::driver::Issue;
use blockyard::unit::DriverTag;
use blockyard_mmc::command::{Command, Direction, Opcode};
use blockyard_mmc::controller::{MmcRequest, Payload, SlotId};

/// A request of a slot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: DriverTag,
    sector: u64,
    sectors: u32,
    direction: Option<Direction>,
    /// Sectors from the first that have passed.
    passed: u32,
    /// The same, before the last transfer.
    before: u32,
}

impl Entry {
    const NONE: Self =
        Self { tag: DriverTag(0), sector: 0, sectors: 0, direction: None, passed: 0, before: 0 };
}

/// Blocks of a packed transfer that are no request's.
fn header_blocks(transaction: &MmcRequest) -> u32 {
    u32::from(transaction.data().is_some_and(|data| data.direction == Direction::Write))
}

/// Slots, and driver tags, that there can be.
const SLOTS: usize = 256;

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The slot of the request with each tag.
    slots: Vec<usize>,
    /// The slots of the last transfer.
    last: Vec<usize>,
    /// A transfer failed, and is not recovered from (L3).
    failed: bool,
    /// The card does something by itself, and was not asked how it went (L4).
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

    /// `command` goes to the card, and a response comes back, or none that can be read.
    ///
    /// # Panics
    ///
    /// It breaks L4.
    pub(super) fn sent(&mut self, command: &Command, is_answered: bool) {
        use Opcode::{
            Erase, InterruptByStatus, InterruptByStop, SendStatus, StopTransmission, Switch,
        };
        match command.opcode {
            SendStatus => self.owes_question &= !is_answered,
            InterruptByStatus | InterruptByStop | StopTransmission => {}
            opcode => {
                assert!(!self.owes_question, "L4: {command} before the card was asked");
                self.owes_question = matches!(opcode, Switch | Erase);
            }
        }
    }

    /// `slot` has the request of `issue`.
    pub(super) fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        let request = issue.request();
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

    /// Whose data block number `from` of `transaction` is, the header of a packed one apart.
    pub(super) fn place(&self, transaction: &MmcRequest, from: u32) -> Option<Place> {
        let of = |slot: SlotId| &self.entries[slot.index()];
        match transaction.payload {
            Payload::None | Payload::Block => None,
            Payload::Slot { slot, skip } => Some(Place { tag: of(slot).tag, from: skip + from }),
            Payload::Packed(pack) => {
                let mut before = 0;
                let slot = pack.slots().iter().find(|slot| {
                    before += of(**slot).sectors;
                    from < before
                })?;
                Some(Place { tag: of(*slot).tag, from: from - (before - of(*slot).sectors) })
            }
        }
    }

    /// `transaction` begins.
    ///
    /// # Panics
    ///
    /// It breaks L1 or L3.
    pub(super) fn begin(&mut self, transaction: &MmcRequest) {
        // By these a request path asks after what has passed; others speak of it by the way.
        let opcode = transaction.command.opcode;
        if !matches!(opcode, Opcode::SendStatus | Opcode::StopTransmission) {
            self.leaves();
        }
        let Some(data) = transaction.data() else { return };
        assert!(!self.failed, "L3: {transaction:?} before the card was asked");
        let (slot, skip) = match transaction.payload {
            Payload::None | Payload::Block => return,
            Payload::Slot { slot, skip } => (slot, skip),
            Payload::Packed(pack) => {
                let entries = || pack.slots().iter().map(|slot| &self.entries[slot.index()]);
                let blocks = entries().map(|entry| entry.sectors).sum::<u32>();
                let fits = u32::from(data.blocks) == blocks + header_blocks(transaction)
                    && entries().all(|entry| entry.direction == Some(data.direction));
                assert!(fits, "L1: {transaction:?}");
                return;
            }
        };
        let entry = &self.entries[slot.index()];
        let fits = skip + u32::from(data.blocks) <= entry.sectors
            && u64::from(transaction.command.argument) == entry.sector + u64::from(skip)
            && entry.direction == Some(data.direction);
        assert!(fits, "L1: {transaction:?} for {entry:?}");
    }

    /// The controller says that the transfer failed.
    pub(super) const fn failed(&mut self) {
        self.failed = true;
    }

    /// The card has said that it is ready, or was reset.
    pub(super) const fn recovered(&mut self) {
        self.failed = false;
    }

    /// The card was reset: nothing that it was told is under way.
    pub(super) const fn reset(&mut self) {
        self.recovered();
        self.owes_question = false;
    }

    /// So many blocks of `transaction` have passed well.
    pub(super) fn passed(&mut self, transaction: &MmcRequest, blocks: u32) {
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

    /// What has passed has left the bus: it is not disowned any more.
    pub(super) fn leaves(&mut self) {
        self.last.clear();
    }

    /// The card disowns the last transfer: of a packed one all from this entry on, counted from 1.
    pub(super) fn disowned(&mut self, from: Option<u8>) {
        let before = usize::from(from.map_or(0, |from| from.saturating_sub(1)));
        for last in self.last.drain(..).skip(before) {
            let entry = &mut self.entries[last];
            entry.passed = entry.before;
        }
    }

    /// The request with `tag` has ended, well or not.
    ///
    /// # Panics
    ///
    /// It breaks L2.
    pub(super) fn ended(&mut self, tag: DriverTag, well: bool) {
        // What transfers nothing has no slot here.
        let slot = core::mem::replace(&mut self.slots[tag.index()], SLOTS);
        let Some(entry) = self.entries.get(slot) else { return };
        let moves = entry.direction.is_some();
        assert!(!well || !moves || entry.passed == entry.sectors, "L2: {entry:?}");
    }
}
