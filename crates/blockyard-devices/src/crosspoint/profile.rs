//! Memory that is written in place: the table `[crosspoint]`.

use blockyard::time::Duration;

use crate::profile::error::ProfileError;
use crate::profile::spread::{PERCENTS, Spread};
use crate::profile::table::{Table, table_of};
use crate::profile::value::{Bytes, Count, Time};

/// The figures of memory that is written in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrosspointProfile {
    /// Channels that work side by side.
    pub channels: u16,
    /// Bytes that lie together on one channel; the next ones lie on the next channel.
    pub unit: u64,
    /// Time for which a unit that is read occupies its channel.
    pub read_unit: Duration,
    /// Time for which a unit that is written occupies its channel.
    pub write_unit: Duration,
    /// Latency of a read beyond the time of its units.
    pub read: Duration,
    /// Latency of a write beyond the time of its units.
    pub write: Duration,
    /// The spread of `read` and `write`; `None`: they are always the same.
    pub spread: Option<Spread>,
}

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
