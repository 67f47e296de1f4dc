//! A thread's way to a BTT.

use super::device::Btt;
use super::error::IoError;
use super::lanes::SetId;
use super::memory::Memory;
use super::pending::{LARGE_BATCH_MAX, Pending};
use super::policy::LaneChoice;
use super::touch::{Touch, Word};
use core::marker::PhantomData;
use core::ops::Deref;

/// One thread's way to a [`Btt`], which stays with that thread: borrowed or shared (`&Btt`, `Arc<Btt>`): with lanes of its own while
/// there are some, otherwise with lanes that it shares.
#[derive(Debug)]
pub struct Worker<B, M>
where
    B: Deref<Target = Btt<M>>,
    M: Memory,
{
    btt: B,
    seat: Seat,
    /// Not to be sent: what a thread wrote back, its own fences make durable only (`lanes` N3).
    memory: PhantomData<*const M>,
}

/// What a [`Worker`] is beside its BTT: for who works for many in one thread, as a simulation of their
/// threads does, and keeps the BTT elsewhere.
///
/// A seat is good for the BTT that it is of. Who hands it to another thread has its [`settle`](Seat::settle)
/// called by the one before (`lanes` N3); its lanes are its own as long as the BTT is open.
#[derive(Debug)]
pub struct Seat {
    home: SetId,
    own: bool,
    pending: Pending,
}

impl<M: Memory> Btt<M> {
    /// A worker for one thread, which reads and writes through it. Any number of them can be.
    pub fn worker(&self) -> Worker<&Self, M> {
        Worker::new(self)
    }

    /// What a worker is beside the BTT, for who keeps the two apart.
    pub fn seat(&self) -> Seat {
        Seat::new(self)
    }

    /// Reads the sectors from `lba` on. A thread that does this often has a [`worker`](Self::worker).
    ///
    /// # Errors
    ///
    /// See [`IoError`]; sectors before the one that failed were read.
    pub fn read(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        Worker::passing(self).read(lba, to)
    }

    /// Writes sectors from `lba` on, each of them whole or not at all, and durable on return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; any of the sectors may have been written.
    pub fn write(&self, lba: u64, from: &[u8]) -> Result<(), IoError> {
        Worker::passing(self).write(lba, from)
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
        let seat = btt.seat();
        Self { btt, seat, memory: PhantomData }
    }

    /// For a thread that passes by: takes no lanes to itself.
    #[must_use]
    pub fn passing(btt: B) -> Self {
        let seat = Seat::shared(&btt);
        Self { btt, seat, memory: PhantomData }
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
    #[inline]
    pub fn read(&mut self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        self.seat.read(&self.btt, lba, to)
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
        self.seat.with_lanes(&self.btt, |set, _| {
            sectors.iter_mut().try_for_each(|(lba, to)| self.btt.read_published(set, *lba, to))
        })
    }

    /// Writes sectors from `lba` on, each of them whole or not at all, and durable on return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; any of the sectors may have been written.
    pub fn write(&mut self, lba: u64, from: &[u8]) -> Result<(), IoError> {
        self.seat.write(&self.btt, lba, from)
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
        self.seat.with_lanes(&self.btt, |set, pending| {
            self.btt.write_sectors(set, pending, sectors.iter().copied())
        })
    }

    /// Makes `count` sectors from `lba` on zeroes, without writing their data: durable on return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]; any of the sectors may be zeroes.
    pub fn set_zero(&mut self, lba: u64, count: u64) -> Result<(), IoError> {
        self.btt.set_zero(lba, count)
    }

    fn one_sector(&self, lba: u64, bytes: usize) -> Result<(), IoError> {
        if bytes != self.btt.sector_bytes as usize {
            return Err(IoError::Length);
        }
        self.btt.in_range(lba, 1)
    }
}

impl<B, M> Drop for Worker<B, M>
where
    B: Deref<Target = Btt<M>>,
    M: Memory,
{
    fn drop(&mut self) {
        if self.seat.own {
            // What fails here makes the BTT broken: nobody logs over what may not be durable.
            let _ = self.seat.settle(&self.btt);
            self.btt.lanes.give_back(self.seat.home);
        }
    }
}

impl Seat {
    /// With lanes of its own, if there are some left.
    pub(super) fn new<M: Memory>(btt: &Btt<M>) -> Self {
        match btt.lanes.take_exclusive() {
            Some(home) => {
                let pending = Pending::of_batches(btt.lanes.batch_max().min(LARGE_BATCH_MAX));
                Self { home, own: true, pending }
            }
            None => Self::shared(btt),
        }
    }

