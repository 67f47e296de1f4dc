//! What a bus was used for, each use told once it is over.

use blockyard::time::Instant;
use blockyard_mmc::command::Opcode;
use blockyard_mmc::controller::{MmcRequest, Payload, SlotId};
use std::collections::VecDeque;

/// What happened for a while between a controller and its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusUse {
    /// What.
    pub kind: BusUseKind,
    /// When it began.
    pub from: Instant,
    /// When it was over.
    pub until: Instant,
}

/// See [`BusUse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusUseKind {
    /// A transaction was on the bus, until its interrupt or until it was taken off.
    Transaction {
        /// What announces its transfer.
        announce: Option<Opcode>,
        /// Its command.
        command: Opcode,
        /// What ends its transfer.
        stop: Option<Opcode>,
        /// Sectors that it is to transfer.
        sectors: u16,
        /// Whose memory it uses; of a packed command, the first.
        slot: Option<SlotId>,
    },
    /// The card held DAT0 low. Where the controller waits for its end, this is a part of the
    /// transaction as well.
    CardBusy,
}

impl BusUseKind {
    /// The use that is `transaction`.
    pub(super) fn of(transaction: &MmcRequest) -> Self {
        let slot = match transaction.payload {
            Payload::None | Payload::Block => None,
            Payload::Slot { slot, .. } => Some(slot),
            Payload::Packed(pack) => pack.slots().first().copied(),
        };
        Self::Transaction {
            announce: transaction.announce.map(|command| command.opcode),
            command: transaction.command.opcode,
            stop: transaction.stop.map(|command| command.opcode),
            sectors: transaction.data().map_or(0, |data| data.blocks),
            slot,
        }
    }
}

/// Uses that are over and not told, and a card that is busy.
#[derive(Debug, Default)]
pub(super) struct Uses {
    over: VecDeque<BusUse>,
    /// Since when, and until when as far as is known.
    busy: Option<(Instant, Instant)>,
}

impl Uses {
    /// The card is busy from `from` until `until`, which takes the place of what was said before of
    /// the same.
    pub(super) fn card_busy(&mut self, from: Instant, until: Instant) {
        self.pass(from);
        let (since, _) = self.busy.unwrap_or((from, until));
        self.busy = Some((since, until));
    }

    /// It is not busy any more, whatever was said.
    pub(super) fn cut_busy(&mut self, now: Instant) {
        let begun = self.busy.filter(|(from, _)| *from < now);
        self.busy = begun.map(|(from, until)| (from, until.min(now)));
        self.pass(now);
    }

    /// `transaction` was on the bus from `from` until now.
    pub(super) fn transaction(&mut self, transaction: &MmcRequest, from: Instant, now: Instant) {
        self.over.push_back(BusUse { kind: BusUseKind::of(transaction), from, until: now });
        self.pass(now);
    }

    /// Whether some are over and not told.
    pub(super) fn are_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// The next that is over.
    pub(super) fn next(&mut self) -> Option<BusUse> {
        self.over.pop_front()
    }

    /// `now` is reached: a card may have been ready before.
    fn pass(&mut self, now: Instant) {
        if let Some((from, until)) = self.busy.filter(|(_, until)| *until <= now) {
            self.busy = None;
            self.over.push_back(BusUse { kind: BusUseKind::CardBusy, from, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_busy_for_as_long_as_was_said_last_and_told_when_that_is_over() {
        let at = Instant::from_ns;
        let busy = |from, until| {
            Some(BusUse { kind: BusUseKind::CardBusy, from: at(from), until: at(until) })
        };
        let mut uses = Uses::default();
        uses.card_busy(at(10), at(50));
        // An interrupt (HPI) brings the end nearer.
        uses.card_busy(at(20), at(30));
        assert_eq!(uses.next(), None);
        uses.card_busy(at(30), at(90));
        assert_eq!((uses.next(), uses.next()), (busy(10, 30), None));
        uses.cut_busy(at(60));
        assert_eq!((uses.next(), uses.next()), (busy(30, 60), None));
        // The busy that was to come does not.
        uses.card_busy(at(80), at(90));
        uses.cut_busy(at(70));
        assert_eq!(uses.next(), None);
    }
}
