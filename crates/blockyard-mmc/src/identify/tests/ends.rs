//! The ends of identification: its tries, its new starts, and the answers that it refuses.

use super::super::machine::Found;
use super::super::moves::Move;
use super::*;
use crate::register::csd::Csd;
use crate::register::ext_csd::ExtCsd;
use crate::register::ocr::SdOcr;
use core::slice;

/// Returns how often `slot` was asked for its CID, which it did not give, and the reason of the
/// failure.
fn asked_in_vain(mut slot: Slot, host: &HostCapabilities) -> (usize, Failure) {
    let failure = slot.identify(host).expect_err("a card without CID");
    let asked = opcodes(&slot).iter().filter(|of| **of == Opcode::AllSendCid).count();
    (asked, failure)
}

/// Each command three times, and the whole three times; three times more after each mode and
/// each voltage that was given up.
#[test]
fn a_command_without_answer_is_tried_as_often_as_stated() {
    let full = HostCapabilities::full();
    let opcode = Some(Opcode::AllSendCid);
    let gone = Failure::Bus { opcode, error: BusError::NoResponse };
    let tries = usize::from(TRIES);
    assert_eq!(asked_in_vain(emmc(emmc_5_1(), mute(1)), &full), (tries * tries, gone));
    // A card that went to 1.8 V may have failed for that: three starts at 1.8 V, and three at 3.3
    // V.
    assert_eq!(asked_in_vain(sdxc(mute(1)), &full), (2 * tries * tries, gone));
    // It was heard once before its mode, or its voltage, was given up.
    let bad = vec![Timing::Hs400Es];
    let slot = emmc(emmc_5_1(), Flaws { bad, ..mute(2) });
    assert_eq!(asked_in_vain(slot, &full), (1 + tries * tries, gone));
    let slot = sdxc(Flaws { stuck_at_3v3: true, ..mute(2) });
    assert_eq!(asked_in_vain(slot, &full), (tries * tries, gone));
}

fn mute(start: usize) -> Flaws {
    Flaws { mute: Some((start, Opcode::AllSendCid)), ..Flaws::default() }
}

#[test]
fn a_card_is_asked_whether_it_is_ready_as_often_as_stated() {
    for (mut slot, question) in
        [(emmc(emmc_5_1(), Flaws::default()), 1), (sdxc(Flaws::default()), 41)]
    {
        slot.flaws.never_ready = true;
        assert_eq!(slot.identify(&HostCapabilities::full()).unwrap_err(), Failure::NeverReady);
        let asked = opcodes(&slot).iter().filter(|of| of.index() == question).count();
        // An eMMC device is first asked whether it is there.
        let is_there = usize::from(question == 1);
        assert_eq!(asked, usize::from(READY_TRIES) + is_there, "CMD{question}");
    }
}

#[test]
fn nothing_changes_what_has_failed() {
    let mut identify = Identify::new(HostCapabilities::full());
    while !matches!(identify.next(), Step::Failed(_)) {
        identify.answered(Answer::Error(BusError::NoResponse));
    }
    let failed = std::format!("{identify:?}");
    for answer in [Answer::Done, Answer::Error(BusError::Data)] {
        identify.answered(answer);
        assert_eq!(std::format!("{identify:?}"), failed);
    }
}

/// A host offers the voltages that it supplies, and no other bits; 1.8 V signals need four lanes.
#[test]
fn a_host_offers_the_card_what_it_has() {
    let full = HostCapabilities::full();
    let supply = SdOcr::VOLTAGES & 0x0030_0000;
    for (width, low) in
        [(Width::One, 0), (Width::Four, SdOcr::SIGNAL_1V8), (Width::Eight, SdOcr::SIGNAL_1V8)]
    {
        let host = HostCapabilities { supply, width, ..full.clone() };
        assert_eq!(voltage_argument(host), supply | SdOcr::HIGH_CAPACITY | low, "{width:?}");
    }
    let host = HostCapabilities { supply: supply | 1, ..full };
    assert_eq!(voltage_argument(host) & 1, 0, "a bit that is no voltage");
}

fn voltage_argument(host: HostCapabilities) -> u32 {
    let mut slot = sdxc(Flaws::default());
    let _ = slot.identify(&host);
    slot.log
        .iter()
        .find(|command| command.opcode.index() == 41)
        .expect("a question to the card")
        .argument
}

/// A status with an error, whether it comes alone or with data, and a step that fails are refused.
#[test]
fn an_answer_with_an_error_is_refused() {
    let error = Status(Status::ERROR);
    let data = [0; 512];
    let mut identify = Identify::new(HostCapabilities::full());
    identify.progress.prefixed = true;
    let hs200 = Mode::new(Timing::Hs200, Width::Eight);
    for (first, opcode, bytes) in [
        (Move::GiveRca, Opcode::SetRelativeAddr, 0),
        (Move::Select, Opcode::Select, 0),
        (Move::VoltageSwitch, Opcode::VoltageSwitch, 0),
        (Move::BlockLen, Opcode::SetBlockLen, 0),
        (Move::Check, Opcode::SendStatus, 0),
        (Move::CheckSetting, Opcode::SendStatus, 0),
        (Move::Scr, Opcode::SendScr, 8),
        (Move::Ssr, Opcode::SdStatus, 64),
        (Move::ExtCsd, Opcode::SendExtCsd, 512),
        (Move::Reread, Opcode::SendExtCsd, 512),
    ] {
        let before = std::format!("{:?}", identify.found);
        let response = Response::Short(error.0);
        let answer = if bytes == 0 {
            Answer::Response(response)
        } else {
            Answer::Data(response, &data[..bytes])
        };
        let failure = Failure::Card { opcode, status: error };
        assert_eq!(identify.take(first, answer).err(), Some(failure), "{first:?}");
        assert_eq!(std::format!("{:?}", identify.found), before, "{first:?}");
    }
    let tuning = Command::mmc_tuning_block(true);
    for (first, opcode) in [
        (Move::Power(true), None),
        (Move::Wait(Duration::ZERO), None),
        (Move::Drive(hs200), None),
        (Move::Voltage(SignalVoltage::V1_8), None),
        (Move::Tune(tuning), Some(tuning.opcode)),
        (Move::Csd, Some(Opcode::SendCsd)),
    ] {
        let failure = Failure::Bus { opcode, error: BusError::Data };
        let taken = identify.take(first, Answer::Error(BusError::Data));
        assert_eq!(taken.err(), Some(failure), "{first:?}");
        assert_eq!(identify.found.voltage, SignalVoltage::V3_3);
    }
}

