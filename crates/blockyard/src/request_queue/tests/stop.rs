//! Why a run stops, what it leaves where, and what is asked for another run.

use super::*;
use crate::bio::Submitter;
use crate::driver::Busy;
use crate::hardware_queue::{RETRY_DELAY, RunStop};
use crate::policy::{
    BfqTunables, DeadlineTunables, Dequeue, Dispatch, ElevatorKind, Insertion, KyberTunables,
    Model, Plugging, SchedDepth,
};
use crate::trace::{Action, Event, Hold};

const H1: HctxId = HctxId(1);
const REFUSED: Accept = Accept::Busy(Busy::Device);

fn held_back(dequeue: Dequeue) -> Policies {
    Policies { dispatch: Dispatch::HoldUntilFlushed, dequeue, ..Policies::NONE }
}

fn rig(policies: Policies) -> Rig {
    Rig::new(1, 16, policies, Limits::new(CAPACITY_SECTORS))
}

impl Rig {
    /// Submits reads of these sectors that do not touch, and forgets which runs they ask for.
    fn stage(&mut self, cpu: CpuId, sectors: &[u64]) {
        for sector in sectors {
            self.submit(cpu, Bio::read(*sector, 8, *sector)).unwrap();
        }
        self.forget_marks();
    }

    /// The hardware queues that are marked, none of which is afterwards.
    fn forget_marks(&mut self) -> Vec<u16> {
        let marks = core::iter::from_fn(|| self.queue.next_run(&mut self.host, self.now))
            .collect::<Vec<_>>();
        marks.into_iter().map(|run| run.hctx.0).collect()
    }

    fn run(&mut self, hctx: HctxId) -> RunStop {
        let stop = self.queue.run(&mut self.host, hctx, self.now);
        self.check();
        stop
    }

    /// The requests on the dispatch list of `hctx`.
    fn refused(&self, hctx: HctxId) -> u32 {
        self.queue.hctxs[hctx.index()].dispatch.len()
    }
}

/// Device: at the next completion. Host: when the host has room. Resource: after the delay, even if
/// there are completions. With nothing in flight each is tried after the delay. [no-lost-wake-up]
#[test]
fn a_refusal_is_tried_again_when_its_reason_may_have_passed() {
    for policies in [Policies::NONE, Policies::mq_deadline()] {
        for (busy, others) in [Busy::Device, Busy::Host, Busy::Resource]
            .into_iter()
            .flat_map(|busy| [0, 1].map(|others| (busy, others)))
        {
            let mut rig = rig(policies);
            for at in 0..others {
                rig.submit(CPU, Bio::read(640 * at, 8, at)).unwrap();
                rig.settle();
            }
            rig.host.driver.answers.push_back(Accept::Busy(busy));
            rig.submit(CPU, Bio::read(64, 8, 9)).unwrap();
            rig.settle();
            assert_eq!((rig.refused(H0), rig.host.driver.sent.len() as u64), (1, others));
            let delayed = busy == Busy::Resource || others == 0;
            let next = if delayed { RETRY_DELAY } else { Duration::from_secs(30) };
            assert_eq!(rig.queue.poll_at(), Some(rig.now + next), "{busy:?}, {others} in flight");
            if others > 0 {
                rig.complete();
                let named = (rig.forget_marks().len(), rig.host.next_starved().is_some());
                let expected = (usize::from(busy == Busy::Device), busy == Busy::Host);
                assert_eq!(named, expected, "{busy:?}: marked, starved");
            }
            rig.now = rig.now + RETRY_DELAY;
            assert_eq!(rig.forget_marks().len(), usize::from(delayed), "{busy:?}: after the delay");
        }
    }
}

