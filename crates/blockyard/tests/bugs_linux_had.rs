//! Bugs that Linux's block layer had and fixed, and what prevents them here.
//!
//! | fault in Linux | what it taught | guard here | test |
//! |---|---|---|---|
//! | 9ba52e5812e5: a stopped queue restarted before the refused request was back on its list | run again what came back meanwhile | [quiesced-sends-none], `request_queue/pause.rs` | [`a_restart_mark_used_up_while_quiesced_is_not_lost`] |
//! | d7d8535f377e (5.9): adding to the dispatch list and testing the restart mark were not ordered | a refusal with nobody left to restart it retries by itself | [no-lost-wake-up], `hold_run` of `request_queue/dispatch.rs` | [`a_refusal_after_the_last_completion_is_tried_again`] |
//! | a0823421a4d7 (5.8): budget was taken for nothing and given back, and those that had failed for want of it slept on | who cannot use a turn passes it on | [no-lost-wake-up], `run` of `request_queue/dispatch.rs` | [`a_turn_that_comes_to_nothing_is_passed_on`] |
//! | 01e99aeca397 (5.6): passthrough stood behind requests that were refused for ever | what mends the device passes what waits for it | [direct-requests-first], `pass_by` of `request_queue/dispatch.rs` | [`a_refused_request_does_not_stand_before_a_flush_or_a_command_of_the_driver`] |
//! | the rule of 2020 for a dispatch list that fills while the elevator is emptied: flushes starved | stop pulling for what has come | [direct-requests-first], `pull_from_elevator` and `pull_in_turn` of `request_queue/dispatch.rs` | [`a_flush_that_comes_up_during_a_run_goes_next`] |
//! | e6fc46498784 (4.19): a woken submitter went to another hardware queue, and nobody used the tag it was woken for | wake-ups make up for those who do not use theirs | [sleeper-implies-tag-in-use], `count_freed` of `tag/wait.rs` | [`a_woken_submitter_that_goes_elsewhere_leaves_nobody_asleep`] |
//! | 10825410b956 (6.3): four frees made a wake-up however few tags there were | a batch may be one | `batch` of `tag/wait.rs` | [`of_few_tags_the_first_freed_wakes_somebody`] |
//! | 5266caaf5660 (6.8): a submitter registered just after the tag it missed came free | a refusal may be out of date | [sleeper-implies-tag-in-use], `wait` of `tag/wait.rs` | [`a_submitter_that_registers_after_the_last_tag_came_free_is_woken`]; its reproducer, `crates/blockyard-sim/tests/forty_jobs_share_one_tag_of_each_of_four_hardware_queues.rs` |
//! | 72d04bdcf3f7 (6.11): two threads folded the word of cleared tags at once, and one found none | fold under a lock | no counterpart: a map has one owner, frees go straight into it (`tag/mod.rs`) | [take-fails-only-when-full], `gives_the_lowest_free_number_like_a_set` |
//! | 6bda857bcbb8, 96a9fe64bfd4 (6.13): the test for pending work ran before the quiesce ended | test after the end, or do not test | [quiesced-sends-none], `unquiesce` of `request_queue/pause.rs` | [`what_came_while_quiesced_is_sent_by_its_end`] |
//! | the delayed run that each new one put off | a pending retry keeps its instant | [no-lost-wake-up], `hold_run` of `request_queue/dispatch.rs` | [`a_pending_retry_is_not_put_off`] |
//! | SCSI's restart counter (5.10): budget failed just as a completion gave some back | who lacks budget is marked, and each completion looks | [no-lost-wake-up], `hold_run` of `request_queue/dispatch.rs` | [`a_request_without_budget_goes_with_the_completion_that_gives_it_back`] |
//! | MMC recovery ran after its queue was removed (2025) | cancel the work before freeing what it uses | no counterpart: nothing runs by itself, and a queue cannot be used once it is dropped | |

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

/// Gives the answers of a test, then accepts every request.
#[derive(Debug, Default)]
struct Device {
    answers: VecDeque<Accept>,
    budget: Option<u32>,
    /// In the order of acceptance.
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

impl Rig {
    fn new(hctxs: u16, depth: u16, policies: Policies) -> Self {
        let (reserved, queues, max_waiters) = (0, 1, 8);
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
        self.submit(cpu, bio).expect("there is a tag");
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
        panic!("runs go round in circles");
    }

    /// The device completes what it took first.
    fn complete(&mut self) {
        let (hctx, tag, ..) = self.host.driver.owned.remove(0);
        let done = self.queue.complete(&mut self.host, hctx, tag, Status::Ok, self.now);
        done.expect("the device owned it");
        self.settle();
    }

    /// The ops that the device owns: `r`, `w`, `f` for a flush, `p` for passthrough.
    fn owned(&self) -> String {
        let letter = |op: Op| match op {
            Op::Read => 'r',
            Op::Write => 'w',
            Op::Flush => 'f',
            _ => 'p',
        };
        self.host.driver.owned.iter().map(|(_, _, op, _)| letter(*op)).collect()
    }

    fn ended(&mut self) -> usize {
        core::iter::from_fn(|| self.queue.next_ended()).count()
    }

    fn wait(&mut self, cpu: CpuId, bio: &Bio, waiter: u64) {
        self.queue.wait(&mut self.host, cpu, bio, waiter, self.now).expect("there is room");
    }

