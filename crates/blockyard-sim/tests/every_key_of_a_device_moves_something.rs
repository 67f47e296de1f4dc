//! Every key of a device, set to another value: it changes a figure of a small job, or a list names
//! the key and the reason.
//!
//! A key without effect is worse than none: whoever sets it believes that it is modelled. A device
//! of each family is tried, or several. Each plays scenes: a job, a design, and other figures of
//! the device without which the key would decide nothing.
//!
//! The other values are the ends of the key's range. A number without a range gets twice and half
//! its value, and small parts of it; a word the other words of its key; a flag the other flag. A
//! value that the device refuses is no other value. A job that becomes impossible counts.

#![allow(clippy::float_arithmetic, reason = "other values are parts of numbers as written")]

use blockyard_devices::profile::{Design, Device, Override, ProfileError, builtin};
use blockyard_fio::job::{JobFile, NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Simulation};
use std::collections::{BTreeMap, BTreeSet};

/// Options of all jobs.
const ALL: &str = "--name=j --direct=1 --size=1g";

/// A design of `mq-none` with a polled queue.
const POLLED: &str = "base = \"mq-none\"\n[queue]\npoll-queues = 1\n";

/// Figures of the device, a design and a job under which keys are tried.
#[derive(Clone, Copy)]
struct Scene {
    with: &'static [(&'static str, &'static str)],
    design: &'static str,
    job: &'static str,
}

const fn scene(design: &'static str, job: &'static str) -> Scene {
    Scene { with: &[], design, job }
}

const fn scene_with(
    with: &'static [(&'static str, &'static str)],
    design: &'static str,
    job: &'static str,
) -> Scene {
    Scene { with, design, job }
}

/// Jobs that many keys move, the most telling first.
const USUAL: &[Scene] = &[
    scene("mq-none", "--ioengine=libaio --iodepth=16 --rw=randrw --bs=4k --number_ios=48"),
    scene("mq-deadline", "--ioengine=libaio --iodepth=4 --rw=rw --bs=2m --number_ios=8"),
    scene("mq-none", "--rw=randwrite --bs=4k --fsync=4 --number_ios=24"),
    scene("mq-none", "--rw=write --bs=64k --sync=1 --number_ios=16"),
    scene("mq-none", "--direct=0 --rw=write --bs=16k --fdatasync=16 --size=1m"),
    scene("mq-none", "--ioengine=libaio --iodepth=8 --rw=randtrim --bs=8m --number_ios=24"),
    scene(
        "legacy-deadline",
        "--ioengine=libaio --iodepth=8 --rw=write --bs=4k --numjobs=4 --number_ios=32",
    ),
    scene(
        "mq-deadline",
        "--ioengine=libaio --iodepth=64 --rw=randrw --bs=4k --numjobs=16 --number_ios=64",
    ),
    scene("mq-deadline", "--ioengine=libaio --iodepth=64 --rw=write --bs=4k --number_ios=192"),
    scene("mq-deadline-2017", "--ioengine=libaio --iodepth=64 --rw=write --bs=4k --number_ios=64"),
    scene(POLLED, "--ioengine=io_uring --hipri --iodepth=4 --rw=randread --bs=4k --number_ios=16"),
    scene_with(
        &[("cpu.idle-exit", "3us"), ("cpu.deep-exit", "100us")],
        "mq-none",
        "--rw=randread --bs=4k --thinktime=1ms --number_ios=4",
    ),
    scene_with(
        &[("cpu.idle-exit", "3us")],
        "mq-none",
        "--rw=randread --bs=4k --thinktime=50us --number_ios=4",
    ),
];

/// Scenes of disks.
const DISK: &[Scene] = &[
    scene("mq-none", "--rw=randread --bs=4k --number_ios=256"),
    scene(
        "mq-none",
        "--ioengine=libaio --iodepth=32 --rw=randread --bs=4k --size=100% --number_ios=512",
    ),
    scene("mq-none", "--rw=read --bs=64k --thinktime=20ms --thinktime_blocks=32 --number_ios=96"),
    scene(
        "mq-none",
        "--ioengine=libaio --iodepth=32 --rw=randwrite --bs=64k --size=100% --number_ios=512",
    ),
    scene("mq-none", "--rw=randrw --bs=4k --thinktime=30ms --size=100% --number_ios=32"),
    // Two readers in sequence, and reads beside writes that the cache holds.
    scene(
        "mq-none",
        "--filename=x --rw=read --bs=64k --numjobs=2 --size=50g --offset_increment=100g \
         --number_ios=64",
    ),
    scene(
        "mq-none",
        "--ioengine=libaio --iodepth=32 --rw=randrw --rwmixread=20 --bs=64k --size=100% \
         --number_ios=512",
    ),
    // A reader at random beside a stream of 64 MiB.
    scene(
        "mq-none",
        "--ioengine=libaio --iodepth=4 --rw=read --bs=128k --number_ios=512 \
         --name=k --direct=1 --size=1g --ioengine=psync --rw=randread --bs=4k --number_ios=16",
    ),
];

