//! Wake-ups that block layers once lost, and all orders of events in a small space.
//!
//! Each test covers a fault of Linux (facts 3.5) or a fault of Blockyard that the swarm found. The
//! test's name states the correct behaviour.

use blockyard::bio::{Bio, IoPrio, Op, PrioClass};
use blockyard::driver::{Accept, Busy, Driver, Issue};
use blockyard::hardware_queue::{QueueMap, RETRY_DELAY};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{BusyTrack, Dispatch, Policies};
use blockyard::prng::Prng;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{Budget, CpuId, DriverTag, HctxId, QueueId};
use std::collections::{BTreeSet, VecDeque};

/// A device with scripted answers. After the last one it answers `Queued`.
#[derive(Debug, Default)]
struct Scripted {
    answers: VecDeque<Accept>,
    budget: Option<u32>,
    taken: u32,
    /// The largest number of commands of all queues together.
    host_depth: Option<usize>,
    owned: Vec<(QueueId, HctxId, DriverTag)>,
    /// First sectors in the order in which they were accepted.
    order: Vec<u64>,
}

impl Driver for Scripted {
    blockyard::leaf_calls!(prepare, unprepare, commit, timed_out, finish);

    fn take_budget(&mut self, _queue: QueueId) -> Option<Budget> {
        let free = self.budget.is_none_or(|budget| self.taken < budget);
        self.taken += u32::from(free);
        free.then_some(Budget(0))
    }

    fn return_budget(&mut self, _queue: QueueId, _budget: Budget) {
        self.taken -= 1;
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        if self.host_depth.is_some_and(|depth| self.owned.len() >= depth) {
            return Accept::Busy(Busy::Host);
        }
        let answer = self.answers.pop_front().unwrap_or(Accept::Queued);
        if answer == Accept::Queued {
            self.owned.push((issue.queue, issue.hctx, issue.tag));
            self.order.push(issue.request().sector);
        }
        answer
    }
}

/// A host, its queues, and the bios that ended.
struct Rig {
    host: Host<Scripted>,
    queues: Vec<RequestQueue>,
    now: Instant,
    ended: Vec<(u64, Status)>,
    woken: Vec<u64>,
}

const NOW: Instant = Instant::from_ns(1_000);

impl Rig {
    fn new(hctxs: u16, depth: u16, queues: u16, policies: Policies, limits: Limits) -> Self {
        let tags = TagSetConfig {
            hctxs,
            depth,
            reserved: 0,
            shared_over_hctxs: false,
            queues,
            max_waiters: 64,
        };
        let host = Host::new(Scripted::default(), (), tags);
        let config = QueueConfig {
            map: QueueMap::even(hctxs, hctxs),
            ..QueueConfig::new(hctxs, hctxs, limits, policies)
        };
        let queues =
            (0..queues).map(|id| RequestQueue::new(QueueId(id), config.clone(), &host)).collect();
        Self { host, queues, now: NOW, ended: Vec::new(), woken: Vec::new() }
    }

    fn submit(&mut self, queue: usize, cpu: u16, bio: Bio) -> Result<(), SubmitError> {
        self.queues[queue].submit(&mut self.host, CpuId(cpu), bio, self.now)
    }

    /// Does the work that calls have left, in at most a thousand runs.
    fn settle(&mut self) {
        for _ in 0..1000 {
            let mut runs = Vec::new();
            for queue in &mut self.queues {
                while let Some(run) = queue.next_run(&mut self.host, self.now) {
                    runs.push((queue.id(), run.hctx));
                }
                while let Some(ended) = queue.next_ended() {
                    self.ended.push((ended.bio.cookie, ended.status));
                }
                self.woken.extend(core::iter::from_fn(|| queue.next_woken(&mut self.host)));
            }
            runs.extend(self.host.next_starved());
            if runs.is_empty() {
                return;
            }
            for (queue, hctx) in runs {
                let _ = self.queues[queue.index()].run(&mut self.host, hctx, self.now);
            }
        }
        panic!("runs lead to further runs without end");
    }

    fn complete(&mut self, at: usize) {
        let (queue, hctx, tag) = self.host.driver.owned.remove(at);
        self.queues[queue.index()]
            .complete(&mut self.host, hctx, tag, Status::Ok, self.now)
            .expect("the driver should own the request of a tag");
        self.settle();
    }

