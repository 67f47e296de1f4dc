//! The contents that a disk may have after a power cut.
//!
//! A disk with a volatile cache promises only this: a synchronisation makes durable what was
//! completed before. Of later writes each aligned piece (*granule*) is durable or not, without
//! regard to other granules. Writes to one granule have an order, and the granule is durable as it
//! was after some of them.

use blockyard::prng::Prng;
use blockyard_btt::{MediaError, Memory};
use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The behaviour of a disk. Any but [`HONEST`](Behaviour::HONEST) is a fault, which a check must
/// find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// The bytes that the disk never tears.
    pub(crate) granule: u64,
    /// Each synchronisation of this many makes anything durable.
    pub(crate) effective: u64,
}

impl Behaviour {
    pub(crate) const HONEST: Self = Self { granule: 512, effective: 1 };
    pub(crate) const LIAR: Self = Self { effective: 2, ..Self::HONEST };
    pub(crate) const TEARING: Self = Self { granule: 256, ..Self::HONEST };
}

/// A granule after a write that may not be durable.
#[derive(Debug)]
struct Version {
    write: usize,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Medium {
    behaviour: Behaviour,
    durable: Vec<u8>,
    /// By granule, in the order of the writes.
    pending: BTreeMap<u64, Vec<Version>>,
    completed: BTreeSet<usize>,
    synchronisations: u64,
}

impl Medium {
    pub(crate) const fn new(durable: Vec<u8>, behaviour: Behaviour) -> Self {
        Self {
            behaviour,
            durable,
            pending: BTreeMap::new(),
            completed: BTreeSet::new(),
            synchronisations: 0,
        }
    }

    /// Write number `write` arrives.
    pub(crate) fn write(&mut self, write: usize, at: u64, bytes: &[u8]) {
        let granule = self.behaviour.granule;
        let end = at + bytes.len() as u64;
        for number in at / granule..end.div_ceil(granule) {
            let start = number * granule;
            let from = at.max(start);
            let to = end.min(start + granule);
            let versions = self.pending.entry(number).or_default();
            let mut new = match versions.last() {
                Some(last) => last.bytes.clone(),
                None => self.durable[index(start)..index(start + granule)].to_vec(),
            };
            new[index(from - start)..index(to - start)]
                .copy_from_slice(&bytes[index(from - at)..index(to - at)]);
            versions.push(Version { write, bytes: new });
        }
    }

    pub(crate) fn complete(&mut self, write: usize) {
        self.completed.insert(write);
    }

    pub(crate) fn synchronise(&mut self) {
        self.synchronisations += 1;
        if !self.synchronisations.is_multiple_of(self.behaviour.effective) {
            return;
        }
        let Self { behaviour, durable, pending, completed, .. } = self;
        pending.retain(|number, versions| {
            let newest = versions.iter().rposition(|version| completed.contains(&version.write));
            if let Some(newest) = newest {
                let start = index(number * behaviour.granule);
                let bytes = &versions[newest].bytes;
                durable[start..start + bytes.len()].copy_from_slice(bytes);
                versions.drain(..=newest);
            }
            !versions.is_empty()
        });
    }

    /// Draws what is there after a power cut.
    pub(crate) fn cut(&self, prng: &mut Prng) -> Survivor<'_> {
        // Of 8 granules, how many keep the bytes that were durable.
        let old = prng.pick(&[0, 1, 4, 7, 8]);
        let granules = self.pending.iter().filter_map(|(number, versions)| {
            let kept = prng.below(8) < old;
            let version = &versions[index(prng.below(versions.len() as u64))];
            (!kept).then(|| (*number, version.bytes.clone()))
        });
        let granules = RefCell::new(granules.collect());
        Survivor { durable: &self.durable, granule: self.behaviour.granule, granules }
    }
}

/// The bytes of a disk after a power cut. Who opens them may change them.
#[derive(Debug)]
pub(crate) struct Survivor<'a> {
    durable: &'a [u8],
    granule: u64,
    /// Granules that differ from the durable bytes.
    granules: RefCell<BTreeMap<u64, Vec<u8>>>,
}

impl<'a> Survivor<'a> {
    /// A disk with these bytes.
    pub(crate) const fn of(durable: &'a [u8]) -> Self {
        let granules = RefCell::new(BTreeMap::new());
        Self { durable, granule: Behaviour::HONEST.granule, granules }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.durable.len()];
        self.read(0, &mut bytes).expect("all bytes of the disk");
        bytes
    }
}

impl Memory for Survivor<'_> {
    fn len(&self) -> u64 {
        self.durable.len() as u64
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        let end = at + to.len() as u64;
        to.copy_from_slice(&self.durable[index(at)..index(end)]);
        let granules = self.granules.borrow();
        for (number, bytes) in granules.range(at / self.granule..end.div_ceil(self.granule)) {
            let start = number * self.granule;
            let from = at.max(start);
            let until = end.min(start + self.granule);
            to[index(from - at)..index(until - at)]
                .copy_from_slice(&bytes[index(from - start)..index(until - start)]);
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        for (offset, &byte) in (at..).zip(from) {
            let number = offset / self.granule;
            let within = offset % self.granule;
            let start = index(number * self.granule);
            let old = || self.durable[start..start + index(self.granule)].to_vec();
            let mut granules = self.granules.borrow_mut();
            granules.entry(number).or_insert_with(old)[index(within)] = byte;
        }
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        self.write(at, &vec![0; index(len)])
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

    fn write_back(&self, _at: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediaError> {
        Ok(())
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("offset within memory")
}