/// Scenes of a volume: longer than its credit lasts, where it has a burst to spend it on.
const VOLUME: &[Scene] = &[
    scene_with(
        &[("volume.iops.burst", "6000")],
        "mq-none",
        "--ioengine=libaio --iodepth=32 --rw=randread --bs=4k --number_ios=2000",
    ),
    scene_with(
        &[("volume.bytes.burst", "\"250MiB\"")],
        "mq-none",
        "--ioengine=libaio --iodepth=32 --rw=read --bs=256k --number_ios=600",
    ),
    SMALL,
];

/// Scenes of flash: reads in sequence, steady state, and a cache of single-level cells that fills.
const FLASH: &[Scene] = &[
    scene_with(
        &[("flash.read-ahead", "\"256KiB\"")],
        "mq-none",
        "--rw=read --bs=4k --numjobs=4 --number_ios=64",
    ),
    scene_with(
        &[("flash.order", "\"reads-first\"")],
        "mq-none",
        "--ioengine=libaio --iodepth=64 --rw=randrw --bs=16k --numjobs=4 --number_ios=256",
    ),
    scene_with(
        &[("flash.order", "\"shares\"")],
        "mq-none",
        "--ioengine=libaio --iodepth=64 --rw=randrw --bs=16k --numjobs=4 --number_ios=256",
    ),
    scene_with(
        &[
            ("flash.simulated", "\"2GiB\""),
            ("flash.spare", "15"),
            ("flash.fill", "90"),
            ("flash.overwritten", "100"),
        ],
        "mq-none",
        "--ioengine=libaio --iodepth=64 --rw=randwrite --bs=4k --number_ios=20000 --size=100%",
    ),
    scene_with(
        &[("flash.simulated", "\"2GiB\""), ("flash.spare", "15"), ("flash.slc", "\"64MiB\"")],
        "mq-none",
        "--ioengine=libaio --iodepth=8 --rw=write --bs=128k --thinktime=200ms \
         --thinktime_blocks=512 --number_ios=1024",
    ),
    scene("mq-none", "--ioengine=libaio --iodepth=32 --rw=write --bs=512k --number_ios=64"),
    scene_with(
        &[("flash.buffer", "\"64MiB\"")],
        "mq-none",
        "--ioengine=libaio --iodepth=256 --rw=write --bs=128k --number_ios=512 \
         --name=k --direct=1 --size=1g --ioengine=psync --rw=randread --bs=4k --number_ios=64",
    ),
    SMALL,
];

/// A design of `mmc-double-buffer` that packs.
const PACKS: &str = "base = \"mmc-double-buffer\"\n[host]\npacked = \"write\"\n";

/// A design of `mmc-blkmq` that looks at DAT0 for the end of busy.
const LOOKS: &str = "base = \"mmc-blkmq\"\n[host]\nbusy-detect = \"dat0-callback\"\n";

/// Scenes of eMMC devices: background operations, also such that must be interrupted, and no cache.
const EMMC: &[Scene] = &[
    scene_with(
        &[("card.background.level", "\"1MiB\"")],
        "mmc-blkmq",
        "--ioengine=libaio --iodepth=4 --rw=write --bs=64k --number_ios=128",
    ),
    scene_with(
        &[("card.background.level", "\"1MiB\""), ("card.background.work-per-kib", "200ms")],
        "mmc-blkmq",
        "--ioengine=libaio --iodepth=4 --rw=write --bs=64k --number_ios=128",
    ),
    scene_with(&[("card.cache", "\"0B\"")], "mmc-blkmq", "--rw=randwrite --bs=4k --number_ios=32"),
];

