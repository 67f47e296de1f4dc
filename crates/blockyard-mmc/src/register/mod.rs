//! The registers that describe a card.
//!
//! | register | how a host gets it | of |
//! |---|---|---|
//! | [`ocr`] | response to CMD1, ACMD41 | both |
//! | [`cid`] | response to CMD2, CMD10: 128 bits | both, laid out differently |
//! | [`csd`] | response to CMD9: 128 bits | both, laid out differently |
//! | [`ext_csd`] | data of CMD8: 512 bytes | eMMC 4.0 and later |
//! | [`scr`] | data of ACMD51: 64 bits | SD |
//! | [`ssr`] | data of ACMD13: 512 bits | SD |
//! | [`switch`] | data of CMD6: 512 bits | SD 1.10 and later |
//! | [`extension`] | data of CMD48: 512 bytes each | SD 4 and later |
//!
//! Layouts are from JEDEC JESD84-B51 chapter 7 (eMMC) and the SD Physical Layer Simplified
//! Specification 9.x chapters 4 and 5 (SD). Fields have the names that they have there.
//!
//! A field that a host needs in order to work is refused if its value is reserved. A field that
//! only informs is kept as it came, or left out, so that no card is refused for it. A register
//! newer than we know is read as the newest that we know: the standards promise that this works.
//!
//! # Rules
//!
//! - **[parsers-never-panic]** A parser takes any bytes and does not panic.

use core::fmt;

pub mod cid;
pub mod csd;
pub mod ext_csd;
pub mod extension;
pub mod ocr;
pub mod scr;
pub mod ssr;
pub mod switch;

/// A register, named in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Card specific data.
    Csd,
    /// Extended card specific data.
    ExtCsd,
    /// SD configuration register.
    Scr,
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Csd => "CSD",
            Self::ExtCsd => "EXT_CSD",
            Self::Scr => "SCR",
        })
    }
}

/// A field with a value that a host cannot work with: reserved, or in contradiction to other
/// fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterError {
    /// The register.
    pub register: Register,
    /// The field's name in the standard.
    pub field: &'static str,
    /// The field's value.
    pub value: u64,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { register, field, value } = self;
        write!(f, "{register}: {field} is {value:#x}, which no card that we can use has")
    }
}

impl core::error::Error for RegisterError {}

/// The bits of a register that is sent most significant bit first: CID and CSD (`Bits<16>`), SCR
/// (`Bits<8>`), SSR and switch status (`Bits<64>`).
///
/// Bits are numbered as in the standards: the first on the wire is `8 * N - 1`, the last is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits<const N: usize>(pub [u8; N]);

impl<const N: usize> Bits<N> {
    /// Returns bits `high` to `low`, both included, as a number.
    ///
    /// # Panics
    ///
    /// Panics if `high` is below `low` or not in the register, or if there are more than 32 bits.
    /// Positions are constants of the parsers, so this does not depend on what a card sent
    /// ([parsers-never-panic]).
    #[must_use]
    pub fn field(&self, high: usize, low: usize) -> u32 {
        assert!(low <= high && high < 8 * N && high - low < 32, "bits {high}:{low} of {N} bytes");
        (low..=high).rev().fold(0, |value, at| (value << 1) | u32::from(self.bit(at)))
    }

    /// Returns whether bit `at` is set.
    ///
    /// # Panics
    ///
    /// Panics if there is no such bit.
    #[must_use]
    pub fn bit(&self, at: usize) -> bool {
        assert!(at < 8 * N, "bit {at} of {N} bytes");
        self.0[N - 1 - at / 8] >> (at % 8) & 1 == 1
    }

    /// Does the same as [`Self::field`] for at most 16 bits.
    ///
    /// # Panics
    ///
    /// Panics like [`Self::field`], and if there are more than 16 bits.
    #[must_use]
    pub fn short(&self, high: usize, low: usize) -> u16 {
        assert!(high - low < 16, "bits {high}:{low} do not fit 16 bits");
        u16::try_from(self.field(high, low)).expect("number of at most 16 bits")
    }

    /// Does the same as [`Self::field`] for at most 8 bits.
    ///
    /// # Panics
    ///
    /// Panics like [`Self::field`], and if there are more than 8 bits.
    #[must_use]
    pub fn byte(&self, high: usize, low: usize) -> u8 {
        assert!(high - low < 8, "bits {high}:{low} do not fit 8 bits");
        u8::try_from(self.field(high, low)).expect("number of at most 8 bits")
    }

    /// Returns the `COUNT` whole bytes above bit `low`, the first on the wire first.
    fn bytes<const COUNT: usize>(&self, low: usize) -> [u8; COUNT] {
        debug_assert!(low + 8 * COUNT <= 8 * N, "{COUNT} bytes above bit {low} of {N} bytes");
        core::array::from_fn(|at| {
            let low = low + 8 * (COUNT - 1 - at);
            self.byte(low + 7, low)
        })
    }
}

