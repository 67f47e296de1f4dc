//! Recipes: attributes in sysfs, and rules of udev, that give a disk the values of a design.
//!
//! Names, units and least values are those of Linux's documentation: `ABI/stable/sysfs-block`,
//! `block/deadline-iosched.rst`, `kyber-iosched.rst`, `bfq-iosched.rst` and
//! `admin-guide/sysctl/vm.rst`; those of adios are in its README. A key without an attribute is a
//! choice in the code of a kernel, a parameter of a driver or a property of the device: then there
//! is nothing to set, and the result says so.
//!
//! A disk has the defaults of its kernel until somebody writes to an attribute. So a key is written
//! if it was asked for, or if its value is not the one of the design of Linux with the same
//! scheduler.

use core::fmt::Write as _;

use blockyard::policy::{
    AdiosTunables, BfqTunables, DeadlineTunables, ElevatorKind, KyberTunables, Merges, SchedDepth,
};
use blockyard::time::Duration;
use serde::Serialize;

use crate::profile::{Design, Device, DeviceModel, HostLines, KindQueues, WbtLatency};

/// A file of the kernel, and what to write to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// The path of the file, with `DEV` for the name of the disk.
    pub path: String,
    /// The value.
    pub value: String,
    /// The kernels that have the file; empty if all do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernels: String,
    /// What the kernel does with the value; empty if there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A key that no file of the kernel sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unset {
    /// The key.
    pub key: String,
    /// What it is instead.
    pub why: String,
}

/// How to give a disk the values of a design.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recipe {
    /// What to write, in this order.
    pub settings: Vec<Setting>,
    /// The same as rules of udev for disks of the device's class; empty if there is no such rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rules: String,
    /// The keys that were asked for and that nothing sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<Unset>,
    /// What else of the design nothing sets, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The value of an attribute before it is written in its unit.
enum Amount {
    Number(u64),
    Time(Duration),
    Word(&'static str),
}

/// An attribute that has the value of a key.
struct Knob {
    key: &'static str,
    /// Below `/sys/block/DEV/`.
    path: &'static str,
    /// The nanoseconds of its unit, if it is a time.
    unit_ns: u64,
    /// The least and the largest number that Linux takes.
    range: [u64; 2],
    /// The kernels that have it, if not all do.
    kernels: &'static str,
    /// Its value; `None` if the design has none, or leaves it to the kernel.
    amount: fn(&Design) -> Option<Amount>,
}

impl Knob {
    const fn number(
        key: &'static str,
        path: &'static str,
        amount: fn(&Design) -> Option<Amount>,
    ) -> Self {
        Self { key, path, unit_ns: 1, range: [0, u64::MAX], kernels: "", amount }
    }

    const fn time(
        key: &'static str,
        path: &'static str,
        unit_ns: u64,
        amount: fn(&Design) -> Option<Amount>,
    ) -> Self {
        Self { unit_ns, ..Self::number(key, path, amount) }
    }

    const fn within(self, range: [u64; 2]) -> Self {
        Self { range, ..self }
    }

