//! Bugs that Linux's block layer had and fixed, and the rules that prevent them here.
//!
//! - 9ba52e5812e5: a stopped queue restarted before the refused request was back on its list.
//!   Lesson: run every queue to which a request may have returned. Guard: [quiesced-sends-none],
//!   `request_queue/pause.rs`. Test: [`a_restart_mark_used_up_while_quiesced_is_not_lost`].
//! - d7d8535f377e (5.9): adding to the dispatch list and testing the restart mark were not ordered.
//!   Lesson: if no completion can restart a refused request, retry it after a delay. Guard:
//!   [no-lost-wake-up], `hold_run` of `request_queue/dispatch.rs`. Test:
//!   [`a_refusal_after_the_last_completion_is_retried`].
//! - a0823421a4d7 (5.8): a hardware queue took budget without a request and returned it; queues
//!   that had failed to get budget were not woken. Lesson: a queue that cannot use its turn passes
//!   it on. Guard: [no-lost-wake-up], `run` of `request_queue/dispatch.rs`. Test:
//!   [`an_unused_turn_is_passed_on`].
//! - 01e99aeca397 (5.6): passthrough waited behind requests that were refused forever. Lesson:
//!   commands that repair the device go before requests that wait for it. Guard:
//!   [direct-requests-first], `pass_by` of `request_queue/dispatch.rs`. Test:
//!   [`flushes_and_driver_commands_go_before_a_refused_request`].
//! - the rule of 2020 for a dispatch list that fills while the elevator is emptied: flushes
//!   starved. Lesson: stop pulling when a direct request arrives. Guard: [direct-requests-first],
//!   `pull_from_elevator` and `pull_in_turn` of `request_queue/dispatch.rs`. Test:
//!   [`a_flush_that_becomes_ready_during_a_run_goes_next`].
//! - e6fc46498784 (4.19): a woken submitter moved to another hardware queue, and no submitter used
//!   the tag it was woken for. Lesson: wake more submitters in case one does not use its wake-up.
//!   Guard: [sleeper-implies-tag-in-use], `count_freed` of `tag/wait.rs`. Test:
//!   [`a_woken_submitter_that_moves_leaves_no_other_asleep`].
//! - 10825410b956 (6.3): a wake-up took four freed tags, however few tags there were. Lesson: a
//!   batch may be one tag. Guard: `batch` of `tag/wait.rs`. Test:
//!   [`with_few_tags_the_first_freed_tag_wakes_a_submitter`].
//! - 5266caaf5660 (6.8): a submitter registered just after the tag that it had missed became free.
//!   Lesson: a refusal may be out of date. Guard: [sleeper-implies-tag-in-use], `wait` of
//!   `tag/wait.rs`. Test: [`a_submitter_that_registers_after_the_last_free_is_woken`]; its
//!   reproducer,
//!   `crates/blockyard-sim/tests/forty_jobs_share_one_tag_of_each_of_four_hardware_queues.rs`.
//! - 72d04bdcf3f7 (6.11): two threads folded the word of cleared tags at once, and one found none.
//!   Lesson: fold under a lock. Guard: no counterpart: a map has one owner, frees go straight into
//!   it (`tag/mod.rs`). Test: [take-fails-only-when-full],
//!   `gives_the_lowest_free_number_like_a_set`.
//! - 6bda857bcbb8, 96a9fe64bfd4 (6.13): the test for pending work ran before the quiesce ended.
//!   Lesson: test after the end, or do not test. Guard: [quiesced-sends-none], `unquiesce` of
//!   `request_queue/pause.rs`. Test:
//!   [`the_end_of_a_quiesce_sends_requests_that_arrived_meanwhile`].
//! - each new delayed run postponed the pending one. Lesson: a pending retry keeps its instant.
//!   Guard: [no-lost-wake-up], `hold_run` of `request_queue/dispatch.rs`. Test:
//!   [`a_pending_retry_is_not_postponed`].
//! - SCSI's restart counter (5.10): taking budget failed just as a completion returned some.
//!   Lesson: a queue without budget is marked, and each completion checks the marks. Guard:
//!   [no-lost-wake-up], `hold_run` of `request_queue/dispatch.rs`. Test:
//!   [`a_completion_that_returns_budget_sends_the_waiting_request`].
//! - MMC recovery ran after its queue was removed (2025). Lesson: cancel the work before freeing
//!   what it uses. Guard: no counterpart: no code runs in the background, and a dropped queue
//!   cannot be used.

use blockyard::bio::{Bio, Flags, Op};
use blockyard::driver::{Accept, Busy, Driver, Issue};
use blockyard::hardware_queue::RETRY_DELAY;
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{Dispatch, Policies};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, CpuId, DriverTag, HctxId, QueueId};
use std::collections::VecDeque;

