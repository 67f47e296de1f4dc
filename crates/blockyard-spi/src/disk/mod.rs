//! A disk: the core's request queue in front of a card.
//!
//! A call hands in one I/O, or several at once ([`Disk::run`]). They pass the request queue, with
//! `none` or an elevator: neighbours become one transfer, long ones are split, mq-deadline sorts
//! them. The driver below has room for one request, as a card does one thing at a time; the loop of
//! [`Disk::run`] does it with the card and completes it. `io` has the I/Os of a call, `staged` the
//! queue and the driver.
//!
//! # Rules
//!
//! - **[memory-is-the-calls]** The queue carries numbers, never memory: a request names the I/Os of
//!   the call that runs. A call begins with an empty queue, so no request of an earlier call, whose
//!   future was dropped, meets its memory.
//!
//! A request during which the connection was lost is requeued once, and the card is identified
//! again before it (see [`card`](crate::card)). If that does not help, the request fails.
//!
//! The queue's clock stands still: every call ends its I/Os before it returns, so no deadline of an
//! elevator counts.

mod io;
mod staged;

use crate::card::{Card, Identity};
use crate::error::{Error, Failed};
use blockyard::bio::Op;
use blockyard::driver::Outcome;
use blockyard::policy::Policies;
use blockyard::status::{Status, SubmitError};
use core::fmt;
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;
pub use io::Io;
use io::Memory;
use staged::{Staged, Taken};

/// The queue in front of a card.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    /// How requests are queued, such as [`Policies::NONE`] or [`Policies::mq_deadline`].
    pub policies: Policies,
    /// Driver tags, at least 1. An elevator holds twice as many requests.
    pub depth: u16,
    /// The most I/Os, and parts of split ones, that are in the queue at once; at least 2.
    pub bios: u32,
    /// The most sectors of a transfer, at least 1.
    pub max_sectors: u32,
}

impl Design {
    /// `none` with four requests of up to 128 sectors, and 16 I/Os.
    pub const SMALL: Self = Self { policies: Policies::NONE, depth: 4, bios: 16, max_sectors: 128 };
}

/// Why an I/O did not happen, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The queue refused it, for example because it ends beyond the card. Nothing was done.
    Refused(SubmitError),
    /// It failed. [`Disk::last_error`] may say why.
    Failed(Status),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Failed(status) => status.fmt(f),
        }
    }
}

impl core::error::Error for Failure {}

/// What a disk has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// I/Os of all calls, refused ones included.
    pub ios: u64,
    /// Requests that were done with the card, or failed.
    pub transfers: u64,
    /// Requests that were tried again after the connection was lost.
    pub requeues: u64,
}

/// A disk over one card.
#[derive(Debug)]
pub struct Disk<Bus, Cs, Delay> {
    card: Card<Bus, Cs, Delay>,
    identity: Identity,
    staged: Staged,
    /// Whether the next request was tried in vain already.
    is_second_try: bool,
    last_error: Option<Error>,
    counts: Counts,
}

impl<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs> Disk<Bus, Cs, Delay> {
    /// Identifies `card` and returns the disk. All memory is allocated here.
    ///
    /// # Errors
    ///
    /// Fails if the card cannot be identified.
    ///
    /// # Panics
    ///
    /// Panics if a number of `design` is less than it may be.
    pub async fn new(mut card: Card<Bus, Cs, Delay>, design: Design) -> Result<Self, Error> {
        let identity = card.identify().await?.clone();
        let staged = Staged::new(&identity, design);
        let is_second_try = false;
        let last_error = None;
        let counts = Counts::default();
        Ok(Self { card, identity, staged, is_second_try, last_error, counts })
    }

    /// What the card is.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The card below, for its counts.
    #[must_use]
    pub const fn card(&self) -> &Card<Bus, Cs, Delay> {
        &self.card
    }

    /// Returns the card.
    #[must_use]
    pub fn into_card(self) -> Card<Bus, Cs, Delay> {
        self.card
    }

    /// The card's latest error, also of a request that was tried again.
    #[must_use]
    pub const fn last_error(&self) -> Option<Error> {
        self.last_error
    }

