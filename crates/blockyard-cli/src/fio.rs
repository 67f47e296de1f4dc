//! fio's reports of a run: the layouts of [`output`], filled with the figures of a [`Report`].

use blockyard::stats::{Direction, Stage};
use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_answer::{BufferedFigures, FamilyFigures, JobTime, Outcome, Verified};
use blockyard_devices::stack::FaultCount;
use blockyard_fio::job::JobFile;
use blockyard_fio::output::{self, Disk, Run, Side};
use blockyard_sim::simulate::Report;
use serde::Serialize;

use crate::render::{self, job_time};

/// The keys that fio lacks.
#[derive(Serialize)]
struct Own<'a> {
    #[serde(flatten)]
    family: &'a FamilyFigures,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffered: Option<&'a BufferedFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<&'a [FaultCount]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<&'a Verified>,
}

/// Formats `report`, the report of a run of `jobs` on the device `device`, in fio's JSON layout
/// with a final newline. With `bins` the format is fio's `json+`. Keys that fio lacks come last,
/// from `outcome`.
pub(crate) fn json(
    jobs: &JobFile,
    device: &str,
    report: &Report,
    outcome: &Outcome,
    bins: bool,
) -> String {
    let own = Own {
        family: &outcome.figures.family,
        buffered: outcome.figures.buffered.as_ref(),
        faults: outcome.faults.as_deref(),
        verified: outcome.verified.as_ref(),
    };
    render::json(&output::json(run(jobs, report), disk(device, report), own, bins))
}

/// Formats the same as fio's lines of fields.
pub(crate) fn terse(jobs: &JobFile, device: &str, report: &Report) -> String {
    output::terse(run(jobs, report), &disk(device, report))
}

/// Formats the same for people.
pub(crate) fn text(jobs: &JobFile, report: &Report) -> String {
    output::text(run(jobs, report), |stats| {
        let times = JobTime::from(&stats.spent);
        let is_shown = job_time::is_shown(&times, stats.depths.one_at_a_time());
        if is_shown { job_time::line(&times) } else { String::new() }
    })
}

const fn run<'a>(jobs: &'a JobFile, report: &'a Report) -> Run<'a> {
    Run { jobs, entries: report.jobs.as_slice() }
}

/// Returns the figures of the device `name` in a run.
fn disk(name: &str, report: &Report) -> Disk {
    let [reads, writes] = Direction::DATA.map(|direction| side(report, direction));
    Disk::new(name, reads, writes, report.device_busy, report.span)
}

fn side(report: &Report, direction: Direction) -> Side {
    let stages = &report.stages;
    let merges = [Action::BackMerge, Action::FrontMerge, Action::Join];
    Side {
        ios: stages.count_of(direction, Action::Complete(Status::Ok)),
        merges: merges.into_iter().map(|action| stages.count_of(direction, action)).sum(),
        waited_ns: stages.times_ns(direction, Stage::Total).sum(),
    }
}
