//! Packed commands: which requests are packed, and how each ends when one fails.

use super::*;
use crate::block::pack_limit::PackLimit;
use crate::command::Opcode;
use crate::command::packed::MAX_ENTRIES;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};
use crate::policy::Packed;

/// Pipelines in which several requests are ready while one is on the bus.
const PIPELINES: [Pipeline; 6] = [
    Pipeline::TwoSlotMapOverlap,
    Pipeline::TwoSlotFull,
    Pipeline::PostBeforeStart,
    Pipeline::IssueOnCompletion,
    Pipeline::BlkMqWait,
    Pipeline::Hsq(HsqPolicy { limit: HsqLimit::Fixed(20), ..HsqPolicy::V8 }),
];

/// Returns every such policy with packing `packed`.
fn packing(packed: Packed) -> Vec<HostPolicy> {
    let policies = PIPELINES.into_iter().flat_map(|pipeline| {
        EVERY_BUSY.map(|busy| HostPolicy { packed, ..HostPolicy::new(pipeline, busy) })
    });
    policies
        .filter(|policy| {
            !matches!(policy.pipeline, Pipeline::Hsq(_)) || policy.busy == BusyDetect::Hardware
        })
        .collect()
}

/// A bench with a device that packs up to `most` requests.
fn bench(policy: HostPolicy, most: u8) -> Bench {
    let controller = Scripted::new(policy.transfer, policy.busy).with_segments(128);
    let target = Target { packed_writes: most, packed_reads: most, ..emmc_by_host() };
    Bench::with(Policies::NONE, controller, target, policy)
}

fn packs(bench: &Bench) -> Vec<usize> {
    let transfers = bench.spans().iter().filter(|span| span.requests > 0);
    transfers.map(|span| span.requests).collect()
}

#[test]
fn ready_writes_go_in_one_pack_with_one_start_and_one_busy_time() {
    for policy in packing(Packed::Write) {
        let mut bench = bench(policy, 8);
        bench.writes(40);
        bench.settle();
        bench.all_ended_with(Status::Ok, 40);
        let packs = packs(&bench);
        assert_eq!(packs.iter().sum::<usize>(), 40);
        assert!(
            packs.len() <= 12 && packs.iter().all(|&count| count <= 8),
            "{policy:?}: {packs:?}"
        );
        assert!(packs.contains(&8), "{policy:?}: {packs:?}");
        assert_eq!(bench.count(ActKind::Start), packs.len());
        assert_eq!((bench.count(ActKind::Prepare), bench.count(ActKind::Post)), (40, 40));
        let order: Vec<_> = bench.spans().iter().filter_map(|span| span.sector).collect();
        assert!(order.is_sorted(), "packs keep the order: {order:?}");
        assert_eq!(bench.mmc().counts(), Counts::default());
    }
}

#[test]
fn packed_reads_have_a_header_of_their_own() {
    for policy in packing(Packed::ReadWrite) {
        let mut bench = bench(policy, 8);
        bench.reads(40);
        bench.settle();
        bench.all_ended_with(Status::Ok, 40);
        let packs = packs(&bench);
        assert!(packs.contains(&8), "{policy:?}: {packs:?}");
        let headers = bench.spans().iter().filter(|span| span.command == Opcode::WriteMultiple);
        assert_eq!(headers.count(), packs.iter().filter(|&&count| count > 1).count());
    }
    let mut bench = bench(packing(Packed::Write)[0], 8);
    bench.reads(20);
    bench.settle();
    assert_eq!(packs(&bench), [1; 20]);
}

#[test]
fn a_read_or_fua_write_or_operation_ends_a_pack() {
    for policy in packing(Packed::ReadWrite) {
        let mut bench = bench(policy, 63);
        bench.submit((0..60).map(|at| {
            let write = Bio::write(100 * at, 8, at);
            match at % 10 {
                3 => Bio::read(100 * at, 8, at),
                6 => write.with_flags(Flags::FUA),
                8 if at > 40 => Bio::new(Op::Discard, 100 * at, 8, at),
                _ => write,
            }
        }));
        bench.settle();
        bench.all_ended_with(Status::Ok, 60);
        let forced: Vec<_> = (0..6).map(|at| 1000 * at + 600).collect();
        assert!(bench.script().forced.iter().eq(&forced), "{policy:?}");
        assert!(
            bench
                .spans()
                .iter()
                .filter(|span| span.sector.is_some_and(|sector| forced.contains(&sector)))
                .all(|span| span.requests == 1)
        );
        assert!(packs(&bench).iter().all(|&count| count <= 6), "{:?}", packs(&bench));
    }
}