/// A driver that gives the test's answers and then accepts every request.
#[derive(Debug, Default)]
struct Device {
    answers: VecDeque<Accept>,
    budget: Option<u32>,
    /// The requests in flight, in order of acceptance.
    owned: Vec<(HctxId, DriverTag, Op, u64)>,
}

impl Driver for Device {
    blockyard::leaf_calls!(prepare, unprepare, commit, timed_out, finish);

    fn take_budget(&mut self, _queue: QueueId) -> Option<Budget> {
        if let Some(budget) = &mut self.budget {
            *budget = budget.checked_sub(1)?;
        }
        Some(Budget(0))
    }

    fn return_budget(&mut self, _queue: QueueId, _budget: Budget) {
        self.budget = self.budget.map(|budget| budget + 1);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = self.answers.pop_front().unwrap_or(Accept::Queued);
        if answer == Accept::Queued {
            let rq = issue.request();
            self.owned.push((issue.hctx, issue.tag, rq.op, rq.sector));
        }
        answer
    }
}

/// One disk with a volatile cache, used by one processor for each hardware queue.
struct Rig {
    host: Host<Device>,
    queue: RequestQueue,
    now: Instant,
}

const CPU: CpuId = CpuId(0);
const OTHER_CPU: CpuId = CpuId(1);
const BUSY: Accept = Accept::Busy(Busy::Device);

fn letter(op: Op) -> char {
    match op {
        Op::Read => 'r',
        Op::Write => 'w',
        Op::Flush => 'f',
        _ => 'p',
    }
}

impl Rig {
    fn new(hctxs: u16, depth: u16, policies: Policies) -> Self {
        let reserved = 0;
        let queues = 1;
        let max_waiters = 8;
        let shared_over_hctxs = false;
        let tags = TagSetConfig { hctxs, depth, reserved, shared_over_hctxs, queues, max_waiters };
        let host = Host::new(Device::default(), (), tags);
        let limits = Limits { write_cache: true, ..Limits::new(1 << 20) };
        let config = QueueConfig::new(hctxs, hctxs, limits, policies);
        let queue = RequestQueue::new(QueueId(0), config, &host);
        Self { host, queue, now: Instant::ZERO }
    }

    fn submit(&mut self, cpu: CpuId, bio: Bio) -> Result<(), SubmitError> {
        self.queue.submit(&mut self.host, cpu, bio, self.now)
    }

    /// Submits a bio, which must succeed, and runs marked hardware queues.
    fn send(&mut self, cpu: CpuId, bio: Bio) {
        self.submit(cpu, bio).expect("a tag should be free");
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..100 {
            let run = self.queue.next_run(&mut self.host, self.now).map(|run| run.hctx);
            let starved = || self.host.next_starved().map(|(_, hctx)| hctx);
            let Some(hctx) = run.or_else(starved) else { return };
            let _ = self.queue.run(&mut self.host, hctx, self.now);
            self.queue.self_check(&self.host);
        }
        panic!("runs should not cause each other endlessly");
    }

    /// The device completes its oldest request.
    fn complete(&mut self) {
        let (hctx, tag, ..) = self.host.driver.owned.remove(0);
        let done = self.queue.complete(&mut self.host, hctx, tag, Status::Ok, self.now);
        done.expect("the device should own the request");
        self.settle();
    }

    /// Returns the ops of the requests in the device: `r`, `w`, `f` for a flush, `p` for
    /// passthrough.
    fn owned(&self) -> String {
        self.host.driver.owned.iter().map(|(_, _, op, _)| letter(*op)).collect()
    }

    fn ended(&mut self) -> usize {
        core::iter::from_fn(|| self.queue.next_ended()).count()
    }

    fn wait(&mut self, cpu: CpuId, bio: &Bio, waiter: u64) {
        self.queue
            .wait(&mut self.host, cpu, bio, waiter, self.now)
            .expect("the list of waiters should have room");
    }

    fn woken(&mut self) -> Vec<u64> {
        let next = || self.queue.next_woken(&mut self.host);
        core::iter::from_fn(next).collect()
    }
}

/// Returns a read that touches no other.
fn read(cookie: u64) -> Bio {
    Bio::read(cookie * 64, 8, cookie)
}

fn write(cookie: u64) -> Bio {
    Bio::write(cookie * 64, 8, cookie)
}

fn flush(cookie: u64) -> Bio {
    Bio::new(Op::Flush, 0, 0, cookie)
}

fn designs() -> impl Iterator<Item = Policies> {
    let dispatches =
        [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::Budget];
    let with = move |base| dispatches.map(|dispatch| Policies { dispatch, ..base });
    [Policies::NONE, Policies::mq_deadline()].into_iter().flat_map(with)
}

