//! Every elevator of the crate passes the public conformance test, and an elevator that breaks a
//! rule fails it.

#[path = "../examples/anticipatory/elevator.rs"]
mod anticipatory;
#[path = "../examples/reads_first/elevator.rs"]
mod reads_first;

use anticipatory::Anticipatory;
use blockyard::conformance;
use blockyard::elevator::adios::Adios;
use blockyard::elevator::bfq::{Audited, Bfq};
use blockyard::elevator::deadline::Deadline;
use blockyard::elevator::kyber::Kyber;
use blockyard::elevator::{Ctx, Elevator, IDLE_MAX, Place};
use blockyard::limits::Limits;
use blockyard::merge::{Candidate, Extent, Merge};
use blockyard::policy::{
    AdiosBatchOrder, AdiosDiscards, AdiosModel, AdiosTunables, BfqTunables, DeadlineTunables,
    HeadLists, Insertion, KyberAdjust, KyberStaging, KyberTunables, Merges, TagWakes,
};
use blockyard::prng::Prng;
use blockyard::request::{List, Request, Requests};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{HctxId, RequestId};
use core::panic::AssertUnwindSafe;
use reads_first::ReadsFirst;
use std::panic::catch_unwind;

const SEEDS: core::ops::Range<u64> = 0..200;

#[test]
fn mq_deadline_conforms_with_any_tunables() {
    for seed in SEEDS {
        println!("seed {seed}");
        let mut draws = Prng::new(seed);
        let tunables = DeadlineTunables {
            read_expire: Duration::from_ms(draws.pick(&[0, 5, 500])),
            write_expire: Duration::from_ms(draws.pick(&[0, 50, 5000])),
            writes_starved: draws.pick(&[1, 2, 5]), // 0 starves reads
            fifo_batch: draws.pick(&[0, 1, 4, 16]),
            front_merges: draws.pick(&[false, true]),
            prio_aging_expire: draws.pick(&[Duration::ZERO, Duration::from_ms(9), Duration::MAX]),
            async_depth: draws.pick(&[None, Some(0), Some(1), Some(48)]),
            classes: draws.pick(&[false, true]),
            heads: draws.pick(&[HeadLists::One, HeadLists::ByClass]),
            tag_wakes: TagWakes::Batches,
            insertion: Insertion::Locked,
        };
        let merges = draws.pick(&[Merges::All, Merges::Last]);
        conformance::elevator(seed, |config, tags| {
            Box::new(Deadline::new(config.requests(tags), tunables).merging(merges))
        });
    }
}

#[test]
fn kyber_conforms_with_any_tunables() {
    for seed in SEEDS {
        println!("seed {seed}");
        let mut draws = Prng::new(seed);
        let [read_depth, write_depth, discard_depth, other_depth] =
            [256, 128, 64, 16].map(|usual| draws.pick(&[1, 1, 2, 5, usual]));
        let tunables = KyberTunables {
            read_latency: Duration::from_us(draws.pick(&[0, 50, 2_000])),
            write_latency: Duration::from_us(draws.pick(&[0, 50, 10_000])),
            adjust: draws.pick(&[KyberAdjust::Percentiles, KyberAdjust::Steps]),
            staging: draws.pick(&[KyberStaging::ByDomain, KyberStaging::Together]),
            async_depth: draws.pick(&[None, Some(0), Some(48)]),
            read_depth,
            write_depth,
            discard_depth,
            other_depth,
        };
        conformance::elevator(seed, |config, _| Box::new(Kyber::new(&config.map, tunables)));
    }
}

