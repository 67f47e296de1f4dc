//! A thread's way to a BTT.

use super::device::Btt;
use super::error::IoError;
use super::lanes::SetId;
use super::memory::Memory;
use super::versions::{Seen, WordAt};
use core::marker::PhantomData;
use core::ops::Deref;

/// Most sectors that go through a set of lanes at once.
pub(super) const BATCH_MAX: usize = 8;

/// One thread's way to a [`Btt`], which stays with that thread: borrowed or shared (`&Btt`, `Arc<Btt>`): with lanes of its own while
/// there are some, otherwise with lanes that it shares.
#[derive(Debug)]
pub struct Worker<B, M>
where
    B: Deref<Target = Btt<M>>,
    M: Memory,
{
    btt: B,
    home: SetId,
    own: bool,
    pending: Pending,
    /// Not to be sent: what a thread wrote back, its own fences make durable only (`lanes` N3).
    memory: PhantomData<*const M>,
}

/// Words whose map entries this thread changed, and may not have made durable yet (`versions` S3).
#[derive(Debug, Default)]
pub(super) struct Pending {
    left: [(WordAt, Seen); BATCH_MAX],
    len: usize,
}

impl Pending {
    /// One more.
    pub(super) fn push(&mut self, at: WordAt, left: Seen) {
        self.left[self.len] = (at, left);
        self.len += 1;
    }

    /// All there are, which are none then.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (WordAt, Seen)> {
        let len = core::mem::take(&mut self.len);
        self.left[..len].iter().copied()
    }
}

impl<B, M> Worker<B, M>
where
    B: Deref<Target = Btt<M>>,
    M: Memory,
{
    /// For a thread that stays.
    #[must_use]
    pub fn new(btt: B) -> Self {
        match btt.lanes.take_own() {
            Some(home) => Self::with(btt, home, true),
            None => Self::passing(btt),
        }
    }

    /// For a thread that passes by: takes no lanes to itself.
    #[must_use]
    pub fn passing(btt: B) -> Self {
        let home = btt.lanes.shared();
        Self::with(btt, home, false)
    }

    fn with(btt: B, home: SetId, own: bool) -> Self {
        Self { btt, home, own, pending: Pending::default(), memory: PhantomData }
    }

    /// What it is a way to.
    pub fn btt(&self) -> &B {
        &self.btt
    }

    /// Reads the sectors from `lba` on.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; sectors before the one that failed were read.
    pub fn read(&mut self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        let bytes = self.btt.sector_bytes as usize;
        if !to.len().is_multiple_of(bytes) {
            return Err(IoError::Length);
        }
        self.btt.in_range(lba, (to.len() / bytes) as u64)?;
        if !self.btt.readers_publish() {
            return self.btt.read_versioned(numbered(lba, to.chunks_exact_mut(bytes)));
        }
        self.with_lanes(|btt, set, _| {
            let mut sectors = numbered(lba, to.chunks_exact_mut(bytes));
            sectors.try_for_each(|(lba, to)| btt.read_published(set, lba, to))
        })
    }

    /// Reads several sectors from anywhere: faster than one after the other, as what the next ones need is
    /// fetched while one is copied.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; any of the others may have been read.
    pub fn read_many(&mut self, sectors: &mut [(u64, &mut [u8])]) -> Result<(), IoError> {
        for (lba, to) in &*sectors {
            self.one_sector(*lba, to.len())?;
        }
        if !self.btt.readers_publish() {
            return self.btt.read_versioned(sectors.iter_mut().map(|(lba, to)| (*lba, &mut **to)));
        }
        self.with_lanes(|btt, set, _| {
            sectors.iter_mut().try_for_each(|(lba, to)| btt.read_published(set, *lba, to))
        })
    }

    /// Writes sectors from `lba` on, each of them whole or not at all, and durable on return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; any of the sectors may have been written.
    pub fn write(&mut self, lba: u64, from: &[u8]) -> Result<(), IoError> {
        let bytes = self.btt.sector_bytes as usize;
        if !from.len().is_multiple_of(bytes) {
            return Err(IoError::Length);
        }
        self.btt.in_range(lba, (from.len() / bytes) as u64)?;
        self.with_lanes(|btt, set, pending| {
            btt.write_sectors(set, pending, numbered(lba, from.chunks_exact(bytes)))
        })
    }

    /// Writes several sectors anywhere, each of them whole or not at all, and durable on return: fewer
    /// fences than one after the other. Of two for one sector the later one stays.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; any of the sectors may have been written.
    pub fn write_many(&mut self, sectors: &[(u64, &[u8])]) -> Result<(), IoError> {
        for (lba, from) in sectors {
            self.one_sector(*lba, from.len())?;
        }
        self.with_lanes(|btt, set, pending| {
            btt.write_sectors(set, pending, sectors.iter().copied())
        })
    }

    /// Makes `count` sectors from `lba` on zeroes, without writing their data: durable on return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; any of the sectors may be zeroes.
    pub fn set_zero(&mut self, lba: u64, count: u64) -> Result<(), IoError> {
        self.btt.set_zero_of(lba, count)
    }

    fn one_sector(&self, lba: u64, bytes: usize) -> Result<(), IoError> {
        if bytes != self.btt.sector_bytes as usize {
            return Err(IoError::Length);
        }
        self.btt.in_range(lba, 1)
    }

    /// Calls `act` with a set of lanes that is this thread's for the call (`lanes` N1, N3).
    #[inline]
    fn with_lanes<R>(
        &mut self,
        act: impl FnOnce(&Btt<M>, SetId, &mut Pending) -> Result<R, IoError>,
    ) -> Result<R, IoError> {
        let btt = &*self.btt;
        if self.own {
            return act(btt, self.home, &mut self.pending);
        }
        let set = btt.lanes.for_call(self.home);
        let mut turn = 0;
        while !btt.lanes.try_take(set) {
            btt.memory.relax(turn);
            turn += 1;
        }
        let done = act(btt, set, &mut self.pending);
        let settled = btt.settle(&mut self.pending);
        btt.lanes.give_back(set);
        let done = done?;
        settled?;
        Ok(done)
    }
}

impl<B, M> Drop for Worker<B, M>
where
    B: Deref<Target = Btt<M>>,
    M: Memory,
{
    fn drop(&mut self) {
        if self.own {
            // What fails here makes the BTT broken: nobody logs over what may not be durable.
            let _ = self.btt.settle(&mut self.pending);
            self.btt.lanes.give_back(self.home);
        }
    }
}

/// Sectors from `lba` on, with their numbers.
fn numbered<T>(
    lba: u64,
    sectors: impl ExactSizeIterator<Item = T>,
) -> impl ExactSizeIterator<Item = (u64, T)> {
    sectors.enumerate().map(move |(n, sector)| (lba + n as u64, sector))
}
