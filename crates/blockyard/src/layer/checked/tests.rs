//! For each rule, a driver or a core that breaks it.

use super::*;
use crate::bio::Bio;
use crate::driver::{DataEffect, Outcome};
use crate::merge::Merge;
use crate::policy::Policies;
use crate::request::{Bios, Requests};
use crate::status::Status;
use crate::unit::CpuId;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::string::String;
use std::vec;

const QUEUE: QueueId = QueueId(0);
const HCTX: HctxId = HctxId(0);
const NOW: Instant = Instant::from_ns(1000);
const TAGS: TagSetConfig = TagSetConfig {
    hctxs: 2,
    depth: 4,
    reserved: 0,
    shared_over_hctxs: false,
    queues: 2,
    max_waiters: 0,
};

/// A driver that answers as its fields say.
struct Puppet {
    answer: Accept,
    finished: Vec<Finished>,
    poll_at: Option<Instant>,
    timed_out: TimedOut,
}

impl Driver for Puppet {
    crate::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, _issue: &Issue<'_>) -> Accept {
        self.answer
    }

    fn timed_out(
        &mut self,
        _: QueueId,
        _: HctxId,
        _: DriverTag,
        _: &Request,
        _: Instant,
    ) -> TimedOut {
        self.timed_out
    }
}

impl Device for Puppet {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        self.finished.pop()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.poll_at
    }
}

/// The requests of a core that makes the calls of a test.
struct Pools {
    requests: Requests,
    bios: Bios,
    permit: Option<Budget>,
}

impl Pools {
    fn issue(&self, hctx: HctxId, id: u32, last: bool, now: Instant) -> Issue<'_> {
        Issue {
            queue: QUEUE,
            hctx,
            tag: DriverTag(u16::try_from(id).expect("few")),
            budget: self.permit,
            last,
            now,
            effect: DataEffect::Whole,
            id: RequestId(id),
            requests: &self.requests,
            bios: &self.bios,
        }
    }
}

/// That core over a puppet. Requests go under the tag of their number.
struct Rig {
    checked: Checked<Puppet>,
    pools: Pools,
}

impl Rig {
    fn with(dispatch: Dispatch, tags: &TagSetConfig) -> Self {
        let limits = Limits { max_sectors: 16, ..Limits::new(1 << 20) };
        let policies = Policies { dispatch, ..Policies::NONE };
        let terms = Terms::of(&QueueConfig::new(1, 1, limits, policies), tags);
        let puppet = Puppet {
            answer: Accept::Queued,
            finished: vec![],
            poll_at: None,
            timed_out: TimedOut::Reset,
        };
        let checked = Checked::new(puppet, vec![terms; 2], tags);
        let pools = Pools { requests: Requests::new(4), bios: Bios::new(16), permit: None };
        Self { checked, pools }
    }

    fn new() -> Self {
        Self::with(Dispatch::HoldUntilFlushed, &TAGS)
    }

    fn with_budget() -> Self {
        Self::with(Dispatch::Budget, &TAGS)
    }

    /// Starts a request that reads this many sectors.
    fn start(&mut self, id: u32, sectors: u32) {
        self.start_at(id, 64 * u64::from(id), sectors);
    }

    fn start_at(&mut self, id: u32, sector: u64, sectors: u32) {
        let Pools { requests, bios, .. } = &mut self.pools;
        let bio = bios.take(Bio::read(sector, sectors, 0)).expect("there is room");
        requests.start(RequestId(id), bio, &bios[bio], CpuId(0), HCTX, NOW);
    }

    fn prepare(&mut self, id: u32) {
        self.checked.prepare(&self.pools.issue(HCTX, id, true, NOW));
    }

    fn offer(&mut self, id: u32) -> Accept {
        self.checked.queue_rq(&self.pools.issue(HCTX, id, true, NOW))
    }

