use super::*;
use crate::driver::{Busy, Finished, Outcome};
use crate::policy::{ElevatorKind, KyberTunables};

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

/// A loop that continues while there was work would sleep too early, or never.
#[test]
fn a_turn_says_whether_there_was_work() {
    let tags = TagSetConfig::single(4);
    let mut host = Host::new(crate::device::null::NullDevice::new(1, 4), (), tags);
    let config = QueueConfig::new(1, 1, Limits::new(CAPACITY_SECTORS), Policies::mq_deadline());
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    assert!(!queue.turn(&mut host, Instant::ZERO), "nothing to do");
    queue.submit(&mut host, CPU, Bio::read(0, 8, 0), Instant::ZERO).unwrap();
    assert!(queue.turn(&mut host, Instant::ZERO), "a request to dispatch and complete");
    assert!(queue.next_ended().is_some());
    assert!(!queue.turn(&mut host, Instant::ZERO), "nothing left to do");
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

fn fill(queue: &mut RequestQueue, host: &mut Host<Watched>, now: Instant) -> usize {
    (0..).take_while(|at| queue.submit(host, CPU, Bio::read(at * 16, 8, 0), now).is_ok()).count()
}

#[test]
fn two_queues_share_the_tags_until_one_has_been_empty_for_a_while() {
    let config = QueueConfig::new(1, 1, Limits::new(CAPACITY_SECTORS), Policies::NONE);
    let mut host = host(tags(1, 16, 0, 2), &config);
    let [mut one, mut other] =
        [0, 1].map(|id| RequestQueue::new(QueueId(id), config.clone(), &host));
    let mut now = Instant::ZERO;
    other.submit(&mut host, CPU, Bio::read(0, 8, 0), now).unwrap();
    let tag = host.driver.sent.pop_front().unwrap().tag;
    assert_eq!(fill(&mut one, &mut host, now), 8, "half of the tags");

    other.complete(&mut host, H0, tag, Status::Ok, now).unwrap();
    assert_eq!(other.poll_at(), Some(now + IDLE_AFTER));
    assert_eq!((other.next_run(&mut host, now), fill(&mut one, &mut host, now)), (None, 0));
    now = now + IDLE_AFTER;
    assert_eq!((other.next_run(&mut host, now), fill(&mut one, &mut host, now)), (None, 8));
    drop(host);
}

/// How each of the merged bios `sizes` ended, by cookie, with `done` sectors of all of them
/// transferred.
fn ends_of(sizes: &[u32], front: bool, done: u32) -> Vec<(u64, Status)> {
    let mut rig = Rig::mq_deadline(4);
    rig.host.driver.budget = 0;
    let mut sector = 1000;
    for (&sectors, cookie) in sizes.iter().zip(0..) {
        sector -= if front { u64::from(sectors) } else { 0 };
        rig.submit(CPU, Bio::read(sector, sectors, cookie)).unwrap();
        sector += if front { 0 } else { u64::from(sectors) };
    }
    rig.host.driver.budget = 4;
    rig.settle();
    let Sent { hctx, tag, .. } = rig.host.driver.sent.pop_front().expect("one request");
    assert!(rig.host.driver.sent.is_empty(), "they merged");
    let host = &mut rig.host;
    let now = rig.now;
    rig.queue.complete_partly(host, hctx, tag, done, Status::Medium, now).unwrap();
    core::iter::from_fn(|| rig.queue.next_ended()).map(|end| (end.bio.cookie, end.status)).collect()
}

#[test]
fn bios_within_the_transferred_part_end_well_and_those_across_its_edge_do_not() {
    for (sizes, front) in [([8, 16, 8], false), ([8, 16, 8], true), ([1, 3, 1], false)] {
        for done in 0..sizes.iter().sum() {
            let ends = ends_of(&sizes, front, done);
            let mut order: Vec<_> = sizes.iter().zip(0..).collect();
            if front {
                order.reverse();
            }
            let mut end = 0;
            let expected: Vec<_> = order
                .into_iter()
                .map(|(sectors, cookie)| {
                    end += sectors;
                    (cookie, if end <= done { Status::Ok } else { Status::Medium })
                })
                .collect();
            assert_eq!(ends, expected, "{done} sectors done");
        }
    }
}

#[test]
fn a_bio_with_one_failed_part_fails() {
    let limits = Limits { max_sectors: 8, ..Limits::new(CAPACITY_SECTORS) };
    let config = QueueConfig::new(1, 1, limits, Policies::NONE);
    let mut host = host(tags(1, 4, 0, 1), &config);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    let now = Instant::ZERO;
    queue.submit(&mut host, CPU, Bio::read(0, 16, 7), now).unwrap();
    let ended = [(3, Status::Timeout), (8, Status::Ok)].map(|(done, status)| {
        let Sent { hctx, tag, .. } = host.driver.sent.pop_front().unwrap();
        let outcome = match done {
            8 => Outcome::Done(status),
            sectors => Outcome::Partial { sectors, status },
        };
        let finished = Finished { queue: QueueId(0), hctx, tag, outcome };
        queue.conclude(&mut host, &finished, now).unwrap();
        queue.next_ended().map(|ended| ended.status)
    });
    assert_eq!(ended, [None, Some(Status::Timeout)]);
}

/// However a request leaves the driver, hardware queues that waited for it run ([no-lost-wake-up]).
#[test]
fn a_request_that_the_driver_gives_back_restarts_those_who_wait() {
    for outcome in [Outcome::Done(Status::Ok), Outcome::Again, Outcome::AgainPrepared] {
        let policies = Policies { dispatch: Dispatch::HoldUntilFlushed, ..Policies::NONE };
        let mut rig = Rig::new(2, 4, policies, Limits::new(CAPACITY_SECTORS));
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.settle();
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Device));
        rig.submit(OTHER_CPU, Bio::read(64, 8, 1)).unwrap();
        assert!(rig.settle() > 0 && rig.sent_sectors() == [0], "the second waits");
        rig.host.driver.timeouts.push_back(TimedOut::Ended(outcome));
        rig.now = rig.now + Duration::from_secs(31);
        rig.settle();
        assert!(rig.sent_sectors().contains(&64), "{outcome:?}: {:?}", rig.sent_sectors());
    }
}

/// A request given back prepared has left the elevator for good, and its token is free; one given
/// back undone goes through the elevator again, which withholds the other write.
#[test]
fn a_request_given_back_prepared_holds_no_token_of_the_elevator() {
    for (outcome, sent) in [(Outcome::AgainPrepared, &[0, 64][..]), (Outcome::Again, &[0])] {
        let one_write = KyberTunables { write_depth: 1, ..KyberTunables::default() };
        let policies = Policies { elevator: ElevatorKind::Kyber(one_write), ..Policies::NONE };
        let mut rig = Rig::new(1, 4, policies, Limits::new(CAPACITY_SECTORS));
        rig.submit(CPU, Bio::write(0, 8, 0)).unwrap();
        rig.submit(CPU, Bio::write(64, 8, 1)).unwrap();
        rig.settle();
        assert_eq!(rig.sent_sectors(), [0]);
        rig.host.driver.timeouts.push_back(TimedOut::Ended(outcome));
        rig.now = rig.now + Duration::from_secs(31);
        rig.settle();
        assert_eq!(rig.sent_sectors(), sent, "{outcome:?}");
        while !rig.host.driver.sent.is_empty() {
            rig.complete();
            rig.settle();
        }
        assert_eq!(rig.ended(), [(0, Status::Ok), (1, Status::Ok)]);
    }
}
