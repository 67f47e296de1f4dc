//! Compares the elevator with [`Slow`], which keeps plain lists, searches all of them, and has a
//! timer that adjusts depths.

mod slow;

use self::slow::Slow;
use super::*;
use crate::bio::{Bio, Flags, Op};
use crate::merge::{Fit, fit};
use crate::request::Bios;
use crate::time::Duration;
use crate::unit::CpuId;
use proptest::prelude::*;

const REQUESTS: u32 = 40;
const CPUS: u16 = 3;

/// Three processors, two hardware queues, and a third for reads.
fn map() -> QueueMap {
    QueueMap::with_kinds(CPUS, 2, 1, 0)
}

/// Both elevators over the same requests, and the other work of a request queue.
struct Rig {
    map: QueueMap,
    requests: Requests,
    bios: Bios,
    limits: Limits,
    fast: Kyber,
    slow: Slow,
    idle: Vec<RequestId>,
    in_flight: Vec<RequestId>,
    now: Instant,
}

impl Rig {
    fn new(map: QueueMap, tunables: KyberTunables) -> Self {
        Self {
            requests: Requests::new(REQUESTS as usize),
            bios: Bios::new(4096),
            limits: Limits { max_sectors: 12, max_discard_segments: 3, ..Limits::new(1 << 20) },
            fast: Kyber::new(&map, tunables),
            slow: Slow::new(&tunables),
            idle: (0..REQUESTS).map(RequestId).collect(),
            in_flight: Vec::new(),
            now: Instant::ZERO,
            map,
        }
    }

    fn ctx(&self, cpu: CpuId, bio: &Bio) -> Ctx {
        Ctx { cpu, hctx: self.map.serving(self.map.kind_of(bio), cpu) }
    }

    /// Merges `bio` or gives it a request of its own, as a request queue does.
    fn submit(&mut self, cpu: CpuId, bio: Bio, place: Place) {
        let ctx = self.ctx(cpu, &bio);
        let other = Extent::from(&bio);
        let Self { fast, slow, requests, limits, .. } = self;
        if place == Place::Sorted && other.is_mergeable() {
            let found = fast.find_merge(requests, limits, ctx, &other, true);
            assert_eq!(found, slow.find_merge(requests, limits, ctx, &other), "for {bio:?}");
            match found {
                Some(Candidate::Join(id, merge)) => {
                    let bio = self.bios.take(bio).expect("enough bios");
                    self.requests.add_bio(id, &mut self.bios, bio, merge);
                    self.fast.merged(&self.requests, id, merge);
                    assert_eq!(self.fast.neighbour(&self.requests, id, merge), None);
                    return;
                }
                Some(Candidate::TooBig(id)) => {
                    self.fast.unmergeable(&self.requests, id);
                    self.requests[id].flags |= Flags::NO_MERGE;
                }
                None => {}
            }
        }
        self.insert(ctx, bio, place);
    }

    fn insert(&mut self, ctx: Ctx, bio: Bio, place: Place) {
        let Some(id) = self.idle.pop() else { return };
        let bio = self.bios.take(bio).expect("enough bios");
        self.requests.start(id, bio, &self.bios[bio], ctx.cpu, ctx.hctx, self.now);
        let whole = self.requests[id].extent();
        let found = self.fast.find_merge(&self.requests, &self.limits, ctx, &whole, false);
        assert_eq!(found, None, "requests do not join each other");
        self.fast.insert(&mut self.requests, id, place, self.now);
        self.slow.insert(&self.map, &self.requests, id, place);
    }

    fn dispatch(&mut self, hctx: HctxId) -> Option<RequestId> {
        let has_work = self.fast.has_work(hctx);
        assert_eq!(has_work, self.slow.has_work(hctx));
        let id = self.fast.dispatch(&mut self.requests, hctx, self.now);
        assert_eq!(id, self.slow.dispatch(hctx), "of {hctx:?} at {}", self.now);
        assert!(has_work || id.is_none());
        assert_eq!(self.fast.len() as usize, self.slow.len());
        if let Some(id) = id {
            self.requests[id].times.scheduled = self.now;
            self.requests[id].times.issued = self.now;
            self.in_flight.push(id);
        }
        self.check_tokens(id);
        id
    }

    /// [token-per-request]: each dispatched request has a token, and a new token is within the
    /// depth.
    fn check_tokens(&self, taken: Option<RequestId>) {
        for domain in Domain::ALL {
            let out = self
                .in_flight
                .iter()
                .filter(|id| self.fast.domain_of(&self.requests[**id]) == domain)
                .count();
            let tokens = &self.fast.tokens[domain.index()];
            assert_eq!(tokens.out() as usize, out, "{domain:?}");
            let gave = taken.is_some_and(|id| self.fast.domain_of(&self.requests[id]) == domain);
            assert!(!gave || tokens.out() <= tokens.depth(), "{domain:?} has {tokens:?}");
        }
    }

