//! Rules of bfq for processes: idling, raising, bursts, cooperators, injection.

use super::super::queue::Marks;
use super::*;

/// Process 1 stops after its first read. Process 2 has a read from the start. The read of process 1
/// ends after 1 ms, the device is held for 8 ms, and then process 2 goes.
#[test]
fn the_device_is_held_for_the_next_read_of_a_process() {
    let never = Duration::from_secs(100);
    let readers = std::vec![Reader { think: never, ..Reader::new(1) }, Reader::new(2)];
    for (slice_ms, second_at) in [(8, 9), (3, 4), (0, 1)] {
        let tunables = BfqTunables { slice_idle: Duration::from_ms(slice_ms), ..plain() };
        let mut rig = Rig::new(true, tunables, readers.clone());
        rig.run(at_ms(20));
        let processes: Vec<_> = rig.log.iter().take(2).map(|entry| (entry.0, entry.2)).collect();
        assert_eq!(processes, [(1, at_ms(0)), (2, at_ms(second_at))]);
        let Idled { waits, met, near, time, withheld } = rig.bfq.counts().idled;
        if slice_ms > 0 {
            assert_eq!((waits - met, rig.bfq.counts().slots.too_idle), (1, 1));
            // The reads of process 2 follow each other without a pause, and without a seek.
            assert_eq!((near, time), (met, Duration::from_ms(slice_ms)));
        }
        assert_eq!(withheld, Duration::from_ms(slice_ms));
    }
}

/// On a disk two readers have the device for a budget each, one after the other: 10922 sectors at
/// first, which are 170 reads of 64 sectors.
#[test]
fn readers_of_a_disk_have_it_for_a_budget_each() {
    let readers = std::vec![Reader::new(1), Reader::new(2)];
    // So slots are long enough: 170 ms.
    let tunables = BfqTunables { timeout_sync: Duration::from_ms(500), ..plain() };
    let mut rig = Rig::new(true, tunables, readers);
    rig.run(at_ms(360));
    let turns: Vec<_> = rig.log.chunk_by(|one, other| one.0 == other.0).collect();
    let lengths: Vec<_> = turns.iter().map(|turn| (turn[0].0, turn.len())).collect();
    assert_eq!(lengths[..2], [(1, 170), (2, 170)]);
    let Counts { slots, budgets, charged, .. } = rig.bfq.counts();
    assert_eq!((slots.exhausted, slots.all()), (2, 2));
    assert_eq!((budgets, charged), (2 * 10_922, 2 * 170 * 64));
}

/// The time of a slot is 31 ticks of 4 ms: 124 reads of 1 ms, if it begins with a tick. One that
/// begins at 7 ms, in the tick that began at 4 ms, ends at 128 ms, after 121 reads. 21 ms are 6
/// ticks.
#[test]
fn a_slot_ends_when_its_ticks_are_over() {
    for (slot_ms, begins_ms, reads) in [(124, 0, 124), (124, 7, 121), (124, 8, 124), (21, 0, 24)] {
        let tunables = BfqTunables { timeout_sync: Duration::from_ms(slot_ms), ..plain() };
        let due = Some(at_ms(begins_ms));
        let readers = [1, 2].map(|process| Reader { due, ..Reader::new(process) });
        let mut rig = Rig::new(true, tunables, readers.to_vec());
        rig.run(at_ms(begins_ms + reads + 5));
        let first = rig.log.iter().take_while(|entry| entry.0 == 1).count();
        let timeouts = rig.bfq.counts().slots.timeout;
        assert_eq!((first as u64, timeouts), (reads, 1), "{slot_ms} ms from {begins_ms} ms on");
    }
}