impl Bits<16> {
    /// A register from four words, the most significant first, with CRC and end bit in the last
    /// byte: the form in which most hosts deliver it.
    #[must_use]
    pub fn from_words(words: [u32; 4]) -> Self {
        let [first, second, third, last] = words.map(u128::from);
        Self((first << 96 | second << 64 | third << 32 | last).to_be_bytes())
    }

    /// A register from the four response registers of an SDHCI controller, the lowest address (the
    /// least significant word) first. The controller keeps CRC and end bit and delivers the other
    /// 120 bits shifted down by 8 (SD Host Controller Simplified Specification 2.2.7). This
    /// function shifts them back, above a zero byte.
    #[must_use]
    pub fn from_sdhci(response: [u32; 4]) -> Self {
        let [last, third, second, first] = response;
        let Self(delivered) = Self::from_words([first, second, third, last]);
        Self((u128::from_be_bytes(delivered) << 8).to_be_bytes())
    }
}

#[cfg(test)]
pub(super) mod example {
    //! Registers of real cards that their owners published, for tests. CID and CSD end in their
    //! CRC, so a typing error shows: see `real_registers_carry_a_valid_crc`.

    use super::Bits;

    /// CSDs from "Read, Collect & Decode SD Card CSD Register Data" on goughlui.com.
    pub(crate) const CSD_SANDISK_2G: &str = "002600325f5a83c93efbcfff928040cb";
    pub(crate) const CSD_KINGSTON_2G: &str = "002d00325b5a83d5fefbff80168000cf";
    pub(crate) const CSD_SAMSUNG_32G: &str = "400e00325b590000e9e57f800a4040f1";
    pub(crate) const CSD_KINGSTON_128G: &str = "400e00325b590003a5df7f800a400007";
    pub(crate) const CSD_CHROMEBOOK_EMMC: &str = "d00f00320f5903ffffffffff92404011";

    pub(crate) fn hex<const N: usize>(text: &str) -> [u8; N] {
        assert_eq!(text.len(), 2 * N, "{text}");
        core::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
    }

    pub(crate) fn bits<const N: usize>(text: &str) -> Bits<N> {
        Bits(hex(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// Four words, in the order of a bus and in that of SDHCI, which drops the last byte and shifts
    /// the others down.
    #[test]
    fn words_are_taken_in_the_order_of_their_controller() {
        let words = [0x0f0e_0d0c, 0x0b0a_0908, 0x0706_0504, 0x0302_0100];
        let bits = Bits::from_words(words);
        assert_eq!(bits, Bits([15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]));
        let response = [0x0403_0201, 0x0807_0605, 0x0c0b_0a09, 0xff0f_0e0d];
        assert_eq!(Bits::from_sdhci(response), bits);
    }

    /// x^7 + x^3 + 1 over the first 120 bits, one bit at a time.
    fn crc7(bits: &Bits<16>) -> u8 {
        (8..128).rev().fold(0, |crc, at| {
            let out = crc >> 6 & 1 == 1;
            let crc = crc << 1 & 0x7f;
            if out == bits.bit(at) { crc } else { crc ^ 0b000_1001 }
        })
    }

    #[test]
    fn real_registers_carry_a_valid_crc() {
        for text in [
            example::CSD_SANDISK_2G,
            example::CSD_KINGSTON_2G,
            example::CSD_SAMSUNG_32G,
            example::CSD_KINGSTON_128G,
            example::CSD_CHROMEBOOK_EMMC,
        ] {
            let bits = example::bits(text);
            assert_eq!(u32::from(crc7(&bits)), bits.field(7, 1), "{text}");
        }
    }

    #[test]
    fn fields_have_the_bit_numbers_of_the_standard() {
        let bits = Bits([0x80, 0x01, 0xab, 0xcd]);
        assert!(bits.bit(31) && bits.bit(16) && bits.bit(0) && !bits.bit(30));
        assert_eq!(bits.field(31, 0), 0x8001_abcd);
        assert_eq!(bits.field(15, 4), 0xabc);
        assert_eq!(bits.field(17, 15), 0b011);
        assert_eq!(bits.bytes(8), [0x01, 0xab]);
    }

    #[test]
    fn hosts_of_both_kinds_deliver_the_same_register() {
        let words = [0x0026_0032, 0x5f5a_83c9, 0x3efb_cfff, 0x9280_40cb];
        let whole = Bits::from_words(words);
        assert_eq!(whole, example::bits(example::CSD_SANDISK_2G));
        // The 120 bits 0026 0032 5f5a 83c9 3efb cfff 9280 40, cut into words from the right.
        let sdhci = Bits::from_sdhci([0xff92_8040, 0xc93e_fbcf, 0x325f_5a83, 0x0000_2600]);
        assert_eq!(sdhci.0[..15], whole.0[..15]);
        assert_eq!(sdhci.0[15], 0);
    }

    #[test]
    fn an_error_names_register_field_and_value() {
        let error = RegisterError { register: Register::Csd, field: "CSD_STRUCTURE", value: 3 };
        let text = error.to_string();
        assert!(text.starts_with("CSD: CSD_STRUCTURE is 0x3"), "{text}");
    }
}
