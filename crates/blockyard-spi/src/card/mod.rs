//! One SD card on an SPI bus that it has for itself.
//!
//! [`Card`] is identified by its first transfer, or by [`Card::identify`], at 400 kHz. Then the
//! clock becomes as fast as the card says, 25 MHz at most. Every command and block has a checksum
//! (CMD59). The submodules have the bytes on the wire (`wire`), the identification (`identify`),
//! and one try of a transfer (`transfer`).
//!
//! A command or block that was damaged on the wire is sent again, a few times at most. Blocks that
//! went well before it are not.
//!
//! # Rules
//!
//! - **[lost-is-identified]** A card whose connection is lost or in doubt, because an answer is
//!   missing or because the future of a transfer was dropped, is identified again before it is
//!   used. It must be the same card: data for one card does not go to another.
//!
//! Times are limited by counting delays, as there is no clock: limits are lower bounds.

mod identify;
mod transfer;
mod wire;

use crate::error::{Error, Failed};
use crate::frame::BLOCK_BYTES;
use crate::memory::{Sink, Source};
use blockyard_mmc::register::Bits;
use blockyard_mmc::register::csd::{Classes, Csd};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;
use transfer::{Run, none_done};
use wire::{TRIES, Wire};

/// The clock of the identification, in Hz.
pub const SLOW_HZ: u32 = 400_000;
/// The fastest clock that every card takes without a switch of its mode, in Hz.
pub const FAST_HZ: u32 = 25_000_000;

/// What a card is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Size, clock and commands.
    pub csd: Csd,
    /// The card's own number and name.
    pub cid: Bits<16>,
    /// Whether the card counts addresses in sectors (SDHC, SDXC), not in bytes (SDSC).
    pub is_sector_addressed: bool,
}

impl Identity {
    /// The size in sectors of 512 bytes. More than 2 TiB cannot be addressed, and do not count.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.csd.sectors.unwrap_or(0).min(1 << 32)
    }

    /// Whether the card can erase any sectors. A card that erases only groups of them would erase
    /// neighbours.
    #[must_use]
    pub fn can_erase(&self) -> bool {
        self.csd.classes.has(Classes::ERASE) && self.csd.erase_sectors == 1
    }

    fn address(&self, sector: u64) -> u32 {
        let unit = if self.is_sector_addressed { 1 } else { BLOCK_BYTES as u64 };
        u32::try_from(sector * unit).expect("a sector of the card has an address of 32 bits")
    }
}

/// What the card is doing for all that the host knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Reading,
    Writing { is_many: bool },
    Erasing,
}

/// An SD card.
///
/// Dropping the future of any call is safe: see [lost-is-identified] above. How much of a write was
/// done is then unknown, and the card stays selected until the next call.
#[derive(Debug)]
pub struct Card<Bus, Cs, Delay> {
    wire: Wire<Bus, Cs, Delay>,
    set_clock_hz: fn(&mut Bus, u32),
    identity: Option<Identity>,
    is_lost: bool,
    doing: Doing,
    repeats: u64,
}

impl<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs> Card<Bus, Cs, Delay> {
    /// Returns a card that is not identified yet.
    ///
    /// `cs` selects the card when it is low. `set_clock_hz` sets the clock of the bus to at most so
    /// many Hz. A bus whose clock cannot change must stay at or below [`SLOW_HZ`]. The bus is in
    /// SPI mode 0.
    pub const fn new(bus: Bus, cs: Cs, delay: Delay, set_clock_hz: fn(&mut Bus, u32)) -> Self {
        let wire = Wire::new(bus, cs, delay);
        let doing = Doing::Nothing;
        Self { wire, set_clock_hz, identity: None, is_lost: true, doing, repeats: 0 }
    }

    /// Returns bus, chip select and delay, for another card.
    #[must_use]
    pub fn into_parts(self) -> (Bus, Cs, Delay) {
        self.wire.into_parts()
    }

    /// How many transfers began again because a block was damaged on the wire.
    #[must_use]
    pub const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Identifies the card, unless that was done and the connection is not in doubt. Returns what
    /// it is.
    ///
    /// # Errors
    ///
    /// Fails if no SD card answers, and with [`Error::OtherCard`] if one was identified before and
    /// this is another.
    pub async fn identify(&mut self) -> Result<&Identity, Error> {
        if self.is_lost {
            // [lost-is-identified]
            (self.set_clock_hz)(&mut self.wire.bus, SLOW_HZ);
            if self.doing != Doing::Nothing {
                self.wire.abort(self.doing).await?;
                self.doing = Doing::Nothing;
            }
            let found = self.wire.identify().await;
            self.wire.deselect().await?;
            let found = found?;
            if self.identity.as_ref().is_some_and(|known| known.cid != found.cid) {
                return Err(Error::OtherCard);
            }
            let hz = found.csd.max_clock_hz.min(FAST_HZ);
            (self.set_clock_hz)(&mut self.wire.bus, hz);
            self.identity = Some(found);
            self.is_lost = false;
        }
        Ok(self.identity.as_ref().expect("a card that is not lost has an identity"))
    }

