//! Identification against a small model of a card, written from the standards: every command must
//! be legal ([only-legal-commands]), and data arrives only while host and card drive the bus in the
//! same mode.

use super::*;
use crate::card::Card;
use crate::command::legal::legal;
use crate::command::state::{CardState, Queue};
use crate::command::status::Status;
use crate::command::{Addressing, Command, Opcode, Rca, Response};
use crate::command::{ResponseKind, Standard};
use crate::host::HostCapabilities;
use crate::mode::{Mode, SignalVoltage, Timing, TimingSet, Width};
use crate::register::example;
use crate::register::ext_csd::example::{emmc_4_41, emmc_5_1};
use crate::register::ext_csd::index;
use crate::register::ext_csd::revision;
use alloc::boxed::Box;
use blockyard::time::Duration;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

mod ends;
mod slot;
mod ways;

use slot::{Flaws, Kind, Slot};

fn emmc(bytes: [u8; 512], flaws: Flaws) -> Slot {
    let kind = Kind::Mmc { ext_csd: Some(Box::new(bytes)), ocr: 0xc0ff_8080 };
    Slot::new(kind, example::CSD_CHROMEBOOK_EMMC, flaws)
}

/// Returns an SD card whose function group 1 has `modes`.
fn sd(csd: &'static str, scr: &str, ocr: u32, modes: u8, flaws: Flaws) -> Slot {
    let kind = Kind::Sd {
        version_2: ocr >> 30 & 1 == 1,
        ocr,
        scr: example::hex(scr),
        modes,
        uhs: modes & 0b1_1100 != 0,
    };
    Slot::new(kind, csd, flaws)
}

fn sdxc(flaws: Flaws) -> Slot {
    sd(example::CSD_KINGSTON_128G, "0235800300000000", 0xc0ff_8000, 0b1_1111, flaws)
}

/// Returns a host with all features but only these `timings`.
fn with(timings: &[Timing]) -> HostCapabilities {
    HostCapabilities { timings: TimingSet::of(timings), ..HostCapabilities::full() }
}

fn opcodes(slot: &Slot) -> Vec<Opcode> {
    slot.log.iter().map(|command| command.opcode).collect()
}

#[test]
fn emmc_5_1_reaches_hs400_with_strobe_and_its_settings() {
    let mut slot = emmc(emmc_5_1(), Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    let expected = Mode {
        timing: Timing::Hs400Es,
        width: Width::Eight,
        voltage: SignalVoltage::V1_8,
        clock_hz: 200_000_000,
    };
    assert_eq!(card.mode, expected);
    assert_eq!((card.sectors, card.addressing), (61_071_360, Addressing::Sectors));
    assert!(card.cache_on() && card.hpi().is_some());
    assert!(card.ext_csd().unwrap().erase_group_on());
    assert!(!opcodes(&slot).contains(&Opcode::MmcTuningBlock));
    assert_eq!(slot.state, CardState::Transfer);
    let given = slot.log.iter().find(|command| command.opcode == Opcode::SetRelativeAddr).unwrap();
    assert_eq!(u32::from(card.rca.0) << 16, given.argument);
}

#[test]
fn emmc_uses_the_best_timing_of_the_host() {
    use Timing::*;
    let all = [MmcHighSpeed, MmcDdr52, Hs200, Hs400, Hs400Es];
    for count in 0..=all.len() {
        let host = with(&all[..count]);
        let card = emmc(emmc_5_1(), Flaws::default()).identify(&host).unwrap();
        let best = [MmcLegacy, MmcHighSpeed, MmcDdr52, Hs200, Hs400, Hs400Es][count];
        assert_eq!((card.mode.timing, card.mode.width), (best, Width::Eight));
        assert_eq!(card.mode.clock_hz, best.max_clock_hz());
    }
}

#[test]
fn emmc_4_41_on_a_plain_host_reaches_high_speed_on_four_lanes() {
    let mut slot = emmc(emmc_4_41(), Flaws::default());
    let card = slot.identify(&HostCapabilities::plain()).unwrap();
    let Mode { timing, width, voltage, clock_hz } = card.mode;
    assert_eq!((timing, width), (Timing::MmcHighSpeed, Width::Four));
    assert_eq!((voltage, clock_hz), (SignalVoltage::V3_3, 50_000_000));
    assert_eq!((card.sectors, card.cache_on()), (0x0072_8000, false));
}

#[test]
fn emmc_4_3_without_timings_stays_basic_and_a_card_before_4_0_on_one_lane() {
    let mut bytes = emmc_4_41();
    bytes[usize::from(index::EXT_CSD_REV)] = revision::V4_3;
    bytes[usize::from(index::DEVICE_TYPE)] = 0;
    let mut slot = emmc(bytes, Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcLegacy, Width::Eight));
    assert_eq!(card.mode.clock_hz, 26_000_000);
    // SPEC_VERS 3, and the size of the 2 GB SD card, whose fields are at the same places.
    let kind = Kind::Mmc { ext_csd: None, ocr: 0x80ff_8000 };
    let mut old = Slot::new(kind, "8c2600325f5a83c93efbcfff928040cb", Flaws::default());
    let card = old.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcLegacy, Width::One));
    assert_eq!((card.sectors, card.addressing), (3877 * 1024, Addressing::Bytes));
    assert!(!opcodes(&old).contains(&Opcode::SendExtCsd));
    assert!(opcodes(&old).contains(&Opcode::SetBlockLen));
}

