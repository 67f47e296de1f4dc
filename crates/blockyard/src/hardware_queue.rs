//! Hardware queues: the last stage before the driver.
//!
//! A hardware queue (*hctx*) holds what the stage needs to remember between runs: the dispatch
//! list, how busy the device has been, whether somebody must run it again, and which software
//! queues feed it. What a run does with it is in
//! [`request_queue`](crate::request_queue), the one place that names every stage.
//!
//! # Rules (cited by number in the code and in the simulator's checkers)
//!
//! - **[dispatch-list-first]** While the dispatch list holds a request, nothing leaves the elevator; only
//!   [`Dispatch::DrainAll`](crate::policy::Dispatch::DrainAll), kept for comparison, breaks this.
//! - **[budget-given-back]** Budget is taken before a request leaves the elevator, and is given back on every path
//!   that does not end with the driver owning the request.
//! - **[tag-only-in-driver]** With an elevator, a driver tag is held only while the driver owns the request: a
//!   refused request gives its tag back before it joins the dispatch list. Without one the driver
//!   tag is the request's own from submission on.
//! - **[no-lost-wake-up]** No wake-up is lost. A run that stops while there is work either sets the restart mark,
//!   which a completion of the queue honours, or, for what queues share, is registered with the
//!   host; for what no completion gives back, and with nothing in flight that could complete, it
//!   sets the retry instant.
//! - **[direct-requests-first]** What passes the elevator by (flushes, data behind a flush, passthrough) is offered
//!   before everything else: it may be what the rest waits for. Only what lacks a reserved tag stands
//!   aside, as others do not need one.
//! - **[no-overtaking-staged]** Without an elevator a request may go to the driver past the software queues, but past
//!   nothing that waits in those of its hardware queue: it is staged behind, and the queue is run. Else
//!   the submitter whose request has just ended would take the room each time before the run that the
//!   same completion has asked for, and who waits would wait for good.

use crate::bio::{Bio, Flags};
use crate::flush::FlushQueue;
use crate::policy::BusyTrack;
use crate::request::List;
use crate::time::Duration;
use crate::trace::Hold;
use crate::unit::{CpuId, HctxId};
use alloc::vec::Vec;

/// How long a run waits before it tries again when no completion will make room: 3 ms, as in Linux.
pub const RETRY_DELAY: Duration = Duration::from_ms(3);

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "after `Batch` the hardware queue must be run again, or requests wait for nothing"]
pub enum RunStop {
    /// Nothing is left to send.
    Idle,
    /// Something is left and cannot go before the event that this names.
    Held(Hold),
    /// As many requests as one run may send have gone; the queue is marked to be run again.
    Batch,
}

/// A hardware queue that is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which.
    pub hctx: HctxId,
    /// Whether Linux would leave it to a worker thread rather than to whoever caused it. Nothing
    /// but latency depends on it.
    pub deferred: bool,
}

/// Which hardware queue serves each processor, for each kind of bio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMap {
    /// For everything that has no map of its own.
    pub default: Vec<HctxId>,
    /// For reads; empty: they use the default map.
    pub read: Vec<HctxId>,
    /// For polled bios; empty: they use the default map.
    pub poll: Vec<HctxId>,
}

impl QueueMap {
    /// `cpus` processors spread evenly, in neighbouring groups, over `hctxs` hardware queues that
    /// serve every kind.
    ///
    /// # Panics
    ///
    /// If either number is 0.
    #[must_use]
    pub fn even(cpus: u16, hctxs: u16) -> Self {
        assert!(cpus > 0 && hctxs > 0, "a queue map needs a processor and a hardware queue");
        Self { default: spread(cpus, 0, hctxs.min(cpus)), read: Vec::new(), poll: Vec::new() }
    }

    /// As [`Self::even`], with `reads` hardware queues of their own for reads and `polls` for
    /// polled bios, numbered behind the `default` ones. 0 of a kind: it uses the default map.
    ///
    /// # Panics
    ///
    /// If `cpus` or `default` is 0, or the sum of the kinds exceeds 65535.
    #[must_use]
    pub fn with_kinds(cpus: u16, default: u16, reads: u16, polls: u16) -> Self {
        let behind_default = default;
        let behind_reads = default.checked_add(reads).expect("at most 65535 hardware queues");
        assert!(behind_reads.checked_add(polls).is_some(), "at most 65535 hardware queues");
        let kind = |first, count: u16| {
            if count == 0 { Vec::new() } else { spread(cpus, first, count.min(cpus)) }
        };
        Self {
            read: kind(behind_default, reads),
            poll: kind(behind_reads, polls),
            ..Self::even(cpus, default)
        }
    }