    /// Starts, prepares and offers a request.
    fn send(&mut self, id: u32) {
        self.start(id, 8);
        self.prepare(id);
        let _ = self.offer(id);
    }

    fn name(&mut self, tag: u16) {
        self.name_as(tag, Outcome::Done(Status::Ok));
    }

    fn name_as(&mut self, tag: u16, outcome: Outcome) {
        let tag = DriverTag(tag);
        let finished = Finished { queue: QUEUE, hctx: HCTX, tag, outcome };
        self.checked.below.finished.push(finished);
        let _ = self.checked.next_finished(NOW);
    }

    fn finish(&mut self, tag: u16) {
        let request = &self.pools.requests[RequestId(u32::from(tag))];
        self.checked.finish(QUEUE, HCTX, DriverTag(tag), request);
    }

    fn time_out(&mut self, tag: u16) {
        self.checked.below.timed_out = TimedOut::Ended(Outcome::Done(Status::Timeout));
        let request = &self.pools.requests[RequestId(u32::from(tag))];
        let _ = self.checked.timed_out(QUEUE, HCTX, DriverTag(tag), request, NOW);
    }
}

/// Returns the message of a call sequence that breaks a rule.
fn said(sequence: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(sequence)).expect_err("a rule was broken");
    let words = panic.downcast_ref::<String>().cloned();
    let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| String::from(*words)));
    words.expect("a panic with words").replace("assertion `left == right` failed: ", "")
}

fn assert_caught(rule: &str, what: &str, sequence: impl FnOnce()) {
    let words = said(sequence);
    assert!(words.starts_with(rule), "{what} is said to be: {words}");
}

fn named(sectors: u32, status: Status) -> impl FnOnce() {
    move || {
        let mut rig = Rig::new();
        rig.send(0); // 8 sectors
        rig.name_as(0, Outcome::Partial { sectors, status });
    }
}

/// [partial-completion-valid].
#[test]
fn a_partial_completion_covers_less_than_all_and_the_rest_failed() {
    named(7, Status::Medium)();
    assert_caught("[partial-completion-valid]", "a part of a command", || {
        let mut rig = Rig::new();
        let Pools { requests, bios, .. } = &mut rig.pools;
        let bio = bios.take(Bio::new(Op::DriverIn, 0, 8, 0)).expect("room");
        requests.start(RequestId(0), bio, &bios[bio], CpuId(0), HCTX, NOW);
        rig.prepare(0);
        assert_eq!(rig.offer(0), Accept::Queued);
        rig.name_as(0, Outcome::Partial { sectors: 0, status: Status::Medium });
    });
    assert_caught("[partial-completion-valid]", "all of it", named(8, Status::Medium));
    assert_caught("[partial-completion-valid]", "a part that did not fail", named(4, Status::Ok));
}

/// [owned-until-completed] and [one-owner-per-tag] hold in a legal sequence.
#[test]
fn a_legal_sequence_passes() {
    let mut rig = Rig::with_budget();
    rig.pools.permit = rig.checked.take_budget(QUEUE);
    rig.start(0, 8);
    rig.prepare(0);
    let issue = rig.pools.issue(HCTX, 0, false, NOW);
    assert_eq!(rig.checked.queue_rq(&issue), Accept::Queued);
    rig.checked.commit(QUEUE, HCTX, NOW);
    rig.checked.call_ended();
    rig.name(0);
    rig.finish(0);
    rig.checked.return_budget(QUEUE, Budget(0));
    rig.checked.all_ended();
}