#[test]
fn sd_1_0_stays_at_default_speed_and_is_addressed_by_bytes() {
    let mut slot =
        sd(example::CSD_SANDISK_2G, "0025000000000000", 0x80ff_8000, 0, Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdDefault, Width::Four));
    assert_eq!((card.sectors, card.addressing), (3877 * 1024, Addressing::Bytes));
    assert_eq!((card.rca, card.cache_bytes()), (Rca(0xb368), 0));
    assert!(opcodes(&slot).contains(&Opcode::SetBlockLen));
    assert!(!opcodes(&slot).contains(&Opcode::SwitchFunction));
}

#[test]
fn sdhc_is_brought_to_high_speed() {
    let mut slot =
        sd(example::CSD_SAMSUNG_32G, "0235800100000000", 0xc0ff_8000, 0b11, Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdHighSpeed, Width::Four));
    assert_eq!((card.sectors, card.addressing), (59_878 * 1024, Addressing::Sectors));
    assert_eq!(card.ssr().unwrap().allocation_unit_sectors, Some(8192));
    assert!(!opcodes(&slot).contains(&Opcode::VoltageSwitch));
}

#[test]
fn sdxc_uses_the_best_timing_of_the_host() {
    use Timing::*;
    for (timings, best) in [
        (&[Sdr12, Sdr25, Sdr50, Ddr50, Sdr104][..], Sdr104),
        (&[Sdr25, Sdr50, Ddr50], Sdr50),
        (&[Sdr25, Ddr50], Ddr50),
        (&[Sdr25], Sdr25),
        (&[], Sdr12),
    ] {
        let mut slot = sdxc(Flaws::default());
        let card = slot.identify(&with(timings)).unwrap();
        assert_eq!(card.mode, Mode::new(best, Width::Four));
        let tuned = matches!(slot.host.unwrap().timing, Sdr104);
        assert_eq!(slot.tuned, tuned);
        assert_eq!(card.sectors, 239_072 * 1024);
    }
    // Without 1.8 V, or without a power switch, the card stays at 3.3 V.
    for host in [
        HostCapabilities { signal_1v8: false, ..HostCapabilities::full() },
        HostCapabilities { power_cycle: false, ..HostCapabilities::full() },
    ] {
        let card = sdxc(Flaws::default()).identify(&host).unwrap();
        assert_eq!(card.mode, Mode::new(SdHighSpeed, Width::Four));
    }
}

