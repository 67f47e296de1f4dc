//! What a run comes to, and why one design does more than another.
//!
//! Every I/O rate is the product of two factors, commands per second and I/Os per command, and the
//! first of them is again one of two (Little's law): commands at the device over the time each is
//! there. [`why`] says which factor carries the larger part of a difference and which counters
//! stand behind it. It knows no design: the same counters would give the same words.
//!
//! # Rules
//!
//! - **Y1.** Of two factors, the one that carries the larger part of a difference is told, with the
//!   counters behind it.
//! - **Y2.** A run is held by the resource nearest the device that is used up: link, depth, lock,
//!   processors, a card's memory, its bus; else by what an MMC host does between transfers, if it always has a
//!   request, and else by the pace of its jobs. What a processor spends polling uses nothing up: it
//!   looks because it has nothing else to do.
//! - **Y3.** Where requests of the run that does less, or of the first among equals, spend half of
//!   their life or more at one place that is not the driver, it is told where. Before the driver it
//!   is told why, if one reason makes up half of the time that hardware queues stood held.
//! - **Y4.** On an MMC host commands per second are told as what passes from one transfer to the
//!   next: bus or card at work, both idle while requests wait, no request at all. Where
//!   the idle part differs it is told what is between two transfers and differs the same way: CMD13s,
//!   memory made ready without a transaction on the bus, wake-ups of the driver's threads that the
//!   idle bus waited for.
//! - **Y5.** Where I/Os share transfers there, the idle part is told for each of them as well: also
//!   where the I/O rates are equal or another factor is told, but idle parts are not. What a design
//!   saves between transfers is divided by the I/Os in each.
//! - **Y6.** On persistent memory a processor does all of an I/O: what is told is what it spends more time
//!   on, and the parts of that time.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

mod host;
mod pmem;

pub use host::{Beside, HostFigures, Transfer};

pub use pmem::PmemFigures;

use blockyard::stats::{Direction, Histogram, Stage};
use blockyard::status::Status;
use blockyard::trace::{Action, Hold};

use crate::job::Op as JobOp;
use crate::measure::spent::Spent;
use crate::measure::{JobStats, per_second};
use crate::profile::{Device, DeviceModel, HbaProfile};
use crate::simulate::Report;

/// Rates within this factor of each other are called equal.
const EQUAL: f64 = 1.02;
/// Slowest I/Os this many times slower than others are worth naming.
const MUCH_SLOWER: f64 = 1.25;
/// Parts in a hundred from which a resource is called used up.
const USED_UP: f64 = 95.0;
/// Parts in a hundred of the processor time from which waiting for the lock, or polling, is worth
/// naming.
const MUCH_SPINNING: f64 = 15.0;

/// The figures of a run, all its jobs and all kinds of I/O taken together.
#[derive(Clone, Debug)]
pub struct Figures {
    /// I/Os that ended.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Of those, read.
    pub read_bytes: u64,
    /// Of those, written.
    pub written_bytes: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// From submission to end, nanoseconds.
    pub lat_ns: Histogram,
    /// Load of the machine's processors, all together.
    pub cpu_percent: f64,
    /// The same load, set against as many processors as there are job instances.
    pub jobs_cpu_percent: f64,
    /// Part of the processor time that went into waiting for the lock.
    pub spinning_percent: f64,
    /// Part of the processor time that went into looking for completions that were not there.
    pub polling_percent: f64,
    /// Commands that the device completed.
    pub commands: u64,
    /// I/Os for each of them.
    pub ios_per_command: f64,
    /// Commands per second.
    pub commands_per_s: f64,
    /// Commands at the device, on average.
    pub at_device: f64,
    /// Nanoseconds each of them was there.
    pub command_ns: f64,
    /// Part of the time with a command at the device.
    pub device_busy_percent: f64,
    /// Mean time without one, nanoseconds.
    pub mean_idle_gap_ns: u64,
    /// Threads woken for each I/O.
    pub wakeups_per_io: f64,
    /// Runs of hardware queues for each I/O.
    pub runs_per_io: f64,
    /// Requests taken out that the device had no room for, for each I/O.
    pub refusals_per_io: f64,
    /// Of a request's time before the device, the part after it was taken out: nothing can be
    /// merged with it then.
    pub taken_out_percent: f64,
    /// What jobs spent their time on, all instances added up.
    pub spent: Spent,
    /// Whether no instance ever had more than one I/O under way.
    pub one_at_a_time: bool,
    /// Where a request spent its life.
    pub life: Life,
    /// What held hardware queues, for every [`Hold`] in its order.
    pub holds: [Held; Hold::ALL.len()],
    /// Of an MMC host.
    pub mmc: Option<HostFigures>,
    /// Of persistent memory.
    pub pmem: Option<PmemFigures>,
}

