//! Flushes and the command queue of an SD card, by its extension registers.

use super::exclusive::FLUSH;
use super::*;
use crate::block::claim::LONGEST_PAUSE;
use crate::command::Opcode;
use crate::controller::{HostError, Part};
use crate::register::extension::ExtensionPlace;

/// A bench with an SD card that has a cache and a queue, under `policy`.
fn bench(policy: HostPolicy) -> Bench {
    let place = ExtensionPlace::of_argument(1 << 27);
    let target = Target {
        performance: Some(place),
        reliable_write: ReliableWrite::None,
        queue_depth: DEPTH,
        ..emmc()
    };
    Bench::with(Policies::NONE, Scripted::new(policy.transfer, policy.busy), target, policy)
}

/// Returns the commands on the bus after a write that has ended, up to the end of a flush.
fn flushed(bench: &mut Bench) -> Vec<Opcode> {
    flushed_with(bench, None)
}

/// The same, with a fault of the command of this number, from 0.
fn flushed_with(bench: &mut Bench, fault: Option<(usize, Fault)>) -> Vec<Opcode> {
    bench.writes(1);
    bench.settle();
    let before = bench.spans().len();
    bench.script().faults.extend(fault.map(|(at, fault)| (before + at, fault)));
    bench.submit([FLUSH]);
    bench.settle();
    bench.spans()[before..].iter().map(|span| span.command).collect()
}

/// CMD49 sets the bit, CMD13 waits until the card is not busy, and CMD48 reads the bit.
#[test]
fn a_flush_sets_a_bit_and_asks_whether_the_card_has_cleared_it() {
    let policies = every_policy().into_iter().filter(|policy| policy.pipeline != Pipeline::Cqe);
    for policy in policies {
        let mut bench = bench(policy);
        let commands = flushed(&mut bench);
        bench.all_ended_with(Status::Ok, 2);
        assert!(bench.script().is_durable(0), "{policy:?}");
        let first = commands.first().copied();
        assert_eq!(first, Some(Opcode::WriteExtension), "{policy:?}: {commands:?}");
        let between = &commands[1..commands.len() - 1];
        assert!(!between.is_empty(), "{policy:?}: nobody asked whether the card is ready");
        assert!(between.iter().all(|command| *command == Opcode::SendStatus), "{policy:?}");
        assert_eq!(commands.last(), Some(&Opcode::ReadExtension), "{policy:?}");
    }
}

/// The card is asked again every 32.768 ms, the longest pause, for up to 30 s.
#[test]
fn a_card_that_flushes_on_is_asked_again_up_to_a_limit() {
    for (flushes_on, status, resets) in
        [(2, Status::Ok, 0), (915, Status::Ok, 0), (916, Status::Timeout, 1)]
    {
        let mut bench = bench(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
        bench.script().flushes_on = flushes_on;
        let commands = flushed(&mut bench);
        assert_eq!((bench.ended[&900], bench.script().resets), (status, resets), "{flushes_on}");
        let asked = commands.iter().filter(|&&command| command == Opcode::ReadExtension).count();
        assert_eq!(asked, usize::try_from(flushes_on + 1 - u32::from(resets > 0)).unwrap());
        let reads = bench.spans().iter().filter(|span| span.command == Opcode::ReadExtension);
        let begun: Vec<_> = reads.map(|span| span.from).collect();
        assert!(begun.windows(2).all(|pair| pair[1].since(pair[0]) >= LONGEST_PAUSE));
    }
}

/// A flush whose CMD49 or CMD48 fails begins again with CMD49.
#[test]
fn a_flush_that_fails_begins_again() {
    // With busy in hardware these are CMD49, CMD13 and CMD48.
    let timeout = Fault::Error(Part::Data, HostError::Timeout, 0);
    for at in [0, 2] {
        let mut bench = bench(HostPolicy::new(Pipeline::TwoSlotFull, BusyDetect::Hardware));
        let commands = flushed_with(&mut bench, Some((at, timeout)));
        bench.all_ended_with(Status::Ok, 2);
        let sent = commands.iter().filter(|&&command| command == Opcode::WriteExtension).count();
        assert_eq!((sent, bench.script().resets), (2, 0), "{at}: {commands:?}");
    }
}

/// The registers of a card with a cache and a queue cannot be read after a reset, as three CMD48
/// fail. The card has no cache then, and flushes have no command, once one has told of the loss.
#[test]
fn a_card_whose_registers_are_not_read_after_a_reset_goes_on_without_its_cache() {
    let policies = every_policy().into_iter().filter(|policy| policy.pipeline != Pipeline::Cqe);
    for policy in policies {
        let mut bench = bench(policy);
        bench.script().at_reset = lose_registers;
        bench.writes(1);
        bench.settle();
        bench.script().bad_sector =
            Some((502, Some(Fault::Error(Part::Data, HostError::Damaged, 0)), None));
        bench.submit([Bio::read(500, 8, 1)]);
        bench.settle();
        for (cookie, status) in [(2, Status::IoError), (3, Status::Ok)] {
            bench.submit([Bio::new(Op::Flush, 0, 0, cookie)]);
            bench.settle();
            assert_eq!(bench.ended[&cookie], status, "{policy:?}");
        }
        assert_eq!((bench.ended[&1], bench.script().resets), (Status::Ok, 1), "{policy:?}");
        assert!(!bench.script().commands.contains_key(&49), "{policy:?}");
    }
}

fn lose_registers(card: &mut Target) {
    (card.performance, card.queue_depth, card.cache_on) = (None, 0, false);
}

/// Three CMD49 fail: the register can be read, and the cache, which a queue needs, is off.
fn lose_cache(card: &mut Target) {
    (card.queue_depth, card.cache_on) = (0, false);
}

/// Under `cqe` requests need the queue, so the card is reset again: three times in all.
#[test]
fn a_card_whose_queue_is_not_found_after_a_reset_is_reset_again() {
    let noises: [fn(&mut Target); 2] = [lose_registers, lose_cache];
    for (noisy_resets, status, resets) in
        [(1, Status::Ok, 2), (2, Status::Ok, 3), (3, Status::Gone, 3)]
    {
        for noise in noises {
            let mut bench = cqe();
            bench.script().noisy_resets = noisy_resets;
            bench.script().found_after_noise = noise;
            bench.script().bad_sector =
                Some((2, Some(Fault::Error(Part::Data, HostError::Damaged, 0)), None));
            bench.reads(10);
            bench.settle();
            bench.all_ended_with(status, 10);
            let counted = bench.mmc().counts().resets;
            assert_eq!((bench.script().resets, counted), (resets, resets.into()));
        }
    }
}

fn cqe() -> Bench {
    bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware))
}

