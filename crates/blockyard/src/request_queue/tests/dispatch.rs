use super::*;
use crate::driver::Busy;
use crate::hardware_queue::{RETRY_DELAY, RunStop};
use crate::policy::{BusyTrack, Dequeue, Dispatch, ElevatorKind, KyberTunables, SchedDepth};
use crate::trace::Hold;

#[test]
fn a_refusal_with_nothing_in_flight_is_tried_again_after_a_while() {
    for mut rig in [Rig::none(4), Rig::mq_deadline(4)] {
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Device));
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.settle();
        assert_eq!(rig.host.driver.sent.len(), 0);
        assert_eq!(rig.queue.poll_at(), Some(rig.now + RETRY_DELAY));
        assert_eq!(rig.settle(), 0, "not before");
        rig.now = rig.now + RETRY_DELAY;
        rig.settle();
        assert_eq!(rig.host.driver.sent.len(), 1);
        let timeout = Some(Instant::from_ns(31_000_000_000));
        assert_eq!(rig.queue.poll_at(), timeout, "30 s, at the next whole second");
    }
}

#[test]
fn refused_requests_go_before_later_ones() {
    for mut rig in [Rig::none(4), Rig::mq_deadline(4)] {
        rig.submit(CPU, Bio::read(64, 8, 0)).unwrap();
        rig.settle();
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Device));
        rig.submit(CPU, Bio::read(128, 8, 1)).unwrap();
        rig.settle();
        rig.submit(CPU, Bio::read(32, 8, 2)).unwrap();
        rig.complete();
        rig.settle();
        assert_eq!(rig.sent_sectors(), [128, 32]);
    }
}

/// A refusal sets the busy bits of all hardware queues that share a dispatch list. One of them
/// sends the refused request; the others pull nothing until a completion.
#[test]
fn a_hardware_queue_with_the_busy_bit_pulls_nothing_until_a_completion() {
    for policies in [Policies::NONE, Policies::mq_deadline()] {
        let dispatch = Dispatch::SharedList;
        let busy = BusyTrack::Bit;
        let policies = Policies { dispatch, busy, ..policies };
        let mut rig = Rig::new(2, 4, policies, Limits::new(CAPACITY_SECTORS));
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.settle();
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Device));
        rig.submit(CPU, Bio::read(64, 8, 1)).unwrap();
        rig.settle();
        assert_eq!(rig.queue.run(&mut rig.host, HctxId(1), rig.now), RunStop::Idle);
        assert_eq!(rig.sent_sectors(), [0, 64], "the other one sends what was refused");
        rig.submit(CPU, Bio::read(128, 8, 2)).unwrap();
        let stop = rig.queue.run(&mut rig.host, H0, rig.now);
        assert_eq!(stop, RunStop::Held(Hold::Device), "{:?}", policies.elevator);
        rig.complete();
        rig.settle();
        assert_eq!(rig.sent_sectors(), [64, 128]);
    }
}

/// One refusal makes all hardware queues busy that share a dispatch list, and only the refused one
/// if each has its own. The first sends what was refused; the other is busy until a completion.
#[test]
fn a_refusal_makes_those_busy_that_share_a_dispatch_list() {
    for elevated in [Policies::NONE, Policies::mq_deadline()] {
        for (dispatch, stop) in [
            (Dispatch::SharedList, RunStop::Held(Hold::Device)),
            (Dispatch::HoldUntilFlushed, RunStop::Idle),
        ] {
            let policies = Policies { dispatch, busy: BusyTrack::Bit, ..elevated };
            let mut rig = Rig::new(2, 4, policies, Limits::new(CAPACITY_SECTORS));
            rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
            rig.settle();
            rig.host.driver.answers.push_back(Accept::Busy(Busy::Device));
            rig.submit(CPU, Bio::read(64, 8, 1)).unwrap();
            let refused = rig.queue.run(&mut rig.host, H0, rig.now);
            assert_eq!(refused, RunStop::Held(Hold::Device));
            assert_eq!(rig.queue.run(&mut rig.host, H0, rig.now), RunStop::Idle);
            assert_eq!(rig.sent_sectors(), [0, 64]);
            rig.submit(OTHER_CPU, Bio::read(128, 8, 2)).unwrap();
            let other = rig.queue.run(&mut rig.host, HctxId(1), rig.now);
            assert_eq!(other, stop, "{policies:?}");
        }
    }
}