#[test]
fn a_pack_fits_the_limits_of_the_controller() {
    let policy = HostPolicy { packed: Packed::Write, ..packing(Packed::Write)[1] };
    for (segments, blocks, most) in [(5, 1000, 4), (128, 41, 5), (128, 40, 4), (3, 1000, 2)] {
        let controller = Scripted::new(policy.transfer, policy.busy).with_segments(segments);
        let controller = controller.with_blocks(blocks);
        let target = Target { packed_writes: 63, ..emmc() };
        let mut bench = Bench::with(Policies::NONE, controller, target, policy);
        bench.writes(60);
        bench.settle();
        bench.all_ended_with(Status::Ok, 60);
        assert_eq!(packs(&bench).into_iter().max(), Some(most));
    }
}

/// The request at sector 1200 fails in the first pack. Requests before it are done; the others are
/// sent alone.
#[test]
fn requests_before_the_failed_entry_are_done_and_the_others_are_retried_alone() {
    for packed in [Packed::Write, Packed::ReadWrite] {
        for policy in packing(packed) {
            for named in [true, false] {
                let mut bench = bench(policy, 8);
                bench.script().bad_entry = Some((1200, named));
                if packed == Packed::Write {
                    bench.writes(30)
                } else {
                    bench.reads(30)
                }
                bench.settle();
                bench.all_ended_with(Status::Ok, 30);
                let spans: Vec<_> = bench.spans().iter().filter(|s| s.requests > 0).collect();
                let with: Vec<_> = spans
                    .iter()
                    .filter(|span| {
                        let first = span.sector.unwrap();
                        (first..first + 100 * span.requests as u64).contains(&1200)
                    })
                    .collect();
                assert_eq!((with.len(), with[1].requests), (2, 1), "{policy:?}");
                let at = spans.iter().position(|span| core::ptr::eq(*span, *with[0])).unwrap();
                let first =
                    if named && packed == Packed::Write { 1200 } else { with[0].sector.unwrap() };
                let end = with[0].sector.unwrap() + 100 * with[0].requests as u64;
                let again: Vec<_> = (first..end).step_by(100).collect();
                for (span, sector) in spans[at + 1..].iter().zip(&again) {
                    assert_eq!((span.sector, span.requests), (Some(*sector), 1), "{policy:?}");
                }
                let all: usize = spans.iter().map(|span| span.requests).sum();
                assert_eq!(all, 30 + again.len(), "no good request goes again");
            }
        }
    }
}

/// The recovery is over when EXT_CSD is read for the failed entry: an error of that read is another
/// failure.
#[test]
fn a_pack_fails_once_more_when_the_read_that_names_its_entry_fails() {
    let lost = Fault::Error(Part::Data, HostError::Damaged, 0);
    let refused = Fault::Bits(Part::Command, CardStatus::ERROR);
    let says = (Opcode::SendStatus, Fault::Bits(Part::Command, CardStatus::ERROR));
    let cases = [(Some(says), lost), (Some(says), refused), (None, lost), (None, refused)];
    for (policy, (said, unread)) in
        packing(Packed::Write).into_iter().flat_map(|of| cases.map(|case| (of, case)))
    {
        let mut faults = BTreeMap::new();
        for (command, fault) in said.into_iter().chain([(Opcode::SendExtCsd, unread)]) {
            let bench = write_bad_entry(policy, &faults);
            let mut spans = bench.spans().iter();
            let pack = spans.position(holds).expect("a pack should hold the bad entry");
            let after = spans.position(|span| span.command == command);
            faults.insert(pack + 1 + after.expect("the pack's end should be judged"), fault);
        }
        let mut bench = write_bad_entry(policy, &faults);
        let failures = 1 + u64::from(said.is_some());
        assert_eq!(bench.mmc().counts().failures, failures, "{policy:?}");
        // Nothing names the entry, so every request of the pack goes again.
        let mut packs = bench.spans().iter().filter(|span| span.requests > 0);
        let pack = packs.find(|span| holds(span)).expect("a pack should hold the bad entry");
        let sent: usize = bench.spans().iter().map(|span| span.requests).sum();
        assert_eq!(sent, 30 + pack.requests, "{policy:?}");
    }
}

