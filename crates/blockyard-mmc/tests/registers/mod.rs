//! A card whose responses are arbitrary bytes: every register is parsed or refused by name,
//! identification ends, and every method of the resulting card returns. Nothing panics
//! ([parsers-never-panic]).
//!
//! The first byte chooses the host and the probes that the card answers. The card's responses are
//! taken from the other bytes, which repeat.

use blockyard_mmc::card::Card;
use blockyard_mmc::command::status::Status;
use blockyard_mmc::command::{Direction, Opcode, Response, ResponseKind};
use blockyard_mmc::host::HostCapabilities;
use blockyard_mmc::identify::{Answer, BusError, Failure, Identify, Step};
use blockyard_mmc::register::Bits;
use blockyard_mmc::register::ext_csd::partition::Partition;

/// The limit on the steps of identification: 3 widths, 6 timings and 1.8 V, each with a few starts
/// of about 130 steps.
const STEPS_MAX: u32 = 20_000;

/// Parses `bytes` as a card.
pub(crate) fn play(bytes: &[u8]) -> Option<Result<Box<Card>, Failure>> {
    let (&choice, rest) = bytes.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let host = HostCapabilities {
        power_cycle: choice & 1 == 0,
        signal_1v8: choice & 2 == 0,
        ..if choice & 4 == 0 { HostCapabilities::full() } else { HostCapabilities::plain() }
    };
    let end = identify(&host, choice, rest);
    match &end {
        Ok(card) => ask(card, &host),
        Err(failure) => assert!(!failure.to_string().is_empty()),
    }
    Some(end)
}

/// Identifies a card that sends `bytes` repeatedly.
fn identify(host: &HostCapabilities, choice: u8, bytes: &[u8]) -> Result<Box<Card>, Failure> {
    let mut identify = Identify::new(host.clone());
    let mut bytes = bytes.iter().copied().cycle();
    for _ in 0..STEPS_MAX {
        let command = match identify.next() {
            Step::Done(card) => return Ok(card),
            Step::Failed(failure) => return Err(failure),
            Step::Send { command, .. } | Step::SendByte { command, .. } => command,
            _ => {
                identify.answered(Answer::Done);
                continue;
            }
        };
        let silent = match command.opcode {
            Opcode::IoSendOpCond => true,
            Opcode::SendIfCond => choice & 8 != 0,
            Opcode::Application | Opcode::SdSendOpCond => choice & 16 != 0,
            _ => false,
        };
        if silent {
            identify.answered(Answer::Error(BusError::NoResponse));
            continue;
        }
        let response = match command.response {
            ResponseKind::None => Response::None,
            ResponseKind::R2 => Response::Long(Bits(core::array::from_fn(|_| take(&mut bytes)))),
            ResponseKind::R3 | ResponseKind::R6 => {
                Response::Short(u32::from_be_bytes(core::array::from_fn(|_| take(&mut bytes))))
            }
            ResponseKind::R7 => Response::Short(command.argument),
            _ => Response::Short(Status::READY_FOR_DATA),
        };
        let sent = command.data.filter(|data| data.direction == Direction::Read);
        let data: Vec<u8> =
            (0..sent.map_or(0, |data| data.bytes())).map(|_| take(&mut bytes)).collect();
        if data.is_empty() {
            identify.answered(Answer::Response(response));
        } else {
            identify.answered(Answer::Data(response, &data));
        }
    }
    panic!("identification does not end");
}

/// Takes the next of `bytes`, which do not end.
fn take(bytes: &mut impl Iterator<Item = u8>) -> u8 {
    bytes.next().expect("a cycle of bytes should not end")
}

/// Calls every method of a card.
fn ask(card: &Card, host: &HostCapabilities) {
    let _ = Partition::ALL.map(|partition| card.partition_sectors(partition));
    if let Some(limits) = card.limits(host) {
        assert!(limits.max_sectors > 0 && limits.max_sectors % limits.logical_block_sectors == 0);
    }
    let _ = (card.max_packed(host), card.reliable_write(host), card.queue_depth(host));
    let _ = (card.read_limit(), card.write_limit(), card.switch_limit());
    let _ = (card.interrupt_limit(), card.hpi(), card.bkops());
    let ways = [card.discard_by(), card.zero_by()];
    for by in ways.into_iter().flatten().chain(card.secure_erase_by().into_iter().flatten()) {
        let unit = u64::from(card.erase_unit_sectors(by));
        let way = card.erase_way(by).expect("the card should support its own erases");
        for (sector, sectors) in [(0, unit), (unit, unit), (1, u64::MAX - 1), (u64::MAX, u64::MAX)]
        {
            let whole = way.whole_units(sector, sectors);
            let _ = (way.limit(sector, sectors), way.commands(sector, sectors));
            assert!(whole.is_none_or(|(first, count)| {
                first >= sector && count <= sectors && count.is_multiple_of(unit)
            }));
        }
    }
}
