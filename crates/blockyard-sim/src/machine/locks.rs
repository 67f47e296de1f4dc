//! Which locks and contended words a design has, and where each of them is in one table.

use blockyard::policy::{Dispatch, ElevatorKind, Model, Policies};
use blockyard::tag::TagSetConfig;
use blockyard::time::Duration;
use blockyard::trace::Event;
use blockyard::unit::QueueId;
use core::ops::Range;
use serde::Serialize;

use super::lock::{Contended, CountsByHolder, LockCounts};

/// A kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// The single lock of a queue, over everything.
    Queue,
    /// The lock of a queue's elevator.
    Elevator,
    /// The lock of a list of requests that the driver refused.
    DispatchList,
    /// The lock of a list of requests that no run has filed in the elevator.
    InsertionList,
    /// The words of the maps of tags.
    TagWords,
}

impl LockKind {
    /// Returns its name in sentences.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "the queue's lock",
            Self::Elevator => "the scheduler's lock",
            Self::DispatchList => "the dispatch list's lock",
            Self::InsertionList => "the insertion list's lock",
            Self::TagWords => "the words of the tag map",
        }
    }
}

/// The use of all locks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockUse {
    /// The kind.
    pub kind: LockKind,
    /// The counts of all of them together, by holder; the longest hold and wait are those of one.
    pub all: CountsByHolder,
    /// The counts of the one that was held for the longest time, by holder.
    pub busiest: CountsByHolder,
}

/// A map of tags for each hardware queue, or one that they share. Each word has cache lines of its
/// own.
#[derive(Clone, Copy, Debug)]
struct Maps {
    first: usize,
    /// Maps of each queue; 0: all queues share them.
    of_queue: usize,
    shared: bool,
    words: usize,
}

impl Maps {
    /// Returns the word that the submitter of `event` uses: each processor keeps to one word, as
    /// the hints in Linux's maps make it do while tags are free.
    fn word_of(&self, event: &Event<'_>) -> usize {
        let hctx = if self.shared { 0 } else { event.hctx.index() };
        let map = self.of_queue * event.queue.index() + hctx;
        self.first + map * self.words + event.cpu.index() % self.words
    }
}

/// The words of a map of `depth` tags in Linux: 64 tags a word, or fewer so that there are at least
/// four words.
const fn words_of(depth: u32) -> usize {
    let mut shift = 6;
    // Four words of 8 tags would hold more than 31 tags, so a map of 31 tags has words of 4.
    while shift > 0 && depth >= 4 && (4 << shift) > depth {
        shift -= 1;
    }
    depth.div_ceil(1 << shift) as usize
}

/// The places of locks in one table.
///
/// Without the cost of moving a cache line, tag words and dispatch lists cost nothing, and have no
/// place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sites {
    queue_kind: LockKind,
    queues: usize,
    hctxs: usize,
    shared_list: bool,
    lists: usize,
    insertions: usize,
    driver_tags: Option<Maps>,
    sched_tags: Option<Maps>,
    all: usize,
}

impl Sites {
    /// Returns the places under `policies` with `tags`. Tag words and dispatch lists have places if
    /// `lines_move`.
    #[must_use]
    pub(crate) fn new(policies: &Policies, tags: &TagSetConfig, lines_move: bool) -> Self {
        let queues = usize::from(tags.queues);
        let hctxs = usize::from(tags.hctxs);
        assert!(queues > 0 && hctxs > 0, "{queues} queues of {hctxs} hardware queues");
        let single = policies.model == Model::SingleLock;
        let shared_list = policies.dispatch == Dispatch::SharedList;
        let mut sites = Self {
            queue_kind: if single { LockKind::Queue } else { LockKind::Elevator },
            queues,
            hctxs,
            shared_list,
            lists: 0,
            insertions: 0,
            driver_tags: None,
            sched_tags: None,
            all: queues,
        };
        if single || !lines_move {
            return sites;
        }
        sites.lists = if shared_list { queues } else { queues * hctxs };
        sites.insertions = if policies.elevator.lists_insertions() { queues } else { 0 };
        sites.all += sites.lists + sites.insertions;
        sites.driver_tags = Some(sites.add_maps(tags.depth.into(), 0, tags.shared_over_hctxs));
        if policies.elevator != ElevatorKind::None {
            let depth = policies.sched_depth.tags(tags.depth.into());
            sites.sched_tags = Some(sites.add_maps(depth, hctxs, false));
        }
        sites
    }

    /// Adds maps of `depth` tags, `of_queue` for each queue, or one for each hardware queue of the
    /// host if that is 0.
    fn add_maps(&mut self, depth: u32, of_queue: usize, shared: bool) -> Maps {
        let words = words_of(depth);
        let first = self.all;
        let maps = if of_queue > 0 { self.queues * of_queue } else { self.hctxs };
        self.all += maps * words;
        Maps { first, of_queue, shared, words }
    }

