use super::*;
use alloc::vec::Vec;

const QUICK: Duration = Duration::from_ms(1);
const SLOW: Duration = Duration::from_ms(3);

fn throttle(has_write_cache: bool) -> Throttle {
    let tunables = WbtTunables { latency: Duration::from_ms(2), queue_depth: 64 };
    Throttle::new(tunables, has_write_cache, 32)
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// Ends the window that is under way, in which so many reads took `read` each, and so many writes
/// ended. Returns its end and the depth afterwards.
fn window(wbt: &mut Throttle, (reads, read): (u32, Duration), writes: u32) -> (Instant, u32) {
    let ends = wbt.window_ends();
    (0..reads).for_each(|_| wbt.sample(Op::Read, read));
    (0..writes).for_each(|_| wbt.sample(Op::Write, SLOW));
    wbt.end_window(ends, &mut VecDeque::new());
    (ends, wbt.depth.most())
}

fn enter(wbt: &mut Throttle, flags: Flags, now: Instant) -> bool {
    let admitted = wbt.admits(Class::Writeback, flags, true, now);
    if admitted {
        wbt.entered(Class::Writeback, true, now);
    }
    admitted
}

fn end(wbt: &mut Throttle, now: Instant) -> Vec<u64> {
    let mut woken = VecDeque::new();
    wbt.ended(Class::Writeback, now, &mut woken);
    woken.into()
}

/// 16 of a sync, 4 of the background, 8 of others; 4 of those within 100 ms of a read. A discard
/// has 4 places of its own. For a second after a pause all writeback has 16.
#[test]
fn each_kind_of_writeback_has_its_limit() {
    let later = ms(5_000);
    fn of(wbt: &Throttle, now: Instant) -> [u32; 4] {
        [Flags::SYNC, Flags::META, Flags::NONE, Flags::BACKGROUND]
            .map(|flags| wbt.limit(Class::Writeback, flags, now))
    }
    let mut wbt = throttle(false);
    assert_eq!(of(&wbt, later), [16, 16, 8, 4]);
    assert_eq!(wbt.limit(Class::Discard, Flags::SYNC, later), 4);
    wbt.note_read(later);
    assert_eq!(of(&wbt, later + Duration::from_ms(99)), [16, 16, 4, 4]);
    assert_eq!(of(&wbt, later + Duration::from_ms(100)), [16, 16, 8, 4]);
    wbt.note_pause(later);
    assert_eq!(of(&wbt, later + Duration::from_ms(999)), [16, 16, 16, 16]);
    assert_eq!(of(&wbt, later + Duration::from_ms(1000)), [16, 16, 8, 4]);
}

#[test]
fn only_writeback_and_discards_are_throttled() {
    assert_eq!(Class::of(Op::Write, Flags::SYNC), None, "a direct write");
    assert_eq!(Class::of(Op::Write, Flags::SYNC | Flags::WRITEBACK), Some(Class::Writeback));
    assert_eq!(Class::of(Op::Discard, Flags::SYNC), Some(Class::Discard));
    for op in [Op::Read, Op::Flush, Op::WriteZeroes, Op::SecureErase, Op::DriverOut] {
        assert_eq!(Class::of(op, Flags::WRITEBACK), None, "{op:?}");
    }
}

/// Windows of 100 ms. A target of 2 ms is missed by reads of 3 ms, so 16 become 8, and the next
/// window has 1600 / 22 = 72.727 ms, as the whole root of 2 x 256 is 22; then 4 and 1600 / 27 =
/// 59.259 ms. Fast reads undo a step. Two writes, or no read, say nothing about reads: writes alone
/// go a step up.
#[test]
fn the_fastest_read_of_a_window_moves_the_depth() {
    let mut wbt = throttle(false);
    assert_eq!(wbt.window_ends(), Instant::MAX, "nothing is throttled");
    assert!(enter(&mut wbt, Flags::BACKGROUND, ms(10)));
    assert_eq!(window(&mut wbt, (2, SLOW), 3), (ms(110), 8));
    let second = ms(110) + Duration::from_ns(72_727_272);
    assert_eq!(window(&mut wbt, (9, SLOW), 9), (second, 4));
    let third = second + Duration::from_ns(59_259_259);
    wbt.sample(Op::Read, QUICK); // one fast read of many
    assert_eq!(window(&mut wbt, (9, SLOW), 9), (third, 8));
    assert_eq!(window(&mut wbt, (9, SLOW), 2).1, 16, "too few writes: they count as alone");
    assert_eq!(window(&mut wbt, (0, SLOW), 0).1, 31, "a write is in flight");
    assert_eq!(window(&mut wbt, (1, SLOW), 3).1, 16, "back to the usual depth");
}

/// A read that has been in the device for more than a window violates the target, and after 2 ms
/// one without which no read has ended. The samples of a window do not count in the next one.
#[test]
fn a_read_that_does_not_end_lowers_the_depth() {
    let mut wbt = throttle(false);
    enter(&mut wbt, Flags::BACKGROUND, ms(0));
    wbt.issued(RequestId(7), Op::Read, ms(97));
    wbt.issued(RequestId(8), Op::Read, ms(98));
    assert_eq!(window(&mut wbt, (1, QUICK), 3), (ms(100), 31), "other reads end");
    wbt.left_driver(RequestId(8));
    assert_eq!(window(&mut wbt, (1, QUICK), 3), (ms(200), 16), "since 97 ms: 103 ms");
    wbt.left_driver(RequestId(7));
    wbt.issued(RequestId(9), Op::Read, ms(297));
    assert_eq!(window(&mut wbt, (0, QUICK), 0), (ms(300), 8), "3 ms, and no other read");
    wbt.left_driver(RequestId(9));
}

/// Five windows without anything move the depth a step towards the usual one; then there are none.
#[test]
fn a_quiet_disk_returns_to_the_usual_depth() {
    let mut wbt = throttle(false);
    enter(&mut wbt, Flags::NONE, ms(0));
    for most in [31, 48, 48] {
        assert_eq!(window(&mut wbt, (0, QUICK), 1).1, most);
    }
    end(&mut wbt, ms(400));
    for most in [48, 48, 48, 48, 31, 31, 31, 31, 31, 16] {
        assert_eq!(window(&mut wbt, (0, QUICK), 0).1, most);
    }
    assert_eq!(wbt.window_ends(), Instant::MAX);
}

/// Without a write cache half of the smallest limit, 2 places below 8, wakes as many as fit: the
/// waiters have 4 places, so none fits until 3 are in flight, and then one. A write cache makes
/// them wait until the line is empty. Somebody new stands behind those that sleep.
#[test]
fn waiters_are_woken_in_batches() {
    for (has_write_cache, first_at) in [(false, 3), (true, 0)] {
        let mut wbt = throttle(has_write_cache);
        for _ in 0..8 {
            assert!(enter(&mut wbt, Flags::NONE, ms(1)));
        }
        for waiter in 0..6 {
            assert!(!enter(&mut wbt, Flags::BACKGROUND, ms(1)));
            wbt.wait(Class::Writeback, Flags::BACKGROUND, waiter, ms(1)).unwrap();
        }
        assert!(!enter(&mut wbt, Flags::SYNC, ms(1)), "there is a place, and there are sleepers");
        let mut woken = Vec::new();
        while woken.is_empty() {
            woken = end(&mut wbt, ms(2));
        }
        assert_eq!(wbt.in_flight(Class::Writeback), first_at);
        let all: &[u64] = if has_write_cache { &[0, 1, 2, 3] } else { &[0] };
        assert_eq!(woken, all);
        for _ in all {
            assert!(enter(&mut wbt, Flags::BACKGROUND, ms(2)), "it has a place");
        }
        assert!(!enter(&mut wbt, Flags::BACKGROUND, ms(2)));
    }
}

/// Of 16 writes of syncs 3 are left, and 10 others sleep. Reads are slow, so the depth becomes 8,
/// and none of the 10 goes before the 3 have ended. At the step back to 16, all 10 go.
#[test]
fn a_step_down_wakes_nobody() {
    let mut wbt = throttle(true);
    assert!((0..16).all(|_| enter(&mut wbt, Flags::SYNC, ms(10))));
    for waiter in 0..10 {
        assert!(!enter(&mut wbt, Flags::SYNC, ms(10)));
        wbt.wait(Class::Writeback, Flags::SYNC, waiter, ms(10)).unwrap();
    }
    assert!((0..13).all(|_| end(&mut wbt, ms(20)).is_empty()));
    let mut woken = VecDeque::new();
    for (read, depth, count) in [(SLOW, 8, 0), (QUICK, 16, 10)] {
        for _ in 0..3 {
            wbt.sample(Op::Read, read);
            wbt.sample(Op::Write, SLOW);
        }
        wbt.end_window(wbt.window_ends(), &mut woken);
        assert_eq!((wbt.depth.most(), woken.len()), (depth, count));
    }
}

/// [throttled-wait-ends]: of two that sleep, the first is woken for the only place of a queue of 1
/// and does not come back; the end of the window wakes the second one.
#[test]
fn a_woken_waiter_that_does_not_come_delays_the_next_one_by_a_window() {
    let mut wbt = throttle(true);
    while wbt.depth.lower(true) {}
    assert!(enter(&mut wbt, Flags::SYNC, ms(0)));
    for waiter in [1, 2] {
        wbt.wait(Class::Writeback, Flags::SYNC, waiter, ms(0)).unwrap();
    }
    assert_eq!(end(&mut wbt, ms(1)), [1]);
    let mut woken = VecDeque::new();
    let ends = wbt.window_ends();
    assert!(ends < ms(100), "the window of the lowest step");
    wbt.end_window(ends, &mut woken);
    assert_eq!(woken, [2]);
}

/// A part of a split bio takes the only place before the waiter that was woken for it. The waiter
/// sleeps again, before the one that came after it.
#[test]
fn a_part_of_a_split_bio_goes_before_a_waiter_that_keeps_its_turn() {
    let mut wbt = throttle(false);
    while wbt.depth.lower(true) {}
    assert!(enter(&mut wbt, Flags::SYNC, ms(0)));
    for waiter in [1, 2] {
        wbt.wait(Class::Writeback, Flags::SYNC, waiter, ms(0)).unwrap();
    }
    assert_eq!(end(&mut wbt, ms(1)), [1]);
    assert!(wbt.admits(Class::Writeback, Flags::SYNC, false, ms(1)));
    wbt.entered(Class::Writeback, false, ms(1));
    assert!(!enter(&mut wbt, Flags::SYNC, ms(1)));
    wbt.wait(Class::Writeback, Flags::SYNC, 1, ms(1)).unwrap();
    assert_eq!(end(&mut wbt, ms(2)), [1]);
    assert!(enter(&mut wbt, Flags::SYNC, ms(2)));
    assert_eq!(end(&mut wbt, ms(3)), [2]);
}

#[test]
fn the_line_has_room_for_the_waiters_of_the_configuration() {
    let mut wbt = Throttle::new(WbtTunables { latency: QUICK, queue_depth: 1 }, false, 1);
    let first = wbt.wait(Class::Discard, Flags::NONE, 1, ms(0));
    assert_eq!(first, Ok(()));
    assert_eq!(wbt.wait(Class::Discard, Flags::NONE, 2, ms(0)), Err(Full));
    let mut woken = VecDeque::new();
    wbt.wake_all(&mut woken);
    assert_eq!(woken, [1]);
}
