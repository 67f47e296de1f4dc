//! The uses of a bus. Each use is reported when it is over.

use blockyard::time::Instant;
use blockyard_mmc::bus_use::{BusUse, BusUseKind};
use blockyard_mmc::controller::MmcRequest;
use std::collections::VecDeque;

/// Finished uses that have not been reported, and the card's busy time.
#[derive(Debug, Default)]
pub(super) struct Uses {
    over: VecDeque<BusUse>,
    /// The start and the expected end of the card's busy time.
    busy: Option<(Instant, Instant)>,
}

impl Uses {
    /// Records that the card is busy from `from` until `until`, which replaces an earlier end of
    /// the same busy time.
    pub(super) fn card_busy(&mut self, from: Instant, until: Instant) {
        debug_assert!(from <= until, "busy from {from} until {until}");
        self.pass(from);
        let (since, _) = self.busy.unwrap_or((from, until));
        self.busy = Some((since, until));
    }

    /// Ends the card's busy time, whatever end was expected.
    pub(super) fn cut_busy(&mut self, now: Instant) {
        let begun = self.busy.filter(|(from, _)| *from < now);
        self.busy = begun.map(|(from, until)| (from, until.min(now)));
        self.pass(now);
    }

    /// Records that `transaction` was on the bus from `from` until `now`.
    pub(super) fn transaction(&mut self, transaction: &MmcRequest, from: Instant, now: Instant) {
        debug_assert!(from <= now, "on the bus from {from} until {now}");
        self.over.push_back(BusUse { kind: BusUseKind::of(transaction), from, until: now });
        self.pass(now);
    }

    /// Returns whether there are finished uses that have not been reported.
    pub(super) fn are_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// Returns the next finished use.
    pub(super) fn next(&mut self) -> Option<BusUse> {
        self.over.pop_front()
    }

    /// Ends the card's busy time if it is over by `now`.
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

    fn busy(from: u64, until: u64) -> Option<BusUse> {
        let kind = BusUseKind::CardBusy;
        Some(BusUse { kind, from: Instant::from_ns(from), until: Instant::from_ns(until) })
    }

    #[test]
    fn a_card_is_busy_for_as_long_as_was_said_last_and_told_when_that_is_over() {
        let at = Instant::from_ns;
        let mut uses = Uses::default();
        uses.card_busy(at(10), at(50));
        // An interrupt (HPI) brings the end forward.
        uses.card_busy(at(20), at(30));
        assert_eq!(uses.next(), None);
        uses.card_busy(at(30), at(90));
        assert_eq!((uses.next(), uses.next()), (busy(10, 30), None));
        uses.cut_busy(at(60));
        assert_eq!((uses.next(), uses.next()), (busy(30, 60), None));
        // The expected busy time does not happen.
        uses.card_busy(at(80), at(90));
        uses.cut_busy(at(70));
        assert_eq!(uses.next(), None);
    }
}