#[test]
fn d1_ownership() {
    assert_caught("[owned-until-completed]", "an offer under a tag that is owned", || {
        let mut rig = Rig::new();
        rig.send(0);
        let _ = rig.offer(0);
    });
    assert_caught("[owned-until-completed]", "a completion of what is not owned", || {
        Rig::new().name(2)
    });
    assert_caught("[owned-until-completed]", "a second completion", || {
        let mut rig = Rig::new();
        rig.send(0);
        rig.name(0);
        rig.name(0);
    });
    assert_caught("[owned-until-completed]", "a completion after a time-out that ended it", || {
        let mut rig = Rig::new();
        rig.send(0);
        rig.time_out(0);
        rig.name(0);
    });
    assert_caught("[owned-until-completed]", "giving back what is not owned", || {
        let mut rig = Rig::new();
        rig.send(0);
        rig.finish(0);
        rig.finish(0);
    });
    assert_caught("[owned-until-completed]", "a completion for another queue", || {
        let mut rig = Rig::new();
        rig.send(0);
        let request = rig.pools.requests[RequestId(0)].clone();
        rig.checked.finish(QueueId(1), HCTX, DriverTag(0), &request);
    });
}

fn offer_in_other(rig: &mut Rig) -> Accept {
    let issue = rig.pools.issue(HctxId(1), 1, true, NOW);
    rig.checked.queue_rq(&Issue { tag: DriverTag(0), ..issue })
}

#[test]
fn d1_tags_that_hardware_queues_share_are_one_each() {
    let tags = TagSetConfig { shared_over_hctxs: true, ..TAGS };
    let mut rig = Rig::new();
    rig.send(0);
    rig.start(1, 8);
    rig.prepare(1);
    assert_eq!(offer_in_other(&mut rig), Accept::Queued);
    assert_caught("[owned-until-completed]", "a shared tag used in two hardware queues", || {
        let mut rig = Rig::with(Dispatch::HoldUntilFlushed, &tags);
        rig.send(0);
        rig.start(1, 8);
        rig.prepare(1);
        let _ = offer_in_other(&mut rig);
    });
}

fn leave_open() -> Rig {
    let mut rig = Rig::new();
    rig.start(0, 8);
    rig.prepare(0);
    let _ = rig.checked.queue_rq(&rig.pools.issue(HCTX, 0, false, NOW));
    rig
}

#[test]
fn d2_runs_end() {
    assert_caught("[last-or-commit]", "a run left open", || leave_open().checked.call_ended());
    assert_caught("[last-or-commit]", "a run open at the end", || leave_open().checked.all_ended());
}

fn take(count: u32) -> impl FnOnce() {
    // Four tags, a flush command, and one permit for a request that is still to come.
    move || {
        let mut rig = Rig::with_budget();
        assert!((0..count).all(|_| rig.checked.take_budget(QUEUE).is_some()));
    }
}

#[test]
fn d3_permits() {
    assert_caught("[budget-given-back]", "asking for a permit without need", || {
        let _ = Rig::new().checked.take_budget(QUEUE);
    });
    assert_caught("[budget-given-back]", "a request without a permit", || {
        Rig::with_budget().send(0)
    });
    assert_caught("[budget-given-back]", "a permit that is not out", || {
        let mut rig = Rig::with_budget();
        rig.pools.permit = Some(Budget(0));
        rig.send(0);
    });
    assert_caught("[budget-given-back]", "a permit given back twice", || {
        let mut rig = Rig::with_budget();
        let permit = rig.checked.take_budget(QUEUE).expect("a puppet gives");
        rig.checked.return_budget(QUEUE, permit);
        rig.checked.return_budget(QUEUE, permit);
    });
    take(6)();
    assert_caught("[budget-given-back]", "more permits than requests", take(7));
}

#[test]
fn d4_promises() {
    for busy in [Busy::Device, Busy::Host] {
        assert_caught("[busy-promise-kept]", "a promise with nothing in flight", || {
            let mut rig = Rig::new();
            rig.checked.below.answer = Accept::Busy(busy);
            rig.send(0);
        });
        let mut trusting = Rig::new();
        trusting.checked = trusting.checked.trusting_promises(true);
        trusting.checked.below.answer = Accept::Busy(busy);
        trusting.send(0);
    }
    for busy in [Busy::Device, Busy::Host] {
        let mut rig = Rig::new();
        rig.send(0);
        rig.checked.below.answer = Accept::Busy(busy);
        rig.send(1);
    }
}

