//! Two queues of one host, and the tags they share.

use super::*;
use crate::device::null::NullDevice;
use crate::driver::Device;

/// Two queues under `policies` on a host of 8 tags, `reserved` of them reserved.
fn pair(reserved: u16, policies: Policies) -> (Host<Watched>, [RequestQueue; 2]) {
    let tags = tags(1, 8, reserved, 2);
    let usual = QueueConfig::new(2, 1, Limits::new(CAPACITY_SECTORS), policies);
    let config = QueueConfig { max_bios: 64, ..usual };
    let host = host(tags, &config);
    let queues = [0, 1].map(|at| RequestQueue::new(QueueId(at), config.clone(), &host));
    (host, queues)
}

fn settle(host: &mut Host<Watched>, queue: &mut RequestQueue, now: Instant) {
    while let Some(run) = queue.next_run(host, now) {
        let _ = queue.run(host, run.hctx, now);
    }
}

/// Submits writes that do not touch, as many as the queue takes of 8.
fn fill(host: &mut Host<Watched>, queue: &mut RequestQueue, now: Instant) -> usize {
    let writes = (0..8).map(|cookie| Bio::write(cookie * 640, 8, cookie));
    writes.filter(|write| queue.submit(host, CPU, *write, now).is_ok()).count()
}

/// Polls both queues whenever they ask for it, for hours.
fn wait_for_hours(host: &mut Host<Watched>, queues: &mut [RequestQueue; 2]) -> Instant {
    let end = Instant::ZERO + Duration::from_secs(7200);
    for queue in queues {
        while let Some(at) = queue.poll_at().filter(|at| *at < end) {
            settle(host, queue, at);
        }
    }
    end
}

/// A queue that asks for a tag shares the tags, even if it gets none. One that was refused and
/// never came back used to be counted for ever. [tags-shared-fairly]
#[test]
fn a_queue_that_was_refused_and_left_shares_no_more_after_a_while() {
    let (mut host, mut queues) = pair(0, Policies::NONE);
    assert_eq!(fill(&mut host, &mut queues[0], Instant::ZERO), 8);
    let nowait = Bio::write(0, 8, 99).with_flags(Flags::NOWAIT);
    let refused = queues[1].submit(&mut host, CPU, nowait, Instant::ZERO);
    assert_eq!(refused, Err(SubmitError::WouldBlock));
    while let Some(Sent { hctx, tag, .. }) = host.driver.sent.pop_front() {
        queues[0].complete(&mut host, hctx, tag, Status::Ok, Instant::ZERO).unwrap();
    }
    while queues[0].next_ended().is_some() {}
    let now = wait_for_hours(&mut host, &mut queues);
    assert_eq!(fill(&mut host, &mut queues[0], now), 8, "the other queue has nothing");
    drop(host);
}

/// Only completions used to notice that a queue had become empty; one whose last request the driver
/// failed immediately kept its share.
#[test]
fn a_queue_whose_last_request_failed_at_once_shares_no_more_after_a_while() {
    let (mut host, mut queues) = pair(0, Policies::NONE);
    host.driver.answers.push_back(Accept::Failed(Status::IoError));
    queues[1].submit(&mut host, CPU, Bio::write(0, 8, 99), Instant::ZERO).unwrap();
    settle(&mut host, &mut queues[1], Instant::ZERO);
    assert_eq!(queues[1].next_ended().map(|ended| ended.status), Some(Status::IoError));
    let now = wait_for_hours(&mut host, &mut queues);
    assert_eq!(fill(&mut host, &mut queues[0], now), 8, "the other queue has nothing");
    drop(host);
}

/// A reserved command used to wait for the only reserved tag, held by another queue, before reads
/// and flushes that need none. Now it steps aside ([direct-requests-first]), and goes when the tag
/// comes free.
#[test]
fn a_request_without_a_reserved_tag_does_not_stop_the_others() {
    let (mut host, mut queues) = pair(1, Policies::mq_deadline());
    let now = Instant::ZERO;
    for queue in &mut queues {
        let command = Bio::new(Op::DriverIn, 0, 0, 7).with_flags(Flags::RESERVED);
        queue.submit(&mut host, CPU, command, now).unwrap();
        settle(&mut host, queue, now);
    }
    assert_eq!(host.driver.sent.len(), 1, "one reserved tag");
    let plain = Bio::new(Op::DriverIn, 0, 0, 8);
    queues[1].submit(&mut host, CPU, plain, now).unwrap();
    queues[1].submit(&mut host, CPU, Bio::read(0, 8, 9), now).unwrap();
    settle(&mut host, &mut queues[1], now);
    queues[1].self_check(&host);
    assert_eq!(host.driver.sent.len(), 3, "seven tags are free");
    let Sent { hctx, tag, .. } = host.driver.sent.pop_front().unwrap();
    queues[0].complete(&mut host, hctx, tag, Status::Ok, now).unwrap();
    let (queue, hctx) = host.next_starved().unwrap();
    assert_eq!(queue, QueueId(1));
    let _ = queues[1].run(&mut host, hctx, now);
    assert_eq!(host.driver.sent.len(), 3, "the second command is on its way");
    drop(host);
}

