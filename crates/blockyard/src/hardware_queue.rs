//! Hardware queues: the last stage before the driver.
//!
//! A hardware queue (*hctx*) holds what the stage remembers between runs: the dispatch list, how
//! busy the device has been, and which software queues feed it. What a run does is in
//! [`request_queue`](crate::request_queue), the one place that names every stage.
//!
//! # Rules (cited by name in the code, its tests and the simulator's checkers)
//!
//! - **[dispatch-list-first]** No request leaves the elevator while the dispatch list holds one.
//!   Only [`Dispatch::DrainAll`](crate::policy::Dispatch::DrainAll), kept for comparison, breaks
//!   this.
//! - **[budget-given-back]** Budget is taken before a request leaves the elevator. It is given back
//!   exactly once, also on every path that does not end with the driver owning the request.
//! - **[tag-only-in-driver]** With an elevator, a request holds a driver tag only while the driver
//!   owns it: a refused request gives its tag back before it joins the dispatch list. Without an
//!   elevator a request keeps its driver tag from submission to its end.
//! - **[no-lost-wake-up]** No wake-up is lost. A run that stops while there is work sets the
//!   restart mark, which a completion of the queue honours, or is registered with the host if it
//!   lacks something that queues share. If no completion can help, because what ran out is not
//!   given back by one or nothing is in flight, the run sets the retry instant. So does a run to
//!   which an elevator gives nothing that says itself at which completions to ask it.
//! - **[direct-requests-first]** Requests that bypass the elevator (flushes, data behind a flush,
//!   passthrough) are offered before all others, which may be waiting for them. Only a request that
//!   lacks a reserved tag steps lacking_reserved, because others do not need one.
//! - **[no-overtaking-staged]** Without an elevator a request may bypass the software queues, but
//!   never overtakes a request that waits in those of its hardware queue: it is staged behind them
//!   and the queue is run. Otherwise a submitter whose request has just ended could take the free
//!   room each time before the run that the same completion asked for, and the waiting request
//!   would starve.

use crate::bio::{Bio, Flags};
use crate::flush::FlushQueue;
use crate::policy::BusyTrack;
use crate::request::List;
use crate::time::Duration;
use crate::trace::Hold;
use crate::unit::{CpuId, HctxId};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The time before a run is tried again when no completion will make room: 3 ms, as in Linux.
pub const RETRY_DELAY: Duration = Duration::from_ms(3);

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "after `Batch` the hardware queue must be run again, or requests wait for nothing"]
pub enum RunStop {
    /// Nothing is left to send.
    Idle,
    /// Requests are left that cannot move before the event that this names.
    Held(Hold),
    /// The run has sent as many requests as one run may; the hardware queue is marked to run again.
    Batch,
}

/// A hardware queue that is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The hardware queue.
    pub hctx: HctxId,
    /// Whether Linux would leave the run to a worker thread. Only latency depends on it.
    pub deferred: bool,
}

/// Which hardware queue serves each processor, for each kind of bio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMap {
    /// For all bios whose kind has no map of its own.
    pub default: Vec<HctxId>,
    /// For reads; if empty, reads use the default map.
    pub read: Vec<HctxId>,
    /// For polled bios; if empty, they use the default map.
    pub poll: Vec<HctxId>,
}

impl QueueMap {
    /// Returns a map that spreads `cpus` processors evenly, in neighbouring groups, over `hctxs`
    /// hardware queues that serve every kind.
    ///
    /// # Panics
    ///
    /// Panics if either number is 0.
    #[must_use]
    pub fn even(cpus: u16, hctxs: u16) -> Self {
        assert!(cpus > 0 && hctxs > 0, "a queue map needs a processor and a hardware queue");
        Self { default: spread(cpus, 0, hctxs.min(cpus)), read: Vec::new(), poll: Vec::new() }
    }

    /// Like [`Self::even`], with `reads` hardware queues of their own for reads and `polls` for
    /// polled bios, numbered behind the `default` ones. A kind with 0 queues uses the default map.
    ///
    /// # Panics
    ///
    /// Panics if `cpus` or `default` is 0, or if the sum of the kinds exceeds 65535.
    #[must_use]
    pub fn with_kinds(cpus: u16, default: u16, reads: u16, polls: u16) -> Self {
        let behind_default = default;
        let behind_reads = default.checked_add(reads).expect("at most 65535 hardware queues");
        assert!(behind_reads.checked_add(polls).is_some(), "at most 65535 hardware queues");
        Self {
            read: spread(cpus, behind_default, reads.min(cpus)),
            poll: spread(cpus, behind_reads, polls.min(cpus)),
            ..Self::even(cpus, default)
        }
    }

    /// The heap that it takes, in bytes.
    pub(crate) fn heap(&self) -> usize {
        self.kinds().into_iter().map(size_of_val).sum()
    }

    /// The hardware queue of `cpu` in the map of `kind`, an index into [`Self::kinds`].
    #[inline]
    pub(crate) fn serving(&self, kind: usize, cpu: CpuId) -> HctxId {
        match kind {
            0 => self.default[cpu.index()],
            1 => self.read[cpu.index()],
            _ => self.poll[cpu.index()],
        }
    }

