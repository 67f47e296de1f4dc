//! [`Modelled`]: the memory of a BTT or of a raw disk, which charges for each call.

use super::machine::{LINE, Machine, Part};
use super::store::Store;
use blockyard::prng::Prng;
use blockyard_btt::layout::Layout;
use blockyard_btt::{MediaError, Memory, Touch};
use core::cell::{RefCell, RefMut};
use core::ops::Range;

/// The bytes of a memory, and the processors that use them.
#[derive(Debug)]
pub(super) struct Modelled {
    bytes: u64,
    inside: RefCell<Inside>,
}

#[derive(Debug)]
pub(super) struct Inside {
    pub(super) machine: Machine,
    store: Store,
    /// Bytes of the data area, which are kept only if they are read.
    data: Range<u64>,
    keeps_data: bool,
    map: Range<u64>,
    /// Whether calls are charged for: false until a disk is made.
    charges: bool,
    /// If data is kept, the words that may not be durable yet, in order: processor, place and old
    /// content.
    unfenced: Vec<(u16, u64, [u8; 8])>,
    /// Lines that were written back and not fenced since, by processor and line.
    written_back: Vec<(u16, u64)>,
}

impl Modelled {
    /// Returns `bytes` bytes of zeroes, used by `machine`.
    pub(super) fn new(bytes: u64, machine: Machine) -> Self {
        let inside = Inside {
            machine,
            store: Store::new(bytes),
            data: 0..0,
            keeps_data: false,
            map: 0..0,
            charges: false,
            unfenced: Vec::new(),
            written_back: Vec::new(),
        };
        Self { bytes, inside: RefCell::new(inside) }
    }

    /// Makes the whole memory the data of a disk, and starts charging.
    pub(super) fn is_plain(&self) {
        let mut inside = self.inside();
        assert!(!inside.charges, "a second disk in one memory");
        (inside.data, inside.charges) = (0..self.bytes, true);
    }

    /// Records an arena at `start` whose sectors were all written once, and starts charging.
    pub(super) fn has(&self, start: u64, layout: &Layout) {
        let mut inside = self.inside();
        assert!(!inside.charges, "a second disk in one memory");
        assert!(start + layout.flogoff <= self.bytes, "an arena outside the memory");
        inside.data = start + layout.dataoff..start + layout.mapoff;
        inside.map = start + layout.mapoff..start + layout.flogoff;
        let map = inside.map.clone();
        inside.store.set_map(map);
        inside.charges = true;
    }

    /// Keeps data from now on.
    pub(super) fn keep_data(&self) {
        self.inside().keeps_data = true;
    }

    /// Returns the memory after a loss of power. For each word that is not durable, `draws` chooses
    /// the old or the new content. Use of the returned memory costs nothing.
    pub(super) fn survivors(&self, machine: Machine, draws: &mut Prng) -> Self {
        let inside = self.inside();
        let mut store = inside.store.clone();
        let mut words: Vec<_> = inside.unfenced.clone();
        words.sort_by_key(|(_, at, _)| *at); // stable: the oldest of a word first
        words.dedup_by_key(|(_, at, _)| *at);
        for (_, at, before) in words {
            if draws.below(2) == 0 {
                store.write(at, &before);
            }
        }
        let left = Self::new(self.bytes, machine);
        {
            let mut inside = left.inside();
            (inside.store, inside.keeps_data) = (store, true);
        }
        left
    }

    pub(super) fn inside(&self) -> RefMut<'_, Inside> {
        self.inside.borrow_mut()
    }
}

impl Inside {
    fn charge(&mut self, act: impl FnOnce(&mut Machine)) {
        if self.charges {
            act(&mut self.machine);
        }
    }

    fn keeps(&self, at: u64) -> bool {
        self.keeps_data || !self.data.contains(&at)
    }

    /// Stores a word.
    fn store_word(&mut self, at: u64, word: &[u8]) {
        debug_assert!(at.is_multiple_of(word.len() as u64), "{} bytes at {at}", word.len());
        if self.keeps_data {
            let aligned = at / 8 * 8;
            let mut before = [0; 8];
            self.store.read(aligned, &mut before);
            self.unfenced.push((self.machine.cpu(), aligned, before));
        }
        self.store.write(at, word);
    }

    /// Makes the stores of the working processor durable, and the stores of others in lines that it
    /// wrote back.
    fn fenced(&mut self) {
        if !self.keeps_data {
            return;
        }
        let cpu = self.machine.cpu();
        let back = core::mem::take(&mut self.written_back);
        let (own, others): (Vec<_>, Vec<_>) = back.into_iter().partition(|(by, _)| *by == cpu);
        self.written_back = others;
        self.unfenced.retain(|(by, at, _)| *by != cpu && !own.contains(&(cpu, at / LINE)));
    }

    /// Returns the part of accesses to the word at `at`.
    fn part_of(&self, at: u64) -> Part {
        if self.map.contains(&at) { Part::Map } else { Part::Log }
    }
}

/// A simulation waits in virtual time, not here: the event for which a caller waits has already
/// happened.
impl Memory for Modelled {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        let mut inside = self.inside();
        inside.charge(|machine| machine.copy_out(at, to.len() as u64));
        if inside.keeps(at) {
            inside.store.read(at, to);
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        let mut inside = self.inside();
        inside.charge(|machine| machine.copy_in(from.len() as u64));
        if inside.keeps(at) {
            inside.store.write(at, from);
        }
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let zeroes = vec![0; usize::try_from(len).map_err(|_| MediaError::Failed)?];
        self.write(at, &zeroes)
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        let mut inside = self.inside();
        let part = inside.part_of(at);
        inside.charge(|machine| machine.load(part, at));
        Ok(inside.store.load(at))
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.inside().store_word(at, &word.to_le_bytes());
        Ok(())
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.inside().store_word(at, &word.to_le_bytes());
        Ok(())
    }

    fn write_back(&self, at: u64, len: u64) {
        let mut inside = self.inside();
        let part = inside.part_of(at);
        inside.charge(|machine| machine.write_back(part, at..at + len));
        if inside.keeps_data {
            let cpu = inside.machine.cpu();
            inside
                .written_back
                .extend((at / LINE..(at + len).div_ceil(LINE)).map(|line| (cpu, line)));
        }
        if inside.machine.fences_each() {
            inside.fenced();
        }
    }

    fn fence(&self) -> Result<(), MediaError> {
        let mut inside = self.inside();
        inside.charge(Machine::fence);
        inside.fenced();
        Ok(())
    }

    fn prefetch(&self, at: u64, _len: u64) {
        self.inside().charge(|machine| machine.prefetch(at));
    }

    fn touched(&self, touch: Touch) {
        self.inside().charge(|machine| machine.touched(touch));
    }

    fn relax(&self, turn: u32) {
        panic!("turn {turn} of a wait for another processor, and none is at work");
    }
}
