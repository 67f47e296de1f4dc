//! The order of slots: first come, first served; or by number.

use crate::controller::SlotId;
use alloc::vec::Vec;

/// Slots in the order in which they came: a list linked by slot number.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    next: Vec<Option<SlotId>>,
    ends: Option<(SlotId, SlotId)>,
}

impl Fifo {
    pub(super) fn new(slots: u8) -> Self {
        Self { next: alloc::vec![None; usize::from(slots)], ends: None }
    }

    pub(super) fn push(&mut self, slot: SlotId) {
        debug_assert!(self.iter().all(|other| other != slot), "{slot:?} is already listed");
        self.next[slot.index()] = None;
        self.ends = match self.ends {
            None => Some((slot, slot)),
            Some((first, last)) => {
                self.next[last.index()] = Some(slot);
                Some((first, slot))
            }
        };
    }

    pub(super) fn push_front(&mut self, slot: SlotId) {
        debug_assert!(self.iter().all(|other| other != slot), "{slot:?} is already listed");
        self.next[slot.index()] = self.first();
        self.ends = Some((slot, self.ends.map_or(slot, |(_, last)| last)));
    }

    pub(super) fn first(&self) -> Option<SlotId> {
        self.ends.map(|(first, _)| first)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = SlotId> {
        core::iter::successors(self.first(), |slot| self.next[slot.index()])
    }

    /// Takes out `slot`, which is in the list. Takes as many steps as there are slots before it.
    pub(super) fn remove(&mut self, slot: SlotId) {
        let Some((first, last)) = self.ends else { unreachable!("{slot:?} is not listed") };
        let after = self.next[slot.index()].take();
        if slot == first {
            self.ends = after.map(|after| (after, last));
            return;
        }
        let before = core::iter::successors(Some(first), |at| self.next[at.index()])
            .find(|at| self.next[at.index()] == Some(slot));
        let Some(before) = before else { unreachable!("{slot:?} is not listed") };
        self.next[before.index()] = after;
        if slot == last {
            self.ends = Some((first, before));
        }
    }

    pub(super) fn clear(&mut self) {
        self.ends = None;
    }
}

/// Slots by number, from the one after the last sent; if that is empty, from the lowest.
#[derive(Clone, Debug)]
pub(super) struct TagWalk {
    waiting: Vec<bool>,
    count: u8,
    /// The next slot to go. While that slot is on the bus, it stays here.
    next: Option<SlotId>,
}

impl TagWalk {
    fn new(slots: u8) -> Self {
        Self { waiting: alloc::vec![false; usize::from(slots)], count: 0, next: None }
    }

    fn first(&self) -> Option<SlotId> {
        self.next.filter(|next| self.waiting[next.index()])
    }

    fn push(&mut self, slot: SlotId) {
        debug_assert!(!self.waiting[slot.index()], "{slot:?} already waits");
        self.waiting[slot.index()] = true;
        self.count += 1;
        self.next = self.next.or(Some(slot));
    }

    /// Returns the waiting slots by number.
    fn iter(&self) -> impl Iterator<Item = SlotId> {
        let slots = (0..u8::MAX).map(SlotId).zip(&self.waiting);
        slots.filter_map(|(slot, waits)| waits.then_some(slot))
    }

    fn behind(&self, sent: SlotId) -> Option<SlotId> {
        debug_assert!(!self.waiting[sent.index()], "{sent:?} was sent, and still waits");
        let after = SlotId(sent.0 + 1);
        let is_waiting = self.waiting.get(after.index()) == Some(&true);
        if is_waiting { Some(after) } else { self.iter().next() }
    }

    fn advance(&mut self) {
        self.next = self.next.and_then(|sent| self.behind(sent));
    }
}

/// Requests that are ready for the bus.
#[derive(Clone, Debug)]
pub(super) enum Ready {
    Fifo(Fifo),
    TagWalk(TagWalk),
}

impl Ready {
    pub(super) fn fifo(slots: u8) -> Self {
        Self::Fifo(Fifo::new(slots))
    }

    pub(super) fn tag_walk(slots: u8) -> Self {
        Self::TagWalk(TagWalk::new(slots))
    }