/// Mean times of a request's life, in nanoseconds: the first and the last of an I/O, the others of
/// the request that carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Life {
    /// An I/O waiting for a tag, before it could be submitted.
    pub for_tag_ns: f64,
    /// From submission until it left the elevator or software queue.
    pub staged_ns: f64,
    /// From there until the driver accepted it.
    pub held_ns: f64,
    /// From there until the driver was done with it.
    pub in_driver_ns: f64,
    /// Waiting for flushes that it needs, before its data and behind it.
    pub flushing_ns: f64,
    /// From the end of an I/O until its job took the result.
    pub untaken_ns: f64,
}

/// How a reason held hardware queues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// How often a run stopped for it.
    pub count: u64,
    /// The same for each I/O.
    pub per_io: f64,
    /// Part of the time that a hardware queue stood held for it, mean over all of them.
    pub percent: f64,
}

impl Figures {
    /// The figures of `report`, the run of a job file with so many `instances` of jobs.
    #[must_use]
    pub fn of(report: &Report, instances: u32) -> Self {
        let measured = || report.jobs.iter().flat_map(|job| job.stats.measured());
        let ios = measured().map(|op| op.ios).sum();
        let bytes = measured().map(|op| op.bytes).sum();
        let bytes_of = |op| {
            let of_job = |stats: &JobStats| stats.ops.of(op).as_ref().map_or(0, |m| m.bytes);
            report.jobs.iter().map(|job| of_job(&job.stats)).sum()
        };
        let mut lat_ns = Histogram::new();
        measured().for_each(|op| lat_ns.merge(&op.lat_ns));
        let span = float(report.span.as_ns());
        let cpu = float(report.totals.cpu.as_ns());
        let commands = report.stages.count(Action::Complete(Status::Ok));
        let refused = [Hold::Budget, Hold::Device, Hold::Host, Hold::Resource].map(Action::Hold);
        let refusals: u64 = refused.iter().map(|action| report.stages.count(*action)).sum();
        let pmem = PmemFigures::of(report);
        // Of it, an I/O ends as it begins (T10 of `world`).
        let in_memory: f64 = pmem.iter().flat_map(|figures| figures.parts_ns).sum();
        let life = Life {
            for_tag_ns: ratio(float(report.totals.tag_wait.as_ns()), float(ios)),
            staged_ns: mean_ns(report, Stage::Staged),
            held_ns: mean_ns(report, Stage::Held),
            in_driver_ns: mean_ns(report, Stage::InDriver) + in_memory,
            flushing_ns: mean_ns(report, Stage::Flushing),
            untaken_ns: (ratio(float(report.totals.untaken.as_ns()), float(ios)) - in_memory)
                .max(0.0),
        };
        let mut spent = Spent::default();
        report.jobs.iter().for_each(|job| spent.add(&job.stats.spent));
        let hctxs = f64::from(report.hctxs);
        let holds = Hold::ALL.map(|hold| {
            let count = report.stages.count(Action::Hold(hold));
            Held {
                count,
                per_io: ratio(float(count), float(ios)),
                percent: ratio(100.0 * wide(report.stages.held_ns(hold)), span * hctxs),
            }
        });
        let command_ns = wide(report.commands_held_ns);
        Self {
            ios,
            bytes,
            read_bytes: bytes_of(JobOp::Read),
            written_bytes: bytes_of(JobOp::Write),
            iops: ratio(float(ios) * 1e9, span),
            bytes_per_s: per_second(bytes, report.span.as_ns()),
            lat_ns,
            cpu_percent: ratio(100.0 * cpu, span * f64::from(report.cpus)),
            jobs_cpu_percent: ratio(
                100.0 * cpu,
                span * f64::from(instances.min(report.cpus.into())),
            ),
            spinning_percent: ratio(100.0 * float(report.totals.spinning.as_ns()), cpu),
            polling_percent: ratio(100.0 * float(report.totals.polling.as_ns()), cpu),
            commands,
            ios_per_command: ratio(float(ios), float(commands)),
            commands_per_s: ratio(float(commands) * 1e9, span),
            at_device: ratio(command_ns, span),
            command_ns: ratio(command_ns, float(commands)),
            device_busy_percent: ratio(100.0 * float(report.device_busy.as_ns()), span),
            mean_idle_gap_ns: report.mean_idle_gap.as_ns(),
            wakeups_per_io: ratio(float(report.totals.wakeups), float(ios)),
            runs_per_io: ratio(float(report.totals.runs), float(ios)),
            refusals_per_io: ratio(float(refusals), float(ios)),
            taken_out_percent: ratio(100.0 * life.held_ns, life.staged_ns + life.held_ns),
            spent,
            one_at_a_time: report.jobs.iter().all(|job| job.stats.depths.one_at_a_time()),
            life,
            holds,
            mmc: HostFigures::of(report),
            pmem,
        }
    }
}

