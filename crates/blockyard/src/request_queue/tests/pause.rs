use super::*;

fn rigs() -> [Rig; 2] {
    [Rig::none(4), Rig::mq_deadline(4)]
}

#[test]
fn a_frozen_queue_drains_and_takes_nothing_until_the_last_unfreeze() {
    for mut rig in rigs() {
        rig.queue.plug(CPU);
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.queue.freeze(&mut rig.host, rig.now);
        rig.queue.freeze(&mut rig.host, rig.now);
        let late = Bio::read(64, 8, 1);
        assert_eq!(rig.submit(CPU, late), Err(SubmitError::Frozen));
        let nowait = late.with_flags(Flags::NOWAIT);
        assert_eq!(rig.submit(CPU, nowait), Err(SubmitError::WouldBlock));
        rig.queue.wait(&mut rig.host, CPU, &late, 7, rig.now).unwrap();
        rig.settle();
        rig.complete();
        assert_eq!(rig.ended(), [(0, Status::Ok)], "what was on the plug is out");
        assert!(rig.queue.is_empty() && rig.queue.is_frozen());
        rig.queue.unfreeze();
        assert_eq!(
            (rig.queue.next_woken(), rig.submit(CPU, late)),
            (None, Err(SubmitError::Frozen))
        );
        rig.queue.unfreeze();
        assert_eq!((rig.queue.next_woken(), rig.queue.next_woken()), (Some(7), None));
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