/// A run sends three of seven requests at a time; a worker runs the hardware queue again.
#[test]
fn a_run_sends_as_many_as_one_run_may_and_asks_for_another() {
    let in_turn = Policies { dequeue: Dequeue::RoundRobin, ..Policies::NONE };
    let one_by_one = Policies { dispatch: Dispatch::HoldUntilFlushed, ..Policies::mq_deadline() };
    let deadline = Policies::mq_deadline();
    for policies in [in_turn, held_back(Dequeue::RoundRobin), deadline, one_by_one] {
        let mut rig = rig(policies);
        rig.queue.run_batch_max = 3;
        rig.host.driver.budget = 0;
        rig.stage(CPU, &[0, 100, 200, 300, 400, 500, 600]);
        rig.host.driver.budget = 100;
        for (stop, sent) in [(RunStop::Batch, 3), (RunStop::Batch, 6), (RunStop::Idle, 7)] {
            assert_eq!((rig.run(H0), rig.host.driver.sent.len()), (stop, sent), "{policies:?}");
            let next = rig.queue.next_run(&mut rig.host, rig.now);
            let deferred = next.map(|run| run.deferred);
            assert_eq!(deferred, (stop == RunStop::Batch).then_some(true), "{policies:?}");
        }
    }
}

/// What leaves its stage can merge no more, so a device that has just refused gets one at a time
/// where the design says so. The first of three requests is refused.
#[test]
fn a_refusal_costs_others_their_place_only_while_the_device_is_not_busy() {
    let deadline = Policies::mq_deadline();
    for (policies, idle, busy) in [
        (held_back(Dequeue::SpliceAll), 3, 3),
        (held_back(Dequeue::RoundRobin), 1, 1),
        (held_back(Dequeue::ByBusy), 3, 1),
        (deadline, 3, 1),
        (Policies { dispatch: Dispatch::HoldUntilFlushed, ..deadline }, 1, 1),
        (Policies { model: Model::SingleLock, ..deadline }, 1, 1),
    ] {
        for (was_refused, taken) in [(false, idle), (true, busy)] {
            let mut rig = rig(policies);
            rig.host.driver.answers.extend(was_refused.then_some(REFUSED));
            rig.stage(CPU, &[0]);
            assert_eq!(rig.run(H0) != RunStop::Idle, was_refused);
            rig.now = rig.now + RETRY_DELAY;
            rig.settle();
            assert_eq!(rig.sent_sectors(), [0]);
            rig.stage(CPU, &[100, 200, 300]);
            rig.host.driver.answers.push_back(REFUSED);
            assert_eq!(rig.run(H0), RunStop::Held(Hold::Device));
            assert_eq!(rig.refused(H0), taken, "{policies:?}, was refused: {was_refused}");
            let taken = policies.dispatch == Dispatch::Budget;
            assert_eq!(rig.host.driver.budget, 1000 - u32::from(taken), "one is in flight");
        }
    }
}

/// A batch is no larger than a run, than the scheduler tags, than the driver tags.
#[test]
fn a_batch_is_as_large_as_a_run_and_the_tags_allow() {
    for (run_batch_max, depth, taken) in [(2, 16, 2), (100, 16, 5), (100, 2, 3)] {
        let policies = Policies { sched_depth: SchedDepth::Fixed(8), ..Policies::mq_deadline() };
        let mut rig = Rig::new(1, depth, policies, Limits::new(CAPACITY_SECTORS));
        rig.queue.run_batch_max = run_batch_max;
        rig.stage(CPU, &[0, 100, 200, 300, 400]);
        rig.host.driver.answers.push_back(REFUSED);
        assert_eq!(rig.run(H0), RunStop::Held(Hold::Device));
        assert_eq!(rig.refused(H0), taken, "{run_batch_max} a run, {depth} tags");
    }
}

