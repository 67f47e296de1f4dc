//! Exclusive operations on the card: their commands, order, limits and errors.

use super::*;
use crate::command::Opcode;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};
use crate::register::example;

/// A bench with an eMMC device under `policy`.
pub(super) fn bench(policy: HostPolicy) -> Bench {
    let controller = Scripted::new(policy.transfer, policy.busy);
    Bench::with(Policies::NONE, controller, emmc(), policy)
}

pub(super) fn simple(busy: BusyDetect) -> Bench {
    bench(HostPolicy::new(Pipeline::TwoSlotFull, busy))
}

pub(super) const FLUSH: Bio = Bio::new(Op::Flush, 0, 0, 900);
pub(super) const DISCARD: Bio = Bio::new(Op::Discard, 100, 1000, 900);
pub(super) const ZEROES: Bio = Bio::new(Op::WriteZeroes, 100, 1000, 900);
pub(super) const SECURE: Bio = Bio::new(Op::SecureErase, 100, 1000, 900);

/// Returns the numbers and arguments of commands without data.
pub(super) fn sent(bench: &mut Bench) -> Vec<(u8, u32)> {
    bench.script().log.iter().map(|command| (command.opcode.index(), command.argument)).collect()
}

#[test]
fn each_operation_sends_its_commands() {
    let secure = [erase_commands(0x8000_0001), erase_commands(0x8000_8000)].concat();
    let flush = [(6, 0x0320_0100)];
    for policy in every_policy() {
        for (bio, expected) in [
            (FLUSH, &flush[..]),
            (DISCARD, &erase_commands(3)),
            (ZEROES, &erase_commands(1)),
            (SECURE, &secure),
        ] {
            let mut bench = bench(policy);
            bench.writes(1);
            bench.settle();
            bench.submit([bio]);
            bench.settle();
            bench.all_ended_with(Status::Ok, 2);
            assert_eq!(sent(&mut bench), expected, "{policy:?}");
            let alone = bench.did.iter().skip_while(|did| did.kind != ActKind::SendCommand);
            assert!(
                alone.into_iter().all(|did| did.context == Context::Thread),
                "not the thread: {policy:?}"
            );
            let on_bus: Vec<_> = bench.spans().iter().map(|span| span.command).collect();
            let ends = on_bus
                .iter()
                .zip(&on_bus[1..])
                .filter(|(command, _)| matches!(**command, Opcode::Switch | Opcode::Erase));
            let busy_ends = expected.iter().filter(|(index, _)| matches!(index, 6 | 38)).count();
            assert!(ends.clone().count() >= busy_ends, "{policy:?}");
            assert!(ends.into_iter().all(|(_, next)| *next == Opcode::SendStatus), "{policy:?}");
        }
    }
}

fn erase_commands(argument: u32) -> [(u8, u32); 3] {
    [(35, 100), (36, 1099), (38, argument)]
}

