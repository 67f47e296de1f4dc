//! CID: the maker of a card (JESD84-B51 7.2; SD 5.2). It only informs, so no value is refused.

use super::Bits;
use core::fmt;

/// A card's identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cid {
    /// MID: the manufacturer. eMMC and SD have separate numbers.
    pub manufacturer: u8,
    /// OID: the OEM; two ASCII characters on SD, a number in the low byte on eMMC.
    pub oem: u16,
    /// PNM: the product's name.
    pub name: ProductName,
    /// PRV: the product's revision. Two BCD digits, major and minor, on SD and older eMMC.
    pub revision: u8,
    /// PSN: the serial number.
    pub serial: u32,
    /// MDT: the month of manufacture.
    pub made: Option<MonthOfYear>,
}

/// A product's name: printable ASCII, 6 characters on eMMC and 5 on SD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ProductName {
    bytes: [u8; 6],
    len: u8,
}

/// A month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MonthOfYear {
    /// The year.
    pub year: u16,
    /// The month, 1 to 12.
    pub month: u8,
}

impl Cid {
    /// Reads the CID of an SD card.
    #[must_use]
    pub fn sd(bits: &Bits<16>) -> Self {
        let name: [u8; 5] = bits.bytes(64);
        Self {
            manufacturer: bits.byte(127, 120),
            oem: bits.short(119, 104),
            name: ProductName::new(&name),
            revision: bits.byte(63, 56),
            serial: bits.field(55, 24),
            made: MonthOfYear::new(2000 + bits.short(19, 12), bits.byte(11, 8)),
        }
    }

    /// Reads the CID of an eMMC device. The year has four bits. It begins at 1997; with EXT_CSD
    /// revisions above 4, the codes of 1997 to 2009 mean 2013 to 2025.
    #[must_use]
    pub fn mmc(bits: &Bits<16>, ext_csd_revision: u8) -> Self {
        let name: [u8; 6] = bits.bytes(56);
        let year = 1997 + bits.short(11, 8);
        let year = if ext_csd_revision > 4 && year < 2010 { year + 16 } else { year };
        Self {
            manufacturer: bits.byte(127, 120),
            oem: bits.short(111, 104),
            name: ProductName::new(&name),
            revision: bits.byte(55, 48),
            serial: bits.field(47, 16),
            made: MonthOfYear::new(year, bits.byte(15, 12)),
        }
    }
}

impl MonthOfYear {
    /// Returns `None` if there is no such month, as on cards without a date.
    fn new(year: u16, month: u8) -> Option<Self> {
        (1..=12).contains(&month).then_some(Self { year, month })
    }
}

impl ProductName {
    /// Keeps at most 6 characters. Characters that do not print become `?`, and padding is cut off.
    fn new(name: &[u8]) -> Self {
        let mut bytes = [0; 6];
        let mut len = 0;
        for (at, (to, &from)) in (1..).zip(bytes.iter_mut().zip(name)) {
            let padding = from == 0 || from == b' ';
            *to = if from.is_ascii_graphic() || padding { from } else { b'?' };
            if !padding {
                len = at;
            }
        }
        for byte in &mut bytes {
            *byte = if *byte == 0 { b' ' } else { *byte };
        }
        Self { bytes, len }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)])
            .expect("ASCII characters of a product name")
    }
}

