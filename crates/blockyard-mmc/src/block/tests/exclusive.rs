//! Exclusive operations on the card: their commands, order, limits and errors.

use super::*;
use crate::command::state::CardState;
use crate::command::status::Status as CardStatus;
use crate::command::{Command, Opcode, Response};
use crate::controller::{HostError, Part};
use crate::engine::EngineEvent;
use crate::register::example;

/// A bench with an eMMC device under `policy`.
fn bench(policy: HostPolicy) -> Bench {
    let controller = Scripted::new(policy.transfer, policy.busy);
    Bench::with(Policies::NONE, controller, emmc(), policy)
}

fn simple(busy: BusyDetect) -> Bench {
    bench(HostPolicy::new(Pipeline::TwoSlotFull, busy))
}

const FLUSH: Bio = Bio::new(Op::Flush, 0, 0, 900);
const DISCARD: Bio = Bio::new(Op::Discard, 100, 1000, 900);
const ZEROES: Bio = Bio::new(Op::WriteZeroes, 100, 1000, 900);
const SECURE: Bio = Bio::new(Op::SecureErase, 100, 1000, 900);

/// Returns the numbers and arguments of commands without data.
fn sent(bench: &mut Bench) -> Vec<(u8, u32)> {
    let sent = |command: &Command| (command.opcode.index(), command.argument);
    bench.script().log.iter().map(sent).collect()
}

#[test]
fn each_operation_sends_its_commands() {
    let erase = |argument| [(35, 100), (36, 1099), (38, argument)];
    let secure = [erase(0x8000_0001), erase(0x8000_8000)].concat();
    let flush = [(6, 0x0320_0100)];
    for policy in every_policy() {
        for (bio, expected) in
            [(FLUSH, &flush[..]), (DISCARD, &erase(3)), (ZEROES, &erase(1)), (SECURE, &secure)]
        {
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
            let by_itself = |command| matches!(command, Opcode::Switch | Opcode::Erase);
            let ends = on_bus.iter().zip(&on_bus[1..]).filter(|(command, _)| by_itself(**command));
            let busy_ends = expected.iter().filter(|(index, _)| matches!(index, 6 | 38)).count();
            assert!(ends.clone().count() >= busy_ends, "{policy:?}");
            assert!(
                ends.into_iter().all(|(_, next)| *next == Opcode::SendStatus),
                "[exclusive-asks-status] {policy:?}"
            );
        }
    }
}

/// The commands of a flush through an engine with two tasks before it: the queue stays on.
#[test]
fn a_flush_is_a_direct_command_if_the_engine_takes_it() {
    for direct in [true, false] {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.script().capabilities.queue_engine_direct = direct;
        bench.writes(2);
        bench.settle();
        let before = bench.spans().len();
        bench.submit([FLUSH, Bio::read(500, 8, 901)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 4);
        assert!(bench.script().is_durable(0));
        let commands: Vec<_> = bench.spans()[before..].iter().map(|span| span.command).collect();
        let switch = Opcode::Switch;
        let status = Opcode::SendStatus;
        let expected = match direct {
            true => vec![switch, status, Opcode::ExecuteRead],
            // Queue off, the flush, queue on.
            false => vec![switch, status, switch, status, switch, status, Opcode::ExecuteRead],
        };
        assert_eq!(commands, expected);
        assert_eq!(bench.script().engine.disables.len(), usize::from(!direct));
    }
}

/// If the direct command of a flush or the CMD13 after it fails, the flush starts again without the engine.
#[test]
fn a_flush_that_fails_as_a_direct_command_is_done_without_the_engine() {
    let said = Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR);
    let lost = Fault::Error(Part::Command, HostError::Timeout, 0);
    for fault in [said, lost, Fault::Silence] {
        for at in 0..2 {
            let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
            bench.writes(1);
            bench.settle();
            // A failure reported here is not reported in the response to the flush.
            bench.submit([Bio::read(100, 8, 1)]);
            bench.settle();
            let next = bench.spans().len();
            bench.script().faults.insert(next + at, fault);
            bench.submit([FLUSH]);
            bench.settle();
            bench.all_ended_with(Status::Ok, 3);
            assert!(bench.script().is_durable(0), "{fault:?} at {at}");
            assert!(!bench.script().engine.disables.is_empty(), "{fault:?} at {at}");
            let flushes = sent(&mut bench).len();
            assert!(flushes > 0 && flushes <= 2, "{fault:?} at {at}: {flushes}");
        }
    }
}