    fn complete_all(&mut self) {
        while !self.host.driver.owned.is_empty() {
            self.complete(0);
        }
    }
}

/// The limits of a disk. A bio that is issued directly and refused is offered once more by the next
/// run.
fn disk() -> Limits {
    Limits::new(1 << 20)
}

fn bare(dispatch: Dispatch) -> Policies {
    Policies { dispatch, ..Policies::NONE }
}

/// A refusal crossed the completion that frees the device: the device refused while its last
/// command was ending.
#[test]
fn a_completion_retries_the_request_that_was_refused_before_it() {
    for dispatch in [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::Budget] {
        let mut rig = Rig::new(1, 4, 1, bare(dispatch), disk());
        rig.submit(0, 0, Bio::read(0, 8, 1)).unwrap();
        rig.settle();
        rig.host.driver.answers.push_back(Accept::Busy(Busy::Device));
        rig.submit(0, 0, Bio::read(80, 8, 2)).unwrap();
        rig.settle();
        assert_eq!(rig.queues[0].in_flight(), 1);
        rig.complete_all();
        assert_eq!(rig.ended.len(), 2, "{dispatch:?}");
    }
}

/// With no request in flight, no completion will run the queue, so the queue has a retry instant.
#[test]
fn a_refused_queue_with_nothing_in_flight_is_retried_at_its_poll() {
    for busy in [Busy::Device, Busy::Host, Busy::Resource] {
        let mut rig = Rig::new(1, 4, 1, Policies::NONE, disk());
        rig.host.driver.answers.push_back(Accept::Busy(busy));
        rig.submit(0, 0, Bio::read(0, 8, 1)).unwrap();
        rig.settle();
        assert_eq!(rig.queues[0].poll_at(), Some(NOW + RETRY_DELAY), "{busy:?}");
        rig.now = NOW + RETRY_DELAY;
        rig.settle();
        rig.complete_all();
        assert_eq!(rig.ended, [(1, Status::Ok)]);
    }
}

/// Found by the swarm: under budget, a run that was refused as busy passed its turn on to itself at
/// the same instant, for as long as the device was full.
#[test]
fn a_full_device_is_not_offered_requests_over_and_over() {
    let mut rig = Rig::new(2, 8, 1, Policies::NONE, disk());
    rig.submit(0, 0, Bio::read(0, 8, 0)).unwrap();
    rig.settle();
    rig.host.driver.answers.extend([Accept::Busy(Busy::Device); 20]);
    for cookie in 1..5 {
        rig.submit(0, u16::from(cookie % 2 == 0), Bio::read(80 * cookie, 8, cookie)).unwrap();
        rig.settle();
    }
    let asked = 20 - rig.host.driver.answers.len();
    assert!(asked <= 8, "asked {asked} times for 4 submissions");
    rig.host.driver.answers.clear();
    rig.complete_all();
    assert_eq!(rig.ended.len(), 5);
}

/// Found by the swarm: mq-deadline holds a lower class back while a higher one is in flight. The
/// run that found no request ended as idle, and the completion ran no queue.
#[test]
fn a_lower_class_goes_when_the_higher_one_has_completed() {
    let mut rig = Rig::new(1, 8, 1, Policies::mq_deadline(), disk());
    fn prio(class: PrioClass) -> IoPrio {
        IoPrio { class, level: 0 }
    }
    rig.submit(0, 0, Bio::read(0, 8, 1).with_prio(prio(PrioClass::RealTime))).unwrap();
    rig.settle();
    rig.submit(0, 0, Bio::read(80, 8, 2).with_prio(prio(PrioClass::Idle))).unwrap();
    rig.settle();
    assert_eq!(rig.host.driver.order, [0], "held back");
    rig.complete_all();
    assert_eq!(rig.host.driver.order, [0, 80]);
}

/// Found by the swarm: a split bio waited for a tag, and the driver failed the request ahead of it
/// at once. That freed the tag without a completion, and the rest of the bio never entered.
#[test]
fn a_split_bio_continues_when_its_first_part_fails_at_once() {
    let limits = Limits { max_sectors: 8, ..disk() };
    let mut rig = Rig::new(1, 1, 1, bare(Dispatch::HoldUntilFlushed), limits);
    rig.host.driver.answers.push_back(Accept::Failed(Status::Medium));
    rig.submit(0, 0, Bio::write(0, 24, 7)).unwrap();
    rig.settle();
    rig.complete_all();
    assert_eq!(rig.ended, [(7, Status::Medium)]);
}

