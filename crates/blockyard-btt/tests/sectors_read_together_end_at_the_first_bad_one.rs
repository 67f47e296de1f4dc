//! Sectors that are read together are read in order, up to the first that fails.

mod intercepted_memory;

use blockyard_btt::find::find;
use blockyard_btt::ram::Ram;
use blockyard_btt::{Container, IoError, LaneChoice, MediaError, Policy, ReadTracking};
use core::cell::{Cell, RefCell};
use intercepted_memory::{Call, Intercepted, create, create_sized};
use std::collections::BTreeSet;

/// More than one batch.
const COUNT: usize = 150;

#[test]
fn the_sectors_before_are_read_and_those_after_are_left_alone() {
    // A reader that publishes its block loads the entry again, to see whether it is still the
    // sector's.
    for (tracking, loads) in [(ReadTracking::Versions, 1), (ReadTracking::Scan, 2)] {
        for bad in [0, 1, 2, 63, 64, 65, 149] {
            // The load of this many map entries is still to succeed.
            let left = Cell::new(usize::MAX);
            let policy = Policy { tracking, lanes: LaneChoice::Own { sets: 16 } };
            let btt = create(
                Intercepted {
                    memory: Ram::new(16 << 20),
                    intercept: |call| match call {
                        Call::Load(_) if left.get() == 0 => Err(MediaError::Failed),
                        Call::Load(_) => {
                            left.set(left.get() - 1);
                            Ok(())
                        }
                        _ => Ok(()),
                    },
                },
                policy,
            );
            let mut worker = btt.worker();
            for lba in 0..COUNT {
                worker.write(lba as u64, &[mark(lba); 512]).expect("write to ram");
            }
            let mut read = [[0xFF; 512]; COUNT];
            let mut sectors: Vec<_> = (0..).zip(read.iter_mut().map(|to| &mut to[..])).collect();
            left.set(bad * loads);
            let ended = worker.read_many(&mut sectors);
            assert_eq!(ended, Err(IoError::Media(MediaError::Failed)), "{tracking:?}, {bad}");
            for (lba, to) in read.into_iter().enumerate() {
                let expected = if lba < bad { mark(lba) } else { 0xFF };
                assert!(to == [expected; 512], "{tracking:?}: sector {lba}, of which {bad} is bad");
            }
        }
    }
}

/// A write fetches its map entry, while it copies the data. Sectors that are read together fetch
/// all their map entries and the first 512 bytes of all their blocks, while others are read.
#[test]
fn map_entries_and_blocks_are_prefetched() {
    const SECTOR: usize = 4096;
    let fetched = RefCell::new(Vec::new());
    let memory = Intercepted {
        memory: Ram::new(16 << 20),
        intercept: |call| {
            if let Call::Prefetch(bytes) = call {
                fetched.borrow_mut().push(bytes);
            }
            Ok(())
        },
    };
    let btt = create_sized(memory, 4096, Policy::for_threads(1));
    let layout =
        find(btt.memory(), Container::LabelledNamespace, None).expect("a BTT")[0].info.layout;
    let entries = (0..COUNT as u64).map(|lba| layout.mapoff + lba * 4).map(|at| at..at + 4);
    let entries: Vec<_> = entries.collect();
    let mut worker = btt.worker();
    (0..COUNT as u64).for_each(|lba| worker.write(lba, &[1; SECTOR]).expect("write to ram"));
    assert_eq!(fetched.take(), entries);
    worker.read(0, &mut [0; SECTOR]).expect("read from ram");
    assert!(fetched.take().is_empty(), "a single read has nothing to do meanwhile");
    let mut read = vec![[0; SECTOR]; COUNT];
    let mut sectors: Vec<_> = (0..).zip(read.iter_mut().map(|to| &mut to[..])).collect();
    worker.read_many(&mut sectors).expect("read from ram");
    let (of_map, of_blocks): (Vec<_>, Vec<_>) =
        fetched.take().into_iter().partition(|bytes| bytes.start >= layout.mapoff);
    assert_eq!(of_map, entries);
    let blocks: BTreeSet<_> = of_blocks.iter().map(|bytes| bytes.start).collect();
    assert_eq!(blocks.len(), COUNT, "a block for each sector");
    assert!(blocks.iter().all(|at| at.is_multiple_of(4096)));
    assert!(of_blocks.iter().all(|bytes| bytes.end - bytes.start == 512));
}

fn mark(lba: usize) -> u8 {
    u8::try_from(lba % 251).expect("a remainder of 251")
}