    /// Completes the `nth` request in flight, or returns it to the head.
    fn finish(&mut self, nth: usize, requeue: bool) {
        if self.in_flight.is_empty() {
            return;
        }
        let id = self.in_flight.remove(nth % self.in_flight.len());
        self.requests[id].state = if requeue { State::Staged } else { State::Complete };
        self.fast.finished(id, &self.requests[id], self.now);
        self.slow.finished(&self.requests[id], self.now);
        if requeue {
            self.fast.insert(&mut self.requests, id, Place::Head, self.now);
            self.slow.insert(&self.map, &self.requests, id, Place::Head);
        } else {
            self.requests.make_idle(id);
            self.idle.push(id);
        }
        self.check_tokens(None);
    }

    fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.slow.pass_time(self.now);
    }

    /// [dispatched-once] and [work-is-given]: every held request comes out once nothing is in
    /// flight.
    fn drain(&mut self) {
        let hctxs = self.fast.lanes.len();
        while self.fast.len() > 0 {
            let mut sent = 0;
            for hctx in (0..).map(HctxId).take(hctxs) {
                sent += u32::from(self.dispatch(hctx).is_some());
            }
            assert!(
                sent > 0 || !self.in_flight.is_empty(),
                "[work-is-given]: withheld with nothing in flight"
            );
            self.finish(0, false);
        }
        while !self.in_flight.is_empty() {
            self.finish(0, false);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Submit(CpuId, Bio, Place),
    Dispatch(HctxId),
    Finish { nth: usize, requeue: bool },
    Wait(Duration),
}

prop_compose! {
    /// Bios on few sectors, so that they touch.
    fn bio()(
        op in prop_oneof![
            4 => Just(Op::Read),
            4 => Just(Op::Write),
            2 => Just(Op::Discard),
            1 => Just(Op::WriteZeroes),
            1 => Just(Op::Flush),
        ],
        sector in 0..48_u64,
        sectors in 1..5_u32,
        flags in prop_oneof![
            4 => Just(Flags::NONE),
            4 => Just(Flags::SYNC),
            1 => Just(Flags::NO_MERGE),
        ],
    ) -> Bio {
        let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (sector, sectors) };
        Bio::new(op, sector, sectors, 0).with_flags(flags)
    }
}

fn step() -> impl Strategy<Value = Step> {
    let place = prop_oneof![12 => Just(Place::Sorted), 1 => Just(Place::Head)];
    let cpu = (0..CPUS).prop_map(CpuId);
    let finish = (0..REQUESTS as usize, prop::bool::weighted(0.1));
    prop_oneof![
        6 => (cpu, bio(), place).prop_map(|(cpu, bio, place)| Step::Submit(cpu, bio, place)),
        4 => (0..3_u16).prop_map(|hctx| Step::Dispatch(HctxId(hctx))),
        3 => finish.prop_map(|(nth, requeue)| Step::Finish { nth, requeue }),
        2 => (0..400_u64).prop_map(|ms| Step::Wait(Duration::from_ms(ms))),
    ]
}

prop_compose! {
    /// Few tokens, and targets near the waiting times.
    fn tunables()(
        depths in prop::array::uniform4(prop_oneof![3 => 1..6_u32, 1 => 20..40_u32]),
        read_ms in 0..500_u64,
        write_ms in 0..500_u64,
        adjust in prop_oneof![Just(KyberAdjust::Percentiles), Just(KyberAdjust::Steps)],
        staging in prop_oneof![Just(KyberStaging::ByDomain), Just(KyberStaging::Together)],
    ) -> KyberTunables {
        let [read_depth, write_depth, discard_depth, other_depth] = depths;
        KyberTunables {
            read_latency: Duration::from_ms(read_ms),
            write_latency: Duration::from_ms(write_ms),
            read_depth,
            write_depth,
            discard_depth,
            other_depth,
            adjust,
            staging,
            async_depth: None,
        }
    }
}

proptest! {
    #[test]
    fn the_elevator_agrees_with_its_slow_oracle(
        tunables in tunables(),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let mut rig = Rig::new(map(), tunables);
        for step in steps {
            match step {
                Step::Submit(cpu, bio, place) => rig.submit(cpu, bio, place),
                Step::Dispatch(hctx) => drop(rig.dispatch(hctx)),
                Step::Finish { nth, requeue } => rig.finish(nth, requeue),
                Step::Wait(span) => rig.wait(span),
            }
        }
        rig.drain();
    }
}