fn write_bad_entry(policy: HostPolicy, faults: &BTreeMap<usize, Fault>) -> Bench {
    let mut bench = bench(policy, 8);
    bench.script().bad_entry = Some((1200, true));
    bench.script().faults = faults.clone();
    bench.writes(30);
    bench.settle();
    bench.all_ended_with(Status::Ok, 30);
    bench
}

#[test]
fn after_a_bus_error_all_requests_are_retried_alone_with_all_their_tries() {
    let faults = [
        Fault::Error(Part::Announce, HostError::Timeout, 0),
        Fault::Error(Part::Command, HostError::Damaged, 0),
        Fault::Error(Part::Data, HostError::Damaged, 3),
        Fault::Error(Part::Busy, HostError::Timeout, 0),
        Fault::Bits(Part::Command, CardStatus::ERROR),
        Fault::Silence,
    ];
    for packed in [Packed::Write, Packed::ReadWrite] {
        for policy in packing(packed) {
            for fault in faults {
                for at in 0..12 {
                    let mut bench = bench(policy, 8);
                    bench.script().faults.insert(at, fault);
                    bench.submit(mixture(at as u64, 10));
                    bench.writes(0);
                    bench.submit((10..30).map(|at| match packed {
                        Packed::Write => Bio::write(100 * at, 8, at),
                        _ => Bio::read(100 * at, 8, at),
                    }));
                    bench.settle();
                    bench.all_ended_with(Status::Ok, 30);
                    assert_eq!(bench.script().resets, 0);
                }
            }
        }
    }
}

#[test]
fn removing_the_card_ends_each_request_of_a_pack_once() {
    for policy in packing(Packed::ReadWrite) {
        for when in (0..6000).step_by(97) {
            let mut bench = bench(policy, 8);
            bench.submit((0..30).map(|at| match at / 10 {
                1 => Bio::read(100 * at, 8, at),
                _ => Bio::write(100 * at, 8, at),
            }));
            bench.until(Instant::ZERO + us(when));
            bench.script().abort(Instant::ZERO);
            bench.interrupt(HostEvent::CardGone);
            bench.settle();
            assert_eq!(bench.ended.len(), 30);
        }
    }
}

/// The card refuses an entry of a pack and is then removed. A write that the card has not done must
/// not succeed.
#[test]
fn a_write_after_the_failed_entry_does_not_succeed_when_the_card_is_removed() {
    for policy in packing(Packed::Write) {
        let mut refused = 0;
        for when in (0..20_000).step_by(41) {
            let mut bench = bench(policy, 8);
            bench.script().bad_entry = Some((1200, true));
            bench.writes(30);
            bench.until(Instant::ZERO + us(when));
            bench.script().abort(Instant::ZERO);
            bench.interrupt(HostEvent::CardGone);
            let removed = bench.now;
            bench.settle();
            // What was about to start ends first.
            let starts = bench
                .did
                .iter()
                .filter(|did| did.kind == ActKind::Start && did.from >= removed)
                .count();
            assert!(starts <= 1, "{policy:?}, removed after {when} us: {starts} starts");
            if !bench.spans().iter().any(|span| (span.sector, span.requests) == (Some(1200), 1)) {
                assert_ne!(bench.ended[&12], Status::Ok, "{policy:?}, removed after {when} us");
                refused += 1;
            }
        }
        assert!(refused > 0);
    }
}