impl Life {
    /// Its parts, each with what a request does meanwhile.
    const fn parts(&self) -> [(&'static str, f64); 6] {
        [
            ("waiting for a tag", self.for_tag_ns),
            ("staged", self.staged_ns),
            ("held after it was taken out", self.held_ns),
            (IN_DRIVER, self.in_driver_ns),
            ("waiting for flushes", self.flushing_ns),
            (UNTAKEN, self.untaken_ns),
        ]
    }
}

const IN_DRIVER: &str = "in the driver";
const UNTAKEN: &str = "ended and not taken by its job";

/// Where the difference between `runs` of one job on `device` comes from, in some sentences; for a
/// single run, what holds it.
///
/// The first run is set against the one that differs from it most. Each comes with its name.
///
/// # Panics
///
/// If there is no run.
#[must_use]
pub fn why(device: &Device, runs: &[(&str, Figures)]) -> String {
    let [first, others @ ..] = runs else { panic!("a run to explain") };
    let Some(other) =
        others.iter().max_by(|a, b| distance(first, a).total_cmp(&distance(first, b)))
    else {
        return format!(
            "{} is held by {}.{}",
            first.0,
            limit(device, &first.1),
            tell_life(first, None)
        );
    };
    if first.1.ios == 0 || other.1.ios == 0 {
        return "No I/O ended while it was measured: there is nothing to compare.".to_owned();
    }
    if distance(first, other) < EQUAL {
        let limit = limit(device, &first.1);
        return format!(
            "All designs do the same within 2 %: what holds them is {limit}.{}{}{}",
            tell_idle(first, other),
            tell_life(first, None),
            latency(runs)
        );
    }
    let (low, high) = if other.1.iops < first.1.iops { (other, first) } else { (first, other) };
    let difference = Difference { low, high };
    let share = digits(difference.of(|figures| figures.iops));
    if let (Some(low_part), Some(high_part)) = (&low.1.pmem, &high.1.pmem) {
        let reason = pmem::tell(low_part, high_part);
        let [low_parts, high_parts] = [low, high].map(|run| tell_life(run, None));
        return format!(
            "{} does {share} of the I/Os of {}: {reason}{low_parts}{high_parts}",
            low.0, high.0
        );
    }
    let merging = distance_of(difference.of(|figures| figures.ios_per_command));
    let rate = distance_of(difference.of(|figures| figures.commands_per_s));
    let reason = if merging >= rate {
        difference.tell_merging() + &tell_idle(low, high)
    } else {
        difference.tell_rate(device)
    };
    let life = tell_life(low, Some(high));
    format!("{} does {share} of the I/Os of {}: {reason}{life}", low.0, high.0)
}

/// Where requests of `run` spend most of their life, and why, set against `other` (Y3); empty where
/// it is in the driver, or at no one place.
fn tell_life(run: &(&str, Figures), other: Option<&(&str, Figures)>) -> String {
    if let Some(figures) = &run.1.pmem {
        return pmem::tell_parts(run.0, figures); // Y6.
    }
    let (life, place, part) = largest_part(&run.1.life);
    if place == IN_DRIVER || part == 0.0 || 2.0 * part < life {
        return String::new();
    }
    let reason = main_reason(&run.1.holds).filter(|_| place != UNTAKEN);
    let reason = reason.map(|words| format!(", as {words}")).unwrap_or_default();
    let against = other.map(|(name, figures)| {
        let (life, there, part) = largest_part(&figures.life);
        let there = if there == place { String::new() } else { format!(" {there}") };
        format!(" ({name}: {} of {}{there})", duration(part), duration(life))
    });
    format!(
        " Of its {} a request of {} spends {} {place}{reason}{}.",
        duration(life),
        run.0,
        duration(part),
        against.unwrap_or_default()
    )
}

/// How long the buses of two MMC hosts are idle, where that differs and I/Os share transfers (Y5).
fn tell_idle(a: &(&str, Figures), b: &(&str, Figures)) -> String {
    let ((a_name, Figures { mmc: Some(of_a), .. }), (b_name, Figures { mmc: Some(of_b), .. })) =
        (a, b)
    else {
        return String::new();
    };
    host::tell_idle((a_name, &of_a.transfer), (b_name, &of_b.transfer))
}

/// A whole life, and its largest part: where it is spent, and how long. Nanoseconds.
fn largest_part(life: &Life) -> (f64, &'static str, f64) {
    let parts = life.parts();
    let whole = parts.iter().map(|(_, ns)| ns).sum();
    let largest = parts.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (place, part) = largest.expect("a life has parts");
    (whole, place, part)
}

/// The reason that makes up half of the time that hardware queues stood held, in words.
fn main_reason(holds: &[Held; Hold::ALL.len()]) -> Option<&'static str> {
    let all: f64 = holds.iter().map(|held| held.percent).sum();
    let mut reasons = Hold::ALL.iter().zip(holds);
    let (hold, _) = reasons.find(|(_, held)| held.percent > 0.0 && 2.0 * held.percent >= all)?;
    Some(match hold {
        Hold::Budget => "the device has no room",
        Hold::Tag => "no driver tag is free",
        Hold::Device => "the device is full",
        Hold::Host => "what the disks of the host share is used up",
        Hold::Resource => "the driver refuses",
        Hold::Leftovers => "what was taken out before goes first",
        Hold::Order => "the elevator withholds it",
        Hold::Quiesced => "runs are stopped",
    })
}

