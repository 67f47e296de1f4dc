//! Submitters that wait for a tag.

use alloc::vec::Vec;
use core::fmt;

/// The number of wait queues.
const QUEUES: usize = 8;
/// The most puts that one wake-up waits for.
const BATCH_MAX: u32 = 8;
/// "No such slot" in links.
const NONE: u32 = u32::MAX;

/// There is no memory for one more waiter. The waiters are as they were before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many submitters wait for a tag")
    }
}

impl core::error::Error for Full {}

/// Submitters that found no tag.
///
/// They sleep on eight queues, chosen in turn, and are woken in batches: each time a batch of tags
/// has come free, as many waiters, from one queue after the other. A waiter that is woken tries
/// again, in competition with all others, and may have to wait again.
///
/// - **[woken-takes-next-queue]** A waiter that is woken takes the next queue before it tries
///   again. If it gets a tag, nobody sleeps there instead. This is how Linux chooses, and it
///   decides who waits behind whom.
///
/// After a wake-up of fewer waiters than a batch, the next one begins with the same queue, as in
/// Linux: the search for more has gone once round.
///
/// [sleeper-implies-tag-in-use]: at least as many puts are still to come as tags are in use. When
/// they cannot complete a batch any more, all waiters are woken. That also makes up for
/// waiters that are woken and then take no tag here.
#[derive(Clone, Debug)]
pub struct Waiters {
    slots: Vec<Slot>,
    unused: Fifo,
    queues: [Fifo; QUEUES],
    woken: Fifo,
    /// The queue on which the next waiter sleeps.
    wait_at: usize,
    /// The queue with which the next wake-up begins.
    wake_at: usize,
    sleeping: u32,
    batch: u32,
    /// Puts since the last wake-up, while a waiter slept.
    freed: u32,
}

impl Waiters {
    /// Returns memory for `max` waiters; for `usable` see [`Self::resize`].
    ///
    /// # Panics
    ///
    /// Panics if `max` is [`u32::MAX`].
    #[must_use]
    pub fn new(usable: u32, max: u32) -> Self {
        assert!(max < NONE, "the number of waiters must leave one index free");
        let mut waiters = Self {
            slots: alloc::vec![Slot { waiter: 0, next: NONE }; max as usize],
            unused: Fifo::EMPTY,
            queues: [Fifo::EMPTY; QUEUES],
            woken: Fifo::EMPTY,
            wait_at: 0,
            wake_at: 0,
            sleeping: 0,
            batch: batch(usable),
            freed: 0,
        };
        for slot in 0..max {
            waiters.unused.push(&mut waiters.slots, slot);
        }
        waiters
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) const fn heap(max: u32) -> usize {
        max as usize * size_of::<Slot>()
    }

    /// Notes how many tags a waiter may come to hold: the smallest of depth, share among the users
    /// of the map, and limit. One eighth of `usable`, from 1 to 8, makes a batch.
    ///
    /// This decides how often waiters are woken, not whether.
    pub fn resize(&mut self, usable: u32) {
        self.batch = batch(usable);
    }

    /// Puts `waiter`, which was refused a tag, to sleep until [`Self::next_woken`] names it. A
    /// waiter registers once, and again only after it was woken.
    ///
    /// `in_use` is the number of tags in use now. If it is 0, the refusal is out of date and the
    /// waiter is woken immediately ([sleeper-implies-tag-in-use]).
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if as many waiters as there is memory for sleep or have not been named yet.
    pub fn wait(&mut self, waiter: u64, in_use: u32) -> Result<(), Full> {
        let slot = self.unused.pop(&self.slots).ok_or(Full)?;
        self.slots[slot as usize].waiter = waiter;
        self.queues[self.wait_at].push(&mut self.slots, slot);
        self.wait_at = (self.wait_at + 1) % QUEUES;
        self.sleeping += 1;
        // All tags came back between the refusal and this call: no put is left that would wake the
        // waiter.
        if in_use == 0 {
            self.wake_all();
        }
        Ok(())
    }

    /// Notes that a waiter that was woken has got a tag ([woken-takes-next-queue]).
    pub fn woken_got_tag(&mut self) {
        self.wait_at = (self.wait_at + 1) % QUEUES;
    }

    /// Notes that a tag came free and `in_use` are still in use. Call it for every put while a
    /// waiter sleeps. Returns whether [`Self::next_woken`] may have another waiter to name.
    #[inline(never)]
    pub fn freed(&mut self, in_use: u32) -> bool {
        if self.sleeping == 0 {
            return false;
        }
        // With 64 tags, each 8th put wakes 8 waiters, not each put one: those that are woken run
        // together.
        self.freed += 1;
        if self.freed >= self.batch {
            let freed = core::mem::take(&mut self.freed);
            self.wake_some(freed);
        }
        if self.freed + in_use < self.batch {
            self.wake_all(); // [sleeper-implies-tag-in-use]: no further batch will fill
        }
        debug_assert!(
            self.sleeping == 0 || in_use > 0,
            "[sleeper-implies-tag-in-use]: {} sleep",
            self.sleeping
        );
        self.has_woken()
    }