/// An SDXC card of SD 6 with CMD48 and CMD23.
fn a2(flaws: Flaws) -> Slot {
    sd(example::CSD_KINGSTON_128G, "0245848600000000", 0xc0ff_8000, 0b1_1111, flaws)
}

/// A card of class A2 has its queue and its cache in the performance enhancement register, which
/// the general information places at function 2: two reads of 512 bytes, in the final mode. CMD49
/// turns the cache on at byte 260, 0x104, and its limit is 1 s (SD 5.7.2.5). CMD13 and another read
/// say whether it did.
#[test]
fn the_cache_of_a_card_of_class_a2_is_found_and_turned_on() {
    let mut slot = a2(Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    let performance = card.performance().unwrap();
    assert_eq!((performance.queue_depth, performance.cache), (32, true));
    // Of 32 tasks an engine with direct commands holds 31. The request path turns the queue on.
    assert_eq!((card.queue_depth(&HostCapabilities::full()), card.cache_on()), (31, true));
    let [.., ssr, general, performance, on, status, again, done] = &slot.steps[..] else {
        panic!("{:?}", slot.steps)
    };
    assert_eq!(ssr, "ACMD13 (0x00000000), 150 ms");
    let register = "CMD48 (0x100001ff), 150 ms";
    assert_eq!([general, performance, again], ["CMD48 (0x000001ff), 150 ms", register, register]);
    assert_eq!(
        [on, status, done],
        ["CMD49 (0x10020800) with 1, 1000 ms", "CMD13 (0xb3680000), 150 ms", "done"]
    );
    assert!(
        sdxc(Flaws::default()).identify(&HostCapabilities::full()).unwrap().performance().is_none()
    );
}

/// A card that does not answer CMD48 although it says that it does is identified all the same.
#[test]
fn a_card_without_an_answer_to_cmd48_is_one_without_the_register() {
    let flaws = Flaws { mute: Some((1, Opcode::ReadExtension)), ..Flaws::default() };
    let mut slot = a2(flaws);
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.performance()), (Timing::Sdr104, None));
    let asked = opcodes(&slot).iter().filter(|&&opcode| opcode == Opcode::ReadExtension).count();
    assert_eq!(asked, usize::from(TRIES));
}

/// A card that does not take CMD49 has its cache off, which the register says.
#[test]
fn a_card_that_does_not_take_cmd49_has_no_cache() {
    let flaws = Flaws { mute: Some((1, Opcode::WriteExtension)), ..Flaws::default() };
    let mut slot = a2(flaws);
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.cache_on()), (Timing::Sdr104, false));
    let asked = opcodes(&slot).iter().filter(|&&opcode| opcode == Opcode::WriteExtension).count();
    assert_eq!(asked, usize::from(TRIES));
}

/// Returns the number of the last command when the card of class A2 is identified.
fn last_of_a2() -> usize {
    let mut slot = a2(Flaws::default());
    slot.identify(&HostCapabilities::full()).unwrap();
    slot.log.len() - 1
}

/// Nobody knows whether the cache is on if the register cannot be read again, and one that is on
/// has to be flushed. So identification starts over and leaves the register alone, in the mode in
/// which the other registers arrived: three reads fail, and the second start reads none.
#[test]
fn a_cache_of_which_nothing_is_known_is_not_used() {
    let lost = (last_of_a2()..last_of_a2() + usize::from(TRIES)).collect();
    let mut slot = a2(Flaws { lost, ..Flaws::default() });
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.performance()), (Timing::Sdr104, None));
    let opcodes = opcodes(&slot);
    let asked = opcodes.iter().filter(|&&opcode| opcode == Opcode::ReadExtension).count();
    let told = opcodes.iter().filter(|&&opcode| opcode == Opcode::WriteExtension).count();
    assert_eq!((asked, told), (2 + usize::from(TRIES), 1));
    assert_eq!(slot.performance[260], 0, "the cache is off");
}