    const fn on(self, kernels: &'static str) -> Self {
        Self { kernels, ..self }
    }
}

/// The nanoseconds of a microsecond.
const US: u64 = 1_000;
/// The nanoseconds of a millisecond.
const MS: u64 = 1_000_000;
/// The longest time that an attribute in milliseconds takes (`INT_MAX`): 24 days, for "never".
const MS_MAX: u64 = i32::MAX.unsigned_abs() as u64;
/// `BLKDEV_MIN_RQ`, and `MAX_SCHED_RQ`, which is 16 times the usual 128.
const SCHED_DEPTHS: [u64; 2] = [4, 2048];
const SCHEDULER: &str = "queue.elevator";
const SINCE_ASYNC_DEPTH: &str = "Linux 7.0 and later";
const UNTIL_ASYNC_DEPTH: &str = "Linux up to 6.19";

/// The attributes, in the order in which they are written: a scheduler brings its own.
const KNOBS: &[Knob] = &[
    Knob::number(SCHEDULER, "queue/scheduler", |of| Some(Amount::Word(scheduler(of)))),
    Knob::number("queue.sched-depth", "queue/nr_requests", sched_depth).within(SCHED_DEPTHS),
    Knob::number("queue.async-depth", "queue/async_depth", async_depth).on(SINCE_ASYNC_DEPTH),
    Knob::number("queue.async-depth", "queue/iosched/async_depth", deadline_async_depth)
        .on(UNTIL_ASYNC_DEPTH),
    Knob::number("queue.nomerges", "queue/nomerges", |of| {
        Some(Amount::Number(match of.policies.merges {
            Merges::All => 0,
            Merges::Last => 1,
            Merges::Off => 2,
        }))
    }),
    Knob::time("queue.wbt-latency", "queue/wbt_lat_usec", US, |of| {
        Some(match of.wbt_latency {
            WbtLatency::Off => Amount::Number(0),
            WbtLatency::Linux => Amount::Word("-1"),
            WbtLatency::Target(time) => Amount::Time(time),
        })
    }),
    Knob::time("queue.timeout", "queue/io_timeout", MS, |of| of.timeout.map(Amount::Time)),
    Knob::number("queue.max-request", "queue/max_sectors_kb", |of| {
        Some(Amount::Number(u64::from(of.max_request_sectors) / 2))
    }),
    Knob::number("queue.read-ahead", "queue/read_ahead_kb", |of| {
        of.read_ahead.bytes.map(|bytes| Amount::Number(bytes / 1024))
    }),
    Knob::time("queue.deadline.read-expire", "queue/iosched/read_expire", MS, |of| {
        deadline(of).map(|of| Amount::Time(of.read_expire))
    }),
    Knob::time("queue.deadline.write-expire", "queue/iosched/write_expire", MS, |of| {
        deadline(of).map(|of| Amount::Time(of.write_expire))
    }),
    Knob::number("queue.deadline.writes-starved", "queue/iosched/writes_starved", |of| {
        deadline(of).map(|of| Amount::Number(of.writes_starved.into()))
    }),
    Knob::number("queue.deadline.fifo-batch", "queue/iosched/fifo_batch", |of| {
        deadline(of).map(|of| Amount::Number(of.fifo_batch.into()))
    }),
    Knob::number("queue.deadline.front-merges", "queue/iosched/front_merges", |of| {
        deadline(of).map(|of| Amount::Number(of.front_merges.into()))
    }),
    Knob::time("queue.deadline.prio-aging-expire", "queue/iosched/prio_aging_expire", MS, |of| {
        deadline(of).map(|of| Amount::Time(of.prio_aging_expire))
    }),
    Knob::time("queue.kyber.read-latency", "queue/iosched/read_lat_nsec", 1, |of| {
        kyber(of).map(|of| Amount::Time(of.read_latency))
    }),
    Knob::time("queue.kyber.write-latency", "queue/iosched/write_lat_nsec", 1, |of| {
        kyber(of).map(|of| Amount::Time(of.write_latency))
    }),
    Knob::time("queue.bfq.slice-idle", "queue/iosched/slice_idle_us", US, |of| {
        bfq(of).map(|of| Amount::Time(of.slice_idle))
    }),
    Knob::number("queue.bfq.low-latency", "queue/iosched/low_latency", |of| {
        bfq(of).map(|of| Amount::Number(of.low_latency.into()))
    }),
    Knob::number("queue.bfq.strict-guarantees", "queue/iosched/strict_guarantees", |of| {
        bfq(of).map(|of| Amount::Number(of.strict_guarantees.into()))
    }),
    Knob::time("queue.bfq.timeout-sync", "queue/iosched/timeout_sync", MS, |of| {
        bfq(of).map(|of| Amount::Time(of.timeout_sync))
    }),
    Knob::number("queue.bfq.max-budget", "queue/iosched/max_budget", |of| {
        bfq(of).map(|of| Amount::Number(of.max_budget.into()))
    }),
    Knob::number("queue.bfq.back-seek-max", "queue/iosched/back_seek_max", |of| {
        bfq(of).map(|of| Amount::Number(of.back_seek_max.into()))
    }),
    Knob::number("queue.bfq.back-seek-penalty", "queue/iosched/back_seek_penalty", |of| {
        bfq(of).map(|of| Amount::Number(of.back_seek_penalty.into()))
    }),
    Knob::time("queue.bfq.fifo-expire-sync", "queue/iosched/fifo_expire_sync", MS, |of| {
        bfq(of).map(|of| Amount::Time(of.fifo_expire_sync))
    }),
    Knob::time("queue.bfq.fifo-expire-async", "queue/iosched/fifo_expire_async", MS, |of| {
        bfq(of).map(|of| Amount::Time(of.fifo_expire_async))
    }),
    Knob::time(
        "queue.adios.global-latency-window",
        "queue/iosched/global_latency_window",
        1,
        |of| adios(of).and_then(|of| of.global_latency_window.map(Amount::Time)),
    ),
    Knob::time("queue.adios.lat-target-read", "queue/iosched/lat_target_read", 1, |of| {
        adios(of).map(|of| Amount::Time(of.lat_target_read))
    }),
    Knob::time("queue.adios.lat-target-write", "queue/iosched/lat_target_write", 1, |of| {
        adios(of).map(|of| Amount::Time(of.lat_target_write))
    }),
    Knob::time("queue.adios.lat-target-discard", "queue/iosched/lat_target_discard", 1, |of| {
        adios(of).map(|of| Amount::Time(of.lat_target_discard))
    }),
    Knob::time(
        "queue.adios.lat-model-latency-limit",
        "queue/iosched/lat_model_latency_limit",
        1,
        |of| adios(of).map(|of| Amount::Time(of.lat_model_latency_limit)),
    ),
    Knob::number("queue.adios.batch-limit-read", "queue/iosched/batch_limit_read", |of| {
        adios(of).map(|of| Amount::Number(of.batch_limit_read.into()))
    }),
    Knob::number("queue.adios.batch-limit-write", "queue/iosched/batch_limit_write", |of| {
        adios(of).map(|of| Amount::Number(of.batch_limit_write.into()))
    }),
    Knob::number("queue.adios.batch-limit-discard", "queue/iosched/batch_limit_discard", |of| {
        adios(of).map(|of| Amount::Number(of.batch_limit_discard.into()))
    }),
    Knob::number(
        "queue.adios.bq-refill-below-ratio",
        "queue/iosched/bq_refill_below_ratio",
        |of| adios(of).map(|of| Amount::Number(of.bq_refill_below_ratio.into())),
    ),
];

/// The name of the scheduler in `queue/scheduler`.
const fn scheduler(design: &Design) -> &'static str {
    match design.policies.elevator {
        // A profile names no elevator from outside the core.
        ElevatorKind::None | ElevatorKind::Other => "none",
        ElevatorKind::Deadline(_) => "mq-deadline",
        ElevatorKind::Kyber(_) => "kyber",
        ElevatorKind::Bfq(_) => "bfq",
        ElevatorKind::Adios(_) => "adios",
    }
}

