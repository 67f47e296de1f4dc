//! Memory that tracks which values of each word are durable or may be.
//!
//! - A crash leaves, for each aligned word of eight bytes independently, any of the values that the
//!   word has had since it was last certainly durable: caches evict lines as they like, and keep
//!   the order of values only within a word.
//! - Bytes that a thread writes, zeroes or writes back are durable, or newer values of their words
//!   are, once the same thread's next fence has returned ([fence-makes-durable]). A fence does
//!   nothing for the write-backs of another thread.
//! - `store` alone never makes anything durable. `write_back` covers exactly the words of the bytes
//!   it names, not the rest of their cache lines.
//! - A bad block cannot be read until it was zeroed as a whole. Until that is durable, a crash may
//!   leave the block bad. A write to it is refused, or succeeds and leaves it bad.

use super::omit::{Fencing, Omission, Region, WriteBack};
use blockyard_btt::layout::INFO_BYTES;
use std::collections::BTreeMap;

pub(crate) const WORD: u64 = 8;

/// A word with several values that may be durable: the one that certainly was, and all later ones,
/// with the times of their stores.
#[derive(Clone, Debug)]
struct Open {
    values: Vec<u64>,
    times: Vec<u64>,
}

/// What a thread did since its last fence.
#[derive(Clone, Debug, Default)]
struct Since {
    /// Words that become durable, and when they were written back.
    covered: BTreeMap<u64, u64>,
    /// The positions of stored words.
    stored: Vec<u64>,
    /// The region that was last stored or written, apart from data.
    last: Option<Region>,
}

/// The memory. See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    /// The last values of all words that were set.
    latest: BTreeMap<u64, u64>,
    open: BTreeMap<u64, Open>,
    /// The number of stores.
    time: u64,
    since: Vec<Since>,
    bad: Vec<Bad>,
    regions: Regions,
    omission: Option<Omission>,
}

/// Bytes that the medium lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadBlock {
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Writes fail too.
    pub(crate) refuses: bool,
}

/// A bad block, and the thread that zeroed it.
#[derive(Clone, Copy, Debug)]
struct Bad {
    block: BadBlock,
    repaired_by: Option<usize>,
}

impl Bad {
    /// Whether it is still bad, and overlaps these bytes.
    fn has(&self, at: u64, len: u64) -> bool {
        let BadBlock { at: start, len: bytes, .. } = self.block;
        self.repaired_by.is_none() && start < at + len && at < start + bytes
    }
}

/// The positions of the arenas in the memory, and of the parts within an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regions {
    pub(crate) len: u64,
    /// First byte of the first arena.
    pub(crate) first: u64,
    /// Bytes of an arena.
    pub(crate) arena: u64,
    pub(crate) map: u64,
    pub(crate) log: u64,
    pub(crate) end: u64,
}

impl Regions {
    pub(crate) fn of(self, at: u64) -> Region {
        match (at - self.first) % self.arena {
            at if at < INFO_BYTES => Region::Info,
            at if at >= self.end => Region::Copy,
            at if at < self.map => Region::Data,
            at if at < self.log => Region::Map,
            at if at % 16 < WORD => Region::LogFirst,
            _ => Region::LogSecond,
        }
    }
}

impl Recorder {
    /// Returns durable zeroes, for `threads` threads.
    pub(crate) fn new(regions: Regions, threads: usize, omission: Option<Omission>) -> Self {
        Self {
            latest: BTreeMap::new(),
            open: BTreeMap::new(),
            time: 0,
            since: vec![Since::default(); threads],
            bad: Vec::new(),
            regions,
            omission,
        }
    }

    pub(crate) fn regions(&self) -> Regions {
        self.regions
    }

    /// Sets a word that is durable from the start.
    pub(crate) fn preset(&mut self, at: u64, value: u64) {
        assert!(at.is_multiple_of(WORD) && !self.open.contains_key(&at));
        self.latest.insert(at, value);
    }

    /// Makes bytes bad from the start.
    pub(crate) fn lose(&mut self, block: BadBlock) {
        self.bad.push(Bad { block, repaired_by: None });
    }

    /// Whether some of these bytes cannot be read.
    pub(crate) fn is_bad(&self, at: u64, len: u64) -> bool {
        self.bad.iter().any(|bad| bad.has(at, len))
    }

    /// Whether these bytes cannot be written.
    pub(crate) fn refuses(&self, at: u64, len: u64) -> bool {
        self.bad.iter().any(|bad| bad.block.refuses && bad.has(at, len))
    }

    /// Returns the positions of blocks that were bad, and whether they still are; a crash may leave
    /// all so.
    pub(crate) fn bad(&self) -> impl Iterator<Item = (u64, bool)> {
        self.bad.iter().map(|bad| (bad.block.at, bad.repaired_by.is_none()))
    }

    /// The last value of a word.
    pub(crate) fn word(&self, at: u64) -> u64 {
        self.latest.get(&(at / WORD * WORD)).copied().unwrap_or(0)
    }