/// Scenes of cards, by the designs of their hosts.
const CARD: &[Scene] = &[
    scene("mmc-blkmq", "--ioengine=libaio --iodepth=16 --rw=randrw --bs=4k --number_ios=48"),
    scene("mmc-blkmq", "--ioengine=libaio --iodepth=4 --rw=rw --bs=2m --number_ios=8"),
    scene("mmc-blkmq", "--rw=randwrite --bs=4k --fsync=4 --number_ios=24"),
    scene("mmc-blkmq", "--rw=write --bs=64k --sync=1 --number_ios=16"),
    scene("mmc-blkmq", "--direct=0 --rw=write --bs=16k --fdatasync=16 --size=1m"),
    scene("mmc-blkmq", "--ioengine=libaio --iodepth=8 --rw=randtrim --bs=8m --number_ios=24"),
    scene("mmc-blkmq", "--ioengine=libaio --iodepth=64 --rw=write --bs=4k --number_ios=192"),
    scene(
        "mmc-blkmq",
        "--ioengine=libaio --iodepth=64 --rw=randrw --bs=4k --numjobs=4 --number_ios=64",
    ),
    scene("mmc-blkmq", "--rw=read --bs=16k --numjobs=3 --number_ios=64"),
    scene("mmc-blkmq", "--rw=write --bs=16k --numjobs=3 --number_ios=64"),
    scene("mmc-blkmq-4.16", "--ioengine=libaio --iodepth=4 --rw=randrw --bs=4k --number_ios=64"),
    scene("hsq", "--rw=randrw --bs=4k --numjobs=4 --number_ios=64"),
    scene("cqe", "--ioengine=libaio --iodepth=32 --rw=randrw --bs=4k --number_ios=128"),
    scene("cqe", "--rw=randwrite --bs=4k --fsync=4 --number_ios=24"),
    scene("mmc-serial", "--rw=write --bs=32k --number_ios=32"),
    scene("mmc-pio", "--rw=rw --bs=64k --number_ios=32"),
    scene(PACKS, "--ioengine=libaio --iodepth=32 --rw=randwrite --bs=4k --number_ios=256"),
    scene(LOOKS, "--rw=write --bs=64k --number_ios=16"),
    scene_with(
        &[("card.ahead.per-kib", "60us")],
        "mmc-blkmq",
        "--rw=read --bs=2m --thinktime=200ms --number_ios=8",
    ),
    scene("mmc-blkmq", "--rw=write --bs=16k --numjobs=6 --number_ios=32"),
    scene_with(
        &[("host.bounce-buffers", "true")],
        "mmc-serial-bounce",
        "--ioengine=libaio --iodepth=8 --rw=rw --bs=32k --number_ios=32",
    ),
    scene_with(
        // No stall of two seconds, after which the host gives up.
        &[("card.stall.one-in-pages", "20"), ("card.stall.length", "100ms")],
        "mmc-blkmq",
        "--ioengine=libaio --iodepth=4 --rw=write --bs=64k --number_ios=64",
    ),
    scene_with(
        &[("cpu.idle-exit", "100us"), ("cpu.deep-exit", "50us")],
        "mmc-blkmq",
        "--rw=randread --bs=4k --thinktime=60ms --number_ios=8",
    ),
];

/// Jobs in persistent memory.
const COPIES: &str = "--rw=randrw --bs=4k --numjobs=8 --number_ios=64";

/// Scenes of persistent memory: raw, and with the designs of a BTT.
const PMEM: &[Scene] = &[
    scene("pmem-raw", COPIES),
    scene("btt", COPIES),
    scene("btt-linux", COPIES),
    scene("btt-linux-2015", COPIES),
    scene("btt-linux-2015-nt", COPIES),
    scene("btt-linux-2015-aligned-nt", COPIES),
    scene("btt-linux-2015-counter", COPIES),
    scene("btt-linux-padded", COPIES),
    scene("btt-indexed", COPIES),
    scene("pmem-raw", "--rw=randwrite --bs=512 --numjobs=16 --number_ios=64"),
    scene("btt", "--direct=0 --rw=write --bs=16k --fdatasync=16 --size=1m"),
    scene_with(&[("pmem.mapping", "\"write-combining\"")], "btt", COPIES),
    scene_with(&[("pmem.mapping", "\"write-combining\"")], "btt-linux-2015-nt", COPIES),
    scene_with(
        &[("cpu.idle-exit", "3us"), ("cpu.deep-exit", "100us")],
        "pmem-raw",
        "--rw=randread --bs=4k --thinktime=1ms --number_ios=4",
    ),
];

