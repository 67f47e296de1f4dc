//! Data is read as it was written, in as few transfers as possible.

use crate::emulated::{Kind, Model, Sent, block_on};
use crate::{async_disk, blocking_disk, heap, pattern, slot};
use blockyard::policy::Policies;
use blockyard::prng::Prng;
use blockyard::status::SubmitError;
use blockyard_spi::disk::{Counts, Design, Failure, Io};

fn designs() -> [Design; 2] {
    [Design::SMALL, Design { policies: Policies::mq_deadline(), ..Design::SMALL }]
}

/// The data commands that a card received: number, argument.
fn transfers(log: &[Sent]) -> Vec<(u8, u32)> {
    let data = log.iter().filter(|sent| matches!(sent.index, 17 | 18 | 24 | 25));
    data.map(|sent| (sent.index, sent.argument)).collect()
}

/// Random reads and writes of every kind of card, blocking and async in turn, against a plain copy
/// of its data.
#[test]
fn data_is_read_back_blocking_and_async() {
    let mut random = Prng::new(18);
    for kind in Kind::ALL {
        for design in designs() {
            let slot = slot(Model::new(kind));
            let mut copy = vec![0; slot.0.borrow().data.len()];
            for round in 0..20 {
                let at = usize::try_from(random.below(8192 - 300)).unwrap();
                let sectors = 1 + usize::try_from(random.below(300)).unwrap();
                let range = at * 512..(at + sectors) * 512;
                let sector = at as u64;
                let new = pattern(round, sectors);
                let mut first = vec![0; new.len()];
                let mut again = vec![0; new.len()];
                if round % 2 == 0 {
                    let mut disk = blocking_disk(&slot, design);
                    disk.read(sector, &mut first).unwrap();
                    disk.write(sector, &new).unwrap();
                    disk.flush().unwrap();
                    disk.read(sector, &mut again).unwrap();
                } else {
                    let mut disk = async_disk(&slot, design);
                    let (result, polls) = block_on(async {
                        disk.read(sector, &mut first).await?;
                        disk.write(sector, &new).await?;
                        disk.flush().await?;
                        disk.read(sector, &mut again).await
                    });
                    result.unwrap();
                    assert!(polls > 10, "an async bus was polled only {polls} times");
                }
                assert_eq!(first, copy[range.clone()], "{kind:?}, round {round}: before the write");
                copy[range].copy_from_slice(&new);
                assert_eq!(again, new, "{kind:?}, round {round}: after the write");
            }
            assert_eq!(slot.0.borrow().data, copy, "{kind:?}");
        }
    }
}

#[test]
fn neighbours_of_one_call_become_one_transfer() {
    for design in designs() {
        let slot = slot(Model::new(Kind::Sdhc));
        let mut disk = blocking_disk(&slot, design);
        let data = pattern(1, 8);
        let blocks: Vec<_> = data.chunks(512).collect();
        // Each begins or ends at one before it, so that each can join: 3 4 2 5 1 6 0 7.
        let order = [3, 4, 2, 5, 1, 6, 0, 7];
        slot.0.borrow_mut().log.clear();
        disk.run(&mut order.map(|at| Io::write(100 + at as u64, blocks[at]))).unwrap();
        assert_eq!(slot.0.borrow().data[100 * 512..108 * 512], data);

        let mut back = vec![0; data.len()];
        let mut targets: Vec<_> = back.chunks_mut(512).map(Some).collect();
        let mut ios = order.map(|at| {
            let target = targets[at].take().expect("each block once");
            Io::read(100 + at as u64, target)
        });
        disk.run(&mut ios).unwrap();
        assert_eq!(back, data);

        let log = slot.0.borrow().log.clone();
        assert_eq!(transfers(&log), [(25, 100), (18, 100)]);
        let announced = log.iter().find(|sent| sent.app && sent.index == 23).unwrap();
        assert_eq!(announced.argument, 8, "ACMD23 announces the whole write");
    }
}

/// With mq-deadline, a call's I/Os go to the card in order of their sectors; with `none`, as they
/// came.
#[test]
fn an_elevator_sorts_the_ios_of_a_call() {
    let came = [(24, 40), (24, 10), (24, 30), (24, 20)];
    let sorted = [(24, 10), (24, 20), (24, 30), (24, 40)];
    for (design, order) in designs().into_iter().zip([came, sorted]) {
        let slot = slot(Model::new(Kind::Sdhc));
        let mut disk = blocking_disk(&slot, design);
        let data = pattern(2, 1);
        disk.run(&mut came.map(|(_, at)| Io::write(u64::from(at), &data))).unwrap();
        assert_eq!(transfers(&slot.0.borrow().log), order, "{design:?}");
    }
}