/// A tag that another queue gave back is for the split bio that waits for one, not for a bio that
/// comes before its run. Bios that need another kind of tag do not wait.
#[test]
fn a_split_bio_gets_the_next_tag_before_later_bios() {
    let tags = TagSetConfig { queues: 2, ..tags(2, 5, 1, 2) };
    let limits = Limits { max_sectors: 8, ..Limits::new(CAPACITY_SECTORS) };
    let usual = QueueConfig::new(2, 2, limits, Policies::NONE);
    let config = QueueConfig { max_bios: 64, ..usual };
    let mut host = host(tags, &config);
    let mut queues = [0, 1].map(|at| RequestQueue::new(QueueId(at), config.clone(), &host));
    let now = Instant::ZERO;
    for cookie in 0..3 {
        queues[1].submit(&mut host, CPU, Bio::read(cookie * 640, 8, cookie), now).unwrap();
    }
    queues[0].submit(&mut host, CPU, Bio::read(0, 64, 2), now).unwrap();
    assert_eq!(queues[0].in_flight(), 1, "the last of four tags");
    let Sent { hctx, tag, .. } = host.driver.sent.pop_front().unwrap();
    queues[1].complete(&mut host, hctx, tag, Status::Ok, now).unwrap();
    let late = Bio::read(6400, 8, 3);
    assert_eq!(queues[0].submit(&mut host, CPU, late, now), Err(SubmitError::NoTag));
    queues[0].submit(&mut host, CPU, late.with_flags(Flags::RESERVED), now).unwrap();
    queues[0].submit(&mut host, OTHER_CPU, late, now).unwrap();
    let (queue, hctx) = host.next_starved().unwrap();
    assert_eq!((queue, hctx), (QueueId(0), H0));
    let _ = queues[0].run(&mut host, hctx, now);
    let reads = |sent: &&Sent| sent.sector == 8 && sent.hctx == H0;
    assert_eq!(host.driver.sent.iter().filter(reads).count(), 1, "the second part has it");
    drop(host);
}

/// Waiters used to be named by the queue if it had an elevator, and by the host if not. A caller
/// that forgot one of the two hung.
#[test]
fn one_call_names_its_own_waiters_and_those_of_the_host() {
    let tags = tags(1, 1, 0, 2);
    let mut host = Host::new(NullDevice::new(1, 1), (), tags);
    let designs = [(0, Policies::mq_deadline()), (1, Policies::NONE)];
    let [mut sorted, mut plain] = designs.map(|(at, policies)| {
        let config = QueueConfig::new(1, 1, Limits::new(CAPACITY_SECTORS), policies);
        RequestQueue::new(QueueId(at), config, &host)
    });
    let now = Instant::ZERO;
    let bio = Bio::read(0, 8, 0);
    sorted.submit(&mut host, CPU, bio, now).unwrap();
    let run = sorted.next_run(&mut host, now).expect("a run sends the read");
    let _ = sorted.run(&mut host, run.hctx, now);
    assert_eq!(plain.submit(&mut host, CPU, bio, now), Err(SubmitError::NoTag));
    plain.wait(&mut host, CPU, &bio, 7, now).unwrap();
    sorted.freeze(&mut host, now);
    assert_eq!(sorted.submit(&mut host, CPU, bio, now), Err(SubmitError::Frozen));
    sorted.wait(&mut host, CPU, &bio, 8, now).unwrap();
    assert_eq!(sorted.next_woken(&mut host), None);
    let finished = host.driver.next_finished(now).expect("the read has finished");
    sorted.conclude(&mut host, &finished, now).unwrap();
    sorted.unfreeze();
    assert_eq!([(); 3].map(|()| sorted.next_woken(&mut host)), [Some(8), Some(7), None]);
    assert_eq!(plain.next_woken(&mut host), None);
}
