//! Operations that have the card for themselves: what is sent, who waits for whom, how long, and what
//! becomes of errors.

use super::*;
use crate::command::status::Status as CardStatus;
use crate::command::{Command, Opcode};
use crate::controller::{HostError, Part};
use crate::register::example;

/// eMMC under `policy`.
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

/// Numbers and arguments of what was sent without data.
fn sent(bench: &mut Bench) -> Vec<(u8, u32)> {
    let told = |command: &Command| (command.opcode.index(), command.argument);
    bench.script().log.iter().map(told).collect()
}

#[test]
fn each_operation_is_its_commands() {
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
            assert!(alone.into_iter().all(|did| did.context == Context::Thread), "O2: {policy:?}");
            let on_bus: Vec<_> = bench.spans().iter().map(|span| span.command).collect();
            let by_itself = |command| matches!(command, Opcode::Switch | Opcode::Erase);
            let ends = on_bus.iter().zip(&on_bus[1..]).filter(|(command, _)| by_itself(**command));
            let busy_ends = expected.iter().filter(|(index, _)| matches!(index, 6 | 38)).count();
            assert!(ends.clone().count() >= busy_ends, "{policy:?}");
            assert!(
                ends.into_iter().all(|(_, next)| *next == Opcode::SendStatus),
                "O3: {policy:?}"
            );
        }
    }
}

/// What a flush is through an engine with two tasks before it: the queue stays on (O6).
#[test]
fn a_flush_is_a_direct_command_where_the_engine_takes_such() {
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
        let (switch, status) = (Opcode::Switch, Opcode::SendStatus);
        let expected = match direct {
            true => vec![switch, status, Opcode::ExecuteRead],
            // Off, the flush, and on.
            false => vec![switch, status, switch, status, switch, status, Opcode::ExecuteRead],
        };
        assert_eq!(commands, expected);
        assert_eq!(bench.script().engine.disables.len(), usize::from(!direct));
    }
}