/// More I/Os than the queue has room for, and I/Os that are longer than a transfer.
#[test]
fn a_long_io_is_split_and_a_long_call_takes_turns() {
    for design in designs() {
        let design = Design { max_sectors: 16, ..design };
        let slot = slot(Model::new(Kind::Sdhc));
        let mut disk = blocking_disk(&slot, design);
        let data = pattern(3, 8 * 16 + 100);
        let (long, short) = data.split_at(8 * 16 * 512);
        disk.write(1000, long).unwrap();
        let expected: Vec<_> = (0..8).map(|at| (25, 1000 + 16 * at)).collect();
        assert_eq!(transfers(&slot.0.borrow().log), expected);
        // Every other sector, so that nothing merges.
        let mut ios: Vec<_> = (2000..)
            .step_by(2)
            .zip(short.chunks(512))
            .map(|(at, part)| Io::write(at, part))
            .collect();
        disk.run(&mut ios).unwrap();
        let model = slot.0.borrow();
        assert_eq!(model.data[1000 * 512..1128 * 512], *long);
        for (at, part) in (2000..).step_by(2).zip(short.chunks(512)) {
            assert_eq!(model.data[at * 512..][..512], *part, "sector {at}");
        }
        assert_eq!(disk.0.counts(), Counts { ios: 101, transfers: 108, requeues: 0 });
    }
}

#[test]
fn the_smallest_queue_does_any_call() {
    for design in designs() {
        let design = Design { depth: 1, bios: 2, max_sectors: 1, ..design };
        let slot = slot(Model::new(Kind::Sdhc));
        let mut disk = blocking_disk(&slot, design);
        let data = pattern(7, 9);
        let (first, second) = data.split_at(5 * 512);
        disk.run(&mut [Io::write(50, first), Io::flush(), Io::write(55, second)]).unwrap();
        let mut back = vec![0; data.len()];
        disk.read(50, &mut back).unwrap();
        assert_eq!(back, data, "{design:?}");
    }
}

#[test]
fn sdsc_has_byte_addresses_and_sdhc_has_sector_addresses() {
    for (kind, addresses) in
        [(Kind::Sdsc1, [5 * 512, 7 * 512]), (Kind::Sdsc2, [5 * 512, 7 * 512]), (Kind::Sdhc, [5, 7])]
    {
        let slot = slot(Model::new(kind));
        let mut disk = blocking_disk(&slot, Design::SMALL);
        disk.write(5, &pattern(4, 1)).unwrap();
        disk.read(7, &mut [0; 1024]).unwrap();
        let [write, read] = addresses;
        assert_eq!(transfers(&slot.0.borrow().log), [(24, write), (18, read)], "{kind:?}");
    }
}

#[test]
fn the_last_sectors_can_be_used_and_none_behind_them() {
    for kind in Kind::ALL {
        let slot = slot(Model::new(kind));
        let mut disk = blocking_disk(&slot, Design::SMALL);
        let data = pattern(5, 2);
        disk.write(8190, &data).unwrap();
        let mut back = [0; 1024];
        disk.read(8190, &mut back).unwrap();
        assert_eq!(back, *data);
        let before = slot.0.borrow().log.len();
        let refused = Err(Failure::Refused(SubmitError::OutOfRange));
        assert_eq!(disk.read(8191, &mut back), refused);
        assert_eq!(disk.write(u64::MAX, &data), refused);
        assert_eq!(disk.erase(8192, 1), refused);
        assert_eq!(slot.0.borrow().log.len(), before, "the card saw nothing of it");
    }
}

#[test]
fn an_erase_takes_its_sectors_and_no_other() {
    for kind in Kind::ALL {
        let slot = slot(Model::new(kind));
        let mut disk = blocking_disk(&slot, Design::SMALL);
        slot.0.borrow_mut().data.fill(7);
        disk.erase(10, 20).unwrap();
        let model = slot.0.borrow();
        for (sector, bytes) in model.data.chunks(512).enumerate() {
            let expected = if (10..30).contains(&sector) { 0xff } else { 7 };
            assert!(bytes.iter().all(|byte| *byte == expected), "{kind:?}, sector {sector}");
        }
    }
    // A card that erases groups would take neighbours with it.
    let slot = slot(Model::with(Kind::Sdsc2, 1, false));
    let mut disk = blocking_disk(&slot, Design::SMALL);
    assert_eq!(disk.erase(10, 20), Err(Failure::Refused(SubmitError::NotSupported)));
}

/// The figure in the README.
#[test]
fn a_small_disk_takes_few_kilobytes_and_allocates_once() {
    let bytes = designs().map(|design| {
        let slot = slot(Model::new(Kind::Sdhc));
        let (before, _) = heap::counts();
        let mut disk = blocking_disk(&slot, design);
        let (after, allocations) = heap::counts();
        let data = pattern(6, 300);
        let pattern_allocations = heap::counts().1 - allocations;
        disk.write(17, &data).unwrap();
        disk.read(18, &mut [0; 512]).unwrap();
        assert_eq!(heap::counts().1, allocations + pattern_allocations, "a call allocated");
        after - before
    });
    println!("none, mq-deadline: {bytes:?} bytes");
    assert!(bytes[0] < 3350 && bytes[1] < 5350, "{bytes:?}");
}