/// Two hardware queues that wait for budget, and one request in flight.
fn two_wait_for_budget() -> Rig {
    let mut rig = Rig::new(2, 4, Policies::NONE, Limits::new(CAPACITY_SECTORS));
    rig.host.driver.budget = 1;
    rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
    rig.submit(CPU, Bio::read(64, 8, 1)).unwrap();
    rig.submit(OTHER_CPU, Bio::read(128, 8, 2)).unwrap();
    assert_eq!((rig.settle(), rig.host.driver.sent.len()), (0, 1));
    rig
}

#[test]
fn a_completion_under_budget_runs_one_hardware_queue_each_in_its_turn() {
    let mut rig = two_wait_for_budget();
    rig.complete();
    rig.settle();
    assert_eq!(rig.host.driver.sent.len(), 1, "there was room for one");
    let first = rig.host.driver.sent[0].hctx;
    rig.complete();
    rig.settle();
    assert_ne!(rig.host.driver.sent[0].hctx, first);
}

#[test]
fn a_run_that_leaves_room_passes_the_turn_on() {
    let mut rig = two_wait_for_budget();
    rig.host.driver.budget = 1; // one more than the completion gives
    rig.complete();
    rig.settle();
    assert_eq!(rig.host.driver.sent.len(), 2);
}

fn submit_read(rig: &mut Rig, cpu: u16, cookie: u64) {
    rig.submit(CpuId(cpu), Bio::read(cookie * 64, 8, cookie)).unwrap();
}

/// Eight hardware queues wait for the one token of kyber's reads. A completion runs the one whose
/// turn it is, and perhaps that of the next submitter, however many wait; each goes in its turn.
#[test]
fn a_token_is_not_sought_on_every_hardware_queue() {
    let tunables = KyberTunables { read_depth: 1, ..KyberTunables::default() };
    let policies = Policies { elevator: ElevatorKind::Kyber(tunables), ..Policies::NONE };
    let config = QueueConfig::new(8, 8, Limits::new(CAPACITY_SECTORS), policies);
    let mut rig = Rig::by(tags(8, 32, 0, 1), config);
    for cookie in 0..16 {
        submit_read(&mut rig, u16::try_from(cookie % 8).unwrap(), cookie);
        rig.settle();
    }
    assert_eq!(rig.host.driver.sent.len(), 1, "one token");
    let mut served = Vec::new();
    for cookie in 16..32 {
        served.push(rig.host.driver.sent[0].hctx.0);
        rig.complete();
        let runs = rig.settle();
        submit_read(&mut rig, 0, cookie);
        let more = rig.settle();
        assert!(runs <= 2 && more <= 2, "{runs} and {more} runs for one token");
        assert_eq!(rig.host.driver.sent.len(), 1, "no token is left over");
        rig.ended();
    }
    assert!((0..8).all(|hctx| served.contains(&hctx)), "each has its turn: {served:?}");
}

#[test]
fn a_run_held_for_lack_of_a_tag_does_not_pass_the_turn_to_itself() {
    let mut rig = Rig::mq_deadline(2);
    for at in 0..4 {
        rig.submit(CPU, Bio::read(at * 64, 8, at)).unwrap();
        rig.settle(); // ends
    }
    assert_eq!(rig.host.driver.sent.len(), 2);
    rig.complete();
    assert!(rig.settle() <= 2);
    assert_eq!(rig.sent_sectors(), [64, 128]);
}

fn abort(cookie: u64) -> Bio {
    Bio::new(Op::DriverOut, 0, 0, cookie).with_flags(Flags::RESERVED)
}

