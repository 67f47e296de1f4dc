//! Images of a BTT for damage: sparse memory that can be copied, and that loses power after a
//! number of words.
#![allow(dead_code, reason = "each test, and the fuzz target, uses only a part")]
#![allow(clippy::cast_possible_truncation, reason = "pages and marks are small")]

pub(crate) mod play;

use blockyard_btt::arena::Arena;
use blockyard_btt::find::{Found, find};
use blockyard_btt::flog::{FlogEntry, SlotLayout};
use blockyard_btt::info_block::InfoBlock;
use blockyard_btt::{
    Btt, Container, Format, MapEntry, MediaError, Memory, OpenOptions, Policy, PremapAba, Uuid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// The smallest BTT.
pub(crate) const BYTES: u64 = 16 << 20;
pub(crate) const PAGE: u64 = 4096;

type Page = [u8; PAGE as usize];

/// The pages that were written. All others are zero.
#[derive(Clone, Default, PartialEq, Eq)]
struct Pages {
    pages: BTreeMap<u64, Arc<Page>>,
    /// The number of words of eight bytes that can be written before the power goes.
    power: Option<u64>,
    /// The number of words that were written, or would have been with power.
    written: u64,
    /// The words of eight bytes that the medium lost.
    bad: BTreeSet<u64>,
}

/// A memory of any size that stores only what is not zero.
pub(crate) struct Sparse {
    len: u64,
    /// Whether [`Memory::hole`] tells of pages that were not written.
    pub(crate) tells_holes: bool,
    pages: Mutex<Pages>,
}

impl Clone for Sparse {
    fn clone(&self) -> Self {
        Self { pages: Mutex::new(self.pages().clone()), ..*self }
    }
}

impl Sparse {
    /// Returns `len` zeroes.
    pub(crate) fn new(len: u64) -> Self {
        Self { len, tells_holes: false, pages: Mutex::default() }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().expect("no panic while the pages were locked")
    }

    /// Returns a copy with another length.
    pub(crate) fn resized(&self, len: u64) -> Self {
        let mut pages = self.pages().clone();
        pages.pages.retain(|&at, _| at * PAGE < len);
        Self { len, pages: Mutex::new(pages), ..*self }
    }

    /// Writes only the next `words` words.
    pub(crate) fn power_for(&self, words: Option<u64>) {
        let mut pages = self.pages();
        pages.power = words;
        pages.written = 0;
    }

    /// The number of words written since the last call of `power_for`.
    pub(crate) fn written(&self) -> u64 {
        self.pages().written
    }

    /// Makes the medium lose these bytes.
    pub(crate) fn lose(&self, at: u64, len: u64) {
        self.pages().bad.extend(at / 8..(at + len).div_ceil(8));
    }

    /// Whether both hold the same bytes.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.len == other.len && self.written_pages() == other.written_pages()
    }

    fn written_pages(&self) -> BTreeMap<u64, Arc<Page>> {
        let mut pages = self.pages().pages.clone();
        pages.retain(|_, page| page.iter().any(|&byte| byte != 0));
        pages
    }

    pub(crate) fn bytes<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.read(at, &mut bytes).expect("bytes that are not lost");
        bytes
    }

    /// Writes bytes, with or without power.
    pub(crate) fn put(&self, at: u64, from: &[u8]) {
        self.pages().put(at, from);
    }
}

impl Pages {
    fn put(&mut self, mut at: u64, mut from: &[u8]) {
        while !from.is_empty() {
            let first = (at % PAGE) as usize;
            let count = from.len().min(PAGE as usize - first);
            let (now, later) = from.split_at(count);
            match self.pages.get_mut(&(at / PAGE)) {
                None if now.iter().all(|&byte| byte == 0) => {}
                Some(page) => Arc::make_mut(page)[first..first + count].copy_from_slice(now),
                None => {
                    let mut page = [0; PAGE as usize];
                    page[first..first + count].copy_from_slice(now);
                    self.pages.insert(at / PAGE, Arc::new(page));
                }
            }
            (at, from) = (at + count as u64, later);
        }
    }

    /// Writes word by word, as long as there is power.
    fn put_words(&mut self, at: u64, from: &[u8]) {
        let words = (at + from.len() as u64).div_ceil(8) - at / 8;
        self.written += words;
        let now = match &mut self.power {
            None => words,
            Some(left) => {
                let now = words.min(*left);
                *left -= now;
                now
            }
        };
        let end = (at / 8 + now) * 8;
        let count = end.saturating_sub(at).min(from.len() as u64) as usize;
        self.put(at, &from[..count]);
        self.bad.retain(|word| !(at / 8..at / 8 + now).contains(word));
    }

    fn is_bad(&self, at: u64, len: usize) -> bool {
        let words = at / 8..(at + len as u64).div_ceil(8);
        self.bad.range(words).next().is_some()
    }
}

