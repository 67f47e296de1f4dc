//! OCR: voltages, addressing, and whether the card is ready (JESD84-B51 7.1; SD 5.1).

/// The response of an eMMC device to CMD1, and the argument with which a host asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmcOcr(pub u32);

impl MmcOcr {
    /// 2.7 to 3.6 V, which every device takes, including dual voltage devices.
    pub const VOLTAGES: u32 = 0x00ff_8000;
    /// 1.70 to 1.95 V.
    pub(crate) const LOW_VOLTAGE: u32 = 1 << 7;
    /// In an argument: the host can address sectors.
    pub(crate) const SECTOR_MODE: u32 = 0b10 << 29;

    /// Returns whether the device has finished its power-up (bit 31). Before, no other bit is
    /// valid.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        self.0 >> 31 == 1
    }

    /// Returns whether addresses count sectors (access mode, bits 30:29), not bytes.
    #[must_use]
    pub const fn is_sector_addressed(self) -> bool {
        self.0 >> 29 & 0b11 == 0b10
    }

    /// Returns whether the device works at any voltage that `window` has (bits 23:7).
    #[must_use]
    pub const fn takes(self, window: u32) -> bool {
        self.0 & window & (Self::VOLTAGES | Self::LOW_VOLTAGE) != 0
    }
}

/// The response of an SD card to ACMD41, and the argument with which a host asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SdOcr(pub u32);

impl SdOcr {
    /// 2.7 to 3.6 V.
    pub const VOLTAGES: u32 = 0x00ff_8000;
    /// HCS, in an argument: the host can address sectors. Without it a card above 2 GB stays busy.
    pub const HIGH_CAPACITY: u32 = 1 << 30;
    /// S18R, in an argument: the host can signal at 1.8 V.
    pub(crate) const SIGNAL_1V8: u32 = 1 << 24;

    /// Returns whether the card has finished its power-up (bit 31). Before, no other bit is valid.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        self.0 >> 31 == 1
    }

    /// CCS: returns whether addresses count sectors (SDHC, SDXC, SDUC), not bytes.
    #[must_use]
    pub const fn is_sector_addressed(self) -> bool {
        self.0 & Self::HIGH_CAPACITY != 0
    }

    /// S18A: returns whether the card would change to 1.8 V with CMD11 now.
    #[must_use]
    pub(crate) const fn accepts_1v8(self) -> bool {
        self.0 & Self::SIGNAL_1V8 != 0
    }

    /// Returns whether the card works at any voltage that `window` has (bits 23:15).
    #[must_use]
    pub const fn takes(self, window: u32) -> bool {
        self.0 & window & Self::VOLTAGES != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_responses_are_read_correctly() {
        // SDHC, ready, at 3.3 V; one that offers 1.8 V; one still busy.
        assert!(SdOcr(0xc0ff_8000).is_ready() && SdOcr(0xc0ff_8000).is_sector_addressed());
        assert!(!SdOcr(0xc0ff_8000).accepts_1v8() && SdOcr(0xc1ff_8000).accepts_1v8());
        assert!(!SdOcr(0x00ff_8000).is_ready() && SdOcr(0x80ff_8000).takes(SdOcr::VOLTAGES));
        // eMMC: dual voltage, sectors; a device of at most 2 GB.
        assert!(MmcOcr(0xc0ff_8080).is_ready() && MmcOcr(0xc0ff_8080).is_sector_addressed());
        assert!(MmcOcr(0xc0ff_8080).takes(MmcOcr::LOW_VOLTAGE));
        assert!(!MmcOcr(0x80ff_8000).is_sector_addressed());
        assert!(!MmcOcr(0x80ff_8000).takes(MmcOcr::LOW_VOLTAGE));
    }
}
