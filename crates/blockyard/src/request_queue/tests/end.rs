use super::*;

#[test]
fn a_requeued_request_goes_before_all_others() {
    for mut rig in [Rig::none(4), Rig::mq_deadline(4)] {
        for sector in [512, 1024] {
            rig.submit(CPU, Bio::read(sector, 8, 0)).unwrap();
            rig.settle();
        }
        rig.host.driver.budget = 0;
        rig.submit(CPU, Bio::read(2048, 8, 1)).unwrap();
        rig.settle();
        let Sent { hctx, tag, .. } = rig.host.driver.sent.pop_front().unwrap();
        rig.host.driver.budget = 2;
        rig.queue.requeue(&mut rig.host, hctx, tag, rig.now).unwrap();
        rig.settle();
        assert_eq!(rig.sent_sectors(), [1024, 512, 2048]);
    }
}

#[test]
fn a_tag_completes_once() {
    let mut rig = Rig::mq_deadline(4);
    rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
    rig.settle();
    let tag = rig.host.driver.sent[0].tag;
    rig.complete();
    let again = rig.queue.complete(&mut rig.host, H0, tag, Status::Ok, rig.now);
    assert_eq!(again, Err(NotInFlight));
    assert!(rig.queue.next_ended().is_some() && rig.queue.next_ended().is_none());
}

#[test]
fn two_queues_share_the_tags_until_one_has_been_empty_for_a_while() {
    let config = QueueConfig::new(1, 1, Limits::new(CAPACITY_SECTORS), Policies::NONE);
    let mut host = host(tags(1, 16, 0, 2), &config);
    let queue = |id, host: &Host<Watched>| RequestQueue::new(QueueId(id), config.clone(), host);
    let (mut one, mut other) = (queue(0, &host), queue(1, &host));
    let mut now = Instant::ZERO;
    other.submit(&mut host, CPU, Bio::read(0, 8, 0), now).unwrap();
    let tag = host.driver.sent.pop_front().unwrap().tag;
    let mut fill = |host: &mut Host<Watched>, now| {
        (0..).take_while(|at| one.submit(host, CPU, Bio::read(at * 16, 8, 0), now).is_ok()).count()
    };
    assert_eq!(fill(&mut host, now), 8, "half of the tags");

    other.complete(&mut host, H0, tag, Status::Ok, now).unwrap();
    assert_eq!(other.poll_at(), Some(now + IDLE_AFTER));
    assert_eq!((other.next_run(&mut host, now), fill(&mut host, now)), (None, 0));
    now = now + IDLE_AFTER;
    assert_eq!((other.next_run(&mut host, now), fill(&mut host, now)), (None, 8));
}
