//! What a run comes to, and why one design does more than another.
//!
//! Every I/O rate is the product of two factors, commands per second and I/Os per command, and the
//! first of them is again one of two (Little's law): commands at the device over the time each is
//! there. [`why`] says which factor carries the larger part of a difference and which counters
//! stand behind it. It knows no design: the same counters would give the same words.

#![expect(clippy::float_arithmetic, reason = "for reading only: nothing is ordered by the result")]

use blockyard::stats::{Direction, Histogram, Stage};
use blockyard::status::Status;
use blockyard::trace::{Action, Hold};

use crate::job::Op as JobOp;
use crate::measure::{JobStats, per_second};
use crate::profile::{Device, DeviceModel, HbaProfile};
use crate::simulate::Report;

/// Rates within this factor of each other are called equal.
const EQUAL: f64 = 1.02;
/// Parts in a hundred from which a resource is called used up.
const USED_UP: f64 = 95.0;
/// Parts in a hundred of the processor time from which waiting for the lock is worth naming.
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
    /// Part of the processor time that went into waiting for the lock.
    pub spinning_percent: f64,
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
}

impl Figures {
    /// The figures of `report`.
    #[must_use]
    pub fn of(report: &Report) -> Self {
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
        let (staged, held) = (mean_ns(report, Stage::Staged), mean_ns(report, Stage::Held));
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
            spinning_percent: ratio(100.0 * float(report.totals.spinning.as_ns()), cpu),
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
            taken_out_percent: ratio(100.0 * held, staged + held),
        }
    }
}

/// Where the difference between `runs` of one job on `device` comes from, in a sentence or two;
/// for a single run, what holds it.
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
        return format!("{} is held by {}.", first.0, limit(device, &first.1));
    };
    if first.1.ios == 0 || other.1.ios == 0 {
        return "No I/O ended while it was measured: there is nothing to compare.".to_owned();
    }
    if distance(first, other) < EQUAL {
        let limit = limit(device, &first.1);
        return format!("All designs do the same within 2 %: what holds them is {limit}.");
    }
    let (low, high) = if other.1.iops < first.1.iops { (other, first) } else { (first, other) };
    let difference = Difference { low, high };
    let merging = difference.of(|figures| figures.ios_per_command);
    let rate = difference.of(|figures| figures.commands_per_s);
    let share = difference.of(|figures| figures.iops);
    let mut words = format!("{} does {} of the I/Os of {}", low.0, digits(share), high.0);
    if distance_of(merging) >= distance_of(rate) {
        difference.tell_merging(&mut words);
    } else {
        difference.tell_rate(device, &mut words);
    }
    words + "."
}

/// How far apart two runs are, as a factor of at least 1.
fn distance(a: &(&str, Figures), b: &(&str, Figures)) -> f64 {
    distance_of(a.1.iops / b.1.iops)
}

/// `factor` or what it is the inverse of, whichever is larger. Of two factors, the one with the
/// larger result carries the larger part of the logarithm of their product.
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
    fn tell_merging(&self, words: &mut String) {
        let ((low_name, low), (high_name, high)) = (self.low, self.high);
        let rate = digits(self.of(|figures| figures.commands_per_s));
        words.push_str(&format!(
            ": {} instead of {} I/Os go into one command, at {rate} times the commands per second. ",
            digits(low.ios_per_command), digits(high.ios_per_command),
        ));
        if low.taken_out_percent > high.taken_out_percent + 10.0 {
            words.push_str(&format!(
                "Under {low_name} requests leave the place where they can be merged while the \
                 device is full, {} refusals and {} runs for each I/O, and pass {} of their wait \
                 taken out ({high_name}: {}, {} and {})",
                digits(low.refusals_per_io),
                digits(low.runs_per_io),
                percent(low.taken_out_percent),
                digits(high.refusals_per_io),
                digits(high.runs_per_io),
                percent(high.taken_out_percent),
            ));
        } else {
            words.push_str(&format!(
                "Requests pass as much of their wait where they can be merged under both ({} and \
                 {} of it taken out): fewer neighbours meet there under {low_name}",
                percent(low.taken_out_percent),
                percent(high.taken_out_percent),
            ));
        }
    }

    /// Commands per second carry the larger part: fewer are at the device, or each stays longer.
    fn tell_rate(&self, device: &Device, words: &mut String) {
        let ((low_name, low), (high_name, high)) = (self.low, self.high);
        words.push_str(&format!(
            ": {} times the commands per second, at {} instead of {} I/Os in each. ",
            digits(self.of(|figures| figures.commands_per_s)),
            digits(low.ios_per_command),
            digits(high.ios_per_command),
        ));
        let fewer = distance_of(self.of(|figures| figures.at_device));
        let longer = distance_of(self.of(|figures| figures.command_ns));
        if fewer >= longer {
            words.push_str(&format!(
                "The device holds {} commands on average instead of {}: {low_name} is held by {}",
                digits(low.at_device),
                digits(high.at_device),
                limit(device, low),
            ));
        } else {
            words.push_str(&format!(
                "A command is at the device for {} us instead of {}: {low_name} is held by {}, \
                 {high_name} by {}",
                digits(low.command_ns / 1e3),
                digits(high.command_ns / 1e3),
                limit(device, low),
                limit(device, high),
            ));
        }
    }
}

/// What a run is held by: the resource that is used up, nearest the device first.
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
    if figures.cpu_percent >= USED_UP || figures.spinning_percent >= MUCH_SPINNING {
        return format!(
            "the processors ({} busy, {} of that waiting for the lock)",
            percent(figures.cpu_percent),
            percent(figures.spinning_percent)
        );
    }
    format!(
        "the job's own pace ({at_device} commands at the device, processors {} busy)",
        percent(figures.cpu_percent)
    )
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
    let times = Direction::ALL.map(|direction| report.stages.times_ns(direction, stage));
    let sum: u128 = times.iter().map(|times| times.sum()).sum();
    let count: u64 = times.iter().map(|times| times.count()).sum();
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
