//! In any sequence of commands the card agrees with the table of legal commands, a refusal changes
//! nothing ([misuse-changes-nothing]), and time moves forward ([card-time-moves-forward]).

use super::*;
use crate::mmc::profile::{AheadTiming, BackgroundTiming, CardFaults, Gather, Stall, UnitTiming};
use crate::reader::spread::Spread;
use blockyard_mmc::command::BlockCount;
use blockyard_mmc::command::erase::MmcErase;
use blockyard_mmc::command::queue::{TaskId, TaskParameters};
use proptest::prelude::*;

/// A step of the host.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Sends one of the commands of [`command`]; if `legally`, only one that the card takes.
    Send { which: u8, sector: u32, blocks: u16, task: u8, legally: bool },
    /// Transfers this many blocks; if `legally`, no more than are left.
    Transfer { blocks: u32, legally: bool },
    /// Waits for this many ns.
    Idle(u64),
    /// Waits until busy ends.
    Wait,
    /// Cuts the power and restores it.
    Power,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let legally = || prop::bool::weighted(0.8);
    // Some sectors are beyond the end.
    let send = (1..COMMANDS, 0u32..5 << 19, 1u16..20, 0u8..4, legally()).prop_map(
        |(which, sector, blocks, task, legally)| Step::Send {
            which,
            sector,
            blocks,
            task,
            legally,
        },
    );
    let transfer =
        (1u32..40, legally()).prop_map(|(blocks, legally)| Step::Transfer { blocks, legally });
    let step = prop_oneof![
        8 => send,
        6 => transfer,
        1 => (0u64..5_000_000).prop_map(Step::Idle),
        2 => Just(Step::Wait),
        1 => (0u8..20).prop_map(|one| if one == 0 { Step::Power } else { Step::Wait }),
    ];
    prop::collection::vec(step, 1..120)
}

/// The number of commands that [`command`] knows.
const COMMANDS: u8 = 35;

fn switch(byte: u16, value: u8) -> Command {
    Command::switch(SwitchAccess::WriteByte, byte, value)
}

fn command(which: u8, sector: u32, blocks: u16, task: u8) -> Command {
    let task = TaskId::new(task);
    let count = BlockCount::new(blocks);
    let direction = if sector.is_multiple_of(2) { Direction::Read } else { Direction::Write };
    match which {
        0 => Command::go_idle(),
        1 => Command::send_op_cond(0x40ff_8080),
        2 => Command::all_send_cid(),
        3 => Command::set_relative_addr(RCA),
        4 => Command::select(RCA),
        5 => Command::deselect(),
        6 => Command::send_ext_csd(),
        7 => Command::send_csd(RCA),
        8 | 9 => Command::stop_transmission(direction),
        10 | 11 => Command::send_status(RCA),
        12 => Command::interrupt_by_status(RCA),
        13 => Command::read_single(sector),
        14 => Command::read_multiple(sector, blocks),
        15 => Command::write_single(sector),
        16 | 17 => Command::write_multiple(sector, blocks),
        18 => Command::set_block_count(count),
        19 => Command::set_block_count(BlockCount { forced: true, ..count }),
        20 => Command::set_block_count(BlockCount { packed: true, ..count }),
        21 => Command::mmc_erase_start(sector),
        22 => Command::mmc_erase_end(sector),
        23 => Command::mmc_erase(MmcErase::Trim),
        24 => switch(index::CACHE_CTRL, u8::from(!sector.is_multiple_of(4))),
        25 => switch(index::FLUSH_CACHE, 1),
        26 => switch(index::BKOPS_START, 1),
        27 => switch(index::HPI_MGMT, 1),
        28 => switch(index::CMDQ_MODE_EN, u8::from(!sector.is_multiple_of(4))),
        29 => Command::queue_task_parameters(TaskParameters::new(task, direction, blocks)),
        30 => Command::queue_task_address(sector),
        31 => Command::execute_read(task, blocks),
        32 => Command::execute_write(task, blocks),
        33 => Command::send_queue_status(RCA),
        _ if sector.is_multiple_of(8) => Command::discard_queue(),
        _ => Command::discard_task(task),
    }
}

