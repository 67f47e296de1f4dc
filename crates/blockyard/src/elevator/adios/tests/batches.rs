//! Batches: their window, their limits, when the next is filled, their order; and what is learned.

use super::*;

/// Reads of 1 ms each.
fn reads(count: u64) -> Vec<Bio> {
    (0..count).map(|at| read(at * 100)).collect()
}

/// The requests that the batches hold: those in front, and those behind.
fn batched(rig: &Rig) -> [u32; 2] {
    [rig.adios.pages.front(), rig.adios.pages.back()]
        .map(|page| page.lists.iter().map(List::len).sum())
}

/// 16 reads of 1 ms fill the window of 16 ms to the ns, and 22 that of a rotational disk; one ns
/// less leaves the last one out. A first request goes in any case.
#[test]
fn a_batch_fits_the_window() {
    for (rotational, window, most) in [
        (false, None, 16),
        (true, None, 22),
        (false, Some(16_000_000), 16),
        (false, Some(15_999_999), 15),
        (false, Some(1_999_999), 1),
        (false, Some(0), 1),
    ] {
        let tunables =
            AdiosTunables { global_latency_window: window.map(Duration::from_ns), ..known() };
        let mut rig = Rig::new(rotational, tunables);
        rig.insert_all(&reads(30));
        rig.dispatch();
        assert_eq!(batched(&rig), [most - 1, 0], "{window:?} {rotational}");
    }
}

/// Requests that are under way count: 10 ms of 16 are taken, so 6 reads fit.
#[test]
fn requests_under_way_take_from_the_window() {
    let mut rig = Rig::new(false, known());
    rig.insert_all(&reads(10));
    while rig.dispatch().is_some() {}
    rig.insert_all(&reads(20));
    rig.dispatch();
    assert_eq!(batched(&rig), [5, 0]);
}

/// A stream of writes waits in a batch that a read cannot pass, but for at most its window: three
/// writes of 5 ms, and not the fourth.
#[test]
fn a_read_waits_for_one_batch() {
    let base = Duration::from_ms(5);
    let slow = AdiosModel { base, ..KNOWN };
    let mut rig = Rig::new(false, AdiosTunables { lat_model_write: slow, ..known() });
    rig.insert_all(&(0..8).map(|at| write(at * 100, 8)).collect::<Vec<_>>());
    rig.dispatch();
    rig.insert(read(9000));
    assert_eq!(rig.sectors()[..4], [100, 200, 9000, 300]);
}

#[test]
fn a_batch_has_so_many_of_each_kind() {
    let tunables = AdiosTunables { batch_limit_read: 3, batch_limit_write: 2, ..known() };
    for (bio, left) in [(read as fn(u64) -> Bio, 2), (sync_write, 1)] {
        let mut rig = Rig::new(false, tunables);
        rig.insert_all(&(0..8).map(|at| bio(at * 100)).collect::<Vec<_>>());
        rig.dispatch();
        assert_eq!(batched(&rig), [left, 0]);
    }
    // Write zeroes have no model: they begin a batch, and join none.
    let mut rig = Rig::new(false, tunables);
    rig.insert_all(&[sync_write(0), Bio::new(Op::WriteZeroes, 100, 8, 0)]);
    rig.dispatch();
    assert_eq!(batched(&rig), [0, 0]);
}

/// 20 % of 16 ms are 3.2 ms: with 3 ms under way the next batch is filled beside this one, with
/// 4 ms it is not.
#[test]
fn the_next_batch_is_filled_when_little_is_under_way() {
    for (count, batches) in [(3, [1, 5]), (4, [2, 0])] {
        let mut rig = Rig::new(false, known());
        rig.insert_all(&reads(count));
        rig.dispatch();
        rig.insert_all(&reads(5));
        rig.dispatch();
        assert_eq!(batched(&rig), batches, "{count} under way");
    }
}

/// A batch gives reads before writes, whatever their deadlines; the next one begins after it.
#[test]
fn a_batch_goes_by_kinds() {
    let mut rig = Rig::new(false, known());
    rig.insert_all(&[sync_write(0), read(100), sync_write(200), read(300)]);
    assert_eq!(rig.sectors(), [100, 300, 0, 200]);
}

