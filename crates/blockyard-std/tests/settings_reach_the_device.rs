//! Calls as a device gets them: operation, range, FUA, priority; neighbours of a batch as one
//! request; and what is refused before it gets anything.

mod common;

use blockyard::elevator::Elevator;
use blockyard::elevator::checked::Checked;
use blockyard::elevator::deadline::Deadline;
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, KyberTunables, Policies, SchedDepth};
use blockyard::request_queue::QueueConfig;
use blockyard::tag::TagSetConfig;
use blockyard_std::{Disk, Error, IoPrio, Op, OpenError, Options, PrioClass, Tools};
use common::{Got, Scratch, Shared, Slow, quick, slow};
use core::sync::atomic::{AtomicBool, Ordering};

fn disk(options: Options) -> (Disk, Shared) {
    let wires = quick();
    let limits = Limits {
        write_cache: true,
        fua: true,
        max_discard_sectors: 64,
        max_write_zeroes_sectors: 64,
        ..Limits::new(1 << 10)
    };
    (slow(options, limits, &wires), wires)
}

fn got(wires: &Shared) -> Vec<Got> {
    std::mem::take(&mut wires.lock().unwrap().got)
}

fn plain(op: Op, sector: u64, sectors: u32) -> Got {
    Got { op, sector, sectors, is_fua: false, prio: IoPrio::default() }
}

/// An elevator of the embedder's own serves a disk; here one that checks every call of the queue.
#[test]
fn a_disk_has_an_elevator_of_its_own() {
    static MADE: AtomicBool = AtomicBool::new(false);
    fn make(config: &QueueConfig, tags: &TagSetConfig) -> Box<dyn Elevator + Send> {
        MADE.store(true, Ordering::Relaxed);
        let requests = config.requests(tags);
        Box::new(Checked::new(Box::new(Deadline::new(requests, Default::default())), requests))
    }
    let disk = Options::new().elevator(make).memory(1 << 20).unwrap();
    disk.write_at(&[7; 8192], 4096).unwrap();
    let mut bytes = [0; 512];
    disk.read_at(&mut bytes, 4096 + 512).unwrap();
    assert_eq!((bytes, MADE.load(Ordering::Relaxed)), ([7; 512], true));
    disk.shutdown().unwrap().ok().unwrap();
}

/// Policies of which no queue can be made let a disk in memory panic, and the thread of any other.
/// With no room in the elevator, every call waited for ever; on a disk in memory, it succeeded and
/// did nothing.
#[test]
fn policies_that_no_queue_can_have_are_an_error() {
    let full = Policies { sched_depth: SchedDepth::Fixed(0), ..Policies::mq_deadline() };
    // The memory for so many would not be there: the process aborted.
    let vast = Policies { sched_depth: SchedDepth::Fixed(u32::MAX), ..Policies::mq_deadline() };
    let scratch = Scratch::new("policies", 4096);
    for (policies, why) in [
        (policies_with(ElevatorKind::Other), "an elevator of your own is missing"),
        (full, "the elevator may hold no request"),
        (vast, "the elevator may hold more than 10240 requests"),
        kyber_without(|tunables| tunables.read_depth = 0),
        kyber_without(|tunables| tunables.write_depth = 0),
        kyber_without(|tunables| tunables.discard_depth = 0),
        kyber_without(|tunables| tunables.other_depth = 0),
    ] {
        let options = Options::new().policies(policies);
        let opened = [
            options.memory(4096),
            options.file(&scratch.0),
            options.driver(Limits::new(8), |_: Tools| -> Slow {
                unreachable!("the options are refused")
            }),
        ];
        for opened in opened {
            let error = opened.expect_err("a disk with policies that no queue can have");
            assert!(matches!(error, OpenError::Policies(said) if said == why), "{error}");
        }
    }
    let unused = Policies { sched_depth: SchedDepth::Fixed(0), ..Policies::NONE };
    Options::new().policies(unused).memory(4096).unwrap().write_at(&[1], 0).unwrap();
}

fn policies_with(elevator: ElevatorKind) -> Policies {
    Policies { elevator, ..Policies::NONE }
}