/// As in Linux 4.13: a dispatch list that made no progress does not stop an elevator from giving
/// one more request; any progress does, and without an elevator nothing more is taken.
#[test]
fn drain_all_pulls_behind_a_dispatch_list_only_from_an_elevator_and_without_progress() {
    let deadline = ElevatorKind::Deadline(DeadlineTunables::default());
    for (elevator, pulled) in [(ElevatorKind::None, 0), (deadline, 1)] {
        for (answers, stop, refused) in [
            ([REFUSED; 2], Hold::Device, 2 + pulled),
            ([Accept::Queued, REFUSED], Hold::Device, 1),
            ([Accept::Queued; 2], Hold::Leftovers, 0),
        ] {
            let all_at_once = held_back(Dequeue::SpliceAll);
            let mut rig = rig(Policies { elevator, dispatch: Dispatch::DrainAll, ..all_at_once });
            rig.stage(CPU, &[0, 100]);
            for answers in [1, 2] {
                rig.host.driver.answers.extend([REFUSED; 2].into_iter().take(answers));
                assert_eq!(rig.run(H0), RunStop::Held(Hold::Device));
                rig.host.driver.answers.clear();
            }
            assert_eq!(rig.refused(H0), 2);
            rig.stage(CPU, &[200]);
            rig.host.driver.answers.extend(answers);
            assert_eq!(rig.run(H0), RunStop::Held(stop), "{answers:?}");
            assert_eq!(rig.refused(H0), refused, "{elevator:?}, {answers:?}");
        }
    }
}

/// All of the first processor, then all of the second; or one of each in turn, from run to run.
#[test]
fn software_queues_are_emptied_in_the_order_of_processors() {
    for (dequeue, run_batch_max, order) in [
        (Dequeue::SpliceAll, 100, [0, 100, 200, 300]),
        (Dequeue::RoundRobin, 100, [0, 200, 100, 300]),
        (Dequeue::RoundRobin, 1, [0, 200, 100, 300]),
        (Dequeue::RoundRobin, 3, [0, 200, 100, 300]),
    ] {
        let mut rig = rig(held_back(dequeue));
        rig.queue.run_batch_max = run_batch_max;
        rig.stage(OTHER_CPU, &[200, 300]);
        rig.stage(CPU, &[0, 100]);
        while rig.run(H0) != RunStop::Idle {}
        assert_eq!(rig.sent_sectors(), order, "{dequeue:?}, {run_batch_max} a run");
    }
}

/// With budget for just the requests that there are the run is over, not held for lack of budget.
#[test]
fn a_run_with_nothing_left_wants_no_budget() {
    for dequeue in [Dequeue::RoundRobin, Dequeue::ByBusy] {
        for policies in [Policies { dequeue, ..Policies::NONE }, Policies::mq_deadline()] {
            let mut rig = rig(policies);
            rig.host.driver.budget = 0;
            rig.stage(CPU, &[0, 100]);
            for (budget, stop) in [(1, RunStop::Held(Hold::Budget)), (1, RunStop::Idle)] {
                rig.host.driver.budget = budget;
                assert_eq!(rig.run(H0), stop, "{policies:?}");
                assert_eq!(rig.host.driver.budget, 0);
            }
        }
    }
}

/// A batch out of the elevator may hold requests of another hardware queue: each goes to the list
/// of its own, and both are tried again.
#[test]
fn a_refused_batch_holds_the_hardware_queue_of_each_of_its_requests() {
    let mut rig = Rig::new(2, 4, Policies::mq_deadline(), Limits::new(CAPACITY_SECTORS));
    rig.stage(CPU, &[0]);
    rig.stage(OTHER_CPU, &[100]);
    rig.host.driver.answers.push_back(REFUSED);
    assert_eq!(rig.run(H0), RunStop::Held(Hold::Device));
    assert_eq!([H0, H1].map(|hctx| rig.refused(hctx)), [1, 1]);
    rig.now = rig.now + RETRY_DELAY;
    assert_eq!(rig.forget_marks(), [0, 1]);
}