/// The built-in design of Linux 7.3 with the same scheduler.
fn usual(design: &Design) -> Design {
    let name = match design.policies.elevator {
        ElevatorKind::None | ElevatorKind::Other => "mq-none",
        ElevatorKind::Deadline(_) => "mq-deadline",
        ElevatorKind::Kyber(_) => "mq-kyber",
        ElevatorKind::Bfq(_) => "mq-bfq",
        ElevatorKind::Adios(_) => "mq-adios",
    };
    Design::lookup(name).expect("a built-in design")
}

const fn deadline(design: &Design) -> Option<&DeadlineTunables> {
    match &design.policies.elevator {
        ElevatorKind::Deadline(of) => Some(of),
        _ => None,
    }
}

const fn kyber(design: &Design) -> Option<&KyberTunables> {
    match &design.policies.elevator {
        ElevatorKind::Kyber(of) => Some(of),
        _ => None,
    }
}

const fn bfq(design: &Design) -> Option<&BfqTunables> {
    match &design.policies.elevator {
        ElevatorKind::Bfq(of) => Some(of),
        _ => None,
    }
}

const fn adios(design: &Design) -> Option<&AdiosTunables> {
    match &design.policies.elevator {
        ElevatorKind::Adios(of) => Some(of),
        _ => None,
    }
}

/// The scheduler tags. Without a scheduler there are none, and `nr_requests` is the device's depth.
fn sched_depth(design: &Design) -> Option<Amount> {
    match (design.policies.elevator, design.policies.sched_depth) {
        (ElevatorKind::None, _) | (_, SchedDepth::FromDeviceDepth) => None,
        (_, SchedDepth::Fixed(depth)) => Some(Amount::Number(depth.into())),
    }
}

fn async_depth(design: &Design) -> Option<Amount> {
    let of_deadline = deadline(design).and_then(|of| of.async_depth);
    let of_kyber = kyber(design).and_then(|of| of.async_depth);
    let of_bfq = bfq(design).and_then(|of| of.async_depth);
    of_deadline.or(of_kyber).or(of_bfq).map(|depth| Amount::Number(depth.into()))
}

