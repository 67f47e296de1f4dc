//! Compares a BTT with a plain array of sectors: random calls from one thread and from several,
//! through every design, container and sector size. From time to time the BTT is opened again.

mod intercepted_memory;

use blockyard::prng::Prng;
use blockyard_btt::check::{Options, check};
use blockyard_btt::flog::FlogEntry;
use blockyard_btt::info_block::InfoBlock;
use blockyard_btt::layout::Layout;
use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, Container, Format, IoError, LaneChoice, MediaError, Memory, OpenOptions, Policy,
    ReadTracking, Uuid, Worker,
};
use intercepted_memory::{Call, Intercepted};
use std::collections::BTreeMap;

const BYTES: u64 = 16 << 20;

fn format(container: Container, sector_bytes: u32) -> Format {
    let parent_uuid = if container == Container::Pool { Uuid([9; 16]) } else { Uuid::NIL };
    Format { container, sector_bytes, uuid: Uuid([1; 16]), parent_uuid, blank: true }
}

fn policies() -> Vec<Policy> {
    let tracking = [
        ReadTracking::Versions,
        ReadTracking::Indexed,
        ReadTracking::Scan,
        ReadTracking::ScanPadded,
    ];
    let lanes = [
        LaneChoice::Own { sets: 2 },
        LaneChoice::Own { sets: 16 },
        LaneChoice::Own { sets: 256 },
        LaneChoice::PerCpu { cpus: 4 },
        LaneChoice::Mutex,
        LaneChoice::Counter,
    ];
    tracking
        .iter()
        .flat_map(|&tracking| lanes.iter().map(move |&lanes| Policy { tracking, lanes }))
        .collect()
}

/// Returns the data of a sector, which name their write.
fn sector(mark: u64, bytes: usize) -> Vec<u8> {
    mark.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// The expected value of a sector.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Expected {
    Mark(u64),
    Lost,
}

impl Expected {
    /// Returns the result of a read of a sector of `len` bytes.
    fn bytes(self, len: usize) -> Result<Vec<u8>, IoError> {
        match self {
            Self::Lost => Err(IoError::Lost),
            Self::Mark(mark) => Ok(sector(mark, len)),
        }
    }
}

fn read<B, M>(worker: &mut Worker<B, M>, lba: u64, bytes: usize) -> Result<Vec<u8>, IoError>
where
    B: core::ops::Deref<Target = Btt<M>>,
    M: Memory,
{
    let mut to = vec![0xee; bytes];
    worker.read(lba, &mut to).map(|()| to)
}

#[test]
fn one_thread_reads_its_own_writes() {
    for (n, policy) in policies().into_iter().enumerate() {
        for (container, bytes) in [
            (Container::Namespace, 4104),
            (Container::LabelledNamespace, 520),
            (Container::Pool, 1000),
        ] {
            let mut prng = Prng::new(n as u64);
            let ram = Ram::new(BYTES + container.first_arena());
            let format = format(container, bytes);
            let mut btt = Btt::create(&ram, &format, policy).expect("a new BTT");
            let bytes = bytes as usize;
            let mut expected: BTreeMap<u64, Expected> = BTreeMap::new();
            for round in 0..6 {
                operate(&btt, bytes, round, &mut prng, &mut expected);
                drop(btt);
                let read_only = round == 4;
                let options = OpenOptions { policy, read_only, ..OpenOptions::new(container) };
                btt = Btt::open(&ram, &options).expect("an undamaged BTT");
                for (&lba, &expected) in &expected {
                    assert_eq!(read(&mut btt.worker(), lba, bytes), expected.bytes(bytes));
                }
                if read_only {
                    assert_eq!(btt.write(0, &sector(0, bytes)), Err(IoError::ReadOnly));
                    assert_eq!(btt.set_zero(0, 1), Err(IoError::ReadOnly));
                    assert_eq!(btt.set_error(0), Err(IoError::ReadOnly));
                    drop(btt);
                    btt = Btt::open(&ram, &OpenOptions { policy, ..OpenOptions::new(container) })
                        .expect("an undamaged BTT");
                }
            }
        }
    }
}

