//! The host software queue: limits, order, the context that starts requests, recovery, and suspend.

use super::*;
use crate::controller::{HostError, Part};
use blockyard::request::{Bios, Requests};
use blockyard::unit::{DriverTag, HctxId, RequestId};

fn hsq(policy: HsqPolicy) -> HostPolicy {
    HostPolicy::new(Pipeline::Hsq(policy), BusyDetect::Hardware)
}

/// Returns the largest number of requests in slots during a long burst.
fn most_held(limit: HsqLimit, limit_off_by_one: bool, bios: impl Iterator<Item = Bio>) -> u8 {
    let mut bench = Bench::new(hsq(HsqPolicy { limit, limit_off_by_one, ..HsqPolicy::TODAY }));
    bench.submit(bios);
    bench.settle();
    bench.most_held
}

/// Returns 40 requests of `sectors`, none next to another.
fn forty_requests(op: Op, sectors: u32) -> impl Iterator<Item = Bio> {
    (0..40).map(move |at| Bio::new(op, 100 * at, sectors, at))
}

#[test]
fn the_limit_holds_with_and_without_its_off_by_one() {
    for (limit, off_by_one, expected) in
        [(2, true, 3), (2, false, 2), (5, true, 6), (5, false, 5), (1, false, 1)]
    {
        let held = most_held(HsqLimit::Fixed(limit), off_by_one, forty_requests(Op::Read, 8));
        assert_eq!(held, expected, "limit {limit}, off by one: {off_by_one}");
    }
    let dynamic = HsqLimit::Dynamic;
    // Two writes must wait when one is sent while another is still being completed. With room for
    // two requests in all, the limit never sees two writes.
    assert_eq!(
        [true, false].map(|keep| most_held(dynamic, keep, forty_requests(Op::Write, 8))),
        [6, 2]
    );
    assert_eq!(
        [true, false].map(|keep| most_held(dynamic, keep, forty_requests(Op::Read, 8))),
        [3, 2]
    );
    assert_eq!(
        most_held(dynamic, true, forty_requests(Op::Write, 16)),
        3,
        "only writes of 4096 bytes count"
    );
}

/// The limit is decided as a request is sent, from the writes of 4096 bytes in the queue then, that
/// one included. The first of three is sent as soon as it is prepared, when it is alone: the limit
/// stays 2, which admits 3. As the second is sent, the third waits too: 5 admits 6. The third is
/// alone again. Writes of 8192 bytes do not count.
#[test]
fn a_dynamic_limit_follows_the_small_writes_that_wait_as_one_is_sent() {
    for (sectors, admitted) in [(8, [3, 6, 3]), (16, [3, 3, 3])] {
        let controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware).soldered_in();
        let mut mmc = Mmc::new(controller, CARD, hsq(HsqPolicy::TODAY)).unwrap();
        let mut now = Instant::ZERO;
        for tag in 0..3 {
            assert_eq!(offer_of(&mut mmc, Op::Write, tag, sectors, now), Accept::Queued);
        }
        let [prepare, start] = [Some(ActKind::Prepare), Some(ActKind::Start)];
        for due in [prepare, start, prepare, prepare, None] {
            assert_eq!(mmc.step(Context::Thread, now), due);
        }
        let mut seen = vec![mmc.admits()];
        while let Some(at) = mmc.controller.next_event() {
            now = at;
            let event = mmc.controller.event_at(now).unwrap();
            mmc.interrupt(event, now);
            if mmc.step(Context::Interrupt, now) == start {
                seen.push(mmc.admits());
            }
        }
        assert_eq!(seen, admitted, "{sectors} sectors");
    }
}

#[test]
fn there_is_a_budget_for_each_admitted_request() {
    for (pipeline, admitted) in
        [(Pipeline::Serial, 1), (Pipeline::BlkMqWait, 2), (Pipeline::Hsq(HsqPolicy::V8), 3)]
    {
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
        let taken = (0..9).filter(|_| bench.mmc().take_budget(QueueId(0)).is_some()).count();
        assert_eq!(taken, admitted);
        bench.mmc().return_budget(QueueId(0), Budget(0));
        assert!(bench.mmc().take_budget(QueueId(0)).is_some());
    }
}

#[test]
fn starts_are_deferred_for_removable_cards_only() {
    for (defer, soldered_in, expected) in [
        (HsqDefer::Always, true, Context::Deferred),
        (HsqDefer::Removable, false, Context::Deferred),
        (HsqDefer::Removable, true, Context::Interrupt),
        (HsqDefer::Never, false, Context::Interrupt),
    ] {
        let controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
        let controller = if soldered_in { controller.soldered_in() } else { controller };
        let mut bench = Bench::on(controller, hsq(HsqPolicy { defer, ..HsqPolicy::TODAY }));
        bench.reads(10);
        bench.settle();
        for at in 1..10 {
            assert_eq!(bench.the(ActKind::Start, 100 * at).context, expected);
        }
    }
}

