//! The same card and disk over a bus that blocks.
//!
//! [`Blocking`] is the async form of a blocking bus or delay: its futures are ready at the first
//! poll. A future that is made of such futures only is ready at the first poll, too, so [`wait`]
//! needs no executor.

use crate::card::Card;
use crate::disk::{self, Design, Failure, Io};
use crate::error::Error;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::{ErrorType, SpiBus};

/// A blocking [`SpiBus`](embedded_hal::spi::SpiBus) or [`DelayNs`](embedded_hal::delay::DelayNs) in
/// async form.
#[derive(Clone, Copy, Debug)]
pub struct Blocking<T>(pub T);

impl<T: ErrorType> ErrorType for Blocking<T> {
    type Error = T::Error;
}

impl<T: embedded_hal::spi::SpiBus> SpiBus for Blocking<T> {
    async fn read(&mut self, words: &mut [u8]) -> Result<(), T::Error> {
        self.0.read(words)
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), T::Error> {
        self.0.write(words)
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), T::Error> {
        self.0.transfer(read, write)
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), T::Error> {
        self.0.transfer_in_place(words)
    }

    async fn flush(&mut self) -> Result<(), T::Error> {
        self.0.flush()
    }
}

impl<T: embedded_hal::delay::DelayNs> DelayNs for Blocking<T> {
    async fn delay_ns(&mut self, ns: u32) {
        self.0.delay_ns(ns);
    }
}

/// Returns the output of a future that is ready at the first poll: one of a card or disk over
/// [`Blocking`] parts.
///
/// # Panics
///
/// Panics if the future is not ready, because it waits for something that does not block.
pub fn wait<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a future over a blocking bus and delay is ready at once"),
    }
}

/// A [`disk::Disk`] over a blocking bus and delay. Each call returns when its I/Os have ended.
#[derive(Debug)]
pub struct Disk<Bus, Cs, Delay>(pub disk::Disk<Blocking<Bus>, Cs, Blocking<Delay>>);

impl<Bus, Cs, Delay> Disk<Bus, Cs, Delay>
where
    Bus: embedded_hal::spi::SpiBus,
    Cs: OutputPin,
    Delay: embedded_hal::delay::DelayNs,
{
    /// Does the same as [`disk::Disk::new`].
    ///
    /// # Errors
    ///
    /// Fails if [`disk::Disk::new`] does.
    ///
    /// # Panics
    ///
    /// Panics if [`disk::Disk::new`] does.
    pub fn new(
        card: Card<Blocking<Bus>, Cs, Blocking<Delay>>,
        design: Design,
    ) -> Result<Self, Error> {
        wait(disk::Disk::new(card, design)).map(Self)
    }

    /// Does the same as [`disk::Disk::run`].
    ///
    /// # Errors
    ///
    /// Fails if [`disk::Disk::run`] does.
    pub fn run(&mut self, ios: &mut [Io<'_>]) -> Result<(), Failure> {
        wait(self.0.run(ios))
    }

    /// Does the same as [`disk::Disk::read`].
    ///
    /// # Errors
    ///
    /// Fails if [`disk::Disk::read`] does.
    pub fn read(&mut self, sector: u64, to: &mut [u8]) -> Result<(), Failure> {
        wait(self.0.read(sector, to))
    }

    /// Does the same as [`disk::Disk::write`].
    ///
    /// # Errors
    ///
    /// Fails if [`disk::Disk::write`] does.
    pub fn write(&mut self, sector: u64, from: &[u8]) -> Result<(), Failure> {
        wait(self.0.write(sector, from))
    }

    /// Does the same as [`disk::Disk::erase`].
    ///
    /// # Errors
    ///
    /// Fails if [`disk::Disk::erase`] does.
    pub fn erase(&mut self, sector: u64, sectors: u32) -> Result<(), Failure> {
        wait(self.0.erase(sector, sectors))
    }

    /// Does the same as [`disk::Disk::flush`].
    ///
    /// # Errors
    ///
    /// Fails if [`disk::Disk::flush`] does.
    pub fn flush(&mut self) -> Result<(), Failure> {
        wait(self.0.flush())
    }
}
