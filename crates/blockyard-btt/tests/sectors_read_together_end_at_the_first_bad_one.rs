//! Sectors that are read together are read in order, up to the first that fails.

mod intercepted_memory;

use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, Container, Format, IoError, LaneChoice, MediaError, Policy, ReadTracking, Uuid,
};
use core::cell::Cell;
use intercepted_memory::{Call, Intercepted};

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
            let format = Format {
                container: Container::LabelledNamespace,
                sector_bytes: 512,
                uuid: Uuid([1; 16]),
                parent_uuid: Uuid::NIL,
                blank: true,
            };
            let policy = Policy { tracking, lanes: LaneChoice::Own { sets: 16 } };
            let memory = Intercepted { memory: Ram::new(16 << 20), intercept };
            let btt = Btt::create(memory, &format, policy).expect("a new BTT in ram");
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

fn mark(lba: usize) -> u8 {
    u8::try_from(lba % 251).expect("a remainder of 251")
}
