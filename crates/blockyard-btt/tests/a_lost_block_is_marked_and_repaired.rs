//! A medium loses a block, until it is zeroed. Writing it succeeds, but does not repair it. Or it
//! fails a fence.

mod intercepted_memory;

use blockyard_btt::memory::Memory;
use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, Container, Format, IoError, LaneChoice, MediaError, OpenOptions, Policy, Uuid,
};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use intercepted_memory::{Call, Intercepted};
use std::sync::{Arc, mpsc};

const BYTES: u64 = 16 << 20;
/// The map of a 16 MiB arena, from the format's table of images.
const MAP: u64 = 16_625_664;
const BAD: Result<(), IoError> = Err(IoError::Media(MediaError::Bad));

/// The lost block, and the calls so far.
#[derive(Default)]
struct Medium {
    lost: Cell<Option<u64>>,
    calls: RefCell<Vec<Call>>,
}

impl Medium {
    fn call(&self, call: Call) -> Result<(), MediaError> {
        match call {
            Call::Read(at) if self.lost.get() == Some(at) => return Err(MediaError::Bad),
            Call::Zero(at) if self.lost.get() == Some(at) => self.lost.set(None),
            _ => {}
        }
        self.calls.borrow_mut().push(call);
        Ok(())
    }

    /// Loses the block that was written last.
    fn lose(&self) -> u64 {
        let calls = self.calls.take();
        let mut writes = calls.iter().filter_map(|call| match call {
            Call::Write(at) => Some(*at),
            _ => None,
        });
        let block = writes.next_back().expect("a sector was written");
        self.lost.set(Some(block));
        block
    }
}

fn format() -> Format {
    let container = Container::LabelledNamespace;
    let uuid = Uuid([1; 16]);
    let parent_uuid = Uuid::NIL;
    Format { container, sector_bytes: 512, uuid, parent_uuid, blank: true }
}

#[test]
fn the_mark_of_a_lost_sector_is_durable_when_its_reader_learns_of_it() {
    for policy in [Policy::DEFAULT, Policy::LINUX] {
        let medium = Medium::default();
        let memory = Intercepted { memory: Ram::new(BYTES), intercept: |call| medium.call(call) };
        let btt = Btt::create(memory, &format(), policy).expect("a new BTT");
        btt.write(0, &[5; 512]).expect("successful write");
        medium.lose();
        let mut to = [0; 512];
        assert_eq!(btt.read(0, &mut to), BAD, "{policy:?}");
        let calls = medium.calls.take();
        let entry = MAP..MAP + 4;
        let marked = calls
            .iter()
            .position(|call| matches!(call, Call::WriteBack(bytes) if *bytes == entry))
            .expect("the mark is written back");
        let fenced = calls.iter().rposition(|call| matches!(call, Call::Fence));
        assert!(fenced.is_some_and(|fenced| fenced > marked), "{policy:?}: a fence follows");
        medium.lost.set(None);
        assert_eq!(btt.read(0, &mut to), Err(IoError::Lost), "{policy:?}: lost for ever");
    }
}

fn is_change(call: &Call) -> bool {
    matches!(call, Call::Write(_) | Call::WriteBack(_) | Call::Zero(_) | Call::Fence)
}

/// The second look succeeds: another processor's write, or a cable.
#[test]
fn a_sector_that_can_be_read_after_all_is_not_marked() {
    let medium = Medium::default();
    let memory = Intercepted {
        memory: Ram::new(BYTES),
        intercept: |call| match medium.call(call) {
            Err(error) => {
                medium.lost.set(None);
                Err(error)
            }
            done => done,
        },
    };
    let btt = Btt::create(memory, &format(), Policy::DEFAULT).expect("a new BTT");
    btt.write(0, &[5; 512]).expect("successful write");
    medium.lose();
    let mut to = [0; 512];
    for _ in 0..2 {
        assert_eq!((btt.read(0, &mut to), to), (Ok(()), [5; 512]));
        assert!(!medium.calls.take().iter().any(is_change), "nothing is to be made durable");
    }
}

#[test]
fn a_lost_sector_of_a_btt_that_is_not_written_gets_no_mark() {
    let medium = Medium::default();
    let ram = Ram::new(BYTES);
    let btt = Btt::create(watched(&ram, &medium), &format(), Policy::DEFAULT).expect("a new BTT");
    btt.write(0, &[5; 512]).expect("successful write");
    medium.lose();
    let options = OpenOptions { read_only: true, ..OpenOptions::new(format().container) };
    let btt = Btt::open(watched(&ram, &medium), &options).expect("the same BTT");
    for _ in 0..2 {
        assert_eq!(btt.read(0, &mut [0; 512]), BAD);
        assert!(!medium.calls.take().iter().any(is_change), "nothing is written");
    }
}

fn watched(ram: &Ram, medium: &Medium) -> impl Memory {
    Intercepted { memory: ram, intercept: |call| medium.call(call) }
}

/// A mark is durable before the block is zeroed, and the zeroes are before the mark is replaced.
#[test]
fn zeroing_a_lost_sector_repairs_its_block_between_fences() {
    let medium = Medium::default();
    let memory = Intercepted { memory: Ram::new(BYTES), intercept: |call| medium.call(call) };
    let btt = Btt::create(memory, &format(), Policy::DEFAULT).expect("a new BTT");
    btt.write(1, &[5; 512]).expect("successful write");
    let block = medium.lose();
    medium.lost.set(None);
    btt.set_error(1).expect("marking in ram");
    let entry = MAP + 4..MAP + 8;
    let written_back = format!("{entry:?}");
    assert!(take_changes(&medium).eq([&written_back, "fence"]));
    btt.set_zero(1, 1).expect("zeroing in ram");
    let zeroed = format!("zero {block}");
    assert!(take_changes(&medium).eq([
        &written_back,
        "fence",
        &zeroed,
        "fence",
        &written_back,
        "fence"
    ]));
    // Many map entries are written back 256 at a time.
    btt.set_zero(0, 300).expect("zeroing in ram");
    let ranges = [MAP..MAP + 1024, MAP + 1024..MAP + 1200].map(|bytes| format!("{bytes:?}"));
    assert!(take_changes(&medium).eq([&ranges[0], &ranges[1], "fence"]));
}