/// The middle between the first and the last is sector 200: a head at 208 sweeps back.
#[test]
fn a_sweep_begins_at_the_nearer_end() {
    let tunables = AdiosTunables { batch_order: AdiosBatchOrder::Sweep, ..known() };
    for (rotational, head, order) in
        [(true, 192, [100, 200, 300]), (true, 200, [300, 200, 100]), (false, 200, [300, 100, 200])]
    {
        let mut rig = Rig::new(rotational, tunables);
        rig.insert(read(head)); // the head goes to its end, 8 sectors on
        assert_eq!(rig.sectors(), [head]);
        rig.insert_all(&[write(300, 8), write(100, 8), write(200, 8)]);
        assert_eq!(rig.sectors(), order, "from {head}, rotational {rotational}");
    }
}

/// A read and a write begin at 0 and end at 1 ms and 1.5 ms: the write took the 0.5 ms after the
/// read.
#[test]
fn a_request_took_the_time_since_the_one_before() {
    let mut rig = Rig::new(false, AdiosTunables::default());
    rig.insert_all(&[read(0), write(100, 8)]);
    assert_eq!(rig.sectors(), [0, 100]);
    rig.at_us(1000).finish(RequestId(0));
    rig.at_us(1500).finish(RequestId(1));
    assert_eq!(rig.predict_ns(Kind::Read, 4096), 1_000_000);
    assert_eq!(rig.predict_ns(Kind::Write, 4096), 500_000);
    // Nothing is under way: the next one counts from its own start.
    rig.at_us(9000).insert(write(200, 8));
    let id = rig.dispatch().expect("one is held");
    rig.at_us(9300).finish(id);
    rig.at_us(9400).insert(write(300, 8));
    let id = rig.dispatch().expect("one is held");
    rig.at_us(9700).finish(id);
    rig.at_us(1_700_000).insert(write(400, 8));
    let id = rig.dispatch().expect("one is held");
    assert_eq!(rig.predict_ns(Kind::Write, 4096), 500_000, "updates were at 101 ms and 109.3 ms");
    rig.at_us(1_700_300).finish(id);
    rig.at_us(1_800_300).insert(write(500, 8));
    // Of three of 300 us, 99 % is two: (500 + 600) us / 3, 100 ms after the last, since 1.5 s are
    // over.
    assert_eq!(rig.predict_ns(Kind::Write, 4096), 366_666);
}

/// A read ends at 1 ms, and a write of zeroes that was under way at 2 ms, which is not noted. So a
/// write that begins at 300 ms and ends at 300.1 ms took 299.1 ms.
#[test]
fn an_end_without_a_model_is_not_noted() {
    let mut rig = Rig::new(false, AdiosTunables::default());
    rig.insert_all(&[read(0), Bio::new(Op::WriteZeroes, 100, 8, 0)]);
    while rig.dispatch().is_some() {}
    rig.at_us(1000).finish(RequestId(0));
    rig.at_us(2000).finish(RequestId(1));
    rig.at_us(300_000).insert(write(200, 8));
    let id = rig.dispatch().expect("one is held");
    rig.at_us(300_100).finish(id);
    assert_eq!(rig.predict_ns(Kind::Write, 4096), 299_100_000);
}

/// On a rotational disk a seek of 1024 sectors, which has 11 bits, counts 12 times: 99 % of 12 is
/// 11, so (100 us + 11 x 200 us) / 12. The head begins at sector 8, behind the first read.
#[test]
fn a_far_seek_teaches_more() {
    for (rotational, base_ns) in [(true, 191_666), (false, 100_000)] {
        let mut rig = Rig::new(rotational, AdiosTunables::default());
        rig.insert(read(0));
        let id = rig.dispatch().expect("one is held");
        rig.at_us(100).finish(id);
        rig.at_us(1_500_000).insert(read(1032));
        let id = rig.dispatch().expect("one is held");
        rig.at_us(1_500_200).finish(id);
        rig.at_us(1_600_200).insert(read(0));
        assert_eq!(rig.predict_ns(Kind::Read, 4096), base_ns, "rotational {rotational}");
    }
}

/// A latency over the limit teaches nothing; 500 ms do.
#[test]
fn a_latency_over_the_limit_is_ignored() {
    for (us, base_ns) in [(500_000, 500_000_000), (500_001, 0)] {
        let mut rig = Rig::new(false, AdiosTunables::default());
        rig.insert(read(0));
        let id = rig.dispatch().expect("one is held");
        rig.at_us(us).finish(id);
        assert_eq!(rig.predict_ns(Kind::Read, 4096), base_ns);
    }
}
