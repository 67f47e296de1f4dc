//! The sleep of a thread that has dispatched a request.

use super::*;
use blockyard::request::{Bios, Requests};
use blockyard::unit::{DriverTag, HctxId, RequestId};

/// Offers a request of `op` under `tag`.
fn offer(mmc: &mut Mmc<Scripted>, op: Op, tag: u16) {
    let mut requests = Requests::new(1);
    let request = &mut requests[RequestId(0)];
    (request.op, request.sector, request.sectors) = (op, 100 * u64::from(tag), 8);
    let now = Instant::ZERO;
    let bios = Bios::new(1);
    let issue = Issue::new(HctxId(0), DriverTag(tag), now, RequestId(0), &requests, &bios);
    assert_eq!(mmc.queue_rq(&issue), Accept::Queued);
}

fn mmc(pipeline: Pipeline) -> Mmc<Scripted> {
    let policy = HostPolicy::new(pipeline, BusyDetect::Hardware);
    Mmc::new(Scripted::new(policy.transfer, policy.busy), emmc(), policy).unwrap()
}

/// Every dispatcher prepares its request. Only that of a host without a queue of its own starts it,
/// too.
#[test]
fn a_dispatcher_sleeps_until_it_has_prepared_and_where_it_starts_until_it_has_started() {
    for (pipeline, starts) in [
        (Pipeline::BlkMqWait, true),
        (Pipeline::IssueOnCompletion, false),
        (Pipeline::Hsq(HsqPolicy::TODAY), false),
    ] {
        let mut mmc = mmc(pipeline);
        assert!(!mmc.holds_dispatcher(), "{pipeline:?}: no request");
        offer(&mut mmc, Op::Read, 0);
        assert!(mmc.holds_dispatcher(), "{pipeline:?}: it is to be prepared");
        assert_eq!(mmc.step(Context::Thread, Instant::ZERO), Some(ActKind::Prepare));
        assert_eq!(mmc.holds_dispatcher(), starts, "{pipeline:?}: it is to be started");
        assert_eq!(mmc.step(Context::Thread, Instant::ZERO), Some(ActKind::Start));
        assert!(!mmc.holds_dispatcher(), "{pipeline:?}: it has the bus");
        offer(&mut mmc, Op::Read, 1);
        assert!(mmc.holds_dispatcher(), "{pipeline:?}: the next one is to be prepared");
        assert_eq!(mmc.step(Context::Thread, Instant::ZERO), Some(ActKind::Prepare));
        assert_eq!(mmc.holds_dispatcher(), starts, "{pipeline:?}: it waits for the bus");
    }
}

/// The dispatcher does an operation without data itself.
#[test]
fn a_dispatcher_sleeps_until_an_exclusive_operation_is_over() {
    for pipeline in EVERY_PIPELINE {
        let mut mmc = mmc(pipeline);
        let mut now = Instant::ZERO;
        offer(&mut mmc, Op::Flush, 0);
        while mmc.slots.iter().any(|slot| matches!(slot.stage, Stage::Exclusive | Stage::OnBus)) {
            assert!(mmc.holds_dispatcher(), "{pipeline:?} at {now}");
            while mmc.step(Context::Thread, now).is_some() {}
            now = mmc.controller.next_event().or(mmc.poll_at()).unwrap_or(now);
            while let Some(event) = mmc.controller.event_at(now) {
                mmc.interrupt(event, now);
            }
        }
        assert!(!mmc.holds_dispatcher() && !mmc.controller.spans.is_empty(), "{pipeline:?}");
    }
}