/// The hardware queue that lacks the tag is named when the tag comes free; the other one has
/// something left for the next completion.
#[test]
fn a_tag_that_another_hardware_queue_lacks_starves_that_one() {
    let policies = Policies { sched_depth: SchedDepth::Fixed(4), ..Policies::mq_deadline() };
    let mut rig = Rig::new(2, 1, policies, Limits::new(CAPACITY_SECTORS));
    rig.submit(OTHER_CPU, Bio::read(0, 8, 0)).unwrap();
    rig.settle();
    rig.stage(OTHER_CPU, &[100]);
    assert_eq!(rig.run(H0), RunStop::Held(Hold::Leftovers));
    assert_eq!([H0, H1].map(|hctx| rig.refused(hctx)), [0, 1]);
    assert_eq!((rig.forget_marks(), rig.host.next_starved()), (Vec::new(), None));
    rig.complete();
    assert_eq!(rig.forget_marks(), [0]);
    assert_eq!(rig.host.next_starved(), Some((QueueId(0), H1)));
    assert_eq!(rig.run(H1), RunStop::Idle);
    assert_eq!(rig.sent_sectors(), [100]);
}

fn after(answer: Option<Accept>, budget: u32, staged: bool) -> (RunStop, Vec<u16>) {
    let mut rig = Rig::new(2, 8, Policies::NONE, Limits::new(CAPACITY_SECTORS));
    rig.host.driver.budget = 1;
    rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
    for (cpu, sector) in [(CPU, 100), (OTHER_CPU, 300)] {
        rig.submit(cpu, Bio::read(sector, 8, 0)).unwrap();
    }
    rig.forget_marks();
    if !staged {
        rig.host.driver.budget = 1;
        assert_eq!(rig.run(H0), RunStop::Idle);
        rig.queue.runs.restart_on_completion(H0);
    }
    rig.complete();
    assert_eq!(rig.forget_marks(), [0], "its turn");
    rig.host.driver.budget = budget;
    rig.host.driver.answers.extend(answer);
    (rig.run(H0), rig.forget_marks())
}

/// After a completion a hardware queue with the restart mark has its turn. If what stops it is its
/// own lack, the next one is marked; if it lacks what the other would lack too, the other waits for
/// the next completion.
#[test]
fn a_turn_is_passed_on_unless_the_device_has_no_room() {
    let busy = |busy| Some(Accept::Busy(busy));
    for (answer, budget, staged, stop, passed) in [
        (None, 9, true, RunStop::Idle, true),
        (None, 9, false, RunStop::Idle, true),
        (None, 0, true, RunStop::Held(Hold::Budget), false),
        (busy(Busy::Device), 9, true, RunStop::Held(Hold::Device), false),
        (busy(Busy::Host), 9, true, RunStop::Held(Hold::Host), false),
        (busy(Busy::Resource), 9, true, RunStop::Held(Hold::Resource), true),
    ] {
        let marks = if passed { alloc::vec![1] } else { Vec::new() };
        assert_eq!(after(answer, budget, staged), (stop, marks), "{answer:?}, budget {budget}");
    }
}

/// A lone request goes to the driver immediately, unless the design stages it: for an elevator, or
/// while the device is busy if waiting may help it, because others share its hardware queue or
/// nobody waits for it.
#[test]
fn a_lone_request_is_staged_only_where_waiting_may_help() {
    let sync_write = Bio::write(100, 8, 1).with_flags(Flags::SYNC);
    for (hctxs, busy, bio, direct) in [
        (1, false, Bio::read(100, 8, 1), true),
        (1, false, Bio::write(100, 8, 1), true),
        (1, true, Bio::read(100, 8, 1), false),
        (1, true, sync_write, false),
        (1, true, Bio::write(100, 8, 1), false),
        (2, false, Bio::write(100, 8, 1), true),
        (2, true, Bio::read(100, 8, 1), true),
        (2, true, sync_write, true),
        (2, true, Bio::write(100, 8, 1), false),
    ] {
        for (policies, direct, deferred) in [
            (Policies::NONE, direct, true),
            (Policies::mq_deadline(), false, true),
            (Policies { plug: Plugging::Batches, ..held_back(Dequeue::SpliceAll) }, false, false),
        ] {
            let mut rig = Rig::new(hctxs, 8, policies, Limits::new(CAPACITY_SECTORS));
            rig.queue.hctxs[0].busy.run_ended(busy);
            rig.submit(CPU, bio).unwrap();
            let next = rig.queue.next_run(&mut rig.host, rig.now).map(|run| run.deferred);
            let expected = (usize::from(direct), (!direct).then_some(deferred));
            assert_eq!(
                (rig.host.driver.sent.len(), next),
                expected,
                "{hctxs} hardware queues, busy: {busy}, {bio:?}, {policies:?}"
            );
        }
    }
}