/// The first reader has read for 5 s when a second one begins: it is interactive, and gets 30 reads
/// of 31 until its 120 000 sectors are read, in 1875 reads. They take 1938 ms of the 2 s.
#[test]
fn a_process_that_starts_is_raised() {
    for (low_latency, least, most) in [(true, 1800, 1975), (false, 900, 1100)] {
        let tunables = BfqTunables { low_latency, ..plain() };
        let late = Reader { due: Some(at_ms(5000)), ..Reader::new(2) };
        let mut rig = Rig::new(true, tunables, std::vec![Reader::new(1), late]);
        rig.run(at_ms(7000));
        let reads = rig.log.iter().filter(|entry| entry.0 == 2).count();
        assert!((least..=most).contains(&reads), "{reads} reads, low latency {low_latency}");
        // The first reader was raised for 1875 reads, too. Beside those of the second one it had
        // a thirtieth, 62 ms, and a slot of 124 ms more at most.
        let raised_ms = rig.bfq.counts().raised.time.as_ns() / 1_000_000;
        let expected_ms = if low_latency { 3750..=3750 + 62 + 124 } else { 0..=0 };
        assert!(expected_ms.contains(&raised_ms), "{raised_ms} ms");
    }
}

/// Eight processes that begin within 180 ms of each other are a burst: none stays raised.
#[test]
fn processes_of_a_burst_are_not_raised() {
    for (count, are_raised) in [(7, true), (9, false)] {
        let readers = (1..=count).map(|process| Reader {
            due: Some(at_ms(10 * u64::from(process))),
            // Not merged for good: each has another weight than the one before.
            prio: IoPrio {
                class: PrioClass::BestEffort,
                level: if process % 2 == 0 { 4 } else { 5 },
            },
            ..Reader::new(process)
        });
        let mut rig = Rig::new(true, BfqTunables::default(), readers.collect());
        rig.run(at_ms(1000));
        let raised = rig.bfq.scheduler.raised;
        assert_eq!(raised > 0, are_raised, "{count} processes, {raised} are raised");
    }
}

/// Two processes read every other block of one range: their queues become one.
#[test]
fn processes_that_read_in_turn_share_a_queue() {
    let first = Reader { at: 1 << 20, step: 128, ..Reader::new(1) };
    let second = Reader { at: (1 << 20) + 64, step: 128, ..Reader::new(2) };
    let readers = std::vec![Reader::new(9), first, second];
    let mut rig = Rig::new(true, plain(), readers);
    rig.run(at_ms(700));
    assert!(rig.bfq.counts().merged >= 1, "{:?}", rig.bfq.counts());
    let shared = rig.bfq.queues.iter().filter(|queue| queue.is(Marks::SHARED));
    assert!(shared.count() >= 1);
}

/// On a device without moving parts, queues of one priority that are created together are merged at
/// once; those of another priority are not.
#[test]
fn queues_created_together_are_merged_for_good() {
    let mut rig = Rig::new(false, plain(), std::vec![Reader::new(1), Reader::new(2)]);
    rig.run(at_ms(10));
    assert_eq!(rig.bfq.counts().merged, 1);
    let light = IoPrio { class: PrioClass::BestEffort, level: 7 };
    let other = Reader { prio: light, ..Reader::new(2) };
    let mut rig = Rig::new(false, plain(), std::vec![Reader::new(1), other]);
    rig.run(at_ms(10));
    assert_eq!(rig.bfq.counts().merged, 0);
}

/// As above, and on a disk with moving parts, where two readers of one place are merged by their
/// positions.
#[test]
fn no_queues_are_merged_without_the_tunable() {
    for rotational in [false, true] {
        for merges_queues in [true, false] {
            let tunables = BfqTunables { merges_queues, ..plain() };
            let near = Reader { at: (1 << 32) + 4096, ..Reader::new(2) };
            let mut rig = Rig::new(rotational, tunables, std::vec![Reader::new(1), near]);
            rig.run(at_ms(700));
            assert_eq!(rig.bfq.counts().merged > 0, merges_queues, "rotational: {rotational}");
        }
    }
}