/// Picks one of the commands that the card takes at `at`. Commands that only lead away from data
/// are picked if there is no other.
fn legal_one(card: &Card, which: u8, make: impl Fn(u8) -> Command, at: Instant) -> Command {
    let taken = (0..COMMANDS).map(make).filter(|one| card.clone().command(one, at).is_ok());
    let (away, other): (Vec<_>, Vec<_>) =
        taken.partition(|one| matches!(one.opcode, Opcode::GoIdle | Opcode::Deselect));
    let from = if other.is_empty() { away } else { other };
    from[usize::from(which) % from.len()]
}

/// Returns a header with one write for the packed write in progress.
fn show_header(card: &mut Card) {
    let left = card.transfer.as_ref().map_or(1, |transfer| transfer.left);
    let mut header = [0; 512];
    header[..3].copy_from_slice(&[1, 2, 1]);
    header[8] = u8::try_from(left - 1).unwrap();
    card.packed_header(&header).unwrap();
}

/// Returns a card with all features.
fn everything() -> CardTiming {
    let mut timing = CardTiming::instant(16_384);
    timing.read.access = Duration::from_us(100);
    let per_kib = Duration::from_us(20);
    timing.read.ahead =
        Some(AheadTiming { per_kib, window_bytes: 16_384, command: per_kib, streams: 2 });
    timing.read.parallel = 3;
    timing.write.program = Duration::from_us(200);
    timing.write.partial = Duration::from_us(70);
    timing.write.finish = Duration::from_us(20);
    let copy_per_kib = Duration::from_us(3);
    timing.units = Some(UnitTiming { bytes: 65_536, open: 2, copy_per_kib });
    let spread = Spread::new(&[(0, 100), (100_000_000, 400)]);
    (timing.read.spread, timing.write.spread) = (spread, spread);
    timing.write.gather = Gather::Sequence;
    timing.write.sequences = 2;
    timing.write.jump = Duration::from_us(30);
    timing.stall = Some(Stall { one_in_pages: 10, length: ONE_MS, spread });
    timing.erase.trim = ONE_MS;
    let per_kib = Duration::from_us(5);
    timing.background = Some(BackgroundTiming { level_bytes: 32_768, per_kib });
    timing.control.switch = ONE_MS;
    timing.control.interrupt = Duration::from_us(300);
    timing
}

