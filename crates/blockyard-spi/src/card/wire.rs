//! The bytes between host and card: selection, commands, blocks, and waiting.

use crate::error::Error;
use crate::frame::{
    BLOCK_BYTES, Command, DataResponse, ErrorToken, IDLE, R1, START, STOP_MANY, crc16,
};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// How often something that was damaged on the wire is sent, at most.
pub(super) const TRIES: u32 = 4;
/// The bytes within which a card responds (N_CR), and one more.
const RESPONSE_BYTES: u32 = 9;
/// Bytes that are polled without a delay in between: an access that is ready soon pays for none.
const POLLED_BYTES: u32 = 16;
/// The pause between later polls.
const POLL_US: u32 = 50;

/// How long a card may keep the host waiting, in microseconds (4.6.2 of the specification).
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit(u32);

impl Limit {
    /// For the first byte of a block that is read.
    pub(super) const READ: Self = Self(100_000);
    /// For the busy signal of a write or any command but erase: that of SDXC, the longest.
    pub(super) const BUSY: Self = Self(500_000);
    /// For the busy signal of an erase. It is long, as a card of the oldest kind states no time.
    pub(super) const ERASE: Self = Self(30_000_000);
}

/// The wires to a card.
#[derive(Debug)]
pub(super) struct Wire<Bus, Cs, Delay> {
    pub(super) bus: Bus,
    cs: Cs,
    delay: Delay,
}

impl<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs> Wire<Bus, Cs, Delay> {
    pub(super) const fn new(bus: Bus, cs: Cs, delay: Delay) -> Self {
        Self { bus, cs, delay }
    }

    pub(super) fn into_parts(self) -> (Bus, Cs, Delay) {
        (self.bus, self.cs, self.delay)
    }

    pub(super) async fn select(&mut self) -> Result<(), Error> {
        self.bus.flush().await.map_err(bus_error)?;
        self.cs.set_low().map_err(|_| Error::ChipSelect)
    }

    /// Ends the selection. The card lets go of its output within the eight clocks that follow.
    pub(super) async fn deselect(&mut self) -> Result<(), Error> {
        self.bus.flush().await.map_err(bus_error)?;
        self.cs.set_high().map_err(|_| Error::ChipSelect)?;
        self.idle(1).await
    }

    pub(super) async fn pause_us(&mut self, us: u32) -> Result<(), Error> {
        self.bus.flush().await.map_err(bus_error)?;
        self.delay.delay_us(us).await;
        Ok(())
    }

    /// Sends `bytes` idle bytes, and drops those that arrive.
    pub(super) async fn idle(&mut self, bytes: u32) -> Result<(), Error> {
        for _ in 0..bytes {
            self.byte().await?;
        }
        Ok(())
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bus.write(bytes).await.map_err(bus_error)
    }

    /// Fills `bytes` from the card, while the host's line stays high.
    pub(super) async fn read(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        bytes.fill(IDLE); // `SpiBus::read` may send anything
        self.bus.transfer_in_place(bytes).await.map_err(bus_error)
    }

    pub(super) async fn byte(&mut self) -> Result<u8, Error> {
        let mut byte = [IDLE];
        self.read(&mut byte).await?;
        Ok(byte[0])
    }

    /// Reads bytes until one is `wanted`, and returns it; `None` if none was within `limit`.
    async fn poll(
        &mut self,
        limit: Limit,
        wanted: impl Fn(u8) -> bool,
    ) -> Result<Option<u8>, Error> {
        for at in 0..POLLED_BYTES + limit.0 / POLL_US {
            if at >= POLLED_BYTES {
                self.pause_us(POLL_US).await?;
            }
            let byte = self.byte().await?;
            if wanted(byte) {
                return Ok(Some(byte));
            }
        }
        Ok(None)
    }

    /// Waits until the card is not busy with `command`.
    pub(super) async fn ready(&mut self, command: u8, limit: Limit) -> Result<(), Error> {
        let ready = self.poll(limit, |byte| byte == IDLE).await?;
        ready.map(|_| ()).ok_or(Error::Timeout { command })
    }

