//! One try of a transfer, on a card that is selected.

use super::wire::{Limit, Wire};
use crate::error::{Error, Failed};
use crate::frame::{Command, START, START_MANY};
use crate::memory::{Sink, Source};
use embedded_hal::digital::OutputPin;
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::SpiBus;

/// Blocks that follow each other on a card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The address of the first, as the card counts.
    pub(super) address: u32,
    /// The first one's number in the caller's memory.
    pub(super) first: u32,
    /// How many there are, at least one.
    pub(super) blocks: u32,
}

/// Nothing was transferred.
pub(super) const fn none_done(error: Error) -> Failed {
    Failed { done: 0, error }
}

impl<Bus: SpiBus, Cs: OutputPin, Delay: DelayNs> Wire<Bus, Cs, Delay> {
    pub(super) async fn read_blocks<S: Sink + ?Sized>(
        &mut self,
        run: Run,
        to: &mut S,
    ) -> Result<(), Failed> {
        let is_many = run.blocks > 1;
        let index = if is_many { 18 } else { 17 };
        self.must(Command::new(index, run.address)).await.map_err(none_done)?;
        let mut result = Ok(());
        for done in 0..run.blocks {
            let block = to.block_mut(run.first + done);
            result = self.receive(block, index).await.map_err(|error| Failed { done, error });
            if result.is_err() {
                break;
            }
        }
        let is_lost = result.is_err_and(|failed| failed.error.is_lost());
        if is_many && !is_lost {
            self.stop().await.map_err(none_done)?;
        }
        result
    }

    pub(super) async fn write_blocks<S: Source + ?Sized>(
        &mut self,
        run: Run,
        from: &S,
    ) -> Result<(), Failed> {
        let is_many = run.blocks > 1;
        let (index, token) = if is_many { (25, START_MANY) } else { (24, START) };
        if is_many {
            // The card may erase ahead.
            self.must(Command::app(23, run.blocks)).await.map_err(none_done)?;
        }
        self.must(Command::new(index, run.address)).await.map_err(none_done)?;
        for done in 0..run.blocks {
            let block = from.block(run.first + done);
            if let Err(error) = self.transmit(token, block, index).await {
                return Err(self.give_up_write(is_many, Failed { done, error }).await);
            }
        }
        if is_many {
            self.stop_write().await.map_err(none_done)?;
        }
        // Only now is it known whether the card could program what it had accepted.
        match self.status().await.map_err(none_done)? {
            0 => Ok(()),
            status => Err(none_done(Error::Unwritable(status))),
        }
    }

    /// Ends a write that failed, and asks the card how much of it has been written.
    async fn give_up_write(&mut self, is_many: bool, failed: Failed) -> Failed {
        if failed.error.is_lost() {
            return none_done(failed.error);
        }
        match self.blocks_written(is_many).await {
            Ok((written, status)) => Failed {
                done: written.min(failed.done),
                error: match failed.error {
                    Error::Unwritable(_) => Error::Unwritable(status),
                    error => error,
                },
            },
            Err(error) => none_done(error),
        }
    }

    /// Returns how many blocks of a write that failed are on the card, and the card's status.
    async fn blocks_written(&mut self, is_many: bool) -> Result<(u32, u8), Error> {
        if !is_many {
            return Ok((0, self.status().await?));
        }
        self.stop().await?;
        let status = self.status().await?;
        self.must(Command::app(22, 0)).await?;
        let mut count = [0; 4];
        self.receive(&mut count, 22).await?;
        Ok((u32::from_be_bytes(count), status))
    }

    /// Erases `blocks` from the address `first` to `last`, both included.
    pub(super) async fn erase_blocks(&mut self, first: u32, last: u32) -> Result<(), Error> {
        self.must(Command::new(32, first)).await?;
        self.must(Command::new(33, last)).await?;
        self.must(Command::new(38, 0)).await?;
        self.ready(38, Limit::ERASE).await?;
        match self.status().await? {
            0 => Ok(()),
            status => Err(Error::Unwritable(status)),
        }
    }
}
