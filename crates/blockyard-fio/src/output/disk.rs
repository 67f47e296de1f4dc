//! The disk statistics that Linux would count.

use super::number;
use blockyard::time::Duration;
use serde::Serialize;

/// The counts of a disk in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Requests that completed.
    pub ios: u64,
    /// I/Os that were merged into a request of another one.
    pub merges: u64,
    /// The times of the requests from queueing to completion, added up, in nanoseconds.
    pub waited_ns: u128,
}

impl Side {
    /// Returns the sum of times in whole milliseconds, at most 2^64 - 1.
    fn ticks(&self) -> u64 {
        u64::try_from(self.waited_ns / 1_000_000).unwrap_or(u64::MAX)
    }
}

/// fio's figures for a disk. Ticks are milliseconds, `util` is in percent.
#[derive(Clone, Debug, Serialize)]
pub struct Disk {
    pub(super) name: String,
    pub(super) read_ios: u64,
    pub(super) write_ios: u64,
    pub(super) read_merges: u64,
    pub(super) write_merges: u64,
    pub(super) read_ticks: u64,
    pub(super) write_ticks: u64,
    pub(super) in_queue: u64,
    pub(super) util: f64,
}

impl Disk {
    /// Returns the figures of the disk `name`, which was busy for `busy` of `span`.
    #[must_use]
    pub fn new(name: &str, reads: Side, writes: Side, busy: Duration, span: Duration) -> Self {
        let read_ticks = reads.ticks();
        let write_ticks = writes.ticks();
        Self {
            name: name.to_owned(),
            read_ios: reads.ios,
            write_ios: writes.ios,
            read_merges: reads.merges,
            write_merges: writes.merges,
            read_ticks,
            write_ticks,
            in_queue: read_ticks.saturating_add(write_ticks),
            util: number::percent(busy.as_ns().into(), span.as_ns().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 2 s the disk is busy for half a second. Ticks are whole milliseconds: 1.9 ms are one.
    #[test]
    fn ticks_are_whole_milliseconds_and_a_share_is_in_percent() {
        let reads = Side { ios: 3, merges: 1, waited_ns: 1_900_000 };
        let writes = Side { ios: 0, merges: 0, waited_ns: u128::MAX };
        let disk = Disk::new("sda", reads, writes, Duration::from_ms(500), Duration::from_ms(2000));
        assert_eq!((disk.read_ios, disk.read_merges, disk.read_ticks), (3, 1, 1));
        assert_eq!((disk.write_ticks, disk.in_queue), (u64::MAX, u64::MAX));
        assert_eq!(disk.util, 25.0);
    }
}
