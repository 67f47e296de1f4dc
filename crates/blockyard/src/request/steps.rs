//! The steps of a flush sequence: which flushes a request needs before and after its data.
//!
//! # Rules
//!
//! - **[steps-from-flags]** The steps follow from the bio and the device. Without a volatile cache
//!   there are none: the flags are dropped, and a bio that is only a flush ends immediately. With
//!   one, PREFLUSH asks for a flush before the data, and FUA for a flush after it unless the device
//!   has FUA of its own ([`Limits::fua`], which applies to writes only).

use crate::bio::{Bio, Flags, Op};
use crate::limits::Limits;

/// The steps that a request must still take for its durability, as a set. Empty: the request is not
/// part of a sequence, or the sequence has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps(u8);

impl Steps {
    pub(crate) const NONE: Self = Self(0);
    const PREFLUSH: Self = Self(1);
    const DATA: Self = Self(2);
    const POSTFLUSH: Self = Self(4);

    /// Returns the steps of `bio`, whose flags mean something on a device with `limits`
    /// ([steps-from-flags]).
    pub(crate) fn of(bio: &Bio, limits: &Limits) -> Self {
        if !limits.write_cache {
            return Self::NONE;
        }
        if bio.op == Op::Flush {
            return Self::PREFLUSH;
        }
        let before = bio.flags.contains(Flags::PREFLUSH);
        let after = bio.flags.contains(Flags::FUA) && !has_fua(bio.op, limits);
        match (before, after) {
            (false, false) => Self::NONE,
            (true, false) => Self(Self::PREFLUSH.0 | Self::DATA.0),
            (false, true) => Self(Self::DATA.0 | Self::POSTFLUSH.0),
            (true, true) => Self(Self::PREFLUSH.0 | Self::DATA.0 | Self::POSTFLUSH.0),
        }
    }

    /// Whether no step is left.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the next step of a set that is not empty.
    pub(crate) const fn next(self) -> Step {
        debug_assert!(!self.is_empty(), "a sequence that has ended has no next step");
        if self.0 & Self::PREFLUSH.0 != 0 {
            Step::Flush
        } else if self.0 & Self::DATA.0 != 0 {
            Step::Data
        } else {
            Step::Flush
        }
    }

    /// Returns the set without its next step.
    pub(crate) const fn taken(self) -> Self {
        debug_assert!(!self.is_empty(), "a sequence that has ended takes no step");
        Self(self.0 & (self.0.wrapping_sub(1)))
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait for a flush, before or after the data.
    Flush,
    /// The request itself.
    Data,
}

/// Whether the device makes a request of `op` durable by itself.
fn has_fua(op: Op, limits: &Limits) -> bool {
    limits.fua && op == Op::Write
}

/// Returns the flags with which the data of a sequence goes to the device: without those that a
/// flush stands in for, and never mergeable.
pub(crate) fn data_flags(op: Op, flags: Flags, limits: &Limits) -> Flags {
    let emulated = if has_fua(op, limits) { Flags::NONE } else { Flags::FUA };
    flags.without(Flags::PREFLUSH | emulated) | Flags::NO_MERGE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a sequence in order: `f` a flush, `d` the data.
    fn steps(op: Op, flags: Flags, write_cache: bool, fua: bool) -> alloc::string::String {
        let limits = Limits { write_cache, fua, ..Limits::new(1024) };
        let mut steps = Steps::of(&Bio::new(op, 0, 8, 0).with_flags(flags), &limits);
        let mut text = alloc::string::String::new();
        while !steps.is_empty() {
            text.push(if steps.next() == Step::Flush { 'f' } else { 'd' });
            steps = steps.taken();
        }
        text
    }

    #[test]
    fn the_steps_follow_from_the_flags_and_the_cache() {
        let pre = Flags::PREFLUSH;
        let fua = Flags::FUA;
        let both = pre | fua;
        for (flags, volatile, native) in
            [(Flags::NONE, "", ""), (pre, "fd", "fd"), (fua, "df", ""), (both, "fdf", "fd")]
        {
            assert_eq!(steps(Op::Write, flags, true, false), volatile, "{flags:?}");
            assert_eq!(steps(Op::Write, flags, true, true), native, "{flags:?} with FUA");
            assert_eq!(steps(Op::Write, flags, false, false), "", "{flags:?} without a cache");
            assert_eq!(steps(Op::Discard, flags, true, true), volatile, "discard {flags:?}");
        }
        assert_eq!(steps(Op::Flush, Flags::NONE, true, false), "f");
    }

    #[test]
    fn the_device_is_asked_for_fua_only_where_it_has_it() {
        let limits = Limits { write_cache: true, fua: true, ..Limits::new(1024) };
        let flags = Flags::PREFLUSH | Flags::FUA | Flags::SYNC;
        let native = Flags::FUA | Flags::SYNC | Flags::NO_MERGE;
        assert_eq!(data_flags(Op::Write, flags, &limits), native);
        assert_eq!(data_flags(Op::WriteZeroes, flags, &limits), Flags::SYNC | Flags::NO_MERGE);
    }
}