/// A card that does not get the byte of CMD49 waits for it. CMD13 finds it so, CMD12 ends it, and
/// CMD49 is sent again. After the third time the cache stays off.
#[test]
fn a_card_that_waits_for_the_byte_of_cmd49_is_stopped() {
    let first = last_of_a2() - 2;
    for (lost, expected) in [(1, true), (2, true), (3, false)] {
        // CMD49, CMD13 and CMD12, as often as the data is lost.
        let dataless = (0..lost).map(|nth| first + 3 * nth).collect();
        let mut slot = a2(Flaws { dataless, ..Flaws::default() });
        let card = slot.identify(&HostCapabilities::full()).unwrap();
        assert_eq!((card.mode.timing, card.cache_on()), (Timing::Sdr104, expected), "{lost}");
        assert_eq!(slot.performance[260], u8::from(expected));
        // A card without its cache has no queue (SD 5.8).
        let depth = card.queue_depth(&HostCapabilities::full());
        assert_eq!(depth, if expected { 31 } else { 0 });
        let mut steps = Vec::new();
        for _ in 0..lost {
            steps.extend([Opcode::WriteExtension, Opcode::SendStatus, Opcode::StopTransmission]);
        }
        if expected {
            steps.push(Opcode::WriteExtension);
        }
        steps.extend([Opcode::SendStatus, Opcode::ReadExtension]);
        assert_eq!(opcodes(&slot)[first..], steps, "{lost}");
    }
}

#[test]
fn every_failed_mode_is_followed_by_the_next_one() {
    use Timing::*;
    let mmc = [Hs400Es, Hs400, Hs200, MmcDdr52, MmcHighSpeed, MmcLegacy];
    let uhs = [Sdr104, Sdr50, Ddr50, Sdr25, Sdr12, SdHighSpeed, SdDefault];
    for bad in 1..mmc.len() {
        for power_cycle in [true, false] {
            let flaws = Flaws { bad: mmc[..bad].to_vec(), ..Flaws::default() };
            let host = HostCapabilities { power_cycle, ..HostCapabilities::full() };
            // Legacy carries the first EXT_CSD, so it is never bad here.
            let card = emmc(emmc_5_1(), flaws).identify(&host).unwrap();
            assert_eq!((card.mode.timing, card.mode.width), (mmc[bad], Width::Eight));
        }
    }
    for bad in 1..uhs.len() {
        // SDR12 and default speed carry SCR and functions. If they are bad, so is every mode at
        // their voltage.
        let flaws = Flaws { bad: uhs[..bad].to_vec(), ..Flaws::default() };
        let card = sdxc(flaws).identify(&HostCapabilities::full()).unwrap();
        assert_eq!(card.mode.timing, uhs[bad]);
    }
}

#[test]
fn lanes_that_are_not_wired_are_detected() {
    let flaws = Flaws { wired: Some(Width::Four), ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::Hs200, Width::Four));
    let flaws = Flaws { wired: Some(Width::One), ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws.clone()).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::MmcHighSpeed, Width::One));
    let card = sdxc(flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdHighSpeed, Width::One));
}

