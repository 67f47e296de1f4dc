//! Checks the policies' table of overlapping acts against the clock.

use super::*;

/// A burst of six reads, submitted together, with the bus as the bottleneck.
fn burst(pipeline: Pipeline) -> Bench {
    let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
    bench.reads(6);
    bench.settle();
    bench
}

/// For requests 1 to 4 of a burst: whether the memory is ready before the previous request leaves
/// the bus, whether the request starts before the previous one is posted and before that one is
/// complete, and which contexts start and post the request.
fn shape(pipeline: Pipeline) -> (bool, bool, bool, Context, Context) {
    let bench = burst(pipeline);
    let shapes: Vec<_> = (1..5)
        .map(|at| {
            let this = 100 * at;
            let before = 100 * (at - 1);
            let start = bench.the(ActKind::Start, this);
            let cleanup = bench.the(ActKind::Post, before);
            let prepared_beside = bench.the(ActKind::Prepare, this).to <= bench.span(before).to;
            let cleaned_beside =
                cleanup.to > bench.span(this).from && cleanup.to <= bench.span(this).to;
            let complete = bench.the(ActKind::Complete, before);
            let completed_beside = complete.from >= bench.span(this).from;
            (prepared_beside, cleaned_beside, completed_beside, start.context, cleanup.context)
        })
        .collect();
    assert!(shapes.windows(2).all(|pair| pair[0] == pair[1]), "{pipeline:?}: {shapes:?}");
    shapes[0]
}

#[test]
fn each_pipeline_overlaps_as_its_row_of_the_table_says() {
    use Context::{Deferred, Interrupt, Thread};
    for (pipeline, expected) in [
        (Pipeline::Serial, (false, false, false, Thread, Thread)),
        (Pipeline::TwoSlotMapOverlap, (true, false, false, Thread, Thread)),
        (Pipeline::PostBeforeStart, (true, false, true, Thread, Thread)),
        (Pipeline::TwoSlotFull, (true, true, true, Thread, Thread)),
        (Pipeline::IssueOnCompletion, (true, true, true, Thread, Deferred)),
        (Pipeline::BlkMqWait, (true, true, true, Thread, Thread)),
        // The interrupt handler of these tests takes no time, so it cleans up beside nothing.
        (hsq(HsqDefer::Never), (true, false, true, Interrupt, Interrupt)),
        (hsq(HsqDefer::Always), (true, true, true, Deferred, Deferred)),
    ] {
        assert_eq!(shape(pipeline), expected, "{pipeline:?}");
    }
}

fn hsq(defer: HsqDefer) -> Pipeline {
    Pipeline::Hsq(HsqPolicy { defer, ..HsqPolicy::TODAY })
}

/// Returns the time from the end of one transfer to the start of the next, in microseconds.
fn gaps(pipeline: Pipeline) -> Vec<u64> {
    let bench = burst(pipeline);
    let spans = bench.spans();
    spans
        .windows(2)
        .map(|pair| pair[1].from.since(pair[0].to).as_ns() / 1000)
        .skip(1)
        .take(3)
        .collect()
}

#[test]
fn the_bus_is_idle_for_exactly_the_work_that_does_not_overlap() {
    // Prepare 50, post 30, complete 10, start 5; see `cost`.
    assert_eq!(gaps(Pipeline::Serial), [95; 3]);
    assert_eq!(gaps(Pipeline::TwoSlotMapOverlap), [45; 3]);
    assert_eq!(gaps(Pipeline::PostBeforeStart), [35; 3]);
    assert_eq!(gaps(Pipeline::TwoSlotFull), [5; 3]);
    assert_eq!(gaps(Pipeline::IssueOnCompletion), [5; 3]);
    assert_eq!(gaps(Pipeline::BlkMqWait), [5; 3]);
    // The interrupt handler of these tests takes no time.
    assert_eq!(gaps(hsq(HsqDefer::Never)), [0; 3]);
    assert_eq!(gaps(hsq(HsqDefer::Always)), [5; 3]);
}

#[test]
fn pio_prepares_nothing_and_so_overlaps_nothing() {
    for pipeline in [Pipeline::Serial, Pipeline::TwoSlotMapOverlap, Pipeline::TwoSlotFull] {
        let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
        let mut bench = Bench::new(HostPolicy { transfer: Transfer::Pio, ..policy });
        bench.reads(4);
        bench.settle();
        assert_eq!((bench.count(ActKind::Prepare), bench.count(ActKind::Post)), (0, 0));
    }
}

