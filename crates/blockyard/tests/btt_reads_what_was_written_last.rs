//! A BTT beside a plain array of sectors: random calls from one thread and from several, through every
//! design, container and sector size, opened again now and then.

use blockyard::btt::ram::Ram;
use blockyard::btt::{
    Btt, Container, Format, IoError, LaneChoice, OpenOptions, Policy, ReadTracking, Uuid, Worker,
};
use blockyard::prng::Prng;
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
        LaneChoice::Own { sets: 16 },
        LaneChoice::Own { sets: 256 },
        LaneChoice::Mutex,
        LaneChoice::Counter,
    ];
    tracking
        .iter()
        .flat_map(|&tracking| lanes.iter().map(move |&lanes| Policy { tracking, lanes }))
        .collect()
}

/// A sector that says which write it is.
fn sector(mark: u64, bytes: usize) -> Vec<u8> {
    mark.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

/// What a sector is expected to read as.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Expected {
    Mark(u64),
    Lost,
}

fn read<B, M>(worker: &mut Worker<B, M>, lba: u64, bytes: usize) -> Result<Vec<u8>, IoError>
where
    B: core::ops::Deref<Target = Btt<M>>,
    M: blockyard::btt::Memory,
{
    let mut to = vec![0xee; bytes];
    worker.read(lba, &mut to).map(|()| to)
}

#[test]
fn one_thread_reads_what_it_wrote() {
    for (n, policy) in policies().into_iter().enumerate() {
        for (container, bytes) in [
            (Container::Namespace, 4104),
            (Container::LabelledNamespace, 520),
            (Container::Pool, 1000),
        ] {
            let mut prng = Prng::new(n as u64);
            let ram = Ram::new(BYTES + container.first_arena());
            let format = format(container, bytes);
            let mut btt = Btt::create(&ram, &format, policy).expect("it can be made");
            let bytes = bytes as usize;
            let sectors = btt.sectors();
            let mut expected: BTreeMap<u64, Expected> = BTreeMap::new();
            for round in 0..6 {
                let mut worker = btt.worker();
                for step in 0..60_u64 {
                    let mark = round << 32 | step << 8 | 1;
                    // A few places often, so that blocks come and go.
                    let lba = prng.below(40) + if prng.below(2) == 0 { 0 } else { sectors - 40 };
                    let count = (1 + prng.below(20)).min(sectors - lba);
                    let all = lba..lba + count;
                    match prng.below(6) {
                        0 | 1 => {
                            let data: Vec<u8> = all
                                .clone()
                                .flat_map(|lba| sector(mark << 16 | lba, bytes))
                                .collect();
                            worker.write(lba, &data).expect("it is written");
                            expected.extend(all.map(|lba| (lba, Expected::Mark(mark << 16 | lba))));
                        }
                        2 => {
                            let data = sector(mark, bytes);
                            let there = prng.below(sectors);
                            let many = [(there, &*data), (lba, &*data), (there, &*data)];
                            worker.write_many(&many).expect("it is written");
                            expected.insert(lba, Expected::Mark(mark));
                            expected.insert(there, Expected::Mark(mark));
                        }
                        3 => {
                            worker.set_zero(lba, count).expect("it is zeroed");
                            expected.extend(all.map(|lba| (lba, Expected::Mark(0))));
                        }
                        4 => {
                            btt.set_error(lba).expect("it is marked");
                            expected.insert(lba, Expected::Lost);
                        }
                        _ => {
                            for lba in all {
                                match expected.get(&lba).unwrap_or(&Expected::Mark(0)) {
                                    Expected::Lost => assert_eq!(
                                        read(&mut worker, lba, bytes),
                                        Err(IoError::Lost)
                                    ),
                                    Expected::Mark(mark) => assert_eq!(
                                        read(&mut worker, lba, bytes),
                                        Ok(sector(*mark, bytes)),
                                        "{policy:?} {container:?} sector {lba}"
                                    ),
                                }
                            }
                        }
                    }
                }
                drop(worker);
                drop(btt);
                let read_only = round == 4;
                btt = Btt::open(
                    &ram,
                    &OpenOptions { policy, read_only, ..OpenOptions::new(container) },
                )
                .expect("it is whole");
                for (&lba, &expected) in &expected {
                    let expected = match expected {
                        Expected::Lost => Err(IoError::Lost),
                        Expected::Mark(mark) => Ok(sector(mark, bytes)),
                    };
                    assert_eq!(read(&mut btt.worker(), lba, bytes), expected);
                }
                if read_only {
                    assert_eq!(btt.write(0, &sector(0, bytes)), Err(IoError::ReadOnly));
                    drop(btt);
                    btt = Btt::open(&ram, &OpenOptions { policy, ..OpenOptions::new(container) })
                        .expect("it is whole");
                }
            }
        }
    }
}

/// Several threads write and read a few sectors: each sector read is one that somebody wrote there, whole,
/// and no older than one that this thread has seen there.
#[test]
fn many_threads_never_read_a_mix() {
    const SECTORS: u64 = 5;
    for policy in policies() {
        let ram = Ram::new(BYTES);
        let btt = Btt::create(&ram, &format(Container::LabelledNamespace, 512), policy)
            .expect("it can be made");
        // More threads than sets that a thread can have to itself.
        std::thread::scope(|scope| {
            for thread in 0..14_u64 {
                let btt = &btt;
                scope.spawn(move || {
                    let mut worker = btt.worker();
                    let mut prng = Prng::new(thread);
                    let mut to = vec![0; 512];
                    for step in 1..400_u64 {
                        let lba = prng.below(SECTORS);
                        if prng.below(2) == 0 {
                            let mark = lba << 48 | thread << 32 | step;
                            worker.write(lba, &sector(mark, 512)).expect("it is written");
                        } else {
                            worker.read(lba, &mut to).expect("it is read");
                            let mark = u64::from_le_bytes(to[..8].try_into().expect("eight"));
                            assert_eq!(to, sector(mark, 512), "{policy:?}: a mix");
                            assert!(mark == 0 || mark >> 48 == lba, "{policy:?}: another's");
                        }
                    }
                });
            }
        });
        drop(btt);
        let again = OpenOptions::new(Container::LabelledNamespace);
        Btt::open(&ram, &again).expect("no block is free twice");
    }
}

/// Of several sectors, those before the one that cannot be read are read.
#[test]
fn sectors_before_a_bad_map_entry_are_read() {
    use blockyard::btt::Memory;
    for policy in policies() {
        let ram = Ram::new(BYTES);
        let format = format(Container::LabelledNamespace, 512);
        let btt = Btt::create(&ram, &format, policy).expect("it can be made");
        btt.write(0, &[5; 512 * 8]).expect("it is written");
        // A 16 MiB arena's map, by the format's table of images.
        ram.store(16_625_664 + 3 * 4, 0xffff_ffff).expect("ram takes all");
        let mut to = [0xee; 512 * 8];
        assert_eq!(btt.read(0, &mut to), Err(IoError::Map));
        assert!(to[..512 * 3].iter().all(|&byte| byte == 5), "{policy:?}");
        assert_eq!(btt.write(3, &[6; 512]), Err(IoError::Map), "its block is nobody's to free");
    }
}
