//! Bounce buffers: each byte is copied once ([bounced-once]), at the right time.

use super::*;
use blockyard::bio::Op;

fn bouncing(pipeline: Pipeline, bounce: Bounce) -> Result<Bench, Unsupported> {
    let policy = HostPolicy { bounce, ..HostPolicy::new(pipeline, BusyDetect::Hardware) };
    let mut controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
    controller.bounces = Some(bounce);
    Mmc::new(controller, CARD, policy)?;
    let mut controller = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
    controller.bounces = Some(bounce);
    Ok(Bench::on(controller, policy))
}

#[test]
fn each_write_is_copied_once_before_and_each_read_once_after_its_transfers() {
    use crate::controller::{HostError, Part};
    for pipeline in EVERY_PIPELINE {
        for bounce in [Bounce::Sync, Bounce::Async] {
            let threaded = Plan::of(pipeline, DEPTH).thread.contains(&Job::Settle);
            let mut bench = match bouncing(pipeline, bounce) {
                Ok(bench) => bench,
                Err(why) => {
                    assert_eq!(why, Unsupported::NobodyCopies);
                    assert!(bounce == Bounce::Sync && !threaded, "{pipeline:?} {bounce:?}");
                    continue;
                }
            };
            assert!(bounce == Bounce::Async || threaded);
            // One request is retried, but its data is not copied again.
            let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
            bench.script().faults.extend([(3, fault), (8, fault)]);
            bench.submit(mixture(5, 30));
            let writes = mixture(5, 30).filter(|bio| bio.op == Op::Write).count();
            bench.settle();
            bench.all_ended_with(Status::Ok, 30);
            let writes = u32::try_from(writes).unwrap();
            assert_eq!(bench.script().copies, [writes, 30 - writes]);
        }
    }
}

#[test]
fn a_synchronous_copy_delays_the_bus_and_an_asynchronous_one_does_not() {
    // A copy of 20 us after each read, in addition to the gap of the pipeline (see `overlap`).
    for (bounce, gap) in [(Bounce::Sync, 20 + 5), (Bounce::Async, 5)] {
        let mut bench = bouncing(Pipeline::TwoSlotFull, bounce).unwrap();
        bench.reads(6);
        bench.settle();
        let spans = bench.spans();
        let gaps = spans.windows(2).map(|pair| pair[1].from.since(pair[0].to).as_ns() / 1000);
        assert_eq!(gaps.skip(1).take(3).collect::<Vec<_>>(), [gap; 3], "{bounce:?}");
    }
}

#[test]
fn a_failed_read_is_not_copied_out() {
    for bounce in [Bounce::Sync, Bounce::Async] {
        let mut bench = bouncing(Pipeline::BlkMqWait, bounce).unwrap();
        bench.script().faults.insert(1, Fault::Gone);
        bench.reads(5);
        bench.settle();
        assert_eq!((bench.ended[&0], bench.ended[&1]), (Status::Ok, Status::Gone));
        assert_eq!(bench.script().copies, [0, 1]);
    }
}

#[test]
fn copying_changes_neither_the_order_nor_the_starting_context() {
    let mut bench = bouncing(Pipeline::TwoSlotFull, Bounce::Async).unwrap();
    // The read, which is not copied yet, does not overtake the write, which is.
    bench.submit((0..6).map(|at| {
        let op = if at % 2 == 0 { Op::Write } else { Op::Read };
        Bio::new(op, 100 * at, 8, at)
    }));
    bench.settle();
    let order: Vec<_> = bench.spans().iter().filter_map(|span| span.sector).collect();
    assert_eq!(order, [0, 100, 200, 300, 400, 500]);

    let mut bench = bouncing(Pipeline::BlkMqWait, Bounce::Sync).unwrap();
    bench.writes(1);
    bench.settle();
    let by = [ActKind::CopyIn, ActKind::Start].map(|kind| bench.the(kind, 0).context);
    assert_eq!(by, [Context::Thread; 2]);
}