/// Blocks of less than a page, which a virtual boundary keeps apart.
const SMALL: Scene =
    scene("mq-deadline", "--ioengine=libaio --iodepth=64 --rw=write --bs=512 --number_ios=256");

/// A job that fills its hardware queue, so that a worker continues.
const FULL: &str = "--ioengine=libaio --iodepth=64 --rw=randread --bs=4k --number_ios=256";

/// Interrupts that wait for others.
const HELD_BACK: Scene = scene_with(
    &[("nvme.coalescing.entries", "4"), ("nvme.coalescing.time", "20us")],
    "mq-none",
    "--ioengine=libaio --iodepth=32 --rw=randread --bs=4k --number_ios=256",
);

/// A key with its value and the ends of its range, as the profile writes them.
struct Key {
    path: String,
    value: String,
    ends: Vec<String>,
}

/// Returns the parts of `list` between commas that are in no brackets.
fn parts(list: &str) -> Vec<String> {
    let mut depth = 0;
    let mut found = vec![String::new()];
    for letter in list.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if letter == ',' && depth == 0 {
            found.push(String::new());
        } else {
            found.last_mut().expect("a part").push(letter);
        }
    }
    found.into_iter().map(|part| part.trim().to_owned()).collect()
}

/// Reads `KEY = VALUE`, where the value may be a figure with a range and an origin.
fn key_of(table: &str, line: &str) -> Option<Key> {
    let (name, value) = line.split_once(" = ")?;
    let path = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
    let Some(figure) = value.strip_prefix("{ value = ") else {
        let (value, _) = value.split_once(" #").unwrap_or((value, ""));
        return Some(Key { path, value: value.to_owned(), ends: Vec::new() });
    };
    let (figure, _) = figure.split_once(", origin = ")?;
    let (value, range) = figure.split_once(", range = [").unwrap_or((figure, ""));
    let ends = if range.is_empty() { Vec::new() } else { parts(range.strip_suffix(']')?) };
    Some(Key { path, value: value.to_owned(), ends })
}

/// Returns the keys of a device, and those of its processors and its base that it does not set.
fn keys_of(name: &str) -> Vec<Key> {
    let mut keys = BTreeMap::new();
    let mut next = vec![name.to_owned()];
    while let Some(name) = next.pop() {
        let mut table = "";
        for line in builtin(&name).expect("a built-in profile").text.lines() {
            if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                table = head;
            }
            let Some(key) = (!line.starts_with('#')).then(|| key_of(table, line)).flatten() else {
                continue;
            };
            match key.path.as_str() {
                "title" => {}
                "base" | "processors" => next.push(key.value.trim_matches('"').to_owned()),
                _ => {
                    keys.entry(key.path.clone()).or_insert(key);
                }
            }
        }
    }
    keys.into_values().collect()
}

/// Returns other values for a key of the device `name`.
fn other_values(name: &str, key: &Key) -> Vec<String> {
    let value = key.value.as_str();
    let text = value.trim_matches('"');
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let number = text[..text.len() - unit.len()].parse::<f64>().ok();
    let mut found: Vec<String> = match (value, number) {
        _ if !key.ends.is_empty() => key.ends.clone(),
        ("true", _) => vec!["false".to_owned()],
        ("false", _) => vec!["true".to_owned()],
        (_, Some(0.0)) => vec![format!("1{unit}"), format!("100{unit}")],
        (_, Some(number)) => {
            let half = if unit.is_empty() { (number / 2.0).floor() } else { number / 2.0 };
            let small =
                [100.0, 1000.0, 1e6].map(|part| format!("{}{unit}", (number / part).ceil()));
            let mut others = vec![format!("{}{unit}", 2.0 * number), format!("{half}{unit}")];
            others.extend(small);
            others
        }
        _ => {
            let none = Override { key: key.path.clone(), value: "\"none-of-them\"".to_owned() };
            let error = Device::lookup_with(name, &[none]).err().map(|error| error.to_string());
            let listed = error.as_deref().and_then(|error| error.split_once("(one of "));
            let words = listed.map_or("", |(_, words)| words.trim_end_matches(')'));
            words.split(", ").map(str::to_owned).collect()
        }
    };
    // The jobs end below 1 GiB, and their requests at 2 MiB.
    match key.path.as_str() {
        "limits.capacity" => found.push("512MiB".to_owned()),
        "limits.max-hw-sectors" => found.push("64".to_owned()),
        // Sectors have whole units of 128 bytes.
        "pmem.unit" => found.push("\"4KiB\"".to_owned()),
        // No job writes a GiB.
        "flash.slc" => found.push("\"16MiB\"".to_owned()),
        _ => {}
    }
    found.retain(|other| other.trim_matches('"') != text && !other.is_empty());
    found
}

