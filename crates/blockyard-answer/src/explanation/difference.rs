//! The difference between two designs, and the evidence for it.
//!
//! # Choices
//!
//! - Of the two factors of a difference, the one that carries the larger part is named, with the
//!   counters behind it.
//! - Where requests of the slower run, or of the first among equals, spend half of their time or
//!   more at one place that is not the driver, that place is named. Before the driver its reason is
//!   named too, if one makes up half of the time that hardware queues were held.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use super::bottleneck::bottleneck;
use super::evidence::{Bottleneck, Evidence, Explanation, Factor, LongestStage};
use crate::figures::Figures;
use crate::life::{Life, LifeStage};
use blockyard_devices::compare::{EQUAL, Pair};
use blockyard_devices::profile::Device;

/// The name of a design, the figures of its run, and the device.
type Run<'a> = (&'a str, &'a Figures, &'a Device);

/// Why `runs` of one job differ.
///
/// # Panics
///
/// If there is no run.
pub(super) fn explain(runs: &[Run<'_>]) -> Explanation {
    let [first, others @ ..] = runs else { panic!("an explanation needs a run") };
    let furthest = others.iter().max_by(|a, b| distance(first, a).total_cmp(&distance(first, b)));
    let Some(other) = furthest else {
        let evidence = [limit(first)].into_iter().chain(longest_stage(first, None));
        return explanation(first, None, Factor::Alone, evidence.collect());
    };
    if first.1.ios == 0 || other.1.ios == 0 {
        return explanation(first, Some(other), Factor::NothingEnded, Vec::new());
    }
    if distance(first, other) < EQUAL {
        let evidence = [limit(first)].into_iter().chain(idle_times(first, other));
        let evidence = evidence.chain(longest_stage(first, None));
        let evidence = evidence.chain(never_held(runs));
        return explanation(first, Some(other), Factor::Equal, evidence.collect());
    }
    let (low, high) = if other.1.iops < first.1.iops { (other, first) } else { (first, other) };
    debug_assert!(low.1.iops < high.1.iops, "the rates differ");
    let whole = low.1.family.whole_difference(&high.1.family);
    let (factor, evidence) = if let Some(whole) = whole {
        let parts = [low, high].map(|run| longest_stage(run, None));
        let evidence = [Evidence::Family(whole)].into_iter();
        (Factor::CpuTime, evidence.chain(parts.into_iter().flatten()).collect())
    } else {
        larger_factor(low, high)
    };
    let evidence = evidence.into_iter().chain(never_held(runs)).collect();
    explanation(low, Some(high), factor, evidence)
}

fn explanation(
    low: &Run<'_>,
    high: Option<&Run<'_>>,
    factor: Factor,
    evidence: Vec<Evidence>,
) -> Explanation {
    Explanation {
        low: low.0.to_owned(),
        high: high.map(|high| high.0.to_owned()),
        factor,
        share: high.map_or(1.0, |high| low.1.iops / high.1.iops),
        evidence,
    }
}

/// `figure` under both designs.
fn pair(low: &Run<'_>, high: &Run<'_>, figure: impl Fn(&Figures) -> f64) -> Pair {
    Pair { low: figure(low.1), high: figure(high.1) }
}

/// The factor that carries the larger part of the difference, and its counters.
fn larger_factor(low: &Run<'_>, high: &Run<'_>) -> (Factor, Vec<Evidence>) {
    let ios_per_command = pair(low, high, |figures| figures.ios_per_command);
    let commands_per_s = pair(low, high, |figures| figures.commands_per_s);
    let mut evidence = vec![Evidence::Factors { ios_per_command, commands_per_s }];
    let is_merging = ios_per_command.distance() >= commands_per_s.distance();
    if is_merging {
        evidence.push(Evidence::Dequeued {
            percent: pair(low, high, |figures| figures.dequeued_percent),
            refusals_per_io: pair(low, high, |figures| figures.refusals_per_io),
            runs_per_io: pair(low, high, |figures| figures.runs_per_io),
        });
        evidence.extend(idle_times(low, high));
    } else {
        evidence.extend(at_device(low, high));
        let of_family = low.1.family.command_rates(&high.1.family);
        evidence.extend(of_family.map(Evidence::Family));
        let limits = [low, high].map(|run| bottleneck(run.2, run.1));
        // Of hosts, the period of transfers says already what the larger part of it is.
        let is_told = |of: &Bottleneck| match of {
            Bottleneck::Family(limit) => limit.part().is_told_by_command_rates(),
            _ => false,
        };
        if !limits.iter().all(is_told) {
            let named = [low, high].into_iter().zip(limits);
            evidence.extend(named.map(|(run, bottleneck)| limited(run, bottleneck)));
        }
    }
    evidence.extend(longest_stage(low, Some(high)));
    (if is_merging { Factor::Merging } else { Factor::CommandRate }, evidence)
}

/// Of commands at the device and the time of each (Little's law), the one that differs more.
fn at_device(low: &Run<'_>, high: &Run<'_>) -> Option<Evidence> {
    let commands = pair(low, high, |figures| figures.at_device);
    let ns = pair(low, high, |figures| figures.command_ns);
    if !low.2.model.is_explained_by_commands() {
        return None;
    }
    Some(if commands.distance() >= ns.distance() {
        Evidence::AtDevice { commands }
    } else {
        Evidence::CommandTime { ns }
    })
}

fn limit(run: &Run<'_>) -> Evidence {
    limited(run, bottleneck(run.2, run.1))
}

/// The evidence that `bottleneck` limits `run`, with the disk that it is a part of.
fn limited(run: &Run<'_>, bottleneck: Bottleneck) -> Evidence {
    let is_of_disk = match &bottleneck {
        Bottleneck::Depth { .. } => true,
        Bottleneck::Family(limit) => limit.part().is_of_disk(),
        Bottleneck::Lock { .. }
        | Bottleneck::Cpus { .. }
        | Bottleneck::DeviceLatency { .. }
        | Bottleneck::Jobs { .. } => false,
    };
    let disk = run.1.family.own().busiest_disk().filter(|_| is_of_disk);
    Evidence::Bottleneck { design: run.0.to_owned(), disk, bottleneck }
}

/// Where requests of `run` spend most of their time, and why, compared with `other`; `None` if it
/// is in the driver, or at no one place.
fn longest_stage(run: &Run<'_>, other: Option<&Run<'_>>) -> Option<Evidence> {
    if let Some(in_calls) = run.1.family.time_in_calls(run.0) {
        return Some(Evidence::Family(in_calls));
    }
    let (stage, stage_ns) = longest(&run.1.life_ns);
    let life_ns = run.1.life_ns.total();
    if stage == LifeStage::InDriver || stage_ns == 0.0 || 2.0 * stage_ns < life_ns {
        return None;
    }
    // What holds a queue does not keep a job from its results.
    let hold = run.1.holds.main().filter(|_| stage != LifeStage::NotReaped);
    let other = other.map(|(name, figures, _)| {
        let (stage, stage_ns) = longest(&figures.life_ns);
        let life_ns = figures.life_ns.total();
        LongestStage { design: (*name).to_owned(), life_ns, stage, stage_ns }
    });
    let design = run.0.to_owned();
    Some(Evidence::LongestStage { design, life_ns, stage, stage_ns, hold, other })
}

/// The longest part of a life and its length in nanoseconds.
fn longest(life: &Life) -> (LifeStage, f64) {
    let longest = life.parts().into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    longest.expect("a life has parts")
}

/// The idle times of two runs, if the family of the device has them and they differ.
fn idle_times(low: &Run<'_>, high: &Run<'_>) -> Option<Evidence> {
    low.1.family.idle_times([low.0, high.0], &high.1.family).map(Evidence::Family)
}

/// Says so if no request of any of `runs` ever waited for the device in a scheduler. If a processor
/// does an I/O within the call, there is no device to wait for.
fn never_held(runs: &[Run<'_>]) -> Option<Evidence> {
    let is_free = |run: &Run<'_>| {
        // A processor that waits for the lock of a scheduler keeps its requests waiting, too.
        let waits = run.1.family.time_in_calls(run.0).is_none();
        run.1.holds.are_none() && waits && run.1.spinning_percent < 1.0
    };
    runs.iter().all(is_free).then_some(Evidence::NeverHeld)
}

/// How far apart the rates of two runs are, as a factor of at least 1.
fn distance(a: &Run<'_>, b: &Run<'_>) -> f64 {
    pair(a, b, |figures| figures.iops).distance()
}