/// Runs `steps`. Returns every reaction and transfer for comparison.
fn run(timing: CardTiming, steps: &[Step]) -> Result<Vec<String>, TestCaseError> {
    let faulty = timing.faults != CardFaults::default();
    let mut host = Host::new(emmc(), timing);
    let mut log = Vec::new();
    for &step in steps {
        let before = host.card.clone();
        match step {
            Step::Send { which, sector, blocks, task, legally } => {
                let at = host.now + host.card.command_time();
                let announced = host.card.announced.filter(|_| legally);
                // All tasks have 8 blocks, so that the data of one fits another.
                let blocks = match announced {
                    Some(announced) => u16::try_from(announced.blocks).unwrap(),
                    None if legally && host.card.queue() != Queue::Off => 8,
                    None => blocks,
                };
                let make = |which| command(which, sector, blocks, task);
                let command = match legally {
                    true => legal_one(&host.card, which, make, at),
                    false => make(which),
                };
                let state = host.card.state(at);
                let allowed = legal(state, command.opcode, host.card.queue());
                match (host.card.command(&command, at), allowed) {
                    (Err(misuse), _) => {
                        prop_assert_eq!(&host.card, &before, "{}", misuse);
                        prop_assert_eq!((misuse.at, misuse.state), (at, state));
                        log.push(misuse.to_string());
                    }
                    (Ok(reaction), allowed) => {
                        let answer = reaction.answer;
                        let end = reaction.at;
                        log.push(format!("{reaction:?}"));
                        prop_assert!(end >= at);
                        prop_assert!(reaction.data_from.is_none_or(|from| from >= end));
                        prop_assert!(reaction.busy_until.is_none_or(|until| until > at));
                        let silent = answer == Err(NoAnswer::Timeout);
                        let late = command.opcode == Opcode::InterruptByStatus
                            && state == CardState::Transfer;
                        prop_assert!(allowed.is_ok() || late || silent, "{command} in {state:?}");
                        // A stop that crosses the end of its transfer.
                        let crossed = command.opcode == Opcode::StopTransmission
                            && matches!(state, CardState::Programming | CardState::Transfer);
                        prop_assert!(faulty || crossed || !silent, "{command} in {state:?}");
                        let after = host.card.state(end);
                        let expected = allowed.unwrap_or(state);
                        prop_assert!(
                            // The command was refused, lost, or done at once.
                            [expected, state, expected.after_busy(), state.after_busy()]
                                .contains(&after),
                            "{command} leads from {state:?} to {after:?}"
                        );
                        if let Some(status) = answer.ok().and_then(Response::status)
                            && command.opcode == Opcode::SendStatus
                        {
                            prop_assert_eq!(status.state(), Some(state));
                        }
                        host.now = end;
                    }
                }
            }
            Step::Transfer { blocks, legally } => {
                let waiting = host.card.transfer.as_ref();
                let blocks = match waiting.map(|transfer| transfer.left) {
                    Some(left) if legally && left > 0 => blocks.min(left),
                    _ => blocks,
                };
                if waiting.and_then(|t| t.packed.as_ref()).is_some_and(|p| p.entries.is_none())
                    && legally
                {
                    show_header(&mut host.card);
                }
                let before = host.card.clone();
                match host.card.transfer(blocks, host.now) {
                    Err(misuse) => {
                        prop_assert_eq!(&host.card, &before, "{}", misuse);
                        log.push(misuse.to_string());
                    }
                    Ok(done) => {
                        log.push(format!("{done:?}"));
                        prop_assert!(host.now <= done.begin && done.begin <= done.end);
                        prop_assert!(done.busy_until.is_none_or(|until| until >= done.end));
                        prop_assert_eq!(done.blocks < blocks, done.error.is_some());
                        prop_assert!(faulty || done.error.is_none());
                        // The wire alone: 1042 clocks of 20 ns for each block of the medium.
                        let wire =
                            if done.blocks == 1 { 0 } else { u64::from(done.blocks) * 20_840 };
                        prop_assert!(done.end.since(done.begin).as_ns() >= wire);
                        let held = host.card.unprogrammed_bytes(done.end);
                        prop_assert!(held <= host.card.buffer_bytes(), "{held} bytes");
                        host.now = done.end;
                    }
                }
            }
            Step::Idle(ns) => host.now = host.now + Duration::from_ns(ns),
            Step::Wait => host.wait(),
            Step::Power => {
                host.card.power_cut(host.now);
                prop_assert_eq!(host.card.unprogrammed_bytes(host.now), 0);
                host.card.power_up(host.now);
                prop_assert_eq!(host.card.state(host.now), CardState::Idle);
            }
        }
    }
    // After any commands, the card is ready again eventually.
    host.wait();
    let state = host.card.state(host.now);
    prop_assert!(!matches!(state, CardState::Programming | CardState::Disconnect));
    Ok(log)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_commands_keep_to_the_table_and_time_moves_forward(steps in steps()) {
        let log = run(everything(), &steps)?;
        prop_assert_eq!(log, run(everything(), &steps)?, "the same steps should give the same log");
    }

    #[test]
    fn so_they_do_when_commands_responses_and_data_are_lost(steps in steps()) {
        let mut timing = everything();
        timing.faults = CardFaults {
            command_lost_one_in: Some(5),
            response_crc_one_in: Some(5),
            no_data_one_in: Some(5),
            read_crc_one_in: Some(20),
            write_crc_one_in: Some(20),
            program_one_in: Some(5),
        };
        run(timing, &steps)?;
    }
}
