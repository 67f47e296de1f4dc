//! Evidence of a volume: the words for its parts and their work.

use crate::counters::{Counter, counter};
use crate::load::{MediumCause, Parts, Work};
use crate::medium::{CauseWords, MediumWords};

/// The words.
pub(crate) const WORDS: MediumWords = MediumWords {
    room: "write buffer",
    parts: &[
        (Parts::IosLimit, "the volume's IOPS limit is"),
        (Parts::BytesLimit, "the volume's throughput limit is"),
    ],
    work: &[
        (Work::BaselineRate, "at the baseline rate", MediumCause::Commands),
        (Work::BurstCredit, "on burst credit, which runs out", MediumCause::Commands),
    ],
    of_cause: |_| CauseWords::default(),
};

/// The counters, in the order of the medium's counts.
pub(crate) const COUNTERS: &[Counter] = &[
    counter(
        "ios_counted",
        "I/Os as the provider counts them, by size",
        "If it exceeds the commands, large I/Os count as several.",
    ),
    counter(
        "iops_limit_wait_ns",
        "waits of commands for the IOPS limit",
        "If it is most of the time of the commands, this limit sets the rate. Longer I/Os carry more bytes.",
    ),
    counter(
        "bytes_limit_wait_ns",
        "waits of commands for the throughput limit",
        "If it is most of the time of the commands, this limit sets the rate.",
    ),
    counter(
        "io_credit_spent",
        "burst credit for I/Os that the run spent and did not earn again",
        "Credit pays for I/Os beyond the rate. A run that spends credit cannot last: a longer one is slower. `--set volume.iops.credit=1` begins without.",
    ),
    counter(
        "byte_credit_spent",
        "burst credit for bytes that the run spent and did not earn again",
        "As `io_credit_spent`, for the throughput limit.",
    ),
];
