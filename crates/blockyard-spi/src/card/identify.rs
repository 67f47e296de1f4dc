//! From power-up, or any state, to a card that takes blocks (7.2.1 of the specification).

use super::wire::{Limit, Wire};
use super::{Doing, Identity};
use crate::error::Error;
use crate::frame::{Command, R1, START, STOP_MANY};
use blockyard_mmc::register::Bits;
use blockyard_mmc::register::csd::{Csd, Layout};
use blockyard_mmc::register::ocr::SdOcr;
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// CMD8: 2.7 to 3.6 V, and a pattern that the card must return.
const INTERFACE_CONDITION: u32 = 0x1aa;
/// How often CMD0 is sent to a card that does not become idle.
const RESETS: u32 = 10;
/// The pause between two tries of CMD0 or ACMD41.
const PAUSE_US: u32 = 1000;
/// How often ACMD41 is sent: for the second that a card may take to power up, and as long again.
const POWER_UPS: u32 = 2_000_000 / PAUSE_US;
/// More bytes than a block has with its token and checksum, and a command before it.
const LONGER_THAN_A_BLOCK: u32 = 540;

impl<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs> Wire<Bus, Cs, Delay> {
    /// Takes a card out of a transfer whose future was dropped, or whose answers made no sense. The
    /// card may be at any byte of it, or have ended it.
    pub(super) async fn abort(&mut self, doing: Doing) -> Result<(), Error> {
        self.select().await?;
        let limit = if doing == Doing::Erasing { Limit::ERASE } else { Limit::BUSY };
        // The rest of a command or block. Its checksum is wrong, so the card drops it.
        self.idle(LONGER_THAN_A_BLOCK).await?;
        // What follows tells whether the card is there: one that sends blocks may never be ready.
        let _ = self.ready(0, limit).await;
        // A card that does not wait for these tokens ignores them: no command begins with two high
        // bits.
        match doing {
            Doing::Nothing | Doing::Reading | Doing::Erasing => {}
            Doing::Writing { is_many: true } => self.write(&[STOP_MANY]).await?,
            Doing::Writing { is_many: false } => self.write(&[START]).await?,
        }
        self.idle(LONGER_THAN_A_BLOCK).await?;
        let _ = self.ready(0, limit).await;
        // Ends a read, or a write of many blocks of which one was dropped. Else the card refuses
        // it.
        self.write(&Command::new(12, 0).bytes()).await?;
        self.idle(LONGER_THAN_A_BLOCK).await?;
        let _ = self.ready(12, limit).await;
        self.deselect().await
    }

    /// Identifies the card. The clock must be slow, at most 400 kHz.
    pub(super) async fn identify(&mut self) -> Result<Identity, Error> {
        self.deselect().await?;
        self.idle(10).await?; // at least 74 clocks without selection
        self.select().await?;
        self.reset().await?;
        let is_version_2 = self.is_version_2().await?;
        self.idle_command(Command::new(59, 1)).await?; // checksums on
        self.power_up(is_version_2).await?;
        let ocr = self.ocr().await?;
        if !ocr.is_sector_addressed() {
            self.must(Command::new(16, 512)).await?;
        }
        let csd = Csd::sd(&self.register(9).await?).map_err(Error::Register)?;
        // The OCR has no checksum here. A wrong unit of addresses would lead writes astray; the
        // CSD, which has one, knows it.
        if ocr.is_sector_addressed() == (csd.layout == Layout::Sd1) {
            return Err(Error::Damaged);
        }
        let cid = self.register(10).await?;
        Ok(Identity { csd, cid, is_sector_addressed: ocr.is_sector_addressed() })
    }

    async fn reset(&mut self) -> Result<(), Error> {
        let mut last = Ok(());
        for _ in 0..RESETS {
            last = match self.command(Command::new(0, 0)).await {
                Ok(R1(R1::IDLE_STATE)) => return Ok(()),
                Ok(_) => Err(Error::NotSd),
                Err(error) => Err(error),
            };
            self.pause_us(PAUSE_US).await?;
        }
        last
    }

    /// Asks for version 2.00 of the specification, or later.
    async fn is_version_2(&mut self) -> Result<bool, Error> {
        let response = self.command(Command::new(8, INTERFACE_CONDITION)).await?;
        if response.has(R1::ILLEGAL_COMMAND) {
            return Ok(false);
        }
        let echo = self.word().await? & 0xfff;
        if echo == INTERFACE_CONDITION { Ok(true) } else { Err(Error::NotSd) }
    }

    /// Sends a command that any SD card takes in the idle state.
    async fn idle_command(&mut self, command: Command) -> Result<R1, Error> {
        let response = self.command(command).await?;
        if response.is_ok() { Ok(response) } else { Err(Error::NotSd) }
    }

    async fn power_up(&mut self, is_version_2: bool) -> Result<(), Error> {
        let argument = if is_version_2 { SdOcr::HIGH_CAPACITY } else { 0 };
        for _ in 0..POWER_UPS {
            let response = self.idle_command(Command::app(41, argument)).await?;
            if !response.has(R1::IDLE_STATE) {
                return Ok(());
            }
            self.pause_us(PAUSE_US).await?;
        }
        Err(Error::Timeout { command: 41 })
    }

    async fn ocr(&mut self) -> Result<SdOcr, Error> {
        // QEMU's card answers this command as if it were idle still. The register tells whether it
        // is.
        self.idle_command(Command::new(58, 0)).await?;
        let ocr = SdOcr(self.word().await?);
        if ocr.is_ready() && ocr.takes(SdOcr::VOLTAGES) { Ok(ocr) } else { Err(Error::NotSd) }
    }

    /// Reads the CSD (CMD9) or CID (CMD10), again if it is damaged on the wire.
    async fn register(&mut self, index: u8) -> Result<Bits<16>, Error> {
        let mut bytes = [0; 16];
        for _ in 0..super::wire::TRIES {
            self.must(Command::new(index, 0)).await?;
            match self.receive(&mut bytes, index).await {
                Err(Error::Damaged) => {}
                result => return result.map(|()| Bits(bytes)),
            }
        }
        Err(Error::Damaged)
    }
}
