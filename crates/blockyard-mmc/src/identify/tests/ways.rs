//! Which way into its mode a card takes.

use super::super::moves::Move;
use super::super::plan::wide;
use super::*;

/// JESD84, BUS_WIDTH (183): 0 to 2 for 1, 4 and 8 lanes, 4 more with both edges, bit 7 for enhanced
/// strobe.
#[test]
fn a_bus_width_is_stated_with_edges_and_strobe() {
    for (timing, width, value) in [
        (Timing::MmcLegacy, Width::One, 0),
        (Timing::MmcHighSpeed, Width::Four, 1),
        (Timing::Hs200, Width::Eight, 2),
        (Timing::MmcDdr52, Width::Four, 5),
        (Timing::MmcDdr52, Width::Eight, 6),
        (Timing::Hs400, Width::Eight, 6),
        (Timing::Hs400Es, Width::Eight, 0x86),
    ] {
        let Move::Switch(at, stated) = wide(Mode::new(timing, width)) else {
            panic!("a width is switched")
        };
        assert_eq!((at, stated), (index::BUS_WIDTH, value), "{timing:?} {width:?}");
    }
}

/// Before any switch, the CSD states the clock (TRAN_SPEED: 0x2a is 20 MHz, 0x32 is 26), up to 26
/// MHz.
#[test]
fn the_clock_before_a_switch_is_the_least_of_card_timing_and_host() {
    let full = with(&[Timing::MmcLegacy]);
    let slow = HostCapabilities { max_clock_hz: 10_000_000, ..full.clone() };
    for (speed, host, clock_hz) in [
        ("2a", &full, 20_000_000),
        ("32", &full, 26_000_000),
        ("2a", &slow, 10_000_000),
        ("32", &slow, 10_000_000),
    ] {
        let csd = example::CSD_CHROMEBOOK_EMMC;
        let csd = std::format!("{}{speed}{}", &csd[..6], &csd[8..]);
        let mut slot = emmc(emmc_5_1(), Flaws::default());
        slot.csd = Box::leak(csd.into_boxed_str());
        assert_eq!(slot.identify(host).unwrap().mode.clock_hz, clock_hz, "{speed}");
    }
}

/// Strobe alone is no timing, and a setting that the device does not have is not switched.
#[test]
fn an_emmc_uses_what_its_register_states() {
    // Bits 0 and 1: high speed; 2: DDR52; 4: HS200 at 1.8 V; 6: HS400 at 1.8 V.
    assert_eq!(timing_of(0x17, 1), Timing::Hs200);
    assert_eq!(timing_of(0x57, 0), Timing::Hs400);
    assert_eq!(timing_of(0x57, 1), Timing::Hs400Es);
    for (setting, register) in [
        (index::ERASE_GROUP_DEF, vec![index::HC_ERASE_GRP_SIZE]),
        (index::CACHE_CTRL, (index::CACHE_SIZE..index::CACHE_SIZE + 4).collect()),
        (index::EXCEPTION_EVENTS_CTRL, vec![index::MAX_PACKED_WRITES]),
    ] {
        let none: Vec<_> = register.iter().map(|&at| (at, 0)).collect();
        let least = [none.as_slice(), &[(register[0], 1)]].concat();
        assert!(!switches(setting, &none), "{setting}");
        assert!(switches(setting, &least), "{setting}");
    }
}

fn timing_of(types: u8, strobe: u8) -> Timing {
    let mut bytes = emmc_5_1();
    bytes[usize::from(index::DEVICE_TYPE)] = types;
    bytes[usize::from(index::STROBE_SUPPORT)] = strobe;
    let mut slot = emmc(bytes, Flaws::default());
    let card = slot.identify(&HostCapabilities::full()).unwrap();
    let starts = slot.steps.iter().filter(|step| *step == "Power(true)").count();
    assert_eq!(starts, 1, "no mode that the device does not have is tried");
    card.mode.timing
}

fn switches(at: u16, changed: &[(u16, u8)]) -> bool {
    let mut bytes = emmc_5_1();
    changed.iter().for_each(|&(at, value)| bytes[usize::from(at)] = value);
    let mut slot = emmc(bytes, Flaws::default());
    slot.identify(&HostCapabilities::full()).unwrap();
    // Access: write byte; then the index and the value.
    slot.log
        .iter()
        .filter(|of| of.opcode == Opcode::Switch && of.argument >> 24 == 3)
        .any(|of| of.argument >> 16 & 0xff == u32::from(at))
}

/// CMD6 came with version 1.10 of the SD specification. SDR50 is tuned if the host wants it; slower
/// modes are not.
#[test]
fn an_sd_card_is_switched_and_tuned_as_version_and_mode_ask() {
    for (scr, has) in [("0025000000000000", false), ("0125000000000000", true)] {
        let mut slot = sd(example::CSD_SAMSUNG_32G, scr, 0xc0ff_8000, 0b11, Flaws::default());
        slot.identify(&HostCapabilities::full()).unwrap();
        assert_eq!(opcodes(&slot).contains(&Opcode::SwitchFunction), has, "{scr}");
    }
    for (timing, tunes_sdr50, tunes) in [
        (Timing::Sdr104, false, true),
        (Timing::Sdr50, true, true),
        (Timing::Sdr50, false, false),
        (Timing::Ddr50, true, false),
        (Timing::Sdr25, true, false),
    ] {
        let mut slot = sdxc(Flaws::default());
        let host = HostCapabilities { tunes_sdr50, ..with(&[timing]) };
        assert_eq!(slot.identify(&host).unwrap().mode.timing, timing);
        let tuned = slot.steps.iter().any(|step| step.starts_with("tune"));
        assert_eq!(tuned, tunes, "{timing:?} {tunes_sdr50}");
    }
}