#[test]
fn a_stray_interrupt_starts_nothing_if_starts_are_deferred() {
    let policy = HsqPolicy { defer: HsqDefer::Always, ..HsqPolicy::TODAY };
    let controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
    let mut mmc = Mmc::new(controller, CARD, hsq(policy)).unwrap();
    let now = Instant::ZERO;
    assert_eq!(offer(&mut mmc, 0, now), Accept::Queued);
    assert_eq!(mmc.step(Context::Thread, now), Some(ActKind::Prepare));
    mmc.interrupt(HostEvent::DataDone, now);
    assert_eq!(mmc.step(Context::Interrupt, now), None);
    assert_eq!(mmc.step(Context::Thread, now), Some(ActKind::Start));
}

#[test]
fn a_request_refused_in_an_interrupt_is_started_by_deferred_work_in_its_turn() {
    for order in [HsqOrder::Fifo, HsqOrder::TagWalk] {
        let policy = HsqPolicy { defer: HsqDefer::Never, order, ..HsqPolicy::TODAY };
        let mut bench = Bench::new(hsq(policy));
        bench.script().refusals = 3;
        bench.reads(10);
        bench.settle();
        bench.all_ended_with(Status::Ok, 10);
        assert_eq!(bench.mmc().counts().not_now, 3);
        let started: Vec<_> = bench.spans().iter().filter_map(|span| span.sector).collect();
        assert_eq!(started, (0..10).map(|at| 100 * at).collect::<Vec<_>>());
        assert_eq!(
            bench
                .did
                .iter()
                .filter(|did| (did.kind, did.context) == (ActKind::Start, Context::Deferred))
                .count(),
            3
        );
    }
}

/// Offers the read of 8 sectors from sector `100 * tag` under `tag`.
fn offer(mmc: &mut Mmc<Scripted>, tag: u16, now: Instant) -> Accept {
    offer_of(mmc, Op::Read, tag, 8, now)
}

fn offer_of(mmc: &mut Mmc<Scripted>, op: Op, tag: u16, sectors: u32, now: Instant) -> Accept {
    let mut requests = Requests::new(1);
    let request = &mut requests[RequestId(0)];
    (request.op, request.sector, request.sectors) = (op, 100 * u64::from(tag), sectors);
    let bios = Bios::new(1);
    mmc.queue_rq(&Issue::new(HctxId(0), DriverTag(tag), now, RequestId(0), &requests, &bios))
}

/// Deferred work has been told to start the next request, and is late. The thread leaves the start
/// to it.
#[test]
fn a_request_that_becomes_ready_before_deferred_work_runs_is_not_started_by_the_thread() {
    let controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
    let mut mmc = Mmc::new(controller, CARD, hsq(HsqPolicy::V8)).unwrap();
    let mut now = Instant::ZERO;
    assert_eq!(offer(&mut mmc, 0, now), Accept::Queued);
    while mmc.step(Context::Thread, now).is_some() {}
    while let Some(at) = mmc.controller.next_event() {
        now = at;
        let event = mmc.controller.event_at(now).unwrap();
        mmc.interrupt(event, now);
    }
    assert_eq!(offer(&mut mmc, 1, now), Accept::Queued);
    assert_eq!(mmc.step(Context::Thread, now), Some(ActKind::Prepare));
    assert_eq!(mmc.step(Context::Thread, now), None);
    assert_eq!(mmc.step(Context::Deferred, now), Some(ActKind::Start));
}

/// Returns the first `count` tags in the order in which their requests start, or fewer if none is
/// left. The requests `first` arrive together, and each of `again` arrives again as soon as it has
/// ended.
fn order_of(order: HsqOrder, first: &[u16], again: &[u16], count: usize) -> Vec<u64> {
    let policy = HsqPolicy { order, limit: HsqLimit::Fixed(5), ..HsqPolicy::TODAY };
    let controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
    let mut mmc = Mmc::new(controller, CARD, hsq(policy)).unwrap();
    let mut now = Instant::ZERO;
    for &tag in first {
        assert_eq!(offer(&mut mmc, tag, now), Accept::Queued);
    }
    loop {
        for context in [Context::Interrupt, Context::Thread, Context::Deferred] {
            while mmc.step(context, now).is_some() {}
        }
        while let Some(Finished { tag, .. }) = mmc.next_finished(now) {
            if again.contains(&tag.0) {
                assert_eq!(offer(&mut mmc, tag.0, now), Accept::Queued);
                while mmc.step(Context::Thread, now).is_some() {}
            }
        }
        let spans = &mmc.controller.spans;
        match mmc.controller.next_event() {
            Some(at) if spans.len() < count => now = at,
            _ => return spans.iter().filter_map(|span| span.sector).map(|at| at / 100).collect(),
        }
        if let Some(event) = mmc.controller.event_at(now) {
            mmc.interrupt(event, now);
        }
    }
}