/// Writes, zeroes, marks and reads 60 ranges, of few different sectors, so that blocks are freed
/// and used again.
fn operate(
    btt: &Btt<&Ram>,
    bytes: usize,
    round: u64,
    prng: &mut Prng,
    expected: &mut BTreeMap<u64, Expected>,
) {
    let sectors = btt.sectors();
    let mut worker = btt.worker();
    for step in 0..60_u64 {
        let mark = round << 32 | step << 8 | 1;
        let lba = prng.below(40) + if prng.below(2) == 0 { 0 } else { sectors - 40 };
        let count = (1 + prng.below(20)).min(sectors - lba);
        let all = lba..lba + count;
        match prng.below(6) {
            0 | 1 => {
                let data: Vec<u8> =
                    all.clone().flat_map(|lba| sector(mark << 16 | lba, bytes)).collect();
                worker.write(lba, &data).expect("successful write");
                expected.extend(all.map(|lba| (lba, Expected::Mark(mark << 16 | lba))));
            }
            2 => {
                // Some sectors twice, and some that share a word.
                let count = 1 + prng.below(150);
                let places: Vec<_> = (0..count)
                    .map(|nth| (prng.below(8) * 256 + prng.below(20), mark << 16 | nth))
                    .collect();
                let data: Vec<_> =
                    places.iter().map(|&(lba, mark)| (lba, sector(mark, bytes))).collect();
                let many: Vec<_> = data.iter().map(|(lba, s)| (*lba, &**s)).collect();
                worker.write_many(&many).expect("successful write");
                expected.extend(places.into_iter().map(|(lba, mark)| (lba, Expected::Mark(mark))));
            }
            3 => {
                worker.set_zero(lba, count).expect("successful zeroing");
                expected.extend(all.map(|lba| (lba, Expected::Mark(0))));
            }
            4 => {
                btt.set_error(lba).expect("successful marking as lost");
                expected.insert(lba, Expected::Lost);
            }
            _ => {
                for lba in all {
                    let right = expected.get(&lba).unwrap_or(&Expected::Mark(0)).bytes(bytes);
                    assert_eq!(
                        read(&mut worker, lba, bytes),
                        right,
                        "sector {lba} of {bytes} bytes"
                    );
                }
            }
        }
    }
}

/// Several threads write and read a few sectors. Each sector reads as one whole write to it
/// ([same-version-same-block], [reader-or-writer-sees], [fence-orders-threads]).
#[test]
fn threads_never_read_a_mix_of_two_writes() {
    const SECTORS: u64 = 5;
    for policy in policies() {
        let ram = Ram::new(BYTES);
        let btt = Btt::create(&ram, &format(Container::LabelledNamespace, 512), policy)
            .expect("a new BTT");
        // More threads than sets to have to themselves.
        std::thread::scope(|scope| {
            for thread in 0..14_u64 {
                let btt = &btt;
                scope.spawn(move || {
                    let mut worker = btt.worker();
                    let mut prng = Prng::new(thread);
                    let mut to = vec![0; 512];
                    for step in 1..400_u64 {
                        let lba = prng.below(SECTORS);
                        let mark = lba << 48 | thread << 32 | step;
                        if prng.below(4) == 0 {
                            worker.write(lba, &sector(mark, 512)).expect("successful write");
                        } else if prng.below(3) == 0 {
                            let all: Vec<_> = (0..SECTORS)
                                .chain(0..SECTORS)
                                .map(|nth| (nth, sector(nth << 48 | thread << 32 | step, 512)))
                                .collect();
                            let many: Vec<_> = all.iter().map(|(lba, s)| (*lba, &**s)).collect();
                            worker.write_many(&many).expect("successful write");
                        } else {
                            worker.read(lba, &mut to).expect("successful read");
                            let mark = u64::from_le_bytes(to[..8].try_into().expect("eight bytes"));
                            assert_eq!(to, sector(mark, 512), "{policy:?}: a mix");
                            assert!(mark == 0 || mark >> 48 == lba, "{policy:?}: another sector's");
                        }
                    }
                });
            }
        });
        drop(btt);
        let again = OpenOptions::new(Container::LabelledNamespace);
        Btt::open(&ram, &again).expect("BTT whose free blocks are distinct");
    }
}