#[test]
fn an_sd_card_erases_by_sd_commands_and_an_old_one_in_whole_units() {
    let ssr = [(24, 0b0000_0010)];
    for (csd, ssr, scr, expected) in [
        (example::CSD_SAMSUNG_32G, &ssr[..], "0235800300000000", [(32, 100), (33, 1099), (38, 1)]),
        (example::CSD_SAMSUNG_32G, &[], "0235800300000000", [(32, 100), (33, 1099), (38, 0)]),
    ] {
        let card = crate::card::tests::sd(csd, ssr, scr);
        let policy = HostPolicy::new(Pipeline::BlkMqWait, BusyDetect::Status);
        let controller = Scripted::new(policy.transfer, policy.busy);
        let target = Target::of(&card, controller.capabilities());
        let mut bench = Bench::with(Policies::NONE, controller, target, policy);
        bench.submit([DISCARD]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        assert_eq!(sent(&mut bench), expected);
    }
    // 4.41 without trim: whole erase groups of 1024 sectors.
    let mut bytes = crate::register::ext_csd::example::emmc_4_41();
    bytes[usize::from(index::SEC_FEATURE_SUPPORT)] = 0;
    let card = crate::card::tests::emmc(bytes, &[]);
    let policy = HostPolicy::new(Pipeline::BlkMqWait, BusyDetect::Status);
    let controller = Scripted::new(policy.transfer, policy.busy);
    let target = Target::of(&card, controller.capabilities());
    let mut bench = Bench::with(Policies::NONE, controller, target, policy);
    bench.submit([DISCARD, Bio::new(Op::Discard, 2000, 3000, 1), Bio::read(0, 8, 2)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 3);
    assert_eq!(
        sent(&mut bench),
        [(35, 2048), (36, 4095), (38, 0)],
        "the first discard has no whole unit"
    );
}

#[test]
fn operations_that_a_card_does_not_support_are_refused() {
    let host = Scripted::new(Transfer::Dma, BusyDetect::Hardware);
    let new = emmc();
    assert_eq!(supported(&new), ([true; 2], true, true, true));
    assert_eq!((new.reliable_write, new.set_block_count), (ReliableWrite::Any, true));
    assert_eq!((new.rca, new.addressing), (Rca(2), Addressing::Sectors));
    assert_eq!((new.hpi, new.interrupt_limit), (Some(Hpi::SendStatus), Duration::from_ms(50)));
    assert_eq!((new.packed_writes, new.packed_reads, new.bkops), (0, 0, false));
    let mut bytes = emmc_5_1();
    for (at, value) in [(index::EXCEPTION_EVENTS_CTRL, 8), (index::BKOPS_EN, 1)] {
        bytes[usize::from(at)] = value;
    }
    let reporting = Target::of(&crate::card::tests::emmc(bytes, &[]), host.capabilities());
    assert_eq!((reporting.packed_writes, reporting.packed_reads, reporting.bkops), (63, 60, true));
    let mut bytes = crate::register::ext_csd::example::emmc_4_41();
    bytes[usize::from(index::SEC_FEATURE_SUPPORT)] = 0;
    let plain = Target::of(&crate::card::tests::emmc(bytes, &[]), host.capabilities());
    assert_eq!(supported(&plain), ([true, false], false, false, false), "whole erase groups only");
    assert_eq!(supported(&CARD), ([false; 2], false, false, false));
    assert!(Operation::of(Op::Flush, &CARD).is_some(), "a flush of no cache has nothing to do");
    for op in [Op::Discard, Op::WriteZeroes, Op::SecureErase] {
        assert_eq!(Operation::of(op, &CARD), None);
        assert!(Operation::of(op, &new).is_some());
    }
    assert_eq!(Operation::of(Op::DriverIn, &new), None);
}

fn supported(target: &Target) -> ([bool; 2], bool, bool, bool) {
    let ranges = [target.discard, target.write_zeroes].map(|way| way.is_some());
    (ranges, target.secure_erase.is_some(), target.sanitize, target.cache_on)
}

#[test]
fn an_exclusive_operation_waits_for_earlier_requests_and_nothing_passes_it() {
    for policy in every_policy() {
        for when in (0..3000).step_by(61) {
            let mut bench = bench(policy);
            bench.submit(mixture(when, 30));
            bench.until(Instant::ZERO + us(when));
            let before = bench.spans().len();
            bench.waiting.push_front(DISCARD);
            bench.settle();
            bench.all_ended_with(Status::Ok, 31);
            let spans = bench.spans();
            let from = first_span(spans, Opcode::MmcEraseStart);
            let to = first_span(spans, Opcode::Erase);
            assert_eq!(count_transfers(&spans[from..to]), 0);
            // [exclusive-waits-for-idle]: the submitter has up to 64 requests in the queue. At most
            // the requests in slots precede the operation.
            let passed = count_transfers(&spans[before..from]);
            assert!(passed <= 30 && from >= before);
        }
    }
}

fn first_span(spans: &[Span], opcode: Opcode) -> usize {
    spans.iter().position(|span| span.command == opcode).unwrap()
}

fn count_transfers(spans: &[Span]) -> usize {
    spans.iter().filter(|s| s.sector.is_some()).count()
}

#[test]
fn a_stream_of_requests_does_not_starve_a_flush() {
    for policy in EVERY_PIPELINE {
        let mut bench = bench(HostPolicy::new(policy, BusyDetect::Hardware));
        bench.depth = 4;
        bench.submit((0..20).map(|at| Bio::read(100 * at, 8, at)));
        bench.submit([FLUSH]);
        bench.submit((21..200).map(|at| Bio::read(100 * at, 8, at)));
        bench.settle();
        let spans = bench.spans();
        let at = spans.iter().position(|span| span.command == Opcode::Switch).unwrap();
        let slots = usize::from(bench.host.driver.below.plan.slots);
        assert!(at <= 20 + slots.min(4), "{policy:?}: {at}");
    }
}

#[test]
fn a_card_is_reset_after_the_limit_of_an_operation_and_not_before() {
    let trim = Duration::from_ms(3000); // two groups of 1.5 s
    for (bio, limit) in [(FLUSH, Duration::from_secs(30)), (DISCARD, trim), (ZEROES, trim)] {
        for busy in EVERY_BUSY {
            let pause = LONGEST_PAUSE + us(100);
            for (takes, status, resets) in [
                (Duration::from_ns(limit.as_ns() - 2 * pause.as_ns()), Status::Ok, 0),
                (limit + pause + pause, Status::Timeout, 1),
                (Duration::from_secs(10_000), Status::Timeout, 1),
            ] {
                let mut bench = simple(busy);
                bench.script().switch_busy = takes;
                bench.script().erase_busy = takes;
                bench.submit([bio, Bio::read(5000, 8, 1)]);
                bench.settle();
                assert_eq!(bench.ended[&900], status, "{bio:?} {busy:?} {takes:?}");
                assert_eq!((bench.ended[&1], bench.script().resets), (Status::Ok, resets));
                assert!(
                    bench.now < Instant::ZERO + limit + Duration::from_secs(11),
                    "an overdue operation is not tried again"
                );
            }
        }
    }
}

#[test]
fn an_error_at_any_command_repeats_the_operation_from_its_first_command() {
    for busy in EVERY_BUSY {
        for at in 0..12 {
            for fault in [
                Fault::Error(Part::Command, HostError::Timeout, 0),
                Fault::Error(Part::Command, HostError::Damaged, 0),
                Fault::Error(Part::Busy, HostError::Timeout, 0),
                Fault::Bits(Part::Command, CardStatus::ERROR),
                Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR),
                Fault::Silence,
            ] {
                for bio in [FLUSH, DISCARD, SECURE] {
                    let mut bench = simple(busy);
                    bench.script().faults.insert(at, fault);
                    bench.submit([bio]);
                    bench.settle();
                    bench.all_ended_with(Status::Ok, 1);
                    assert_eq!(bench.script().resets, 0, "{fault:?} at {at}");
                }
            }
        }
    }
}

#[test]
fn a_failed_switch_shows_in_the_status_after_busy_and_is_retried_five_times() {
    for busy in EVERY_BUSY {
        let mut bench = simple(busy);
        bench.script().switch_busy = us(0);
        let refused = Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR);
        bench.script().faults.extend((0..20).map(|at| (2 * at + 1, refused)));
        bench.submit([FLUSH]);
        bench.settle();
        let flushes = sent(&mut bench).len();
        assert_eq!((bench.ended[&900], bench.script().resets, flushes), (Status::IoError, 1, 6));
    }
}

