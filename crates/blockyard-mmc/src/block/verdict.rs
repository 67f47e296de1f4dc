//! Verdicts after a failed transfer: another try, or the end of the request.

use super::slot::{Scope, Slot};
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};
use crate::exchange::{Cause, Failure};
use blockyard::status::Status;

/// The number of times that a request is tried again.
pub const RETRIES_MAX: u8 = 5;
/// The greatest number of times that a request is tried again after an error of its data.
pub const DATA_RETRIES: u8 = 2;
/// The tries of a sector that is read alone.
pub const SECTOR_TRIES: u8 = 2;
/// How often commands of the recovery may fail, or not help.
pub(super) const COMMAND_TRIES: u8 = 3;

const _: () = assert!(DATA_RETRIES < RETRIES_MAX, "an error of the data saves retries");

/// The verdict on a request of which a transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The request is tried again.
    Again,
    /// The request is tried again after a reset of controller and card.
    AgainAfterReset,
    /// The request ends with this status.
    Ends(Status),
}

impl Slot {
    /// Returns what becomes of the request, which has something left to transfer, after `failure`.
    pub(super) fn verdict(&mut self, failure: Failure) -> Verdict {
        debug_assert!(self.retries <= RETRIES_MAX, "{} retries", self.retries);
        if let Scope::BySector { tries } = &mut self.scope {
            *tries += 1;
            if *tries >= SECTOR_TRIES {
                return Verdict::Ends(status_of(failure));
            }
        } else if self.retries == RETRIES_MAX {
            if !self.kind.is_read() || self.left() == self.unit {
                return Verdict::Ends(status_of(failure));
            }
            self.scope = Scope::BySector { tries: 0 };
        } else {
            if failure.part == Part::Data {
                self.retries = self.retries.max(RETRIES_MAX - DATA_RETRIES); // [retries-bounded]
            }
            self.retries += 1;
            if self.retries == RETRIES_MAX {
                return Verdict::AgainAfterReset; // before the last try
            }
        }
        Verdict::Again
    }
}

/// Returns the status of a request that ends after `failure`.
pub(super) const fn status_of(failure: Failure) -> Status {
    match failure.cause {
        Cause::Gone => Status::Gone,
        Cause::Host(HostError::Timeout) => Status::Timeout,
        Cause::Card(status) if status.has(CardStatus::CARD_ECC_FAILED) => Status::Medium,
        Cause::Host(_) | Cause::Card(_) => Status::IoError,
    }
}