impl Memory for Sparse {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        assert!(at + to.len() as u64 <= self.len, "beyond the end");
        let pages = self.pages();
        if pages.is_bad(at, to.len()) {
            return Err(MediaError::Bad);
        }
        let mut done = 0;
        while done < to.len() {
            let at = at + done as u64;
            let first = (at % PAGE) as usize;
            let count = (to.len() - done).min(PAGE as usize - first);
            let to = &mut to[done..done + count];
            match pages.pages.get(&(at / PAGE)) {
                Some(page) => to.copy_from_slice(&page[first..first + count]),
                None => to.fill(0),
            }
            done += count;
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        assert!(at + from.len() as u64 <= self.len, "beyond the end");
        self.pages().put_words(at, from);
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let len = usize::try_from(len).expect("a small length");
        self.write(at, &vec![0; len])
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.write(at, &word.to_le_bytes())
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.write(at, &word.to_le_bytes())
    }

    fn hole(&self, at: u64) -> u64 {
        let pages = self.pages();
        let next = pages.pages.range(at / PAGE..).next();
        let end = next.map_or(self.len, |(page, _)| page * PAGE);
        if self.tells_holes { end.saturating_sub(at) } else { 0 }
    }

    fn write_back(&self, _at: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediaError> {
        Ok(())
    }
}

/// Returns the format for `container`, with sectors of `sector_bytes`.
pub(crate) fn format(container: Container, sector_bytes: u32) -> Format {
    let parent_uuid = if container == Container::Pool { Uuid([9; 16]) } else { Uuid::NIL };
    Format { container, sector_bytes, uuid: Uuid([1; 16]), parent_uuid, blank: true }
}

/// Returns an empty image of `len` bytes.
pub(crate) fn empty(container: Container, sector_bytes: u32, len: u64) -> Sparse {
    let memory = Sparse::new(len);
    format(container, sector_bytes).write(&memory).expect("a new BTT");
    memory
}

/// Returns the last data that `used` writes to sector `lba`.
pub(crate) fn content(lba: u64, bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (lba as u8).wrapping_mul(7).wrapping_add(n as u8) | 1).collect()
}

/// The number of first sectors that `used` writes.
pub(crate) const WRITTEN: u64 = 24;

/// Returns an image that was used and closed: its first sectors were written, some of them several
/// times, one sector was zeroed and one marked as lost.
pub(crate) fn used(container: Container, sector_bytes: u32) -> Sparse {
    let memory = empty(container, sector_bytes, BYTES + container.first_arena());
    let options = OpenOptions { policy: Policy::LINUX, ..OpenOptions::new(container) };
    let btt = Btt::open(&memory, &options).expect("BTT that was just made");
    let mut workers: Vec<_> = (0..4).map(|_| btt.worker()).collect();
    for turn in 0..4 {
        for lba in (0..WRITTEN).filter(|lba| lba % 4 >= turn) {
            let worker = &mut workers[(lba % 3) as usize];
            worker.write(lba, &content(lba, sector_bytes)).expect("successful write");
        }
    }
    btt.set_zero(WRITTEN, 1).expect("successful zeroing");
    btt.set_error(WRITTEN + 1).expect("successful marking as lost");
    drop(workers);
    drop(btt);
    memory
}

/// Finds the arenas of an image.
pub(crate) fn found(memory: &Sparse, container: Container) -> Vec<Found> {
    find(memory, container, None).expect("arenas of the image")
}

/// Returns the first arena of an image.
pub(crate) fn arena(memory: &Sparse, container: Container) -> Arena {
    let Found { start, first_lba, info, .. } = found(memory, container)[0];
    let slots = SlotLayout::Standard;
    let dialect = container.dialect();
    Arena { start, first_lba, layout: info.layout, slots, dialect }
}

/// Changes both info blocks of the first arena, with correct checksums.
pub(crate) fn change_info(
    memory: &Sparse,
    container: Container,
    change: impl FnOnce(&mut InfoBlock),
) {
    let Found { start, info, .. } = found(memory, container)[0];
    let mut changed = info;
    change(&mut changed);
    memory.put(start, &changed.to_bytes());
    memory.put(start + info.layout.infooff, &changed.to_bytes());
}

/// Writes a log entry.
pub(crate) fn put_entry(memory: &Sparse, at: u64, entry: FlogEntry) {
    let [first, second] = entry.words();
    memory.put(at, &first.to_le_bytes());
    memory.put(at + 8, &second.to_le_bytes());
}

/// Reads the entries of a lane.
pub(crate) fn entries(memory: &Sparse, arena: &Arena, lane: u32) -> [FlogEntry; 2] {
    arena.slots.entries(&memory.bytes(arena.group_at(lane)))
}

/// Writes a map entry.
pub(crate) fn put_map(memory: &Sparse, arena: &Arena, lba: u32, entry: MapEntry) {
    memory.put(arena.map_at(PremapAba(lba)), &entry.0.to_le_bytes());
}