/// A batch of one is run by its submitter, whatever the design.
#[test]
fn the_submitter_of_a_batch_runs_the_hardware_queue_itself() {
    for policies in [Policies::mq_deadline(), held_back(Dequeue::ByBusy)] {
        let mut rig = rig(Policies { plug: Plugging::EveryBio, ..policies });
        for (plugged, bio) in [(false, Bio::read(0, 8, 0)), (true, Bio::read(100, 8, 1))] {
            if plugged {
                rig.queue.plug(CPU);
            }
            rig.submit(CPU, bio).unwrap();
            rig.queue.unplug(&mut rig.host, CPU, rig.now);
            let next = rig.queue.next_run(&mut rig.host, rig.now);
            assert_eq!(next.map(|run| (run.hctx, run.deferred)), Some((H0, false)));
            assert_eq!(rig.queue.next_run(&mut rig.host, rig.now), None);
        }
    }
}

/// Requests sent, on the dispatch list, in the software queue; hardware queues marked to run now.
fn places(prepare: fn(&mut Rig)) -> (usize, u32, u32, usize) {
    let mut rig = rig(Policies { plug: Plugging::EveryBio, ..Policies::NONE });
    prepare(&mut rig);
    rig.forget_marks();
    rig.submit(CPU, Bio::read(1000, 8, 1)).unwrap();
    let staged = rig.queue.ctxs[0].len();
    let marks = rig.forget_marks().len();
    (rig.host.driver.sent.len(), rig.refused(H0), staged, marks)
}

/// Where a second request waits that could have gone directly, and who is asked to move it.
#[test]
fn a_request_that_cannot_go_directly_waits_in_its_place() {
    assert_eq!(places(|_| ()), (1, 0, 0, 0), "directly");
    assert_eq!(places(|rig| rig.queue.quiesce()), (0, 0, 1, 0), "quiesced");
    assert_eq!(places(|rig| rig.host.driver.budget = 0), (0, 0, 1, 0), "no budget");
    let refuse = |rig: &mut Rig| rig.host.driver.answers.push_back(REFUSED);
    assert_eq!(places(refuse), (0, 1, 0, 0), "refused");
    let behind_refused = |rig: &mut Rig| {
        rig.host.driver.answers.push_back(REFUSED);
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
    };
    assert_eq!(places(behind_refused), (0, 1, 1, 0), "behind a refused one");
    let behind_staged = |rig: &mut Rig| {
        rig.host.driver.budget = 0;
        rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
        rig.host.driver.budget = 1;
    };
    assert_eq!(places(behind_staged), (0, 0, 2, 1), "behind a staged one");
    let behind_command = |rig: &mut Rig| {
        rig.submit(CPU, Bio::new(Op::DriverIn, 0, 0, 0)).unwrap();
    };
    assert_eq!(places(behind_command), (0, 0, 1, 0), "behind a command");
}

/// Notes holds: when, of which queues, and whether the event names nothing else.
#[derive(Default)]
struct Holds {
    listens: bool,
    seen: Vec<(Instant, QueueId, HctxId, Hold)>,
}

impl Sink for Holds {
    fn listens(&self) -> bool {
        self.listens
    }

    fn event(&mut self, event: &Event<'_>) {
        assert!(self.listens, "{event:?}");
        let Action::Hold(hold) = event.action else { return };
        let range = (event.sector, event.sectors, event.flags, event.cpu);
        assert_eq!(range, (0, 0, Flags::NONE, CPU), "a hold concerns no bio");
        assert!(event.request.is_none());
        self.seen.push((event.at, event.queue, event.hctx, hold));
    }
}

fn refuse(busy: Busy) -> Vec<Accept> {
    alloc::vec![Accept::Busy(busy)]
}