/// A direct flush that exceeds its time limit is not retried ([overdue-operation-ends]): the card is
/// reset, and the flush ends.
#[test]
fn a_direct_flush_ends_at_its_limit() {
    let seconds = Duration::from_secs;
    for (takes, status, resets) in [(seconds(29), Status::Ok, 0), (seconds(33), Status::Timeout, 1)]
    {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.writes(1);
        bench.settle();
        bench.script().busy = takes;
        let sent = |bench: &Bench| {
            bench.spans().iter().filter(|span| span.command == Opcode::Switch).count()
        };
        let before = sent(&bench);
        bench.submit([FLUSH]);
        bench.settle();
        assert_eq!((bench.ended[&900], bench.script().resets), (status, resets), "{takes:?}");
        assert!(bench.now < Instant::ZERO + seconds(30) + us(20_000), "[overdue-operation-ends]");
        assert!(sent(&bench) <= before + 1, "the flush was sent again");
        // The reset loses the cache's content, which one more flush reports ([reset-loss-fails-flush]).
        bench.script().busy = us(100);
        bench.submit([Bio { cookie: 901, ..FLUSH }, Bio::read(500, 8, 1)]);
        bench.settle();
        bench.submit([Bio { cookie: 902, ..FLUSH }]);
        bench.settle();
        let second = if resets > 0 { Status::IoError } else { Status::Ok };
        let ended = [1, 901, 902].map(|cookie| bench.ended[&cookie]);
        assert_eq!(ended, [Status::Ok, second, Status::Ok], "{takes:?}");
    }
}

/// The card becomes ready with a direct flush shortly after the limit. From then on it is not the flush that keeps it
/// busy, but what the recovery asks for, and the flush is repeated.
#[test]
fn a_direct_flush_that_is_done_soon_after_its_limit_is_repeated_without_a_reset() {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Status));
    bench.writes(1);
    bench.settle();
    bench.submit([Bio::read(100, 8, 1)]); // the card confirms the write
    bench.settle();
    bench.script().busy = Duration::from_secs(30) + us(3000);
    bench.script().queue_busy = us(1000);
    bench.submit([FLUSH]);
    bench.settle();
    assert_eq!((bench.ended[&900], bench.script().resets), (Status::Ok, 0));
    assert!(bench.count(ActKind::DiscardTasks) == 1 && sent(&mut bench).len() == 2);
}

/// The status after a direct flush says that the card is still at it.
#[test]
fn a_direct_flush_is_done_only_when_the_card_is_ready() {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.reads(1);
    bench.settle();
    bench.submit([FLUSH]);
    while bench
        .mmc()
        .slots
        .iter()
        .all(|slot| (slot.stage, slot.commands_done) != (Stage::Direct, 1))
    {
        bench.until(bench.now + us(1));
    }
    let busy = Response::Short(CardStatus::new(CardState::Programming, false).0);
    bench.interrupt(HostEvent::Engine(EngineEvent::DirectDone(busy)));
    bench.settle();
    bench.all_ended_with(Status::Ok, 2);
    assert_eq!(sent(&mut bench).len(), 2, "it is repeated without the engine");
}

/// The card does not come back from the reset that ends a direct flush.
#[test]
fn a_late_direct_flush_of_a_card_that_does_not_survive_its_reset_ends_once() {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.writes(1);
    bench.settle();
    bench.script().busy = Duration::from_secs(33);
    bench.script().dies_at_reset = true;
    bench.submit([FLUSH]);
    bench.settle();
    assert_eq!((bench.ended[&900], bench.script().resets), (Status::Gone, 1));
}

/// [retries-bounded]: the direct command is the first try.
#[test]
fn a_flush_that_always_fails_is_tried_as_often_with_an_engine_as_without() {
    let refused = Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR);
    let mut faults = BTreeMap::new();
    let mut bench = loop {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.script().faults = faults.clone();
        bench.reads(1);
        bench.settle();
        bench.submit([FLUSH]);
        bench.settle();
        // The card refuses the last flush, too: the status after it says so.
        let of_queue = bench.mmc().target.switch_limit;
        let is_flush = |span: &Span| span.command == Opcode::Switch && span.limit != of_queue;
        let last = bench.spans().iter().rposition(is_flush).expect("flush");
        if faults.insert(last + 1, refused).is_some() {
            break bench;
        }
    };
    assert_eq!(bench.ended[&900], Status::IoError);
    assert_eq!(sent(&mut bench).len(), 1 + usize::from(RETRIES_MAX));
}

