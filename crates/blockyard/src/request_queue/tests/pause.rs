use super::*;
use crate::hardware_queue::RunStop;

fn rigs() -> [Rig; 2] {
    [Rig::none(4), Rig::mq_deadline(4)]
}

#[test]
fn a_frozen_queue_drains_and_takes_nothing_until_the_last_unfreeze() {
    for mut rig in rigs() {
        rig.queue.plug(CPU);
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.queue.freeze(&mut rig.host, rig.now);
        let next = rig.queue.next_run(&mut rig.host, rig.now).expect("what was on the plug");
        assert!(next.deferred && rig.queue.run(&mut rig.host, next.hctx, rig.now) == RunStop::Idle);
        assert_eq!(rig.host.driver.sent.len(), 1, "what was on the plug is out");
        rig.queue.freeze(&mut rig.host, rig.now);
        let late = Bio::read(64, 8, 1);
        assert_eq!(rig.submit(CPU, late), Err(SubmitError::Frozen));
        let nowait = late.with_flags(Flags::NOWAIT);
        assert_eq!(rig.submit(CPU, nowait), Err(SubmitError::WouldBlock));
        rig.queue.wait(&mut rig.host, CPU, &late, 7, rig.now).unwrap();
        rig.settle();
        rig.complete();
        assert_eq!(rig.ended(), [(0, Status::Ok)]);
        assert!(rig.queue.is_empty() && rig.queue.is_frozen());
        rig.queue.unfreeze();
        assert_eq!(
            (rig.queue.next_woken(&mut rig.host), rig.submit(CPU, late)),
            (None, Err(SubmitError::Frozen))
        );
        rig.queue.unfreeze();
        assert_eq!(
            (rig.queue.next_woken(&mut rig.host), rig.queue.next_woken(&mut rig.host)),
            (Some(7), None)
        );
        rig.submit(CPU, late).unwrap();
    }
}

#[test]
fn a_quiesced_queue_asks_for_no_poll() {
    for mut rig in rigs() {
        rig.queue.quiesce();
        rig.submit(CPU, Bio::read(64, 8, 1)).unwrap();
        rig.settle();
        assert_eq!(rig.queue.poll_at(), None);
    }
}

/// What came while the queue was quiesced goes when the last quiesce ends: every hardware queue is
/// run, by a worker ([quiesced-sends-none]).
#[test]
fn the_last_unquiesce_runs_every_hardware_queue() {
    for policies in [Policies::NONE, Policies::mq_deadline()] {
        let mut rig = Rig::new(2, 4, policies, Limits::new(CAPACITY_SECTORS));
        rig.queue.quiesce();
        rig.queue.quiesce();
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.submit(OTHER_CPU, Bio::read(64, 8, 1)).unwrap();
        rig.settle();
        rig.queue.unquiesce();
        assert_eq!((rig.settle(), rig.host.driver.sent.len()), (0, 0), "one quiesce is left");
        rig.queue.unquiesce();
        let next = rig.queue.next_run(&mut rig.host, rig.now);
        assert_eq!(next.map(|run| (run.hctx, run.deferred)), Some((H0, true)));
        let _ = rig.queue.run(&mut rig.host, H0, rig.now);
        rig.settle();
        assert_eq!(rig.host.driver.sent.len(), 2);
    }
}

fn far(cookie: u64) -> Bio {
    Bio::read(cookie * 640, 8, cookie)
}

/// Bios on a plug, in the elevator and in the driver end; waiters are woken, and their bios are
/// refused.
#[test]
fn a_drained_queue_ends_what_it_holds_and_takes_nothing_more() {
    for (mut rig, most) in [(Rig::none(4), 4), (Rig::mq_deadline(4), 8)] {
        for cookie in 1..most {
            rig.submit(CPU, far(cookie)).unwrap();
        }
        rig.queue.plug(OTHER_CPU);
        rig.submit(OTHER_CPU, far(0)).unwrap();
        let late = far(99);
        assert_eq!(rig.submit(CPU, late), Err(SubmitError::NoTag));
        rig.queue.wait(&mut rig.host, CPU, &late, 7, rig.now).unwrap();
        rig.queue.freeze(&mut rig.host, rig.now);
        rig.queue.wait(&mut rig.host, CPU, &late, 8, rig.now).unwrap();
        assert_eq!(rig.queue.next_woken(&mut rig.host), None);

        assert!(!rig.queue.drain(&mut rig.host, rig.now));
        assert_eq!(rig.host.driver.sent.len(), 4, "the driver has all tags, without another run");
        let woken = [(); 3].map(|()| rig.queue.next_woken(&mut rig.host));
        assert_eq!(woken, [Some(8), Some(7), None]);
        rig.queue.unfreeze();
        for bio in [late, late.with_flags(Flags::NOWAIT)] {
            assert_eq!(rig.submit(CPU, bio), Err(SubmitError::Draining));
        }
        rig.queue.wait(&mut rig.host, CPU, &late, 9, rig.now).unwrap();
        assert_eq!(rig.queue.next_woken(&mut rig.host), Some(9));

        let mut ended = 0;
        while !rig.queue.drain(&mut rig.host, rig.now) {
            rig.complete();
            rig.settle();
            ended += rig.ended().len();
        }
        assert_eq!((ended, rig.queue.in_flight()), (usize::try_from(most).unwrap(), 0));
    }
}

#[test]
#[should_panic(expected = "not frozen")]
fn the_freeze_of_a_drain_is_not_undone() {
    let mut rig = Rig::none(4);
    assert!(rig.queue.drain(&mut rig.host, rig.now));
    rig.queue.unfreeze();
}