fn deadline_async_depth(design: &Design) -> Option<Amount> {
    deadline(design)?.async_depth.map(|depth| Amount::Number(depth.into()))
}

impl Knob {
    /// Returns what to write for `design`, in the unit of the attribute.
    fn setting(&self, design: &Design) -> Option<Setting> {
        let [least, most] = self.range;
        debug_assert!(least <= most && self.unit_ns > 0, "{}", self.key);
        let number = match (self.amount)(design)? {
            Amount::Word(word) => return Some(self.of(word.to_owned(), "")),
            Amount::Number(number) => number,
            Amount::Time(time) if time.as_ns().is_multiple_of(self.unit_ns) => {
                time.as_ns() / self.unit_ns
            }
            Amount::Time(time) => {
                let number = time.as_ns().div_ceil(self.unit_ns);
                return Some(self.of(number.to_string(), "rounded up to the unit of the file"));
            }
        };
        let note = match number {
            number if number < least => "the least that Linux takes",
            number if number > most => "the most that Linux takes",
            _ => "",
        };
        let number = number.clamp(least, most);
        // "Never" of a profile is the longest time.
        let longest = if self.unit_ns == MS { MS_MAX } else { u64::MAX };
        Some(self.of(number.min(longest).to_string(), note))
    }

    fn of(&self, value: String, note: &str) -> Setting {
        let path = format!("{DISK}{}", self.path);
        Setting { path, value, kernels: self.kernels.to_owned(), note: note.to_owned() }
    }

    fn is_of(&self, key: &str) -> bool {
        // mq-deadline has the limit in its own table, too.
        self.key == key || key == "queue.deadline.async-depth" && self.key == "queue.async-depth"
    }
}

/// The folder of a disk.
const DISK: &str = "/sys/block/DEV/";

/// Returns what a file of the kernel sets of the `key` of a device, if there is one.
fn of_device(device: &Device, key: &str) -> Option<Setting> {
    let limits = &device.limits;
    let machine = &device.machine;
    let (path, value) = match key {
        "limits.max-sectors" => ("queue/max_sectors_kb", u64::from(limits.max_sectors) / 2),
        "limits.rotational" => ("queue/rotational", limits.rotational.into()),
        "limits.max-discard-sectors" => {
            ("queue/discard_max_bytes", u64::from(limits.max_discard_sectors) * 512)
        }
        "ahci.depth" | "ufs.depth" => {
            ("device/queue_depth", device.model.queues(None).depth.into())
        }
        "cpu.dirty-bytes" => ("/vm/dirty_bytes", machine.dirty_bytes),
        "cpu.dirty-background-bytes" => {
            ("/vm/dirty_background_bytes", machine.dirty_background_bytes)
        }
        "cpu.dirty-expire" => {
            ("/vm/dirty_expire_centisecs", machine.dirty_expire.as_ns().div_ceil(10 * MS))
        }
        "cpu.dirty-writeback" => {
            ("/vm/dirty_writeback_centisecs", machine.dirty_writeback.as_ns().div_ceil(10 * MS))
        }
        _ => return None,
    };
    let path = match path.strip_prefix('/') {
        Some(of_memory) => format!("/proc/sys/{of_memory}"),
        None => format!("{DISK}{path}"),
    };
    Some(Setting { path, value: value.to_string(), kernels: String::new(), note: String::new() })
}

/// Returns the first attribute of a key.
fn knob_of(key: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.is_of(key))
}

/// Says what a key without a file of the kernel is.
fn why_unset(key: &str, design: &Design) -> &'static str {
    debug_assert!(!key.is_empty(), "a key without a name");
    let is_none = scheduler(design) == "none";
    let is_of_driver =
        ["queue.hw-queues", "queue.depth", "queue.read-queues", "queue.poll-queues"].contains(&key);
    match key.split('.').next() {
        Some("queue") if is_of_driver => {
            "the driver decides it when it starts (of NVMe: nvme.poll_queues, nvme.write_queues)"
        }
        Some("queue") if key == "queue.sched-depth" && is_none => {
            "without a scheduler there are no tags of one"
        }
        Some("queue") if key.starts_with("queue.adios.") && knob_of(key).is_none() => {
            "adios may have an attribute for it, which is not listed here"
        }
        Some("queue") if knob_of(key).is_some() => "the default of the kernel",
        Some("queue") => "a choice in the code of a kernel, which no setting changes",
        Some("host") => "a choice in the code of the host's driver, which no setting changes",
        Some("btt") => "a property of the block translation table, fixed when it is created",
        _ => "a property of the device or the machine: nothing to set",
    }
}