/// How far apart two runs are, as a factor of at least 1.
fn distance(a: &(&str, Figures), b: &(&str, Figures)) -> f64 {
    distance_of(a.1.iops / b.1.iops)
}

/// `factor` or what it is the inverse of, whichever is larger. Of two factors, the one with the
/// larger result carries the larger part of the logarithm of their product (Y1).
fn distance_of(factor: f64) -> f64 {
    factor.max(1.0 / factor)
}

/// Two runs, the slower one and the faster one.
struct Difference<'a> {
    low: &'a (&'a str, Figures),
    high: &'a (&'a str, Figures),
}

impl Difference<'_> {
    /// A figure of the slower run relative to that of the faster one.
    fn of(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        figure(&self.low.1) / figure(&self.high.1)
    }

    /// I/Os per command carry the larger part.
    fn tell_merging(&self) -> String {
        let ((low_name, low), (high_name, high)) = (self.low, self.high);
        let merged = instead(low.ios_per_command, high.ios_per_command);
        let rate = digits(self.of(|figures| figures.commands_per_s));
        let begin = format!("{merged} I/Os per command, at {rate} times the commands per second.");
        let taken_out = |figures: &Figures| percent(figures.taken_out_percent);
        if low.taken_out_percent <= high.taken_out_percent + 10.0 {
            return format!(
                "{begin} Requests pass {} of their wait where nothing can join them under \
                 {low_name}, {} under {high_name}: fewer neighbours meet under {low_name}.",
                taken_out(low),
                taken_out(high),
            );
        }
        format!(
            "{begin} Under {low_name} requests are taken out of where they can be merged while \
             the device is full: {} refusals and {} runs for each I/O, {} of their wait spent \
             where nothing can join them ({high_name}: {}, {} and {}).",
            digits(low.refusals_per_io),
            digits(low.runs_per_io),
            taken_out(low),
            digits(high.refusals_per_io),
            digits(high.runs_per_io),
            taken_out(high),
        )
    }

    /// Commands per second carry the larger part: fewer are at the device, or each stays longer.
    fn tell_rate(&self, device: &Device) -> String {
        let ((low_name, low), (high_name, high)) = (self.low, self.high);
        let rate = digits(self.of(|figures| figures.commands_per_s));
        let merged = instead(low.ios_per_command, high.ios_per_command);
        let fewer = distance_of(self.of(|figures| figures.at_device));
        let longer = distance_of(self.of(|figures| figures.command_ns));
        let at_device = match device.model {
            // A host's driver holds requests that wait for the bus: Y4 tells more.
            DeviceModel::Null(_) | DeviceModel::Mmc(_) | DeviceModel::Pmem(_) => String::new(),
            DeviceModel::Hba(_) if fewer >= longer => {
                format!(" {} commands at the device.", instead(low.at_device, high.at_device))
            }
            DeviceModel::Hba(_) => {
                let us = |figures: &Figures| figures.command_ns / 1e3;
                format!(" {} us at the device for each.", instead(us(low), us(high)))
            }
        };
        let transfers = match (&low.mmc, &high.mmc) {
            (Some(low), Some(high)) => format!(" {}", low.transfer.tell_against(&high.transfer)),
            _ => String::new(),
        };
        let (of_low, of_high) = (limit(device, low), limit(device, high));
        let by_host = |of: &Figures| of.mmc.as_ref().is_some_and(|host| host.holds(of));
        let held = if by_host(low) && by_host(high) {
            String::new() // Y4 has told it.
        } else if of_low == of_high {
            format!(" Both are held by {of_low}.")
        } else {
            format!(" {low_name} is held by {of_low}, {high_name} by {of_high}.")
        };
        format!(
            "{rate} times the commands per second, at {merged} I/Os per command.{at_device}{transfers}{held}"
        )
    }
}