    /// Returns the number of places.
    #[must_use]
    pub(crate) const fn all(&self) -> usize {
        self.all
    }

    /// Returns the place of the lock of `queue`.
    #[must_use]
    pub(crate) fn queue(&self, queue: QueueId) -> usize {
        debug_assert!(queue.index() < self.queues, "{queue:?} of {}", self.queues);
        queue.index()
    }

    /// Whether the lock at `site` is one that work asks for before it begins.
    #[must_use]
    pub(crate) const fn is_queue(&self, site: usize) -> bool {
        site < self.queues
    }

    /// Returns the place of the dispatch list of `event`.
    pub(super) fn list(&self, event: &Event<'_>) -> Option<usize> {
        let of_queue = if self.shared_list { 1 } else { self.hctxs };
        let hctx = if self.shared_list { 0 } else { event.hctx.index() };
        (self.lists > 0).then(|| self.queues + event.queue.index() * of_queue + hctx)
    }

    /// Returns the place of the insertion list of `event`, if the design has one.
    pub(super) fn insertions(&self, event: &Event<'_>) -> Option<usize> {
        (self.insertions > 0).then(|| self.queues + self.lists + event.queue.index())
    }

    /// Returns the place of the driver tag's word of `event`.
    pub(super) fn driver_tag(&self, event: &Event<'_>) -> Option<usize> {
        self.driver_tags.map(|maps| maps.word_of(event))
    }

    /// Whether there is an elevator, so that scheduler tags have places.
    pub(super) const fn has_sched_tags(&self) -> bool {
        self.sched_tags.is_some()
    }

    /// Returns the place of the scheduler tag's word of `event`, if there is an elevator.
    pub(super) fn sched_tag(&self, event: &Event<'_>) -> Option<usize> {
        self.sched_tags.map(|maps| maps.word_of(event))
    }

    /// Returns the use of each kind of lock that was used.
    #[must_use]
    pub(crate) fn uses(&self, locks: &[Contended]) -> Vec<LockUse> {
        debug_assert_eq!(locks.len(), self.all, "every lock has a place");
        let lists = self.queues + self.lists;
        let insertions = lists + self.insertions;
        let kinds: [(LockKind, Range<usize>); 4] = [
            (self.queue_kind, 0..self.queues),
            (LockKind::DispatchList, self.queues..lists),
            (LockKind::InsertionList, lists..insertions),
            (LockKind::TagWords, insertions..self.all),
        ];
        kinds
            .into_iter()
            .map(|(kind, range)| LockUse::of(kind, &locks[range]))
            .filter(|of| LockCounts::sum(&of.all).acquisitions > 0)
            .collect()
    }
}

impl LockUse {
    fn of(kind: LockKind, locks: &[Contended]) -> Self {
        let mut all = CountsByHolder::default();
        let mut busiest = CountsByHolder::default();
        for lock in locks {
            let one = lock.counts();
            for (sum, of_one) in all.iter_mut().zip(one) {
                *sum = sum.and(*of_one);
            }
            // Of locks that were held for the same time, the last counts.
            if held_in_all(one) >= held_in_all(&busiest) {
                busiest = *one;
            }
        }
        debug_assert!(
            held_in_all(&busiest) <= held_in_all(&all),
            "one of them is all of them at most"
        );
        Self { kind, all, busiest }
    }
}

/// Returns the time for which a lock was held by all holders together.
fn held_in_all(of: &CountsByHolder) -> Duration {
    LockCounts::sum(of).held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_four_words_or_one_for_64_tags() {
        let depths = [1, 4, 31, 62, 64, 255, 256, 257, 1023];
        assert_eq!(depths.map(words_of), [1, 4, 8, 8, 4, 8, 4, 5, 16]);
    }

    #[test]
    fn every_lock_has_a_place_of_its_own() {
        let tags = TagSetConfig { hctxs: 2, queues: 3, ..TagSetConfig::single(64) };
        fn all(policies: &Policies, lines_move: bool, tags: &TagSetConfig) -> usize {
            Sites::new(policies, tags, lines_move).all()
        }
        assert_eq!(all(&Policies::mq_deadline(), false, &tags), 3);
        // Locks of queues, lists, words of driver tags, and words of 128 scheduler tags.
        assert_eq!(all(&Policies::NONE, true, &tags), 3 + 6 + 2 * 4);
        assert_eq!(all(&Policies::mq_deadline(), true, &tags), 3 + 6 + 2 * 4 + 6 * 4);
        let shared = Policies { dispatch: Dispatch::SharedList, ..Policies::NONE };
        assert_eq!(all(&shared, true, &tags), 3 + 3 + 2 * 4);
        let single = Policies { model: Model::SingleLock, ..Policies::mq_deadline() };
        assert_eq!(all(&single, true, &tags), 3);
    }
}