    pub(crate) fn kinds(&self) -> [&[HctxId]; 3] {
        [&self.default, &self.read, &self.poll]
    }

    /// The number of hardware queues that the map names.
    pub(crate) fn hctxs(&self) -> usize {
        let named = self.kinds().into_iter().flatten().map(|hctx| hctx.index() + 1);
        named.max().expect("a map serves at least one processor")
    }

    /// The number of possible software queues: one for each processor and kind.
    pub(crate) fn ctxs(&self) -> usize {
        self.kinds().len() * self.default.len()
    }

    /// The kind of map by which `cpu` uses `hctx`, as an index into [`Self::kinds`].
    ///
    /// # Panics
    ///
    /// Panics if `cpu` does not use `hctx`.
    pub(crate) fn kind_serving(&self, cpu: CpuId, hctx: HctxId) -> usize {
        let kind = self.kinds().iter().position(|kind| kind.get(cpu.index()) == Some(&hctx));
        kind.expect("a request's hardware queue serves its processor")
    }

    /// The kind of map that serves `bio`, as an index into [`Self::kinds`].
    pub(crate) fn kind_of(&self, bio: &Bio) -> usize {
        if bio.flags.contains(Flags::POLLED) && !self.poll.is_empty() {
            2
        } else if bio.op.is_read() && !self.read.is_empty() {
            1
        } else {
            0
        }
    }
}

/// Spreads `cpus` processors in neighbouring groups over `count` hardware queues from `first` on.
/// Returns no map if `count` is 0.
fn spread(cpus: u16, first: u16, count: u16) -> Vec<HctxId> {
    if count == 0 {
        return Vec::new();
    }
    // 8 processors on 3 hardware queues: 0, 0, 0, 1, 1, 1, 2, 2.
    let hctx_of = (0..cpus).map(|cpu| {
        let at = u32::from(cpu) * u32::from(count) / u32::from(cpus);
        HctxId(first + u16::try_from(at).expect("below the count, which is 16 bits"))
    });
    hctx_of.collect()
}

/// How busy the device has been, counted as `busy` of the design says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyState {
    track: BusyTrack,
    level: u8,
}

impl BusyState {
    pub(crate) const fn new(track: BusyTrack) -> Self {
        Self { track, level: 0 }
    }

    /// Whether the design counts the device as busy now.
    pub(crate) const fn is_busy(self) -> bool {
        self.level > 0
    }

    /// Notes that a run ended with a refusal, or with every request accepted.
    ///
    /// The average saturates at 9 and is back at 0 after eight clean runs.
    pub(crate) const fn run_ended(&mut self, refused: bool) {
        // With refusals only, the average goes 2, 3, 4, 5, 6, 7, 8, 9, 9; then clean runs take it
        // to 7, 6, 5, 4, 3, 2, 1, 0.
        self.level = match self.track {
            BusyTrack::Off => 0,
            BusyTrack::Bit => refused as u8,
            BusyTrack::Ewma => (7 * self.level + if refused { 16 } else { 0 }) / 8,
        };
    }

    /// Notes a completion, which makes progress possible.
    pub(crate) const fn completed(&mut self) {
        if matches!(self.track, BusyTrack::Bit) {
            self.level = 0;
        }
    }
}

/// The state that one hardware queue keeps between runs.
#[derive(Debug)]
pub(crate) struct HardwareQueue {
    /// Requests that bypass the elevator; first in every run ([direct-requests-first]).
    pub(crate) direct: List,
    /// Those of them for which the latest run found no reserved tag.
    pub(crate) lacking_reserved: List,
    /// Requests taken out of the elevator but not accepted; second in every run.
    pub(crate) dispatch: List,
    pub(crate) flush: FlushQueue,
    pub(crate) busy: BusyState,
    /// The software queues that feed this hardware queue, and which of them hold requests.
    pub(crate) feeders: Box<[u32]>,
    pub(crate) pending: Bits,
    /// Where the next round over the feeders begins.
    pub(crate) next_feeder: usize,
}

impl HardwareQueue {
    pub(crate) fn new(busy: BusyTrack, feeders: Box<[u32]>) -> Self {
        Self {
            direct: List::new(),
            lacking_reserved: List::new(),
            dispatch: List::new(),
            flush: FlushQueue::default(),
            busy: BusyState::new(busy),
            pending: Bits::new(feeders.len()),
            feeders,
            next_feeder: 0,
        }
    }

    /// The heap that one with this many `feeders` takes, in bytes.
    pub(crate) const fn heap(feeders: usize) -> usize {
        feeders * size_of::<u32>() + Bits::heap(feeders)
    }

    /// The number of requests on its lists, those that wait for flushes included.
    pub(crate) const fn len(&self) -> u32 {
        self.direct.len() + self.lacking_reserved.len() + self.dispatch.len() + self.flush.len()
    }

