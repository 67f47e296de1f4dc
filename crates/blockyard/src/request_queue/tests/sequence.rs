use super::*;
use crate::flush::HOLD_MAX;

fn cached(fua: bool) -> Limits {
    Limits { write_cache: true, fua, ..Limits::new(CAPACITY_SECTORS) }
}

/// Runs a test with and without an elevator.
fn rigs(depth: u16, fua: bool) -> [Rig; 2] {
    [Policies::NONE, Policies::mq_deadline()]
        .map(|policies| Rig::new(1, depth, policies, cached(fua)))
}

fn write(cookie: u64, flags: Flags) -> Bio {
    Bio::write(cookie * 64, 8, cookie).with_flags(flags)
}

fn flush(cookie: u64) -> Bio {
    Bio::new(Op::Flush, 0, 0, cookie)
}

const OK: Status = Status::Ok;

/// Completes all requests in flight, and those that follow; returns the ops in the order of
/// acceptance.
fn run_dry(rig: &mut Rig) -> String {
    let mut ops = String::new();
    rig.settle();
    while !rig.host.driver.sent.is_empty() {
        ops.push_str(&rig.sent_ops());
        for _ in 0..rig.host.driver.sent.len() {
            rig.complete();
        }
        rig.settle();
    }
    assert_eq!(rig.queue.held, 0);
    ops
}

#[test]
fn a_sequence_takes_its_steps_one_after_the_other() {
    let both = Flags::PREFLUSH | Flags::FUA;
    for (bio, fua, steps) in [
        (flush(0), false, "f"),
        (write(0, Flags::PREFLUSH), false, "fw"),
        (write(0, Flags::FUA), false, "wf"),
        (write(0, both), false, "fwf"),
        (write(0, Flags::FUA), true, "w"),
        (write(0, both), true, "fw"),
    ] {
        for mut rig in rigs(1, fua) {
            rig.submit(CPU, bio).unwrap();
            assert_eq!(run_dry(&mut rig), steps, "{bio:?}");
            assert_eq!(rig.ended(), [(0, OK)]);
        }
    }
}

#[test]
fn the_device_sees_fua_only_if_it_has_it_and_never_preflush() {
    for fua in [false, true] {
        for mut rig in rigs(4, fua) {
            rig.submit(CPU, write(1, Flags::PREFLUSH | Flags::FUA)).unwrap();
            rig.settle();
            rig.complete();
            rig.settle();
            let sent = &rig.host.driver.sent[0];
            assert_eq!((sent.op, sent.flags.contains(Flags::FUA)), (Op::Write, fua));
            assert!(!sent.flags.contains(Flags::PREFLUSH));
        }
    }
}

/// [one-flush-at-a-time], [flush-covers-earlier]: a flush covers the requests that waited when it
/// began; later ones share the next flush.
#[test]
fn one_flush_serves_all_waiting_requests_and_the_next_all_later_ones() {
    for mut rig in rigs(8, false) {
        for cookie in 0..4 {
            rig.submit(CPU, flush(cookie)).unwrap();
            rig.settle();
        }
        assert_eq!(rig.sent_ops(), "f", "one at a time");
        rig.complete();
        assert_eq!(rig.ended(), [(0, OK)], "it had begun before the others came");
        rig.settle();
        assert_eq!(rig.sent_ops(), "f");
        rig.complete();
        assert_eq!(rig.ended(), [(1, OK), (2, OK), (3, OK)]);
        assert_eq!(run_dry(&mut rig), "");
    }
}

/// [flush-waits-for-data]: two writes that need a flush behind their data share it.
#[test]
fn data_under_way_holds_the_next_flush_back() {
    for mut rig in rigs(8, false) {
        rig.submit(CPU, write(0, Flags::FUA)).unwrap();
        rig.submit(CPU, write(1, Flags::FUA)).unwrap();
        rig.settle();
        rig.complete();
        rig.settle();
        assert_eq!(rig.sent_ops(), "w", "the flush waits for the other data");
        rig.complete();
        rig.settle();
        assert_eq!(rig.sent_ops(), "f");
        rig.complete();
        assert_eq!(rig.ended(), [(0, OK), (1, OK)]);
    }
}

