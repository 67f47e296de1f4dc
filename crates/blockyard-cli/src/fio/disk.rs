//! The disk statistics that Linux would count.

use blockyard::stats::{Direction, Stage};
use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_sim::simulate::Report;
use serde::Serialize;

use super::number;

/// fio's figures for a disk. Ticks are milliseconds, `util` is in percent.
#[derive(Serialize)]
pub(super) struct Disk {
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
    /// Returns the figures of the device `name` in a run.
    pub(super) fn of(name: &str, report: &Report) -> Self {
        let stages = &report.stages;
        let [(read_ios, read_merges, read_ticks), (write_ios, write_merges, write_ticks)] =
            Direction::DATA.map(|direction| {
                let count = |action| stages.count_of(direction, action);
                let merges =
                    count(Action::BackMerge) + count(Action::FrontMerge) + count(Action::Join);
                let waited_ns = stages.times_ns(direction, Stage::Total).sum();
                let ticks = u64::try_from(waited_ns / 1_000_000).unwrap_or(u64::MAX);
                (count(Action::Complete(Status::Ok)), merges, ticks)
            });
        let busy = number::percent(report.device_busy.as_ns().into(), report.span.as_ns().into());
        Self {
            name: name.to_owned(),
            read_ios,
            write_ios,
            read_merges,
            write_merges,
            read_ticks,
            write_ticks,
            in_queue: read_ticks.saturating_add(write_ticks),
            util: busy,
        }
    }
}