    /// Returns the next feeder that holds requests, counted from where the last round stopped.
    pub(crate) fn next_pending_feeder(&mut self) -> Option<usize> {
        debug_assert!(
            self.next_feeder <= self.feeders.len(),
            "feeder {} of {}",
            self.next_feeder,
            self.feeders.len()
        );
        let at = self.pending.next_wrapping(self.next_feeder)?;
        self.next_feeder = (at + 1) % self.feeders.len();
        Some(at)
    }
}

/// A set of small numbers.
#[derive(Debug)]
pub(crate) struct Bits {
    words: Vec<u64>,
    /// How many numbers are in the set: most calls on the path of an I/O find none.
    len: u32,
}

impl Bits {
    pub(crate) fn new(len: usize) -> Self {
        Self { words: alloc::vec![0; len.div_ceil(64)], len: 0 }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) const fn heap(len: usize) -> usize {
        len.div_ceil(64) * size_of::<u64>()
    }

    pub(crate) fn insert(&mut self, at: usize) {
        let word = &mut self.words[at / 64];
        let bit = 1 << (at % 64);
        self.len += u32::from(*word & bit == 0); // a number that is in the set counts once
        *word |= bit;
    }

    #[inline]
    pub(crate) fn remove(&mut self, at: usize) {
        if self.len > 0 {
            let word = &mut self.words[at / 64];
            let bit = 1 << (at % 64);
            self.len -= u32::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first number at or after `from`, or else the first at all.
    #[inline]
    pub(crate) fn next_wrapping(&self, from: usize) -> Option<usize> {
        if self.is_empty() {
            return None; // the usual case
        }
        self.next_from(from).or_else(|| self.next_from(0))
    }

    fn next_from(&self, from: usize) -> Option<usize> {
        // In the first word, the numbers before `from` do not count.
        let mut mask = u64::MAX << (from % 64);
        for (at, word) in self.words.iter().enumerate().skip(from / 64) {
            let left = word & mask;
            if left != 0 {
                return Some(at * 64 + left.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_average_saturates_at_nine_and_clears_after_eight_clean_runs() {
        let mut busy = BusyState::new(BusyTrack::Ewma);
        for _ in 0..100 {
            busy.run_ended(true);
        }
        assert_eq!(busy.level, 9);
        for clean in 1..=8 {
            assert!(busy.is_busy(), "busy before clean run {clean}");
            busy.run_ended(false);
        }
        assert!(!busy.is_busy());
    }

    #[test]
    fn the_search_for_a_set_bit_starts_at_its_argument_and_wraps_once() {
        let mut bits = Bits::new(130);
        for at in [3, 64, 129] {
            bits.insert(at);
        }
        assert_eq!(bits.next_wrapping(0), Some(3));
        assert_eq!(bits.next_wrapping(4), Some(64));
        assert_eq!(bits.next_wrapping(65), Some(129));
        bits.remove(129);
        assert_eq!(bits.next_wrapping(65), Some(3));
        bits.remove(3);
        bits.remove(64);
        assert_eq!(bits.next_wrapping(65), None);
        assert!(bits.is_empty());
    }

    /// A set that counted them twice would stay full for ever, or seem empty with a number in it.
    #[test]
    fn a_number_inserted_or_removed_twice_counts_once() {
        let mut bits = Bits::new(70);
        [69, 69, 3].into_iter().for_each(|at| bits.insert(at));
        [69, 69].into_iter().for_each(|at| bits.remove(at));
        assert_eq!((bits.is_empty(), bits.next_wrapping(0)), (false, Some(3)));
        bits.remove(3);
        assert_eq!((bits.is_empty(), bits.next_wrapping(0)), (true, None));
    }

    #[test]
    fn two_set_bits_are_found_from_everywhere() {
        let ats = [0, 1, 63, 64, 65, 127, 128, 129];
        for (low, high) in ats.iter().flat_map(|low| ats.map(|high| (*low, high))) {
            let mut bits = Bits::new(130);
            bits.insert(low);
            bits.insert(high);
            assert!(!bits.is_empty());
            for from in 0..130 {
                let right = (from..130).chain(0..from).find(|at| [low, high].contains(at));
                assert_eq!(bits.next_wrapping(from), right, "{low} and {high}, from {from}");
            }
        }
    }

    #[test]
    fn feeders_take_turns() {
        let mut hctx = HardwareQueue::new(BusyTrack::Off, Box::new([7, 8, 9]));
        assert_eq!(hctx.next_pending_feeder(), None);
        (0..3).for_each(|feeder| hctx.pending.insert(feeder));
        let round = [0; 7].map(|_| hctx.next_pending_feeder().expect("three are pending"));
        assert_eq!(round, [0, 1, 2, 0, 1, 2, 0]);
        hctx.pending.remove(1);
        assert_eq!(hctx.next_pending_feeder(), Some(2));
    }

    #[test]
    fn an_even_map_serves_every_processor_and_uses_every_queue() {
        for cpus in 1..=32 {
            for hctxs in 1..=cpus {
                let map = QueueMap::even(cpus, hctxs);
                let mut used = map.default.clone();
                used.dedup();
                assert_eq!(used.len(), usize::from(hctxs), "{cpus} processors, {hctxs} queues");
            }
        }
    }
}
