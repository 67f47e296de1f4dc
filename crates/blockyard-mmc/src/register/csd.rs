//! CSD: capacity, clock and timing of every card (JESD84-B51 7.3; SD 5.3).
//!
//! SD has three layouts, which the register states: 1.0 (standard capacity), 2.0 (SDHC, SDXC) and
//! 3.0 (SDUC). eMMC has one. A host knows which standard the card follows.

use super::{Bits, Register, RegisterError};
use blockyard::time::Duration;

/// The properties of a card before any data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csd {
    /// The layout.
    pub layout: Layout,
    /// Size in sectors of 512 bytes. `None` on eMMC devices above 2 GB, whose size is
    /// [`SEC_COUNT`](super::ext_csd::ExtCsd::sectors).
    pub sectors: Option<u64>,
    /// TRAN_SPEED: the highest clock before any switch, in Hz.
    pub max_clock_hz: u32,
    /// The typical time to the first data of a read.
    pub read_access: ReadAccess,
    /// R2W_FACTOR: a write takes at most this many times as long as a read.
    pub write_factor: u32,
    /// CCC: the classes of commands that the card takes.
    pub classes: Classes,
    /// READ_BL_LEN: the largest block in bytes; 512, 1024 or 2048. Transfers always use 512.
    pub read_block_bytes: u32,
    /// The smallest erase, in sectors: the erase group of eMMC, the erase sector of SD, or one
    /// sector if the SD card erases single blocks.
    pub erase_sectors: u32,
    /// Whether the card is write-protected, permanently or temporarily.
    pub write_protected: bool,
}

/// The layout of a CSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// SD 1.0: up to 2 GB (SDSC).
    Sd1,
    /// SD 2.0: up to 2 TB (SDHC, SDXC).
    Sd2,
    /// SD 3.0: up to 128 TB (SDUC).
    Sd3,
    /// eMMC and MultiMediaCard, with their SPEC_VERS: 4 from 4.0 on.
    Mmc {
        /// SPEC_VERS.
        spec_version: u8,
    },
}

/// TAAC and NSAC: the typical time to the first data, as a span and a number of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAccess {
    /// TAAC: the part that does not depend on the clock.
    pub span: Duration,
    /// NSAC: the part in clocks, in the worst case.
    pub clocks: u32,
}

/// Classes of commands (CCC), as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(pub u16);

impl Classes {
    /// Returns whether commands of `class`, 0 to 11, are taken.
    #[must_use]
    pub const fn has(self, class: u32) -> bool {
        self.0 >> class & 1 == 1
    }

    /// Class 5: erase.
    pub const ERASE: u32 = 5;
    /// Class 10: on SD, CMD6.
    pub(crate) const SWITCH: u32 = 10;
    /// Class 11: on eMMC, the command queue.
    pub const QUEUE: u32 = 11;
}

impl Csd {
    /// Reads the CSD of an SD card.
    ///
    /// # Errors
    ///
    /// Fails for a layout above 3.0, and for a reserved code of the clock or, in layout 1.0, of the
    /// access time or block length.
    pub fn sd(bits: &Bits<16>) -> Result<Self, RegisterError> {
        let layout = match bits.field(127, 126) {
            0 => Layout::Sd1,
            1 => Layout::Sd2,
            2 => Layout::Sd3,
            other => return Err(refused("CSD_STRUCTURE", other)),
        };
        let mut csd = Self::common(bits, layout)?;
        csd.sectors = Some(match layout {
            // 5.3.3 and 5.3.4: units of 512 KiB.
            Layout::Sd2 => (u64::from(bits.field(69, 48)) + 1) << 10,
            Layout::Sd3 => (u64::from(bits.field(75, 48)) + 1) << 10,
            Layout::Sd1 | Layout::Mmc { .. } => small_capacity(bits, csd.read_block_bytes),
        });
        let erases_single_blocks = bits.bit(46);
        if layout == Layout::Sd1 && !erases_single_blocks {
            csd.erase_sectors = (bits.field(45, 39) + 1) * write_block_sectors(bits)?;
        }
        Ok(csd)
    }

    /// Reads the CSD of an eMMC device or a MultiMediaCard.
    ///
    /// # Errors
    ///
    /// Fails for a reserved code of the clock, access time or block length.
    pub fn mmc(bits: &Bits<16>) -> Result<Self, RegisterError> {
        let spec_version = bits.byte(125, 122);
        let mut csd = Self::common(bits, Layout::Mmc { spec_version })?;
        // 7.3.12: the largest C_SIZE says that SEC_COUNT has the size.
        csd.sectors =
            (bits.field(73, 62) != 0xfff).then(|| small_capacity(bits, csd.read_block_bytes));
        csd.erase_sectors =
            (bits.field(46, 42) + 1) * (bits.field(41, 37) + 1) * write_block_sectors(bits)?;
        Ok(csd)
    }