/// Reserved tags are for requests that must get through when all others are stuck. With all other
/// tags in use a passthrough command still finds one, and waits for one separately
/// ([reserved-tags-separate]).
#[test]
fn a_passthrough_command_gets_a_reserved_tag_when_all_others_are_in_use() {
    for policies in [Policies::NONE, Policies::mq_deadline()] {
        let policies = Policies { sched_depth: SchedDepth::Fixed(2), ..policies };
        let mut rig = Rig::on(tags(1, 3, 1, 1), policies, Limits::new(CAPACITY_SECTORS));
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.submit(CPU, Bio::read(64, 8, 1)).unwrap();
        assert_eq!(rig.submit(CPU, Bio::read(128, 8, 2)), Err(SubmitError::NoTag));
        rig.submit(CPU, abort(3)).unwrap();
        assert_eq!(rig.submit(CPU, abort(4)), Err(SubmitError::NoTag));
        rig.queue.wait(&mut rig.host, CPU, &abort(4), 9, rig.now).unwrap();
        rig.settle();
        assert_eq!(rig.sent_ops().matches('p').count(), 1);
        let command = rig.sent_ops().find('p').unwrap();
        rig.host.driver.sent.rotate_left(command);
        rig.host.driver.sent.rotate_left(1);
        rig.complete();
        assert_eq!(rig.queue.next_woken(&mut rig.host), None, "no reserved tag is free");
        rig.complete();
        rig.complete();
        assert_eq!(rig.queue.next_woken(&mut rig.host), Some(9));
        rig.submit(CPU, abort(4)).unwrap();
    }
}

/// A flush that found no tag used to stand before a command that had a reserved one, although the
/// command may be what frees a tag. [direct-requests-first]
#[test]
fn a_reserved_command_goes_before_a_flush_that_waits_for_a_tag() {
    let limits = Limits { write_cache: true, ..Limits::new(CAPACITY_SECTORS) };
    let mut rig = Rig::on(tags(1, 2, 1, 1), Policies::mq_deadline(), limits);
    rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
    rig.settle();
    rig.submit(CPU, Bio::new(Op::Flush, 0, 0, 1)).unwrap();
    rig.settle();
    assert_eq!(rig.sent_ops(), "r", "the only tag is in use");
    let abort = Bio::new(Op::DriverOut, 0, 0, 2).with_flags(Flags::RESERVED);
    rig.submit(CPU, abort).unwrap();
    rig.settle();
    assert_eq!(rig.sent_ops(), "rp");
}

/// Parts of a split bio used to enter the plug of their sleeping submitter as tags came free. The
/// submitter waited for one of the tags that they held, and nobody released the plug. Now only
/// parts that enter within the submitter's own call wait on its plug.
#[test]
fn the_rest_of_a_split_bio_does_not_wait_on_the_plug_of_a_sleeper() {
    let limits = Limits { max_sectors: 8, ..Limits::new(CAPACITY_SECTORS) };
    for dispatch in [Dispatch::Budget, Dispatch::HoldUntilFlushed] {
        let policies = Policies { dispatch, ..Policies::NONE };
        let mut rig = Rig::new(1, 1, policies, limits.clone());
        rig.queue.plug(CPU);
        rig.submit(CPU, Bio::write(0, 16, 0)).unwrap();
        let next = Bio::write(64, 8, 1);
        assert_eq!(rig.submit(CPU, next), Err(SubmitError::NoTag));
        rig.queue.wait(&mut rig.host, CPU, &next, 7, rig.now).unwrap();
        rig.settle();
        rig.complete();
        rig.settle();
        assert_eq!(rig.sent_sectors(), [8], "{dispatch:?}: the second part is on its way");
    }
}

/// [last-or-commit]: the device must be notified of the requests before a failure, because none may
/// follow.
#[test]
fn a_run_whose_last_request_fails_is_ended_by_a_commit() {
    for dispatch in [Dispatch::Budget, Dispatch::HoldUntilFlushed] {
        let policies = Policies { dispatch, dequeue: Dequeue::SpliceAll, ..Policies::NONE };
        let mut rig = Rig::new(1, 4, policies, Limits::new(CAPACITY_SECTORS));
        rig.host.driver.answers.extend([Accept::Queued, Accept::Failed(Status::Medium)]);
        rig.queue.plug(CPU);
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.submit(CPU, Bio::read(64, 8, 1)).unwrap();
        rig.queue.unplug(&mut rig.host, CPU, rig.now);
        rig.settle();
        assert_eq!((rig.sent_sectors(), rig.host.driver.commits), (alloc::vec![0], 1));
    }
}