/// A write is reported, and the response to the direct flush after it has `bits`, which also concern the write.
/// This flush and the next one fail, and the third succeeds.
fn direct_flush_with_response(bits: u32) -> Bench {
    let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
    bench.writes(1);
    bench.settle();
    let next = bench.spans().len();
    bench.script().faults.insert(next, Fault::Bits(Part::Command, bits));
    bench.until(bench.now + us(1));
    bench.submit([FLUSH]);
    bench.settle();
    for cookie in 901..903 {
        bench.submit([Bio { cookie, ..FLUSH }]);
        bench.settle();
    }
    let ended = [0, 900, 901, 902].map(|cookie| bench.ended[&cookie]);
    assert_eq!(ended, [Status::Ok, Status::IoError, Status::IoError, Status::Ok]);
    bench
}

/// The response to a direct flush reports that the flush was refused and that the write before it failed. The host
/// acts on both.
#[test]
fn a_refused_direct_flush_does_not_hide_a_late_write_error() {
    let mut bench = direct_flush_with_response(CardStatus::ERROR | CardStatus::SWITCH_ERROR);
    let counts = bench.mmc().counts();
    assert_eq!((counts.lost_writes, counts.failures), (1, 1));
    assert!(
        !bench.script().engine.disables.is_empty(),
        "the flush is sent again without the engine"
    );
}

/// The first response after a reported write is damaged or missing, or its interrupt is lost, so the write's fate is
/// unknown. Flushes fail as for a lost write, and the write counts as in doubt ([doubtful-write-fails-flush]).
#[test]
fn a_write_is_in_doubt_if_the_next_response_got_lost() {
    let lost = [HostError::Damaged, HostError::Timeout];
    let lost = lost.map(|error| Fault::Error(Part::Announce, error, 0)).into_iter();
    for fault in lost.chain([Fault::Silence]) {
        for pipeline in one_by_one() {
            let mut bench = bench(HostPolicy::new(pipeline, BusyDetect::Hardware));
            bench.writes(1);
            bench.settle();
            let next = bench.spans().len();
            bench.script().faults.insert(next, fault);
            bench.submit([Bio::read(5000, 8, 50)]);
            bench.settle();
            for cookie in 910..912 {
                bench.submit([Bio { cookie, ..FLUSH }]);
                bench.settle();
            }
            let ended = [0, 50, 910, 911].map(|cookie| bench.ended[&cookie]);
            let expected = [Status::Ok, Status::Ok, Status::IoError, Status::Ok];
            assert_eq!(ended, expected, "{pipeline:?} {fault:?}");
            let counts = bench.mmc().counts();
            assert_eq!(
                (counts.lost_writes, counts.doubtful_writes),
                (0, 1),
                "{pipeline:?} {fault:?}"
            );
        }
    }
}

