//! SCR: the SD specification of a card, and its options (SD 5.6).

use super::{Bits, Register, RegisterError};

/// An SD card's configuration register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scr {
    /// The specification that the card follows.
    pub version: SdVersion,
    /// SD_BUS_WIDTHS: whether the card has a bus of 4 bits, as all but the oldest cards must.
    pub width_4: bool,
    /// DATA_STAT_AFTER_ERASE: whether erased sectors read as ones, not as zeroes.
    pub erased_reads_as_ones: bool,
    /// CMD_SUPPORT: CMD20 (speed class control).
    pub speed_class_control: bool,
    /// CMD_SUPPORT: CMD23 (set block count).
    pub set_block_count: bool,
    /// CMD_SUPPORT: CMD48 and CMD49 (extension registers: cache, command queue).
    pub extension_registers: bool,
}

/// A physical layer specification, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SdVersion {
    /// 1.0 and 1.01.
    V1_0,
    /// 1.10: CMD6.
    V1_10,
    /// 2.00: SDHC.
    V2_00,
    /// 3.0x: SDXC, UHS-I.
    V3,
    /// 4.xx.
    V4,
    /// 5.xx.
    V5,
    /// 6.xx: command queue, cache.
    V6,
    /// 7.xx: SDUC.
    V7,
    /// 8.xx.
    V8,
    /// 9.xx, or later.
    V9,
}

impl Scr {
    /// Reads the 8 bytes that ACMD51 brings.
    ///
    /// # Errors
    ///
    /// Fails for an SCR_STRUCTURE other than 1.0, and for a reserved SD_SPEC.
    pub fn parse(bytes: &[u8; 8]) -> Result<Self, RegisterError> {
        let bits = Bits(*bytes);
        let structure = bits.field(63, 60);
        if structure != 0 {
            return Err(refused("SCR_STRUCTURE", structure));
        }
        let version = match (bits.field(59, 56), bits.bit(47), bits.bit(42), bits.field(41, 38)) {
            (0, ..) => SdVersion::V1_0,
            (1, ..) => SdVersion::V1_10,
            (2, false, ..) => SdVersion::V2_00,
            (2, true, false, 0) => SdVersion::V3,
            (2, true, true, 0) => SdVersion::V4,
            (2, true, _, 1) => SdVersion::V5,
            (2, true, _, 2) => SdVersion::V6,
            (2, true, _, 3) => SdVersion::V7,
            (2, true, _, 4) => SdVersion::V8,
            (2, true, _, _) => SdVersion::V9,
            (spec, ..) => return Err(refused("SD_SPEC", spec)),
        };
        Ok(Self {
            version,
            width_4: bits.bit(50),
            erased_reads_as_ones: bits.bit(55),
            speed_class_control: bits.bit(32),
            set_block_count: bits.bit(33),
            extension_registers: bits.bit(34),
        })
    }
}

fn refused(field: &'static str, value: u32) -> RegisterError {
    RegisterError { register: Register::Scr, field, value: u64::from(value) }
}

#[cfg(test)]
mod tests {
    use super::super::example::hex;
    use super::*;

    /// CMD_SUPPORT is in bits 32 and up: CMD20, CMD23, CMD48.
    #[test]
    fn each_optional_command_has_its_bit() {
        for (low, expected) in [
            ("00", [false, false, false]),
            ("01", [true, false, false]),
            ("02", [false, true, false]),
            ("04", [false, false, true]),
        ] {
            let scr = Scr::parse(&hex(&std::format!("023580{low}00000000"))).unwrap();
            let found = [scr.speed_class_control, scr.set_block_count, scr.extension_registers];
            assert_eq!(found, expected, "{low}");
        }
    }

    #[test]
    fn the_version_combines_four_fields() {
        assert_eq!(version_of("0025000000000000"), Ok(SdVersion::V1_0));
        assert_eq!(version_of("0125000000000000"), Ok(SdVersion::V1_10));
        assert_eq!(version_of("0235000000000000"), Ok(SdVersion::V2_00));
        assert_eq!(version_of("0235800000000000"), Ok(SdVersion::V3));
        assert_eq!(version_of("0235840000000000"), Ok(SdVersion::V4));
        assert_eq!(version_of("0245844300000000"), Ok(SdVersion::V5));
        assert_eq!(version_of("0245848700000000"), Ok(SdVersion::V6));
        assert_eq!(version_of("024584c700000000"), Ok(SdVersion::V7));
        assert_eq!(version_of("0245854700000000"), Ok(SdVersion::V9));
        assert_eq!(version_of("0345800000000000").unwrap_err().field, "SD_SPEC");
        assert_eq!(version_of("1235800000000000").unwrap_err().field, "SCR_STRUCTURE");
    }

    fn version_of(text: &str) -> Result<SdVersion, RegisterError> {
        Scr::parse(&hex(text)).map(|scr| scr.version)
    }

    #[test]
    fn widths_and_commands_are_bits() {
        // SD_SPEC 2, SD_SPEC3; after erase ones; 1 and 4 bits; CMD23 and CMD20.
        let scr = Scr::parse(&hex("02b5800300000000")).unwrap();
        assert!(scr.width_4 && scr.erased_reads_as_ones);
        assert!(scr.set_block_count && scr.speed_class_control && !scr.extension_registers);
        // 1 bit only, nothing else.
        let scr = Scr::parse(&hex("0021000000000000")).unwrap();
        assert!(!scr.width_4 && !scr.erased_reads_as_ones && !scr.set_block_count);
    }
}
