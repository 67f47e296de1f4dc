//! The units in which figures of experiments are published.

use serde::{Serialize, Serializer};

use crate::Figures;
use blockyard_text::number::approximate;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Thousand I/Os per second.
    Kiops,
    /// KiB per second.
    KibPerS,
    /// MiB per second.
    MibPerS,
    /// The time of the run in seconds.
    Seconds,
    /// The time in seconds that its jobs sleep, waiting for I/O.
    SecondsAsleep,
    /// Load of the machine's processors, percent.
    CpuPercent,
    /// I/Os for each command.
    IosPerCommand,
    /// CMD13s for each command that writes.
    StatusPerWrite,
    /// Transactions per I/O for which an idle bus waits because a thread must be woken.
    AwaitedPerIo,
    /// Share of the time with a transaction on the bus, percent.
    BusPercent,
    /// Share of the time in which memory is unmapped during a transaction on the bus, percent.
    UnmapInside,
    /// Share of the time in which memory is unmapped while the bus is idle, percent.
    UnmapOutside,
    /// Share of an I/O's time on persistent memory in which data and map entries are copied,
    /// percent.
    CopyPercent,
    /// Share of an I/O's time on persistent memory that map entries take, percent.
    MapPercent,
    /// Fences per I/O on persistent memory.
    FencesPerIo,
    /// Scans of the words of all readers, per I/O on persistent memory.
    ScansPerIo,
    /// Lines of shared words fetched from other processors, per I/O on persistent memory.
    TransfersPerIo,
}

impl Unit {
    /// Its name in `reference/` and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kiops => "kIOPS",
            Self::KibPerS => "KiB/s",
            Self::MibPerS => "MiB/s",
            Self::Seconds => "s",
            Self::SecondsAsleep => "s asleep",
            Self::CpuPercent => "CPU %",
            Self::IosPerCommand => "I/O/cmd",
            Self::StatusPerWrite => "CMD13/write",
            Self::AwaitedPerIo => "awaited",
            Self::BusPercent => "bus %",
            Self::UnmapInside => "unmap in %",
            Self::UnmapOutside => "unmap out %",
            Self::CopyPercent => "copy %",
            Self::MapPercent => "map %",
            Self::FencesPerIo => "fences",
            Self::ScansPerIo => "looks",
            Self::TransfersPerIo => "fetched",
        }
    }

    /// Returns the value in `figures`; `None` if they have no such figure.
    #[expect(clippy::float_arithmetic, reason = "for the reader: nothing is ordered by it")]
    #[must_use]
    pub fn of(self, figures: &Figures) -> Option<f64> {
        let io_bytes = approximate(figures.bytes) / approximate(figures.ios);
        let host = figures.family.mmc.as_ref();
        let memory = figures.family.pmem.as_ref();
        match self {
            Self::Kiops => Some(figures.iops / 1e3),
            Self::KibPerS => Some(figures.iops * (io_bytes / 1024.0)),
            Self::MibPerS => Some(figures.iops * (io_bytes / (1024.0 * 1024.0))),
            Self::Seconds => Some(approximate(figures.ios) / figures.iops),
            Self::SecondsAsleep => Some(approximate(figures.jobs_ns.waiting) / 1e9),
            Self::CpuPercent => Some(figures.cpu_percent),
            Self::IosPerCommand => Some(figures.ios_per_command),
            Self::StatusPerWrite => host?.status_per_write,
            Self::AwaitedPerIo => Some(host?.awaited_wakeups_per_io),
            Self::BusPercent => Some(host?.bus_busy_percent),
            Self::UnmapInside => Some(host?.unmap_percent.inside),
            Self::UnmapOutside => Some(host?.unmap_percent.outside),
            Self::CopyPercent => Some(memory?.percent.copy + memory?.percent.map),
            Self::MapPercent => Some(memory?.percent.map),
            Self::FencesPerIo => Some(memory?.fences),
            Self::ScansPerIo => Some(memory?.scans),
            Self::TransfersPerIo => Some(memory?.transfers),
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}
