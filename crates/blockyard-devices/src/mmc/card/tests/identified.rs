//! The core identifies a modelled card: every command that it sends is legal, and it parses the
//! registers correctly.

use super::*;
use blockyard_mmc::host::HostCapabilities;
use blockyard_mmc::identify::{Answer, BusError, Identify, Step};
use std::vec::Vec;

/// Builds a register of 128 bits from its fields: high bit, low bit, value.
fn register(fields: &[(usize, usize, u128)]) -> [u8; 16] {
    let bits = fields.iter().fold(1, |bits: u128, &(high, low, value)| {
        assert!(value >> (high - low + 1) == 0);
        bits | value << low
    });
    bits.to_be_bytes()
}

/// Identifies the card in the slot as a host would, one step after the other.
fn identify(registers: Registers, host: &HostCapabilities) -> Box<blockyard_mmc::card::Card> {
    let slow = Mode { clock_hz: 400_000, ..Mode::new(Timing::MmcLegacy, Width::One) };
    let timing = CardTiming::instant(4096);
    let mut card = Card::new(registers, timing, slow, Prng::new(1)).unwrap();
    let mut identify = Identify::new(host.clone());
    let mut now = Instant::ZERO;
    let mut heard = Vec::new();
    for _ in 0..1000 {
        heard.clear();
        let answer = match identify.next() {
            Step::Done(card) => return card,
            Step::Failed(failure) => panic!("{failure}"),
            Step::Power(false) => {
                card.power_cut(now);
                Ok(Response::None)
            }
            Step::Power(true) => {
                card.power_up(now);
                Ok(Response::None)
            }
            Step::Drive(mode) => {
                card.drive(mode);
                Ok(Response::None)
            }
            Step::Wait(span) => {
                now = now + span;
                Ok(Response::None)
            }
            Step::Voltage(_) => Ok(Response::None),
            Step::SendByte { command, first, .. } => {
                let reaction = card.command(&command, now + card.command_time());
                let reaction = reaction.unwrap_or_else(|misuse| panic!("{misuse}"));
                let mut block = [0; 512];
                block[0] = first;
                card.show_block(&block).unwrap();
                now = card.transfer(1, reaction.at).unwrap().busy_until.unwrap();
                reaction.answer.map_err(|_| BusError::NoResponse)
            }
            Step::Tune(command) | Step::Send { command, .. } => {
                let reaction = card.command(&command, now + card.command_time());
                let reaction = reaction.unwrap_or_else(|misuse| panic!("{misuse}"));
                now = reaction.busy_until.unwrap_or(reaction.at);
                if reaction.data_from.is_some() {
                    now = card.transfer(1, now).unwrap().end;
                    heard.extend_from_slice(card.register());
                }
                reaction.answer.map_err(|_| BusError::NoResponse)
            }
        };
        match answer {
            Ok(Response::None) => identify.answered(Answer::Done),
            Ok(response) if heard.is_empty() => identify.answered(Answer::Response(response)),
            Ok(response) => identify.answered(Answer::Data(response, &heard)),
            Err(error) => identify.answered(Answer::Error(error)),
        }
    }
    panic!("identification does not end")
}

#[test]
fn an_emmc_device_is_identified_up_to_hs400() {
    let mut registers = emmc();
    // CSD 1.2 of 4.x, 26 MHz, TAAC 1 us, blocks of 512 bytes, size in EXT_CSD, groups of 32 * 32.
    registers.csd = register(&[
        (127, 126, 3),
        (125, 122, 4),
        (119, 112, 0x0f),
        (103, 96, 0x32),
        (95, 84, 0x0f5),
        (83, 80, 9),
        (73, 62, 0xfff),
        (46, 42, 31),
        (41, 37, 31),
        (25, 22, 9),
    ]);
    if let RegistersKind::Mmc { ext_csd } = &mut registers.kind {
        ext_csd[usize::from(index::DEVICE_TYPE)] = 0x57;
        ext_csd[usize::from(index::STROBE_SUPPORT)] = 1;
        ext_csd[usize::from(index::HC_ERASE_GRP_SIZE)] = 1;
        // 1 GiB is 2^21 sectors.
        ext_csd[usize::from(index::SEC_COUNT) + 2] = 0x20;
    }
    let card = identify(registers, &HostCapabilities::full());
    assert_eq!(card.mode.timing, Timing::Hs400Es);
    assert_eq!((card.sectors, card.addressing), (1 << 21, Addressing::Sectors));
    assert!(card.cache_on() && card.hpi().is_some());
}

#[test]
fn an_sd_card_is_identified_up_to_sdr104() {
    let mut registers = sd();
    // CSD 2.0: 25 MHz, TAAC 1 ms, 1 GiB in units of 512 KiB less 1.
    registers.csd = register(&[
        (127, 126, 1),
        (119, 112, 0x0e),
        (103, 96, 0x32),
        (95, 84, 0x5b5),
        (83, 80, 9),
        (69, 48, 2047),
        (25, 22, 9),
    ]);
    // Sectors, 1.8 V, 2.7 to 3.6 V.
    registers.ocr = 0x41ff_8000;
    registers.kind = RegistersKind::Sd {
        // SCR of 3.0x: 4 lanes, CMD23.
        scr: [0x02, 0x05, 0x80, 0x02, 0, 0, 0, 0],
        ssr: Box::new([0; 64]),
        functions: [0b11111, 0, 0, 0b1111, 0, 0],
        enhancement: None,
    };
    let card = identify(registers, &HostCapabilities::full());
    assert_eq!((card.mode.timing, card.rca), (Timing::Sdr104, Rca(0x1234)));
    assert_eq!((card.sectors, card.addressing), (1 << 21, Addressing::Sectors));
    assert!(card.set_block_count(&HostCapabilities::full()));
}