#[test]
fn the_tag_walk_starves_a_request_and_fifo_does_not() {
    let first = [0, 1, 2, 40];
    let again = [0, 1, 2];
    let walk = order_of(HsqOrder::TagWalk, &first, &again, 300);
    assert!(walk.len() == 300 && !walk.contains(&40), "{walk:?}");
    let fifo = order_of(HsqOrder::Fifo, &first, &again, 300);
    assert_eq!(fifo.len(), 300);
    assert_eq!(fifo.iter().position(|&tag| tag == 40), Some(3), "after the earlier requests");
    for tag in 0..3 {
        let at: Vec<_> = (0..300).filter(|&at| fifo[at] == tag).collect();
        assert!(
            at.windows(2).all(|pair| pair[1] - pair[0] <= 6),
            "never more than the limit waits"
        );
    }
    // The request starts once no lower tag is offered.
    assert_eq!(order_of(HsqOrder::TagWalk, &first, &[], 300), [0, 1, 2, 40]);
}

/// [no-intake-in-recovery].
#[test]
fn no_request_is_started_or_accepted_during_a_recovery() {
    for policy in one_by_one() {
        let mut bench = Bench::new(HostPolicy::new(policy, BusyDetect::Hardware));
        bench.script().faults.insert(2, Fault::Error(Part::Data, HostError::Damaged, 3));
        bench.reads(20);
        bench.settle();
        bench.all_ended_with(Status::Ok, 20);
        let spans = bench.spans();
        let failed = spans.iter().position(|span| span.sector == Some(200)).unwrap();
        let again = spans.iter().rposition(|span| span.sector == Some(200)).unwrap();
        assert!(again > failed);
        let between = &spans[failed + 1..again];
        assert!(!between.is_empty() && between.iter().all(|span| span.sector.is_none()));
    }
}

#[test]
fn a_request_is_refused_until_the_recovery_is_over() {
    let mut controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
    controller.faults.insert(0, Fault::Error(Part::Data, HostError::Damaged, 0));
    let mut mmc = Mmc::new(controller, CARD, hsq(HsqPolicy::TODAY)).unwrap();
    let mut now = Instant::ZERO;
    assert_eq!(offer(&mut mmc, 0, now), Accept::Queued);
    while mmc.step(Context::Thread, now).is_some() {}
    now = now + us(1000);
    while let Some(event) = mmc.controller.event_at(now) {
        mmc.interrupt(event, now);
    }
    assert_eq!(mmc.idle(), Idle::Halted);
    assert_eq!(offer(&mut mmc, 1, now), Accept::Busy(Busy::Device));
    while mmc.idle() != Idle::Yes {
        while mmc.step(Context::Deferred, now).is_some() {}
        now = mmc.controller.next_event().unwrap_or(now);
        while let Some(event) = mmc.controller.event_at(now) {
            mmc.interrupt(event, now);
        }
    }
    assert_eq!(offer(&mut mmc, 1, now), Accept::Queued);
}

#[test]
fn deferred_work_starts_the_next_request_after_a_recovery() {
    for defer in [HsqDefer::Always, HsqDefer::Never] {
        let mut bench = Bench::new(hsq(HsqPolicy { defer, ..HsqPolicy::TODAY }));
        // The read of request 1 fails after all its blocks, so it is done when the card is ready.
        bench.script().faults.insert(1, Fault::Error(Part::Command, HostError::Timeout, 0));
        bench.script().faults.insert(3, Fault::Error(Part::Data, HostError::Damaged, 8));
        bench.reads(6);
        bench.settle();
        bench.all_ended_with(Status::Ok, 6);
        assert_eq!(bench.the(ActKind::Start, 200).context, Context::Deferred);
    }
}

#[test]
fn an_idle_host_is_disabled_at_once() {
    let mut bench = Bench::new(hsq(HsqPolicy::TODAY));
    bench.reads(1);
    bench.settle();
    let now = bench.now;
    bench.mmc().disable(now);
    assert!(!bench.mmc().is_enabled());
}

#[test]
fn a_host_is_disabled_once_idle_or_stays_enabled_after_half_a_second() {
    let mut bench = Bench::new(hsq(HsqPolicy::TODAY));
    assert_eq!(bench.mmc().enable(), Err(StillEnabled));
    bench.reads(3);
    bench.until(Instant::ZERO + us(200));
    let now = bench.now;
    assert_eq!(bench.mmc().idle(), Idle::NotYet);
    bench.mmc().disable(now);
    assert!(bench.mmc().is_enabled());
    bench.settle();
    bench.turn();
    assert!(!bench.mmc().is_enabled(), "the host should be disabled once idle");
    // A request that arrives now waits until the host is enabled.
    bench.submit([Bio::read(9000, 8, 99)]);
    bench.until(now + Duration::from_ms(20));
    assert_eq!(bench.ended.len(), 3);
    bench.mmc().enable().unwrap();
    bench.settle();
    bench.all_ended_with(Status::Ok, 4);

    // The host is busy for longer than the limit.
    bench.script().busy = Duration::from_ms(700);
    bench.submit([Bio::write(0, 8, 100)]);
    bench.turn();
    let now = bench.now;
    bench.mmc().disable(now);
    bench.until(now + Duration::from_ms(499));
    assert_eq!(bench.mmc().power, Power::Disabling(now + DISABLE_LIMIT));
    bench.until(now + Duration::from_ms(501));
    assert_eq!(bench.mmc().power, Power::On);
    bench.settle();
    assert!(bench.mmc().is_enabled(), "the attempt to disable it ended");
}
