//! Transfers that a host leaves open between its requests.
//!
//! The card cannot tell a pause from the end. It keeps the page that it is receiving until the page
//! is full or CMD12 arrives, and is not busy in between. A read that goes on needs no access, and
//! its data passes as fast as the card reads ahead.

use super::Card;
use super::fate::When;
use super::misuse::{Misuse, Wrong};
use super::transfer::{Ahead, Transfer, TransferState};
use blockyard::time::Instant;
use blockyard_mmc::command::Direction;

impl Card {
    /// Notes that the host leaves the transfer that has just begun open after its blocks.
    pub(in crate::mmc) fn stay_open(&mut self) {
        if let Some(transfer) = &mut self.transfer {
            debug_assert!(transfer.open_ended, "{transfer:?} ends by itself");
            transfer.stays_open = true;
        }
    }

    /// Lets the open transfer go on at `at` with `blocks` more.
    ///
    /// # Errors
    ///
    /// Returns [`Misuse`] if no transfer is open, an earlier block failed, or the card has no such
    /// blocks. Then nothing changes.
    pub(in crate::mmc) fn go_on(&mut self, blocks: u32, at: Instant) -> Result<(), Misuse> {
        if self.silent {
            return Ok(());
        }
        let sectors = self.registers.sectors;
        let fits = |open: &&mut Transfer| {
            open.stays_open
                && open.left == 0
                && open.state == TransferState::UnderWay
                && open.sector + u64::from(blocks) <= sectors
        };
        let Some(transfer) = self.transfer.as_mut().filter(fits) else {
            return Err(self.data_misuse(Wrong::Transfer(blocks)));
        };
        transfer.left = blocks;
        transfer.passed = 0;
        if transfer.direction == Direction::Write {
            return Ok(());
        }
        transfer.handed_on = 0;
        let (Ahead::Begun(stream) | Ahead::Joined(stream)) = transfer.stream else {
            return Ok(());
        };
        if let Some(ahead) = &self.timing.read.ahead {
            let next = transfer.sector + u64::from(blocks);
            self.streams.go_on(ahead, stream, next, at);
            transfer.stream = Ahead::Joined(stream);
        }
        Ok(())
    }

    /// Records the last `run` sectors that `transfer`, which stays open, has received. They belong
    /// to a page that is not complete, or was completed by them.
    pub(super) fn received_open(&mut self, transfer: &mut Transfer, run: u32) {
        let lie = transfer.sector - u64::from(run)..transfer.sector;
        let when = match self.when_certain(transfer) {
            When::Now => When::Programmed, // the page could still get lost
            other => other,
        };
        let page = self.engine.last_page() + 1;
        if let Some(fate) = &mut self.fate {
            match transfer.page_fails {
                true => fate.fails(lie),
                false => fate.received(transfer.passed, lie, page, when),
            }
        }
        transfer.passed += run;
    }

    /// Records that the last page of `transfer`, which stays open, is complete.
    pub(super) fn completed_open(&mut self, transfer: &Transfer) {
        let page = self.engine.last_page();
        if self.when_certain(transfer) == When::Now
            && let Some(fate) = &mut self.fate
        {
            fate.certain(page);
        }
    }
}
