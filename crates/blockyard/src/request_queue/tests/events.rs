//! The events that a sink receives: action, instant, and bio or request of each step.

use super::*;
use crate::driver::{Busy, Outcome};
use crate::hardware_queue::RETRY_DELAY;
use crate::trace::{Action, Event, Hold};

const H1: HctxId = HctxId(1);

/// Notes every event.
#[derive(Default)]
struct Notes {
    seen: Vec<(Action, Op, u64, u32)>,
    flushed: Duration,
    now: Instant,
}

impl Sink for Notes {
    fn event(&mut self, event: &Event<'_>) {
        assert_eq!((event.at, event.queue), (self.now, QueueId(1)), "{event:?}");
        let of_bio = matches!(event.action, Action::Queue | Action::Split | Action::Sleep);
        let names_none = of_bio || matches!(event.action, Action::Hold(_));
        assert_eq!(event.request.is_none(), names_none, "{event:?}");
        if !matches!(event.action, Action::Queue | Action::Split | Action::Hold(_)) {
            assert_eq!((event.cpu, event.hctx), (OTHER_CPU, H1), "{event:?}");
        }
        if let Some((_, request)) = event.request {
            let start = event.sector;
            let end = event.sector + u64::from(event.sectors);
            let is_edge = match event.action {
                Action::BackMerge => request.sector < start && request.end_sector() == end,
                Action::FrontMerge => request.sector == start && request.end_sector() > end,
                _ => (request.sector, request.end_sector()) == (start, end),
            };
            assert!(is_edge, "{event:?}");
            let ends = matches!(event.action, Action::Complete(_) | Action::SequenceEnd(_));
            let state = match event.action {
                Action::Issue | Action::TimedOut => State::InFlight,
                _ if ends => State::Complete,
                _ => State::Staged,
            };
            assert_eq!(request.state(), state, "{event:?}");
            self.flushed = request.times.flushed;
            assert_eq!((request.op, request.flags), (event.op, event.flags));
        }
        self.seen.push((event.action, event.op, event.sector, event.sectors));
    }
}

/// The second queue of a host, which the second processor uses through the second hardware queue.
struct Heard {
    host: Host<Watched, Notes>,
    queue: RequestQueue,
}

impl Heard {
    fn new(policies: Policies, limits: Limits) -> Self {
        let tags = tags(2, 2, 0, 2);
        let config = QueueConfig { max_bios: 32, ..QueueConfig::new(2, 2, limits, policies) };
        let host = Host::new(host(tags, &config).driver, Notes::default(), tags);
        let queue = RequestQueue::new(QueueId(1), config, &host);
        Self { host, queue }
    }

    fn submit(&mut self, bio: Bio) -> Result<(), SubmitError> {
        let now = self.host.sink.now;
        self.queue.submit(&mut self.host, OTHER_CPU, bio, now)
    }