fn override_of(key: &str, value: &str) -> Override {
    Override { key: key.to_owned(), value: value.to_owned() }
}

impl Scene {
    /// Returns the device `name` of the scene with another value, unless it refuses one of them.
    fn device(&self, name: &str, other: Option<(&str, &str)>) -> Result<Device, ProfileError> {
        let own = self.with.iter().filter(|(key, _)| other.is_none_or(|(of, _)| of != *key));
        let mut overrides: Vec<_> = own.map(|(key, value)| override_of(key, value)).collect();
        overrides.extend(other.map(|(key, value)| override_of(key, value)));
        Device::lookup_with(name, &overrides)
    }

    fn design(&self) -> Design {
        let is_text = self.design.contains('\n');
        let design =
            if is_text { Design::parse("x", self.design) } else { Design::lookup(self.design) };
        design.unwrap_or_else(|error| panic!("{}: {error}", self.design))
    }

    fn jobs(&self) -> JobFile {
        let args = format!("{ALL} {}", self.job);
        parse_args(args.split_whitespace(), &NoSource)
            .unwrap_or_else(|error| panic!("{}: {error}", self.job))
    }
}

/// Returns the figures of a run, but for the number of the simulator's events.
fn figures(jobs: &JobFile, device: &Device, design: &Design) -> Result<String, String> {
    let simulation = Simulation::under(jobs, device, design, Conditions::new(1));
    let report = simulation.and_then(Simulation::finish).map_err(|error| error.to_string())?;
    let mut totals = report.totals;
    totals.events = 0;
    Ok(format!("{:?}", (report.span, &report.jobs, totals)))
}

/// A scene that a device can play, and its figures there.
struct Played<'a> {
    scene: &'a Scene,
    design: Design,
    jobs: JobFile,
    figures: String,
}

