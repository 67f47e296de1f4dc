//! Erasing: its three commands, and the card's busy time after the third.

use super::misuse::Wrong;
use crate::mmc::profile::EraseTiming;
use blockyard::time::Duration;
use blockyard_mmc::command::erase::{MmcErase, SdErase};
use blockyard_mmc::command::{Opcode, Standard};

/// The range that the first two commands give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
}

impl Range {
    /// Returns the first and the last sector. Returns `None` if one is missing or the last precedes
    /// the first.
    pub(super) fn sectors(&self) -> Option<(u64, u64)> {
        self.first.zip(self.last).filter(|(first, last)| first <= last)
    }
}

/// The operation that CMD38 asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Erase,
    Trim,
    Discard,
    /// SD: the whole card.
    Full,
}

impl Kind {
    pub(super) fn parse(standard: Standard, argument: u32) -> Result<Self, Wrong> {
        let mmc = standard == Standard::Mmc;
        if mmc && argument == MmcErase::Trim.argument() {
            Ok(Self::Trim)
        } else if mmc && argument == MmcErase::Discard.argument() {
            Ok(Self::Discard)
        } else if mmc && argument != MmcErase::Erase.argument() {
            Err(Wrong::Unmodelled("secure erase"))
        } else if argument == SdErase::Erase.argument() {
            Ok(Self::Erase)
        } else if argument == SdErase::Discard.argument() {
            Ok(Self::Discard)
        } else if argument == SdErase::Full.argument() {
            Ok(Self::Full)
        } else {
            Err(Wrong::Unmodelled("an erase with that argument"))
        }
    }

    /// Returns the time to erase the sectors `first` to `last`, in groups of `group_sectors`.
    pub(super) const fn time(
        self,
        timing: &EraseTiming,
        group_sectors: u64,
        first: u64,
        last: u64,
    ) -> Duration {
        debug_assert!(first <= last, "a range that ends before it begins");
        let groups = last / group_sectors - first / group_sectors + 1;
        let each = match self {
            Self::Erase | Self::Full => timing.erase,
            Self::Trim => timing.trim,
            Self::Discard => timing.discard,
        };
        Duration::from_ns(each.as_ns().saturating_mul(groups))
    }
}

/// Returns whether `opcode` may come between the commands of an erase without cancelling it.
pub(super) const fn keeps_range(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::SendStatus
            | Opcode::SdEraseStart
            | Opcode::SdEraseEnd
            | Opcode::MmcEraseStart
            | Opcode::MmcEraseEnd
            | Opcode::Erase
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_takes_the_time_of_all_groups_it_touches() {
        let timing = EraseTiming {
            group_sectors: 8,
            erase: Duration::from_ms(3),
            trim: Duration::from_ms(2),
            discard: Duration::from_ms(1),
            sanitize: Duration::ZERO,
        };
        // Sectors 7 and 8 are in two groups, 8 to 15 in one, 7 to 16 in three.
        assert_eq!(Kind::Erase.time(&timing, 8, 7, 8), Duration::from_ms(6));
        assert_eq!(Kind::Trim.time(&timing, 8, 8, 15), Duration::from_ms(2));
        assert_eq!(Kind::Discard.time(&timing, 8, 7, 16), Duration::from_ms(3));
    }

    #[test]
    fn the_argument_means_what_its_standard_says() {
        use Standard::{Mmc, Sd};
        assert_eq!(Kind::parse(Mmc, 1), Ok(Kind::Trim));
        assert_eq!(Kind::parse(Sd, 1), Ok(Kind::Discard));
        assert_eq!(Kind::parse(Mmc, 3), Ok(Kind::Discard));
        assert_eq!(Kind::parse(Sd, 2), Ok(Kind::Full));
        assert_eq!(Kind::parse(Mmc, 0), Ok(Kind::Erase));
        for (standard, argument) in [(Mmc, 0x8000_0000), (Mmc, 2), (Sd, 3)] {
            assert!(matches!(Kind::parse(standard, argument), Err(Wrong::Unmodelled(_))));
        }
    }
}