fn kyber_without(change: fn(&mut KyberTunables)) -> (Policies, &'static str) {
    let mut tunables = KyberTunables::default();
    change(&mut tunables);
    (policies_with(ElevatorKind::Kyber(tunables)), "a depth of kyber is 0")
}

#[test]
fn a_device_that_panics_while_it_is_made_is_an_error() {
    let error = Options::new()
        .driver(Limits::new(1 << 10), |_: Tools| -> Slow { panic!("the test wants it") })
        .unwrap_err();
    assert!(error.to_string().contains("panicked while it started"), "{error}");
}

#[test]
fn each_call_is_a_request_with_the_settings_of_its_handle() {
    let (disk, wires) = disk(Options::new());
    let prio = IoPrio { class: PrioClass::RealTime, level: 3 };
    disk.write_at(&[1; 512], 512).unwrap();
    disk.with_fua().write_at(&[1; 512], 1024).unwrap();
    disk.with_priority(prio).with_fua().read_at(&mut [0; 1024], 0).unwrap();
    disk.flush().unwrap();
    disk.discard(0, 4096).unwrap();
    disk.write_zeroes(4096, 4096).unwrap();
    let expected = [
        plain(Op::Write, 1, 1),
        Got { is_fua: true, ..plain(Op::Write, 2, 1) },
        Got { prio, ..plain(Op::Read, 0, 2) },
        plain(Op::Flush, 0, 0),
        plain(Op::Discard, 0, 8),
        plain(Op::WriteZeroes, 8, 8),
    ];
    assert_eq!(got(&wires), expected);
}

#[test]
fn neighbours_of_a_batch_are_one_request() {
    let (disk, wires) = disk(Options::new());
    let mut batch = disk.batch();
    let writes = [0_u8, 1, 2].map(|at| batch.write(vec![at; 512], u64::from(at) * 512));
    let last = batch.write(vec![9; 512], 5120);
    batch.submit();
    for write in writes {
        assert_eq!(write.wait().0, Ok(()));
    }
    assert_eq!(last.wait().0, Ok(()));
    assert_eq!(got(&wires), [plain(Op::Write, 0, 3), plain(Op::Write, 10, 1)]);
    let mut read = [0; 1536];
    disk.read_at(&mut read, 0).unwrap();
    assert!(read.chunks(512).zip(0..).all(|(sector, at)| sector == [at; 512]));
}

#[test]
fn a_request_that_cannot_be_is_refused_at_once() {
    let (disk, wires) = disk(Options::new());
    let end = disk.size_bytes();
    assert_eq!((end, disk.block_bytes()), (1 << 19, 512));
    assert_eq!(disk.read_at(&mut [0; 1024], end - 512), Err(Error::OutOfRange));
    assert_eq!(disk.discard(u64::MAX, 512), Err(Error::OutOfRange));
    assert_eq!(disk.write_at(&[0; 100], 0), Err(Error::Misaligned));
    assert_eq!(disk.write(vec![4; 512], 1).wait(), (Err(Error::Misaligned), vec![4; 512]));
    assert!(got(&wires).is_empty());
    let scratch = Scratch::new("read-only", 4096);
    let disk = Options::new().read_only().file(&scratch.0).unwrap();
    assert_eq!(disk.write_zeroes(0, 4096), Err(Error::ReadOnly));
    assert_eq!(disk.write_at(&[0; 1], 0), Err(Error::ReadOnly));
    disk.read_at(&mut [0; 1], 0).unwrap();
}

#[test]
fn an_empty_range_is_no_error() {
    let disk = Disk::memory(4096).unwrap();
    disk.read_at(&mut [], 4096).unwrap();
    disk.write_at(&[], 0).unwrap();
    disk.discard(0, 0).unwrap();
    assert_eq!(disk.shutdown().unwrap().ok(), Ok(()));
}

/// A request of memory ends within its call, so its deadline stays behind with nothing to time out.
#[test]
fn a_disk_in_memory_takes_a_timeout_and_needs_none() {
    let timeout = core::time::Duration::from_secs(5);
    let disk = Options::new().timeout(timeout).memory(1 << 20).unwrap();
    let mut read = [0; 512];
    disk.write_at(&[7; 512], 512).unwrap();
    disk.read_at(&mut read, 512).unwrap();
    assert_eq!(read, [7; 512]);
}