#[test]
fn a_passthrough_command_bypasses_plug_elevator_and_merging() {
    for mut rig in [Rig::none(8), Rig::mq_deadline(8)] {
        rig.queue.plug(CPU);
        rig.submit(CPU, Bio::write(0, 8, 0)).unwrap();
        rig.submit(CPU, Bio::new(Op::DriverOut, 8, 8, 1)).unwrap();
        rig.submit(CPU, Bio::new(Op::DriverOut, 16, 8, 2)).unwrap();
        rig.settle();
        assert_eq!(rig.sent_ops(), "pp", "the write waits on the plug");
        rig.queue.unplug(&mut rig.host, CPU, rig.now);
        rig.settle();
        assert_eq!(rig.sent_ops(), "ppw");
    }
}

/// Two hardware queues under kyber, and one token for all writes.
fn kyber_with_one_token_for_writes() -> Rig {
    let tunables = KyberTunables { write_depth: 1, ..KyberTunables::default() };
    let policies = Policies { elevator: ElevatorKind::Kyber(tunables), ..Policies::NONE };
    Rig::new(2, 4, policies, Limits::new(CAPACITY_SECTORS))
}

#[test]
fn a_hardware_queue_without_work_of_its_own_is_idle_and_not_held() {
    let mut rig = kyber_with_one_token_for_writes();
    rig.submit(CPU, Bio::write(0, 8, 0)).unwrap();
    assert_eq!(rig.queue.run(&mut rig.host, HctxId(1), rig.now), RunStop::Idle);
    assert_eq!(rig.queue.poll_at(), None, "nothing to try again for");
    rig.settle();
    assert_eq!(rig.host.driver.sent.len(), 1);
}

#[test]
fn a_token_given_back_runs_the_hardware_queue_that_waits_for_it() {
    let mut rig = kyber_with_one_token_for_writes();
    rig.submit(CPU, Bio::write(0, 8, 0)).unwrap();
    rig.submit(OTHER_CPU, Bio::write(64, 8, 1)).unwrap();
    rig.settle();
    assert_eq!(rig.sent_sectors(), [0]);
    assert_eq!(rig.queue.run(&mut rig.host, HctxId(1), rig.now), RunStop::Held(Hold::Order));
    rig.complete();
    assert_eq!(rig.settle(), 1);
    assert_eq!(rig.sent_sectors(), [64]);
}

#[test]
fn a_request_notes_when_it_left_its_stage() {
    let spliced = Policies { dispatch: Dispatch::HoldUntilFlushed, ..Policies::NONE };
    let in_turn = Policies { dequeue: Dequeue::RoundRobin, ..spliced };
    for policies in [Policies::mq_deadline(), spliced, in_turn] {
        let mut rig = Rig::new(1, 4, policies, Limits::new(CAPACITY_SECTORS));
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.now = Instant::from_ns(500);
        rig.settle();
        let (_, id) = rig.host.tags.owner(H0, rig.host.driver.sent[0].tag).unwrap();
        let times = rig.queue.requests[id].times;
        assert_eq!((times.queued, times.scheduled), (Instant::ZERO, rig.now), "{policies:?}");
    }
}

/// Only one request that cannot go now leaves the elevator: the others can still merge.
#[test]
fn a_request_behind_one_that_lacks_a_tag_still_merges() {
    let policies = Policies { sched_depth: SchedDepth::Fixed(8), ..Policies::mq_deadline() };
    let mut rig = Rig::new(1, 1, policies, Limits::new(CAPACITY_SECTORS));
    rig.host.driver.budget = 0;
    for at in 0..3 {
        rig.submit(CPU, Bio::read(1000 * at, 8, at)).unwrap();
    }
    rig.host.driver.budget = 1000;
    let _ = rig.queue.run(&mut rig.host, H0, rig.now);
    rig.submit(CPU, Bio::read(2008, 8, 3)).unwrap();
    let mut sizes = Vec::new();
    while let Some(sent) = rig.host.driver.sent.front() {
        sizes.push(sent.sectors);
        rig.complete();
        rig.settle();
    }
    assert_eq!(sizes, [8, 8, 16]);
}