/// The same with a command queue: at one of the engine's own commands, at a direct command, or when the engine is
/// turned off.
#[test]
fn a_write_is_in_doubt_if_the_engines_next_response_got_lost() {
    let lost = Fault::Error(Part::Command, HostError::Damaged, 0);
    for (direct, fault, bio, flushed) in [
        (true, lost, Bio::read(500, 8, 50), Status::Ok),
        (true, lost, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (true, Fault::Silence, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (false, lost, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (false, Fault::Silence, Bio { cookie: 50, ..FLUSH }, Status::IoError),
    ] {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.script().capabilities.queue_engine_direct = direct;
        bench.writes(1);
        bench.settle();
        let next = bench.spans().len();
        bench.script().faults.insert(next, fault);
        bench.until(bench.now + us(1));
        bench.submit([bio]);
        bench.settle();
        for cookie in 910..912 {
            bench.submit([Bio { cookie, ..FLUSH }]);
            bench.settle();
        }
        let ended = [0, 50, 910, 911].map(|cookie| bench.ended[&cookie]);
        assert_eq!(ended, [Status::Ok, flushed, Status::IoError, Status::Ok], "{bio:?} {direct}");
        let counts = bench.mmc().counts();
        assert_eq!((counts.lost_writes, counts.doubtful_writes), (0, 1), "{bio:?} {direct}");
    }
}

/// The card is reset before it has responded after a reported write ([doubtful-write-fails-flush]).
#[test]
fn a_write_is_in_doubt_if_the_card_is_reset_before_it_responds() {
    let mut bench = simple(BusyDetect::Hardware);
    bench.submit([Bio::write(0, 8, 0).with_flags(Flags::FUA)]); // nothing else can be lost
    bench.settle();
    let now = bench.now + us(1);
    bench.until(now);
    assert!(bench.mmc().has_unconfirmed_write() && bench.mmc().reset_host(now));
    for cookie in 910..912 {
        bench.submit([Bio { cookie, ..FLUSH }]);
        bench.settle();
    }
    let ended = [910, 911].map(|cookie| bench.ended[&cookie]);
    assert_eq!(ended, [Status::IoError, Status::Ok]);
    assert_eq!(bench.mmc().counts().doubtful_writes, 1);
}

/// A write is in doubt and not reported yet. A flush that is accepted before the report does not cover it, so
/// the next flush also fails ([reset-loss-fails-flush]).
#[test]
fn a_flush_accepted_before_a_doubtful_write_is_reported_does_not_cover_it() {
    let mut bench = bench(HostPolicy::new(Pipeline::Hsq(HsqPolicy::TODAY), BusyDetect::Hardware));
    bench.writes(1);
    while !matches!(bench.mmc().unconfirmed, UnconfirmedWrite::Held(_)) {
        bench.until(bench.now + us(1));
    }
    bench.mmc().unconfirmed_write_in_doubt();
    bench.until(bench.now + us(1));
    bench.submit([FLUSH]);
    bench.until(bench.now);
    assert!(bench.ended.is_empty() && bench.mmc().exclusive.is_some());
    bench.settle();
    for cookie in 910..912 {
        bench.submit([Bio { cookie, ..FLUSH }]);
        bench.settle();
    }
    let ended = [0, 900, 910, 911].map(|cookie| bench.ended[&cookie]);
    assert_eq!(ended, [Status::Ok, Status::IoError, Status::IoError, Status::Ok]);
}

/// DAT0 shows that a card is busy with a write beyond its limit. The card is reset and the write is repeated, so the
/// write is not in doubt. The cache's content is lost ([reset-loss-fails-flush]).
#[test]
fn a_write_that_takes_too_long_is_not_in_doubt() {
    let mut bench = simple(BusyDetect::Line);
    bench.script().busy = Duration::from_secs(100);
    bench.writes(1);
    bench.until(Instant::ZERO + Duration::from_secs(5));
    bench.script().busy = us(10);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    let counts = bench.mmc().counts();
    assert_eq!((counts.resets, counts.lost_writes, counts.doubtful_writes), (1, 0, 0));
}

/// Bits for earlier work in the response to a direct command are about the write before
/// ([late-error-is-the-writes]), which was reported by then. The flush fails
/// ([late-write-error-fails-flush]), as does the next, and the queue stays on.
#[test]
fn a_late_write_error_fails_a_direct_flush_which_is_not_repeated() {
    let mut bench = direct_flush_with_response(CardStatus::ERROR);
    assert_eq!(bench.mmc().counts().lost_writes, 1);
    assert!(bench.script().engine.disables.is_empty());
}

/// After a write is reported, the card reports its failure in the response to a read or to a flush. One later flush
/// fails ([late-write-error-fails-flush]). If a flush is in flight, another submitter may have requested the next one
/// before the failure, so both fail.
#[test]
fn a_late_write_error_fails_the_flush_under_way_and_the_next_one() {
    for pipeline in one_by_one() {
        for read_first in [true, false] {
            let mut bench = bench(HostPolicy::new(pipeline, BusyDetect::Hardware));
            bench.writes(1);
            bench.settle();
            bench.until(bench.now + us(1));
            let next = bench.spans().len();
            let first = if read_first { Part::Announce } else { Part::Command };
            bench.script().faults.insert(next, Fault::Bits(first, CardStatus::ERROR));
            if read_first {
                bench.submit([Bio::read(5000, 8, 50)]);
                bench.settle();
            }
            bench.submit([910, 911].map(|cookie| Bio { cookie, ..FLUSH }));
            bench.settle();
            bench.submit([Bio { cookie: 912, ..FLUSH }]);
            bench.settle();
            let second = if read_first { Status::Ok } else { Status::IoError };
            let ended = [910, 911, 912].map(|cookie| bench.ended[&cookie]);
            assert_eq!(ended, [Status::IoError, second, Status::Ok], "{pipeline:?} {read_first}");
            assert_eq!(bench.mmc().counts().lost_writes, 1, "{pipeline:?}");
        }
    }
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
    let has = |target: &Target| {
        let ranges = [target.discard, target.write_zeroes].map(|way| way.is_some());
        (ranges, target.secure_erase.is_some(), target.sanitize, target.cache_on)
    };
    let new = emmc();
    assert_eq!(has(&new), ([true; 2], true, true, true));
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
    assert_eq!(has(&plain), ([true, false], false, false, false), "whole erase groups only");
    assert_eq!(has(&CARD), ([false; 2], false, false, false));
    assert!(Operation::of(Op::Flush, &CARD).is_some(), "a flush of no cache has nothing to do");
    for op in [Op::Discard, Op::WriteZeroes, Op::SecureErase] {
        assert_eq!(Operation::of(op, &CARD), None);
        assert!(Operation::of(op, &new).is_some());
    }
    assert_eq!(Operation::of(Op::DriverIn, &new), None);
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
            let at = |opcode| spans.iter().position(|span| span.command == opcode).unwrap();
            let from = at(Opcode::MmcEraseStart);
            let to = at(Opcode::Erase);
            let transfers = |spans: &[Span]| spans.iter().filter(|s| s.sector.is_some()).count();
            assert_eq!(transfers(&spans[from..to]), 0);
            // [exclusive-waits-for-idle]: the submitter has up to 64 requests in the queue. At most the requests
            // in slots precede the operation.
            let passed = transfers(&spans[before..from]);
            assert!(passed <= 30 && from >= before);
        }
    }
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
                    "[overdue-operation-ends]"
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

/// [exclusive-asks-status].
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
        let fua = |at| at % 3 == 0;
        bench.submit((0..12).map(|at| {
            let bio = Bio::write(100 * at, 1 + u32::try_from(at % 2).unwrap(), at);
            if fua(at) { bio.with_flags(Flags::FUA) } else { bio }
        }));
        bench.settle();
        bench.all_ended_with(Status::Ok, 12);
        let expected: Vec<_> = (0..12).filter(|&at| fua(at)).map(|at| 100 * at).collect();
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

/// As in Linux, a card without a cache gets reliable writes. Its flush waits like any other and sends nothing, so that
/// the engine stays on.
#[test]
fn without_a_cache_durable_writes_are_reliable_and_flushes_have_no_command() {
    for policy in every_policy() {
        let controller = Scripted::new(policy.transfer, policy.busy);
        let target = Target { cache_on: false, ..emmc() };
        let mut bench = Bench::with(Policies::NONE, controller, target, policy);
        let durable = |at: u64| Bio::write(at, 8, at).with_flags(Flags::FUA);
        bench.submit([durable(100), Bio::write(200, 8, 200), FLUSH, durable(300)]);
        bench.settle();
        bench.all_ended_with(Status::Ok, 4);
        assert!(bench.script().forced.iter().eq(&[100, 300]), "{policy:?}");
        assert!(sent(&mut bench).is_empty(), "{policy:?}: a flush was sent");
        assert_eq!(bench.count(ActKind::DisableEngine), 0, "{policy:?}");
        let flush = bench.did.iter().find(|did| did.sector == 0).expect("the end of the flush");
        let beside = |span: &&Span| span.from < flush.to && flush.from < span.to;
        let beside = bench.spans().iter().find(beside);
        assert!(beside.is_none(), "{policy:?} [exclusive-waits-for-idle]: {beside:?}");
    }
}

/// REL_WR_SEC_C: without EN_REL_WR, a card takes reliable writes of one sector, or of that many from a multiple of it on.
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

/// Found by the simulator's swarm: a flush that was requested before a reset and accepted after the recovery reported
/// the loss. A submitter that waited for the next flush had also asked before the reset, and got a success.
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
