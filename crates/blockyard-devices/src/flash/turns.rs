//! The turns of a die: whether a read goes before other work that waits, by the order that the
//! profile chooses.
//!
//! - Where reads go first, a read goes before programs and erases that have not begun. At most
//!   `passes` reads go before work that waits, and again as many suspend it. After them it runs to
//!   its end.
//! - In the order of shares, a read goes before other work unless reads are ahead: while both wait,
//!   each read counts with the mean time of a page, each program or erase with its own, and
//!   programs and erases get `share` percent of the sum. With 50, a program of 600 us and reads of
//!   60 us, ten reads go between two programs.
//! - In the order of arrival, a read of a die waits for the operation that has begun, and for the
//!   programs that the die has been given before: of those that wait for dies when the read is
//!   asked for, the first `queued` for each die. All dies take programs in turn, so each has its
//!   part of them. Collection that they owe comes with them, and the read does not slip into the
//!   gaps of it.

use crate::flash::profile::{DieOrder, FlashProfile};
use blockyard::time::Duration;

/// The turns of a die.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// Reads that went before the work that waits.
    passed: u16,
    /// By how much reads are ahead of their share, in hundredths of a nanosecond.
    ahead: i64,
}

impl Turns {
    /// Those of a die that has done nothing.
    pub(super) const NEW: Self = Self { passed: 0, ahead: 0 };

    /// Whether a read may go before other work that is due.
    pub(super) const fn may_pass(&self, profile: &FlashProfile) -> bool {
        match profile.order {
            // With `passes` of 3, the fourth read waits until the other work has begun.
            DieOrder::ReadsFirst => self.passed < profile.passes,
            // Reads are ahead once they have had more time than their share.
            DieOrder::Shares => self.ahead <= 0,
            DieOrder::Arrival => false,
        }
    }

    /// Notes that a read begins, before work that is `due` or while there is none.
    pub(super) fn read_begins(&mut self, due: bool, profile: &FlashProfile) {
        if !due {
            *self = Self::NEW;
            return;
        }
        self.passed += 1;
        self.ahead += hundredths(profile.read, profile.share);
    }

    /// Notes that a program or erase of `time` begins, and whether reads wait meanwhile.
    pub(super) fn work_begins(&mut self, reads_wait: bool, time: Duration, profile: &FlashProfile) {
        debug_assert!((1..100).contains(&profile.share), "a share of {} %", profile.share);
        let ahead = self.ahead - hundredths(time, 100 - profile.share);
        *self = Self { passed: 0, ahead: if reads_wait { ahead } else { 0 } };
    }
}

/// Returns `percent` of `time`, in hundredths of a nanosecond.
fn hundredths(time: Duration, percent: u8) -> i64 {
    let ns = i64::try_from(time.as_ns()).expect("a time of a profile is an hour at most");
    ns * i64::from(percent)
}