/// Whether `key` changes the figures of a scene, or what can be done in it.
fn moves(name: &str, key: &Key, others: &[String], played: &[Played<'_>]) -> bool {
    played.iter().any(|at| {
        others.iter().any(|other| {
            let device = at.scene.device(name, Some((&key.path, other)));
            device.is_ok_and(|of| figures(&at.jobs, &of, &at.design).as_ref() != Ok(&at.figures))
        })
    })
}

/// Returns the keys of a device that move nothing in the usual scenes and its own.
fn without_effect(name: &str, own: &[Scene]) -> BTreeSet<String> {
    let mut played = Vec::new();
    for scene in own.iter().chain(USUAL) {
        let device = scene.device(name, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let design = scene.design();
        let jobs = scene.jobs();
        match figures(&jobs, &device, &design) {
            Ok(figures) => played.push(Played { scene, design, jobs, figures }),
            Err(error) => println!("{name}: {}: {error}", scene.job),
        }
    }
    let unmoved = keys_of(name).into_iter().filter(|key| {
        let mut others = other_values(name, key);
        others.retain(|other| {
            Device::lookup_with(name, &[override_of(&key.path, other)]).is_ok()
                || own.iter().any(|at| at.device(name, Some((&key.path, other))).is_ok())
        });
        !others.is_empty() && !moves(name, key, &others, &played)
    });
    unmoved.map(|key| key.path).collect()
}

/// Asserts that exactly the keys of `inert`, each with its reason, move nothing.
fn assert_inert(name: &str, own: &[Scene], inert: &[(&str, &str)]) {
    let listed: BTreeSet<_> = inert.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(without_effect(name, own), listed, "{name}");
}

#[test]
fn null() {
    let timer =
        scene_with(&[("null.completion", "\"timer\"")], "mq-none", "--rw=read --number_ios=8");
    let queues = scene_with(
        &[("null.submit-queues", "4"), ("null.completion", "\"timer\"")],
        "mq-none",
        "--ioengine=libaio --iodepth=64 --rw=randread --bs=4k --numjobs=16 --number_ios=256",
    );
    assert_inert("null", &[timer, queues], &[]);
}

#[test]
fn hard_disk() {
    assert_inert("hdd-7200", DISK, &[]);
}

/// The bridge passes on one command at a time.
#[test]
fn hard_disk_on_usb() {
    let inert = [
        ("platters.age-max", "one command has no order"),
        ("platters.estimate.age-credit", "one command has no order"),
        ("platters.estimate.window", "one command has no order"),
        ("platters.stream-max", "one command has no order"),
        ("usb.both-ways", "one command goes one way"),
    ];
    assert_inert("usb-hdd", DISK, &inert);
}

#[test]
fn volume() {
    assert_inert("cloud-gp3", VOLUME, &[]);
}

#[test]
fn scsi() {
    assert_inert("lpfc", &[], &[]);
}

#[test]
fn virtio() {
    assert_inert("virtio-page-cache", &[], &[]);
    let full = scene_with(&[("virtio.depth", "1")], "mq-deadline-2017", FULL);
    assert_inert("virtio-3dxpoint", &[SMALL, full], &[]);
}

#[test]
fn crosspoint() {
    let full = scene_with(&[("nvme.depth", "8")], "mq-deadline-2017", FULL);
    assert_inert("nvme-3dxpoint", &[SMALL, HELD_BACK, full], &[]);
}

#[test]
fn flash() {
    let full = scene_with(&[("nvme.depth", "8")], "mq-deadline-2017", FULL);
    let own: Vec<_> = FLASH.iter().copied().chain([HELD_BACK, full]).collect();
    assert_inert("nvme-tlc-dramless", &own, &[]);
}

#[test]
fn flash_of_a_phone() {
    assert_inert("ufs-3", FLASH, &[]);
}

/// Keys of any card that move nothing in a job.
const OF_CARDS: &[(&str, &str)] = &[
    ("card.control.partition", "no job changes the partition"),
    ("card.erase.erase", "Linux discards or trims; whole groups are erased for secure erase alone"),
    ("card.erase.sanitize", "nothing sanitizes in a job"),
    ("cpu.deep-residency", "the processor has one state"),
    ("cpu.poll", "the host of a card has no polled queue"),
    ("host.reset", "only an error, or a card that no interrupt stops, leads to a reset"),
    ("host.retune", "only a fault lets the sampling point drift"),
];

#[test]
fn emmc() {
    let own: Vec<_> = CARD.iter().chain(EMMC).copied().collect();
    let inert = [("card.erase.trim", "a card with discard is not trimmed")];
    assert_inert("emmc-hs400", &own, &[OF_CARDS, &inert].concat());
}

#[test]
fn emmc_that_packs() {
    let own: Vec<_> = CARD.iter().chain(EMMC).copied().collect();
    let inert = [
        ("card.control.switch", "switches happen around a queue, and a flush is no such switch"),
        ("card.erase.trim", "a card with discard is not trimmed"),
        ("card.queue-depth", "only `cqe` uses it, which the device as it is cannot play"),
        ("host.queue-engine-depth", "the card has no queue"),
        ("host.queue-engine-direct", "the card has no queue"),
        ("host.queue-engine-poll", "the card has no queue"),
    ];
    assert_inert("emmc-45", &own, &[OF_CARDS, &inert].concat());
}

#[test]
fn sd() {
    let inert = [
        ("card.control.interrupt", "an SD card is not interrupted"),
        ("card.control.switch", "eMMC's CMD6 alone takes this time"),
        ("card.erase.discard", "the device does not discard"),
        ("card.erase.group", "the device does not discard"),
        ("card.erase.trim", "the device does not discard"),
        ("card.write.flush", "the card has no cache"),
        ("host.queue-engine-depth", "the card has no queue"),
    ];
    assert_inert("sd-noname", CARD, &[OF_CARDS, &inert].concat());
}

/// A processor copies, so requests, schedulers and interrupts cost nothing. All these are 0.
#[test]
fn persistent_memory() {
    let inert = [
        ("cpu.elevator-lock", "there is no scheduler"),
        ("cpu.insert", "nothing is staged"),
        ("cpu.interrupt", "there is no interrupt"),
        ("cpu.lock-complete", "there is no lock of a queue"),
        ("cpu.lock-dispatch", "there is no lock of a queue"),
        ("cpu.lock-lines", "there is no lock of a queue"),
        ("cpu.lock-merge", "there is no lock of a queue"),
        ("cpu.lock-submit", "there is no lock of a queue"),
        ("cpu.poll", "nothing is polled"),
        ("cpu.run-delay", "no worker runs a queue"),
        ("cpu.wakeup", "the submitter copies, so nobody sleeps"),
    ];
    assert_inert("pmem-dram", PMEM, &inert);
}
