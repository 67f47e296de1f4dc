//! Bus modes: timing, clock, width and voltage, and what they cost on the wire.
//!
//! Clocks and framings are those of JESD84-B51 5.3, 6.15 and 10 (eMMC), and of SD 4.12, 4.13 and 6
//! (SD).
//!
//! # Time on the wire
//!
//! The unit is the **clock**: every span of a mode is a whole number of them, and none is lost.
//! [`Mode::time`] turns clocks into nanoseconds, rounded up. Add clocks and convert the sum: what is
//! converted piece by piece grows by up to a nanosecond each.
//!
//! ```text
//! command   48 ── NCR 2..64 ── response 48 or 136 ── NRC 8 ── next command
//! block     start 1 ── bytes * 8 / lanes (half that on both edges) ── CRC 16 ── end 1
//! read      access time ── block ── 2 ── block ── 2 ── ...
//! write     2 ── block ── 2 ── CRC status 5 ── busy ── 2 ── block ── ...
//! ```
//!
//! # Examples
//!
//! What a read of 4 KiB keeps the bus busy with, the card's access time aside:
//!
//! ```
//! use blockyard_mmc::command::ResponseKind;
//! use blockyard_mmc::mode::{Mode, NCR_MIN, Timing, Width};
//! use blockyard::time::Duration;
//!
//! let mode = Mode::new(Timing::Hs200, Width::Eight);
//! let command = mode.command_clocks(ResponseKind::R1, NCR_MIN);
//! let data = mode.read_clocks(512, 8);
//! // 98 clocks; 8 blocks of 530 and 7 gaps of 2; 5 ns each.
//! assert_eq!(mode.time(command + data), Duration::from_ns(21_760));
//! ```

use super::command::ResponseKind;
use super::host::HostCapabilities;
use blockyard::time::Duration;

/// Clocks of a command on the wire.
pub const COMMAND_CLOCKS: u32 = 48;
/// NCR, the gap between a command and its response: least.
pub const NCR_MIN: u32 = 2;
/// NCR, the gap between a command and its response: most.
pub const NCR_MAX: u32 = 64;
/// NRC, the least gap between a response and the next command.
pub const NRC: u32 = 8;
/// Least clocks between two blocks that are read.
pub const READ_GAP: u32 = 2;
/// NWR and what follows: clocks before a block that is written, between it and its CRC status, and
/// of the status itself.
pub const WRITE_GAPS: u32 = 2 + 2 + 5;
/// Clock of identification in Hz: all cards listen to it.
pub const IDENTIFICATION_HZ: u32 = 400_000;

/// How data is clocked.
///
/// Those of SD come first, then those of eMMC, and in each what is simpler to use before what is
/// not: of two that are as fast, the earlier is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timing {
    /// SD default speed: 25 MHz at 3.3 V.
    SdDefault,
    /// SD high speed: 50 MHz at 3.3 V.
    SdHighSpeed,
    /// UHS-I: 25 MHz at 1.8 V.
    Sdr12,
    /// UHS-I: 50 MHz at 1.8 V.
    Sdr25,
    /// UHS-I: 50 MHz, both edges, at 1.8 V.
    Ddr50,
    /// UHS-I: 100 MHz at 1.8 V.
    Sdr50,
    /// UHS-I: 208 MHz at 1.8 V, tuned.
    Sdr104,
    /// eMMC, as it wakes up: 26 MHz.
    MmcLegacy,
    /// eMMC high speed: 52 MHz.
    MmcHighSpeed,
    /// eMMC high speed, both edges.
    MmcDdr52,
    /// eMMC: 200 MHz at 1.8 or 1.2 V, tuned.
    Hs200,
    /// eMMC: 200 MHz, both edges, with a strobe for data and responses.
    Hs400Es,
    /// eMMC: 200 MHz, both edges, with a strobe for data, tuned as HS200.
    Hs400,
}

impl Timing {
    /// Every timing.
    pub const ALL: [Self; 13] = [
        Self::SdDefault,
        Self::SdHighSpeed,
        Self::Sdr12,
        Self::Sdr25,
        Self::Ddr50,
        Self::Sdr50,
        Self::Sdr104,
        Self::MmcLegacy,
        Self::MmcHighSpeed,
        Self::MmcDdr52,
        Self::Hs200,
        Self::Hs400Es,
        Self::Hs400,
    ];

    /// Highest clock in Hz.
    #[must_use]
    pub const fn max_clock_hz(self) -> u32 {
        match self {
            Self::SdDefault | Self::Sdr12 => 25_000_000,
            Self::MmcLegacy => 26_000_000,
            Self::SdHighSpeed | Self::Sdr25 | Self::Ddr50 => 50_000_000,
            Self::MmcHighSpeed | Self::MmcDdr52 => 52_000_000,
            Self::Sdr50 => 100_000_000,
            Self::Hs200 | Self::Hs400 | Self::Hs400Es => 200_000_000,
            Self::Sdr104 => 208_000_000,
        }
    }

