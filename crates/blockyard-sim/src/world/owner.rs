//! The owners of bios: the cookie of a bio names its owner, and the owner's number for the bio.

use blockyard::bio::Submitter;
use blockyard_trace::observe::{ActorId, TaskId};

/// The owner of a bio, and a waiter for a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A task.
    Task(TaskId),
    /// An actor that was added to the world.
    Added(ActorId),
}

/// The bit of an owner's 32-bit code that marks an added actor. Every number of a task is below
/// this bit.
const ADDED_BIT: u32 = 1 << 31;

/// The bit in a cookie's number that marks the number of a run of pages instead of an I/O of a
/// task. Every depth is below this bit.
pub(super) const RUN_BIT: u32 = 1 << 31;

impl Owner {
    const fn code(self) -> u32 {
        match self {
            Self::Task(id) => id.0,
            Self::Added(id) => ADDED_BIT | id.0,
        }
    }

    const fn of_code(code: u32) -> Self {
        if code & ADDED_BIT == 0 {
            Self::Task(TaskId(code))
        } else {
            Self::Added(ActorId(code & !ADDED_BIT))
        }
    }

    /// Returns the cookie of the owner's bio `number`.
    pub(super) const fn cookie(self, number: u32) -> u64 {
        (self.code() as u64) << 32 | number as u64
    }

    /// Returns the owner of a cookie, and its number for the bio.
    #[expect(clippy::cast_possible_truncation, reason = "both halves of 64 bits are 32 bits")]
    pub(super) const fn of_cookie(cookie: u64) -> (Self, u32) {
        (Self::of_code((cookie >> 32) as u32), cookie as u32)
    }

    /// Returns the owner, which is in control group `group`, as the submitter of its bios.
    pub(super) const fn submitter(self, group: u32) -> Submitter {
        Submitter { process: self.code(), group }
    }

    /// Returns the number under which the owner waits for a tag.
    pub(super) const fn waiter(self) -> u64 {
        self.code() as u64
    }

    /// Returns the owner that waits for a tag under `number`.
    pub(super) fn of_waiter(number: u64) -> Self {
        let code = u32::try_from(number);
        Self::of_code(code.expect("a waiter for a tag should have a 32-bit number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_and_its_number_are_found_by_the_cookie_and_the_waiter() {
        for owner in [0, 1, ADDED_BIT - 1].map(|number| Owner::Task(TaskId(number))) {
            assert_eq!(Owner::of_cookie(owner.cookie(u32::MAX)), (owner, u32::MAX));
            assert_eq!(Owner::of_waiter(owner.waiter()), owner);
        }
        let added = Owner::Added(ActorId(0));
        assert_eq!(Owner::of_cookie(added.cookie(7)), (added, 7));
        assert_eq!(Owner::of_waiter(added.waiter()), added);
        assert_ne!(added.cookie(7), Owner::Task(TaskId(0)).cookie(7));
    }
}
