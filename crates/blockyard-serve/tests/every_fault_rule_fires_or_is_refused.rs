//! Every fault rule either fires on every kind of disk or is refused at the start with its name and
//! the disk's.
//!
//! A rule for flushes once never fired on a memory disk: the disk has no cache, so flushes ended
//! above its layers.

mod nbd;

use blockyard::bio::Op;
use blockyard::device::null::NullDevice;
use blockyard::driver::Device;
use blockyard::layer::fault::{Action, FaultRule, When};
use blockyard::limits::Limits;
use blockyard::status::Status;
use blockyard::unit::QueueId;
use blockyard_btt::Container;
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use blockyard_serve::{Behaviour, Config, DiskConfig, Layers, Server, Source};
use nbd::{Client, EIO, FLUSH, READ, Running, TRIM, ZEROES, disk, file, memory, path};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const OPS: [Op; 8] = [
    Op::Read,
    Op::Write,
    Op::Flush,
    Op::Discard,
    Op::WriteZeroes,
    Op::SecureErase,
    Op::DriverIn,
    Op::DriverOut,
];

/// A model that completes requests in no time.
#[derive(Debug)]
struct Instantly(Limits);

impl Behaviour for Instantly {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn depth(&self) -> u16 {
        4
    }

    fn device(&self) -> Box<dyn Device> {
        Box::new(NullDevice::new(1, 4))
    }
}

/// Returns `disk` behind a model with or without discards and a cache.
fn like(disk: DiskConfig, discards: bool, cache: bool) -> DiskConfig {
    let mut limits = Limits { write_cache: cache, ..Limits::new(MIB / 512) };
    if discards {
        (limits.max_discard_sectors, limits.max_write_zeroes_sectors) = (2048, 2048);
    }
    let layers = Layers { model: Some(Arc::new(Instantly(limits))), ..Layers::default() };
    DiskConfig { layers, ..disk }
}

fn btt(durability: Durability) -> (PathBuf, Source) {
    let path = path("btt");
    let new = NewImage { bytes: 32 * MIB, sector_bytes: 512, container: Container::Namespace };
    drop(Image::create(&path, &new, &ImageOptions::default()).unwrap());
    (path.clone(), Source::Btt { path, durability, container: None, force: false })
}

/// Returns `disk` with one rule, which does `then` to the requests that match `when`.
fn with_rule(disk: &DiskConfig, when: When, then: Action) -> DiskConfig {
    let faults = vec![FaultRule { name: "rule of the test".to_owned(), when, then }];
    let layers = Layers { faults: Some(faults), ..disk.layers.clone() };
    DiskConfig { name: "its disk".to_owned(), layers, ..disk.clone() }
}

/// Sends a request of `op`, and returns its error.
fn send(client: &mut Client, op: Op) -> u32 {
    match op {
        Op::Read => client.call(READ, 4096, 4096),
        Op::Write => client.write(4096, &[1; 4096]),
        Op::Flush => client.call(FLUSH, 0, 0),
        Op::Discard => client.call(TRIM, 4096, 4096),
        Op::WriteZeroes => client.call(ZEROES, 4096, 4096),
        Op::SecureErase | Op::DriverIn | Op::DriverOut => {
            unreachable!("clients cannot send {op:?}")
        }
    }
}

/// Asserts that `disk` with the rule is refused in a message that names both.
fn assert_refused(what: &str, disk: &DiskConfig, when: When, then: Action) {
    let config = Config::new(vec![with_rule(disk, when, then)], Vec::new());
    let error = Server::start(&config).err().unwrap_or_else(|| panic!("{what}: not refused"));
    let error = error.to_string();
    assert!(error.contains("\"rule of the test\"") && error.contains("\"its disk\""), "{error}");
}

fn assert_fires(what: &str, disk: &DiskConfig, op: Op, when: When) {
    let rule = with_rule(disk, when, Action::Error(Status::IoError));
    let running = Running::start(DiskConfig { name: String::new(), ..rule }, |_| ());
    let mut client = running.client();
    assert_eq!(send(&mut client, op), EIO, "{what}: {op:?}");
    client.bye();
    let counts = running.server.faults();
    running.server.stopper().stop();
    // The rule may fail the server's final flush.
    drop(running.server.join());
    let count = counts[0].1.read()[0].1;
    assert!(count.fired >= 1, "{what}: {op:?}: {count:?}");
}

fn remove(paths: &[&Path]) {
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn every_rule_fires_or_is_refused_on_every_kind_of_disk() {
    let raw = file(MIB);
    let (fast, in_process) = btt(Durability::Process);
    let (safe, synchronous) = btt(Durability::Disk);
    fn source(buffered: bool, raw: &Path) -> Source {
        Source::File { path: raw.to_owned(), buffered }
    }
    let disks = [
        ("memory", memory(MIB), true),
        ("null", disk(Source::Null { bytes: MIB }), true),
        ("file", disk(source(true, &raw)), true),
        ("direct file", disk(source(false, &raw)), true),
        ("btt", disk(in_process), true),
        ("btt --sync", disk(synchronous), true),
        ("memory --as", like(memory(MIB), true, false), true),
        ("memory --as, with a cache", like(memory(MIB), true, true), true),
        ("memory --as, without discards", like(memory(MIB), false, true), false),
        ("file --as", like(disk(source(true, &raw)), true, false), true),
    ];
    for (what, disk, knows_discards) in &disks {
        for op in OPS {
            let when = When { ops: vec![op], ..When::default() };
            let is_sent = match op {
                Op::Read | Op::Write | Op::Flush => true,
                Op::Discard | Op::WriteZeroes => *knows_discards,
                Op::SecureErase | Op::DriverIn | Op::DriverOut => false,
            };
            match is_sent {
                true => assert_fires(what, disk, op, when),
                false => assert_refused(what, disk, when, Action::Error(Status::IoError)),
            }
        }
        assert_fires(what, disk, Op::Flush, When::default());
    }
    remove(&[&raw, &fast, &safe]);
}

#[test]
fn rules_that_cannot_fire_are_refused() {
    let error = Action::Error(Status::IoError);
    let disk = memory(MIB);
    fn of(op: Op) -> When {
        When { ops: vec![op], ..When::default() }
    }
    assert_refused("lost flush", &disk, of(Op::Flush), Action::LoseWrite);
    let sectors = Some(MIB / 512..MIB / 512 + 8);
    assert_refused("beyond the end", &disk, When { sectors, ..When::default() }, error);
    assert_refused(
        "sectors of a flush",
        &disk,
        When { sectors: Some(0..8), ..of(Op::Flush) },
        error,
    );
    assert_refused("disk 1", &disk, When { queue: Some(QueueId(1)), ..When::default() }, error);
    let read_only = DiskConfig { read_only: true, ..disk };
    assert_refused("write to a read-only disk", &read_only, of(Op::Write), error);
    assert_fires("read-only disk", &read_only, Op::Flush, of(Op::Flush));
}