    /// What the disk has done.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Reads from `sector` on into `to`, a multiple of [`BLOCK_BYTES`](crate::frame::BLOCK_BYTES)
    /// long.
    ///
    /// # Errors
    ///
    /// Fails if the queue refuses it, or the card.
    ///
    /// # Panics
    ///
    /// Panics like [`Io::read`].
    pub async fn read(&mut self, sector: u64, to: &mut [u8]) -> Result<(), Failure> {
        self.run(&mut [Io::read(sector, to)]).await
    }

    /// Writes `from`, a multiple of [`BLOCK_BYTES`](crate::frame::BLOCK_BYTES) long, from `sector`
    /// on. It is durable when the call returns.
    ///
    /// # Errors
    ///
    /// Fails if the queue refuses it, or the card. Any part of it may have been written then.
    ///
    /// # Panics
    ///
    /// Panics like [`Io::write`].
    pub async fn write(&mut self, sector: u64, from: &[u8]) -> Result<(), Failure> {
        self.run(&mut [Io::write(sector, from)]).await
    }

    /// Erases `sectors` sectors from `sector` on.
    ///
    /// # Errors
    ///
    /// Fails with [`SubmitError::NotSupported`] if the card erases only groups of sectors, and as
    /// [`Self::write`].
    pub async fn erase(&mut self, sector: u64, sectors: u32) -> Result<(), Failure> {
        self.run(&mut [Io::erase(sector, sectors)]).await
    }

    /// Makes durable all that was written: see [`Io::flush`].
    ///
    /// # Errors
    ///
    /// Never fails.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        self.run(&mut [Io::flush()]).await
    }

    /// Does I/Os, in any order and as few transfers. I/Os of one call whose sectors overlap have no
    /// order either.
    ///
    /// # Errors
    ///
    /// Returns the result of the first I/O that failed; [`Io::result`] has that of each.
    pub async fn run(&mut self, ios: &mut [Io<'_>]) -> Result<(), Failure> {
        self.staged.drop_leftovers();
        self.is_second_try = false;
        self.counts.ios += ios.len() as u64;
        let mut next = 0;
        loop {
            next = self.staged.submit_from(next, ios);
            if let Some((taken, pieces)) = self.staged.taken() {
                let memory = Memory { ios, pieces };
                let result = perform(&mut self.card, taken, memory).await;
                let outcome = self.outcome(taken, result);
                self.staged.end(outcome);
            }
            while let Some((place, result)) = self.staged.next_ended() {
                ios[place].result = result;
            }
            if next == ios.len() && self.staged.is_empty() {
                return ios.iter().map(|io| io.result).find(Result::is_err).unwrap_or(Ok(()));
            }
        }
    }

    /// Returns how a request ended that the card did, with `result`.
    fn outcome(&mut self, taken: Taken, result: Result<(), Failed>) -> Outcome {
        let is_second_try = core::mem::take(&mut self.is_second_try);
        let Err(Failed { done, error }) = result else {
            self.counts.transfers += 1;
            return Outcome::Done(Status::Ok);
        };
        self.last_error = Some(error);
        if error.is_lost() && !is_second_try {
            // Once more, after the card was identified again.
            self.is_second_try = true;
            self.counts.requeues += 1;
            return Outcome::Again;
        }
        self.counts.transfers += 1;
        let status = error.status();
        if done == 0 {
            return Outcome::Done(status);
        }
        debug_assert!(done < taken.sectors, "{done} of {taken:?} done, and still {error}");
        Outcome::Partial { sectors: done, status }
    }
}

/// Does one request with the card.
async fn perform<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs>(
    card: &mut Card<Bus, Cs, Delay>,
    taken: Taken,
    mut memory: Memory<'_, '_>,
) -> Result<(), Failed> {
    let sector = taken.sector;
    let sectors = taken.sectors;
    match taken.op {
        Op::Read => card.read(sector, sectors, &mut memory).await,
        Op::Write => card.write(sector, sectors, &memory).await,
        Op::Discard => card.erase(sector, sectors).await.map_err(|error| Failed { done: 0, error }),
        other => unreachable!("the limits of a card admit no {other:?}"),
    }
}
