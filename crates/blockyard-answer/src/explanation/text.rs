//! Explanations as sentences.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use core::fmt;

use blockyard::trace::Hold;

use super::evidence::{Bottleneck, CpuUse, Evidence, Explanation, Factor, LongestStage};
use crate::life::LifeStage;
use blockyard_devices::compare::BusiestDisk;
use blockyard_devices::compare::Pair;
use blockyard_text::number::{digits, nanoseconds, percent};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_assert_eq!(self.high.is_none(), self.factor == Factor::Alone, "others are compared");
        let Self { low, high, factor, share, evidence } = self;
        let high = high.as_deref().unwrap_or_default();
        let mut evidence = evidence.as_slice();
        match factor {
            Factor::Alone => write!(f, "{low}: ")?,
            Factor::NothingEnded => {
                return f.write_str(
                    "No I/O completed during the measurement: there is nothing to compare.",
                );
            }
            Factor::Partial => {
                return f.write_str("Runs that were interrupted are not compared.");
            }
            Factor::Equal => f.write_str("All designs are within 2 % of each other: ")?,
            Factor::Merging | Factor::CommandRate | Factor::CpuTime => {
                write!(f, "{low} reaches {} of {high}'s IOPS: ", percent(100.0 * share))?;
            }
        }
        let mut sentences = Vec::new();
        while let [first, rest @ ..] = evidence {
            // Both designs' bottlenecks are one sentence.
            let sentence = match (first, rest.first()) {
                (
                    Evidence::Bottleneck { bottleneck: of_low, disk: low_disk, .. },
                    Some(Evidence::Bottleneck { bottleneck: of_high, disk: high_disk, .. }),
                ) => {
                    evidence = &rest[1..];
                    let of_low = is_bottleneck(*low_disk, of_low);
                    both_bottlenecks((low, of_low), (high, is_bottleneck(*high_disk, of_high)))
                }
                _ => {
                    evidence = rest;
                    sentence(first, low, high)
                }
            };
            sentences.push(sentence);
        }
        f.write_str(&sentences.join(" "))
    }
}

/// `evidence` about the designs `low` and `high`.
fn sentence(evidence: &Evidence, low: &str, high: &str) -> String {
    match evidence {
        Evidence::Factors { ios_per_command, commands_per_s } => {
            format!("{}, {}.", merging(ios_per_command), command_rate(commands_per_s))
        }
        Evidence::Dequeued { percent, refusals_per_io, runs_per_io } => {
            dequeued(percent, refusals_per_io, runs_per_io, low, high)
        }
        Evidence::AtDevice { commands } => {
            let commands = commands.instead(digits, " commands are at the device");
            format!("On average, {commands}.")
        }
        Evidence::CommandTime { ns } => {
            format!("Each command is at the device for {}.", ns.instead_ns())
        }
        Evidence::Bottleneck { bottleneck, disk, .. } => is_bottleneck(*disk, bottleneck) + ".",
        Evidence::LongestStage { design, life_ns, stage, stage_ns, hold, other } => {
            let reason = hold.as_ref().map(|hold| format!(" because {}", held_because(*hold)));
            let against = other.as_ref().map(|other| longest_stage_of_other(*stage, other));
            format!(
                "Under {design}, requests take {} on average; for {} of that {}{}{}.",
                nanoseconds(*life_ns),
                nanoseconds(*stage_ns),
                waits(*stage),
                reason.unwrap_or_default(),
                against.unwrap_or_default()
            )
        }
        Evidence::NeverHeld => {
            "No request ever waited in a scheduler: the device accepted each one immediately."
                .to_owned()
        }
        Evidence::Family(evidence) => evidence.to_string(),
    }
}

fn merging(ios_per_command: &Pair) -> String {
    if digits(ios_per_command.low) == digits(ios_per_command.high) {
        return format!("same merging ({} I/Os per command)", digits(ios_per_command.low));
    }
    ios_per_command.instead(digits, " I/Os per command")
}

fn command_rate(commands_per_s: &Pair) -> String {
    match commands_per_s.low / commands_per_s.high {
        ratio if (0.98..1.02).contains(&ratio) => "same command rate".to_owned(),
        ratio if (0.485..0.515).contains(&ratio) => "half the command rate".to_owned(),
        ratio if ratio < 1.0 => format!("{} of the command rate", percent(100.0 * ratio)),
        ratio => format!("{} times the command rate", digits(ratio)),
    }
}