    /// Wakes all waiters: the reason for their refusal may have changed without a put.
    pub fn wake_all(&mut self) {
        self.wake_some(self.sleeping);
    }

    /// Wakes up to `count` waiters. If fewer sleep, that is one round of all queues, and the next
    /// batch begins where this one did.
    fn wake_some(&mut self, count: u32) {
        let mut left = count;
        for _ in 0..QUEUES {
            if left == 0 {
                break;
            }
            // One queue is emptied before the next one is looked at; the next wake-up begins behind
            // the last queue.
            let queue = &mut self.queues[self.wake_at];
            self.wake_at = (self.wake_at + 1) % QUEUES;
            while left > 0
                && let Some(slot) = queue.pop(&self.slots)
            {
                self.woken.push(&mut self.slots, slot);
                left -= 1;
            }
        }
        self.sleeping -= count - left;
        debug_assert!(left == 0 || self.sleeping == 0, "{} sleepers are left", self.sleeping);
    }

    /// Returns the next waiter to try again, in the order they were woken.
    pub fn next_woken(&mut self) -> Option<u64> {
        let slot = self.woken.pop(&self.slots)?;
        self.unused.push(&mut self.slots, slot);
        Some(self.slots[slot as usize].waiter)
    }

    /// Whether [`Self::next_woken`] has a waiter to name.
    #[must_use]
    pub const fn has_woken(&self) -> bool {
        self.woken.first != NONE
    }

    /// The number of sleeping waiters.
    #[must_use]
    pub const fn sleeping(&self) -> u32 {
        self.sleeping
    }
}

/// Returns how many puts one wake-up waits for: an eighth of the tags, within bounds.
fn batch(usable: u32) -> u32 {
    (usable / 8).clamp(1, BATCH_MAX)
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    waiter: u64,
    next: u32,
}

/// A singly linked list of slots.
#[derive(Clone, Copy, Debug)]
struct Fifo {
    first: u32,
    last: u32,
}

impl Fifo {
    const EMPTY: Self = Self { first: NONE, last: NONE };

    fn push(&mut self, slots: &mut [Slot], slot: u32) {
        slots[slot as usize].next = NONE;
        if self.first == NONE {
            self.first = slot;
        } else {
            slots[self.last as usize].next = slot;
        }
        self.last = slot;
    }