/// Returns an arena with fewer lanes than any real one, which is accepted because it is consistent.
fn few_lanes(lanes: u32) -> Ram {
    let ram = Ram::new(BYTES);
    let layout = Layout::new(BYTES, 512, 512, lanes).expect("layout of a small arena");
    let uuid = Uuid([1; 16]);
    let parent_uuid = Uuid::NIL;
    let version = Container::LabelledNamespace.version();
    let info = InfoBlock { uuid, parent_uuid, error: false, version, layout, nextoff: 0 };
    put(&ram, 0, &info.to_bytes());
    put(&ram, layout.infooff, &info.to_bytes());
    for lane in 0..lanes {
        let [first, second] = FlogEntry::first(lane, layout.external_nlba + lane).words();
        let at = layout.flogoff + u64::from(lane) * 64;
        put(&ram, at, &first.to_le_bytes());
        put(&ram, at + 8, &second.to_le_bytes());
    }
    ram
}

fn put(ram: &Ram, at: u64, bytes: &[u8]) {
    ram.write(at, bytes).expect("write to ram")
}

/// More threads than lanes, through every design. Each thread writes sectors of its own and one
/// common sector, zeroes one of its own, and makes a new worker. Nothing is lost, no block has two
/// owners, and all threads end ([lane-set-one-user]).
#[test]
fn more_threads_than_lanes_write_correctly() {
    const TURNS: u64 = 30;
    for policy in policies() {
        for (lanes, threads) in [(1, 4), (2, 7), (5, 12)] {
            let ram = few_lanes(lanes);
            let options = OpenOptions { policy, ..OpenOptions::new(Container::LabelledNamespace) };
            let btt = Btt::open(&ram, &options).expect("BTT that was just made");
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let btt = &btt;
                    scope.spawn(move || {
                        let mut worker = btt.worker();
                        let own = 1 + thread * 4;
                        for turn in 1..=TURNS {
                            let mark = thread << 32 | turn;
                            let two: Vec<u8> =
                                [sector(mark, 512), sector(mark | 1 << 16, 512)].concat();
                            worker.write(own, &two).expect("successful write");
                            worker.write(0, &sector(mark, 512)).expect("successful write");
                            worker.write(own + 2, &sector(mark, 512)).expect("successful write");
                            worker.set_zero(own + 2, 1).expect("successful zeroing");
                            let mut to = vec![0; 512 * 3];
                            worker.read(own, &mut to).expect("successful read");
                            assert_eq!(to, [two, sector(0, 512)].concat(), "{policy:?}");
                            if turn == TURNS / 2 {
                                drop(worker);
                                worker = btt.worker();
                            }
                        }
                    });
                }
            });
            drop(btt);
            let options = Options::new(Container::LabelledNamespace);
            let (report, _) = check(&ram, &options, &mut |_| {}).expect("read from ram");
            assert_eq!(report.findings(), [], "{policy:?}, {lanes} lanes");
            let btt = Btt::open(&ram, &OpenOptions::new(Container::LabelledNamespace));
            let btt = btt.expect("an undamaged BTT");
            let mut worker = btt.worker();
            let last = read(&mut worker, 0, 512).expect("successful read");
            assert!((0..threads).any(|thread| last == sector(thread << 32 | TURNS, 512)));
            for thread in 0..threads {
                let own = 1 + thread * 4;
                let mark = thread << 32 | TURNS;
                assert_eq!(read(&mut worker, own, 512), Ok(sector(mark, 512)));
                assert_eq!(read(&mut worker, own + 1, 512), Ok(sector(mark | 1 << 16, 512)));
                assert_eq!(read(&mut worker, own + 2, 512), Ok(sector(0, 512)));
            }
        }
    }
}