#[test]
fn bfq_conforms_with_any_tunables() {
    for seed in SEEDS {
        println!("seed {seed}");
        let mut draws = Prng::new(seed);
        let tunables = BfqTunables {
            slice_idle: Duration::from_us(draws.pick(&[0, 500, 8_000, 100_000])),
            low_latency: draws.pick(&[false, true]),
            strict_guarantees: draws.pick(&[false, false, true]),
            // A raised slot is 30 times as long; the test is patient for 30 s.
            timeout_sync: Duration::from_ms(draws.pick(&[1, 125, 250])),
            max_budget: draws.pick(&[0, 0, 1, 100]),
            back_seek_max: draws.pick(&[0, 10, 16_384]),
            back_seek_penalty: draws.pick(&[1, 2, 100]),
            fifo_expire_sync: Duration::from_ms(draws.pick(&[1, 125])),
            fifo_expire_async: Duration::from_ms(draws.pick(&[1, 250])),
            async_depth: draws.pick(&[None, Some(1), Some(48)]),
            merges_queues: draws.pick(&[true, true, false]),
            plug_stops_clock: draws.pick(&[false, true]),
        };
        let rotational = draws.pick(&[false, true]);
        let merges = draws.pick(&[Merges::All, Merges::Last]);
        conformance::elevator(seed, |config, tags| {
            let bfq = Bfq::new(config.requests(tags), rotational, tunables).merging(merges);
            Box::new(Audited::new(bfq, tunables))
        });
    }
}

#[test]
fn adios_conforms_with_any_tunables() {
    for seed in SEEDS {
        println!("seed {seed}");
        let mut draws = Prng::new(seed);
        let us = Duration::from_us;
        let tunables = AdiosTunables {
            global_latency_window: draws.pick(&[None, Some(0), Some(3000), Some(90_000)]).map(us),
            bq_refill_below_ratio: draws.pick(&[0, 20, 100]),
            lat_model_latency_limit: us(draws.pick(&[0, 700, 500_000])),
            batch_limit_read: draws.pick(&[1, 2, 36]),
            batch_limit_write: draws.pick(&[1, 5, 72]),
            batch_limit_discard: draws.pick(&[1, 4]),
            lat_target_read: us(draws.pick(&[0, 2000])),
            lat_target_write: us(draws.pick(&[0, 50_000, 2_000_000])),
            lat_target_discard: us(draws.pick(&[0, 8_000_000])),
            lat_model_read: model(&mut draws),
            lat_model_write: model(&mut draws),
            lat_model_discard: model(&mut draws),
            shrink_at_kreqs: draws.pick(&[1, 5000]),
            shrink_at_gbytes: draws.pick(&[1, 50]),
            shrink_resist: draws.pick(&[1, 2, 3]),
            read_priority: draws.pick(&[-20, 0, 8, 19]),
            batch_order: draws.pick(&[AdiosBatchOrder::Kinds, AdiosBatchOrder::Sweep]),
            fixed_order: draws.pick(&[false, true]),
            discards: draws.pick(&[AdiosDiscards::Barriers, AdiosDiscards::Sorted]),
        };
        let rotational = draws.pick(&[false, true]);
        let merges = draws.pick(&[Merges::All, Merges::Last]);
        conformance::elevator(seed, |config, tags| {
            Box::new(Adios::new(config.requests(tags), rotational, tunables).merging(merges))
        });
    }
}

/// Draws what adios knows in the beginning: nothing, or latencies near those of the device.
fn model(draws: &mut Prng) -> AdiosModel {
    draws.pick(&[
        AdiosModel::UNKNOWN,
        AdiosModel { base: Duration::from_us(500), slope: Duration::ZERO },
        AdiosModel { base: Duration::from_ms(1), slope: Duration::from_us(10) },
    ])
}

/// A way to break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    LosesInserted,
    LosesJoined,
    DispatchesAgain,
    CountsOneMore,
    SaysEmpty,
    HidesWork,
    Withholds,
    KeepsTokens,
    StarvesOthers,
    OffersAnything,
    OffersFronts,
    OffersDispatched,
    NamesFarNeighbours,
    MarksRequests,
    ShutsOutAsync,
    IdlesFromTheStart,
    IdlesToThePast,
    IdlesTooLong,
    IdlesAgain,
}