/// Of as many processes as are remembered and 20 more, those that have been silent for the longest
/// time are forgotten, and nothing else changes ([next-is-held]: all their reads go).
#[test]
fn more_processes_come_than_are_remembered() {
    let count = u32::try_from(CAPACITY + SILENT + 20).unwrap();
    let readers = (1..=count).map(|process| Reader {
        due: Some(at_ms(12 * u64::from(process))),
        think: Duration::from_secs(100),
        ..Reader::new(process)
    });
    let mut rig = Rig::new(true, plain(), readers.collect());
    rig.run(at_ms(5000));
    assert_eq!(rig.log.len(), count as usize);
    assert!(rig.bfq.is_empty());
}

/// With room for 2 requests there are 34 processes, which own a queue each, and 37 queues. The
/// three others are asynchronous ones that were preempted when their only request was in the
/// device: of another class or weight than the rest, they stay active. The fourth one gets a queue
/// all the same.
#[test]
fn an_active_queue_without_requests_makes_room() {
    let tunables = BfqTunables { slice_idle: Duration::ZERO, ..plain() };
    let mut rig = Rig::of_capacity(2, true, tunables);
    for process in 1..=34 {
        let submitter = Submitter { process, group: 0 };
        rig.insert(Bio::read(u64::from(process) << 20, 8, 0).with_submitter(submitter));
        rig.dispatch();
        rig.finish_served();
    }
    let best_effort = IoPrio { class: PrioClass::BestEffort, level: 4 };
    let real_time = [7, 6, 5, 4].map(|level| IoPrio { class: PrioClass::RealTime, level });
    for (at, prio) in core::iter::once(best_effort).chain(real_time).enumerate() {
        let write = Bio::write((at as u64) << 20, 8, 0).with_prio(prio);
        rig.insert(write.with_submitter(Submitter { process: 1, group: 0 }));
        rig.finish_served();
        rig.dispatch();
    }
    rig.finish_served();
    assert_eq!((rig.log.len(), rig.bfq.len()), (34 + 5, 0));
}

/// A budget of more than 2^31 sectors, and a wait of years: a process that comes when the estimated
/// budgets are in use, after 11 slots of 124 ms, gets two thirds of the largest one.
#[test]
fn the_largest_tunables_do_not_overflow() {
    let tunables = BfqTunables {
        max_budget: 3_000_000_000,
        slice_idle: Duration::from_secs(1 << 33),
        ..BfqTunables::default()
    };
    let late = Reader { due: Some(Instant::ZERO + Duration::from_secs(4)), ..Reader::new(3) };
    let mut rig = Rig::new(true, tunables, std::vec![Reader::new(1), Reader::new(2), late]);
    rig.run(Instant::ZERO + Duration::from_secs(6));
    assert!([1, 2, 3].iter().all(|process| rig.sectors_of(*process) > 0), "{:?}", rig.log.len());
}

fn insert_at(rig: &mut Rig, ms: u64, process: u32, sector: u64) {
    rig.now = at_ms(ms);
    let submitter = Submitter { process, ..Submitter::NONE };
    rig.insert(Bio::read(sector, 64, 0).with_submitter(submitter));
}

fn process_of(rig: &mut Rig, process: u32) -> usize {
    let submitter = Submitter { process, ..Submitter::NONE };
    rig.bfq.processes.find(submitter).expect("a process")
}

/// A process has a request in its queue, and two more come 20 and 40 ms later. It thinks only where
/// it has none: one sample, and not three, whose mean would be 10 ms.
#[test]
fn a_process_with_a_request_does_not_think() {
    let mut rig = Rig::new(true, plain(), Vec::new());
    for (ms, sector) in [(0, 0), (20, 10_000), (40, 20_000)] {
        insert_at(&mut rig, ms, 1, sector);
    }
    let process = process_of(&mut rig, 1);
    let queue = rig.bfq.processes.of(process).sync.expect("a queue");
    assert!(!rig.bfq.queues[queue].think.is_long(Duration::from_ms(8)));
}