    /// Sends a command, again if it was damaged on the wire, and returns the card's response.
    pub(super) async fn command(&mut self, command: Command) -> Result<R1, Error> {
        for _ in 0..TRIES {
            if command.app {
                let prefix = self.send(Command::new(55, 0)).await?;
                if prefix.has(R1::CRC_ERROR) {
                    continue;
                }
                if !prefix.is_ok() {
                    return Ok(prefix);
                }
            }
            let response = self.send(command).await?;
            if !response.has(R1::CRC_ERROR) {
                return Ok(response);
            }
        }
        Err(Error::Damaged)
    }

    async fn send(&mut self, command: Command) -> Result<R1, Error> {
        let index = command.index;
        // CMD0 and CMD12 end whatever the card does.
        if !matches!(index, 0 | 12) {
            self.ready(index, Limit::BUSY).await?;
        }
        self.write(&command.bytes()).await?;
        if index == 12 {
            self.byte().await?; // what the card had begun to send
        }
        for _ in 0..RESPONSE_BYTES {
            let byte = self.byte().await?;
            if R1::is_response(byte) {
                return Ok(R1(byte));
            }
        }
        Err(Error::NoAnswer { command: index })
    }

    /// Sends a command that the card must take without any bit in its response.
    pub(super) async fn must(&mut self, command: Command) -> Result<(), Error> {
        let R1(response) = self.command(command).await?;
        if response == 0 {
            Ok(())
        } else {
            Err(Error::Refused { command: command.index, response })
        }
    }

    /// Reads the four bytes behind R1.
    pub(super) async fn word(&mut self) -> Result<u32, Error> {
        let mut bytes = [0; 4];
        self.read(&mut bytes).await?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// Reads a block that `command` asked for.
    pub(super) async fn receive(&mut self, bytes: &mut [u8], command: u8) -> Result<(), Error> {
        let token = match self.poll(Limit::READ, |byte| byte != IDLE).await? {
            Some(token) if ErrorToken::is_one(token) => return Err(Error::Unreadable(token)),
            Some(token) => token,
            None => return Err(Error::Timeout { command }),
        };
        // A block follows a damaged token, too, and must not be taken for an answer.
        self.read(bytes).await?;
        let mut crc = [0; 2];
        self.read(&mut crc).await?;
        let is_whole = token == START && crc16(bytes) == u16::from_be_bytes(crc);
        if is_whole { Ok(()) } else { Err(Error::Damaged) }
    }

    /// Writes a block behind `token`, for `command`, and waits until the card has room for the
    /// next.
    pub(super) async fn transmit(
        &mut self,
        token: u8,
        bytes: &[u8],
        command: u8,
    ) -> Result<(), Error> {
        debug_assert_eq!(bytes.len(), BLOCK_BYTES, "a block of a card");
        self.write(&[IDLE, token]).await?;
        self.write(bytes).await?;
        self.write(&crc16(bytes).to_be_bytes()).await?;
        let response = DataResponse::of(self.byte().await?);
        let response = response.ok_or(Error::NoAnswer { command })?;
        self.ready(command, Limit::BUSY).await?;
        match response {
            DataResponse::Accepted => Ok(()),
            DataResponse::CrcError => Err(Error::Damaged),
            DataResponse::WriteError => Err(Error::Unwritable(0)),
        }
    }

    /// Ends a transfer of many blocks: a read, or a write that failed.
    pub(super) async fn stop(&mut self) -> Result<(), Error> {
        // The response repeats errors that tokens have told already.
        self.command(Command::new(12, 0)).await?;
        self.ready(12, Limit::BUSY).await
    }

    /// Ends a write of many blocks that went well.
    pub(super) async fn stop_write(&mut self) -> Result<(), Error> {
        self.write(&[STOP_MANY]).await?;
        self.byte().await?; // the card becomes busy behind this byte
        self.ready(25, Limit::BUSY).await
    }

    /// Returns the second byte of the card's status (R2), which reading clears.
    pub(super) async fn status(&mut self) -> Result<u8, Error> {
        self.must(Command::new(13, 0)).await?;
        self.byte().await
    }
}

fn bus_error(error: impl embedded_hal_async::spi::Error) -> Error {
    Error::Bus(error.kind())
}