/// [flush-held-bounded]: data that never ends does not hold flushes back for ever.
#[test]
fn a_flush_is_held_back_for_five_seconds_at_most() {
    for mut rig in rigs(8, false) {
        rig.submit(CPU, write(0, Flags::FUA)).unwrap();
        rig.settle();
        rig.submit(CPU, flush(1)).unwrap();
        assert_eq!(rig.settle(), 0, "held back");
        assert_eq!(rig.queue.poll_at(), Some(rig.now + HOLD_MAX));
        rig.now = rig.now + HOLD_MAX;
        rig.settle();
        assert_eq!(rig.sent_ops(), "wf");
    }
}

/// Every status of a step is that of the request.
#[test]
fn a_failed_step_ends_the_sequence_and_a_failed_flush_all_that_it_covers() {
    let failed = Status::IoError;
    for mut rig in rigs(8, false) {
        let both = Flags::PREFLUSH | Flags::FUA;
        rig.submit(CPU, flush(0)).unwrap();
        rig.submit(CPU, flush(1)).unwrap();
        rig.submit(CPU, write(2, both)).unwrap();
        rig.settle();
        rig.complete();
        rig.settle();
        rig.complete_with(failed);
        assert_eq!(rig.ended(), [(0, OK), (1, failed), (2, failed)]);
        rig.submit(CPU, write(3, both)).unwrap();
        rig.settle();
        rig.complete();
        rig.settle();
        rig.complete_with(failed);
        assert_eq!((rig.ended(), run_dry(&mut rig)), (alloc::vec![(3, failed)], String::new()));
    }
}

#[test]
fn a_flush_the_driver_fails_at_once_ends_all_that_it_covers() {
    for mut rig in rigs(8, false) {
        rig.host.driver.answers.push_back(Accept::Failed(Status::Gone));
        rig.submit(CPU, flush(0)).unwrap();
        rig.submit(CPU, flush(1)).unwrap();
        rig.settle();
        assert_eq!(
            (rig.ended(), rig.sent_ops()),
            (alloc::vec![(0, Status::Gone)], String::from("f"))
        );
    }
}

/// A flush needs no tag of its own if requests keep theirs: it borrows the tag of its first waiter.
#[test]
fn a_flush_finds_a_tag_even_if_there_is_only_one() {
    for mut rig in rigs(1, false) {
        rig.submit(CPU, write(0, Flags::PREFLUSH | Flags::FUA)).unwrap();
        rig.settle();
        rig.host.driver.answers.push_back(Accept::Busy(crate::driver::Busy::Device));
        rig.complete();
        rig.settle();
        rig.now = rig.now + crate::hardware_queue::RETRY_DELAY;
        assert_eq!(run_dry(&mut rig), "wf", "also when refused in between");
        assert_eq!(rig.ended(), [(0, OK)]);
    }
}

#[test]
fn a_flush_given_back_undone_is_sent_again() {
    for mut rig in rigs(2, false) {
        rig.submit(CPU, flush(0)).unwrap();
        rig.settle();
        let Sent { hctx, tag, .. } = rig.host.driver.sent.pop_front().unwrap();
        rig.queue.requeue(&mut rig.host, hctx, tag, rig.now).unwrap();
        rig.check();
        assert_eq!((run_dry(&mut rig), rig.ended()), (String::from("f"), alloc::vec![(0, OK)]));
    }
}

#[test]
fn without_a_volatile_cache_nothing_is_flushed() {
    let mut rig = Rig::mq_deadline(4);
    rig.submit(CPU, flush(0)).unwrap();
    assert_eq!(rig.ended(), [(0, OK)]);
    rig.submit(CPU, write(1, Flags::PREFLUSH | Flags::FUA)).unwrap();
    assert_eq!((run_dry(&mut rig), rig.ended()), (String::from("w"), alloc::vec![(1, OK)]));
}

/// A passthrough command used to wait for flushes, because of flags that mean nothing on it, and
/// failed with them.
#[test]
fn a_passthrough_command_waits_for_no_flush() {
    for mut rig in rigs(4, false) {
        let both = Flags::PREFLUSH | Flags::FUA;
        rig.submit(CPU, Bio::new(Op::DriverOut, 0, 8, 0).with_flags(both)).unwrap();
        assert_eq!((run_dry(&mut rig), rig.ended()), (String::from("p"), alloc::vec![(0, OK)]));
    }
}