    /// Returns the words with several values that may be durable, and these values.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.open.iter().map(|(&at, open)| (at, &open.values[..]))
    }

    /// Returns the last values of `count` words from `at` on.
    pub(crate) fn words(&self, at: u64, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        for (&word_at, &value) in self.latest.range(at..at + count as u64 * WORD) {
            words[usize::try_from((word_at - at) / WORD).expect("within `words`")] = value;
        }
        words
    }

    /// Returns the memory after a crash, with the value that `pick` chooses for each open word.
    pub(crate) fn crashed(&self, pick: &mut impl FnMut(u64, &[u64]) -> u64) -> Self {
        let mut left = Self::new(self.regions, self.since.len(), None);
        left.latest.clone_from(&self.latest);
        left.latest.extend(self.open().map(|(at, values)| (at, pick(at, values))));
        left
    }

    pub(crate) fn read(&self, at: u64, to: &mut [u8]) {
        to.fill(0);
        let end = at + to.len() as u64;
        for (&word_at, &value) in self.latest.range(at / WORD * WORD..end) {
            let bytes = value.to_le_bytes();
            for (place, byte) in (word_at..).zip(bytes) {
                if (at..end).contains(&place) {
                    to[usize::try_from(place - at).expect("within `to`")] = byte;
                }
            }
        }
    }

    fn set(&mut self, at: u64, value: u64) {
        let before = self.word(at);
        if before == value {
            return;
        }
        self.time += 1;
        let open =
            self.open.entry(at).or_insert_with(|| Open { values: vec![before], times: vec![0] });
        open.values.push(value);
        open.times.push(self.time);
        self.latest.insert(at, value);
    }

    /// Changes bytes, word by word.
    fn merge(&mut self, at: u64, from: &[u8]) {
        let end = at + from.len() as u64;
        for word_at in (at / WORD * WORD..end).step_by(8) {
            let mut bytes = self.word(word_at).to_le_bytes();
            for (place, byte) in (word_at..).zip(&mut bytes) {
                if (at..end).contains(&place) {
                    *byte = from[usize::try_from(place - at).expect("within `from`")];
                }
            }
            self.set(word_at, u64::from_le_bytes(bytes));
        }
    }

    fn cover(&mut self, thread: usize, at: u64, len: u64) {
        let words = at / WORD * WORD..at + len;
        for (&word_at, _) in self.open.range(words) {
            self.since[thread].covered.insert(word_at, self.time);
        }
    }

    pub(crate) fn write(&mut self, thread: usize, at: u64, from: &[u8]) {
        self.merge(at, from);
        let region = self.regions.of(at);
        if region != Region::Data {
            self.since[thread].last = Some(region);
        }
        if !self.leaves_out(Omission::data) {
            self.cover(thread, at, from.len() as u64);
        }
    }

    /// Zeroes bytes, which repairs bad blocks.
    pub(crate) fn zero(&mut self, thread: usize, at: u64, len: u64) {
        if !self.leaves_out(Omission::mending) {
            for bad in self
                .bad
                .iter_mut()
                .filter(|bad| at <= bad.block.at && bad.block.at + bad.block.len <= at + len)
            {
                bad.repaired_by = Some(thread);
            }
        }
        self.write(thread, at, &vec![0; usize::try_from(len).expect("length of a small range")]);
    }

    pub(crate) fn store(&mut self, thread: usize, at: u64, from: &[u8]) {
        assert!(at.is_multiple_of(from.len() as u64), "[words-are-atomic]: words are aligned");
        self.merge(at, from);
        let since = &mut self.since[thread];
        since.stored.push(at);
        since.last = Some(self.regions.of(at));
    }

    pub(crate) fn write_back(&mut self, thread: usize, at: u64, len: u64) {
        let own = self.since[thread].stored.iter().any(|stored| (at..at + len).contains(stored));
        let kind = WriteBack { region: self.regions.of(at), own };
        if self.leaves_out(|omission| omission.write_back(kind)) {
            return;
        }
        self.cover(thread, at, len);
    }

    pub(crate) fn fence(&mut self, thread: usize) {
        let behind = Fencing { last: self.since[thread].last };
        let since = core::mem::take(&mut self.since[thread]);
        if self.leaves_out(|omission| omission.fence(behind)) {
            // The write-backs before an omitted fence become durable at the next fence.
            self.since[thread].covered = since.covered;
            return;
        }
        self.bad.retain(|bad| bad.repaired_by != Some(thread));
        for (at, time) in since.covered {
            let Some(open) = self.open.get_mut(&at) else { continue };
            let durable = open.times.iter().rposition(|&stored| stored <= time).unwrap_or(0);
            open.values.drain(..durable);
            open.times.drain(..durable);
            if open.values.len() == 1 {
                self.open.remove(&at);
            }
        }
    }

    fn leaves_out(&self, is: impl Fn(Omission) -> bool) -> bool {
        self.omission.is_some_and(is)
    }
}