/// A driver stopped its queue and refused a request. The completion that restarted the queue came
/// before the request was back on its list and found no request, and the queue did not run again.
/// Here the completion finds the queue quiesced and clears the restart mark without a run. The end
/// of the quiesce runs every hardware queue, whatever its marks ([quiesced-sends-none]).
#[test]
fn a_restart_mark_used_up_while_quiesced_is_not_lost() {
    for policies in designs() {
        let mut rig = Rig::new(1, 4, policies);
        rig.send(CPU, read(0));
        rig.host.driver.answers.push_back(BUSY);
        rig.send(CPU, read(1));
        rig.queue.quiesce();
        rig.complete();
        assert_eq!(rig.owned(), "", "quiesced");
        rig.queue.unquiesce();
        rig.settle();
        assert_eq!(rig.owned(), "r", "{policies:?}");
    }
}

/// A refused request was put on the dispatch list while the completion that should restart the
/// queue saw an empty list, and the mark was read before it was set. With one owner a completion
/// comes before a run or after it. If the last completion came before, none is left to act on a
/// mark, so the queue sets a retry instant ([no-lost-wake-up]).
#[test]
fn a_refusal_after_the_last_completion_is_retried() {
    for policies in designs() {
        let mut rig = Rig::new(1, 4, policies);
        rig.send(CPU, read(0));
        rig.complete();
        rig.host.driver.answers.push_back(BUSY);
        rig.send(CPU, read(1));
        assert_eq!(rig.owned(), "", "refused");
        assert_eq!(rig.queue.poll_at(), Some(rig.now + RETRY_DELAY), "{policies:?}");
        rig.now = rig.now + RETRY_DELAY;
        rig.settle();
        assert_eq!(rig.owned(), "r");
    }
}

/// One hardware queue took the last budget, found no request to send, and returned the budget.
/// Another had failed to get budget in between, and no request in flight would wake it. Here a
/// completion gives the turn to one hardware queue. The device fails that queue's request at once,
/// so the run passes the turn to the other ([no-lost-wake-up]).
#[test]
fn an_unused_turn_is_passed_on() {
    let mut rig = Rig::new(2, 4, Policies::NONE);
    rig.host.driver.budget = Some(1);
    rig.send(CPU, read(0));
    rig.send(CPU, read(1));
    rig.send(OTHER_CPU, read(2));
    assert_eq!(rig.owned(), "r", "the device should have budget for one request");
    rig.host.driver.answers.push_back(Accept::Failed(Status::Medium));
    rig.complete();
    assert_eq!(
        (rig.ended(), rig.owned().as_str()),
        (2, "r"),
        "the third read should be in the device"
    );
    rig.complete();
    assert!(rig.ended() == 1 && rig.queue.is_empty());
}

/// A device that first needed a command of its driver refused all requests before that command on
/// the dispatch list, forever. Here such commands and flushes are offered before all waiting
/// requests ([direct-requests-first]).
#[test]
fn flushes_and_driver_commands_go_before_a_refused_request() {
    for policies in designs() {
        let mut rig = Rig::new(1, 8, policies);
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Resource));
        rig.send(CPU, write(1));
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Resource));
        rig.submit(CPU, Bio::new(Op::DriverOut, 0, 0, 2)).unwrap();
        rig.settle();
        rig.submit(CPU, flush(3)).unwrap();
        rig.settle();
        assert_eq!(rig.owned(), "fpw", "{policies:?}");
    }
}

/// The elevator held so many requests that the run never returned to the dispatch list, where
/// flushes waited. Here a flush becomes ready in the middle of a run, because the device fails the
/// data that the flush waits for ([flush-waits-for-data]). The run stops pulling, and the flush
/// goes next ([direct-requests-first]).
#[test]
fn a_flush_that_becomes_ready_during_a_run_goes_next() {
    for base in [Policies::NONE, Policies::mq_deadline()] {
        let policies = Policies { dispatch: Dispatch::HoldUntilFlushed, ..base };
        let policies = Policies { dequeue: blockyard::policy::Dequeue::RoundRobin, ..policies };
        let mut rig = Rig::new(1, 16, policies);
        rig.submit(CPU, write(0).with_flags(Flags::FUA)).unwrap();
        rig.submit(CPU, flush(1)).unwrap();
        for cookie in 2..8 {
            rig.submit(CPU, write(cookie)).unwrap();
        }
        rig.host.driver.answers.push_back(Accept::Failed(Status::Medium));
        rig.settle();
        assert_eq!(rig.owned(), "fwwwwww", "{base:?}");
    }
}