/// A function that was not selected, and another device's register, are found in the data.
#[test]
fn data_of_another_mode_or_device_is_refused() {
    let mut identify = Identify::new(HostCapabilities::full());
    let status = Response::Short(0);
    // The status of a switch states the selected function of group 1 in bits 379:376.
    let mut switched = [0; 64];
    switched[16] = 3;
    for (mode, is_refused) in [(3, false), (2, true)] {
        let taken = identify.take(Move::AccessMode(mode), Answer::Data(status, &switched));
        let opcode = Opcode::SwitchFunction;
        let failure = Failure::Card { opcode, status: Status(Status::SWITCH_ERROR) };
        assert_eq!(taken.err(), is_refused.then_some(failure));
    }
    let one = emmc_5_1();
    let mut other = emmc_5_1();
    other[usize::from(index::SEC_COUNT)] ^= 1;
    identify.found.ext_csd = Some(Box::new(crate::register::ext_csd::ExtCsd::parse(&one).unwrap()));
    for (bytes, is_refused) in [(one, false), (other, true)] {
        let taken = identify
            .take(Move::Reread, Answer::Data(status, slice::from_ref(&bytes).as_flattened()));
        let failure = Failure::Bus { opcode: Some(Opcode::SendExtCsd), error: BusError::Data };
        assert_eq!(taken.err(), is_refused.then_some(failure));
    }
}

/// The size of a device that is addressed by sectors is in EXT_CSD, that of another in the CSD;
/// each falls back on the other.
#[test]
fn the_size_is_in_the_register_of_the_addressing() {
    let mut slot = emmc(emmc_5_1(), Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    let ext_csd = card.ext_csd().unwrap().clone();
    let stated = ext_csd.sectors().unwrap();
    use Addressing::{Bytes, Sectors};
    for (addressing, csd, has_ext_csd, expected) in [
        (Sectors, Some(77), true, Some(stated)),
        (Sectors, Some(77), false, Some(77)),
        (Sectors, None, true, Some(stated)),
        (Bytes, Some(77), true, Some(77)),
        (Bytes, None, true, Some(stated)),
        (Bytes, None, false, None),
    ] {
        assert_eq!(
            found_sectors(&card, &ext_csd, addressing, csd, has_ext_csd),
            expected,
            "{addressing:?} {csd:?}"
        );
    }
}

fn found_sectors(
    card: &Card,
    ext_csd: &ExtCsd,
    addressing: Addressing,
    csd: Option<u64>,
    has_ext_csd: bool,
) -> Option<u64> {
    let mut identify = Identify::new(HostCapabilities::full());
    identify.found = Found {
        mmc: true,
        addressing,
        cid: Some(example::bits("15010038475446345206deadbeef8201")),
        csd: Some(Csd { sectors: csd, ..card.csd }),
        ext_csd: has_ext_csd.then(|| Box::new(ext_csd.clone())),
        mode: Some(card.mode),
        ..identify.found.clone()
    };
    identify.moves.clear();
    match identify.next() {
        Step::Done(card) => Some(card.sectors),
        Step::Failed(Failure::NoCapacity) => None,
        other => panic!("{other:?}"),
    }
}

/// A card that never shows its register in any mode loses one mode after the other, and then its
/// lanes.
#[test]
fn a_card_that_fails_in_each_mode_is_refused() {
    let mute = Some((1, Opcode::SdStatus));
    let mut slot = sdxc(Flaws { mute, ..Flaws::default() });
    let failure = slot.identify(&HostCapabilities::full()).unwrap_err();
    let opcode = Some(Opcode::SdStatus);
    assert_eq!(failure, Failure::Bus { opcode, error: BusError::NoResponse });
}

/// A card that accepts 1.8 V unasked stays at 3.3 V.
#[test]
fn the_voltage_is_switched_only_if_both_want_it() {
    // Ready, sector addresses, 1.8 V accepted, all voltages.
    let answer = Answer::Response(Response::Short(0xc1ff_8000));
    for signal_1v8 in [true, false] {
        let mut identify =
            Identify::new(HostCapabilities { signal_1v8, ..HostCapabilities::full() });
        identify.found.version_2 = true;
        identify.progress.prefixed = true;
        identify.take(Move::SdReady { tries: 0 }, answer).unwrap();
        let switches = identify.moves.iter().any(|of| matches!(of, Move::VoltageSwitch));
        assert_eq!(switches, signal_1v8);
    }
}
