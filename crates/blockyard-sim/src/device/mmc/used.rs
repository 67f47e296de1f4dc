//! The uses of a bus, each reported when it is over.

use blockyard::time::Instant;
use blockyard_mmc::command::Opcode;
use blockyard_mmc::controller::{MmcRequest, Payload, SlotId};
use std::collections::VecDeque;

/// A use of the bus between a controller and its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusUse {
    /// The kind of use.
    pub kind: BusUseKind,
    /// When it began.
    pub from: Instant,
    /// When it was over.
    pub until: Instant,
}

/// The kind of a [`BusUse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusUseKind {
    /// An MMC request was on the bus, until its interrupt or until it was aborted.
    Transaction {
        /// The command that announces its transfer.
        announce: Option<Opcode>,
        /// Its command.
        command: Opcode,
        /// The command that ends its transfer.
        stop: Option<Opcode>,
        /// The sectors of its transfer.
        sectors: u16,
        /// The slot whose memory it uses; of a packed command, the first.
        slot: Option<SlotId>,
    },
    /// The card held DAT0 low. If the controller waits for the end of that, the time is part of the request
    /// too.
    CardBusy,
}

impl BusUseKind {
    /// The use of the bus by `transaction`.
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

/// Uses that are over and not reported, and the busy time of the card.
#[derive(Debug, Default)]
pub(super) struct Uses {
    over: VecDeque<BusUse>,
    /// The begin and the expected end of the card's busy time.
    busy: Option<(Instant, Instant)>,
}

impl Uses {
    /// The card is busy from `from` until `until`, which replaces an earlier end of the same busy time.
    pub(super) fn card_busy(&mut self, from: Instant, until: Instant) {
        debug_assert!(from <= until, "busy from {from} until {until}");
        self.pass(from);
        let (since, _) = self.busy.unwrap_or((from, until));
        self.busy = Some((since, until));
    }

    /// The card is no longer busy, whatever end was expected.
    pub(super) fn cut_busy(&mut self, now: Instant) {
        let begun = self.busy.filter(|(from, _)| *from < now);
        self.busy = begun.map(|(from, until)| (from, until.min(now)));
        self.pass(now);
    }

    /// `transaction` was on the bus from `from` until now.
    pub(super) fn transaction(&mut self, transaction: &MmcRequest, from: Instant, now: Instant) {
        debug_assert!(from <= now, "on the bus from {from} until {now}");
        self.over.push_back(BusUse { kind: BusUseKind::of(transaction), from, until: now });
        self.pass(now);
    }

    /// Whether uses are over and not reported.
    pub(super) fn are_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// Returns the next use that is over.
    pub(super) fn next(&mut self) -> Option<BusUse> {
        self.over.pop_front()
    }

    /// Ends the busy time of the card if that is over by `now`.
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