    /// Reads the fields that all layouts have in the same place. The caller sets the sizes.
    fn common(bits: &Bits<16>, layout: Layout) -> Result<Self, RegisterError> {
        Ok(Self {
            layout,
            sectors: None,
            max_clock_hz: max_clock_hz(bits, layout)?,
            read_access: read_access(bits)?,
            write_factor: 1 << bits.field(28, 26),
            classes: Classes(bits.short(95, 84)),
            read_block_bytes: block_bytes("READ_BL_LEN", bits.field(83, 80))?,
            erase_sectors: 1,
            write_protected: bits.bit(13) || bits.bit(12),
        })
    }
}

fn refused(field: &'static str, value: u32) -> RegisterError {
    RegisterError { register: Register::Csd, field, value: u64::from(value) }
}

/// The tenths of the mantissa that TRAN_SPEED and TAAC share; code 0 is reserved.
const TENTHS: [u32; 16] = [0, 10, 12, 13, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80];

/// Returns the clock of TRAN_SPEED: a mantissa (bits 6:3) and a power of ten (bits 2:0). eMMC has
/// 26 and 52 MHz for SD's 25 and 50 (JESD84-B51 7.3.6).
fn max_clock_hz(bits: &Bits<16>, layout: Layout) -> Result<u32, RegisterError> {
    let code = bits.field(103, 96);
    let mantissa = bits.field(102, 99);
    let exponent = bits.field(98, 96);
    let tenths = match (mantissa, layout) {
        (6, Layout::Mmc { .. }) => 26,
        (11, Layout::Mmc { .. }) => 52,
        (mantissa, _) => TENTHS[mantissa as usize],
    };
    if tenths == 0 || exponent > 3 {
        return Err(refused("TRAN_SPEED", code));
    }
    Ok(tenths * 10_u32.pow(4 + exponent))
}

/// Returns the times of TAAC, a mantissa and a power of ten from 1 ns to 10 ms, and NSAC, hundreds
/// of clocks.
fn read_access(bits: &Bits<16>) -> Result<ReadAccess, RegisterError> {
    let tenths = TENTHS[bits.field(118, 115) as usize];
    if tenths == 0 {
        return Err(refused("TAAC", bits.field(119, 112)));
    }
    let tenths_of_ns = u64::from(tenths) * 10_u64.pow(bits.field(114, 112));
    Ok(ReadAccess {
        span: Duration::from_ns(tenths_of_ns.div_ceil(10)),
        clocks: 100 * bits.field(111, 104),
    })
}

/// Returns the block length of a code: 9, 10 and 11 are blocks of 512 to 2048 bytes.
fn block_bytes(field: &'static str, code: u32) -> Result<u32, RegisterError> {
    match code {
        9..=11 => Ok(1 << code),
        _ => Err(refused(field, code)),
    }
}

fn write_block_sectors(bits: &Bits<16>) -> Result<u32, RegisterError> {
    Ok(block_bytes("WRITE_BL_LEN", bits.field(25, 22))? / 512)
}

