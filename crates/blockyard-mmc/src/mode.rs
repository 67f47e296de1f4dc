//! Bus modes: timing, clock, width and voltage, and what they cost on the wire.
//!
//! Clocks and framings are those of JESD84-B51 5.3, 6.15 and 10 (eMMC), and of SD 4.12, 4.13 and 6
//! (SD).
//!
//! # Time on the wire
//!
//! The unit is the **clock**: every span of a mode is a whole number of clocks, and none is lost.
//! [`Mode::time`] turns clocks into nanoseconds, rounded up. Add clocks and convert the sum: each
//! separate conversion may add up to a nanosecond.
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
//! The time for which a read of 4 KiB keeps the bus busy, without the card's access time:
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
pub use super::timing::{SignalVoltage, Timing, TimingSet, Width};
use blockyard::time::Duration;

/// Clocks of a command on the wire.
pub const COMMAND_CLOCKS: u32 = 48;
/// NCR, the gap between a command and its response, in clocks: the minimum.
pub const NCR_MIN: u32 = 2;
/// NCR, the gap between a command and its response, in clocks: the maximum.
pub const NCR_MAX: u32 = 64;
/// NRC, the minimum gap between a response and the next command, in clocks.
pub const NRC: u32 = 8;
/// The minimum number of clocks between two blocks that are read.
pub const READ_GAP: u32 = 2;
/// NWR, the gap before a CRC status, and the CRC status itself: the clocks beside a block that is
/// written.
pub(crate) const WRITE_GAPS: u32 = 2 + 2 + 5;
/// The clock of identification in Hz: all cards support it.
pub(crate) const IDENTIFICATION_HZ: u32 = 400_000;

const _: () = assert!(NCR_MIN <= NCR_MAX && NRC > READ_GAP);

/// The mode in which a bus is driven.
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
    /// `timing` at its highest clock on `width`, at 3.3 V if possible, otherwise at 1.8 V.
    #[must_use]
    pub const fn new(timing: Timing, width: Width) -> Self {
        let low = timing.needs_low_voltage();
        let voltage = if low { SignalVoltage::V1_8 } else { SignalVoltage::V3_3 };
        Self { timing, width, voltage, clock_hz: timing.max_clock_hz() }
    }

    /// Returns `timing` as `host` can drive it, on a bus of at most `width`; `None` if it cannot.
    /// 1.8 V is preferred to 1.2 V.
    #[must_use]
    pub(crate) fn on_host(timing: Timing, width: Width, host: &HostCapabilities) -> Option<Self> {
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

    /// Returns the fastest mode that a card with `timings`, a bus of at most `width`, and `host`
    /// have in common: the one with the highest data rate in whole blocks, and of equals the first
    /// in [`Timing`]. If it fails, call again without its timing: every mode gets its turn, the
    /// fastest first.
    #[must_use]
    pub fn best(timings: TimingSet, width: Width, host: &HostCapabilities) -> Option<Self> {
        let modes = timings.iter().filter_map(|timing| Self::on_host(timing, width, host));
        modes.max_by_key(|mode| (mode.bytes_per_second(), core::cmp::Reverse(mode.timing)))
    }

    /// Returns the clocks of one block of `bytes`, framed by start bit, CRC and end bit.
    #[must_use]
    pub(crate) const fn block_clocks(&self, bytes: u32) -> u64 {
        debug_assert!(bytes > 0, "a block of no bytes");
        let bits_per_clock = self.width.lanes() * if self.timing.both_edges() { 2 } else { 1 };
        (bytes as u64 * 8).div_ceil(bits_per_clock as u64) + 18
    }

    /// Returns the clocks of `blocks` blocks of `bytes` that are read: from the start of the first,
    /// after the card's access time, to the end of the last.
    #[must_use]
    pub const fn read_clocks(&self, bytes: u32, blocks: u32) -> u64 {
        let gaps = READ_GAP as u64 * (blocks as u64).saturating_sub(1);
        self.block_clocks(bytes) * blocks as u64 + gaps
    }

    /// Returns the clocks of `blocks` blocks of `bytes` that are written, each with its CRC status,
    /// without the busy time that may follow.
    #[must_use]
    pub const fn write_clocks(&self, bytes: u32, blocks: u32) -> u64 {
        (self.block_clocks(bytes) + WRITE_GAPS as u64) * blocks as u64
    }

    /// Returns the clocks of a command and its response, with a gap of `ncr` clocks between them,
    /// to the end of the response. The next command may follow [`NRC`] clocks later.
    #[must_use]
    pub const fn command_clocks(&self, response: ResponseKind, ncr: u32) -> u64 {
        debug_assert!(ncr <= NCR_MAX, "a gap longer than the standards allow");
        match response.bits() {
            0 => COMMAND_CLOCKS as u64,
            bits => COMMAND_CLOCKS as u64 + ncr as u64 + bits as u64,
        }
    }

    /// Returns how long `clocks` last, rounded up to a nanosecond. Saturates.
    ///
    /// # Panics
    ///
    /// Panics if the clock is zero.
    #[must_use]
    pub const fn time(&self, clocks: u64) -> Duration {
        debug_assert!(self.clock_hz > 0, "a mode needs a clock of at least 1 Hz");
        let ns = (clocks as u128 * 1_000_000_000).div_ceil(self.clock_hz as u128);
        #[expect(clippy::cast_possible_truncation, reason = "compared with the largest before")]
        Duration::from_ns(if ns > u64::MAX as u128 { u64::MAX } else { ns as u64 })
    }

    /// Returns the bytes per second in framed blocks of 512 bytes without gaps, rounded down.
    #[must_use]
    pub(crate) const fn bytes_per_second(&self) -> u64 {
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
    fn a_status_takes_between_490_and_800_ns_in_hs200() {
        // 48 + 2 + 48 and 48 + 64 + 48 clocks.
        let mode = Mode::new(Timing::Hs200, Width::Eight);
        assert_eq!(
            (
                mode.time(mode.command_clocks(ResponseKind::R1, NCR_MIN)),
                mode.time(mode.command_clocks(ResponseKind::R1, NCR_MAX))
            ),
            (Duration::from_ns(490), Duration::from_ns(800))
        );
        assert_eq!(mode.command_clocks(ResponseKind::R2, 5), 48 + 5 + 136);
        assert_eq!(mode.command_clocks(ResponseKind::None, 5), 48);
    }

    #[test]
    fn rounding_does_not_add_up_over_many_blocks() {
        // 2^20 blocks at 26 MHz: 2^20 * 530 + (2^20 - 1) * 2 clocks, in ns rounded up once.
        let mode = Mode::new(Timing::MmcLegacy, Width::Eight);
        let clocks = mode.read_clocks(512, 1 << 20);
        assert_eq!(clocks, 557_842_430);
        assert_eq!(mode.time(clocks), Duration::from_ns(21_455_478_077));
        assert_eq!(mode.write_clocks(512, 3), 3 * 539);
        assert_eq!(mode.time(u64::MAX), Duration::MAX);
    }

    /// Returns the timings in the order in which `Mode::best` tries them.
    fn order(mut timings: TimingSet, width: Width, host: &HostCapabilities) -> Vec<Timing> {
        core::iter::from_fn(|| {
            let best = Mode::best(timings, width, host)?.timing;
            timings = timings.without(best);
            Some(best)
        })
        .collect()
    }

    #[test]
    fn the_fastest_mode_is_tried_first_and_of_equals_the_simplest() {
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
    fn a_mode_beyond_host_or_wiring_is_not_tried() {
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