    /// Runs what is marked.
    fn settle(&mut self) {
        let now = self.host.sink.now;
        while let Some(run) = self.queue.next_run(&mut self.host, now) {
            let _ = self.queue.run(&mut self.host, run.hctx, now);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.host.sink.now = self.host.sink.now + time;
    }

    fn conclude(&mut self, outcome: Outcome) {
        let Sent { hctx, tag, .. } = self.host.driver.sent.pop_front().expect("in flight");
        let finished = crate::driver::Finished { queue: QueueId(1), hctx, tag, outcome };
        let now = self.host.sink.now;
        self.queue.conclude(&mut self.host, &finished, now).unwrap();
    }

    /// The actions since the last call; all concern this range.
    fn actions(&mut self, op: Op, sector: u64, sectors: u32) -> Vec<Action> {
        let seen = core::mem::take(&mut self.host.sink.seen);
        for (action, seen_op, seen_sector, seen_sectors) in &seen {
            if !matches!(action, Action::Hold(_)) {
                let range = (*seen_op, *seen_sector, *seen_sectors);
                assert_eq!(range, (op, sector, sectors), "{action:?}");
            }
        }
        seen.into_iter().map(|(action, ..)| action).collect()
    }
}

const DONE: Outcome = Outcome::Done(Status::Ok);

/// It is staged, refused, tried again, given back, asked about, and ends.
#[test]
fn a_request_is_reported_at_each_step_of_its_life() {
    let ended = Action::Complete(Status::Ok);
    let mut heard = Heard::new(Policies::mq_deadline(), Limits::new(CAPACITY_SECTORS));
    heard.pass(Duration::from_ms(1));
    heard.submit(Bio::read(72, 8, 0)).unwrap();
    let staged = [Action::Queue, Action::GetRequest, Action::Insert];
    assert_eq!(heard.actions(Op::Read, 72, 8), staged);
    heard.host.driver.answers.push_back(Accept::Busy(Busy::Device));
    heard.settle();
    let refused = [Action::Schedule, Action::Refuse(Busy::Device), Action::Hold(Hold::Device)];
    assert_eq!(heard.actions(Op::Read, 72, 8), refused);
    heard.pass(RETRY_DELAY);
    heard.settle();
    assert_eq!(heard.actions(Op::Read, 72, 8), [Action::Issue], "it had left the elevator");
    heard.conclude(Outcome::Again);
    heard.settle();
    assert_eq!(heard.actions(Op::Read, 72, 8), [Action::Requeue, Action::Schedule, Action::Issue]);
    heard.pass(Duration::from_secs(40));
    heard.host.driver.timeouts.push_back(TimedOut::Ended(Outcome::AgainPrepared));
    heard.settle();
    let again = [Action::TimedOut, Action::Requeue, Action::Issue];
    assert_eq!(heard.actions(Op::Read, 72, 8), again, "past the elevator");
    heard.pass(Duration::from_secs(40));
    heard.host.driver.timeouts.push_back(TimedOut::Reset);
    heard.settle();
    assert_eq!(heard.actions(Op::Read, 72, 8), [Action::TimedOut]);
    heard.conclude(DONE);
    assert_eq!(heard.actions(Op::Read, 72, 8), [ended]);
}

/// Without an elevator the request is issued from its stage; a failure is an end.
#[test]
fn a_request_that_is_issued_directly_is_not_inserted() {
    let mut heard = Heard::new(Policies::NONE, Limits::new(CAPACITY_SECTORS));
    let failed = Accept::Failed(Status::Gone);
    for (answer, last) in [
        (Accept::Queued, &[Action::Issue, Action::Complete(Status::Ok)][..]),
        (failed, &[Action::Complete(Status::Gone)]),
    ] {
        heard.host.driver.answers.push_back(answer);
        heard.submit(Bio::write(8, 8, 0)).unwrap();
        if answer == Accept::Queued {
            heard.conclude(DONE);
        }
        let begun = [Action::Queue, Action::GetRequest];
        let expected: Vec<_> = begun.iter().chain(last).copied().collect();
        assert_eq!(heard.actions(Op::Write, 8, 8), expected);
    }
}

/// The data of a write past the cache, the flush command behind it, and the end of both.
#[test]
fn a_sequence_is_reported_step_by_step() {
    let limits = Limits { write_cache: true, ..Limits::new(CAPACITY_SECTORS) };
    for status in [Status::Ok, Status::IoError] {
        let mut heard = Heard::new(Policies::mq_deadline(), limits.clone());
        heard.submit(Bio::write(8, 8, 0).with_flags(Flags::FUA)).unwrap();
        heard.settle();
        heard.host.sink.seen.clear();
        heard.conclude(DONE);
        assert_eq!(heard.actions(Op::Write, 8, 8), [Action::Complete(Status::Ok)]);
        heard.settle();
        assert_eq!(heard.actions(Op::Flush, 0, 0), [Action::Issue]);
        heard.conclude(Outcome::Done(status));
        let last: Vec<_> = heard.host.sink.seen.drain(..).collect();
        let expected = [
            (Action::Complete(status), Op::Flush, 0, 0),
            (Action::SequenceEnd(status), Op::Write, 8, 8),
        ];
        assert_eq!(last, expected);
    }
}

fn read(action: Action, sector: u64, sectors: u32) -> (Action, Op, u64, u32) {
    (action, Op::Read, sector, sectors)
}

/// A submitter that found no tag sleeps, and lets go of its plug; a split bio is queued whole and
/// reports the parts that are cut off, not the last one.
#[test]
fn bios_are_reported_with_their_own_ranges() {
    let limits = Limits { max_sectors: 8, ..Limits::new(CAPACITY_SECTORS) };
    let mut heard = Heard::new(Policies::NONE, limits);
    heard.queue.plug(OTHER_CPU);
    heard.submit(Bio::read(100, 16, 0)).unwrap();
    let seen = core::mem::take(&mut heard.host.sink.seen);
    let expected = [
        read(Action::Queue, 100, 16),
        read(Action::Split, 100, 8),
        read(Action::GetRequest, 100, 8),
        read(Action::Plug, 100, 8),
        read(Action::GetRequest, 108, 8),
    ];
    assert_eq!(seen, expected);
    let late = Bio::read(500, 4, 1);
    assert_eq!(heard.submit(late), Err(SubmitError::NoTag));
    assert_eq!(heard.host.sink.seen, [], "it has not entered");
    let now = heard.host.sink.now;
    heard.queue.wait(&mut heard.host, OTHER_CPU, &late, 7, now).unwrap();
    let seen = core::mem::take(&mut heard.host.sink.seen);
    let sleeping = Action::Unplug { requests: 2, sleeping: true };
    let expected = [
        read(Action::Sleep, 500, 4),
        read(sleeping, 100, 8),
        read(Action::Insert, 100, 8),
        read(Action::Insert, 108, 8),
    ];
    assert_eq!(seen, expected);
    let deferred = heard.queue.next_run(&mut heard.host, now).map(|run| run.deferred);
    assert_eq!(deferred, Some(true), "a sleeper runs nothing itself");
}

/// Merges name the bio and the request that has grown by it; a join the request that ends.
#[test]
fn merges_on_the_plug_and_in_the_elevator_are_reported() {
    let mut heard = Heard::new(Policies::mq_deadline(), Limits::new(CAPACITY_SECTORS));
    heard.queue.plug(OTHER_CPU);
    for (sector, cookie) in [(100, 0), (108, 1), (92, 2)] {
        heard.submit(Bio::read(sector, 8, cookie)).unwrap();
    }
    let seen = core::mem::take(&mut heard.host.sink.seen);
    let expected = [
        read(Action::Queue, 100, 8),
        read(Action::GetRequest, 100, 8),
        read(Action::Plug, 100, 8),
        read(Action::Queue, 108, 8),
        read(Action::BackMerge, 108, 8),
        read(Action::Queue, 92, 8),
        read(Action::FrontMerge, 92, 8),
    ];
    assert_eq!(seen, expected);
    heard.submit(Bio::read(500, 8, 3)).unwrap();
    heard.host.sink.seen.clear();
    let now = heard.host.sink.now;
    heard.queue.unplug(&mut heard.host, OTHER_CPU, now);
    let seen = core::mem::take(&mut heard.host.sink.seen);
    let released = Action::Unplug { requests: 2, sleeping: false };
    let expected =
        [read(released, 92, 24), read(Action::Insert, 92, 24), read(Action::Insert, 500, 8)];
    assert_eq!(seen, expected);
    heard.submit(Bio::read(132, 8, 4)).unwrap();
    heard.host.sink.seen.clear();
    heard.submit(Bio::read(116, 16, 5)).unwrap();
    let expected = [
        read(Action::Queue, 116, 16),
        read(Action::FrontMerge, 116, 16),
        read(Action::Join, 116, 24),
    ];
    // It closes the gap between two requests; the one inserted last is tried first.
    assert_eq!(heard.host.sink.seen, expected);
}

/// A sequence waits for the flush before its data and the one behind it, not while data moves.
#[test]
fn the_time_of_a_sequence_in_flushes_is_that_of_both() {
    let limits = Limits { write_cache: true, ..Limits::new(CAPACITY_SECTORS) };
    let mut heard = Heard::new(Policies::mq_deadline(), limits);
    heard.pass(Duration::from_ms(5));
    heard.submit(Bio::write(8, 8, 0).with_flags(Flags::PREFLUSH | Flags::FUA)).unwrap();
    for ms in [2, 7, 4] {
        heard.settle();
        heard.pass(Duration::from_ms(ms));
        heard.conclude(DONE);
        let now = heard.host.sink.now;
        if let Some(run) = heard.queue.next_run(&mut heard.host, now) {
            assert!(run.deferred, "the next step is left to a worker");
            let _ = heard.queue.run(&mut heard.host, run.hctx, now);
        }
    }
    assert_eq!(heard.host.sink.flushed, Duration::from_ms(2 + 4));
}