/// [prepared-until-undone].
#[test]
fn requests_are_prepared_once_and_do_not_change() {
    assert_caught("[prepared-until-undone]", "an offer of what was not prepared", || {
        let mut rig = Rig::new();
        rig.start(0, 8);
        let _ = rig.offer(0);
    });
    assert_caught("[prepared-until-undone]", "a second preparation", || {
        let mut rig = Rig::new();
        rig.start(0, 8);
        rig.prepare(0);
        rig.prepare(0);
    });
    assert_caught("[prepared-until-undone]", "a request that changed", || {
        let mut rig = Rig::new();
        rig.start(0, 8);
        rig.prepare(0);
        rig.pools.requests[RequestId(0)].sectors += 1;
        let _ = rig.offer(0);
    });
    assert_caught("[prepared-until-undone]", "dropping a preparation that was not made", || {
        let mut rig = Rig::new();
        rig.start(0, 8);
        rig.checked.unprepare(&rig.pools.issue(HCTX, 0, true, NOW));
    });
}

fn unprepare(rig: &mut Rig) {
    rig.checked.unprepare(&rig.pools.issue(HCTX, 0, true, NOW))
}

fn failed() -> Rig {
    let mut rig = Rig::new();
    rig.checked.below.answer = Accept::Failed(Status::IoError);
    rig.send(0);
    rig
}

/// [prepared-until-undone].
#[test]
fn a_request_that_failed_is_unprepared_at_once() {
    let mut rig = failed();
    unprepare(&mut rig);
    rig.checked.call_ended();
    rig.prepare(0);
    let _ = rig.offer(0);
    unprepare(&mut rig);
    rig.checked.all_ended();

    let rule = "[prepared-until-undone]";
    assert_caught(rule, "the end of a call", || failed().checked.call_ended());
    assert_caught(rule, "a commit", || failed().checked.commit(QUEUE, HCTX, NOW));
    assert_caught(rule, "another offer", || _ = failed().offer(0));
    assert_caught(rule, "a request unprepared while it is owned", || {
        let mut rig = Rig::new();
        rig.send(0);
        unprepare(&mut rig);
    });
}

fn offer(bio: Bio, limits: Limits) -> impl FnOnce() {
    move || {
        let mut rig = Rig::new();
        rig.checked.accounts[0].terms.limits = limits;
        let Pools { requests, bios, .. } = &mut rig.pools;
        let bio = bios.take(bio).expect("there is room");
        requests.start(RequestId(0), bio, &bios[bio], CpuId(0), HCTX, NOW);
        rig.prepare(0);
        assert_eq!(rig.offer(0), Accept::Queued);
    }
}

fn segments(op: Op) -> Bio {
    Bio { segments: 3, ..Bio::new(op, 0, 8, 0) }
}

fn across(op: Op) -> Bio {
    Bio::new(op, 12, 8, 0)
}