/// Found by the swarm: all queues that waited for the host ran at each completion. The first queue
/// took the room, its next request was refused before those of the others, and so it came first
/// again.
#[test]
fn queues_that_wait_for_a_full_host_take_turns() {
    for policies in [Policies::NONE, Policies::mq_deadline(), bare(Dispatch::HoldUntilFlushed)] {
        let mut rig = Rig::new(1, 16, 3, policies, disk());
        rig.host.driver.host_depth = Some(1);
        for queue in 0..3 {
            for at in 0..4 {
                rig.submit(queue, 0, Bio::read(1000 * queue as u64 + 80 * at, 8, 0)).unwrap();
                rig.settle();
            }
        }
        rig.complete_all();
        let queues: Vec<_> = rig.host.driver.order.iter().map(|sector| sector / 1000).collect();
        let [first, second] =
            [1, 2].map(|queue| queues.iter().position(|other| *other == queue).unwrap());
        assert!(first <= 2 && second <= 3, "{queues:?} with {policies:?}");
        assert_eq!(rig.ended.len(), 12);
    }
}

/// Linux 5266caaf5660: a waiter was added while its tag came free, at depth 1 with four hardware
/// queues and forty jobs of random 4 KiB reads and writes. The system hung within half an hour.
#[test]
fn forty_submitters_share_one_tag_of_each_of_four_hardware_queues() {
    for policies in [Policies::NONE, Policies::mq_deadline(), bare(Dispatch::SharedList)] {
        let mut rig = Rig::new(4, 1, 1, policies, disk());
        let mut prng = Prng::new(1);
        let mut left = [200_u32; 40];
        let mut ready: BTreeSet<u64> = (0..40).collect();
        while left.iter().any(|left| *left > 0) || !rig.host.driver.owned.is_empty() {
            let owned = rig.host.driver.owned.len() as u64;
            assert!(owned > 0 || !ready.is_empty(), "all submitters wait: {policies:?}");
            let pick = prng.below(owned + ready.len() as u64);
            if pick < owned {
                rig.complete(usize::try_from(pick).unwrap());
            } else {
                let thread = *ready.iter().nth(usize::try_from(pick - owned).unwrap()).unwrap();
                ready.remove(&thread);
                step(&mut rig, &mut prng, &mut left, thread);
            }
            ready.extend(rig.woken.drain(..));
            let ended = rig.ended.drain(..).map(|(thread, _)| thread);
            ready.extend(ended.filter(|thread| left[usize::try_from(*thread).unwrap()] > 0));
        }
        assert!(rig.queues[0].is_empty(), "{policies:?}");
    }
}

/// Lets one of the forty threads submit, or register for a tag.
fn step(rig: &mut Rig, prng: &mut Prng, left: &mut [u32; 40], thread: u64) {
    let op = if prng.below(2) == 0 { Op::Read } else { Op::Write };
    let bio = Bio::new(op, 8 * prng.below(1 << 16), 8, thread);
    let cpu = u16::try_from(thread % 4).unwrap();
    match rig.submit(0, cpu, bio) {
        Ok(()) => left[usize::try_from(thread).unwrap()] -= 1,
        Err(SubmitError::NoTag) => {
            rig.queues[0].wait(&mut rig.host, CpuId(cpu), &bio, thread, rig.now).unwrap();
        }
        Err(refused) => panic!("{refused}"),
    }
    rig.settle();
}

/// A possible next step in the small space.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Submit,
    Run(usize),
    Complete(usize),
}

/// A world with one tag for each of two hardware queues, three bios, and runs of hardware queues at
/// any later step. It is rebuilt for each order, since queues cannot be cloned.
struct Small {
    rig: Rig,
    left: VecDeque<(u16, Bio)>,
    waiting: VecDeque<(u16, Bio)>,
    to_run: Vec<HctxId>,
}

impl Small {
    fn new(policies: Policies, refusal: Option<Busy>) -> Self {
        let mut rig = Rig::new(2, 1, 1, policies, disk());
        rig.host.driver.budget = Some(1);
        rig.host.driver.answers.extend(refusal.map(Accept::Busy));
        let bios = [(0, Bio::read(0, 8, 0)), (1, Bio::write(64, 8, 1)), (0, Bio::write(128, 8, 2))];
        let left = bios.into();
        let waiting = VecDeque::new();
        Self { rig, left, waiting, to_run: Vec::new() }
    }