impl Recipe {
    /// Returns how a disk gets the values of `design`, and on `device`, those of the `keys` that
    /// were asked for. Without a device there is no rule, because the class of disks is not known.
    #[must_use]
    pub fn of(design: &Design, device: Option<&Device>, keys: &[&str]) -> Self {
        debug_assert!(keys.iter().all(|key| !key.is_empty()), "a key without a name");
        let usual = usual(design);
        let is_queued = !device.is_some_and(|device| matches!(device.model, DeviceModel::Pmem(_)));
        let mut settings = Vec::new();
        for knob in KNOBS.iter().filter(|_| is_queued) {
            let setting = knob.setting(design);
            let is_asked = keys.iter().any(|key| knob.is_of(key)) || knob.key == SCHEDULER;
            settings
                .extend(setting.filter(|of| is_asked || Some(of) != knob.setting(&usual).as_ref()));
        }
        let mut unset = Vec::new();
        for key in keys {
            let of_device = device.and_then(|device| of_device(device, key));
            let is_set = KNOBS.iter().any(|knob| knob.is_of(key) && knob.setting(design).is_some());
            if of_device.is_none() && !(is_set && is_queued) {
                unset
                    .push(Unset { key: (*key).to_owned(), why: why_unset(key, design).to_owned() });
            }
            settings.extend(of_device);
        }
        let settings = once_each(settings);
        // What was swept does not name the class of disks.
        let device = device.filter(|_| !keys.contains(&"limits.rotational"));
        let rules = device.map_or_else(String::new, |device| rules(device, &settings));
        Self { settings, rules, unset, notes: notes(design, is_queued) }
    }

    /// Returns the lines of a shell script that writes the settings.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        let of = |Setting { path, value, kernels, note }: &Setting| {
            let words = [kernels, note].into_iter().filter(|words| !words.is_empty());
            let words = words.map(|words| format!("# {words}:"));
            words.chain([format!("echo {value} > {path}")]).collect::<Vec<_>>()
        };
        self.settings.iter().flat_map(of).collect()
    }
}

/// Returns `settings` with one for each file: of two numbers the smaller one, as a limit of the
/// device and one of the design both hold.
fn once_each(settings: Vec<Setting>) -> Vec<Setting> {
    debug_assert!(settings.iter().all(|of| !of.path.is_empty()), "{settings:?}");
    let mut all: Vec<Setting> = Vec::new();
    for of in settings {
        let Some(known) = all.iter_mut().find(|known| known.path == of.path) else {
            all.push(of);
            continue;
        };
        let numbers = [&of.value, &known.value].map(|value| value.parse::<u64>().ok());
        if numbers[0] < numbers[1] {
            *known = of;
        }
    }
    all
}

/// Says what of `design` is more than settings.
fn notes(design: &Design, is_queued: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let name = &design.name;
    if !is_queued || design.btt.is_some() {
        notes.push("Persistent memory takes I/O without a queue: it has no scheduler.".to_owned());
        return notes;
    }
    let usual = usual(design).name;
    let kernels = [usual.clone(), format!("{usual}-6.12")];
    let is_code = |kernel: &String| {
        Design::lookup(kernel).is_ok_and(|of| without_settings(&of) == without_settings(design))
    };
    if !kernels.iter().any(is_code) {
        notes.push(format!("{name} has choices, too, that no setting of Linux 7.3 or 6.12 makes."));
    }
    if scheduler(design) == "adios" {
        notes.push("Linux itself has no adios: kernels of some distributions have it.".to_owned());
    }
    if design.host.is_some() {
        notes.push("The driver of the MMC host decides how it works: nothing to set.".to_owned());
    }
    notes
}