    /// Whether data changes on both edges of the clock (DDR); commands never do.
    #[must_use]
    pub const fn both_edges(self) -> bool {
        matches!(self, Self::Ddr50 | Self::MmcDdr52 | Self::Hs400 | Self::Hs400Es)
    }

    /// Whether the card sends a strobe along with its data.
    #[must_use]
    pub const fn strobe(self) -> bool {
        matches!(self, Self::Hs400 | Self::Hs400Es)
    }

    /// Whether the host must find its sampling point by tuning. HS400 is tuned while still in
    /// HS200; SDR50 is tuned where the [host](HostCapabilities::tunes_sdr50) needs it.
    #[must_use]
    pub const fn needs_tuning(self) -> bool {
        matches!(self, Self::Sdr104 | Self::Hs200 | Self::Hs400)
    }

    /// Whether it is one of SD's five UHS-I timings, which are used at 1.8 V only.
    #[must_use]
    pub const fn is_uhs(self) -> bool {
        matches!(self, Self::Sdr12 | Self::Sdr25 | Self::Sdr50 | Self::Sdr104 | Self::Ddr50)
    }

    /// Whether signals must be below 3.3 V.
    #[must_use]
    pub const fn needs_low_voltage(self) -> bool {
        self.is_uhs() || matches!(self, Self::Hs200 | Self::Hs400 | Self::Hs400Es)
    }

    /// The narrowest bus it can be used on.
    #[must_use]
    pub const fn min_width(self) -> Width {
        match self {
            Self::SdDefault | Self::SdHighSpeed | Self::MmcLegacy | Self::MmcHighSpeed => {
                Width::One
            }
            Self::Hs400 | Self::Hs400Es => Width::Eight,
            _ => Width::Four,
        }
    }
}

/// A set of timings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingSet(u16);

impl TimingSet {
    /// No timing.
    pub const NONE: Self = Self(0);
    /// Every timing.
    pub const ALL: Self = Self::of(&Timing::ALL);
    /// What every host has, and every card of its kind and voltage: [`Timing::SdDefault`],
    /// [`Timing::Sdr12`] and [`Timing::MmcLegacy`].
    pub const BASIC: Self = Self::of(&[Timing::SdDefault, Timing::Sdr12, Timing::MmcLegacy]);
    /// The basic ones and, at 3.3 V on one edge, high speed.
    pub const HIGH_SPEED: Self = Self::of(&[
        Timing::SdDefault,
        Timing::SdHighSpeed,
        Timing::MmcLegacy,
        Timing::MmcHighSpeed,
    ]);

    /// The set of `timings`.
    #[must_use]
    pub const fn of(timings: &[Timing]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < timings.len() {
            set |= 1 << timings[at] as u16;
            at += 1;
        }
        Self(set)
    }

    /// Whether `timing` is in it.
    #[must_use]
    pub const fn has(self, timing: Timing) -> bool {
        self.0 >> timing as u16 & 1 == 1
    }

    /// With `timing`.
    #[must_use]
    pub const fn with(self, timing: Timing) -> Self {
        Self(self.0 | 1 << timing as u16)
    }

    /// Without `timing`.
    #[must_use]
    pub const fn without(self, timing: Timing) -> Self {
        Self(self.0 & !(1 << timing as u16))
    }

    /// What both have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What either has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The timings in it, as they stand in [`Timing`].
    pub fn iter(self) -> impl Iterator<Item = Timing> {
        Timing::ALL.into_iter().filter(move |&timing| self.has(timing))
    }
}

/// Lanes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// DAT0 only.
    One,
    /// DAT0 to DAT3.
    Four,
    /// DAT0 to DAT7; eMMC only.
    Eight,
}

impl Width {
    /// How many lanes.
    #[must_use]
    pub const fn lanes(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Voltage of the signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignalVoltage {
    /// 3.3 V.
    V3_3,
    /// 1.8 V.
    V1_8,
    /// 1.2 V; eMMC only.
    V1_2,
}

/// How a bus is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The timing.
    pub timing: Timing,
    /// Lanes of data.
    pub width: Width,
    /// Voltage of the signals.
    pub voltage: SignalVoltage,
    /// The clock in Hz, at least 1 and at most [`Timing::max_clock_hz`].
    pub clock_hz: u32,
}

impl Mode {
    /// `timing` as fast as it goes on `width`, at 3.3 V where that will do, else at 1.8 V.
    #[must_use]
    pub const fn new(timing: Timing, width: Width) -> Self {
        let low = timing.needs_low_voltage();
        let voltage = if low { SignalVoltage::V1_8 } else { SignalVoltage::V3_3 };
        Self { timing, width, voltage, clock_hz: timing.max_clock_hz() }
    }

