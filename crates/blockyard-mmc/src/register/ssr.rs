//! SSR, the SD status: allocation units, speed classes, and the time of erases (SD 4.10.2).
//!
//! It only informs, so no value is refused.

use super::Bits;
use blockyard::time::Duration;

/// An SD card's status register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ssr {
    /// DAT_BUS_WIDTH: whether the bus has 4 bits now.
    pub width_4: bool,
    /// SPEED_CLASS: the class of sequential writes, in MB/s: 0, 2, 4, 6 or 10.
    pub speed_class: u8,
    /// UHS_SPEED_GRADE: the class in units of 10 MB/s: 0, 1 or 3.
    pub uhs_speed_grade: u8,
    /// VIDEO_SPEED_CLASS: the class in MB/s: 0, 6, 10, 30, 60 or 90.
    pub video_speed_class: u8,
    /// APP_PERF_CLASS: A1 or A2 as 1 or 2; 0 for neither.
    pub app_performance_class: u8,
    /// UHS_AU_SIZE, or AU_SIZE where there is none: the allocation unit in sectors.
    pub allocation_unit_sectors: Option<u32>,
    /// The time of erases, if the card states it.
    pub erase: Option<EraseTiming>,
    /// PERFORMANCE_ENHANCE: the number of tasks that the command queue holds, 1 to 32; 0 if there
    /// is no queue.
    pub queue_depth: u8,
    /// PERFORMANCE_ENHANCE: whether there is a volatile cache, which is off until it is turned on.
    pub cache: bool,
    /// DISCARD_SUPPORT.
    pub discard: bool,
    /// FULE_SUPPORT: the whole user area can be erased by one command.
    pub full_erase: bool,
}

/// ERASE_SIZE, ERASE_TIMEOUT and ERASE_OFFSET (4.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseTiming {
    /// This many allocation units, at least 1, ...
    pub units: u16,
    /// ... take this long, ...
    pub time: Duration,
    /// ... beyond the time that every erase takes.
    pub offset: Duration,
}

impl EraseTiming {
    /// Returns the limit of erasing `units` allocation units: at least a second, as in 4.14.
    /// Saturates.
    ///
    /// # Panics
    ///
    /// Panics if [`Self::units`] is 0.
    #[must_use]
    pub fn limit(&self, units: u64) -> Duration {
        let each = self.time.as_ns().saturating_mul(units).div_ceil(u64::from(self.units));
        (Duration::from_ns(each) + self.offset).max(Duration::from_secs(1))
    }
}

impl Ssr {
    /// Reads the 64 bytes that ACMD13 brings.
    #[must_use]
    pub fn parse(bytes: &[u8; 64]) -> Self {
        let bits = Bits(*bytes);
        Self {
            width_4: bits.field(511, 510) == 2,
            speed_class: match bits.field(447, 440) {
                1 => 2,
                2 => 4,
                3 => 6,
                4 => 10,
                _ => 0,
            },
            uhs_speed_grade: bits.byte(399, 396),
            video_speed_class: bits.byte(391, 384),
            app_performance_class: bits.byte(339, 336),
            allocation_unit_sectors: unit_sectors(bits.field(395, 392))
                .or_else(|| unit_sectors(bits.field(431, 428))),
            erase: erase_timing(&bits),
            queue_depth: match bits.byte(335, 331) {
                0 => 0,
                depth => depth + 1,
            },
            cache: bits.bit(330),
            discard: bits.bit(313),
            full_erase: bits.bit(312),
        }
    }
}

/// Returns the allocation unit of an AU_SIZE: 16 KiB doubled up to 8 MiB, then 12, 16, 24, 32 and
/// 64 MiB; 0 states none.
fn unit_sectors(code: u32) -> Option<u32> {
    const MIB: u32 = 2048;
    match code {
        1..=10 => Some(32 << (code - 1)),
        11 => Some(12 * MIB),
        12 => Some(16 * MIB),
        13 => Some(24 * MIB),
        14 => Some(32 * MIB),
        15 => Some(64 * MIB),
        _ => None,
    }
}