/// [limits-kept], [merged-within-limits].
#[test]
fn requests_keep_their_limits() {
    assert_caught("[limits-kept]", "too many sectors", || {
        let mut rig = Rig::new();
        rig.start(0, 17);
        rig.prepare(0);
        let _ = rig.offer(0);
    });
    assert_caught("[limits-kept]", "sectors beyond the end", || {
        let mut rig = Rig::new();
        rig.start_at(0, (1 << 20) - 15, 16);
        rig.prepare(0);
        let _ = rig.offer(0);
    });
    let limits = || Limits {
        max_sectors: 16,
        max_segments: 2,
        max_discard_sectors: 16,
        chunk_sectors: 16,
        ..Limits::new(64)
    };
    assert_caught("[limits-kept]", "too many segments", offer(segments(Op::Read), limits()));
    offer(segments(Op::Discard), limits())();
    assert_caught("[limits-kept]", "a chunk crossed", offer(across(Op::Read), limits()));
    offer(across(Op::DriverOut), limits())();
    offer(Bio::new(Op::DriverOut, 100, 16, 0), limits())();
    let long = Bio::new(Op::DriverOut, 0, 17, 0);
    assert_caught("[limits-kept]", "a command that is too long", offer(long, limits()));
    let flush = Bio::new(Op::Flush, 0, 0, 0);
    assert_caught("[limits-kept]", "a flush without a cache", offer(flush, limits()));
    offer(flush, Limits { write_cache: true, ..limits() })();
    let ranges = |ranges, pieces| {
        move || {
            let limits = Limits { max_discard_segments: 3, ..limits() };
            let mut rig = Rig::new();
            rig.checked.accounts[0].terms.limits = limits;
            let Pools { requests, bios, .. } = &mut rig.pools;
            for at in 0..pieces {
                let bio = bios.take(Bio::new(Op::Discard, 48 - 16 * at, 4, 0)).expect("room");
                if at == 0 {
                    requests.start(RequestId(0), bio, &bios[bio], CpuId(0), HCTX, NOW);
                } else {
                    requests.add_bio(RequestId(0), bios, bio, Merge::Discard);
                }
            }
            requests[RequestId(0)].ranges = ranges;
            rig.prepare(0);
            assert_eq!(rig.offer(0), Accept::Queued);
        }
    };
    ranges(3, 3)();
    assert_caught("[limits-kept]", "a range without a piece", ranges(3, 2));
    assert_caught("[limits-kept]", "a hole", ranges(1, 2));
    assert_caught("[limits-kept]", "too many ranges", ranges(4, 4));
    assert_caught("[limits-kept]", "pieces that do not add up", || {
        let mut rig = Rig::new();
        rig.start(0, 8);
        rig.pools.requests[RequestId(0)].sectors += 1;
        rig.prepare(0);
        let _ = rig.offer(0);
    });
}

#[test]
fn a_request_may_use_each_limit_up() {
    let mut rig = Rig::new();
    rig.start_at(0, (1 << 20) - 16, 16);
    rig.prepare(0);
    assert_eq!(rig.offer(0), Accept::Queued);
}

/// [time-moves-forward] and [no-idle-polling].
#[test]
fn time_moves_forward() {
    assert_caught("[time-moves-forward]", "a call in the past", || {
        let mut rig = Rig::new();
        rig.send(0);
        rig.checked.commit(QUEUE, HCTX, Instant::ZERO);
    });
    assert_caught("[time-moves-forward]", "a time-out in the past", || {
        let mut rig = Rig::new();
        rig.send(0);
        let request = &rig.pools.requests[RequestId(0)];
        let _ = rig.checked.timed_out(QUEUE, HCTX, DriverTag(0), request, Instant::ZERO);
    });
    assert_caught("[time-moves-forward]", "a look at completions in the past", || {
        let mut rig = Rig::new();
        rig.send(0);
        let _ = rig.checked.next_finished(Instant::ZERO);
    });
    assert_caught("[no-idle-polling]", "a device that wants to be asked for nothing", || {
        let mut rig = Rig::new();
        rig.checked.below.poll_at = Some(NOW);
        let _ = rig.checked.next_finished(NOW);
    });
}

/// [nothing-left-over].
#[test]
fn nothing_is_left_over() {
    assert_caught("[nothing-left-over]", "a request with the driver", || {
        let mut rig = Rig::new();
        rig.send(0);
        rig.checked.all_ended();
    });
    assert_caught("[nothing-left-over]", "a permit", || {
        let mut rig = Rig::with_budget();
        let _ = rig.checked.take_budget(QUEUE);
        rig.checked.all_ended();
    });
    assert_caught("[nothing-left-over]", "a preparation", || {
        let mut rig = Rig::new();
        rig.start(0, 8);
        rig.prepare(0);
        rig.checked.all_ended();
    });
}