/// Whether requests wait together or one after the other, they count in their batch.
#[test]
fn requests_that_come_one_by_one_count_in_their_batch() {
    let ctx = Ctx { cpu: CpuId(0), hctx: HctxId(0) };
    for alone in 0..40 {
        let mut rig = Rig::new(QueueMap::even(1, 1), KyberTunables::default());
        for _ in 0..alone {
            rig.insert(ctx, Bio::read(0, 1, 0), Place::Sorted);
            assert!(rig.dispatch(HctxId(0)).is_some());
            rig.finish(0, false);
        }
        for bio in [Bio::write(0, 1, 0), Bio::read(0, 1, 0)] {
            rig.insert(ctx, bio, Place::Sorted);
        }
        rig.drain();
    }
}

/// Domains stay apart also where one request waits alone.
#[test]
fn a_bio_joins_no_lone_request_of_another_domain() {
    let steps = KyberTunables { adjust: KyberAdjust::Steps, ..KyberTunables::default() };
    let mut rig = Rig::new(QueueMap::even(1, 1), steps);
    rig.submit(CpuId(0), Bio::write(0, 4, 0), Place::Sorted);
    rig.submit(CpuId(0), Bio::write(4, 4, 0).with_flags(Flags::SYNC), Place::Sorted);
    assert_eq!(rig.fast.len(), 2);
}

fn feed(rig: &mut Rig, ctx: Ctx) {
    for op in [Op::Read, Op::Write, Op::Discard] {
        rig.insert(ctx, Bio::new(op, 0, 1, 0).with_flags(Flags::NO_MERGE), Place::Sorted);
    }
}

/// The bound of the module header in its worst case: the request is alone in its domain, and the
/// turn has just passed it. One batch of every other domain goes first: 16 reads, 8 writes and 1
/// discard.
#[test]
fn a_request_is_passed_by_one_batch_of_every_other_domain() {
    let mut rig = Rig::new(QueueMap::even(1, 1), KyberTunables::default());
    let hctx = HctxId(0);
    let ctx = Ctx { cpu: CpuId(0), hctx };
    rig.insert(ctx, Bio::new(Op::WriteZeroes, 0, 1, 0), Place::Sorted);
    // The first turn is that of the reads.
    let mut passed = [0; DOMAINS];
    let waited_for = loop {
        feed(&mut rig, ctx);
        let id = rig.dispatch(hctx).expect("there is work and there are tokens");
        let domain = rig.fast.domain_of(&rig.requests[id]);
        rig.finish(0, false);
        if domain == Domain::Other {
            break passed;
        }
        passed[domain.index()] += 1;
    };
    assert_eq!(waited_for, [16, 8, 1, 0]);
}

/// The first batch begins with the turn of the reads, at none of 16.
#[test]
fn the_first_batch_is_as_long_as_any() {
    let mut rig = Rig::new(QueueMap::even(1, 1), KyberTunables::default());
    for at in 0..17 {
        rig.submit(CpuId(0), Bio::read(100 * at, 8, at), Place::Sorted);
    }
    rig.submit(CpuId(0), Bio::write(5000, 8, 17), Place::Sorted);
    let write = (0..18).position(|_| {
        let id = rig.dispatch(HctxId(0)).expect("18 requests");
        rig.requests[id].op == Op::Write
    });
    assert_eq!(write, Some(16));
}

fn domains_of(kind: KyberAdjust, flags: Flags) -> [Domain; 6] {
    let ops = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::SecureErase, Op::Flush];
    ops.map(|op| Domain::of(kind, op, flags))
}

#[test]
fn every_op_belongs_to_a_domain() {
    use Domain::{Discard, Other, Read, Write};
    for flags in [Flags::NONE, Flags::SYNC] {
        let percentiles = domains_of(KyberAdjust::Percentiles, flags);
        assert_eq!(percentiles, [Read, Write, Discard, Other, Other, Other]);
    }
    assert_eq!(
        domains_of(KyberAdjust::Steps, Flags::NONE),
        [Read, Other, Other, Other, Other, Other]
    );
    assert_eq!(
        domains_of(KyberAdjust::Steps, Flags::SYNC),
        [Read, Write, Other, Other, Other, Other]
    );
}

fn has_work(rig: &Rig) -> [bool; 3] {
    [0, 1, 2].map(|hctx| rig.fast.has_work(HctxId(hctx)))
}

/// A hardware queue without requests of its own is not held for those of another.
#[test]
fn a_hardware_queue_reports_only_its_own_work() {
    let mut rig = Rig::new(map(), KyberTunables::default());
    rig.submit(CpuId(0), Bio::write(0, 1, 0), Place::Sorted);
    assert_eq!(has_work(&rig), [true, false, false]);
    assert_eq!(rig.dispatch(HctxId(1)), None);
    assert!(rig.dispatch(HctxId(0)).is_some());
    assert_eq!(has_work(&rig), [false; 3]);
}

