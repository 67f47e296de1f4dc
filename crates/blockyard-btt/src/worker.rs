//! The access of one thread to a BTT.

use super::device::Btt;
use super::error::IoError;
use super::lanes::SetId;
use super::memory::Memory;
use super::pending::Pending;
use super::policy::LaneChoice;
use super::touch::{Touch, Word};
use core::marker::PhantomData;
use core::ops::Deref;

/// The access of one thread to a [`Btt`], which is borrowed or shared (`&Btt`, `Arc<Btt>`). A
/// worker has a set of lanes to itself while one is left, and shares a set otherwise. It stays with
/// its thread.
#[derive(Debug)]
pub struct Worker<B, M>
where
    B: Deref<Target = Btt<M>>,
    M: Memory,
{
    btt: B,
    seat: Seat,
    /// Makes the type `!Send`: a thread's fences cover only what it wrote back
    /// ([handed-over-set-durable]).
    memory: PhantomData<*const M>,
}

/// A [`Worker`] without its BTT: for a thread that acts for many, for example a simulation of many
/// threads, and keeps the BTT elsewhere.
///
/// A seat belongs to the BTT that made it, and its lanes stay taken while the BTT is open. Before
/// another thread uses the seat, the old thread must call [`settle`](Seat::settle)
/// ([handed-over-set-durable]).
#[derive(Debug)]
pub struct Seat {
    home: SetId,
    own: bool,
    pending: Pending,
}

impl<M: Memory> Btt<M> {
    /// Makes a worker for one thread. There can be any number of them.
    pub fn worker(&self) -> Worker<&Self, M> {
        Worker::new(self)
    }

    /// Makes a worker that does not hold the BTT.
    pub fn seat(&self) -> Seat {
        Seat::new(self)
    }

    /// Reads the sectors from `lba` on. A thread that reads often should use a
    /// [`worker`](Self::worker).
    ///
    /// # Errors
    ///
    /// See [`IoError`]. The sectors before the one that failed were read.
    pub fn read(&self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        Worker::without_own_lanes(self).read(lba, to)
    }

    /// Writes sectors from `lba` on. Each is written whole or not at all, and all are durable on
    /// return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]. Any of the sectors may have been written.
    pub fn write(&self, lba: u64, from: &[u8]) -> Result<(), IoError> {
        Worker::without_own_lanes(self).write(lba, from)
    }
}

impl<B, M> Worker<B, M>
where
    B: Deref<Target = Btt<M>>,
    M: Memory,
{
    /// Makes a worker for a thread that keeps using it.
    #[must_use]
    pub fn new(btt: B) -> Self {
        let seat = btt.seat();
        Self { btt, seat, memory: PhantomData }
    }

    /// Makes a worker for a few calls, which takes no lanes to itself.
    #[must_use]
    pub fn without_own_lanes(btt: B) -> Self {
        let seat = Seat::shared(&btt);
        Self { btt, seat, memory: PhantomData }
    }

    /// The BTT.
    pub fn btt(&self) -> &B {
        &self.btt
    }

    /// Reads the sectors from `lba` on.
    ///
    /// # Errors
    ///
    /// See [`IoError`]. The sectors before the one that failed were read.
    #[inline]
    pub fn read(&mut self, lba: u64, to: &mut [u8]) -> Result<(), IoError> {
        self.seat.read(&self.btt, lba, to)
    }

    /// Reads several sectors at any positions. This is faster than single reads, because the next
    /// sectors are prefetched while one is copied.
    ///
    /// # Errors
    ///
    /// See [`IoError`]. Any of the other sectors may have been read.
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

    /// Writes sectors from `lba` on. Each is written whole or not at all, and all are durable on
    /// return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]. Any of the sectors may have been written.
    pub fn write(&mut self, lba: u64, from: &[u8]) -> Result<(), IoError> {
        self.seat.write(&self.btt, lba, from)
    }

    /// Writes several sectors at any positions. Each is written whole or not at all, and all are
    /// durable on return, with fewer fences than single writes. Of two writes to one sector, the
    /// later one wins.
    ///
    /// # Errors
    ///
    /// See [`IoError`]. Any of the sectors may have been written.
    pub fn write_many(&mut self, sectors: &[(u64, &[u8])]) -> Result<(), IoError> {
        for (lba, from) in sectors {
            self.one_sector(*lba, from.len())?;
        }
        self.seat.with_lanes(&self.btt, |set, pending| {
            self.btt.write_sectors(set, pending, sectors.iter().copied())
        })
    }

    /// Zeroes `count` sectors from `lba` on without writing their data. The change is durable on
    /// return.
    ///
    /// # Errors
    ///
    /// See [`IoError`]. Any of the sectors may have been zeroed.
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
            // A failure marks the BTT as broken, so no later entry hides one that may not be
            // durable.
            let _ = self.seat.settle(&self.btt);
            self.btt.lanes.give_back(self.seat.home);
        }
    }
}