/// Queues created 50 ms apart are to be merged for good, if idling is of no use, but not within 600
/// ms of their creation: the second one was created in the tick of 48 ms, and the first tick after
/// 648 ms begins at 652 ms.
#[test]
fn queues_are_merged_for_good_after_600_ms() {
    let mut rig = Rig::new(true, plain(), Vec::new());
    insert_at(&mut rig, 0, 1, 0);
    insert_at(&mut rig, 50, 2, 1 << 20);
    let second = process_of(&mut rig, 2);
    for (ms, is_planned) in [(300, true), (651, true), (652, false)] {
        insert_at(&mut rig, ms, 2, (1 << 20) + 100_000 * ms);
        assert_eq!(rig.bfq.processes.of(second).stable_heir.is_some(), is_planned, "{ms} ms");
    }
}

/// Two queues were created, and neither has an owner or a request. The next ones are those that
/// nobody has used, in turn: the asynchronous queue keeps what it was charged as long as it can.
#[test]
fn an_idle_asynchronous_queue_is_used_again_last() {
    let mut bfq = Bfq::new(CAPACITY, true, plain());
    let [first, asynchronous] = [true, false].map(|is_sync| bfq.create(0, 1, 40, is_sync));
    bfq.queues[first].owners = 0;
    let others: Vec<_> = (2..bfq.queues.len()).map(|_| bfq.create(0, 1, 40, true)).collect();
    assert!(!others.contains(&asynchronous) && others[0] == 2, "{others:?}");
    let last = [(); 2].map(|()| bfq.create(0, 1, 40, true));
    assert_eq!(last, [first, asynchronous]);
}

/// While the device is held for process 1, whose read has ended, its write goes. The end of the
/// read is no reason to ask for more; that of the write is one, although the device is still held.
#[test]
fn the_end_of_an_injected_request_may_inject_another_one() {
    let mut rig = Rig::new(true, plain(), Vec::new());
    insert_at(&mut rig, 0, 1, 0);
    rig.dispatch();
    insert_at(&mut rig, 0, 2, 10_000);
    let submitter = Submitter { process: 1, ..Submitter::NONE };
    rig.insert(Bio::write(20_000, 64, 0).with_submitter(submitter));
    rig.finish_served();
    assert!(
        rig.bfq.poll_at(HCTX).is_some() && !rig.bfq.after_finish().asks_now,
        "held for process 1"
    );
    rig.dispatch();
    assert_eq!((rig.bfq.counts().injected, rig.bfq.len()), (1, 1));
    rig.finish_served();
    assert!(rig.bfq.poll_at(HCTX).is_some() && rig.bfq.after_finish().asks_now, "of its write");
}

/// Whether a read of process 1 at `sector` finds a request to join.
fn may_join(rig: &mut Rig, sector: u64) -> bool {
    let submitter = Submitter { process: 1, ..Submitter::NONE };
    let bio = Bio::read(sector, 64, 0).with_submitter(submitter);
    let ctx = Ctx { cpu: CpuId(0), hctx: HCTX };
    let limits = Limits::new(1 << 30);
    rig.bfq.find_merge(&rig.requests, &limits, ctx, &Extent::from(&bio), true).is_some()
}

/// With `nomerges = 1` a bio joins one request only, which Linux calls `last_merge`: the first one
/// that comes, until it goes or another one grows.
#[test]
fn one_request_takes_others_until_it_goes() {
    let mut rig = Rig::new(true, plain(), Vec::new());
    rig.bfq.merges_kind = Merges::Last;
    for sector in [0, 10_000, 20_000] {
        insert_at(&mut rig, 0, 1, sector);
    }
    let joins = [64, 10_064, 20_064].map(|sector| may_join(&mut rig, sector));
    assert_eq!(joins, [true, false, false]);
    rig.dispatch();
    insert_at(&mut rig, 0, 1, 30_000);
    let joins = [64, 10_064, 20_064, 30_064].map(|sector| may_join(&mut rig, sector));
    assert_eq!(joins, [false, false, false, true], "the first one has gone");
}