    fn woken(&mut self) -> Vec<u64> {
        let next = || self.queue.next_woken().or_else(|| self.host.next_woken());
        core::iter::from_fn(next).collect()
    }
}

/// Reads that do not touch.
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

/// A driver stopped its queue and refused a request; the completion that started the queue again
/// came before the request was back on its list, found nothing, and nobody ran the queue later.
/// Here the completion finds the queue quiesced and so uses the restart mark up for nothing; the
/// end of the quiesce runs every hardware queue, whatever marks there are ([quiesced-sends-none]).
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

/// What was refused was put on the dispatch list while the completion that was to restart the queue
/// looked at an empty one, and the mark was read before it was set. With one owner a completion comes
/// before a run or after it. If the last one came before, none is left to honour a mark: the queue
/// names an instant at which to try again ([no-lost-wake-up]).
#[test]
fn a_refusal_after_the_last_completion_is_tried_again() {
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

/// One hardware queue took the last budget, found nothing to send, and gave it back; the other had
/// failed for want of it in between, and nothing was in flight to wake it. Here a completion gives
/// the turn to one hardware queue; as the device fails its request at once, nothing comes of the
/// turn, and the run passes it on to the other ([no-lost-wake-up]).
#[test]
fn a_turn_that_comes_to_nothing_is_passed_on() {
    let mut rig = Rig::new(2, 4, Policies::NONE);
    rig.host.driver.budget = Some(1);
    rig.send(CPU, read(0));
    rig.send(CPU, read(1));
    rig.send(OTHER_CPU, read(2));
    assert_eq!(rig.owned(), "r", "budget for one");
    rig.host.driver.answers.push_back(Accept::Failed(Status::Medium));
    rig.complete();
    assert_eq!((rig.ended(), rig.owned().as_str()), (2, "r"), "the third is on its way");
    rig.complete();
    assert!(rig.ended() == 1 && rig.queue.is_empty());
}

/// A device that needed a command of its driver before it could take anything else refused all that
/// stood before that command on the dispatch list, for ever. Here such commands, and flushes, are
/// offered before everything that waits ([direct-requests-first]).
#[test]
fn a_refused_request_does_not_stand_before_a_flush_or_a_command_of_the_driver() {
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

/// The elevator had so much to give that the run never came back to the dispatch list, on which
/// flushes had come to wait meanwhile. Here a flush comes up in the middle of a run, because the
/// device fails the data that held it back ([flush-waits-for-data]): the run stops pulling, and the flush goes next ([direct-requests-first]).
#[test]
fn a_flush_that_comes_up_during_a_run_goes_next() {
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

/// A submitter was woken, and when it ran again it belonged to another hardware queue: the tag it was
/// woken for stayed free, and the others that waited for one slept on. Here frees that cannot fill
/// another batch wake everybody, so that it does not matter who uses what ([sleeper-implies-tag-in-use]).
#[test]
fn a_woken_submitter_that_goes_elsewhere_leaves_nobody_asleep() {
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
            woken.extend(rig.woken()); // and each goes to the other processor
        }
        woken.sort_unstable();
        assert_eq!(woken, [0, 1, 2], "{depth} tags");
    }
}

/// Tags were freed one by one, and four had to be before somebody was woken, although only a few were
/// in use at all and some of those for long. Here a batch is an eighth of the tags, which may be one.
#[test]
fn of_few_tags_the_first_freed_wakes_somebody() {
    for depth in 1..16 {
        let mut rig = Rig::new(1, depth, Policies::NONE);
        (0..u64::from(depth)).for_each(|cookie| rig.send(CPU, read(cookie)));
        rig.wait(CPU, &read(100), 7);
        assert_eq!(rig.woken(), [0; 0]);
        rig.complete();
        assert_eq!(rig.woken(), [7], "{depth} tags");
    }
}

/// A submitter found no tag, the last one came free, and only then it registered: with nothing in use
/// nobody was left to wake it. Registering and trying once more were not ordered. Here who registers
/// while nothing is in use is woken at once ([sleeper-implies-tag-in-use]).
#[test]
fn a_submitter_that_registers_after_the_last_tag_came_free_is_woken() {
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

/// Whether work was pending was tested before the quiesce, or the stop, had ended: what came in
/// between was seen neither by the test nor by the one who had sent it. Here the end runs every
/// hardware queue and tests nothing ([quiesced-sends-none]).
#[test]
fn what_came_while_quiesced_is_sent_by_its_end() {
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
        assert_eq!(rig.owned(), "", "quiesced once more");
        rig.queue.unquiesce();
        rig.settle();
        assert_eq!(rig.owned().len(), 4, "{policies:?}");
    }
}

/// Each request that one hardware queue could not send put the delayed run of the whole queue off by
/// another delay, so that under steady traffic it never came. Here a pending retry keeps its instant
/// ([no-lost-wake-up]).
#[test]
fn a_pending_retry_is_not_put_off() {
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

/// A request found the device's budget used up while the completion that gave some back was on its
/// way, and neither saw the other. Here who lacks budget is marked before its run returns, and every
/// completion looks for a mark ([no-lost-wake-up]).
#[test]
fn a_request_without_budget_goes_with_the_completion_that_gives_it_back() {
    for base in [Policies::NONE, Policies::mq_deadline()] {
        let mut rig = Rig::new(1, 4, base);
        rig.host.driver.budget = Some(1);
        rig.send(CPU, read(0));
        rig.send(CPU, read(1));
        assert_eq!(rig.owned(), "r", "budget for one");
        rig.complete();
        assert_eq!(rig.owned(), "r", "{base:?}");
    }
}
