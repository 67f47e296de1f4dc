//! Compares the elevator with [`Slow`], which keeps plain lists and searches all of them.

mod slow;

use self::slow::Slow;
use super::*;
use crate::bio::{Bio, Flags};
use crate::merge::{Fit, fit};
use crate::policy::{Insertion, TagWakes};
use crate::request::Bios;
use crate::time::Duration;
use crate::unit::CpuId;
use proptest::prelude::*;

const REQUESTS: u32 = 24;
const BIOS: u32 = 4096;
const HCTX: HctxId = HctxId(0);
const CTX: Ctx = Ctx { cpu: CpuId(0), hctx: HCTX };

/// Both elevators over the same requests, and the other work of a request queue.
struct Rig {
    requests: Requests,
    bios: Bios,
    limits: Limits,
    fast: Deadline,
    slow: Slow,
    idle: Vec<RequestId>,
    in_flight: Vec<RequestId>,
    now: Instant,
}

impl Rig {
    fn new(tunables: DeadlineTunables, limits: Limits) -> Self {
        Self {
            requests: Requests::new(REQUESTS as usize),
            bios: Bios::new(BIOS),
            limits,
            fast: Deadline::new(REQUESTS as usize, tunables),
            slow: Slow::new(tunables),
            idle: (0..REQUESTS).map(RequestId).collect(),
            in_flight: Vec::new(),
            now: Instant::ZERO,
        }
    }

    fn find_merge(&mut self, other: &Extent, fronts: bool) -> Option<Candidate> {
        let Self { fast, slow, requests, limits, .. } = self;
        let found = fast.find_merge(requests, limits, CTX, other, fronts);
        assert_eq!(found, slow.find_merge(requests, limits, other, fronts), "for {other:?}");
        found
    }

    /// Merges `bio` or gives it a request of its own, as a request queue does.
    fn submit(&mut self, bio: Bio, place: Place) {
        let found =
            if place == Place::Sorted { self.find_merge(&Extent::from(&bio), true) } else { None };
        match found {
            Some(Candidate::Join(id, merge)) => {
                let bio = self.bios.take(bio).expect("enough bios");
                self.requests.add_bio(id, &mut self.bios, bio, merge);
                self.merged(id, merge);
                self.join_neighbour(id, merge);
            }
            Some(Candidate::TooBig(id)) => {
                self.fast.unmergeable(&self.requests, id);
                self.slow.unmergeable(id);
                self.requests[id].flags |= Flags::NO_MERGE;
                self.insert(bio, place);
            }
            None => self.insert(bio, place),
        }
    }

    fn merged(&mut self, id: RequestId, merge: Merge) {
        self.fast.merged(&self.requests, id, merge);
        self.slow.merged(&self.requests, id, merge);
    }

    fn join_neighbour(&mut self, id: RequestId, merge: Merge) {
        let found = self.fast.neighbour(&self.requests, id, merge);
        assert_eq!(found, self.slow.neighbour(&self.requests, id, merge));
        let Some(other) = found else { return };
        let (kept, absorbed) = if merge == Merge::Front { (other, id) } else { (id, other) };
        let front = self.requests[kept].extent();
        let back = self.requests[absorbed].extent();
        if fit(&front, &back, &self.limits) == Fit::Join(Merge::Back) {
            self.fast.joined(&mut self.requests, kept, absorbed);
            self.slow.joined(kept, absorbed);
            self.requests.join_bios(kept, absorbed, &mut self.bios, Merge::Back);
            self.idle.push(absorbed);
            self.merged(kept, Merge::Back);
        }
    }

    fn insert(&mut self, bio: Bio, place: Place) {
        let Some(id) = self.idle.pop() else { return };
        let bio = self.bios.take(bio).expect("enough bios");
        self.requests.start(id, bio, &self.bios[bio], CpuId(0), HCTX, self.now);
        let whole = self.requests[id].extent();
        self.find_merge(&whole, false);
        self.fast.insert(&mut self.requests, id, place, self.now);
        self.slow.insert(&self.requests, id, place, self.now);
    }

    fn dispatch(&mut self) -> Option<RequestId> {
        let id = self.fast.dispatch(&mut self.requests, HCTX, self.now);
        assert_eq!(id, self.slow.dispatch(&self.requests, self.now));
        assert_eq!(self.fast.len() as usize, self.slow.len());
        self.in_flight.extend(id);
        id
    }