/// More threads than a formatted BTT has lanes, and each has its worker before any of them writes.
#[test]
fn three_hundred_threads_write_correctly() {
    const THREADS: u16 = 300;
    for policy in [Policy::DEFAULT, Policy::LINUX] {
        let ram = Ram::new(BYTES);
        let btt = Btt::create(&ram, &format(Container::LabelledNamespace, 512), policy)
            .expect("a new BTT");
        let ready = std::sync::Barrier::new(THREADS.into());
        std::thread::scope(|scope| {
            for thread in (0..THREADS).map(u64::from) {
                let btt = &btt;
                let ready = &ready;
                scope.spawn(move || {
                    let mut worker = btt.worker();
                    ready.wait();
                    for turn in 1..=8 {
                        let data = sector(thread << 8 | turn, 512);
                        worker.write(thread, &data).expect("successful write");
                        assert_eq!(read(&mut worker, thread, 512), Ok(data));
                    }
                });
            }
        });
        let mut worker = btt.worker();
        for thread in (0..THREADS).map(u64::from) {
            assert_eq!(read(&mut worker, thread, 512), Ok(sector(thread << 8 | 8, 512)));
        }
    }
}

/// Of four lanes, three have free blocks that stay bad. A batch of two sectors does not use the
/// lane of its first sector again ([freed-block-waits-for-fence]).
#[test]
fn a_batch_that_meets_bad_blocks_uses_no_lane_twice() {
    // The first free block of a 16 MiB arena, that of lane 0, from the format's table of images.
    const FIRST_FREE: u64 = 4096 + 32_202 * 512;
    let worn = FIRST_FREE + 512..FIRST_FREE + 4 * 512;
    let memory = Intercepted {
        memory: Ram::new(BYTES),
        intercept: |call| match call {
            Call::Write(at) | Call::Zero(at) if worn.contains(&at) => Err(MediaError::Bad),
            _ => Ok(()),
        },
    };
    let lanes = LaneChoice::Own { sets: 64 };
    let policy = Policy { lanes, ..Policy::DEFAULT };
    let format = format(Container::LabelledNamespace, 512);
    let btt = Btt::create(memory, &format, policy).expect("a new BTT");
    let mut worker = btt.worker();
    let [a, b] = [1, 2].map(|mark| sector(mark, 512));
    let two = worker.write_many(&[(0, &a), (1, &b)]);
    assert_eq!(two, Err(IoError::Media(MediaError::Bad)), "one lane for two sectors");
    for (lba, data) in [(0, &a), (1, &b), (0, &b)] {
        worker.write(lba, data).expect("write of one sector with one lane");
        assert_eq!(read(&mut worker, lba, 512).as_ref(), Ok(data));
    }
    assert_eq!(read(&mut worker, 1, 512), Ok(b));
}

#[test]
fn sectors_beyond_the_end_are_refused() {
    for policy in policies() {
        let ram = Ram::new(BYTES);
        let format = format(Container::LabelledNamespace, 512);
        let btt = Btt::create(&ram, &format, policy).expect("a new BTT");
        let mut worker = btt.worker();
        let mut to = [0; 1024];
        // The number of sectors of a 16 MiB arena, from the format's table of images.
        for (lba, bytes, expected) in [
            (32_201, 512, Ok(())),
            (32_202, 512, Err(IoError::OutOfRange)),
            (32_200, 1024, Ok(())),
            (32_201, 1024, Err(IoError::OutOfRange)),
            (u64::MAX, 512, Err(IoError::OutOfRange)),
        ] {
            assert_eq!(worker.write(lba, &to[..bytes]), expected, "{lba}, {policy:?}");
            assert_eq!(worker.read(lba, &mut to[..bytes]), expected, "{lba}, {policy:?}");
            assert_eq!(btt.set_zero(lba, bytes as u64 / 512), expected, "{lba}, {policy:?}");
        }
    }
}

/// A read of several sectors returns those before a bad one.
#[test]
fn sectors_before_a_bad_map_entry_are_read() {
    for policy in policies() {
        let ram = Ram::new(BYTES);
        let format = format(Container::LabelledNamespace, 512);
        let btt = Btt::create(&ram, &format, policy).expect("a new BTT");
        btt.write(0, &[5; 512 * 8]).expect("successful write");
        // The position of the map in a 16 MiB arena, from the format's table of images.
        ram.store(16_625_664 + 3 * 4, 0xffff_ffff).expect("write to ram");
        let mut to = [0xee; 512 * 8];
        assert_eq!(btt.read(0, &mut to), Err(IoError::Map));
        assert!(to[..512 * 3].iter().all(|&byte| byte == 5), "{policy:?}");
        assert_eq!(btt.write(3, &[6; 512]), Err(IoError::Map), "the old block is unknown");
    }
}