fn dequeued(share: &Pair, refusals: &Pair, runs: &Pair, low: &str, high: &str) -> String {
    // Requests are in the scheduler for about as long: it is not dispatch that prevents merging.
    if share.low <= share.high + 10.0 {
        let mergeable = match [share.low, share.high].map(|share| percent(100.0 - share)) {
            [of_low, of_high] if of_low == of_high && of_low == percent(100.0) => {
                "Under both, requests stay mergeable until dispatch".to_owned()
            }
            [of_low, of_high] => format!(
                "Requests stay mergeable for {of_low} of their time before dispatch under {low} ({high}: {of_high})"
            ),
        };
        return format!(
            "{mergeable}, but under {low} fewer adjacent requests are queued at the same time."
        );
    }
    format!(
        "Under {low}, requests leave the scheduler while the device is full: for {} of their time before the \
         driver they can no longer be merged ({high}: {}). Per I/O there are {} refusals and {} runs of \
         hardware queues ({high}: {} and {}).",
        percent(share.low),
        percent(share.high),
        digits(refusals.low),
        digits(runs.low),
        digits(refusals.high),
        digits(runs.high),
    )
}

/// What requests do meanwhile.
const fn waits(stage: LifeStage) -> &'static str {
    match stage {
        LifeStage::WaitingForTag => "they wait for a tag",
        LifeStage::Queued => "they are queued in the scheduler",
        LifeStage::Dequeued => "they have left the scheduler and wait",
        LifeStage::InDriver => "they are in the driver",
        LifeStage::WaitingForFlush => "they wait for flushes",
        LifeStage::NotReaped => "they are complete and their job has not reaped them",
    }
}

const fn held_because(hold: Hold) -> &'static str {
    match hold {
        Hold::Budget => "the device has as many requests as its budget allows",
        Hold::Tag => "no driver tag is free",
        Hold::Device => "the device has no free slot",
        Hold::Host => "a resource that the disks of the host share is exhausted",
        Hold::Resource => "the driver lacks a resource",
        Hold::Leftovers => "requests that were dequeued earlier go first",
        Hold::Order => "the scheduler holds them back",
        Hold::Quiesced => "dispatch is quiesced",
    }
}

fn longest_stage_of_other(stage: LifeStage, other: &LongestStage) -> String {
    let place =
        if other.stage == stage { String::new() } else { format!(" {}", other.stage.name()) };
    format!(
        " ({}: {} of {}{place})",
        other.design,
        nanoseconds(other.stage_ns),
        nanoseconds(other.life_ns)
    )
}

/// The bottlenecks of two designs in one sentence. If they are the same, it is named once.
fn both_bottlenecks((low, of_low): (&str, String), (high, of_high): (&str, String)) -> String {
    if of_low == of_high {
        return format!("Under both {low} and {high}, {of_low}.");
    }
    // Each clause ends with its figures: `the link is the bottleneck (97 % in use)`.
    let parts = of_low.split_once(" (").zip(of_high.split_once(" ("));
    match parts {
        Some(((what, low_figures), (other, high_figures))) if what == other => format!(
            "Under both {0} and {1}, {what} ({0}: {2}; {1}: {3}).",
            low,
            high,
            low_figures.trim_end_matches(')'),
            high_figures.trim_end_matches(')'),
        ),
        _ => format!("Under {low}, {of_low}; under {high}, {of_high}."),
    }
}

/// A clause that says what the bottleneck is, and of which `disk`.
fn is_bottleneck(disk: Option<BusiestDisk>, bottleneck: &Bottleneck) -> String {
    let clause = resource(bottleneck);
    match disk {
        Some(disk) => format!("on {disk}, {clause}"),
        None => clause,
    }
}

/// A clause that says which resource is the bottleneck.
fn resource(bottleneck: &Bottleneck) -> String {
    match bottleneck {
        Bottleneck::Depth { commands, depth } => format!(
            "the device's queue depth is the bottleneck ({} of {depth} commands at the device)",
            digits(*commands)
        ),
        Bottleneck::Lock { lock, held_percent, cpu, spinning_percent } => format!(
            "{} is the bottleneck (held {} of the time, {}, {} of that waiting for locks)",
            lock.name(),
            percent(*held_percent),
            cpu_use(cpu),
            percent(*spinning_percent)
        ),
        Bottleneck::Cpus { cpu } => format!("the CPUs are the bottleneck ({})", cpu_use(cpu)),
        Bottleneck::DeviceLatency { commands, cpu } => format!(
            "the device's latency is the bottleneck ({} commands at the device, {})",
            digits(*commands),
            cpu_use(cpu)
        ),
        Bottleneck::Jobs { commands, cpu } => format!(
            "the pace of the jobs is the bottleneck ({} commands at the device, {})",
            digits(*commands),
            cpu_use(cpu)
        ),
        Bottleneck::Family(limit) => limit.to_string(),
    }
}

fn cpu_use(cpu: &CpuUse) -> String {
    let polling =
        cpu.polling_percent.map(|polling| format!(", {} of that polling", percent(polling)));
    format!("{} of the jobs' CPUs in use{}", percent(cpu.percent), polling.unwrap_or_default())
}
