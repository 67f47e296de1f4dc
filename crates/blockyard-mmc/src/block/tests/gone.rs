//! The card is removed.

use super::*;
use std::collections::BTreeSet;

/// A bench with writes, a flush, a read and a discard under way, up to `end`.
fn at_work(policy: HostPolicy, end: Instant) -> Bench {
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
    bench.writes(2);
    bench.submit([Bio::new(Op::Flush, 0, 0, 900), Bio::read(500, 8, 2)]);
    bench.submit([Bio::new(Op::Discard, 1024, 4096, 901), Bio::read(700, 8, 3)]);
    bench.until(end);
    bench
}

/// Returns the instants at which something begins or ends.
fn instants(policy: HostPolicy) -> BTreeSet<Instant> {
    let bench = at_work(policy, Instant::ZERO + Duration::from_ms(20));
    assert_eq!(bench.ended.len(), 6, "{policy:?}");
    let acts = bench.did.iter().flat_map(|did| [did.from, did.to]);
    let spans = bench.spans().iter().flat_map(|span| [span.from, span.to]);
    acts.chain(spans).collect()
}

/// The flush goes to the engine when the card is removed. Nothing more is begun for it.
#[test]
fn a_flush_that_goes_to_the_engine_ends_at_once_when_the_card_is_removed() {
    let policy = HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware);
    let mut bench =
        Bench::with(Policies::NONE, Scripted::new(policy.transfer, policy.busy), emmc(), policy);
    bench.writes(1);
    bench.settle();
    bench.submit([Bio::new(Op::Flush, 0, 0, 900)]);
    while !sends_command(&bench) {
        bench.until(bench.now + us(1));
    }
    bench.pull_out();
    bench.settle();
    assert_eq!((bench.ended[&900], bench.count(ActKind::SendCommand)), (Status::Gone, 1));
}

fn sends_command(bench: &Bench) -> bool {
    let act = bench.running[0].as_ref().map(|(act, ..)| act.kind());
    act == Some(ActKind::SendCommand)
}

/// Returns how many acts for the engine have begun.
fn acts_of_engine(bench: &Bench) -> usize {
    let running = bench.running.iter().flatten().filter(|(act, ..)| act.slot().is_none());
    bench.did.iter().filter(|did| did.sector == ENGINE).count() + running.count()
}

/// Whatever the host does at that moment.
#[test]
fn everything_ends_soon_after_the_card_is_removed() {
    for policy in every_policy() {
        for at in instants(policy) {
            let mut bench = at_work(policy, at);
            let before = (bench.ended.clone(), bench.spans().len());
            let begun = acts_of_engine(&bench);
            bench.pull_out();
            bench.settle();
            let case = format!("{policy:?} at {at}");
            assert!(bench.now <= at + Duration::from_ms(2), "{case}: it took to {}", bench.now);
            assert_eq!(bench.spans().len(), before.1, "{case}: a request to no card");
            assert_eq!(acts_of_engine(&bench), begun, "{case}: work for an engine without a card");
            assert_eq!(bench.ended.len(), 6, "{case}");
            for (cookie, status) in &bench.ended {
                let expected = match before.0.get(cookie) {
                    Some(status) => *status,
                    // What was done waited to be told only.
                    None if *status == Status::Ok => Status::Ok,
                    None => Status::Gone,
                };
                assert_eq!(*status, expected, "{case}: {cookie}");
            }
            bench.submit([Bio::read(900, 8, 5)]);
            bench.settle();
            assert_eq!(bench.ended[&5], Status::Gone, "{case}");
            assert_eq!(bench.spans().len(), before.1, "{case}: a request to no card");
        }
    }
}