/// Where latency differs between `runs` though their rates do not.
fn latency(runs: &[(&str, Figures)]) -> String {
    let p99_9 = |run: &&(&str, Figures)| run.1.lat_ns.percentile(99_900);
    let (Some(least), Some(most)) = (runs.iter().min_by_key(p99_9), runs.iter().max_by_key(p99_9))
    else {
        return String::new();
    };
    let [low, high] = [least, most].map(|run| float(p99_9(&run)));
    if high < low * MUCH_SLOWER {
        return String::new();
    }
    let [low, high] = [low, high].map(|ns| digits(ns / 1e6));
    format!(
        " Latency differs: one I/O in a thousand takes {high} ms or more under {}, {low} under {}.",
        most.0, least.0
    )
}

/// What a run is held by (Y2).
fn limit(device: &Device, figures: &Figures) -> String {
    let at_device = digits(figures.at_device);
    if let DeviceModel::Hba(hba) = device.model {
        let link = link_percent(&hba, figures);
        if link >= USED_UP {
            return format!("the link to the device ({} in use)", percent(link));
        }
        let depth = f64::from(hba.cmd_per_lun) * f64::from(hba.luns);
        if 100.0 * figures.at_device >= USED_UP * depth {
            return format!("the device's depth ({at_device} of {depth} commands at it)");
        }
    }
    let polling = if figures.polling_percent >= MUCH_SPINNING {
        format!(", {} of it polling", percent(figures.polling_percent))
    } else {
        String::new()
    };
    let cpus = format!(
        "{} of the processors that jobs run on in use{polling}",
        percent(figures.jobs_cpu_percent)
    );
    if figures.spinning_percent >= MUCH_SPINNING {
        return format!(
            "the lock ({cpus}, {} of it waiting for the lock)",
            percent(figures.spinning_percent)
        );
    }
    if figures.jobs_cpu_percent * (100.0 - figures.polling_percent) >= USED_UP * 100.0 {
        return format!("the processors ({cpus})");
    }
    if let Some(words) = figures.mmc.as_ref().and_then(|host| host.limit(figures)) {
        return words;
    }
    if figures.device_busy_percent >= USED_UP {
        return format!(
            "how long the device takes for what is asked of it at once ({at_device} commands at it, {cpus})"
        );
    }
    format!("the pace of the jobs themselves ({at_device} commands at the device, {cpus})")
}

/// Part of the time in which data passes the link, which carries one command at a time.
fn link_percent(hba: &HbaProfile, figures: &Figures) -> f64 {
    let seconds_of = |bytes, rate| ratio(float(bytes), float(rate));
    let seconds = seconds_of(figures.read_bytes, hba.link_read)
        + seconds_of(figures.written_bytes, hba.link_write);
    100.0 * ratio(seconds * float(figures.bytes_per_s), float(figures.bytes))
}