fn take_changes(medium: &Medium) -> impl Iterator<Item = String> {
    let mut calls = medium.calls.take();
    calls.retain(is_change);
    calls.into_iter().map(|call| match call {
        Call::WriteBack(bytes) => format!("{bytes:?}"),
        Call::Zero(at) => format!("zero {at}"),
        Call::Fence => "fence".to_owned(),
        _ => "write".to_owned(),
    })
}

/// The block of a lost sector becomes free when the sector is written again. It is zeroed before it
/// has data again, also if the BTT was opened meanwhile.
#[test]
fn a_lost_block_is_repaired_before_it_is_used_again() {
    for opened_again in [false, true] {
        let medium = Medium::default();
        let ram = Ram::new(BYTES);
        // The only set has all 256 lanes, and takes them in turn.
        let policy = Policy { lanes: LaneChoice::Own { sets: 1 }, ..Policy::DEFAULT };
        let mut btt = Btt::create(watched(&ram, &medium), &format(), policy).expect("a new BTT");
        btt.write(0, &[5; 512]).expect("successful write");
        let block = medium.lose();
        let mut to = [0; 512];
        assert_eq!(btt.read(0, &mut to), BAD);
        btt.write(0, &[6; 512]).expect("write of a lost sector");
        if opened_again {
            let options = OpenOptions::new(Container::LabelledNamespace);
            btt = Btt::open(watched(&ram, &medium), &OpenOptions { policy, ..options })
                .expect("the same BTT");
        }
        let mut worker = btt.worker();
        for lba in 1..=600 {
            worker.write(lba, &[7; 512]).expect("successful write");
            assert_eq!(worker.read(lba, &mut to), Ok(()), "sector {lba}, {opened_again}");
        }
        let calls = medium.calls.take();
        let zeroed = calls.iter().filter(|call| matches!(call, Call::Zero(at) if *at == block));
        let written = calls.iter().filter(|call| matches!(call, Call::Write(at) if *at == block));
        assert_eq!((zeroed.count(), written.count()), (1, 1), "repaired once, and used");
    }
}

/// A write whose fence fails leaves the old sector or the new one.
#[test]
fn a_sector_can_be_read_after_a_fence_of_its_write_failed() {
    let mut failures = 0;
    for nth in 1.. {
        let fences_left = Cell::new(u32::MAX);
        let memory = Intercepted {
            memory: Ram::new(BYTES),
            intercept: |call| {
                let Call::Fence = call else { return Ok(()) };
                let left = fences_left.get().wrapping_sub(1);
                fences_left.set(left);
                if left == 0 { Err(MediaError::Bad) } else { Ok(()) }
            },
        };
        let btt = Btt::create(memory, &format(), Policy::DEFAULT).expect("a new BTT");
        btt.write(0, &[5; 512]).expect("successful write");
        fences_left.set(nth);
        let written = btt.write(0, &[6; 512]);
        let mut to = [0; 512];
        assert_eq!(btt.read(0, &mut to), Ok(()), "fence {nth}");
        if written.is_ok() {
            assert_eq!(to, [6; 512]);
            break;
        }
        failures += 1;
        assert_eq!(written, BAD, "fence {nth}");
        assert!(to == [5; 512] || to == [6; 512], "fence {nth}: the sector is whole");
        assert!(btt.write(0, &[7; 512]).is_err(), "fence {nth}: no write until the BTT is opened");
    }
    assert!(failures >= 2, "a write waits for its data and for its log: {failures}");
}

/// A write whose fence fails releases its sector: another writer of the sector does not wait for
/// ever.
#[test]
fn a_writer_learns_that_the_fence_of_another_failed() {
    for nth in 1..=2 {
        let fences_left = Arc::new(AtomicU32::new(0));
        let (start, started) = mpsc::channel();
        let left = Arc::clone(&fences_left);
        let memory = Intercepted {
            memory: Ram::new(BYTES),
            intercept: move |call| match call {
                Call::Fence if left.fetch_sub(1, Ordering::Relaxed) == 1 => {
                    start.send(()).expect("another writer");
                    // The other writer comes to the sector, which is locked.
                    std::thread::sleep(Duration::from_millis(50));
                    Err(MediaError::Bad)
                }
                _ => Ok(()),
            },
        };
        let btt = Arc::new(Btt::create(memory, &format(), Policy::DEFAULT).expect("a new BTT"));
        btt.write(0, &[5; 512]).expect("successful write");
        fences_left.store(nth, Ordering::Relaxed);
        let (tell, told) = mpsc::channel();
        let other = Arc::clone(&btt);
        std::thread::spawn(move || {
            started.recv().expect("the fence that fails");
            tell.send(other.write(0, &[7; 512])).expect("the test waits");
        });
        assert_eq!(btt.write(0, &[6; 512]), BAD, "fence {nth}");
        let written = told.recv_timeout(Duration::from_secs(20)).expect("the other writer ends");
        assert!(written.is_err(), "fence {nth}: no write until the BTT is opened");
    }
}