    fn pop(&mut self, slots: &[Slot]) -> Option<u32> {
        let slot = self.first;
        self.first = slots.get(slot as usize)?.next;
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::TagMap;
    use alloc::collections::BTreeSet;
    use alloc::{format, vec};

    fn woken(waiters: &mut Waiters) -> Vec<u64> {
        core::iter::from_fn(|| waiters.next_woken()).collect()
    }

    #[test]
    fn a_batch_is_an_eighth_of_the_tags_from_1_to_8() {
        let batches = [0, 1, 15, 16, 63, 64, 1000].map(batch);
        assert_eq!(batches, [1, 1, 1, 2, 7, 8, 8]);
    }

    #[test]
    fn each_batch_of_frees_wakes_as_many_from_one_queue_after_the_other() {
        let mut waiters = Waiters::new(16, 32);
        for waiter in 0..20 {
            waiters.wait(waiter, 16).unwrap();
        }
        waiters.freed(15);
        assert_eq!(woken(&mut waiters), [0; 0]);
        waiters.freed(14);
        assert_eq!(woken(&mut waiters), [0, 8]);
        waiters.freed(15);
        waiters.freed(14);
        assert_eq!(woken(&mut waiters), [1, 9]);
    }

    #[test]
    fn frees_that_cannot_fill_a_batch_wake_everybody() {
        let mut waiters = Waiters::new(64, 4);
        waiters.wait(7, 2).unwrap();
        waiters.wait(8, 2).unwrap();
        waiters.freed(1);
        assert_eq!(woken(&mut waiters), [7, 8]);
    }

    /// [woken-takes-next-queue]: waiter 0 was woken and has got a tag, so nobody sleeps on the
    /// third queue until the last waiter does, which overtakes the others.
    #[test]
    fn a_woken_waiter_that_gets_a_tag_leaves_its_queue_empty() {
        let mut waiters = Waiters::new(8, 16);
        waiters.wait(0, 8).unwrap();
        waiters.wait(1, 8).unwrap();
        waiters.freed(7);
        assert_eq!(woken(&mut waiters), [0]);
        waiters.woken_got_tag();
        for waiter in 2..10 {
            waiters.wait(waiter, 8).unwrap();
        }
        let woken = [(); 9].map(|()| {
            waiters.freed(7);
            woken(&mut waiters)[0]
        });
        assert_eq!(woken, [1, 9, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_refused_waiter_leaves_the_others_as_they_were() {
        let mut waiters = Waiters::new(1, 1);
        waiters.wait(1, 1).unwrap();
        let before = format!("{waiters:?}");
        assert_eq!(waiters.wait(2, 1), Err(Full));
        assert_eq!(format!("{waiters:?}"), before);
        waiters.freed(0);
        assert_eq!(waiters.wait(2, 1), Err(Full), "woken but not named");
        assert_eq!(waiters.next_woken(), Some(1));
        assert_eq!(waiters.wait(2, 1), Ok(()));
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Submitter {
        /// Wants a tag, having been refused this often.
        Wants,
        /// Was refused and has not registered yet.
        Refused,
        Sleeps,
        Holds(u32),
        Gone,
    }

    /// Every tag is in use at first, by requests of nobody here.
    #[derive(Clone, Debug)]
    struct World {
        tags: TagMap,
        waiters: Waiters,
        others: Vec<u32>,
        submitters: Vec<Submitter>,
    }

    impl World {
        fn new(tags: u32, submitters: usize, batch: u32) -> Self {
            let mut map = TagMap::new(tags, 0);
            let others = core::iter::from_fn(|| map.take(u32::MAX)).collect();
            let mut waiters = Waiters::new(tags, 3);
            waiters.batch = batch;
            let submitters = vec![Submitter::Wants; submitters];
            Self { tags: map, waiters, others, submitters }
        }

        fn put(&mut self, tag: u32) {
            self.tags.put(tag);
            self.waiters.freed(self.tags.in_use());
        }

        /// Every world that one step can lead to.
        fn next(&self) -> Vec<Self> {
            let mut next = Vec::new();
            let mut step = |change: &dyn Fn(&mut Self)| {
                let mut world = self.clone();
                change(&mut world);
                next.push(world);
            };
            if !self.others.is_empty() {
                step(&|world| {
                    let tag = world.others.pop().unwrap();
                    world.put(tag);
                });
            }
            if self.waiters.has_woken() {
                for then in [Submitter::Wants, Submitter::Gone] {
                    step(&|world| {
                        let waiter = usize::try_from(world.waiters.next_woken().unwrap()).unwrap();
                        assert_eq!(world.submitters[waiter], Submitter::Sleeps, "woken twice");
                        world.submitters[waiter] = then;
                    });
                }
            }
            for (at, &submitter) in self.submitters.iter().enumerate() {
                match submitter {
                    Submitter::Wants => step(&|world| {
                        world.submitters[at] = match world.tags.take(u32::MAX) {
                            Some(tag) => Submitter::Holds(tag),
                            None => Submitter::Refused,
                        };
                    }),
                    Submitter::Refused => step(&|world| {
                        world.waiters.wait(at as u64, world.tags.in_use()).unwrap();
                        world.submitters[at] = Submitter::Sleeps;
                    }),
                    Submitter::Holds(tag) => step(&|world| {
                        world.put(tag);
                        world.submitters[at] = Submitter::Gone;
                    }),
                    Submitter::Sleeps | Submitter::Gone => {}
                }
            }
            next
        }

        fn check(&self) {
            assert!(
                self.tags.in_use() > 0 || self.waiters.sleeping() == 0,
                "[sleeper-implies-tag-in-use]: {self:?}"
            );
        }
    }

    /// All orders of takes, refusals, registrations, frees and wake-ups, with woken waiters that
    /// try again and others that go away.
    #[test]
    fn no_wake_up_is_lost_in_any_order_of_steps() {
        let mut worlds = 0;
        for (tags, submitters, batch) in
            (1..=3).flat_map(|t| (1..=3).flat_map(move |s| (1..=4).map(move |b| (t, s, b))))
        {
            let mut seen = BTreeSet::new();
            let mut open = vec![World::new(tags, submitters, batch)];
            while let Some(world) = open.pop() {
                if !seen.insert(format!("{world:?}")) {
                    continue;
                }
                world.check();
                let next = world.next();
                if next.is_empty() {
                    let gone = world.submitters.iter().all(|s| *s == Submitter::Gone);
                    assert!(gone, "stuck: {world:?}");
                }
                open.extend(next);
            }
            worlds += seen.len();
        }
        assert!(worlds > 10_000, "only {worlds} worlds were visited");
    }
}