/// [token-per-request] and [work-is-given]: the only token of the domain is out; another domain
/// goes meanwhile.
#[test]
fn without_a_token_a_request_waits_for_a_completion_and_others_go() {
    let tunables = KyberTunables { write_depth: 1, ..KyberTunables::default() };
    let mut rig = Rig::new(QueueMap::even(1, 1), tunables);
    let cpu = CpuId(0);
    let hctx = HctxId(0);
    for sector in [0, 100] {
        rig.submit(cpu, Bio::write(sector, 1, 0), Place::Sorted);
    }
    let first = rig.dispatch(hctx);
    assert!(first.is_some());
    assert_eq!(rig.dispatch(hctx), None);
    assert!(rig.fast.has_work(hctx), "so that the run is held, not idle");
    rig.submit(cpu, Bio::read(0, 1, 0), Place::Sorted);
    let read = rig.dispatch(hctx).expect("reads have tokens");
    assert!(rig.requests[read].op.is_read());
    assert_eq!(rig.dispatch(hctx), None);
    rig.finish(0, true);
    assert_eq!(rig.dispatch(hctx), first, "what came back goes first, with the token it gave back");
    rig.finish(1, false);
    assert!(rig.dispatch(hctx).is_some());
}

/// Before Linux 4.18 a domain without a token took up the requests of all domains, and bios joined
/// them no more.
#[test]
fn a_bio_joins_what_waits_for_a_token_only_where_domains_have_their_own_lists() {
    for (staging, requests) in [(KyberStaging::ByDomain, 2), (KyberStaging::Together, 4)] {
        let tunables = KyberTunables { write_depth: 1, staging, ..KyberTunables::default() };
        let mut rig = Rig::new(QueueMap::even(1, 1), tunables);
        let cpu = CpuId(0);
        let hctx = HctxId(0);
        rig.submit(cpu, Bio::write(0, 1, 0), Place::Sorted);
        assert!(rig.dispatch(hctx).is_some());
        rig.submit(cpu, Bio::write(100, 1, 0), Place::Sorted);
        assert_eq!(rig.dispatch(hctx), None, "the only token is out");
        rig.submit(cpu, Bio::write(101, 1, 0), Place::Sorted);
        rig.submit(cpu, Bio::new(Op::Discard, 500, 1, 0), Place::Sorted);
        // The turn comes to the writes again.
        let discard = rig.dispatch(hctx).expect("discards have tokens");
        assert_eq!(rig.requests[discard].op, Op::Discard);
        rig.submit(cpu, Bio::write(102, 1, 0), Place::Sorted);
        rig.finish(0, false);
        assert_eq!(rig.fast.len() + 1, requests, "{staging:?}");
    }
}

/// [one-finished-per-dispatch]: a request that the driver failed immediately spent no time in the
/// device.
#[test]
fn only_what_the_driver_has_completed_is_measured() {
    let mut rig = Rig::new(QueueMap::even(1, 1), KyberTunables::default());
    let cpu = CpuId(0);
    let hctx = HctxId(0);
    rig.wait(Duration::from_ms(1));
    rig.submit(cpu, Bio::read(0, 1, 0), Place::Sorted);
    let id = rig.dispatch(hctx).expect("a read");
    rig.requests[id].times.issued = Instant::ZERO; // never, as when it was started
    rig.requests[id].state = State::Complete;
    rig.fast.finished(id, &rig.requests[id], rig.now);
    assert_eq!(rig.fast.due, None);
    rig.requests[id].times.issued = rig.now;
    assert!(rig.fast.tokens[0].take());
    rig.fast.finished(id, &rig.requests[id], rig.now);
    assert!(rig.fast.due.is_some());
}

#[test]
fn asynchronous_requests_get_three_quarters_of_the_tags_and_at_least_one() {
    let kyber = Kyber::new(&QueueMap::even(1, 1), KyberTunables::default());
    let depths = [1, 2, 3, 4, 62, 64, 256, u32::MAX].map(|depth| kyber.async_depth(depth));
    assert_eq!(depths, [1, 1, 2, 3, 46, 48, 192, 3_221_225_471]);
    // Since Linux 7.0 the limit can be set, as with mq-deadline.
    let tunables = KyberTunables { async_depth: Some(40), ..KyberTunables::default() };
    let kyber = Kyber::new(&QueueMap::even(1, 1), tunables);
    assert_eq!([16, 64].map(|depth| kyber.async_depth(depth)), [16, 40]);
}

#[test]
#[should_panic(expected = "[one-finished-per-dispatch]")]
fn a_request_that_is_finished_twice_panics() {
    let mut rig = Rig::new(QueueMap::even(1, 1), KyberTunables::default());
    rig.submit(CpuId(0), Bio::read(0, 1, 0), Place::Sorted);
    let id = rig.dispatch(HctxId(0)).expect("a read");
    rig.fast.finished(id, &rig.requests[id], rig.now);
    rig.fast.finished(id, &rig.requests[id], rig.now);
}
