//! The bounds of B-WF2Q+ on shares, as a check of accounts: for tests and [`Audited`].
//!
//! [`Audited`]: super::Audited

use alloc::string::String;

/// What an entity got, and the largest budget that it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) weight: u64,
    pub(super) served: u64,
    pub(super) budget: u64,
}

/// Checks [service-near-share]: of `accounts`, all of which have had requests all the time. An
/// entity is behind or ahead of its share by its own budget and the largest of the others at most,
/// `slack` times: once if none of them was served before, twice if each may have begun so far
/// behind or ahead.
pub(super) fn check_shares(accounts: &[Account], slack: u64) -> Result<(), String> {
    let weights: u64 = accounts.iter().map(|of| of.weight).sum();
    let served: u64 = accounts.iter().map(|of| of.served).sum();
    for (at, of) in accounts.iter().enumerate() {
        let others = accounts.iter().enumerate().filter(|(other, _)| *other != at);
        let largest = others.map(|(_, other)| other.budget).max().unwrap_or(0);
        let apart = (of.served * weights).abs_diff(served * of.weight);
        if apart > slack * (of.budget + largest) * weights {
            return Err(alloc::format!("[service-near-share] {at} of {accounts:?}"));
        }
    }
    Ok(())
}