    /// Returns the slot that is next. Call this while nothing is on the bus.
    pub(super) fn first(&self) -> Option<SlotId> {
        match self {
            Self::Fifo(fifo) => fifo.first(),
            Self::TagWalk(walk) => walk.first(),
        }
    }

    /// Returns the slot that would be next if `taken`, which was taken, left the bus now.
    pub(super) fn behind(&self, taken: SlotId) -> Option<SlotId> {
        match self {
            Self::Fifo(fifo) => fifo.first(),
            Self::TagWalk(walk) => walk.behind(taken),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.is_empty(),
            Self::TagWalk(walk) => {
                debug_assert!(walk.count > 0 || !walk.waiting.contains(&true), "an uncounted slot");
                walk.count == 0
            }
        }
    }

    /// Returns how many of the waiting slots `what` holds for.
    pub(super) fn count(&self, what: impl Fn(&SlotId) -> bool) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.iter().filter(what).count(),
            Self::TagWalk(walk) => walk.iter().filter(what).count(),
        }
    }

    pub(super) fn push(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(fifo) => fifo.push(slot),
            Self::TagWalk(walk) => walk.push(slot),
        }
    }

    /// Takes `slot`, which is the first or [behind](Self::behind) the one taken last, for the bus.
    pub(super) fn take(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(fifo) => fifo.remove(slot),
            Self::TagWalk(walk) => {
                debug_assert!(walk.waiting[slot.index()], "{slot:?} does not wait");
                walk.waiting[slot.index()] = false;
                walk.count -= 1;
                walk.next = Some(slot);
            }
        }
    }

    /// Makes `slot`, which was taken and did not go, the first again.
    pub(super) fn put_back(&mut self, slot: SlotId) {
        match self {
            Self::Fifo(fifo) => fifo.push_front(slot),
            Self::TagWalk(walk) => {
                debug_assert!(!walk.waiting[slot.index()], "{slot:?} already waits");
                walk.waiting[slot.index()] = true;
                walk.count += 1;
                walk.next = Some(slot);
            }
        }
    }

    /// Notes that the slot that was taken has left the bus.
    pub(super) fn advance(&mut self) {
        if let Self::TagWalk(walk) = self {
            walk.advance();
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Fifo(fifo) => fifo.clear(),
            Self::TagWalk(walk) => {
                walk.waiting.fill(false);
                walk.count = 0;
                walk.next = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use blockyard::prng::Prng;

    #[test]
    fn the_list_agrees_with_a_queue() {
        let mut prng = Prng::new(7);
        let mut fifo = Fifo::new(9);
        let mut slow = VecDeque::new();
        for _ in 0..2000 {
            let slot = SlotId(u8::try_from(prng.below(9)).unwrap());
            match slow.iter().position(|&other| other == slot) {
                Some(at) => {
                    slow.remove(at);
                    fifo.remove(slot);
                }
                None if prng.below(3) == 0 => {
                    slow.push_front(slot);
                    fifo.push_front(slot);
                }
                None => {
                    slow.push_back(slot);
                    fifo.push(slot);
                }
            }
            assert!(fifo.iter().eq(slow.iter().copied()), "{slow:?}");
        }
    }

    /// After a slot, the slot with the next number goes; if it does not wait, the lowest that does.
    #[test]
    fn the_walk_goes_to_the_next_number_or_to_the_lowest() {
        let mut ready = Ready::tag_walk(8);
        [5, 2, 7, 6].into_iter().for_each(|slot| ready.push(SlotId(slot)));
        for expected in [5, 6, 7, 2] {
            assert_eq!(ready.first(), Some(SlotId(expected)));
            ready.take(SlotId(expected));
            if expected == 2 {
                [4, 1].into_iter().for_each(|slot| ready.push(SlotId(slot)));
            }
            ready.advance();
        }
        assert_eq!(ready.first(), Some(SlotId(1)), "the number after 2 does not wait");
    }

    /// Compares the count with a list of the slots that wait.
    #[test]
    fn every_waiting_slot_is_counted() {
        let mut prng = Prng::new(11);
        for mut ready in [Ready::fifo(9), Ready::tag_walk(9)] {
            let mut slow: Vec<SlotId> = Vec::new();
            let mut on_bus = None;
            for _ in 0..3000 {
                let slot = SlotId(u8::try_from(prng.below(9)).unwrap());
                match prng.below(5) {
                    0 | 1 if !slow.contains(&slot) && on_bus != Some(slot) => {
                        slow.push(slot);
                        ready.push(slot);
                    }
                    2 if on_bus.is_none() => {
                        on_bus = ready.first();
                        on_bus.into_iter().for_each(|slot| ready.take(slot));
                        slow.retain(|slot| on_bus != Some(*slot));
                    }
                    3 if on_bus.is_some() => {
                        on_bus = None;
                        ready.advance();
                    }
                    4 if prng.below(4) == 0 => {
                        // The slot that was taken does not go.
                        on_bus.into_iter().for_each(|slot| ready.put_back(slot));
                        slow.extend(on_bus.take());
                    }
                    4 if prng.below(50) == 0 => {
                        (on_bus, slow) = (None, Vec::new());
                        ready.clear();
                    }
                    _ => {}
                }
                for divisor in 1..4 {
                    let is_such = |slot: &SlotId| slot.0.is_multiple_of(divisor);
                    let counted = slow.iter().filter(|slot| is_such(slot)).count();
                    assert_eq!(ready.count(is_such), counted, "{slow:?} in {ready:?}");
                }
                assert_eq!(ready.is_empty(), slow.is_empty());
                let none_goes = on_bus.is_none() && ready.first().is_none();
                assert!(!none_goes || slow.is_empty(), "{slow:?} wait for nothing in {ready:?}");
            }
        }
    }

    /// Sends the first slot, and lets `arrive` come while it is on the bus.
    fn send(ready: &mut Ready, arrive: &[u8]) -> u8 {
        let slot = ready.first().expect("slot that waits");
        ready.take(slot);
        arrive.iter().for_each(|&slot| ready.push(SlotId(slot)));
        ready.advance();
        slot.0
    }

    #[test]
    fn the_tag_walk_takes_the_next_number_or_the_lowest_and_can_starve_a_slot() {
        let mut walk = Ready::tag_walk(64);
        [5, 6, 40, 0].into_iter().for_each(|slot| walk.push(SlotId(slot)));
        assert_eq!(send(&mut walk, &[]), 5, "the first to come, as nothing was on the bus");
        assert_eq!(send(&mut walk, &[]), 6);
        assert_eq!(send(&mut walk, &[1]), 0, "7 is empty, and 40 is not looked for behind it");
        let order: VecDeque<_> =
            (0..100).map(|at| send(&mut walk, &[u8::from(at % 2 != 0)])).collect();
        assert!(
            !order.contains(&40),
            "one that came early waits as long as lower ones come: {order:?}"
        );
        let mut fifo = Ready::fifo(64);
        [5, 6, 40, 0].into_iter().for_each(|slot| fifo.push(SlotId(slot)));
        let order = [1, 2, 3].map(|slot| send(&mut fifo, &[slot]));
        assert_eq!(order, [5, 6, 40], "each waits for those before it, and no others");
    }

    /// A pack takes several slots. The walk goes on behind the last one.
    #[test]
    fn the_tag_walk_goes_on_behind_the_last_slot_of_a_pack() {
        let mut walk = Ready::tag_walk(8);
        [5, 6, 1].into_iter().for_each(|slot| walk.push(SlotId(slot)));
        walk.take(SlotId(5));
        assert_eq!(walk.behind(SlotId(5)), Some(SlotId(6)));
        walk.take(SlotId(6));
        walk.push(SlotId(7));
        walk.advance();
        assert_eq!((send(&mut walk, &[]), send(&mut walk, &[])), (7, 1));
    }

    #[test]
    fn the_tag_walk_begins_again_after_the_last_number() {
        let mut walk = Ready::tag_walk(64);
        [63, 2].into_iter().for_each(|slot| walk.push(SlotId(slot)));
        assert_eq!((send(&mut walk, &[]), send(&mut walk, &[])), (63, 2));
        assert!(walk.is_empty() && walk.first().is_none());
    }
}