    /// Completes the `nth` request in flight, or returns it to the head.
    fn finish(&mut self, nth: usize, requeue: bool) {
        if self.in_flight.is_empty() {
            return;
        }
        let id = self.in_flight.remove(nth % self.in_flight.len());
        self.fast.finished(id, &self.requests[id], self.now);
        self.slow.finished(&self.requests[id]);
        if requeue {
            self.fast.insert(&mut self.requests, id, Place::Head, self.now);
            self.slow.insert(&self.requests, id, Place::Head, self.now);
        } else {
            self.requests.make_idle(id);
            self.idle.push(id);
        }
    }

    /// [dispatched-once] and [work-is-given]: every held request comes out once nothing is in
    /// flight.
    fn drain(&mut self) {
        while self.fast.len() > 0 {
            if self.dispatch().is_none() {
                assert!(
                    !self.in_flight.is_empty(),
                    "[work-is-given]: withheld with nothing in flight"
                );
            }
            self.finish(0, false);
        }
        assert_eq!(self.dispatch(), None);
    }

    fn self_check(&self) {
        let order = &self.fast.order;
        let lone = self.fast.lone;
        self.fast.classes.iter().for_each(|class| class.self_check(order, lone));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Submit(Bio, Place),
    Dispatch,
    Finish { nth: usize, requeue: bool },
    Wait(Duration),
}

prop_compose! {
    /// Bios on few sectors, so that they touch and overlap.
    fn bio()(
        op in prop_oneof![
            4 => Just(Op::Read),
            4 => Just(Op::Write),
            2 => Just(Op::Discard),
            1 => Just(Op::Flush),
        ],
        sector in 0..48_u64,
        sectors in 1..5_u32,
        class in prop_oneof![
            1 => Just(PrioClass::RealTime),
            3 => Just(PrioClass::BestEffort),
            1 => Just(PrioClass::Idle),
        ],
        flags in prop_oneof![6 => Just(Flags::NONE), 1 => Just(Flags::NO_MERGE)],
    ) -> Bio {
        let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (sector, sectors) };
        Bio::new(op, sector, sectors, 0).with_flags(flags).with_prio(IoPrio { class, level: 0 })
    }
}

fn step() -> impl Strategy<Value = Step> {
    let place = prop_oneof![12 => Just(Place::Sorted), 1 => Just(Place::Head)];
    let finish = (0..REQUESTS as usize, prop::bool::weighted(0.1));
    prop_oneof![
        6 => (bio(), place).prop_map(|(bio, place)| Step::Submit(bio, place)),
        3 => Just(Step::Dispatch),
        3 => finish.prop_map(|(nth, requeue)| Step::Finish { nth, requeue }),
        2 => (0..40_u64).prop_map(|ms| Step::Wait(Duration::from_ms(ms))),
    ]
}

prop_compose! {
    /// Short times, so that each of them passes within a run.
    fn tunables()(
        read_ms in 0..60_u64,
        write_ms in 0..120_u64,
        writes_starved in 0..4_u32,
        fifo_batch in 0..5_u32,
        front_merges in any::<bool>(),
        aging_ms in prop::option::of(0..200_u64),
        classes in any::<bool>(),
        heads in prop_oneof![Just(HeadLists::One), Just(HeadLists::ByClass)],
    ) -> DeadlineTunables {
        DeadlineTunables {
            read_expire: Duration::from_ms(read_ms),
            write_expire: Duration::from_ms(write_ms),
            writes_starved,
            fifo_batch,
            front_merges,
            prio_aging_expire: aging_ms.map_or(Duration::MAX, Duration::from_ms),
            async_depth: None,
            classes,
            heads,
            tag_wakes: TagWakes::Batches,
            insertion: Insertion::Locked,
        }
    }
}

proptest! {
    #[test]
    fn the_elevator_agrees_with_its_slow_oracle(
        tunables in tunables(),
        ranges in 1..4_u16,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let limits = Limits {
            max_sectors: 12,
            max_discard_sectors: 9,
            max_discard_segments: ranges,
            ..Limits::new(1024)
        };
        let mut rig = Rig::new(tunables, limits);
        for step in steps {
            match step {
                Step::Submit(bio, place) => rig.submit(bio, place),
                Step::Dispatch => drop(rig.dispatch()),
                Step::Finish { nth, requeue } => rig.finish(nth, requeue),
                Step::Wait(span) => rig.now = rig.now + span,
            }
            rig.self_check();
        }
        rig.drain();
    }
}