    fn steps(&self) -> Vec<Step> {
        let submits = (!self.left.is_empty()).then_some(Step::Submit);
        let runs = (0..self.to_run.len()).map(Step::Run);
        let completions = (0..self.rig.host.driver.owned.len()).map(Step::Complete);
        submits.into_iter().chain(runs).chain(completions).collect()
    }

    fn take(&mut self, step: Step) {
        let rig = &mut self.rig;
        match step {
            Step::Submit => {
                let (cpu, bio) = self.left.pop_front().unwrap();
                if rig.submit(0, cpu, bio).is_err() {
                    rig.queues[0].wait(&mut rig.host, CpuId(cpu), &bio, bio.cookie, NOW).unwrap();
                    self.waiting.push_back((cpu, bio));
                }
            }
            Step::Run(at) => {
                let hctx = self.to_run.remove(at);
                let _ = rig.queues[0].run(&mut rig.host, hctx, rig.now);
            }
            Step::Complete(at) => {
                let (_, hctx, tag) = rig.host.driver.owned.remove(at);
                rig.queues[0].complete(&mut rig.host, hctx, tag, Status::Ok, rig.now).unwrap();
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        let rig = &mut self.rig;
        while let Some(run) = rig.queues[0].next_run(&mut rig.host, rig.now) {
            self.to_run.push(run.hctx);
        }
        while let Some((_, hctx)) = rig.host.next_starved() {
            let _ = rig.queues[0].run(&mut rig.host, hctx, rig.now);
        }
        while let Some(ended) = rig.queues[0].next_ended() {
            rig.ended.push((ended.bio.cookie, ended.status));
        }
        while let Some(waiter) = rig.queues[0].next_woken(&mut rig.host) {
            let at = self.waiting.iter().position(|(_, bio)| bio.cookie == waiter).unwrap();
            self.left.extend(self.waiting.remove(at));
        }
        rig.queues[0].self_check(&rig.host);
    }

    /// Advances the time to the queue's poll when no step is possible. Returns whether there was a
    /// poll.
    fn pass_time(&mut self) -> bool {
        let Some(at) = self.rig.queues[0].poll_at() else { return false };
        self.rig.now = at;
        self.collect();
        true
    }
}

/// Plays the order of `choices`, taking the first choice after its end.
fn play(policies: Policies, refusal: Option<Busy>, choices: &mut Vec<(usize, usize)>) {
    let mut small = Small::new(policies, refusal);
    let mut depth = 0;
    while small.rig.ended.len() < 3 {
        let steps = small.steps();
        if steps.is_empty() {
            assert!(small.pass_time(), "stuck after {choices:?} with {policies:?}, {refusal:?}");
            continue;
        }
        if depth == choices.len() {
            choices.push((0, steps.len()));
        }
        small.take(steps[choices[depth].0]);
        depth += 1;
        assert!(depth < 60, "in circles: {choices:?} with {policies:?}, {refusal:?}");
    }
    assert!(small.rig.queues[0].is_empty());
    choices.truncate(depth);
}

/// Advances `choices` to the next order. Returns whether there is one.
fn advance(choices: &mut Vec<(usize, usize)>) -> bool {
    while let Some((choice, of)) = choices.pop() {
        if choice + 1 < of {
            choices.push((choice + 1, of));
            return true;
        }
    }
    false
}

#[test]
fn every_order_of_three_bios_two_hardware_queues_and_one_tag_ends() {
    let mut orders = 0_u64;
    for dispatch in
        [Dispatch::DrainAll, Dispatch::HoldUntilFlushed, Dispatch::SharedList, Dispatch::Budget]
    {
        for base in [Policies::NONE, Policies::mq_deadline()] {
            for busy in [BusyTrack::Off, BusyTrack::Bit, BusyTrack::Ewma] {
                let policies = Policies { dispatch, busy, ..base };
                for refusal in [None, Some(Busy::Device), Some(Busy::Host), Some(Busy::Resource)] {
                    let mut choices = Vec::new();
                    loop {
                        play(policies, refusal, &mut choices);
                        orders += 1;
                        if !advance(&mut choices) {
                            break;
                        }
                    }
                }
            }
        }
    }
    println!("{orders} orders");
    assert!(orders > 1_000, "only {orders} orders");
}