/// One of two hardware queues of the second queue of a host is held for each reason.
#[test]
fn each_reason_to_hold_is_reported_to_those_who_listen() {
    let deadline = Policies::mq_deadline();
    let one_write = KyberTunables { write_depth: 1, ..KyberTunables::default() };
    let kyber = Policies { elevator: ElevatorKind::Kyber(one_write), ..deadline };
    let drain_all = Policies { dispatch: Dispatch::DrainAll, ..deadline };
    let queue_id = QueueId(1);
    let now = Instant::from_ns(77);
    for (hold, policies, answers, budget) in [
        (Hold::Budget, deadline, Vec::new(), 0),
        (Hold::Tag, deadline, Vec::new(), 9),
        (Hold::Device, deadline, refuse(Busy::Device), 9),
        (Hold::Host, deadline, refuse(Busy::Host), 9),
        (Hold::Resource, deadline, refuse(Busy::Resource), 9),
        (Hold::Leftovers, drain_all, refuse(Busy::Device), 9),
        (Hold::Order, kyber, Vec::new(), 9),
        (Hold::Quiesced, deadline, Vec::new(), 9),
    ] {
        for listens in [false, true] {
            let depth = if hold == Hold::Tag { 1 } else { 8 };
            let tags = tags(2, depth, 0, 2);
            let config = QueueConfig::new(2, 2, Limits::new(CAPACITY_SECTORS), policies);
            let config = QueueConfig { max_bios: 8, ..config };
            let sink = Holds { listens, seen: Vec::new() };
            let mut host = Host::new(host(tags, &config).driver, sink, tags);
            let mut queue = RequestQueue::new(queue_id, config, &host);
            host.driver.answers.extend(answers.iter().copied());
            host.driver.budget = budget;
            for sector in [0, 100] {
                let write = Bio::write(sector, 8, sector);
                queue.submit(&mut host, OTHER_CPU, write, Instant::ZERO).unwrap();
            }
            if hold == Hold::Leftovers {
                assert_eq!(queue.run(&mut host, H1, now), RunStop::Held(Hold::Device));
                host.sink.seen.clear();
            }
            if hold == Hold::Quiesced {
                queue.quiesce();
            }
            assert_eq!(queue.run(&mut host, H1, now), RunStop::Held(hold));
            let expected = (now, queue_id, H1, hold);
            let expected = if listens { alloc::vec![expected] } else { Vec::new() };
            assert_eq!(host.sink.seen, expected, "{hold:?}, listens: {listens}");
            drop(host);
        }
    }
}

fn listed() -> Policies {
    let tunables = DeadlineTunables { insertion: Insertion::Listed, ..DeadlineTunables::default() };
    Policies { elevator: ElevatorKind::Deadline(tunables), ..Policies::NONE }
}

/// Requests at sectors 80, 0 and 8 wait in the list. While another processor has the elevator, a
/// run takes nothing, and a bio for sector 16 finds nothing to join. The next run files all four:
/// those at 8 and 16 join the one at 0, and the order is by sector. [no-lost-wake-up]
#[test]
fn a_run_files_what_is_listed_unless_the_elevator_is_taken() {
    let mut rig = rig(listed());
    rig.stage(CPU, &[80, 0, 8]);
    rig.queue.note_elevator(true);
    rig.stage(CPU, &[16]);
    assert_eq!(rig.run(H0), RunStop::Held(Hold::Order));
    assert_eq!(rig.host.driver.sent.len(), 0);
    assert_eq!(rig.queue.poll_at(), Some(rig.now + RETRY_DELAY), "nothing is in flight");
    rig.queue.note_elevator(false);
    assert_eq!(rig.run(H0), RunStop::Idle);
    let sent: Vec<_> = rig.host.driver.sent.iter().map(|of| (of.sector, of.sectors)).collect();
    assert_eq!(sent, [(0, 24), (80, 8)]);
    rig.queue.note_elevator(true);
    assert_eq!(rig.run(H0), RunStop::Idle, "nothing waits");
}