/// Returns `design` with everything that has an attribute, or is an MMC host's, made the same.
fn without_settings(design: &Design) -> Design {
    let mut same = design.clone();
    [&mut same.name, &mut same.title, &mut same.origin].into_iter().for_each(String::clear);
    same.host = None;
    same.host_lines = HostLines::default();
    same.unmaps = true;
    same.read_queues = KindQueues { line: 0, ..design.read_queues };
    same.poll_queues = KindQueues { line: 0, ..design.poll_queues };
    same.max_request_sectors = 0;
    same.read_ahead.bytes = None;
    same.wbt_latency = WbtLatency::Off;
    same.timeout = None;
    same.policies.merges = Merges::All;
    same.policies.sched_depth = SchedDepth::FromDeviceDepth;
    same.policies.elevator = match design.policies.elevator {
        none @ (ElevatorKind::None | ElevatorKind::Other) => none,
        ElevatorKind::Deadline(of) => ElevatorKind::Deadline(DeadlineTunables {
            classes: of.classes,
            heads: of.heads,
            tag_wakes: of.tag_wakes,
            insertion: of.insertion,
            ..DeadlineTunables::default()
        }),
        ElevatorKind::Kyber(of) => ElevatorKind::Kyber(KyberTunables {
            read_latency: KyberTunables::default().read_latency,
            write_latency: KyberTunables::default().write_latency,
            async_depth: None,
            ..of
        }),
        ElevatorKind::Bfq(_) => ElevatorKind::Bfq(BfqTunables::default()),
        ElevatorKind::Adios(of) => ElevatorKind::Adios(AdiosTunables {
            batch_order: of.batch_order,
            fixed_order: of.fixed_order,
            discards: of.discards,
            ..AdiosTunables::default()
        }),
    };
    same
}

/// Returns the rules of udev that write `settings` to each disk of the class of `device`: one rule,
/// and one more for each attribute that not all kernels have.
fn rules(device: &Device, settings: &[Setting]) -> String {
    let of_disk: Vec<_> =
        settings.iter().filter_map(|of| Some((of.path.strip_prefix(DISK)?, of))).collect();
    let always: Vec<_> = of_disk.iter().filter(|(_, of)| of.kernels.is_empty()).collect();
    debug_assert!(settings.iter().all(|of| of.path.starts_with('/')), "{settings:?}");
    let mut rules = String::new();
    let mut add = String::new();
    for (path, of) in &always {
        let _ = write!(add, ", \\\n  ATTR{{{path}}}=\"{}\"", of.value);
    }
    if !always.is_empty() {
        rules = format!("{}{add}\n", class(device));
    }
    for (path, of) in of_disk.iter().filter(|(_, of)| !of.kernels.is_empty()) {
        let value = &of.value;
        rules +=
            &format!("{}, \\\n  TEST==\"{path}\", ATTR{{{path}}}=\"{value}\"\n", class(device));
    }
    rules
}

