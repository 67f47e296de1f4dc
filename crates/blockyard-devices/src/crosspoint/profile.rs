//! Memory that is written in place: the table `[crosspoint]`.

use super::Crosspoint;
use crate::charges::{Charges, Resource};
use crate::counters::{Counter, counter};
use crate::load::Parts;
use crate::medium::{CauseWords, MediumFamily, MediumWords};
use blockyard::prng::Prng;
use blockyard::time::Duration;

use crate::reader::error::ProfileError;
use crate::reader::spread::{PERCENTS, Spread};
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, Time};

/// The figures of memory that is written in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrosspointProfile {
    /// Channels that work side by side.
    pub channels: u16,
    /// Bytes that lie together on one channel; the next ones lie on the next channel.
    pub unit: u64,
    /// Time for which a unit that is read occupies its channel.
    pub(crate) read_unit: Duration,
    /// Time for which a unit that is written occupies its channel.
    pub(crate) write_unit: Duration,
    /// Latency of a read beyond the time of its units.
    pub read: Duration,
    /// Latency of a write beyond the time of its units.
    pub write: Duration,
    /// The spread of `read` and `write`; `None`: they are always the same.
    pub spread: Option<Spread>,
}

impl MediumFamily for CrosspointProfile {
    type Medium = Crosspoint;

    const TABLE: &'static str = "crosspoint";
    const BASE: Option<&'static str> = Some("nvme-3dxpoint");
    const WORDS: MediumWords = MediumWords {
        room: "write buffer",
        parts: &[(Parts::Medium, "the drive's medium is")],
        work: &[],
        of_cause: |_| CauseWords::default(),
    };
    const COUNTERS: &'static [Counter] = COUNTERS;

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        crosspoint(top)
    }

    fn build(&self, _capacity: u64, prng: Prng) -> Self::Medium {
        Crosspoint::new(*self, prng)
    }
}

/// The counters, in the order of the medium's counts.
pub(crate) const COUNTERS: &[Counter] = &[
    counter(
        "units_read",
        "units that were read",
        "Divide `channel_wait_ns` by the sum of it and `units_written`.",
    ),
    counter(
        "units_written",
        "units that were written",
        "Divide `channel_wait_ns` by the sum of it and `units_read`.",
    ),
    counter(
        "channel_wait_ns",
        "waits of accesses for a channel, over all channels",
        "If the wait for each unit is longer than an access takes, the channels are the limit.",
    ),
];

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("read-unit", &[Resource::Parts(Parts::Medium)]),
    ("write-unit", &[Resource::Parts(Parts::Medium)]),
    ("read", &[Resource::Device]),
    ("write", &[Resource::Device]),
];

table_of!(CROSSPOINT, /// Reads the table `[crosspoint]` of `parent`.
pub(crate) fn crosspoint("crosspoint") -> CrosspointProfile {
    channels: "channels" need(Count(1..=1024)),
    unit: "unit" need(Bytes(512..=1 << 20)),
    read_unit: "read-unit" need(Time),
    write_unit: "write-unit" need(Time),
    read: "read" need(Time),
    write: "write" need(Time),
    spread: "spread" take(PERCENTS),
});