/// A run that finds the elevator taken goes again when a request of the queue completes.
#[test]
fn a_completion_runs_a_hardware_queue_that_found_the_elevator_taken() {
    let mut rig = rig(listed());
    rig.stage(CPU, &[0]);
    assert_eq!(rig.run(H0), RunStop::Idle);
    rig.queue.note_elevator(true);
    rig.stage(CPU, &[80]);
    assert_eq!(rig.run(H0), RunStop::Held(Hold::Order));
    rig.complete();
    assert_eq!(rig.forget_marks(), [0]);
}

/// In Linux 4.13, a lone synchronous bio among several hardware queues is run by its submitter, and
/// every other lone bio by a worker, with an elevator and without.
#[test]
fn who_runs_a_lone_bio_of_2017_depends_on_hardware_queues_and_not_on_the_elevator() {
    for policies in [Policies::NONE, Policies::mq_deadline()] {
        let policies = Policies { plug: Plugging::Calls, dispatch: Dispatch::DrainAll, ..policies };
        for (hctxs, bio, deferred) in [
            (1, Bio::read(0, 8, 0), true),
            (2, Bio::read(0, 8, 0), false),
            (2, Bio::write(0, 8, 0), true),
        ] {
            let mut rig = Rig::new(hctxs, 16, policies, Limits::new(CAPACITY_SECTORS));
            rig.submit(CPU, bio).unwrap();
            let run = rig.queue.next_run(&mut rig.host, rig.now).unwrap();
            assert_eq!(run.deferred, deferred, "{hctxs} {bio:?} {policies:?}");
        }
    }
}

/// Three reads of a batch do not touch. One hardware queue keeps all of them until the batch ends;
/// among several, each next one sends the one before it, so the plug has the last.
#[test]
fn a_batch_of_2017_keeps_one_request_among_several_hardware_queues() {
    let policies =
        Policies { plug: Plugging::Calls, dispatch: Dispatch::DrainAll, ..Policies::NONE };
    for (hctxs, plugged) in [(1, 3), (2, 1)] {
        let mut rig = Rig::new(hctxs, 16, policies, Limits::new(CAPACITY_SECTORS));
        rig.queue.plug(CPU);
        for sector in [0, 80, 160] {
            rig.submit(CPU, Bio::read(sector, 8, sector)).unwrap();
        }
        assert_eq!(rig.queue.plugs[CPU.index()].list.len(), plugged, "{hctxs}");
    }
}

/// Returns a disk under bfq on which reader 1 has a request in the device, by the last hardware
/// queue, and one of reader 2, by the first, waits for it.
fn two_readers(hctxs: u16) -> Rig {
    let limits = Limits { rotational: true, ..Limits::new(CAPACITY_SECTORS) };
    let tunables = BfqTunables { low_latency: false, ..BfqTunables::default() };
    let policies = Policies { elevator: ElevatorKind::Bfq(tunables), ..Policies::NONE };
    let mut rig = Rig::new(hctxs, 16, policies, limits);
    for (process, cpu, sector) in [(1, OTHER_CPU, 0), (2, CPU, 100_000)] {
        let submitter = Submitter { process, ..Submitter::NONE };
        rig.submit(cpu, Bio { submitter, ..Bio::read(sector, 8, sector) }).unwrap();
        let _ = rig.settle();
    }
    assert_eq!(rig.host.driver.sent.len(), 1, "the device is kept for reader 1");
    rig
}