/// Returns the conditions of a rule for disks of the class of `device`. All SCSI disks have one
/// name.
fn class(device: &Device) -> String {
    let disks = device.model.disk_condition();
    debug_assert!(disks.starts_with("KERNEL=="), "a rule for all disks");
    let is_rotational = u8::from(device.limits.rotational);
    let more = match disks.contains("sd[a-z]") {
        true => format!(", ATTR{{queue/rotational}}==\"{is_rotational}\""),
        false => String::new(),
    };
    format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", \\\n  {disks}{more}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Override;

    fn design(name: &str, values: &[(&str, &str)]) -> Design {
        let of =
            |(key, value): &(&str, &str)| Override { key: (*key).into(), value: (*value).into() };
        Design::lookup_with(name, &values.iter().map(of).collect::<Vec<_>>()).expect("a design")
    }

    fn recipe(name: &str, key: &str, value: &str) -> Recipe {
        Recipe::of(&design(name, &[(key, value)]), None, &[key])
    }

    fn commands(name: &str, key: &str, value: &str) -> Vec<String> {
        recipe(name, key, value).commands()
    }

    /// The rules for short batches on a device.
    fn rules_of(device: &str) -> String {
        let device = Device::lookup(device).expect("a built-in device");
        let batch = "queue.deadline.fifo-batch";
        Recipe::of(&design("mq-deadline", &[(batch, "4")]), Some(&device), &[batch]).rules
    }

    /// The recipe of a device with one value of its own.
    fn on_device(name: &str, key: &str, value: &str) -> Recipe {
        let of = [Override { key: key.into(), value: value.into() }];
        let device = Device::lookup_with(name, &of).expect("a device");
        Recipe::of(&design("none", &[]), Some(&device), &[key])
    }

    /// The units are those of the kernel's documentation: milliseconds of mq-deadline, nanoseconds
    /// of kyber, microseconds of wbt, KiB of requests and read-ahead.
    #[test]
    fn values_are_written_in_the_units_of_the_attributes() {
        for (name, key, value, path, written) in [
            ("mq-deadline", "queue.deadline.fifo-batch", "4", "queue/iosched/fifo_batch", "4"),
            (
                "mq-deadline",
                "queue.deadline.read-expire",
                "50ms",
                "queue/iosched/read_expire",
                "50",
            ),
            (
                "mq-deadline",
                "queue.deadline.front-merges",
                "false",
                "queue/iosched/front_merges",
                "0",
            ),
            ("kyber", "queue.kyber.read-latency", "2ms", "queue/iosched/read_lat_nsec", "2000000"),
            ("bfq", "queue.bfq.slice-idle", "2ms", "queue/iosched/slice_idle_us", "2000"),
            (
                "adios",
                "queue.adios.lat-target-read",
                "1ms",
                "queue/iosched/lat_target_read",
                "1000000",
            ),
            ("bfq", "queue.bfq.timeout-sync", "60ms", "queue/iosched/timeout_sync", "60"),
            ("none", "queue.nomerges", "2", "queue/nomerges", "2"),
            ("none", "queue.wbt-latency", "5ms", "queue/wbt_lat_usec", "5000"),
            ("none", "queue.wbt-latency", "off", "queue/wbt_lat_usec", "0"),
            ("none", "queue.wbt-latency", "default", "queue/wbt_lat_usec", "-1"),
            ("none", "queue.max-request", "512KiB", "queue/max_sectors_kb", "512"),
            ("none", "queue.read-ahead", "1MiB", "queue/read_ahead_kb", "1024"),
            ("none", "queue.timeout", "5s", "queue/io_timeout", "5000"),
            ("mq-deadline", "queue.sched-depth", "64", "queue/nr_requests", "64"),
        ] {
            let recipe = Recipe::of(&design(name, &[(key, value)]), None, &[key]);
            let path = format!("/sys/block/DEV/{path}");
            let found = recipe.settings.iter().find(|of| of.path == path);
            assert_eq!(found.map(|of| of.value.as_str()), Some(written), "{key}: {recipe:?}");
            assert_eq!(recipe.unset, [], "{key}");
        }
    }

    #[test]
    fn defaults_are_not_written_unless_they_are_asked_for() {
        let usual = Recipe::of(&design("mq-deadline", &[]), None, &[]);
        assert_eq!(usual.commands(), ["echo mq-deadline > /sys/block/DEV/queue/scheduler"]);
        assert_eq!(usual.notes, Vec::<String>::new());
        let asked = Recipe::of(&design("mq-deadline", &[]), None, &["queue.deadline.fifo-batch"]);
        assert_eq!(asked.commands()[1..], ["echo 16 > /sys/block/DEV/queue/iosched/fifo_batch"]);
    }

    /// `async_depth` moved from the scheduler to the queue in Linux 7.0; kyber had none before.
    #[test]
    fn the_limit_of_asynchronous_requests_has_two_places() {
        let key = "queue.async-depth";
        assert_eq!(
            commands("mq-deadline", key, "12")[1..],
            [
                "# Linux 7.0 and later:",
                "echo 12 > /sys/block/DEV/queue/async_depth",
                "# Linux up to 6.19:",
                "echo 12 > /sys/block/DEV/queue/iosched/async_depth",
            ]
        );
        assert_eq!(commands("kyber", key, "12").len(), 3);
    }

    #[test]
    fn what_no_attribute_sets_is_said() {
        for (key, value, why) in [
            ("queue.hw-queues", "4", "the driver decides"),
            ("queue.restart", "in-turn", "a choice in the code of a kernel"),
            ("queue.sched-depth", "64", "without a scheduler"),
        ] {
            let recipe = recipe("none", key, value);
            assert!(recipe.unset[0].why.starts_with(why), "{recipe:?}");
        }
        let depth = recipe("mq-deadline", "queue.sched-depth", "from-device-depth");
        assert_eq!(depth.unset[0].why, "the default of the kernel");
        let [note] = &recipe("none", "queue.restart", "in-turn").notes[..] else {
            panic!("no note")
        };
        assert!(note.contains("no setting of Linux 7.3 or 6.12"), "{note}");
        let cqe = Recipe::of(&design("cqe", &[]), None, &[]);
        assert_eq!(cqe.notes, ["The driver of the MMC host decides how it works: nothing to set."]);
    }

    /// mq-deadline counts deadlines in milliseconds; a queue has 4 to 2048 tags of its scheduler.
    #[test]
    fn a_value_that_linux_changes_has_a_note() {
        for (key, value, line, written) in [
            ("queue.deadline.read-expire", "1500us", "# rounded up to the unit of the file:", "2"),
            ("queue.sched-depth", "2", "# the least that Linux takes:", "4"),
            ("queue.sched-depth", "4096", "# the most that Linux takes:", "2048"),
        ] {
            let lines = Recipe::of(&design("mq-deadline", &[(key, value)]), None, &[]).commands();
            assert_eq!(lines[1], line);
            assert!(lines[2].starts_with(&format!("echo {written} > ")), "{lines:?}");
        }
    }

    #[test]
    fn an_older_design_says_that_settings_are_not_all_of_it() {
        for (name, is_all) in [
            ("mq-none", true),
            ("mq-deadline-6.12", true),
            ("mq-kyber", true),
            ("mq-bfq-6.12", true),
            ("legacy-deadline", false),
            ("mq-kyber-2017", false),
            ("mq-deadline-listed", false),
        ] {
            let recipe = Recipe::of(&design(name, &[]), None, &[]);
            assert_eq!(recipe.notes.is_empty(), is_all, "{name}: {recipe:?}");
        }
    }

    #[test]
    fn a_rule_names_the_disks_of_the_device() {
        assert_eq!(
            rules_of("hdd-7200"),
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", \\\n  \
             KERNEL==\"sd[a-z]*\", ATTR{queue/rotational}==\"1\", \\\n  \
             ATTR{queue/scheduler}=\"mq-deadline\", \\\n  ATTR{queue/iosched/fifo_batch}=\"4\"\n"
        );
        for (device, class) in [
            ("sata-ssd", "KERNEL==\"sd[a-z]*\", ATTR{queue/rotational}==\"0\""),
            ("ufs-3", "KERNEL==\"sd[a-z]*\", ATTR{queue/rotational}==\"0\""),
            ("srp", "KERNEL==\"sd[a-z]*\""),
            ("sd-a1", "KERNEL==\"mmcblk[0-9]|mmcblk[0-9][0-9]\", ATTRS{type}==\"SD\""),
            ("emmc-hs400", "KERNEL==\"mmcblk[0-9]|mmcblk[0-9][0-9]\", ATTRS{type}==\"MMC\""),
            ("nvme-tlc", "KERNEL==\"nvme[0-9]*n[0-9]*\""),
            ("cloud-gp3", "KERNEL==\"nvme[0-9]*n[0-9]*\""),
            ("virtio-3dxpoint", "KERNEL==\"vd[a-z]*\""),
            ("null", "KERNEL==\"nullb[0-9]*\""),
        ] {
            assert!(rules_of(device).contains(class), "{device}: {}", rules_of(device));
        }
        assert_eq!(rules_of("pmem-dram"), "");
    }

    #[test]
    fn keys_of_a_device_that_the_kernel_can_change_are_set() {
        let depth = on_device("sata-ssd", "ahci.depth", "1");
        assert!(depth.rules.contains("ATTR{device/queue_depth}=\"1\""), "{depth:?}");
        let expire = on_device("hdd-7200", "cpu.dirty-expire", "2s");
        assert_eq!(expire.commands()[1], "echo 200 > /proc/sys/vm/dirty_expire_centisecs");
        assert!(!expire.rules.contains("dirty"), "a rule writes to disks: {expire:?}");
        // The class of disks would be that of the value.
        let rotational = on_device("hdd-7200", "limits.rotational", "false");
        assert_eq!((rotational.settings.len(), rotational.rules.as_str()), (2, ""));
        // 128 KiB of the device and 64 KiB of the design.
        let both = [("queue.max-request", "64KiB")];
        let of = [Override { key: "limits.max-sectors".into(), value: "256".into() }];
        let device = Device::lookup_with("sata-ssd", &of).expect("a device");
        let keys = ["queue.max-request", "limits.max-sectors"];
        let lines = Recipe::of(&design("none", &both), Some(&device), &keys).commands();
        assert_eq!(lines[1..], ["echo 64 > /sys/block/DEV/queue/max_sectors_kb"]);
        let access = on_device("emmc-hs400", "card.read.access", "900us");
        assert_eq!(access.unset[0].why, "a property of the device or the machine: nothing to set");
    }
}
