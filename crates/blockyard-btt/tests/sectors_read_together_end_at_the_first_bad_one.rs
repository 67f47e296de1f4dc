//! Sectors that are read together are read in order, up to the first that fails.

mod intercepted_memory;

use blockyard_btt::ram::Ram;
use blockyard_btt::{IoError, LaneChoice, MediaError, Policy, ReadTracking};
use core::cell::{Cell, RefCell};
use intercepted_memory::{Call, Intercepted, create};
use std::collections::BTreeSet;

/// More than one batch.
const COUNT: usize = 150;

#[test]
fn the_sectors_before_are_read_and_those_after_are_left_alone() {
    // A reader that publishes its block loads the entry again, to see whether it is still the sector's.
    for (tracking, loads) in [(ReadTracking::Versions, 1), (ReadTracking::Scan, 2)] {
        for bad in [0, 1, 2, 63, 64, 65, 149] {
            // The load of this many map entries is still to succeed.
            let left = Cell::new(usize::MAX);
            let intercept = |call| match call {
                Call::Load(_) if left.get() == 0 => Err(MediaError::Failed),
                Call::Load(_) => {
                    left.set(left.get() - 1);
                    Ok(())
                }
                _ => Ok(()),
            };
            let policy = Policy { tracking, lanes: LaneChoice::Own { sets: 16 } };
            let btt = create(Intercepted { memory: Ram::new(16 << 20), intercept }, policy);
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

/// The map entry and the block of each sector are fetched while others are read.
#[test]
fn sectors_that_are_read_together_are_prefetched() {
    let fetched = RefCell::new(Vec::new());
    let intercept = |call| {
        if let Call::Prefetch(at) = call {
            fetched.borrow_mut().push(at);
        }
        Ok(())
    };
    let policy = Policy::for_threads(1);
    let btt = create(Intercepted { memory: Ram::new(16 << 20), intercept }, policy);
    let mut worker = btt.worker();
    (0..COUNT).for_each(|lba| worker.write(lba as u64, &[1; 512]).expect("write to ram"));
    let mut read = [[0; 512]; COUNT];
    let mut sectors: Vec<_> = (0..).zip(read.iter_mut().map(|to| &mut to[..])).collect();
    fetched.borrow_mut().clear();
    worker.read_many(&mut sectors).expect("read from ram");
    let fetched = fetched.take();
    let apart: BTreeSet<_> = fetched.iter().collect();
    assert_eq!((fetched.len(), apart.len()), (2 * COUNT, 2 * COUNT));
    let map = fetched.iter().filter(|at| at.is_multiple_of(4) && !at.is_multiple_of(512)).count();
    assert!(map > COUNT / 2, "{map} entries, four bytes each");
}

fn mark(lba: usize) -> u8 {
    u8::try_from(lba % 251).expect("a remainder of 251")
}