/// Each fault, and the rule that it breaks.
const FAULTS: [(Fault, &str); 19] = [
    (Fault::LosesInserted, "[held-requests-counted]"),
    (Fault::LosesJoined, "[held-requests-counted]"),
    (Fault::DispatchesAgain, "[dispatched-once]"),
    (Fault::CountsOneMore, "[held-requests-counted]"),
    (Fault::SaysEmpty, "[held-requests-counted]"),
    (Fault::HidesWork, "[held-requests-counted]"),
    (Fault::Withholds, "[work-is-given]"),
    (Fault::KeepsTokens, "[work-is-given]"),
    (Fault::StarvesOthers, "[elevator-starves-none]"),
    (Fault::OffersAnything, "[joins-only-what-fits]"),
    (Fault::OffersFronts, "[joins-only-what-fits]"),
    (Fault::OffersDispatched, "[joins-only-what-fits]"),
    (Fault::NamesFarNeighbours, "[joins-only-what-fits]"),
    (Fault::MarksRequests, "[requests-only-lent]"),
    (Fault::ShutsOutAsync, "[async-never-shut-out]"),
    (Fault::IdlesFromTheStart, "[idling-bounded]"),
    (Fault::IdlesToThePast, "[idling-bounded]"),
    (Fault::IdlesTooLong, "[idling-bounded]"),
    (Fault::IdlesAgain, "[idling-bounded]"),
];

/// mq-deadline with a fault.
#[derive(Debug)]
struct Broken {
    sound: Deadline,
    fault: Fault,
    /// Held requests that only [`Fault::StarvesOthers`] keeps apart.
    others: List,
    /// The request that was dispatched last, unless it was inserted again.
    last: Option<RequestId>,
    /// How many requests [`Fault::KeepsTokens`] still dispatches.
    tokens_left: u32,
    /// Requests that were dispatched and have not finished.
    unfinished: u32,
    /// The instant until which a fault idles, if it does.
    until: Option<Instant>,
}

impl Broken {
    fn new(requests: usize, fault: Fault) -> Self {
        let sound = Deadline::new(requests, DeadlineTunables::default());
        let others = List::new();
        Self { sound, fault, others, last: None, tokens_left: 40, unfinished: 0, until: None }
    }