#[test]
fn a_pack_refused_in_an_interrupt_keeps_its_order() {
    for order in [HsqOrder::Fifo, HsqOrder::TagWalk] {
        let hsq = HsqPolicy {
            defer: HsqDefer::Never,
            limit: HsqLimit::Fixed(20),
            order,
            ..HsqPolicy::V8
        };
        let policy = HostPolicy::new(Pipeline::Hsq(hsq), BusyDetect::Hardware);
        let mut bench = bench(HostPolicy { packed: Packed::Write, ..policy }, 8);
        bench.script().refusals = 3;
        // Reads end in an interrupt, which starts the next request.
        bench.reads(1);
        bench.submit((1..20).map(|at| Bio::write(100 * at, 8, at)));
        bench.settle();
        bench.all_ended_with(Status::Ok, 20);
        assert!(bench.mmc().counts().not_now > 0);
        let order: Vec<_> = bench.spans().iter().filter_map(|span| span.sector).collect();
        assert!(order.is_sorted(), "packs keep the order: {order:?}");
    }
}

#[test]
fn a_failed_header_of_a_packed_read_is_stopped_like_a_write() {
    for policy in packing(Packed::ReadWrite) {
        let mut bench = bench(policy, 8);
        bench.reads(40);
        // The first request is sent alone. The requests that are ready by then follow in a pack.
        let mut settled = self::bench(policy, 8);
        settled.reads(40);
        settled.settle();
        let at = settled
            .spans()
            .iter()
            .position(|span| span.command == Opcode::WriteMultiple)
            .expect("a pack should have a header");
        bench.script().faults.insert(at, Fault::Error(Part::Data, HostError::Damaged, 0));
        bench.settle();
        bench.all_ended_with(Status::Ok, 40);
        let stops = bench.script().commands.get(&12).copied();
        assert_eq!((stops, bench.script().resets), (Some(1), 0), "{policy:?}");
    }
}

/// Each write of a pack may keep the card busy for as long as a write that comes alone. A read
/// waits for its first data only.
#[test]
fn a_pack_has_the_time_of_its_requests() {
    for policy in packing(Packed::ReadWrite) {
        let mut bench = bench(policy, 8);
        let Target { read_limit, write_limit, .. } = bench.mmc().target;
        assert_ne!(read_limit, write_limit);
        bench.submit((0..60).map(|at| match at / 30 {
            0 => Bio::read(100 * at, 8, at),
            _ => Bio::write(100 * at, 8, at),
        }));
        bench.settle();
        assert_eq!(packs(&bench).into_iter().max(), Some(8), "{policy:?}");
        for span in bench.spans().iter().filter(|span| span.limit > Duration::ZERO) {
            let expected = match span.command {
                Opcode::ReadMultiple => read_limit,
                // The header of a packed read is a write of no request.
                Opcode::WriteMultiple => {
                    Duration::from_ns(write_limit.as_ns() * span.requests.max(1) as u64)
                }
                _ => continue,
            };
            assert_eq!(span.limit, expected, "{policy:?}: {span:?}");
        }
    }
}

/// The exception of a card that wants background operations says nothing about the pack.
#[test]
fn a_pack_is_done_if_the_exception_is_not_its_own() {
    for policy in packing(Packed::Write) {
        let mut bench = bench(policy, 8);
        bench.script().level = 2;
        bench.script().level_after = 2;
        bench.writes(30);
        bench.settle();
        bench.all_ended_with(Status::Ok, 30);
        let judged = bench.spans().iter().any(|span| span.command == Opcode::SendExtCsd);
        assert!(judged, "{policy:?}");
        assert_eq!(packs(&bench).iter().sum::<usize>(), 30, "no write goes again: {policy:?}");
    }
}

/// EXT_CSD names the entry that failed only of packed writes that the card itself reports as
/// failed.
#[test]
fn a_pack_of_which_ext_csd_says_nothing_is_not_judged_by_it() {
    let exception = CardStatus::ERROR | CardStatus::EXCEPTION_EVENT;
    for (packed, fault, expected) in [
        // Once, to see whether the card wants background operations.
        (Packed::ReadWrite, Fault::Bits(Part::Command, exception), 1),
        (Packed::Write, Fault::Error(Part::Data, HostError::Damaged, 0), 0),
    ] {
        for policy in packing(packed) {
            let well = run_packed(policy, packed, None);
            let pack = well.spans().iter().position(|span| span.requests > 1);
            let bench = run_packed(policy, packed, Some((pack.expect("a pack"), fault)));
            let asked = bench.spans().iter().filter(|it| it.command == Opcode::SendExtCsd).count();
            assert_eq!(asked, expected, "{policy:?}");
        }
    }
}

