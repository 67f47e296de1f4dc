//! Says which bios need flushes of the device ([steps-from-flags] of [`flush`](blockyard::flush)).

use blockyard::bio::{Bio, Flags, Op};
use blockyard::limits::Limits;

/// Returns whether data of `bio` should be sent to the device with FUA.
pub(super) fn is_native_fua(bio: &Bio, limits: &Limits) -> bool {
    limits.write_cache && limits.fua && bio.op == Op::Write && bio.flags.contains(Flags::FUA)
}

/// Returns whether `bio` needs a flush after its data.
pub(super) fn needs_postflush(bio: &Bio, limits: &Limits) -> bool {
    carries_data(bio, limits) && bio.flags.contains(Flags::FUA) && !is_native_fua(bio, limits)
}

/// Returns whether data of `bio` is sent as part of a flush sequence.
pub(super) fn is_sequenced(bio: &Bio, limits: &Limits) -> bool {
    needs_postflush(bio, limits)
        || (carries_data(bio, limits) && bio.flags.contains(Flags::PREFLUSH))
}

/// Returns whether `bio` may fail with a flush.
pub(super) fn needs_flush(bio: &Bio, limits: &Limits) -> bool {
    is_sequenced(bio, limits) || (limits.write_cache && bio.op == Op::Flush)
}

fn carries_data(bio: &Bio, limits: &Limits) -> bool {
    limits.write_cache && !bio.op.is_read() && !bio.op.is_passthrough() && bio.op != Op::Flush
}