#[test]
fn a_failed_voltage_switch_costs_uhs_and_nothing_else() {
    let flaws = Flaws { stuck_at_3v3: true, ..Flaws::default() };
    let card = sdxc(flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!(card.mode, Mode::new(Timing::SdHighSpeed, Width::Four));
}

#[test]
fn a_refused_switch_costs_its_mode_and_a_refused_setting_nothing() {
    let host = HostCapabilities::full();
    let card = emmc(emmc_5_1(), Flaws::default()).identify(&host).unwrap();
    assert_eq!((card.cache_on(), card.max_packed(&host)), (true, (63, 60)));
    let settings = vec![index::CACHE_CTRL, index::HPI_MGMT, index::EXCEPTION_EVENTS_CTRL];
    let flaws = Flaws { refused: settings, ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws).identify(&host).unwrap();
    assert_eq!(card.mode.timing, Timing::Hs400Es);
    assert!(!card.cache_on() && card.hpi().is_none() && card.cache_bytes() > 0);
    assert_eq!(card.max_packed(&host), (0, 0));
    let flaws = Flaws { refused: vec![index::BUS_WIDTH], ..Flaws::default() };
    let mut slot = emmc(emmc_5_1(), flaws);
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcHighSpeed, Width::One));
    // A status reports only once that a switch failed, so CMD13 is not repeated.
    assert!(!slot.reported.is_empty());
    for number in slot.reported {
        assert_eq!(slot.log[number + 1].opcode, Opcode::GoIdle);
    }
    let flaws = Flaws { refused: vec![index::HS_TIMING], ..Flaws::default() };
    let card = emmc(emmc_5_1(), flaws).identify(&HostCapabilities::full()).unwrap();
    assert_eq!((card.mode.timing, card.mode.width), (Timing::MmcLegacy, Width::Eight));
}

#[test]
fn any_command_or_response_may_be_lost_once_or_twice() {
    let new: [fn(Flaws) -> Slot; 4] = [
        |flaws| emmc(emmc_5_1(), flaws),
        sdxc,
        a2,
        |flaws| sd(example::CSD_SAMSUNG_32G, "0235800100000000", 0xc0ff_8000, 0b11, flaws),
    ];
    let mut runs = 0;
    for new in new {
        let mut whole = new(Flaws::default());
        let best = whole.identify(&HostCapabilities::full()).unwrap().mode;
        for number in 0..whole.log.len() {
            for (heard, times) in [(true, 1), (false, 1), (false, 2)] {
                // A lost CMD0 cannot be noticed.
                if !heard && whole.log[number].opcode == Opcode::GoIdle {
                    continue;
                }
                let lost = (number..number + times).collect();
                let flaws = if heard {
                    Flaws { unheard: lost, ..Flaws::default() }
                } else {
                    Flaws { lost, ..Flaws::default() }
                };
                let card = new(flaws).identify(&HostCapabilities::full());
                let mode = card.unwrap_or_else(|why| panic!("{number}, {heard}: {why}")).mode;
                // CMD11 cannot be repeated, so its loss costs 1.8 V. A lost response to a switch of
                // the timing costs that timing.
                let command = whole.log[number];
                let changed = heard && command.argument >> 31 == 1;
                let same = match command.opcode {
                    Opcode::VoltageSwitch => false,
                    Opcode::SwitchFunction => !changed,
                    _ => true,
                };
                assert_eq!(mode == best, same, "{command}, heard: {heard}");
                runs += 1;
            }
        }
    }
    assert!(runs > 150, "{runs}");
}

#[test]
fn a_card_that_cannot_be_used_is_refused_with_the_reason() {
    assert_eq!(failure_of(empty(Kind::None)), Failure::NoCard);
    assert_eq!(failure_of(empty(Kind::Sdio)), Failure::Sdio);
    let locked = Flaws { locked: true, ..Flaws::default() };
    assert_eq!(failure_of(sdxc(locked)), Failure::Locked);
    let deaf = Flaws { deaf: true, ..Flaws::default() };
    assert_eq!(failure_of(sdxc(deaf)), Failure::Voltage);
    // An SD card and an eMMC device of 1.8 V only, on a host that supplies 3.3 V.
    let kind = Kind::Mmc { ext_csd: Some(Box::new(emmc_5_1())), ocr: 0xc000_0080 };
    assert_eq!(failure_of(empty(kind)), Failure::Voltage);
    assert_eq!(
        failure_of(sd(
            example::CSD_SAMSUNG_32G,
            "0235800100000000",
            0xc000_0000,
            0,
            Flaws::default()
        )),
        Failure::Voltage
    );
    // A register with an impossible value.
    let slot = sd(example::CSD_SAMSUNG_32G, "0335800100000000", 0xc0ff_8000, 0, Flaws::default());
    let text = failure_of(slot).to_string();
    assert!(text.starts_with("SCR: SD_SPEC is 0x3"), "{text}");
    // A bus without a single good lane.
    let bad = Timing::ALL.to_vec();
    let slot = sdxc(Flaws { bad, ..Flaws::default() });
    let opcode = Some(Opcode::SendScr);
    assert_eq!(failure_of(slot), Failure::Bus { opcode, error: BusError::Data });
}

