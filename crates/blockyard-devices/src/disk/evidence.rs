//! Evidence of a hard disk: the words for its parts and their work.

use crate::counters::{Counter, counter};
use crate::load::{MediumCause, Parts, Work};
use crate::medium::{CauseWords, MediumWords};

/// The words.
pub(crate) const WORDS: MediumWords = MediumWords {
    room: "write cache",
    parts: &[(Parts::Head, "the disk's head is")],
    work: &[
        (Work::Seeks, "seeks", MediumCause::Commands),
        (Work::Rotation, "rotational latency", MediumCause::Commands),
        (Work::Transfer, "reading and writing", MediumCause::Commands),
    ],
    of_cause: |_| CauseWords::default(),
};

/// The counters, in the order of the medium's counts.
pub(crate) const COUNTERS: &[Counter] = &[
    counter(
        "seeks",
        "movements of the arm to another cylinder",
        "If there is nearly one for each command, the job is random for the disk.",
    ),
    counter(
        "seek_ns",
        "time of seeks and of switches of heads",
        "If it is most of the run, distances decide. A deeper queue or a smaller area helps.",
    ),
    counter(
        "rotation_ns",
        "rotational latency: waits on the track until the sector comes round",
        "If it is most of the run, the speed of rotation decides. A deeper queue helps.",
    ),
    counter(
        "transfer_ns",
        "time for which sectors of commands and of acknowledged writes passed the head",
        "If it is most of the run, the rate of the platters decides.",
    ),
    counter(
        "cached_reads",
        "reads that the cache answered",
        "If they are many, reading ahead works, or the job reads again what it wrote.",
    ),
    counter(
        "cached_writes",
        "writes that were acknowledged from the cache",
        "Such writes are faster than the platters, until the cache is full.",
    ),
    counter(
        "destages",
        "pieces that went from the cache to the platters",
        "If there are as many as `cached_writes`, no writes were joined.",
    ),
    counter(
        "overdue",
        "commands that went next because they had waited too long",
        "If they are many, the order by distance starves some commands. Tails are long, and the rate falls.",
    ),
];