impl fmt::Debug for ProductName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for ProductName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    /// A name is cut at its padding; two names are equal if they print alike.
    #[test]
    fn a_name_ends_where_its_padding_begins() {
        for (name, text) in
            [(&b""[..], ""), (b"   ", ""), (b"A", "A"), (b"A B \0", "A B"), (b"ABCDEFG", "ABCDEF")]
        {
            assert_eq!(ProductName::new(name).as_str(), text);
            assert_eq!(ProductName::new(name), ProductName::new(text.as_bytes()));
            assert_eq!(ProductName::new(name).bytes[text.len()..], b"      "[text.len()..]);
        }
    }

    #[test]
    fn the_cid_of_an_sd_card_has_the_sd_layout() {
        // MID 03, OID "SD", PNM "SU08G", PRV 8.0, PSN 0x1234abcd, MDT 0x0cb (2012, November).
        let cid = Cid::sd(&example::bits("0353445355303847801234abcd00cb01"));
        assert_eq!((cid.manufacturer, cid.oem), (3, 0x5344));
        assert_eq!((cid.name.as_str(), cid.revision, cid.serial), ("SU08G", 0x80, 0x1234_abcd));
        assert_eq!(cid.made, Some(MonthOfYear { year: 2012, month: 11 }));
    }

    #[test]
    fn the_cid_of_an_emmc_device_has_the_mmc_layout_and_a_year_by_revision() {
        // MID 15, CBX 1 (BGA), OID 00, PNM "8GTF4R", PRV 06, PSN 0xdeadbeef, MDT August, year 2.
        let bits = example::bits("15010038475446345206deadbeef8201");
        let cid = Cid::mmc(&bits, 8);
        assert_eq!((cid.manufacturer, cid.oem, cid.revision), (0x15, 0, 6));
        assert_eq!((cid.name.as_str(), cid.serial), ("8GTF4R", 0xdead_beef));
        assert_eq!(cid.made, Some(MonthOfYear { year: 2015, month: 8 }));
        let years = [4, 5].map(|revision| Cid::mmc(&bits, revision).made.map(|made| made.year));
        assert_eq!(years, [Some(1999), Some(2015)]);
    }

    #[test]
    fn each_field_has_its_own_bits() {
        let none = u128::MIN;
        for one in 0..128 {
            let bit = 1 << one;
            let changed = fields(sd_of(bit));
            let zero = fields(sd_of(none));
            assert_eq!(changed.0 == zero.0, is_outside(one, 127, 120), "SD, {one}");
            assert_eq!(changed.1 == zero.1, is_outside(one, 119, 104), "SD, {one}");
            assert_eq!(changed.2 == zero.2, is_outside(one, 63, 56), "SD, {one}");
            assert_eq!(changed.3 == zero.3, is_outside(one, 55, 24), "SD, {one}");
            let changed = fields(mmc_of(bit));
            let zero = fields(mmc_of(none));
            assert_eq!(changed.0 == zero.0, is_outside(one, 127, 120), "MMC, {one}");
            assert_eq!(changed.1 == zero.1, is_outside(one, 111, 104), "MMC, {one}");
            assert_eq!(changed.2 == zero.2, is_outside(one, 55, 48), "MMC, {one}");
            assert_eq!(changed.3 == zero.3, is_outside(one, 47, 16), "MMC, {one}");
        }
        for (year, month) in (0..16).flat_map(|year| (1..=12).map(move |month| (year, month))) {
            let code = u128::from(month);
            let of_year = u128::from(year);
            // The bits around the two fields are set.
            let around = !only(19, 8);
            assert_eq!(sd_of(around | of_year << 12 | code << 8).made, made_in(2000 + year, month));
            let around = !only(15, 8);
            let year = if year < 13 { 2013 + year } else { 1997 + year };
            assert_eq!(mmc_of(around | code << 12 | of_year << 8).made, made_in(year, month));
        }
    }

    /// Returns a register with the bits from `high` to `low` set.
    fn only(high: u32, low: u32) -> u128 {
        u128::MAX >> (127 - high) & u128::MAX << low
    }

    fn sd_of(bits: u128) -> Cid {
        Cid::sd(&Bits(bits.to_be_bytes()))
    }

    fn mmc_of(bits: u128) -> Cid {
        Cid::mmc(&Bits(bits.to_be_bytes()), 8)
    }

    fn is_outside(one: u32, high: u32, low: u32) -> bool {
        !(low..=high).contains(&one)
    }

    fn fields(cid: Cid) -> (u8, u16, u8, u32) {
        (cid.manufacturer, cid.oem, cid.revision, cid.serial)
    }

    fn made_in(year: u16, month: u8) -> Option<MonthOfYear> {
        Some(MonthOfYear { year, month })
    }

    #[test]
    fn unprintable_names_are_replaced_and_a_missing_month_is_none() {
        let cid = Cid::sd(&Bits([0xff; 16]));
        assert_eq!((cid.name.as_str(), cid.made), ("?????", None));
        assert_eq!(Cid::mmc(&Bits([0; 16]), 0).name.as_str(), "");
        assert_eq!(ProductName::new(b"A B  ").as_str(), "A B");
        assert_eq!(ProductName::new(b"A\0B\0 \x07").as_str(), "A B  ?");
        assert_eq!(ProductName::new(b"A\0"), ProductName::new(b"A "), "padding of either kind");
        let months = [0, 1, 12, 13].map(|month| MonthOfYear::new(2012, month).is_some());
        assert_eq!(months, [false, true, true, false]);
    }
}