/// Returns the size of a card up to 2 GB: `(C_SIZE + 1) * 2^(C_SIZE_MULT + 2)` blocks.
fn small_capacity(bits: &Bits<16>, block_bytes: u32) -> u64 {
    let blocks = (u64::from(bits.field(73, 62)) + 1) << (bits.field(49, 47) + 2);
    blocks * u64::from(block_bytes / 512)
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    /// A refused code is named without the bits of its neighbours.
    #[test]
    fn a_reserved_code_is_refused_with_its_own_bits() {
        for (start, field) in [("00260100", "TRAN_SPEED"), ("01000132", "TAAC")] {
            let text = std::format!("{start}{}", &example::CSD_SANDISK_2G[8..]);
            let refused = RegisterError { register: Register::Csd, field, value: 0 };
            assert_eq!(Csd::sd(&example::bits(&text)).err(), Some(refused));
        }
    }

    #[test]
    fn standard_capacity_is_c_size_times_its_multiplier() {
        // By hand: READ_BL_LEN 10; C_SIZE 11_11001001_00 = 3876; C_SIZE_MULT 7: 3877 * 512 blocks
        // of 1024 bytes. TAAC 0x26 = 1.5 * 1 ms, R2W_FACTOR 4 (16 times), CCC 0x5f5.
        let csd = Csd::sd(&example::bits(example::CSD_SANDISK_2G)).unwrap();
        assert_eq!(csd.layout, Layout::Sd1);
        assert_eq!(csd.sectors, Some(3877 * 512 * 2));
        assert_eq!(csd.read_access, ReadAccess { span: Duration::from_us(1500), clocks: 0 });
        assert_eq!((csd.max_clock_hz, csd.write_factor), (25_000_000, 16));
        assert_eq!(csd.classes, Classes(0x5f5));
        assert!(csd.classes.has(Classes::SWITCH) && !csd.classes.has(3));
        assert_eq!((csd.read_block_bytes, csd.erase_sectors), (1024, 1));
        // C_SIZE 11_11010101_11 = 3927, the rest alike; TAAC 0x2d = 2.0 * 100 us.
        let csd = Csd::sd(&example::bits(example::CSD_KINGSTON_2G)).unwrap();
        assert_eq!(csd.sectors, Some(3928 * 512 * 2));
        assert_eq!(csd.read_access.span, Duration::from_us(200));
    }

    #[test]
    fn high_capacity_is_counted_in_half_mebibytes() {
        // C_SIZE 0xe9e5 and 0x3a5df: 29.2 GiB and 116.7 GiB.
        let csd = Csd::sd(&example::bits(example::CSD_SAMSUNG_32G)).unwrap();
        assert_eq!((csd.layout, csd.sectors), (Layout::Sd2, Some(59_878 * 1024)));
        assert_eq!(csd.erase_sectors, 1);
        let csd = Csd::sd(&example::bits(example::CSD_KINGSTON_128G)).unwrap();
        assert_eq!(csd.sectors, Some(239_072 * 1024));
        // The same with CSD_STRUCTURE 2 (SDUC), whose C_SIZE has six bits more: the upper ones set.
        let mut bits = example::bits::<16>(example::CSD_KINGSTON_128G);
        bits.0[0] = 0x80;
        bits.0[6] |= 0x0f;
        bits.0[7] |= 0xc0;
        let csd = Csd::sd(&bits).unwrap();
        assert_eq!((csd.layout, csd.sectors), (Layout::Sd3, Some(0xfc3_a5e0 * 1024)));
    }

    #[test]
    fn an_emmc_device_above_2_gb_leaves_its_size_to_ext_csd() {
        // SPEC_VERS 4; TAAC 0x0f = 1.0 * 10 ms; TRAN_SPEED 0x32 = 26 MHz; ERASE_GRP_SIZE and
        // ERASE_GRP_MULT 31: 1024 blocks of 512 bytes.
        let csd = Csd::mmc(&example::bits(example::CSD_CHROMEBOOK_EMMC)).unwrap();
        assert_eq!(csd.layout, Layout::Mmc { spec_version: 4 });
        assert_eq!(csd.sectors, None);
        assert_eq!((csd.max_clock_hz, csd.erase_sectors), (26_000_000, 1024));
        assert_eq!(csd.read_access.span, Duration::from_ms(10));
    }

    #[test]
    fn reserved_codes_are_refused_by_name() {
        assert_eq!(parse_changed(|csd| csd[0] = 0xc0), Err(("CSD_STRUCTURE", 3)));
        assert_eq!(parse_changed(|csd| csd[3] = 0x02), Err(("TRAN_SPEED", 2)));
        assert_eq!(parse_changed(|csd| csd[3] = 0x34), Err(("TRAN_SPEED", 0x34)));
        assert_eq!(parse_changed(|csd| csd[1] = 0x06), Err(("TAAC", 6)));
        assert_eq!(parse_changed(|csd| csd[5] = 0x58), Err(("READ_BL_LEN", 8)));
        // WRITE_BL_LEN matters where ERASE_BLK_EN is off.
        assert_eq!(
            parse_changed(|csd| {
                csd[10] &= !0x40;
                csd[12] = 0x83;
                csd[13] = 0;
            }),
            Err(("WRITE_BL_LEN", 12))
        );
    }

    fn parse_changed(change: fn(&mut [u8; 16])) -> Result<Csd, (&'static str, u64)> {
        let mut bits = example::bits(example::CSD_SANDISK_2G);
        change(&mut bits.0);
        Csd::sd(&bits).map_err(|error| (error.field, error.value))
    }

    /// Compares random registers with the formulas of the standards.
    #[test]
    fn each_field_follows_from_its_own_bits() {
        let mut prng = blockyard::prng::Prng::new(3);
        let mut read = 0;
        let mut refused = 0;
        for _ in 0..20_000 {
            let mut raw = u128::from(prng.next()) << 64 | u128::from(prng.next());
            // Most codes of block lengths are reserved.
            for low in [80, 22] {
                if prng.below(8) > 0 {
                    raw = raw & !(15 << low) | u128::from(9 + prng.below(3)) << low;
                }
            }
            if prng.below(50) == 0 {
                raw |= 0xfff << 62;
            }
            let bits = Bits(raw.to_be_bytes());
            let read_power = field(raw, 83, 80);
            let write_power = field(raw, 25, 22);
            let clock_ok = field(raw, 102, 99) != 0 && field(raw, 98, 96) <= 3;
            let common_ok = clock_ok && field(raw, 118, 115) != 0 && is_block(read_power);
            let single = field(raw, 127, 126) != 0 || field(raw, 46, 46) == 1;
            let sd_ok = common_ok && field(raw, 127, 126) != 3 && (single || is_block(write_power));
            let mmc_ok = common_ok && is_block(write_power);
            let sd = Csd::sd(&bits);
            let mmc = Csd::mmc(&bits);
            assert_eq!((sd.is_ok(), mmc.is_ok()), (sd_ok, mmc_ok), "{raw:032x}");
            refused += u64::from(sd.is_err()) + u64::from(mmc.is_err());
            if let Ok(csd) = sd {
                let (layout, sectors) = match field(raw, 127, 126) {
                    0 => (Layout::Sd1, small_size(raw, read_power)),
                    1 => (Layout::Sd2, (field(raw, 69, 48) + 1) * 1024),
                    _ => (Layout::Sd3, (field(raw, 75, 48) + 1) * 1024),
                };
                assert_eq!((csd.layout, csd.sectors), (layout, Some(sectors)), "{raw:032x}");
                let erase = if single { 1 } else { (field(raw, 45, 39) + 1) << (write_power - 9) };
                assert_eq!(u64::from(csd.erase_sectors), erase, "{raw:032x}");
            }
            if let Ok(csd) = mmc {
                let spec_version = u8::try_from(field(raw, 125, 122)).unwrap();
                assert_eq!(csd.layout, Layout::Mmc { spec_version });
                assert_eq!(
                    csd.sectors,
                    (field(raw, 73, 62) != 0xfff).then(|| small_size(raw, read_power)),
                    "{raw:032x}"
                );
                let erase =
                    ((field(raw, 46, 42) + 1) * (field(raw, 41, 37) + 1)) << (write_power - 9);
                assert_eq!(u64::from(csd.erase_sectors), erase, "{raw:032x}");
            }
            for (csd, is_mmc) in [(sd, false), (mmc, true)] {
                let Ok(csd) = csd else { continue };
                read += 1;
                check_common_fields(raw, csd, is_mmc);
            }
        }
        assert!(read > 10_000 && refused > 1000, "{read} registers were read, {refused} refused");
    }

    fn check_common_fields(raw: u128, csd: Csd, is_mmc: bool) {
        let read_power = field(raw, 83, 80);
        let tenths = match field(raw, 102, 99) {
            6 if is_mmc => 26,
            11 if is_mmc => 52,
            code => u64::from(TENTHS[usize::try_from(code).unwrap()]),
        };
        assert_eq!(u64::from(csd.max_clock_hz), tenths * 10_000 * power_of_ten(raw, 98, 96));
        let tenths = u64::from(TENTHS[usize::try_from(field(raw, 118, 115)).unwrap()]);
        let access = (tenths * power_of_ten(raw, 114, 112)).div_ceil(10);
        assert_eq!(csd.read_access.span.as_ns(), access, "{raw:032x}");
        assert_eq!(u64::from(csd.read_access.clocks), 100 * field(raw, 111, 104));
        assert_eq!(u64::from(csd.write_factor), 1 << field(raw, 28, 26));
        assert_eq!(u64::from(csd.classes.0), field(raw, 95, 84));
        assert!(
            (0..12).all(|class| csd.classes.has(class) == (field(raw, 95, 84) >> class & 1 == 1))
        );
        assert_eq!(u64::from(csd.read_block_bytes), 1 << read_power);
        assert_eq!(csd.write_protected, field(raw, 13, 12) != 0);
    }

    /// Returns the bits from `high` to `low`.
    fn field(raw: u128, high: u32, low: u32) -> u64 {
        u64::try_from(raw >> low & ((1 << (high - low + 1)) - 1)).unwrap()
    }

    fn is_block(power: u64) -> bool {
        (9..=11).contains(&power)
    }

    /// Returns the sectors of a card whose size has a multiplier.
    fn small_size(raw: u128, read_power: u64) -> u64 {
        ((field(raw, 73, 62) + 1) << (field(raw, 49, 47) + 2)) << (read_power - 9)
    }

    /// Returns ten to the power of the bits from `high` to `low`.
    fn power_of_ten(raw: u128, high: u32, low: u32) -> u64 {
        10_u64.pow(u32::try_from(field(raw, high, low)).unwrap())
    }
}