    /// `timing` as `host` can drive it, on a bus of at most `width`; `None` if it cannot. Signals of
    /// 1.8 V go before those of 1.2 V.
    #[must_use]
    pub fn on_host(timing: Timing, width: Width, host: &HostCapabilities) -> Option<Self> {
        let width = width.min(host.width);
        let allowed = host.timings.or(TimingSet::BASIC).has(timing) && width >= timing.min_width();
        let voltage = match timing {
            _ if !timing.needs_low_voltage() => SignalVoltage::V3_3,
            _ if host.signal_1v8 => SignalVoltage::V1_8,
            _ if host.signal_1v2 && !timing.is_uhs() => SignalVoltage::V1_2,
            _ => return None,
        };
        let clock_hz = timing.max_clock_hz().min(host.max_clock_hz);
        allowed.then_some(Self { timing, width, voltage, clock_hz })
    }

    /// The fastest mode that a card with `timings` and a bus of at most `width`, and `host`, have in
    /// common: by data in whole blocks, and of equals the one that stands first in [`Timing`].
    /// Where it fails, ask again without its timing: so every mode gets its turn, the fastest first.
    #[must_use]
    pub fn best(timings: TimingSet, width: Width, host: &HostCapabilities) -> Option<Self> {
        let modes = timings.iter().filter_map(|timing| Self::on_host(timing, width, host));
        modes.max_by_key(|mode| (mode.bytes_per_second(), core::cmp::Reverse(mode.timing)))
    }

    /// Clocks of one block of `bytes`, framed by start bit, CRC and end bit.
    #[must_use]
    pub const fn block_clocks(&self, bytes: u32) -> u64 {
        let bits_per_clock = self.width.lanes() * if self.timing.both_edges() { 2 } else { 1 };
        (bytes as u64 * 8).div_ceil(bits_per_clock as u64) + 18
    }

    /// Clocks of `blocks` blocks of `bytes` that are read: from the first's start, after the card's
    /// access time, to the last's end.
    #[must_use]
    pub const fn read_clocks(&self, bytes: u32, blocks: u32) -> u64 {
        let gaps = READ_GAP as u64 * (blocks as u64).saturating_sub(1);
        self.block_clocks(bytes) * blocks as u64 + gaps
    }

    /// Clocks of `blocks` blocks of `bytes` that are written, each with its CRC status, and without
    /// the busy that may follow it.
    #[must_use]
    pub const fn write_clocks(&self, bytes: u32, blocks: u32) -> u64 {
        (self.block_clocks(bytes) + WRITE_GAPS as u64) * blocks as u64
    }

    /// Clocks of a command and its response with a gap of `ncr` clocks between them, to the
    /// response's end. The next command may follow [`NRC`] clocks later.
    #[must_use]
    pub const fn command_clocks(&self, response: ResponseKind, ncr: u32) -> u64 {
        match response.bits() {
            0 => COMMAND_CLOCKS as u64,
            bits => COMMAND_CLOCKS as u64 + ncr as u64 + bits as u64,
        }
    }