#[test]
fn a_lone_request_is_ended_without_its_dispatcher() {
    for (pipeline, expected) in [
        (Pipeline::TwoSlotFull, Context::Thread),
        (Pipeline::IssueOnCompletion, Context::Deferred),
        (Pipeline::BlkMqWait, Context::Deferred),
        (Pipeline::Hsq(HsqPolicy::TODAY), Context::Deferred),
        (hsq(HsqDefer::Never), Context::Interrupt),
    ] {
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
        bench.reads(1);
        bench.settle();
        assert_eq!(bench.the(ActKind::Start, 0).context, Context::Thread, "{pipeline:?}");
        assert_eq!(bench.the(ActKind::Post, 0).context, expected, "{pipeline:?}");
        assert_eq!(bench.the(ActKind::Complete, 0).context, expected, "{pipeline:?}");
        // The bus is free again.
        bench.submit([Bio::read(100, 8, 1)]);
        bench.settle();
        assert_eq!(bench.the(ActKind::Start, 100).context, Context::Thread, "{pipeline:?}");
    }
}

#[test]
fn the_status_of_a_busy_card_is_read_before_the_next_start() {
    for pipeline in one_by_one().filter(|of| !matches!(of, Pipeline::Hsq(_))) {
        let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Status));
        bench.script().busy = us(80);
        bench.writes(4);
        bench.settle();
        let order: String = bench
            .did
            .iter()
            .filter_map(|did| match did.kind {
                ActKind::Start => Some('s'),
                ActKind::SendStatus => Some('?'),
                _ => None,
            })
            .collect();
        // At 0, 32 and 96 us of the busy time, plus the time of the commands.
        assert_eq!(order, "s???".repeat(4), "{pipeline:?}");
    }
}

#[test]
fn a_second_request_never_starts_before_the_table_allows_it() {
    for (pipeline, until) in [
        (Pipeline::Serial, ActKind::Complete),
        (Pipeline::TwoSlotMapOverlap, ActKind::Complete),
        (Pipeline::PostBeforeStart, ActKind::Post),
    ] {
        for at in 0..400 {
            let mut bench = Bench::new(HostPolicy::new(pipeline, BusyDetect::Hardware));
            bench.reads(1);
            bench.until(Instant::ZERO + us(at));
            bench.submit([Bio::read(100, 8, 1)]);
            bench.settle();
            let first = bench.the(until, 0);
            let second = bench.the(ActKind::Start, 100);
            assert!(
                second.from >= first.to,
                "{pipeline:?} at {at} us: {second:?} before {first:?}"
            );
        }
    }
}

/// Deferred work is late. Linux's dispatcher waits until it has taken up the request that has left
/// the bus.
#[test]
fn the_next_start_waits_until_deferred_work_has_taken_up_the_request_before() {
    let policy = HostPolicy::new(Pipeline::IssueOnCompletion, BusyDetect::Hardware);
    let mut bench = Bench::new(policy);
    bench.reads(2);
    bench.until(Instant::ZERO + us(120));
    let now = bench.spans()[0].to;
    let mmc = bench.mmc();
    while let Some(event) = mmc.controller.event_at(now) {
        mmc.interrupt(event, now);
    }
    let stages = [0, 1].map(|at: usize| mmc.slots[at].stage);
    assert_eq!(stages, [Stage::Ended, Stage::Ready]);
    assert!(!mmc.pending(Context::Thread, now));
    let post = mmc.begin(Context::Deferred, now).expect("request to take up");
    assert!(mmc.pending(Context::Thread, now));
    mmc.finish(post, now);
}

#[test]
fn a_waiting_dispatcher_reads_the_status_and_otherwise_deferred_work_does() {
    let mut bench = Bench::new(HostPolicy::new(Pipeline::BlkMqWait, BusyDetect::Status));
    bench.script().busy = us(1);
    bench.writes(2);
    bench.settle();
    let by = [0, 100].map(|sector| bench.the(ActKind::SendStatus, sector).context);
    assert_eq!(by, [Context::Thread, Context::Deferred]);
}