/// The bound of the module header. Worst case: the write comes when the first read of a batch has
/// gone; the other 15 of it go, then two more batches of 16.
#[test]
fn a_write_waits_for_47_reads_at_most() {
    let tunables = DeadlineTunables::default();
    let mut rig = Rig::new(tunables, Limits::new(1 << 20));
    let mut sector = 0;
    let mut read = |rig: &mut Rig| {
        sector += 64;
        rig.insert(Bio::read(sector, 8, 0), Place::Sorted);
    };
    read(&mut rig);
    read(&mut rig);
    rig.dispatch();
    rig.finish(0, false);
    rig.insert(Bio::write(0, 8, 0), Place::Sorted);
    let passed = (0..)
        .take_while(|_| {
            read(&mut rig);
            let id = rig.dispatch().expect("there is always a read");
            let is_read = rig.requests[id].op.is_read();
            rig.finish(0, false);
            is_read
        })
        .count();
    assert_eq!(passed, 47);
    let bound = tunables.fifo_batch * (tunables.writes_starved + 1) - 1;
    assert_eq!(passed, bound as usize);
}

fn idle_or_real_time(class: PrioClass, sector: u64) -> Bio {
    Bio::read(sector, 8, 0).with_prio(IoPrio { class, level: 0 })
}

/// An idle-class read was sent while it was alone, and comes back while a real-time one is in
/// flight. Linux since 6.19 sends it first of all; before, its class waited until no higher one had
/// work.
#[test]
fn a_request_that_comes_back_goes_before_all_classes_since_linux_6_19() {
    for (heads, goes_first) in [(HeadLists::One, true), (HeadLists::ByClass, false)] {
        let tunables = DeadlineTunables { heads, ..Default::default() };
        let mut rig = Rig::new(tunables, Limits::new(1 << 20));
        rig.insert(idle_or_real_time(PrioClass::Idle, 0), Place::Sorted);
        let idle = rig.dispatch();
        rig.insert(idle_or_real_time(PrioClass::RealTime, 64), Place::Sorted);
        rig.dispatch();
        rig.finish(0, true);
        assert_eq!(rig.dispatch(), idle.filter(|_| goes_first), "{heads:?}");
        rig.drain();
    }
}

fn depth(async_depth: Option<u32>, of: u32) -> u32 {
    Deadline::new(1, DeadlineTunables { async_depth, ..Default::default() }).async_depth(of)
}

#[test]
fn asynchronous_requests_get_at_least_one_tag_and_at_most_all() {
    assert_eq!(depth(None, 64), 64);
    assert_eq!(depth(Some(48), 64), 48);
    assert_eq!(depth(Some(48), 32), 32);
    assert_eq!(depth(Some(0), 32), 1);
}

fn write_at(sector: u64) -> Bio {
    Bio::write(sector, 8, 0)
}

fn joins(rig: &mut Rig, sector: u64, fronts: bool) -> bool {
    let Rig { fast, requests, limits, .. } = rig;
    fast.find_merge(requests, limits, CTX, &Extent::from(&write_at(sector)), fronts).is_some()
}

/// Linux's `nomerges` of 1: mq-deadline tries the request filed last, and searches neither for ends
/// nor for starts.
#[test]
fn with_only_the_last_request_merging_nothing_is_searched() {
    for (merges, joins_older) in [(Merges::All, true), (Merges::Last, false)] {
        let mut rig = Rig::new(DeadlineTunables::default(), Limits::new(1 << 20));
        rig.fast = Deadline::new(REQUESTS as usize, DeadlineTunables::default()).merging(merges);
        rig.insert(write_at(100), Place::Sorted);
        rig.insert(write_at(500), Place::Sorted);
        assert_eq!(
            joins(&mut rig, 108, true),
            joins_older,
            "{merges:?}: the back of the older request"
        );
        assert_eq!(
            joins(&mut rig, 92, true),
            joins_older,
            "{merges:?}: the front of the older request"
        );
        assert_eq!(joins(&mut rig, 108, false), joins_older, "{merges:?}: a request at its back");
        assert!(
            joins(&mut rig, 508, true) && joins(&mut rig, 492, true),
            "{merges:?}: the request filed last"
        );
        assert!(
            joins(&mut rig, 508, false) && !joins(&mut rig, 492, false),
            "{merges:?}: a request joins at a back"
        );
    }
}