    /// Whether a fault holds back all requests at `now`.
    fn idles(&mut self, now: Instant) -> bool {
        if self.unfinished > 0 {
            return false;
        }
        match (self.fault, self.until) {
            (Fault::IdlesFromTheStart, None) => self.until = Some(now + Duration::from_us(1)),
            (Fault::IdlesAgain, Some(until)) if until <= now => {
                self.until = Some(now + Duration::from_us(1));
            }
            _ => {}
        }
        match self.fault {
            Fault::IdlesToThePast => self.until.is_some(),
            _ => self.until.is_some_and(|until| now < until),
        }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl Elevator for Broken {
    fn find_merge(
        &mut self,
        requests: &Requests,
        limits: &Limits,
        ctx: Ctx,
        other: &Extent,
        fronts: bool,
    ) -> Option<Candidate> {
        let found = self.sound.find_merge(
            requests,
            limits,
            ctx,
            other,
            fronts || self.is(Fault::OffersFronts),
        );
        let last = self.last.filter(|_| other.is_mergeable());
        match self.fault {
            Fault::OffersAnything if self.sound.len() > 0 => {
                last.map(|id| Candidate::Join(id, Merge::Back))
            }
            Fault::OffersDispatched => found.or_else(|| {
                last.and_then(|id| {
                    blockyard::end_index::candidate(requests, limits, id, other, fronts)
                })
            }),
            _ => found,
        }
    }

    fn merged(&mut self, requests: &Requests, id: RequestId, merge: Merge) {
        self.sound.merged(requests, id, merge);
    }

    fn neighbour(&self, requests: &Requests, id: RequestId, merge: Merge) -> Option<RequestId> {
        let named = self.sound.neighbour(requests, id, merge);
        if self.is(Fault::NamesFarNeighbours) { named.or(Some(id)) } else { named }
    }

    fn joined(&mut self, requests: &mut Requests, kept: RequestId, absorbed: RequestId) {
        if !self.is(Fault::LosesJoined) {
            self.sound.joined(requests, kept, absorbed);
        }
    }

    fn unmergeable(&mut self, requests: &Requests, id: RequestId) {
        self.sound.unmergeable(requests, id);
    }

    fn insert(&mut self, requests: &mut Requests, id: RequestId, place: Place, now: Instant) {
        self.last.take_if(|last| *last == id);
        match self.fault {
            Fault::LosesInserted if place == Place::Head => {}
            Fault::StarvesOthers if !requests[id].op.is_read() => {
                self.others.push_back(requests, id);
            }
            _ => self.sound.insert(requests, id, place, now),
        }
    }

    fn dispatch(
        &mut self,
        requests: &mut Requests,
        hctx: HctxId,
        now: Instant,
    ) -> Option<RequestId> {
        if self.idles(now) || (self.is(Fault::Withholds) && self.sound.len() == 1) {
            return None;
        }
        if self.is(Fault::KeepsTokens) {
            self.tokens_left = self.tokens_left.checked_sub(1)?;
        }
        if self.is(Fault::DispatchesAgain) && self.last.is_some() {
            return self.last.take();
        }
        let id = self.sound.dispatch(requests, hctx, now);
        if let Some(id) = id
            && self.is(Fault::MarksRequests)
        {
            requests[id].write_hint += 1;
        }
        self.last = id.or(self.last);
        let given = id.or_else(|| {
            let first = self.others.pop_front(requests)?;
            self.sound.insert(requests, first, Place::Head, now);
            self.sound.dispatch(requests, hctx, now)
        })?;
        self.unfinished += 1;
        Some(given)
    }

    fn poll_at(&self, _hctx: HctxId) -> Option<Instant> {
        self.until
    }

    fn len(&self) -> u32 {
        let len = self.sound.len() + self.others.len();
        if self.is(Fault::CountsOneMore) && len > 3 { len + 1 } else { len }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0 || self.is(Fault::SaysEmpty)
    }

    fn has_work(&self, _hctx: HctxId) -> bool {
        self.len() > 0 && !(self.is(Fault::HidesWork) && self.len() < 3)
    }

    fn finished(&mut self, id: RequestId, request: &Request, now: Instant) {
        self.sound.finished(id, request, now);
        self.unfinished = self.unfinished.saturating_sub(1);
        self.until = match self.fault {
            Fault::IdlesToThePast => Some(now),
            Fault::IdlesTooLong => Some(now + IDLE_MAX + Duration::from_ns(1)),
            Fault::IdlesAgain => Some(now + Duration::from_us(1)),
            _ => self.until,
        };
    }

    fn async_depth(&self, depth: u32) -> u32 {
        if self.is(Fault::ShutsOutAsync) { 0 } else { depth }
    }
}

/// Returns what the conformance test says of `fault` for the first of the seeds that finds it.
fn found(fault: Fault) -> Option<String> {
    SEEDS.into_iter().find_map(|seed| {
        let test = || {
            conformance::elevator(seed, |config, tags| {
                Box::new(Broken::new(config.requests(tags), fault))
            });
        };
        let panic = catch_unwind(AssertUnwindSafe(test)).err()?;
        let text = panic.downcast_ref::<String>().cloned();
        Some(text.unwrap_or_else(|| (*panic.downcast_ref::<&str>().expect("words")).to_owned()))
    })
}

#[test]
fn an_elevator_that_breaks_a_rule_fails_by_the_name_of_the_rule() {
    assert_eq!(found(Fault::None), None, "without a fault");
    for (fault, rule) in FAULTS {
        let message = found(fault).unwrap_or_else(|| panic!("{fault:?} passes"));
        assert!(message.contains(rule), "{fault:?}: {message}");
    }
}

/// The examples, under the rules that [`blockyard::conformance`] tests and over designs that it
/// draws.
#[test]
fn the_elevators_of_the_examples_conform() {
    for seed in SEEDS {
        println!("seed {seed}");
        conformance::elevator(seed, |_, _| Box::new(ReadsFirst::default()));
        conformance::elevator(seed, |_, _| Box::new(Anticipatory::default()));
    }
}
