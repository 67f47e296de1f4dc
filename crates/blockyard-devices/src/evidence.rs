//! Figures, limits and evidence of the device families: why a device is as fast as it is.
//!
//! Each family computes and words them in its own folder, in `figures.rs` and `evidence.rs`. This
//! module is their one list: answers call it, and name no family.

use crate::charges::{HANDOVER, INTERRUPTS, Resource};
use crate::compare::{RunLoad, RunTotals, USED_UP};
use crate::families::{DeviceModel, Model};
use crate::fronts::DriveReport;
use crate::fronts::evidence as drive;
use crate::fronts::figures::{BusiestDisk, DriveFigures};
use crate::limit::{FamilyLimit, Limit};
use crate::mmc::evidence::{self as mmc, IdleTime, TransferPeriod};
use crate::mmc::figures::HostFigures;
use crate::mmc::host::HostReport;
use crate::pmem::PmemReport;
use crate::pmem::evidence::{self as pmem, CpuParts, CpuTime};
use crate::pmem::figures::PmemFigures;
use crate::scsi::evidence as scsi;
use crate::tables::FigureTable;
use blockyard::time::Instant;
use core::fmt;
use serde::Serialize;

/// The counts of a run of a family's own; nothing if the family has no counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilyReport {
    /// Times and counts of an MMC host, if the device is one.
    pub mmc: Option<HostReport>,
    /// Times and counts of persistent memory, if the device is one.
    pub pmem: Option<PmemReport>,
    /// What a drive did, if the device is one.
    pub drive: Option<DriveReport>,
}

/// The figures of a run of a family's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FamilyFigures {
    /// The MMC host, if the device is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mmc: Option<HostFigures>,
    /// What processors spent I/Os on, if the device is persistent memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmem: Option<PmemFigures>,
    /// What the drive did, if the device is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveFigures>,
}

impl FamilyFigures {
    /// The figures of a run with these `totals`.
    #[must_use]
    pub fn of(report: &FamilyReport, totals: &RunTotals) -> Self {
        Self {
            mmc: report.mmc.as_ref().map(|host| HostFigures::of(host, totals)),
            pmem: report.pmem.as_ref().map(|pmem| PmemFigures::of(pmem, totals)),
            drive: report.drive.as_ref().and_then(|drive| DriveFigures::of(drive, totals)),
        }
    }

    /// The disk that the figures are of, if they are those of the busiest of several disks.
    #[must_use]
    pub fn busiest_disk(&self) -> Option<BusiestDisk> {
        self.drive.as_ref()?.disk
    }

    /// The commands at that disk, on average.
    #[must_use]
    pub fn at_busiest_disk(&self) -> Option<f64> {
        self.drive.as_ref().map(|drive| drive.at_device)
    }

    /// The resources of the family that the commands of a run of this `load` spend their time on.
    #[must_use]
    pub fn resources(&self, load: &RunLoad) -> Vec<Resource> {
        let of_drive = self.drive.iter().flat_map(drive::resources);
        let of_card = self.mmc.iter().flat_map(|_| mmc::resources(load));
        of_drive.chain(of_card).collect()
    }

    /// Returns the tables of runs on one device, in the order in which people read them. A family
    /// without figures of its own has none.
    #[must_use]
    pub fn tables(runs: &[&Self]) -> Vec<FigureTable> {
        let hosts: Vec<_> = runs.iter().filter_map(|of| of.mmc.as_ref()).collect();
        let memories: Vec<_> = runs.iter().filter_map(|of| of.pmem.as_ref()).collect();
        let drives: Vec<_> = runs.iter().filter_map(|of| of.drive.as_ref()).collect();
        let tables = [
            crate::mmc::tables::tables(&hosts),
            crate::pmem::tables::tables(&memories),
            crate::fronts::tables::tables(&drives),
        ];
        tables.concat()
    }

    /// Returns the figures of a single run in fio's style, if the family has such lines.
    #[must_use]
    pub fn lines(&self) -> Option<String> {
        self.mmc.as_ref().map(crate::mmc::tables::lines)
    }

    /// The CPU time of an I/O that is spent in a device whose I/Os a processor does, in
    /// nanoseconds.
    #[must_use]
    pub fn in_calls_ns(&self) -> f64 {
        self.pmem.as_ref().map_or(0.0, |figures| figures.parts_ns.in_memory())
    }
}