/// The mean time of a request in `stage`, reads and writes together, nanoseconds.
fn mean_ns(report: &Report, stage: Stage) -> f64 {
    let times = |stage| Direction::DATA.map(|direction| report.stages.times_ns(direction, stage));
    let sum: u128 = times(stage).iter().map(|times| times.sum()).sum();
    // Not each request waits for flushes: the mean is over all of them.
    let of = if stage == Stage::Flushing { Stage::Total } else { stage };
    let count: u64 = times(of).iter().map(|times| times.count()).sum();
    ratio(wide(sum), float(count))
}

/// `part / whole`; 0 of nothing.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown, a double has fifteen")]
const fn float(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown, a double has fifteen")]
const fn wide(value: u128) -> f64 {
    value as f64
}

/// `a` instead of `b`, as far as it can be seen.
fn instead(a: f64, b: f64) -> String {
    instead_of(&digits(a), &digits(b))
}

/// The same of what is written already.
fn instead_of(a: &str, b: &str) -> String {
    if a == b { a.to_owned() } else { format!("{a} instead of {b}") }
}

/// A time in the unit that suits it.
fn duration(ns: f64) -> String {
    match ns {
        _ if ns >= 999.5e3 => format!("{} ms", digits(ns / 1e6)),
        _ if ns >= 999.5 => format!("{} us", digits(ns / 1e3)),
        _ => format!("{ns:.0} ns"),
    }
}

/// Three digits for the eye.
fn digits(value: f64) -> String {
    let decimals = match value {
        _ if value < 9.995 => 2,
        _ if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

fn percent(value: f64) -> String {
    format!("{value:.0} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of a second in which `commands` of `ios_per_command` each spent 440 us at the device.
    pub(super) fn run(commands: u64, ios_per_command: f64) -> Figures {
        let iops = float(commands) * ios_per_command;
        Figures {
            ios: 1_000_000,
            bytes: 4_096_000_000,
            read_bytes: 0,
            written_bytes: 0,
            iops,
            bytes_per_s: 4_096_000_000,
            lat_ns: Histogram::new(),
            cpu_percent: 10.0,
            jobs_cpu_percent: 10.0,
            spinning_percent: 0.0,
            polling_percent: 0.0,
            commands,
            ios_per_command,
            commands_per_s: float(commands),
            at_device: float(commands) * 440e-6,
            command_ns: 440e3,
            device_busy_percent: 100.0,
            mean_idle_gap_ns: 0,
            wakeups_per_io: 0.1,
            runs_per_io: 0.2,
            refusals_per_io: 0.3,
            taken_out_percent: 0.0,
            spent: Spent::default(),
            one_at_a_time: false,
            life: Life::default(),
            holds: [Held::default(); Hold::ALL.len()],
            mmc: None,
            pmem: None,
        }
    }

    fn told(runs: &[(&str, Figures)]) -> String {
        why(&Device::lookup("srp").unwrap(), runs)
    }

    #[test]
    fn fewer_ios_per_command_are_told_with_what_took_requests_out() {
        let pulled = Figures {
            taken_out_percent: 97.0,
            refusals_per_io: 8.4,
            runs_per_io: 9.5,
            ..run(140_000, 1.0)
        };
        let words = told(&[("a", run(50_000, 12.0)), ("b", pulled)]);
        assert_eq!(
            words,
            "b does 0.23 of the I/Os of a: 1.00 instead of 12.0 I/Os per command, at 2.80 times \
             the commands per second. Under b requests are taken out of where they can be merged \
             while the device is full: 8.40 refusals and 9.50 runs for each I/O, 97 % of their \
             wait spent where nothing can join them (a: 0.30, 0.20 and 0 %)."
        );
    }

    #[test]
    fn fewer_commands_are_told_with_what_holds_both() {
        let locked = Figures { spinning_percent: 60.0, ..run(70_000, 1.0) };
        let words = told(&[("a", locked), ("b", run(140_000, 1.0))]);
        assert_eq!(
            words,
            "a does 0.50 of the I/Os of b: 0.50 times the commands per second, at 1.00 I/Os per \
             command. 30.8 instead of 61.6 commands at the device. a is held by the lock (10 % of \
             the processors that jobs run on in use, 60 % of it waiting for the lock), b by the \
             device's depth (61.6 of 62 commands at it)."
        );
    }

    #[test]
    fn the_run_furthest_from_the_first_is_explained_whatever_its_name() {
        let runs = [("x", run(100_000, 1.0)), ("y", run(99_000, 1.0)), ("z", run(300_000, 1.0))];
        assert!(told(&runs).starts_with("x does 0.33 of the I/Os of z: "), "{}", told(&runs));
    }

    #[test]
    fn equals_are_told_what_holds_them_and_how_their_latency_differs() {
        let with_latency = |ns| {
            let mut figures = run(140_000, 1.0);
            figures.lat_ns.record(ns);
            figures
        };
        let words = told(&[("a", with_latency(3_000_000)), ("b", with_latency(30_000_000))]);
        assert!(words.starts_with("All designs do the same within 2 %: what holds them is the de"));
        assert!(words.ends_with("takes 30.0 ms or more under b, 3.00 under a."), "{words}");
    }

    /// A life of 7 ms, 5 of them in the part that `spend` sets, and queues held for `reasons`.
    fn living(spend: fn(&mut Life, f64), reasons: &[(Hold, f64)]) -> Figures {
        let mut life = Life { in_driver_ns: 2e6, ..Life::default() };
        spend(&mut life, 5e6);
        let percent = |hold: Hold| reasons.iter().find(|(of, _)| *of == hold);
        let held =
            |hold| Held { percent: percent(hold).map_or(0.0, |(_, p)| *p), ..Held::default() };
        Figures { life, holds: Hold::ALL.map(held), ..run(100_000, 1.0) }
    }

    #[test]
    fn the_largest_part_of_a_life_is_told_with_its_reason() {
        let staged = |life: &mut Life, ns| life.staged_ns = ns;
        let words = told(&[("a", living(staged, &[(Hold::Budget, 60.0), (Hold::Tag, 30.0)]))]);
        let end =
            " Of its 7.00 ms a request of a spends 5.00 ms staged, as the device has no room.";
        assert!(words.ends_with(end), "{words}");
        // Less than half is not worth a sentence.
        let spread = |life: &mut Life, ns| (life.staged_ns, life.held_ns) = (ns, 4e6);
        assert!(!told(&[("a", living(spread, &[(Hold::Budget, 60.0)]))]).contains("Of its"));
        // No reason makes up half: none is told.
        let mixed = [(Hold::Budget, 30.0), (Hold::Tag, 30.0), (Hold::Order, 20.0)];
        let words = told(&[("a", living(staged, &mixed))]);
        assert!(words.ends_with(" spends 5.00 ms staged."), "{words}");
        // What holds a queue does not keep a job from its results.
        let untaken = |life: &mut Life, ns| life.untaken_ns = ns;
        let words = told(&[("a", living(untaken, &[(Hold::Budget, 99.0)]))]);
        assert!(words.ends_with(" spends 5.00 ms ended and not taken by its job."), "{words}");
    }

    #[test]
    fn a_life_in_the_driver_is_not_told_but_set_against_another() {
        let in_driver = |life: &mut Life, ns| life.in_driver_ns = ns;
        let quick = living(in_driver, &[(Hold::Budget, 99.0)]);
        assert!(!told(&[("a", quick.clone())]).contains("Of its"));
        let held = living(|life, ns| life.held_ns = ns, &[(Hold::Device, 97.0)]);
        let words = told(&[("a", Figures { iops: 3e5, ..quick }), ("b", held)]);
        let end = " Of its 7.00 ms a request of b spends 5.00 ms held after it was taken out, as the \
                   device is full (a: 5.00 ms of 5.00 ms in the driver).";
        assert!(words.ends_with(end), "{words}");
    }

    #[test]
    fn processors_that_poll_are_not_used_up() {
        let busy = Figures { jobs_cpu_percent: 100.0, ..run(10_000, 1.0) };
        assert!(told(&[("a", busy.clone())]).starts_with("a is held by the processors (100 % of"));
        let words = told(&[("a", Figures { polling_percent: 98.0, ..busy })]);
        assert_eq!(
            words,
            "a is held by how long the device takes for what is asked of it at once (4.40 commands \
             at it, 100 % of the processors that jobs run on in use, 98 % of it polling)."
        );
    }

    #[test]
    fn nothing_done_is_nothing_to_compare() {
        let none = Figures { ios: 0, ..run(0, 0.0) };
        assert!(told(&[("a", none), ("b", run(1, 1.0))]).starts_with("No I/O ended"));
    }
}