/// Reader 1 of a disk ends a request at 1 ms, while one of reader 2 waits since 0 ms. The disk is
/// held for reader 1 until 9 ms. Linux injects nothing at this completion: it asks bfq again by a
/// timer of a tick, which ends with the tick after, at 8 ms. [no-lost-wake-up]
#[test]
fn a_completion_at_which_bfq_begins_to_idle_is_no_reason_to_ask_it() {
    let mut rig = two_readers(1);
    assert_eq!(rig.queue.poll_at(), Some(Instant::from_ns(8_000_000)));
    rig.now = Instant::from_ns(1_000_000);
    rig.complete();
    assert_eq!(rig.forget_marks(), [0; 0]);
    assert_eq!(rig.queue.poll_at(), Some(Instant::from_ns(8_000_000)));
    rig.now = Instant::from_ns(8_000_000);
    assert_eq!(rig.settle(), 1, "it is asked");
    let until = Instant::from_ns(9_000_000);
    assert_eq!((rig.host.driver.sent.len(), rig.queue.poll_at()), (0, Some(until)));
    rig.now = until;
    assert_eq!(rig.settle(), 1, "the wait is over");
    assert_eq!(rig.sent_sectors(), [100_000]);
}

/// The wait for reader 1 ends at 9 ms, at the instant of a completion of which bfq knows nothing.
/// Without the run that is due then, reader 2 would wait for the next one: bfq was asked at 8 ms,
/// and is asked again at 16 ms. [no-lost-wake-up]
#[test]
fn a_completion_at_the_end_of_a_wait_does_not_hide_it() {
    let mut rig = two_readers(1);
    rig.now = Instant::from_ns(1_000_000);
    rig.complete();
    rig.now = Instant::from_ns(8_000_000);
    rig.submit(CPU, Bio::new(Op::DriverIn, 0, 0, 7)).unwrap();
    assert_eq!(rig.settle(), 1);
    assert_eq!(rig.sent_ops(), "p");
    rig.now = Instant::from_ns(9_000_000);
    rig.complete();
    let _ = rig.settle();
    assert_eq!(rig.sent_sectors(), [100_000]);
}

/// The wait begins at a completion on hardware queue 1, so this one asks bfq for both at its end.
/// It gets the request of reader 2, which hardware queue 0 sends.
#[test]
fn the_hardware_queue_at_which_a_wait_began_asks_for_all() {
    let mut rig = two_readers(2);
    rig.now = Instant::from_ns(1_000_000);
    rig.complete();
    rig.now = Instant::from_ns(8_000_000);
    assert_eq!(rig.forget_marks(), [0], "where reader 2 got nothing");
    rig.now = Instant::from_ns(9_000_000);
    assert_eq!(rig.forget_marks(), [1]);
    let _ = rig.run(HctxId(1));
    assert_eq!((rig.host.driver.sent.len(), rig.host.driver.sent[0].hctx), (1, H0));
}

/// The disk is held for reader 1 until 9 ms, but reader 1 ends at 2 ms: in Linux, its queue leaves
/// service then, and the one of reader 2 is served.
#[test]
fn the_disk_is_not_held_for_a_process_that_has_ended() {
    let mut rig = two_readers(2);
    rig.now = Instant::from_ns(1_000_000);
    rig.complete();
    assert_eq!(rig.forget_marks(), [0; 0]);
    rig.now = Instant::from_ns(2_000_000);
    let unknown = Submitter { process: 3, ..Submitter::NONE };
    rig.queue.submitter_ended(OTHER_CPU, unknown, rig.now);
    assert_eq!(rig.forget_marks(), [0; 0], "nobody knows process 3");
    let reader = Submitter { process: 1, ..Submitter::NONE };
    rig.queue.submitter_ended(OTHER_CPU, reader, rig.now);
    assert_eq!(rig.settle(), 1);
    assert_eq!(rig.sent_sectors(), [100_000]);
}

/// Bfq is to be asked again at 8 ms. A resource that is missing at 1 ms may be there at 4 ms.
#[test]
fn a_missing_resource_is_tried_before_bfq_is_asked() {
    let mut rig = two_readers(1);
    assert_eq!(rig.queue.poll_at(), Some(Instant::from_ns(8_000_000)));
    rig.now = Instant::from_ns(1_000_000);
    rig.host.driver.answers.push_back(Accept::Busy(Busy::Resource));
    rig.submit(CPU, Bio::new(Op::DriverIn, 0, 0, 7)).unwrap();
    assert_eq!(rig.settle(), 1);
    assert_eq!(rig.queue.poll_at(), Some(rig.now + RETRY_DELAY));
}