/// A fact of a family behind a difference. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FamilyEvidence {
    /// The time from one transfer of an MMC host to the next.
    TransferPeriod(TransferPeriod),
    /// Bus and card of two MMC hosts are idle for different times, and I/Os share transfers.
    IdleBetweenTransfers {
        /// The design with fewer IOPS, or the first of equals.
        low: IdleTime,
        /// The design that it is compared with.
        high: IdleTime,
    },
    /// The CPU time of an I/O on persistent memory differs.
    CpuTime(CpuTime),
    /// What the CPU time of an I/O on persistent memory is spent on.
    CpuParts(CpuParts),
}

/// The evidence as a sentence, or as several.
impl fmt::Display for FamilyEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TransferPeriod(period) => period.fmt(f),
            Self::IdleBetweenTransfers { low, high } => write!(
                f,
                "Between two transfers the bus and the card are idle for {low} and for {high}."
            ),
            Self::CpuTime(time) => time.fmt(f),
            Self::CpuParts(parts) => parts.fmt(f),
        }
    }
}

impl Model {
    /// What the device counted until `now` of its family's own.
    #[must_use]
    pub fn report(&self, now: Instant) -> FamilyReport {
        let mut report = FamilyReport::default();
        match self {
            Self::Mmc(host) => report.mmc = Some(host.report(now)),
            Self::Pmem(memory) => report.pmem = Some(memory.report()),
            Self::Drive(drive) => report.drive = Some(drive.report()),
            _ => {}
        }
        report
    }
}

impl FamilyLimit {
    /// Returns the resources whose time limits a run of this `load`.
    #[must_use]
    pub fn resources(&self, load: &RunLoad) -> Vec<Resource> {
        match self {
            Self::Link { .. } => vec![Resource::Link],
            Self::Controller { .. } => vec![Resource::Controller],
            Self::Medium(limit) => drive::resources_of_limit(limit),
            Self::CardMemory { .. } | Self::BusAndCard { .. } => mmc::resources(load),
            Self::BetweenTransfers { .. } => [HANDOVER, INTERRUPTS].concat(),
        }
    }
}

impl DeviceModel {
    /// Returns the part of the device that limits a run of this load, if it is used up. Such a part
    /// comes before the depth of the queue: that fills up because the part is slow.
    #[must_use]
    pub fn limit(&self, figures: &FamilyFigures, load: &RunLoad) -> Option<Limit> {
        match self {
            Self::Hba(hba) => {
                let percent = scsi::link_percent(hba, load);
                (percent >= USED_UP).then_some(Limit::Family(FamilyLimit::Link { percent }))
            }
            Self::Drive(of) => drive::limit(of, figures.drive.as_ref()?, load),
            _ => None,
        }
    }

    /// Returns the part of the device or its host that limits a run, if the run is limited neither
    /// by [`Self::limit`] nor by its depth, a lock or the processors.
    #[must_use]
    pub fn last_limit(&self, figures: &FamilyFigures, load: &RunLoad) -> Option<FamilyLimit> {
        mmc::limit(figures.mmc.as_ref()?, load)
    }
}

impl FamilyFigures {
    /// Explains the rates of two runs by something else than their commands, if their family does.
    #[must_use]
    pub fn whole_difference(&self, high: &Self) -> Option<FamilyEvidence> {
        let time = pmem::cpu_time(self.pmem.as_ref()?, high.pmem.as_ref()?);
        Some(FamilyEvidence::CpuTime(time))
    }

    /// Explains why the rates of commands of two runs differ, along with their limits.
    #[must_use]
    pub fn command_rates(&self, high: &Self) -> Option<FamilyEvidence> {
        let period = mmc::transfer_period(self.mmc.as_ref()?, high.mmc.as_ref()?);
        Some(FamilyEvidence::TransferPeriod(period))
    }

    /// Names the idle times of two runs, each with the name of its design, if these differ and say
    /// more than the rates.
    #[must_use]
    pub fn idle_times(low: (&str, &Self), high: (&str, &Self)) -> Option<FamilyEvidence> {
        let low = (low.0, low.1.mmc.as_ref()?);
        let (low, high) = mmc::idle(low, (high.0, high.1.mmc.as_ref()?))?;
        Some(FamilyEvidence::IdleBetweenTransfers { low, high })
    }

    /// Says what the I/Os of a design spend their time on, for a device whose I/Os a processor does
    /// within the call: no request of it waits in a queue.
    #[must_use]
    pub fn time_in_calls(&self, design: &str) -> Option<FamilyEvidence> {
        Some(FamilyEvidence::CpuParts(pmem::cpu_parts(design, self.pmem.as_ref()?)))
    }
}