    /// How long `clocks` last, rounded up to a nanosecond. Saturates.
    ///
    /// # Panics
    ///
    /// If the clock is zero.
    #[must_use]
    pub const fn time(&self, clocks: u64) -> Duration {
        let ns = (clocks as u128 * 1_000_000_000).div_ceil(self.clock_hz as u128);
        #[expect(clippy::cast_possible_truncation, reason = "compared with the largest before")]
        Duration::from_ns(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
    }

    /// Data per second in framed blocks of 512 bytes without gaps, rounded down.
    #[must_use]
    pub const fn bytes_per_second(&self) -> u64 {
        512 * self.clock_hz as u64 / self.block_clocks(512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_mode_of_the_standards_costs_what_the_standards_say() {
        // Clocks per block of 512 bytes by hand (4096 / lanes + 18, half the data on both edges),
        // and nanoseconds: clocks * 1000 / MHz, rounded up.
        use Timing::*;
        for (timing, width, clocks, ns) in [
            (SdDefault, Width::One, 4114, 164_560),
            (SdDefault, Width::Four, 1042, 41_680),
            (SdHighSpeed, Width::Four, 1042, 20_840),
            (Sdr12, Width::Four, 1042, 41_680),
            (Sdr25, Width::Four, 1042, 20_840),
            (Sdr50, Width::Four, 1042, 10_420),
            (Sdr104, Width::Four, 1042, 5_010),
            (Ddr50, Width::Four, 530, 10_600),
            (MmcLegacy, Width::Eight, 530, 20_385),
            (MmcHighSpeed, Width::Eight, 530, 10_193),
            (MmcDdr52, Width::Eight, 274, 5_270),
            (Hs200, Width::Eight, 530, 2_650),
            (Hs400, Width::Eight, 274, 1_370),
            (Hs400Es, Width::Eight, 274, 1_370),
        ] {
            let mode = Mode::new(timing, width);
            assert_eq!(mode.block_clocks(512), clocks, "{timing:?}");
            assert_eq!(mode.time(clocks), Duration::from_ns(ns), "{timing:?}");
        }
    }

    #[test]
    fn a_status_costs_what_design_and_standard_say() {
        // 48 + 2 + 48 and 48 + 64 + 48 clocks.
        let mode = Mode::new(Timing::Hs200, Width::Eight);
        let round = |ncr| mode.time(mode.command_clocks(ResponseKind::R1, ncr));
        assert_eq!(
            (round(NCR_MIN), round(NCR_MAX)),
            (Duration::from_ns(490), Duration::from_ns(800))
        );
        assert_eq!(mode.command_clocks(ResponseKind::R2, 5), 48 + 5 + 136);
        assert_eq!(mode.command_clocks(ResponseKind::None, 5), 48);
    }

    #[test]
    fn no_time_is_lost_over_many_blocks() {
        // 2^20 blocks at 26 MHz: 2^20 * 530 + (2^20 - 1) * 2 clocks, in ns rounded up once.
        let mode = Mode::new(Timing::MmcLegacy, Width::Eight);
        let clocks = mode.read_clocks(512, 1 << 20);
        assert_eq!(clocks, 557_842_430);
        assert_eq!(mode.time(clocks), Duration::from_ns(21_455_478_077));
        assert_eq!(mode.write_clocks(512, 3), 3 * 539);
        assert_eq!(mode.time(u64::MAX), Duration::MAX);
    }

    /// The timings in the order in which `Mode::best` tries them.
    fn order(mut timings: TimingSet, width: Width, host: &HostCapabilities) -> Vec<Timing> {
        core::iter::from_fn(|| {
            let best = Mode::best(timings, width, host)?.timing;
            timings = timings.without(best);
            Some(best)
        })
        .collect()
    }

    #[test]
    fn the_fastest_is_tried_first_and_of_equals_the_simplest() {
        use Timing::*;
        let mmc = TimingSet::of(&[MmcLegacy, MmcHighSpeed, MmcDdr52, Hs200, Hs400, Hs400Es]);
        let sd = TimingSet::of(&[Sdr12, Sdr25, Sdr50, Sdr104, Ddr50]);
        let full = HostCapabilities::full();
        let expected = [Hs400Es, Hs400, Hs200, MmcDdr52, MmcHighSpeed, MmcLegacy];
        assert_eq!(order(mmc, Width::Eight, &full), expected);
        assert_eq!(order(sd, Width::Four, &full), [Sdr104, Sdr50, Ddr50, Sdr25, Sdr12]);
        // At 50 MHz at most, both edges win, and SDR50 and SDR104 are no better than SDR25.
        let slow = HostCapabilities { max_clock_hz: 50_000_000, ..HostCapabilities::full() };
        assert_eq!(order(sd, Width::Four, &slow), [Ddr50, Sdr25, Sdr50, Sdr104, Sdr12]);
    }

    #[test]
    fn a_mode_that_host_or_wiring_cannot_is_not_tried() {
        use Timing::*;
        let mmc = TimingSet::of(&[MmcLegacy, MmcHighSpeed, MmcDdr52, Hs200, Hs400, Hs400Es]);
        let narrow = HostCapabilities { width: Width::Four, ..HostCapabilities::full() };
        assert_eq!(Mode::best(mmc, Width::Eight, &narrow).unwrap(), Mode::new(Hs200, Width::Four));
        let one = HostCapabilities { width: Width::One, ..HostCapabilities::full() };
        assert_eq!(order(mmc, Width::Eight, &one), [MmcHighSpeed, MmcLegacy]);
        let high = HostCapabilities { signal_1v8: false, signal_1v2: false, ..narrow.clone() };
        assert_eq!(order(mmc, Width::Eight, &high), [MmcDdr52, MmcHighSpeed, MmcLegacy]);
        let low = HostCapabilities { signal_1v8: false, ..HostCapabilities::full() };
        assert_eq!(Mode::best(mmc, Width::Eight, &low).unwrap().voltage, SignalVoltage::V1_2);
        assert_eq!(Mode::best(TimingSet::of(&[Sdr104]), Width::Four, &low), None);
        let bare = HostCapabilities { timings: TimingSet::NONE, ..HostCapabilities::plain() };
        assert_eq!(order(mmc, Width::Four, &bare), [MmcLegacy]);
    }
}