impl Seat {
    /// Takes a set of lanes to itself, if one is left.
    pub(super) fn new<M: Memory>(btt: &Btt<M>) -> Self {
        match btt.lanes.take_exclusive() {
            Some(home) => {
                let pending = Pending::for_batches(btt.lanes.batch_max());
                Self { home, own: true, pending }
            }
            None => Self::shared(btt),
        }
    }

    fn shared<M: Memory>(btt: &Btt<M>) -> Self {
        Self { home: btt.lanes.shared(), own: false, pending: Pending::default() }
    }

    /// Reads like [`Worker::read`].
    ///
    /// # Errors
    ///
    /// The same as [`Worker::read`].
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

    /// The rest of [`Self::read`], out of line so that a read of one sector stays short.
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

    /// Writes like [`Worker::write`].
    ///
    /// # Errors
    ///
    /// The same as [`Worker::write`].
    #[inline]
    pub fn write<M: Memory>(&mut self, btt: &Btt<M>, lba: u64, from: &[u8]) -> Result<(), IoError> {
        if from.len() == btt.sector_bytes as usize {
            btt.in_range(lba, 1)?;
            return self.with_lanes(btt, |set, pending| btt.write_one(set, pending, lba, from));
        }
        self.write_run(btt, lba, from)
    }

    /// The rest of [`Self::write`], out of line so that a write of one sector stays short.
    #[inline(never)]
    fn write_run<M: Memory>(&mut self, btt: &Btt<M>, lba: u64, from: &[u8]) -> Result<(), IoError> {
        let bytes = btt.sector_bytes as usize;
        if !from.len().is_multiple_of(bytes) {
            return Err(IoError::Length);
        }
        btt.in_range(lba, (from.len() / bytes) as u64)?;
        self.with_lanes(btt, |set, pending| {
            btt.write_sectors(set, pending, numbered(lba, from.chunks_exact(bytes)))
        })
    }

    /// Makes the map entries of earlier writes durable, which otherwise the next write does.
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    pub fn settle<M: Memory>(&mut self, btt: &Btt<M>) -> Result<(), IoError> {
        btt.settle(&mut self.pending)
    }

    /// Calls `act` with a set of lanes that this thread has for the call ([lane-set-one-user],
    /// [handed-over-set-durable]).
    #[inline]
    fn with_lanes<M: Memory, R>(
        &mut self,
        btt: &Btt<M>,
        act: impl FnOnce(SetId, &mut Pending) -> Result<R, IoError>,
    ) -> Result<R, IoError> {
        if self.own {
            return act(self.home, &mut self.pending);
        }
        debug_assert!(
            self.pending.is_empty(),
            "[handed-over-set-durable]: nothing is left pending"
        );
        if btt.policy.lanes == LaneChoice::Counter {
            btt.memory.touched(Touch::Stored(Word::Counter));
        }
        let set = btt.lanes.for_call(self.home);
        btt.wait_until(|| btt.lanes.try_take(set));
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

/// Pairs the sectors from `lba` on with their numbers.
fn numbered<T>(
    lba: u64,
    sectors: impl ExactSizeIterator<Item = T>,
) -> impl ExactSizeIterator<Item = (u64, T)> {
    sectors.enumerate().map(move |(n, sector)| (lba + n as u64, sector))
}