    pub(crate) fn kinds(&self) -> [&[HctxId]; 3] {
        [&self.default, &self.read, &self.poll]
    }

    /// How many hardware queues it names.
    pub(crate) fn hctxs(&self) -> usize {
        let named = self.kinds().into_iter().flatten().map(|hctx| hctx.index() + 1);
        named.max().expect("a map serves at least one processor")
    }

    /// The software queues there may be: one for each processor and kind.
    pub(crate) fn ctxs(&self) -> usize {
        self.kinds().len() * self.default.len()
    }

    /// The kind of map by which `cpu` uses `hctx`, as an index into [`Self::kinds`].
    ///
    /// # Panics
    ///
    /// If it does not.
    pub(crate) fn kind_serving(&self, cpu: CpuId, hctx: HctxId) -> usize {
        let serves = |kind: &&[HctxId]| kind.get(cpu.index()) == Some(&hctx);
        let kind = self.kinds().iter().position(serves);
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

/// `cpus` processors in neighbouring groups over `count` hardware queues from `first` on.
fn spread(cpus: u16, first: u16, count: u16) -> Vec<HctxId> {
    let share = |cpu: u16| {
        let at = u32::from(cpu) * u32::from(count) / u32::from(cpus);
        HctxId(first + u16::try_from(at).expect("below the count, which is 16 bits"))
    };
    (0..cpus).map(share).collect()
}

/// How busy the device has been, as `busy` of the design counts it.
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

    /// Whether nothing may be pulled at all.
    pub(crate) const fn bars_pulling(self) -> bool {
        matches!(self.track, BusyTrack::Bit) && self.level > 0
    }

    /// A run ended with a refusal, or with everything accepted.
    ///
    /// The average saturates at 9 and is back at 0 after eight clean runs.
    pub(crate) const fn run_ended(&mut self, refused: bool) {
        self.level = match self.track {
            BusyTrack::Off => 0,
            BusyTrack::Bit => refused as u8,
            BusyTrack::Ewma => (7 * self.level + if refused { 16 } else { 0 }) / 8,
        };
    }

    /// A completion makes progress possible.
    pub(crate) const fn completed(&mut self) {
        if matches!(self.track, BusyTrack::Bit) {
            self.level = 0;
        }
    }
}

/// What one hardware queue remembers between runs.
#[derive(Debug)]
pub(crate) struct HardwareQueue {
    /// Requests that pass the elevator by; first in every run ([direct-requests-first]).
    pub(crate) direct: List,
    /// Those of them that the latest run found no reserved tag for.
    pub(crate) aside: List,
    /// Requests taken out of the elevator but not accepted; next.
    pub(crate) dispatch: List,
    pub(crate) flush: FlushQueue,
    pub(crate) busy: BusyState,
    /// The software queues that feed this one, and which of them hold requests.
    pub(crate) feeders: Vec<u32>,
    pub(crate) pending: Bits,
    /// Where the next round over the feeders begins.
    pub(crate) next_feeder: usize,
}

impl HardwareQueue {
    pub(crate) fn new(busy: BusyTrack, feeders: Vec<u32>) -> Self {
        Self {
            direct: List::new(),
            aside: List::new(),
            dispatch: List::new(),
            flush: FlushQueue::default(),
            busy: BusyState::new(busy),
            pending: Bits::new(feeders.len()),
            feeders,
            next_feeder: 0,
        }
    }

    /// The next feeder that holds requests, counted from where the last round stopped.
    pub(crate) fn next_pending_feeder(&mut self) -> Option<usize> {
        let at = self.pending.next_wrapping(self.next_feeder)?;
        self.next_feeder = (at + 1) % self.feeders.len();
        Some(at)
    }
}

/// A set of small numbers.
#[derive(Debug)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn new(len: usize) -> Self {
        Self { words: alloc::vec![0; len.div_ceil(64)] }
    }

    pub(crate) fn insert(&mut self, at: usize) {
        self.words[at / 64] |= 1 << (at % 64);
    }

    pub(crate) fn remove(&mut self, at: usize) {
        self.words[at / 64] &= !(1 << (at % 64));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The first number at or after `from`, else the first at all.
    pub(crate) fn next_wrapping(&self, from: usize) -> Option<usize> {
        self.next_from(from).or_else(|| self.next_from(0))
    }

    fn next_from(&self, from: usize) -> Option<usize> {
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
    fn the_walk_over_set_bits_starts_where_told_and_wraps_once() {
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
