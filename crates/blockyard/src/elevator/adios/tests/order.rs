//! Which request goes next: the list before the models, deadlines, reads and the rest, barriers.

use super::*;

/// The requests of each batch: with a window of no time, one.
fn one_by_one(tunables: AdiosTunables) -> AdiosTunables {
    AdiosTunables { global_latency_window: Some(Duration::ZERO), ..tunables }
}

#[test]
fn until_reads_and_writes_are_known_the_first_goes_first() {
    let mut rig = Rig::new(false, AdiosTunables::default());
    rig.insert_all(&[write(0, 8), read(8)]);
    assert_eq!(rig.sectors(), [0, 8]);
    rig.at_us(1000).finish(RequestId(1));
    // Reads alone change nothing: a later one is not merged and not sorted.
    rig.insert_all(&[write(100, 8), read(200)]);
    assert!(!rig.finds_merge(write(108, 8)));
    assert_eq!(rig.sectors(), [100, 200]);
    // A write has ended: from the request after the next one on, deadlines count.
    rig.at_us(2000).finish(RequestId(0));
    rig.insert_all(&[write(300, 8), write(400, 8), read(500)]);
    assert_eq!(rig.sectors(), [300, 500, 400]);
}

/// 1 MiB is predicted as 1 ms + 1020 x 10 us = 11.2 ms, so a write of 4 KiB that comes 5 ms later
/// has the earlier deadline, 2006 ms against 2011.2 ms.
#[test]
fn a_short_write_passes_a_long_one_by_its_deadline() {
    for (fixed_order, order) in [(false, [9000, 0]), (true, [0, 9000])] {
        let mut rig = Rig::new(false, AdiosTunables { fixed_order, ..known() });
        rig.insert(write(0, 2048));
        rig.at_us(5000).insert(write(9000, 8));
        assert_eq!(rig.sectors(), order, "fixed_order {fixed_order}");
    }
}

/// Steps of deadlines are of 1.048576 ms: 2001 ms and 2001.5 ms are in step 1908, 2003 ms in 1910.
/// Within a step requests go as they came, and one that grows goes behind.
#[test]
fn within_a_step_of_deadlines_the_first_goes_first() {
    let mut rig = Rig::new(false, known());
    let first = rig.insert(write(300, 8));
    rig.at_us(500).insert(write(200, 8));
    rig.at_us(2000).insert(write(100, 8));
    rig.adios.merged(&rig.requests, first, Merge::Back);
    assert_eq!(rig.sectors(), [200, 300, 100]);
}

/// A write that somebody waits for has the deadline 0, a read 3 ms: the first read passes the
/// writes and pays, the others wait for all of them.
#[test]
fn reads_and_synchronous_writes_take_turns_by_deadline() {
    let mut rig = Rig::new(false, one_by_one(known()));
    rig.insert_all(&[read(0), read(8), sync_write(100), sync_write(108), read(16)]);
    assert_eq!(rig.sectors(), [0, 100, 108, 8, 16]);
}

/// A read pays 172 / 1024 of its 1 ms, 167.968 us, at priority 8, and all of it at 0; a write 1 ms.
#[test]
fn a_read_that_passes_a_write_pays_by_its_priority() {
    for (read_priority, paid_ns) in [(8, 167_968), (0, 1_000_000), (19, 14_648)] {
        let mut trees = Trees::new(2, read_priority);
        let mut held = [Held { deadline: Instant::ZERO, predicted_ns: 0, bytes: 4096 }; 2];
        held[0].deadline = Instant::from_ns(1);
        trees.insert(Side::Reads, RequestId(0), held[0].deadline);
        trees.insert(Side::Rest, RequestId(1), held[1].deadline);
        let next = trees.next(&held).expect("two are held");
        assert_eq!(next.id, RequestId(0));
        trees.take(next, 1_000_000);
        assert_eq!(trees.bias_ns(), -paid_ns);
        let next = trees.next(&held).expect("one is held");
        trees.take(next, 1_000_000);
        assert_eq!(trees.bias_ns(), 1_000_000 - paid_ns, "the only one of the favoured side pays");
    }
}

/// A write of 1 ms has its deadline at 2001 ms. A read of time t has its own at t + 3 ms, so that
/// of 1999 ms is the first to pay, and the write follows: 2000 reads pass it.
#[test]
fn a_stream_of_reads_passes_a_write_until_its_deadline() {
    let mut rig = Rig::new(false, one_by_one(known()));
    let old = rig.insert(write(1 << 20, 8));
    let mut passed = 0;
    loop {
        // The request numbers go round; the write keeps the first.
        rig.next = 1 + passed % 8;
        rig.insert(read(u64::from(passed) * 100));
        let id = rig.dispatch().expect("two are held");
        rig.now = rig.now + Duration::from_ms(1);
        if id == old {
            break;
        }
        rig.finish(id);
        rig.release(id);
        passed += 1;
        assert!(passed < 3000, "the write waits for ever");
    }
    assert_eq!(passed, 2000);
}

/// In version 3.1.9 nothing passes a discard, not even a read, and it waits for no deadline.
#[test]
fn a_discard_is_a_barrier() {
    let bios = [write(0, 8), discard(100), read(200), discard(300), write(400, 8), read(500)];
    let mut rig = Rig::new(false, known());
    rig.insert(bios[0]);
    assert!(rig.finds_merge(write(8, 8)));
    rig.insert_all(&bios[1..]);
    assert!(!rig.finds_merge(write(8, 8)), "it would pass the discard");
    assert_eq!(rig.sectors(), [0, 100, 200, 300, 500, 400]);
    let sorted = AdiosTunables { discards: AdiosDiscards::Sorted, ..one_by_one(known()) };
    let mut rig = Rig::new(false, sorted);
    rig.insert_all(&bios);
    assert_eq!(rig.sectors(), [200, 500, 0, 400, 100, 300]);
}

#[test]
fn requests_that_came_back_go_before_all_others() {
    let mut rig = Rig::new(false, known());
    rig.insert_all(&[write(0, 8), write(100, 8)]);
    let back = rig.dispatch().expect("two are held");
    rig.insert(read(200));
    rig.requests[back].state = State::Staged;
    rig.adios.finished(back, &rig.requests[back], rig.now);
    rig.adios.insert(&mut rig.requests, back, Place::Head, rig.now);
    assert_eq!(rig.sectors(), [0, 100, 200]);
}