/// Returns the numbers of all commands that were sent.
fn sent(bench: &mut Bench) -> Vec<u8> {
    bench.script().commands.keys().copied().collect()
}

/// CMD49 and CMD13 turn the queue on; tasks are those of eMMC. Nothing turns it off while there is
/// only reading and writing.
#[test]
fn cmd49_turns_the_queue_of_an_sd_card_on_and_its_tasks_are_emmcs() {
    let mut bench = cqe();
    bench.submit(mixture(2, 200));
    bench.settle();
    bench.all_ended_with(Status::Ok, 200);
    assert_eq!(sent(&mut bench), [13, 44, 45, 46, 47, 49]);
    assert_eq!(bench.script().commands[&49], 1);
}

/// CMD49 has data, so no engine takes it as a direct command: the queue is turned off for a flush,
/// and on again for the next task.
#[test]
fn a_flush_turns_the_queue_of_an_sd_card_off() {
    let mut bench = cqe();
    let commands = flushed(&mut bench);
    bench.submit([Bio::read(500, 8, 1)]);
    bench.settle();
    bench.all_ended_with(Status::Ok, 3);
    assert!(bench.script().is_durable(0));
    let written = commands.iter().filter(|&&of| of == Opcode::WriteExtension).count();
    let read = commands.iter().filter(|&&of| of == Opcode::ReadExtension).count();
    assert_eq!((written, read), (2, 1), "{commands:?}");
    assert_eq!(bench.script().commands[&49], 4, "on, off, flush, on");
    assert_eq!(bench.count(ActKind::DisableEngine), 1);
}

/// A task that fails has the card forget all tasks, by CMD43. A CMD49 whose data fails, the first
/// command of all, is sent again after the card was stopped.
#[test]
fn the_queue_of_an_sd_card_is_recovered_by_cmd43() {
    let failed = Fault::Error(Part::Data, HostError::Timeout, 0);
    for (at, expected) in [(2, vec![12, 13, 43, 44, 45, 46, 49]), (0, vec![12, 13, 44, 45, 46, 49])]
    {
        let mut bench = cqe();
        bench.script().faults.insert(at, failed);
        bench.script().engine.access.extend((0..8).map(|at| (100 * at, us(1000))));
        bench.reads(8);
        bench.settle();
        bench.all_ended_with(Status::Ok, 8);
        assert_eq!(sent(&mut bench), expected, "{at}");
        assert_eq!(bench.script().commands[&49], if at == 0 { 2 } else { 1 });
        assert_eq!(bench.script().resets, 0);
    }
}
