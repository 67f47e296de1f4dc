//! Memory that remembers what of it is durable, and what may be.
//!
//! # Rules
//!
//! - **M1.** Each aligned word of eight bytes has had a list of values since it was last surely durable. A
//!   crash leaves any one of them, for each word independently: caches evict what they want, and in the
//!   order in which the values came only as far as one word goes.
//! - **M2.** What a thread writes, zeroes or writes back is durable, or something newer in that word is, once
//!   the same thread's next fence has returned. A fence does nothing for what another thread wrote back.
//! - **M3.** `store` alone makes nothing durable, ever. `write_back` is of exactly the bytes it names, in
//!   whole words, and not of the rest of their cache line.
//! - **M4.** A bad block cannot be read until all of it was zeroed; until that is durable (M2), a crash may
//!   leave it bad. Writing to it is refused, or it is done and the block stays bad.

use super::omit::{Fencing, Omission, Region, WriteBack};
use blockyard_btt::layout::INFO_BYTES;
use std::collections::BTreeMap;

pub(crate) const WORD: u64 = 8;

/// A word of which more than one value may be durable: the one that surely was, and all since (M1), with
/// the times of their stores.
#[derive(Clone, Debug)]
struct Open {
    values: Vec<u64>,
    times: Vec<u64>,
}

/// What a thread did since its last fence.
#[derive(Clone, Debug, Default)]
struct Since {
    /// Words to become durable, and when they were written back (M2).
    covered: BTreeMap<u64, u64>,
    /// Where it stored words.
    stored: Vec<u64>,
    /// What it stored or wrote last, data apart.
    last: Option<Region>,
}

/// The memory. See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    /// The last values of words that were set.
    latest: BTreeMap<u64, u64>,
    open: BTreeMap<u64, Open>,
    /// Counts stores.
    time: u64,
    since: Vec<Since>,
    bad: Vec<Bad>,
    regions: Regions,
    omission: Option<Omission>,
}

/// Bytes that the medium lost (M4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadBlock {
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Writing fails, too.
    pub(crate) refuses: bool,
}

/// The same, and the thread that zeroed it.
#[derive(Clone, Copy, Debug)]
struct Bad {
    block: BadBlock,
    mended_by: Option<usize>,
}

impl Bad {
    /// Whether it is bad still, and has some of these bytes.
    fn has(&self, at: u64, len: u64) -> bool {
        let BadBlock { at: start, len: bytes, .. } = self.block;
        self.mended_by.is_none() && start < at + len && at < start + bytes
    }
}

/// Where in the memory its arenas are, and in each of them its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regions {
    pub(crate) len: u64,
    /// The first byte of the first arena.
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
    /// Nothing but zeroes, durable, for so many threads.
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

    /// Sets a word that is durable from the beginning.
    pub(crate) fn preset(&mut self, at: u64, value: u64) {
        assert!(at.is_multiple_of(WORD) && !self.open.contains_key(&at));
        self.latest.insert(at, value);
    }

    /// Bytes are bad from the beginning.
    pub(crate) fn lose(&mut self, block: BadBlock) {
        self.bad.push(Bad { block, mended_by: None });
    }

    /// Whether some of these bytes cannot be read.
    pub(crate) fn is_bad(&self, at: u64, len: u64) -> bool {
        self.bad.iter().any(|bad| bad.has(at, len))
    }

    /// Whether these bytes cannot be written.
    pub(crate) fn refuses(&self, at: u64, len: u64) -> bool {
        self.bad.iter().any(|bad| bad.block.refuses && bad.has(at, len))
    }

    /// Where blocks are that were bad, and whether they are, or a crash may only leave them so.
    pub(crate) fn bad(&self) -> impl Iterator<Item = (u64, bool)> {
        self.bad.iter().map(|bad| (bad.block.at, bad.mended_by.is_none()))
    }

    /// The last value of a word.
    pub(crate) fn word(&self, at: u64) -> u64 {
        self.latest.get(&(at / WORD * WORD)).copied().unwrap_or(0)
    }

    /// Words that may be durable with more than one value, with these.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.open.iter().map(|(&at, open)| (at, &open.values[..]))
    }

    /// The last values of so many words from one on.
    pub(crate) fn words(&self, at: u64, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        for (&word_at, &value) in self.latest.range(at..at + count as u64 * WORD) {
            words[usize::try_from((word_at - at) / WORD).expect("within `words`")] = value;
        }
        words
    }

    /// What a crash leaves that has of each word which may have several values the one that is `pick`ed.
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
        let durable = || Open { values: vec![before], times: vec![0] };
        let open = self.open.entry(at).or_insert_with(durable);
        open.values.push(value);
        open.times.push(self.time);
        self.latest.insert(at, value);
    }

    /// Changes some bytes, word by word.
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

    /// Zeroes mend what was bad (M4).
    pub(crate) fn zero(&mut self, thread: usize, at: u64, len: u64) {
        if !self.leaves_out(Omission::mending) {
            let whole = |bad: &BadBlock| at <= bad.at && bad.at + bad.len <= at + len;
            for bad in self.bad.iter_mut().filter(|bad| whole(&bad.block)) {
                bad.mended_by = Some(thread);
            }
        }
        self.write(thread, at, &vec![0; usize::try_from(len).expect("it is small")]);
    }

    pub(crate) fn store(&mut self, thread: usize, at: u64, from: &[u8]) {
        assert!(at.is_multiple_of(from.len() as u64), "words are aligned (Y2)");
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
            // What was written back before a fence that is not there becomes durable at the next one.
            self.since[thread].covered = since.covered;
            return;
        }
        self.bad.retain(|bad| bad.mended_by != Some(thread));
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