#[test]
fn only_a_write_past_the_cache_is_a_reliable_write() {
    for policy in every_policy() {
        let mut bench = bench(policy);
        bench.submit((0..12).map(|at| {
            let bio = Bio::write(100 * at, 1 + u32::try_from(at % 2).unwrap(), at);
            if at % 3 == 0 { bio.with_flags(Flags::FUA) } else { bio }
        }));
        bench.settle();
        bench.all_ended_with(Status::Ok, 12);
        let expected: Vec<_> = (0..12).filter(|&at| at % 3 == 0).map(|at| 100 * at).collect();
        assert!(bench.script().forced.iter().eq(&expected), "{policy:?}");
        assert!(sent(&mut bench).is_empty(), "no flush should replace a reliable write");
    }
    // Without reliable write on the card, a flush replaces it.
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let target = Target { reliable_write: ReliableWrite::None, ..emmc() };
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, target, policy);
    bench.submit([Bio::write(0, 8, 0).with_flags(Flags::FUA)]);
    bench.settle();
    assert_eq!(sent(&mut bench), [(6, 0x0320_0100)]);
}

/// As in Linux, a card without a cache gets reliable writes. Its flush waits like any other and
/// sends nothing, so that the engine stays on.
#[test]
fn without_a_cache_durable_writes_are_reliable_and_flushes_have_no_command() {
    for policy in every_policy() {
        let controller = Scripted::new(policy.transfer, policy.busy);
        let target = Target { cache_on: false, ..emmc() };
        let mut bench = Bench::with(Policies::NONE, controller, target, policy);
        bench.submit([durable_write(100), Bio::write(200, 8, 200), FLUSH, durable_write(300)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 4);
        assert!(bench.script().forced.iter().eq(&[100, 300]), "{policy:?}");
        assert!(sent(&mut bench).is_empty(), "{policy:?}: a flush was sent");
        assert_eq!(bench.count(ActKind::DisableEngine), 0, "{policy:?}");
        let flush = bench.did.iter().find(|did| did.sector == 0).expect("the end of the flush");
        let beside = bench.spans().iter().find(|span| span.from < flush.to && flush.from < span.to);
        assert!(beside.is_none(), "{policy:?} [exclusive-waits-for-idle]: {beside:?}");
    }
}

fn durable_write(at: u64) -> Bio {
    Bio::write(at, 8, at).with_flags(Flags::FUA)
}

/// REL_WR_SEC_C: without EN_REL_WR, a card takes reliable writes of one sector, or of that many
/// from a multiple of it on.
#[test]
fn a_reliable_write_has_a_length_that_the_card_takes() {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    for (only, sector, sectors, expected) in [
        (1, 800, 8, vec![1; 8]),
        (8, 800, 8, vec![8]),
        (8, 800, 20, vec![8, 8, 1, 1, 1, 1]),
        (8, 804, 13, vec![1, 1, 1, 1, 8, 1]),
        (16, 800, 8, vec![1; 8]),
    ] {
        let target = Target { reliable_write: ReliableWrite::OneOr(only), ..emmc() };
        let controller = Scripted::new(policy.transfer, policy.busy);
        let mut bench = Bench::with(Policies::NONE, controller, target, policy);
        bench.submit([Bio::write(sector, sectors, 0).with_flags(Flags::FUA)]);
        bench.settle();
        assert_eq!(bench.ended[&0], Status::Ok);
        let writes = bench.script().reliable.clone();
        let counts: Vec<_> = writes.iter().map(|(_, blocks)| *blocks).collect();
        assert_eq!(counts, expected, "{only}: {sectors} from {sector}");
        assert_eq!(writes[0].0, sector);
        let mut next = sector;
        for (at, blocks) in writes {
            assert_eq!(at, next, "the pieces should follow each other");
            next += u64::from(blocks);
        }
    }
}

/// The driver refuses a durable write that the card cannot do, although the queue may send one.
#[test]
fn a_durable_write_that_the_card_cannot_do_is_refused() {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    for (reliable_write, flags, expected) in [
        (ReliableWrite::Any, Flags::FUA, Status::Ok),
        (ReliableWrite::OneOr(8), Flags::FUA, Status::Ok),
        (ReliableWrite::None, Flags::FUA, Status::NotSupported),
        (ReliableWrite::None, Flags::NONE, Status::Ok),
    ] {
        let mut bench = bench(policy);
        bench.mmc().target.reliable_write = reliable_write;
        bench.submit([Bio::write(800, 8, 0).with_flags(flags)]);
        bench.settle();
        assert_eq!(bench.ended[&0], expected, "{reliable_write:?}, {flags:?}");
    }
}

/// A command's argument names 2^32 sectors.
#[test]
fn a_request_that_ends_beyond_the_addresses_of_the_card_is_refused() {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let sector = (1 << 32) - 8;
    for (sectors, expected) in [(8, Status::Ok), (16, Status::NotSupported)] {
        let write = Bio::write(sector, sectors, 0);
        for bio in [Bio::read(sector, sectors, 0), write, write.with_flags(Flags::FUA)] {
            let mut bench = bench(policy);
            bench.submit([bio]);
            bench.settle();
            assert_eq!(bench.ended[&0], expected, "{bio:?}");
        }
    }
}

#[test]
fn a_reset_that_may_lose_data_fails_the_next_flush_once() {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    for (writes, flushes_before, expected) in
        [(1, false, Status::IoError), (0, false, Status::Ok), (1, true, Status::Ok)]
    {
        let mut bench = bench(policy);
        bench.writes(writes);
        bench.settle();
        if flushes_before {
            bench.submit([Bio::new(Op::Flush, 0, 0, 901)]);
            bench.settle();
        }
        // Two tries with data errors, then a reset.
        let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
        bench.script().bad_sector = Some((5000, Some(fault), None));
        bench.submit([Bio::read(5000, 8, 50)]);
        bench.settle();
        assert_eq!(bench.script().resets, 1);
        for (cookie, expected) in [(910, expected), (911, Status::Ok)] {
            bench.submit([Bio::new(Op::Flush, 0, 0, cookie)]);
            bench.settle();
            assert_eq!(bench.ended[&cookie], expected);
        }
    }
}

/// Found by the simulator's swarm: a flush that was requested before a reset and accepted after the
/// recovery reported the loss. A submitter that waited for the next flush had also asked before the
/// reset, and got a success.
#[test]
fn every_flush_requested_before_a_reset_reports_the_loss() {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let mut before = 0;
    let mut after = 0;
    for when in (0..4000).step_by(20) {
        let mut bench = bench(policy);
        bench.writes(1);
        bench.settle();
        let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
        bench.script().bad_sector = Some((5000, Some(fault), None));
        bench.submit([Bio::read(5000, 8, 50)]);
        bench.until(bench.now + us(when));
        let is_early = bench.script().resets == 0;
        // One flush is in flight at a time. The second request waits for the next flush.
        bench.submit([910, 911].map(|cookie| Bio::new(Op::Flush, 0, 0, cookie)));
        bench.settle();
        assert_eq!(bench.script().resets, 1);
        bench.submit([Bio::new(Op::Flush, 0, 0, 912)]);
        bench.settle();
        let ended = [910, 911, 912].map(|cookie| bench.ended[&cookie]);
        if is_early {
            before += 1;
            assert_eq!(ended, [Status::IoError, Status::IoError, Status::Ok], "{when}");
        } else {
            after += 1;
            assert_eq!((ended[0], ended[2]), (Status::IoError, Status::Ok), "{when}");
        }
    }
    assert!(before > 10 && after > 10, "{before} flushes came before the reset, {after} after it");
}

#[test]
fn a_sanitize_waits_like_other_exclusive_operations() {
    for policy in every_policy() {
        let mut bench = bench(policy);
        bench.reads(10);
        bench.until(Instant::ZERO + us(150));
        let now = bench.now;
        assert_eq!(bench.mmc().sanitize(now), Ok(()));
        assert_eq!(bench.mmc().sanitize(now), Err(NoSanitize::Busy));
        assert_eq!(bench.mmc().idle(), Idle::NotYet);
        bench.settle();
        bench.until(now + Duration::from_ms(50));
        bench.all_ended_with(Status::Ok, 10);
        assert_eq!(sent(&mut bench), [(6, 0x03a5_0100)]);
        let ended = [(); 2].map(|()| bench.mmc().next_sanitized());
        assert_eq!(ended, [Some(Status::Ok), None], "{policy:?}");
        bench.submit([Bio::read(9000, 8, 99)]);
        bench.settle();
    }
    let mut none = Bench::new(HostPolicy::new(Pipeline::Serial, BusyDetect::Status));
    assert_eq!(none.mmc().sanitize(Instant::ZERO), Err(NoSanitize::NotSupported));
}

#[test]
fn a_sanitize_may_take_four_minutes() {
    for (takes, status) in [(239, Status::Ok), (241, Status::Timeout)] {
        let mut bench = simple(BusyDetect::Hardware);
        bench.script().switch_busy = Duration::from_secs(takes);
        assert_eq!(bench.mmc().sanitize(Instant::ZERO), Ok(()));
        bench.submit([Bio::read(0, 8, 1)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 1);
        assert_eq!(bench.mmc().next_sanitized(), Some(status));
    }
}

#[test]
fn removing_the_card_ends_an_operation_at_any_command() {
    for policy in every_policy() {
        for bio in [FLUSH, SECURE] {
            for when in (0..2500).step_by(49) {
                let mut bench = bench(policy);
                bench.submit([Bio::write(0, 8, 0), bio, Bio::read(500, 8, 1)]);
                bench.until(Instant::ZERO + us(when));
                bench.pull_out();
                bench.settle();
                assert_eq!(bench.ended.len(), 3);
            }
        }
    }
}

#[test]
fn a_drifted_bus_is_tuned_before_an_operation_and_not_within_it() {
    for at in 0..3 {
        let mut bench = bench(HostPolicy::new(Pipeline::Hsq(HsqPolicy::V8), BusyDetect::Hardware));
        bench.script().tuned = true;
        bench.script().faults.insert(at, Fault::Drift);
        bench.submit([Bio::read(0, 8, 0)]);
        bench.settle();
        bench.submit([DISCARD, Bio::read(5000, 8, 1)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 3);
        assert_eq!(bench.script().retunes, 1);
    }
}

/// CMD23, which asks for a reliable write, goes before CMD25 only, however short the write is.
#[test]
fn a_short_reliable_write_is_a_write_of_several_blocks() {
    for busy in EVERY_BUSY {
        let mut bench = simple(busy);
        bench.submit([
            Bio::write(100, 1, 1),
            Bio::write(200, 1, 2).with_flags(Flags::FUA),
            Bio::write(300, 8, 3),
        ]);
        bench.settle();
        let commands = [100, 200, 300].map(|sector| bench.span(sector).command);
        assert_eq!(commands, [Opcode::WriteSingle, Opcode::WriteMultiple, Opcode::WriteMultiple]);
    }
}