fn failure_of(mut slot: Slot) -> Failure {
    slot.identify(&HostCapabilities::full()).unwrap_err()
}

fn empty(kind: Kind) -> Slot {
    Slot::new(kind, example::CSD_SANDISK_2G, Flaws::default())
}

#[test]
fn a_card_has_a_second_to_become_ready() {
    for mut slot in [emmc(emmc_5_1(), Flaws::default()), sdxc(Flaws::default())] {
        slot.flaws.never_ready = true;
        assert_eq!(slot.identify(&HostCapabilities::full()).unwrap_err(), Failure::NeverReady);
        assert!(slot.waited >= Duration::from_secs(1), "{:?}", slot.waited);
        assert!(slot.waited < Duration::from_ms(1_100), "{:?}", slot.waited);
    }
}

#[test]
fn the_final_step_never_changes() {
    let mut identify = Identify::new(HostCapabilities::full());
    let mut steps = 0;
    while !matches!(identify.next(), Step::Failed(_)) {
        identify.answered(Answer::Error(BusError::NoResponse));
        steps += 1;
        assert!(steps < 1000);
    }
    identify.answered(Answer::Done);
    assert!(matches!(identify.next(), Step::Failed(_)));
}

#[test]
fn retuning_returns_the_bus_to_its_mode() {
    use Timing::*;
    for (timing, steps) in [(Hs200, 1), (Hs400, 19), (Hs400Es, 0), (MmcHighSpeed, 0)] {
        let mut slot = emmc(emmc_5_1(), Flaws::default());
        let card = slot.identify(&with(&[timing])).unwrap();
        assert_eq!((card.mode.timing, Retune::of(&card).count()), (timing, steps));
        slot.retune(&card).unwrap();
        assert_eq!((slot.tuned, slot.host), (timing.needs_tuning(), Some(card.mode)));
        assert!(slot.agree(false), "{timing:?}: data arrives");
    }
    for (timing, steps) in [(Sdr104, 1), (Sdr50, 1), (Sdr25, 0)] {
        let mut slot = sdxc(Flaws::default());
        let card = slot.identify(&with(&[timing])).unwrap();
        assert_eq!(Retune::of(&card).count(), steps);
        slot.retune(&card).unwrap();
        assert!(slot.agree(false) && slot.tuned == (steps > 0), "{timing:?}");
    }
}

/// Each step of the identification of four cards, with arguments and limits.
#[test]
fn identification_takes_the_steps_of_the_standards() {
    let mut old = Slot::new(
        Kind::Mmc { ext_csd: None, ocr: 0x80ff_8000 },
        example::CSD_SANDISK_2G,
        Flaws::default(),
    );
    let plain = HostCapabilities::plain();
    let full = HostCapabilities::full();
    let mut sd_1_0 =
        sd(example::CSD_SANDISK_2G, "0025000000000000", 0x80ff_8000, 0, Flaws::default());
    let mut steps = std::string::String::new();
    for (name, slot, host) in [
        ("eMMC 5.1 on a full host", &mut emmc(emmc_5_1(), Flaws::default()), &full),
        ("a card before 4.0 on a plain host", &mut old, &plain),
        ("SD 1.0 on a plain host", &mut sd_1_0, &plain),
        ("SDXC on a full host", &mut sdxc(Flaws::default()), &full),
    ] {
        slot.identify(host).unwrap();
        steps += &std::format!("{name}\n  {}\n", slot.steps.join("\n  "));
    }
    assert_eq!(steps, include_str!("steps.txt"));
}
