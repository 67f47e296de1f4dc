//! What passed for which request: a controller that checks its own request path.
//!
//! - **L1.** A transfer for a slot is of that slot's request: its direction, its sectors from the one
//!   that the transfer skips to, and no more than it has.
//! - **L2.** A request that ends well has passed whole: from its first sector on without a gap, and
//!   nothing that the card disowned.

use blockyard::bio::Op;
use blockyard::driver::Issue;
use blockyard::mmc::command::Direction;
use blockyard::mmc::controller::{Payload, SlotId, Transaction};
use blockyard::unit::DriverTag;

/// A request of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    sector: u64,
    sectors: u32,
    direction: Option<Direction>,
    /// Sectors from the first that have passed.
    passed: u32,
    /// The same, before the last transfer.
    before: u32,
}

/// Slots, and driver tags, that there can be.
const SLOTS: usize = 256;

/// All slots.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The slot of the request with each tag.
    slots: Vec<usize>,
    /// The slot of the last transfer.
    last: Option<usize>,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self { entries: vec![Entry::default(); SLOTS], slots: vec![SLOTS; SLOTS], last: None }
    }

    /// `slot` has the request of `issue`.
    pub(super) fn accept(&mut self, slot: SlotId, issue: &Issue<'_>) {
        let request = issue.request();
        self.slots[issue.tag.index()] = slot.index();
        self.entries[slot.index()] = Entry {
            sector: request.sector,
            sectors: request.sectors,
            direction: match request.op {
                Op::Read => Some(Direction::Read),
                Op::Write => Some(Direction::Write),
                _ => None,
            },
            ..Entry::default()
        };
    }

    /// `transaction` begins.
    ///
    /// # Panics
    ///
    /// It breaks L1.
    pub(super) fn begin(&mut self, transaction: &Transaction) {
        let (Some(data), Payload::Slot { slot, skip }) = (transaction.data(), transaction.payload)
        else {
            return;
        };
        let entry = &self.entries[slot.index()];
        let fits = skip + u32::from(data.blocks) <= entry.sectors
            && u64::from(transaction.command.argument) == entry.sector + u64::from(skip)
            && entry.direction == Some(data.direction);
        assert!(fits, "L1: {transaction:?} for {entry:?}");
    }

    /// So many blocks of `transaction` have passed well.
    pub(super) fn passed(&mut self, transaction: &Transaction, blocks: u32) {
        let (slot, skip) = match transaction.payload {
            Payload::None | Payload::Block => return,
            Payload::Slot { slot, skip } => (slot, skip),
            Payload::Packed(pack) => {
                for slot in pack.slots() {
                    let entry = &mut self.entries[slot.index()];
                    entry.passed = entry.sectors;
                }
                self.last = None;
                return;
            }
        };
        let entry = &mut self.entries[slot.index()];
        entry.before = entry.passed;
        if skip <= entry.passed {
            entry.passed = entry.passed.max(skip + blocks);
        }
        self.last = Some(slot.index());
    }

    /// The card disowns the last transfer.
    pub(super) fn disowned(&mut self) {
        if let Some(last) = self.last {
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