/// A submitter was woken and then ran on another hardware queue. The tag that it was woken for
/// stayed free, and the other submitters slept on. Here frees that cannot fill another batch wake
/// every waiter, so it does not matter which waiter uses which tag ([sleeper-implies-tag-in-use]).
#[test]
fn a_woken_submitter_that_moves_leaves_no_other_asleep() {
    for depth in [1, 2, 3, 16] {
        let mut rig = Rig::new(2, depth, Policies::NONE);
        let cookies = (0..u64::from(depth)).collect::<Vec<_>>();
        cookies.iter().for_each(|cookie| rig.send(CPU, read(*cookie)));
        for waiter in 0..3 {
            assert_eq!(rig.submit(CPU, read(100)), Err(SubmitError::NoTag));
            rig.wait(CPU, &read(100), waiter);
        }
        let mut woken = Vec::new();
        for _ in 0..depth {
            rig.complete();
            woken.extend(rig.woken()); // and each moves to the other processor
        }
        woken.sort_unstable();
        assert_eq!(woken, [0, 1, 2], "{depth} tags");
    }
}

/// Four tags had to be freed before a submitter was woken, although few tags were in use and some
/// of them for long. Here a batch is an eighth of the tags, which may be one tag.
#[test]
fn with_few_tags_the_first_freed_tag_wakes_a_submitter() {
    for depth in 1..16 {
        let mut rig = Rig::new(1, depth, Policies::NONE);
        (0..u64::from(depth)).for_each(|cookie| rig.send(CPU, read(cookie)));
        rig.wait(CPU, &read(100), 7);
        assert_eq!(rig.woken(), [0; 0]);
        rig.complete();
        assert_eq!(rig.woken(), [7], "{depth} tags");
    }
}

/// A submitter found no tag, the last tag became free, and only then the submitter registered. With
/// no tag in use, no completion was left to wake it. Registering and retrying were not ordered.
/// Here a submitter that registers while no tag is in use is woken at once
/// ([sleeper-implies-tag-in-use]).
#[test]
fn a_submitter_that_registers_after_the_last_free_is_woken() {
    for policies in designs() {
        let mut rig = Rig::new(1, 1, policies);
        let mut taken = 0;
        while rig.submit(CPU, read(taken)).is_ok() {
            taken += 1;
        }
        rig.settle();
        while !rig.owned().is_empty() {
            rig.complete();
        }
        rig.wait(CPU, &read(100), 7);
        assert_eq!(rig.woken(), [7], "{policies:?}");
    }
}

/// The test for pending work ran before the quiesce or the stop had ended. A request that arrived
/// in between was seen neither by the test nor by its submitter. Here the end of a quiesce runs
/// every hardware queue without a test ([quiesced-sends-none]).
#[test]
fn the_end_of_a_quiesce_sends_requests_that_arrived_meanwhile() {
    for policies in designs() {
        let mut rig = Rig::new(2, 4, policies);
        rig.queue.quiesce();
        rig.queue.quiesce();
        rig.send(CPU, read(0));
        rig.send(CPU, flush(1));
        rig.queue.plug(OTHER_CPU);
        rig.send(OTHER_CPU, read(2));
        rig.queue.unplug(&mut rig.host, OTHER_CPU, rig.now);
        rig.send(OTHER_CPU, Bio::new(Op::DriverIn, 0, 8, 3));
        rig.queue.unquiesce();
        rig.settle();
        assert_eq!(rig.owned(), "", "the queue should still be quiesced");
        rig.queue.unquiesce();
        rig.settle();
        assert_eq!(rig.owned().len(), 4, "{policies:?}");
    }
}

/// Each request that a hardware queue could not send postponed the queue's delayed run, which never
/// came under steady traffic. Here a pending retry keeps its instant ([no-lost-wake-up]).
#[test]
fn a_pending_retry_is_not_postponed() {
    let mut rig = Rig::new(2, 8, Policies::NONE);
    let retry_at = rig.now + RETRY_DELAY;
    rig.host.driver.answers.push_back(Accept::Busy(Busy::Resource));
    rig.send(CPU, read(0));
    for cookie in 1..6 {
        assert_eq!(rig.queue.poll_at(), Some(retry_at), "after {cookie} requests");
        rig.now = rig.now + Duration::from_us(500);
        rig.send(CPU, read(cookie));
    }
    rig.now = retry_at;
    rig.settle();
    assert_eq!(rig.owned(), "rrrrrr");
}

/// A request found no budget while a completion was returning some, and neither saw the other. Here
/// a hardware queue without budget is marked before its run returns, and every completion checks
/// the marks ([no-lost-wake-up]).
#[test]
fn a_completion_that_returns_budget_sends_the_waiting_request() {
    for base in [Policies::NONE, Policies::mq_deadline()] {
        let mut rig = Rig::new(1, 4, base);
        rig.host.driver.budget = Some(1);
        rig.send(CPU, read(0));
        rig.send(CPU, read(1));
        assert_eq!(rig.owned(), "r", "the device should have budget for one request");
        rig.complete();
        assert_eq!(rig.owned(), "r", "{base:?}");
    }
}