    /// Reads `sectors` sectors from `sector` on.
    ///
    /// # Errors
    ///
    /// Fails with the first sector that could not be read. Those before it are in `to`.
    ///
    /// # Panics
    ///
    /// Panics if `sectors` is 0, or if the range ends beyond the card or beyond `to`.
    pub async fn read<S: Sink + ?Sized>(
        &mut self,
        sector: u64,
        sectors: u32,
        to: &mut S,
    ) -> Result<(), Failed> {
        let mut progress = Progress::default();
        loop {
            let run = self.begin(Doing::Reading, sector, sectors, progress.done).await?;
            let result = self.wire.read_blocks(run, to).await;
            let result = self.end(result).await;
            match progress.after(result) {
                Some(result) => return result,
                None => self.repeats += 1,
            }
        }
    }

    /// Writes `sectors` sectors from `sector` on. They are on the medium when the call returns.
    ///
    /// # Errors
    ///
    /// Fails if the card does not have all of it. The first [`Failed::done`] sectors are on the
    /// medium; any of the others may be.
    ///
    /// # Panics
    ///
    /// Panics if `sectors` is 0, or if the range ends beyond the card or beyond `from`.
    pub async fn write<S: Source + ?Sized>(
        &mut self,
        sector: u64,
        sectors: u32,
        from: &S,
    ) -> Result<(), Failed> {
        let mut progress = Progress::default();
        loop {
            let doing = Doing::Writing { is_many: sectors - progress.done > 1 };
            let run = self.begin(doing, sector, sectors, progress.done).await?;
            let result = self.wire.write_blocks(run, from).await;
            let result = self.end(result).await;
            match progress.after(result) {
                Some(result) => return result,
                None => self.repeats += 1,
            }
        }
    }

    /// Erases `sectors` sectors from `sector` on. They read as all ones or all zeroes then, as the
    /// card likes.
    ///
    /// # Errors
    ///
    /// Fails if the card refuses, or takes longer than half a minute.
    ///
    /// # Panics
    ///
    /// Panics if `sectors` is 0, if the range ends beyond the card, or if the card
    /// [cannot](Identity::can_erase).
    pub async fn erase(&mut self, sector: u64, sectors: u32) -> Result<(), Error> {
        let run = self.begin(Doing::Erasing, sector, sectors, 0).await;
        let run = run.map_err(|failed| failed.error)?;
        let identity = self.identity.as_ref().expect("identity of a card that is selected");
        assert!(identity.can_erase(), "the card erases groups of sectors only");
        let last = identity.address(sector + u64::from(sectors) - 1);
        let result = self.wire.erase_blocks(run.address, last).await.map_err(none_done);
        self.end(result).await.map_err(|failed| failed.error)
    }

    /// Selects the card for a transfer that is `done` in part.
    async fn begin(
        &mut self,
        doing: Doing,
        sector: u64,
        sectors: u32,
        done: u32,
    ) -> Result<Run, Failed> {
        let lost = |error| Failed { done, error };
        let identity = self.identify().await.map_err(lost)?;
        let end = sector.checked_add(u64::from(sectors));
        assert!(end.is_some_and(|end| end <= identity.sectors()), "{sectors} sectors at {sector}");
        assert!(done < sectors, "a transfer of {sectors} sectors with {done} done");
        let address = identity.address(sector + u64::from(done));
        // Until `end`: the future may be dropped before.
        (self.is_lost, self.doing) = (true, doing);
        self.wire.select().await.map_err(lost)?;
        Ok(Run { address, first: done, blocks: sectors - done })
    }

    /// Deselects the card after one try. `result` is what became of it.
    async fn end(&mut self, result: Result<(), Failed>) -> Result<(), Failed> {
        self.wire.deselect().await.map_err(none_done)?;
        self.is_lost = result.is_err_and(|failed| failed.error.is_lost());
        if !self.is_lost {
            self.doing = Doing::Nothing;
        }
        result
    }
}

/// How far the tries of a transfer have come.
#[derive(Default)]
struct Progress {
    done: u32,
    tries: u32,
}

impl Progress {
    /// Takes the result of a try. Returns that of the transfer, or `None` if another try is due,
    /// from the damaged block on.
    fn after(&mut self, result: Result<(), Failed>) -> Option<Result<(), Failed>> {
        let Err(Failed { done, error }) = result else { return Some(Ok(())) };
        self.done += done;
        self.tries = if done > 0 { 1 } else { self.tries + 1 };
        let is_over = error != Error::Damaged || self.tries == TRIES;
        is_over.then_some(Err(Failed { done: self.done, error }))
    }
}