fn run_packed(policy: HostPolicy, packed: Packed, fault: Option<(usize, Fault)>) -> Bench {
    let mut bench = bench(policy, 8);
    bench.script().faults.extend(fault);
    match packed {
        Packed::Write => bench.writes(30),
        _ => bench.reads(30),
    }
    bench.settle();
    bench.all_ended_with(Status::Ok, 30);
    bench
}

/// Returns whether the transfer `span` holds the bad entry of the tests.
fn holds(span: &Span) -> bool {
    let first = span.sector.unwrap_or(u64::MAX);
    first <= 1200 && 1200 < first.saturating_add(100 * span.requests as u64)
}

/// An error bit in the status after a pack does not hide which entry failed.
#[test]
fn a_pack_of_which_the_status_has_an_error_bit_is_judged_by_its_entry() {
    for policy in packing(Packed::Write).into_iter().filter(|of| of.busy == BusyDetect::Status) {
        let well = write_with_status_error(policy, None);
        let pack = well.spans().iter().position(holds).expect("a pack should hold the bad entry");
        let status = well.spans()[pack..].iter().position(|it| it.command == Opcode::SendStatus);
        let mut bench = write_with_status_error(
            policy,
            Some(pack + status.expect("each pack should have a status")),
        );
        assert_eq!(bench.mmc().counts().failures, 1, "{policy:?}");
        let first = bench.spans()[pack].sector.unwrap();
        let sent: Vec<_> = bench
            .spans()
            .iter()
            .filter(|span| span.sector.is_some_and(|at| (first..1200).contains(&at)))
            .map(|span| span.sector)
            .collect();
        assert_eq!(sent, [Some(first)], "{policy:?}: what is done is not sent again");
        let next = bench.spans()[pack + 1..].iter().find(|span| span.requests > 0).unwrap();
        assert_eq!((next.sector, next.requests), (Some(1200), 1), "{policy:?}");
    }
}

fn write_with_status_error(policy: HostPolicy, fault: Option<usize>) -> Bench {
    let mut bench = bench(policy, 8);
    bench.script().bad_entry = Some((1200, true));
    if let Some(at) = fault {
        let error = Fault::Bits(Part::Command, CardStatus::ERROR);
        bench.script().faults.insert(at, error);
    }
    bench.writes(30);
    bench.settle();
    bench.all_ended_with(Status::Ok, 30);
    bench
}

/// A pack has at least two requests and at most as many entries as its header. A card that is asked
/// for packed reads too must take both. A command queue is not packed.
#[test]
fn a_pack_is_as_long_as_card_and_header_allow() {
    for (packed, writes, reads, expected) in [
        (Packed::Off, 8, 5, Some((0, 0, 0))),
        (Packed::Write, 8, 5, Some((8, 0, 8))),
        (Packed::Write, 2, 0, Some((2, 0, 2))),
        (Packed::Write, 1, 8, None),
        (Packed::Write, 255, 0, Some((MAX_ENTRIES, 0, MAX_ENTRIES))),
        (Packed::ReadWrite, 8, 5, Some((8, 5, 8))),
        (Packed::ReadWrite, 2, 6, Some((2, 6, 6))),
        (Packed::ReadWrite, 8, 1, None),
        (Packed::ReadWrite, 1, 8, None),
    ] {
        let found = pack_limit(Pipeline::TwoSlotFull, packed, writes, reads);
        assert_eq!(found, expected, "{packed:?} {writes} {reads}");
    }
    assert_eq!(pack_limit(Pipeline::Cqe, Packed::Write, 8, 8), None);
    assert!(pack_limit(Pipeline::Cqe, Packed::Off, 8, 8).is_some());
}

fn pack_limit(pipeline: Pipeline, packed: Packed, writes: u8, reads: u8) -> Option<(u8, u8, u8)> {
    let policy = HostPolicy { packed, ..HostPolicy::new(pipeline, BusyDetect::Status) };
    let target = Target { packed_writes: writes, packed_reads: reads, ..emmc() };
    let controller = Scripted::new(policy.transfer, policy.busy).with_segments(128);
    let of = PackLimit::of(&policy, &target, controller.capabilities());
    of.map(|of| (of.writes, of.reads, of.largest()))
}
