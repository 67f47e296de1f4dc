//! How many fences a write waits for: two for all sectors of a batch, however many there are, where no two of
//! them need the same word.

mod btt_told;

use blockyard_btt::ram::Ram;
use blockyard_btt::{Btt, Container, Format, LaneChoice, Memory, Policy, ReadTracking, Uuid};
use btt_told::{Call, Told};
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};

const SECTOR: usize = 512;

fn create<M: Memory>(memory: M, sets: u32) -> Btt<M> {
    let format = Format {
        container: Container::LabelledNamespace,
        sector_bytes: 512,
        uuid: Uuid([1; 16]),
        parent_uuid: Uuid::NIL,
        blank: true,
    };
    let policy = Policy { tracking: ReadTracking::Versions, lanes: LaneChoice::Own { sets } };
    Btt::create(memory, &format, policy).expect("it can be made")
}

/// Fences for sectors that are written at once, by a thread with lanes of its own in one of so many `sets`.
fn fences(sets: u32, lbas: impl IntoIterator<Item = u64>) -> u32 {
    let fences = AtomicU32::new(0);
    let told = |call| {
        if let Call::Fence = call {
            fences.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let btt = create(Told { memory: Ram::new(16 << 20), told }, sets);
    let mut worker = btt.worker();
    let all: Vec<_> = (1..).zip(lbas).map(|(nth, lba)| (lba, [nth; SECTOR])).collect();
    let many: Vec<_> = all.iter().map(|(lba, sector)| (*lba, &sector[..])).collect();
    let before = fences.load(Ordering::Relaxed);
    worker.write_many(&many).expect("it is written");
    let count = fences.load(Ordering::Relaxed) - before;
    for (lba, _) in &all {
        let (_, last) = all.iter().rfind(|(one, _)| one == lba).expect("it is one of them");
        let mut found = [0; SECTOR];
        worker.read(*lba, &mut found).expect("it is read");
        assert_eq!(found, *last, "sector {lba}");
    }
    count
}

#[test]
fn a_batch_is_half_of_a_set() {
    assert_eq!(fences(2, 0..1), 2);
    assert_eq!(fences(2, 0..64), 2);
    assert_eq!(fences(2, 0..65), 4);
    assert_eq!(fences(2, 0..200), 8);
    assert_eq!(fences(16, 0..64), 2 * 64 / 8);
}

/// Sectors 256 apart share a word, and those between do not wait for them.
#[test]
fn those_that_share_a_word_go_in_turns() {
    assert_eq!(fences(2, (0..64).map(|nth| nth / 2 + nth % 2 * 256)), 4);
    assert_eq!(fences(2, (0..64).map(|nth| nth % 4 * 256 + nth / 4)), 8);
    assert_eq!(fences(2, [7; 10]), 20, "one sector, again and again");
    assert_eq!(fences(2, [7, 8, 7, 9, 7, 8]), 6);
    assert_eq!(fences(2, [7, 7, 7, 8]), 6, "those that wait stay in order");
}

/// A sector is written twice in a batch. Another thread has its word when the first is to be logged, and not any
/// more when the second is: the second does not come first.
#[test]
fn the_later_of_two_stays_whoever_is_in_the_way() {
    let ((in_fence, is_in_fence), (go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
    let ((ended, has_ended), may_go) = (mpsc::channel::<()>(), Mutex::new(may_go));
    let has_ended = Mutex::new(has_ended);
    let map_entry_2 = AtomicU32::new(0);
    let listen = |call| match (call, std::thread::current().name()) {
        (Call::Fence, Some("in the way")) => {
            // Nobody listens to those after the first.
            let _ = in_fence.send(());
            let _ = may_go.lock().expect("no panic").recv();
        }
        (Call::Load(at), Some("batch")) if at == u64::from(map_entry_2.load(Ordering::Relaxed)) => {
            // For two of its write, and that of its end.
            for _ in 0..3 {
                let _ = go.send(());
            }
            let _ = has_ended.lock().expect("no panic").recv();
        }
        _ => {}
    };
    let told = |call| {
        listen(call);
        Ok(())
    };
    let btt = &create(Told { memory: Ram::new(16 << 20), told }, 2);
    let arena = blockyard_btt::find::find(btt.memory(), Container::LabelledNamespace, None)
        .expect("it is there")[0];
    let at = arena.start + arena.info.layout.mapoff + 2 * 4;
    map_entry_2.store(u32::try_from(at).expect("it is small"), Ordering::Relaxed);
    std::thread::scope(|scope| {
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let in_the_way = move || {
            btt.worker().write(7, &[1; SECTOR]).expect("it is written");
            ended.send(()).expect("it is waited for");
        };
        named("in the way").spawn_scoped(scope, in_the_way).expect("there is room");
        is_in_fence.recv().expect("it comes there");
        let batch = move || {
            let sector = [2, 3, 4, 5].map(|byte| [byte; SECTOR]);
            let many = [(1, &sector[0][..]), (7, &sector[1]), (2, &sector[2]), (7, &sector[3])];
            btt.worker().write_many(&many).expect("it is written");
        };
        named("batch").spawn_scoped(scope, batch).expect("there is room");
    });
    let mut found = [0; SECTOR];
    btt.read(7, &mut found).expect("it is read");
    assert_eq!(found, [5; SECTOR]);
}