fn erase_timing(bits: &Bits<64>) -> Option<EraseTiming> {
    let units = bits.short(423, 408);
    let seconds = bits.field(407, 402);
    // The card states no time if either of the two is zero.
    (units != 0 && seconds != 0).then(|| EraseTiming {
        units,
        time: Duration::from_secs(u64::from(seconds)),
        offset: Duration::from_secs(u64::from(bits.field(401, 400))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes from the front of the register; the rest are zero.
    fn ssr(bytes: &[(usize, u8)]) -> Ssr {
        let mut all = [0; 64];
        for &(at, byte) in bytes {
            all[at] = byte;
        }
        Ssr::parse(&all)
    }

    #[test]
    fn an_uhs_card_of_class_10_is_read_by_the_standard_s_positions() {
        // Byte n holds bits 511 - 8n to 504 - 8n. Byte 0: width 4. Byte 8: class 10. Byte 10: AU
        // 4 MiB. Bytes 11, 12: 15 units; byte 13: 1 s (000001), offset 2 s. Byte 14: grade 1, UHS
        // AU 8 MiB (code 10). Byte 15: V30. Byte 21: A1. Byte 22: depth code 31, cache. Byte 24:
        // discard and full erase.
        let ssr = ssr(&[
            (0, 0x80),
            (8, 4),
            (10, 0x90),
            (12, 15),
            (13, 0b0000_0110),
            (14, 0x1a),
            (15, 30),
            (21, 1),
            (22, 0b1111_1100),
            (24, 0b11),
        ]);
        assert!(ssr.width_4 && ssr.cache && ssr.discard && ssr.full_erase);
        assert_eq!((ssr.speed_class, ssr.uhs_speed_grade, ssr.video_speed_class), (10, 1, 30));
        assert_eq!((ssr.app_performance_class, ssr.queue_depth), (1, 32));
        assert_eq!(ssr.allocation_unit_sectors, Some(16_384));
        let erase = ssr.erase.unwrap();
        assert_eq!((erase.units, erase.time), (15, Duration::from_secs(1)));
        // 30 units: 2 s, and the offset; 1 unit: 67 ms, and the offset.
        assert_eq!(erase.limit(30), Duration::from_secs(4));
        assert_eq!(erase.limit(1), Duration::from_ns(2_066_666_667));
    }

    #[test]
    fn an_erase_is_given_a_second_at_least_and_an_untold_one_is_none() {
        let erase = ssr(&[(12, 100), (13, 0b0000_0100)]).erase.unwrap();
        assert_eq!(erase.limit(1), Duration::from_secs(1));
        assert_eq!(erase.limit(u64::MAX), Duration::from_ns(u64::MAX.div_ceil(100)));
        assert_eq!(ssr(&[(12, 100)]).erase, None);
        assert_eq!(ssr(&[(13, 0xff)]).erase, None);
        assert_eq!(ssr(&[]).allocation_unit_sectors, None);
        assert_eq!(ssr(&[(10, 0x90)]).allocation_unit_sectors, Some(8192));
        assert_eq!(ssr(&[(10, 0xb0)]).allocation_unit_sectors, Some(24_576));
    }

    /// Compares random registers with the positions in the standard.
    #[test]
    fn each_field_follows_from_its_own_bits() {
        let mut prng = blockyard::prng::Prng::new(5);
        for _ in 0..5000 {
            let mut bytes = [0; 64];
            for byte in &mut bytes {
                let random = prng.next().to_le_bytes();
                *byte = if prng.below(3) == 0 { 0 } else { random[0] };
            }
            // Classes up to 5, of which 5 is unknown.
            bytes[8] %= 6;
            let ssr = Ssr::parse(&bytes);
            assert_eq!(ssr.width_4, field(&bytes, 511, 510) == 2);
            assert_eq!(ssr.speed_class, [0, 2, 4, 6, 10, 0][usize::from(bytes[8])]);
            assert_eq!(u64::from(ssr.uhs_speed_grade), field(&bytes, 399, 396));
            assert_eq!(u64::from(ssr.video_speed_class), field(&bytes, 391, 384));
            assert_eq!(u64::from(ssr.app_performance_class), field(&bytes, 339, 336));
            let depth = if field(&bytes, 335, 331) == 0 { 0 } else { field(&bytes, 335, 331) + 1 };
            assert_eq!(u64::from(ssr.queue_depth), depth);
            let flags = (ssr.cache, ssr.discard, ssr.full_erase);
            assert_eq!(
                flags,
                (
                    field(&bytes, 330, 330) == 1,
                    field(&bytes, 313, 313) == 1,
                    field(&bytes, 312, 312) == 1
                )
            );
            let code = if field(&bytes, 395, 392) != 0 {
                field(&bytes, 395, 392)
            } else {
                field(&bytes, 431, 428)
            };
            let kib = match code {
                0 => None,
                1..=10 => Some(16 << (code - 1)),
                _ => Some(1024 * [12, 16, 24, 32, 64][usize::try_from(code - 11).unwrap()]),
            };
            assert_eq!(ssr.allocation_unit_sectors.map(u64::from), kib.map(|kib| 2 * kib));
            let units = field(&bytes, 423, 408);
            let seconds = field(&bytes, 407, 402);
            let stated =
                (units != 0 && seconds != 0).then_some((units, seconds, field(&bytes, 401, 400)));
            let said = ssr.erase.map(|erase| {
                (
                    u64::from(erase.units),
                    erase.time.as_ns() / 1_000_000_000,
                    erase.offset.as_ns() / 1_000_000_000,
                )
            });
            assert_eq!(said, stated);
        }
    }

    /// Byte n holds bits 511 - 8n to 504 - 8n.
    fn field(bytes: &[u8; 64], high: usize, low: usize) -> u64 {
        (low..=high)
            .map(|at| u64::from(bytes[63 - at / 8] >> (at % 8) & 1) << (at - low))
            .sum::<u64>()
    }
}