/// Stages reads that do not touch, and lets none of them go.
fn staged(mut rig: Rig, reads: &[(CpuId, u64)]) -> Rig {
    rig.queue.quiesce();
    for (cpu, sector) in reads {
        rig.submit(*cpu, Bio::read(*sector, 8, *sector)).unwrap();
    }
    rig.settle();
    rig.queue.unquiesce();
    rig
}

fn rig_of(hctxs: u16, policies: Policies) -> Rig {
    Rig::new(hctxs, 8, policies, Limits::new(CAPACITY_SECTORS))
}

/// The driver learns which request is the last of its run, and needs no commit then; a run goes to
/// one hardware queue ([last-or-commit]).
#[test]
fn the_last_request_of_a_run_is_marked_and_no_other() {
    let at_once = Policies { dequeue: Dequeue::SpliceAll, ..Policies::NONE };
    let in_turn = Policies { dequeue: Dequeue::RoundRobin, ..Policies::NONE };
    let deadline = Policies::mq_deadline();
    let one_by_one = Policies { dispatch: Dispatch::HoldUntilFlushed, ..deadline };
    let own = [(CPU, 0), (CPU, 100), (CPU, 200)];
    let mixed = [(CPU, 0), (CPU, 100), (OTHER_CPU, 200)];
    for (hctxs, policies, reads, last, commits) in [
        (1, at_once, own, [false, false, true], 0),
        (1, in_turn, own, [true; 3], 0),
        (1, deadline, own, [false, false, true], 0),
        (1, one_by_one, own, [true; 3], 0),
        (2, deadline, mixed, [false, false, true], 1),
        (2, one_by_one, mixed, [true; 3], 0),
    ] {
        let mut rig = staged(rig_of(hctxs, policies), &reads);
        assert_eq!(rig.queue.run(&mut rig.host, H0, rig.now), RunStop::Idle);
        rig.check();
        let marked: Vec<_> = rig.host.driver.sent.iter().map(|sent| sent.last).collect();
        assert_eq!((marked, rig.host.driver.commits), (last.to_vec(), commits), "{policies:?}");
    }
    // Refused at the first, the second, the last: a commit where something went before.
    for (accepted, commits) in [(0, 0), (1, 1), (2, 1)] {
        let mut rig = staged(rig_of(1, deadline), &own);
        rig.host.driver.answers.extend([Accept::Queued; 2].into_iter().take(accepted));
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Device));
        let stop = rig.queue.run(&mut rig.host, H0, rig.now);
        assert_eq!(stop, RunStop::Held(Hold::Device));
        assert_eq!((rig.host.driver.sent.len(), rig.host.driver.commits), (accepted, commits));
    }
}

/// A request that was to go directly and could not makes the hardware queue busy: requests are then
/// taken one by one, so that a refusal leaves the others where they can merge.
#[test]
fn a_direct_request_that_cannot_go_makes_its_hardware_queue_busy() {
    let refused = Accept::Busy(Busy::Device);
    let all = [(CPU, 0), (CPU, 100), (CPU, 200)];
    // Neither: all of them leave.
    let mut rig = staged(Rig::none(8), &all);
    rig.host.driver.answers.push_back(refused);
    let _ = rig.queue.run(&mut rig.host, H0, rig.now);
    assert_eq!(rig.queue.hctxs[0].dispatch.len(), 3);
    // No budget.
    let mut rig = Rig::none(8);
    rig.host.driver.budget = 0;
    for (cpu, sector) in all {
        rig.submit(cpu, Bio::read(sector, 8, sector)).unwrap();
    }
    rig.host.driver.budget = 8;
    rig.host.driver.answers.push_back(refused);
    let _ = rig.queue.run(&mut rig.host, H0, rig.now);
    assert_eq!(rig.queue.hctxs[0].dispatch.len(), 1);
    // Refused: the request goes first, and the device is busy for another run.
    let mut rig = Rig::none(8);
    rig.host.driver.answers.push_back(refused);
    for (cpu, sector) in all {
        rig.submit(cpu, Bio::read(sector, 8, sector)).unwrap();
    }
    rig.host.driver.answers.extend([Accept::Queued, refused]);
    let _ = rig.queue.run(&mut rig.host, H0, rig.now);
    assert_eq!((rig.sent_sectors(), rig.queue.hctxs[0].dispatch.len()), (alloc::vec![0], 1));
}
