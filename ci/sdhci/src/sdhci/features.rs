//! The features of a controller, by its capabilities registers.

use super::register;
use super::{DMA_SEGMENTS, TRANSFER_BLOCKS_MAX};
use crate::machine::Mmio;
use blockyard::time::Duration;
use blockyard_mmc::host::{BusyDetect, HostCapabilities};
use blockyard_mmc::mode::TimingSet;

/// The features that the driver uses and [`HostCapabilities`] does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Whether DMA follows a table of descriptors (ADMA2). Otherwise it needs memory in one piece
    /// (SDMA).
    pub(crate) adma2: bool,
    /// Whether the registers are those of version 3.
    version_3: bool,
    base_clock_hz: u32,
    timeout_clock_hz: u32,
}

fn has_bit(word: u32, bit: u32) -> bool {
    word & 1 << bit != 0
}

impl Features {
    /// Reads the features of the controller behind `registers`.
    ///
    /// # Panics
    ///
    /// Panics if the controller has no DMA, no 3.3 V, or does not state its clock.
    pub(crate) fn read(registers: Mmio) -> (Self, HostCapabilities) {
        let low = registers.read_32(register::CAPABILITIES);
        let version_3 = registers.read_16(register::VERSION) & 0xff >= 2;
        let adma2 = has_bit(low, 19);
        let sdma = has_bit(low, 22);
        assert!(adma2 || sdma, "the controller has no DMA");
        assert!(has_bit(low, 24), "the controller does not supply 3.3 V");
        let base_mhz = low >> 8 & if version_3 { 0xff } else { 0x3f };
        assert!(base_mhz > 0, "the controller does not state its clock");
        let base_clock_hz = base_mhz * 1_000_000;
        let timeout_clock_hz = (low & 0x3f) * if has_bit(low, 7) { 1_000_000 } else { 1000 };

        let capabilities = HostCapabilities {
            timings: if has_bit(low, 21) { TimingSet::HIGH_SPEED } else { TimingSet::BASIC },
            max_clock_hz: base_clock_hz,
            // 3.2 to 3.4 V.
            supply: 3 << 20,
            non_removable: version_3 && low >> 30 == 1,
            max_segments: if adma2 { DMA_SEGMENTS } else { 1 },
            max_blocks: TRANSFER_BLOCKS_MAX,
            // QEMU's card does not have CMD23.
            set_block_count: false,
            busy_detect: BusyDetect::Hardware,
            ..HostCapabilities::plain()
        };
        (Self { adma2, version_3, base_clock_hz, timeout_clock_hz }, capabilities)
    }

    /// Returns the bits of CLOCK for the fastest clock of at most `hz`.
    pub(crate) fn divisor_bits(&self, hz: u32) -> u16 {
        // The clock is the base clock divided by twice the divisor, or not divided for 0.
        let divisors = 0..=if self.version_3 { 1023 } else { 128 };
        let mut divisors = divisors
            .filter(|divisor: &u16| self.version_3 || *divisor == 0 || divisor.is_power_of_two());
        let divisor = divisors.find(|divisor| {
            let clock_hz = self.base_clock_hz / (2 * u32::from(*divisor)).max(1);
            clock_hz <= hz
        });
        let divisor = divisor.unwrap_or_else(|| panic!("a clock of {hz} Hz is too slow"));
        (divisor & 0xff) << 8 | divisor >> 8 << 6
    }

    /// Returns the value of TIMEOUT for at least `limit`, if the counter reaches that far.
    pub(crate) fn timeout(&self, limit: Duration) -> Option<u8> {
        let ticks = u128::from(limit.as_ns()) * u128::from(self.timeout_clock_hz) / 1_000_000_000;
        (0..=14).find(|counter| 1 << (13 + counter) > ticks)
    }
}