/// What fails on the way through the engine is begun anew without it (O6): the flush, or the question
/// how it went.
#[test]
fn a_flush_that_fails_as_a_direct_command_is_done_without_the_engine() {
    let said = Fault::Bits(Part::Command, CardStatus::SWITCH_ERROR);
    let lost = Fault::Error(Part::Command, HostError::Timeout, 0);
    for fault in [said, lost, Fault::Silence] {
        for at in 0..2 {
            let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
            bench.writes(1);
            bench.settle();
            // What the card said to this, it does not say to the flush.
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

/// A direct flush that takes longer than its limit is not tried again (O4): the card is reset, and it ends.
#[test]
fn a_direct_flush_has_its_limit_and_no_more() {
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
        assert!(bench.now < Instant::ZERO + seconds(30) + us(20_000), "O4");
        assert!(sent(&bench) <= before + 1, "it was begun anew");
        // What was in the cache is lost with the reset, which one flush more tells (O5).
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

/// A write is reported, and the response to a direct flush behind it has `bits`, which are of the write, too: this
/// flush and the next one fail, and the one behind does not.
fn direct_flush_that_is_told(bits: u32) -> Bench {
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

/// The response to a direct flush says that the flush was refused, and that the write before failed: both count.
#[test]
fn a_direct_flush_that_is_refused_hides_no_write_that_failed_before() {
    let mut bench = direct_flush_that_is_told(CardStatus::ERROR | CardStatus::SWITCH_ERROR);
    let counts = bench.mmc().counts();
    assert_eq!((counts.lost_writes, counts.failures), (1, 1));
    assert!(!bench.script().engine.disables.is_empty(), "it is begun anew, without the engine");
}

/// The first response after a write that was reported comes damaged, not at all, or nobody hears that it came: what it
/// said of the write nobody knows. Flushes fail as for one that is lost; who only might be lost is counted apart (A3).
#[test]
fn a_write_of_which_the_answer_got_lost_is_in_doubt() {
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

/// The same with a command queue: at a command of the engine's, at a direct one, or as the engine is turned off.
#[test]
fn a_write_of_which_the_engine_s_answer_got_lost_is_in_doubt() {
    let lost = Fault::Error(Part::Command, HostError::Damaged, 0);
    for (direct, fault, bio, flushed) in [
        (true, lost, Bio::read(500, 8, 50), Status::Ok),
        (true, lost, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (true, Fault::Silence, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (false, lost, Bio { cookie: 50, ..FLUSH }, Status::IoError),
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

/// The card is reset before it has said anything after a write that was reported (A3).
#[test]
fn a_write_of_which_a_card_that_is_reset_has_not_spoken_is_in_doubt() {
    let mut bench = simple(BusyDetect::Hardware);
    bench.submit([Bio::write(0, 8, 0).with_flags(Flags::FUA)]); // so nothing else is lost
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

/// A write is in doubt and not reported yet. A flush that is taken before it is says nothing of it, so the next fails,
/// too (O5).
#[test]
fn a_flush_taken_before_a_write_in_doubt_is_reported_does_not_tell_of_it() {
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

/// A card that is busy with a write for ever, as DAT0 says, is reset, and written to again: of that write nothing is in
/// doubt, but of what was in the cache (O5).
#[test]
fn a_write_that_takes_for_ever_is_not_in_doubt() {
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

/// What the response to a direct command says of work before it is about the write before (A1), which was
/// told by then: the flush fails for its sake (O5), as does the next, and the queue stays on.
#[test]
fn a_write_that_failed_unasked_fails_a_direct_flush_which_is_not_begun_anew() {
    let mut bench = direct_flush_that_is_told(CardStatus::ERROR);
    assert_eq!(bench.mmc().counts().lost_writes, 1);
    assert!(bench.script().engine.disables.is_empty());
}

/// A write is reported, and the card says later that it failed: to a read, or to a flush. One flush fails that comes
/// then (O5). Beside one at work somebody may wait for the next, who asked as early: so both fail.
#[test]
fn a_write_that_turns_out_to_be_lost_fails_the_flush_at_work_and_the_next_one() {
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
fn an_sd_card_erases_by_its_own_commands_and_an_old_one_in_whole_units() {
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
    assert_eq!(sent(&mut bench), [(35, 2048), (36, 4095), (38, 0)], "the first has no whole unit");
}

#[test]
fn what_a_card_does_not_have_is_refused_and_what_it_has_is_known() {
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
    let told = Target::of(&crate::card::tests::emmc(bytes, &[]), host.capabilities());
    assert_eq!((told.packed_writes, told.packed_reads, told.bkops), (63, 60, true));
    let mut bytes = crate::register::ext_csd::example::emmc_4_41();
    bytes[usize::from(index::SEC_FEATURE_SUPPORT)] = 0;
    let plain = Target::of(&crate::card::tests::emmc(bytes, &[]), host.capabilities());
    assert_eq!(has(&plain), ([true, false], false, false, false), "all erase groups");
    assert_eq!(has(&CARD), ([false; 2], false, false, false));
    for op in [Op::Flush, Op::Discard, Op::WriteZeroes, Op::SecureErase] {
        assert_eq!(Operation::of(op, &CARD), None);
        assert!(Operation::of(op, &new).is_some());
    }
    assert_eq!(Operation::of(Op::DriverIn, &new), None);
}

#[test]
fn an_operation_waits_for_what_was_there_and_nothing_passes_it() {
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
            let (from, to) = (at(Opcode::MmcEraseStart), at(Opcode::Erase));
            let transfers = |spans: &[Span]| spans.iter().filter(|s| s.sector.is_some()).count();
            assert_eq!(transfers(&spans[from..to]), 0);
            // The submitter has up to 64 requests in the queue; of those that the host had or took
            // before it, there are no more than slots.
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
fn a_card_may_take_as_long_as_its_limit_and_is_reset_after_it() {
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
                assert!(bench.now < Instant::ZERO + limit + Duration::from_secs(11), "O4");
            }
        }
    }
}

#[test]
fn an_error_at_any_command_has_it_done_again_from_the_first() {
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
fn a_switch_that_fails_is_seen_in_the_answer_after_busy_and_tried_five_times_again() {
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
fn a_write_past_the_cache_is_a_reliable_write_and_no_other_is() {
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
        assert!(sent(&mut bench).is_empty(), "no flush stands in for it");
    }
    // Where the card cannot, a flush does.
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let target = Target { reliable_write: ReliableWrite::OneOr(8), ..emmc() };
    let controller = Scripted::new(policy.transfer, policy.busy);
    let mut bench = Bench::with(Policies::NONE, controller, target, policy);
    bench.submit([Bio::write(0, 8, 0).with_flags(Flags::FUA)]);
    bench.settle();
    assert_eq!(sent(&mut bench), [(6, 0x0320_0100)]);
}

#[test]
fn what_a_reset_may_have_lost_fails_the_next_flush_once() {
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
        // Two tries after errors of the data, then a reset.
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

/// The swarm of the simulator found this: a flush that was asked for before a reset, but not taken as the
/// host was recovering, told of the loss to those whom it covered. Whoever waited for the next one had asked
/// as early, and was told that all was well.
#[test]
fn who_waited_for_a_flush_at_a_reset_is_told_of_its_loss_too() {
    let policy = HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware);
    let (mut before, mut after) = (0, 0);
    for when in (0..4000).step_by(20) {
        let mut bench = bench(policy);
        bench.writes(1);
        bench.settle();
        let fault = Fault::Error(Part::Data, HostError::Damaged, 0);
        bench.script().bad_sector = Some((5000, Some(fault), None));
        bench.submit([Bio::read(5000, 8, 50)]);
        bench.until(bench.now + us(when));
        let is_early = bench.script().resets == 0;
        // One flush at a time is under way: the second waits for the next.
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
fn a_sanitize_is_asked_for_by_itself_and_waits_as_others_do() {
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
fn a_sanitize_has_four_minutes() {
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
fn a_card_that_is_pulled_out_ends_the_operation_wherever_it_is() {
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
fn a_drifting_bus_is_tuned_before_an_operation_and_not_within_it() {
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