    fn shared<M: Memory>(btt: &Btt<M>) -> Self {
        Self { home: btt.lanes.shared(), own: false, pending: Pending::default() }
    }

    /// As [`Worker::read`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn read<M: Memory>(
        &mut self,
        btt: &Btt<M>,
        lba: u64,
        to: &mut [u8],
    ) -> Result<(), IoError> {
        if to.len() == btt.sector_bytes as usize && !btt.readers_publish() {
            return btt.read_one(lba, to);
        }
        self.read_run(btt, lba, to)
    }

    /// As [`Self::read`]: apart from it, so that a read of one sector stays short.
    #[inline(never)]
    fn read_run<M: Memory>(
        &mut self,
        btt: &Btt<M>,
        lba: u64,
        to: &mut [u8],
    ) -> Result<(), IoError> {
        let bytes = btt.sector_bytes as usize;
        if !to.len().is_multiple_of(bytes) {
            return Err(IoError::Length);
        }
        btt.in_range(lba, (to.len() / bytes) as u64)?;
        if !btt.readers_publish() {
            return btt.read_versioned(numbered(lba, to.chunks_exact_mut(bytes)));
        }
        self.with_lanes(btt, |set, _| {
            let mut sectors = numbered(lba, to.chunks_exact_mut(bytes));
            sectors.try_for_each(|(lba, to)| btt.read_published(set, lba, to))
        })
    }

    /// As [`Worker::write`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn write<M: Memory>(&mut self, btt: &Btt<M>, lba: u64, from: &[u8]) -> Result<(), IoError> {
        let bytes = btt.sector_bytes as usize;
        if !from.len().is_multiple_of(bytes) {
            return Err(IoError::Length);
        }
        btt.in_range(lba, (from.len() / bytes) as u64)?;
        self.with_lanes(btt, |set, pending| {
            btt.write_sectors(set, pending, numbered(lba, from.chunks_exact(bytes)))
        })
    }

    /// Makes durable what it left to its next write.
    ///
    /// # Errors
    ///
    /// Those of the medium.
    pub fn settle<M: Memory>(&mut self, btt: &Btt<M>) -> Result<(), IoError> {
        btt.settle(&mut self.pending)
    }

    /// Calls `act` with a set of lanes that is this thread's for the call (`lanes` N1, N3).
    #[inline]
    fn with_lanes<M: Memory, R>(
        &mut self,
        btt: &Btt<M>,
        act: impl FnOnce(SetId, &mut Pending) -> Result<R, IoError>,
    ) -> Result<R, IoError> {
        if self.own {
            return act(self.home, &mut self.pending);
        }
        if btt.policy.lanes == LaneChoice::Counter {
            btt.memory.touched(Touch::Stored(Word::Counter));
        }
        let set = btt.lanes.for_call(self.home);
        let mut turn = 0;
        while !btt.lanes.try_take(set) {
            btt.memory.relax(turn);
            turn += 1;
        }
        btt.memory.touched(Touch::Locked(Word::Lanes(set.0)));
        let done = act(set, &mut self.pending);
        let settled = btt.settle(&mut self.pending);
        btt.memory.touched(Touch::Unlocked(Word::Lanes(set.0)));
        btt.lanes.give_back(set);
        let done = done?;
        settled?;
        Ok(done)
    }
}

/// Sectors from `lba` on, with their numbers.
fn numbered<T>(
    lba: u64,
    sectors: impl ExactSizeIterator<Item = T>,
) -> impl ExactSizeIterator<Item = (u64, T)> {
    sectors.enumerate().map(move |(n, sector)| (lba + n as u64, sector))
}
