//! EXT_CSD: what an eMMC device can do and how it is set (JESD84-B51 7.4).
//!
//! 512 bytes, with the least significant byte of each number first. An [`ExtCsd`] keeps the bytes,
//! and its methods interpret them. Bytes that a revision of the standard does not define may hold
//! anything, so a feature counts only from the revision that introduced it.
//!
//! [`index`] names the bytes, for CMD6 and for models; [`partition`] has sizes and partitions,
//! [`time`] the time limits.

use super::{Register, RegisterError};

pub mod index;
pub mod partition;
pub mod time;

#[cfg(test)]
pub(crate) mod example;
#[cfg(test)]
mod tests;

/// An extended CSD.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtCsd {
    bytes: [u8; 512],
}

/// Revisions of the standard, as EXT_CSD_REV counts them.
pub mod revision {
    /// eMMC 4.2.
    pub(crate) const V4_2: u8 = 2;
    /// eMMC 4.3.
    pub(crate) const V4_3: u8 = 3;
    /// eMMC 4.4.
    pub(crate) const V4_4: u8 = 4;
    /// eMMC 4.41.
    pub const V4_41: u8 = 5;
    /// eMMC 4.5 and 4.51.
    pub(crate) const V4_5: u8 = 6;
    /// eMMC 5.1 and 5.1A.
    pub(crate) const V5_1: u8 = 8;
}

/// DEVICE_TYPE (196): timings beyond the basic one, as a set of bits. All eight have a name, used
/// or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceType(pub u8);

impl DeviceType {
    /// High speed at 26 MHz.
    pub const HS_26: u8 = 1 << 0;
    /// High speed at 52 MHz.
    pub const HS_52: u8 = 1 << 1;
    /// High speed at 52 MHz, both edges, at 1.8 or 3 V.
    pub(crate) const DDR_1V8: u8 = 1 << 2;
    /// HS200 at 1.8 V.
    pub(crate) const HS200_1V8: u8 = 1 << 4;
    /// HS200 at 1.2 V.
    pub(crate) const HS200_1V2: u8 = 1 << 5;
    /// HS400 at 1.8 V.
    pub(crate) const HS400_1V8: u8 = 1 << 6;
    /// HS400 at 1.2 V.
    pub(crate) const HS400_1V2: u8 = 1 << 7;

    /// Returns whether any of `bits` is set.
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// The command that interrupts the operation that keeps a device busy (high priority interrupt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hpi {
    /// By CMD13 with its lowest bit set.
    SendStatus,
    /// By CMD12 with its lowest bit set.
    StopTransmission,
}

/// BKOPS_STATUS (246): how urgently a device needs time for background operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BkopsLevel {
    /// None.
    None,
    /// Outstanding, not critical.
    Wanted,
    /// Outstanding, and performance is impacted.
    Impacted,
    /// Critical.
    Critical,
}

/// EXCEPTION_EVENTS_STATUS (54): the meaning of the exception bit of a
/// [status](crate::command::status::Status::EXCEPTION_EVENT), as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExceptionEvents(pub u16);

impl ExceptionEvents {
    /// Background operations are urgent.
    pub const URGENT_BKOPS: u16 = 1 << 0;
    /// A packed command failed; see [`ExtCsd::packed_failure`].
    pub const PACKED_FAILURE: u16 = 1 << 3;

    /// Returns whether any of `bits` is set.
    #[must_use]
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
}

/// SEC_FEATURE_SUPPORT (231), as a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecureFeatures(pub u8);

impl SecureFeatures {
    /// Secure erase and secure trim. Deprecated in 4.5 in favour of sanitize.
    pub(crate) const SECURE_ERASE: u8 = 1 << 0;
    /// Trim, and with it secure trim where there is secure erase.
    pub const TRIM: u8 = 1 << 4;
    /// Sanitize.
    pub const SANITIZE: u8 = 1 << 6;

    /// Returns whether all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

impl ExtCsd {
    /// Reads the 512 bytes that CMD8 brings.
    ///
    /// # Errors
    ///
    /// Fails for a DATA_SECTOR_SIZE that is neither 512 bytes nor 4 KiB.
    pub fn parse(bytes: &[u8; 512]) -> Result<Self, RegisterError> {
        let ext_csd = Self { bytes: *bytes };
        match ext_csd.byte(index::DATA_SECTOR_SIZE) {
            0 | 1 => Ok(ext_csd),
            _ if ext_csd.revision() < revision::V4_5 => Ok(ext_csd),
            other => Err(RegisterError {
                register: Register::ExtCsd,
                field: "DATA_SECTOR_SIZE",
                value: u64::from(other),
            }),
        }
    }

    /// Returns all bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 512] {
        &self.bytes
    }

    /// Returns byte `at`, uninterpreted; [`index`] names the bytes.
    ///
    /// # Panics
    ///
    /// Panics if `at` is above 511.
    #[must_use]
    pub const fn byte(&self, at: u16) -> u8 {
        self.bytes[at as usize]
    }

    /// Returns the `COUNT` bytes, at most 4, from `at` on as a number, the first byte the least
    /// significant.
    fn number<const COUNT: usize>(&self, at: u16) -> u32 {
        const { assert!(COUNT <= 4, "a number of more than 32 bits") };

        let at = usize::from(at);
        self.bytes[at..at + COUNT].iter().rev().fold(0, |number, &b| number << 8 | u32::from(b))
    }

    /// Returns the bits of byte `at`; none if the revision does not define that byte.
    fn bits_since(&self, revision: u8, at: u16) -> u8 {
        if self.revision() >= revision { self.byte(at) } else { 0 }
    }

    /// EXT_CSD_REV (192); see [`revision`].
    #[must_use]
    pub const fn revision(&self) -> u8 {
        self.byte(index::EXT_CSD_REV)
    }

    /// DEVICE_TYPE (196): returns the timings beyond the basic one.
    #[must_use]
    pub(crate) fn device_type(&self) -> DeviceType {
        let known = match self.revision() {
            0..=3 => 0x03,
            4..=5 => 0x0f,
            6 => 0x3f,
            _ => 0xff,
        };
        DeviceType(self.byte(index::DEVICE_TYPE) & known)
    }

    /// STROBE_SUPPORT (184): returns whether HS400 works with enhanced strobe, and so without
    /// tuning.
    #[must_use]
    pub(crate) fn enhanced_strobe(&self) -> bool {
        self.bits_since(revision::V5_1, index::STROBE_SUPPORT) & 1 != 0
    }

    /// CACHE_SIZE (249): returns the bytes of the volatile cache; 0 if there is none.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        if self.revision() < revision::V4_5 {
            return 0;
        }
        // In units of 1 Kibit.
        u64::from(self.number::<4>(index::CACHE_SIZE)) * 128
    }

    /// CACHE_CTRL (33): returns whether the cache is on.
    #[must_use]
    pub fn cache_on(&self) -> bool {
        self.bits_since(revision::V4_5, index::CACHE_CTRL) & 1 != 0
    }

    /// CMDQ_SUPPORT (308) and CMDQ_DEPTH (307): returns the number of tasks that the command queue
    /// holds, 1 to 32; 0 if there is no queue.
    #[must_use]
    pub fn queue_depth(&self) -> u8 {
        let supported = self.bits_since(revision::V5_1, index::CMDQ_SUPPORT) & 1 != 0;
        if supported { (self.byte(index::CMDQ_DEPTH) & 0x1f) + 1 } else { 0 }
    }

    /// MAX_PACKED_WRITES (500): returns the largest number of writes in one packed command; 0 if
    /// none can be packed.
    #[must_use]
    pub fn max_packed_writes(&self) -> u8 {
        self.bits_since(revision::V4_5, index::MAX_PACKED_WRITES)
    }

    /// MAX_PACKED_READS (501): returns the largest number of reads in one packed command; 0 if none
    /// can be packed.
    #[must_use]
    pub fn max_packed_reads(&self) -> u8 {
        self.bits_since(revision::V4_5, index::MAX_PACKED_READS)
    }

    /// HPI_FEATURES (503): returns how the device is interrupted, if it can be.
    #[must_use]
    pub fn hpi(&self) -> Option<Hpi> {
        let features = self.bits_since(revision::V4_41, index::HPI_FEATURES);
        let by = if features & 2 != 0 { Hpi::StopTransmission } else { Hpi::SendStatus };
        (features & 1 != 0).then_some(by)
    }

    /// HPI_MGMT (161): returns whether interrupting is on.
    #[must_use]
    pub(crate) fn hpi_on(&self) -> bool {
        self.bits_since(revision::V4_41, index::HPI_MGMT) & 1 != 0
    }

    /// BKOPS_SUPPORT (502): returns whether the device has background operations that a host can
    /// start.
    #[must_use]
    pub fn bkops(&self) -> bool {
        self.bits_since(revision::V4_41, index::BKOPS_SUPPORT) & 1 != 0
    }

    /// BKOPS_EN (163), bit 0: returns whether the host promises to start them. It can be set once
    /// only.
    #[must_use]
    pub(crate) fn bkops_by_host(&self) -> bool {
        self.bits_since(revision::V4_41, index::BKOPS_EN) & 1 != 0
    }

    /// BKOPS_STATUS (246): returns how urgently the device needs time for background operations.
    #[must_use]
    pub fn bkops_level(&self) -> BkopsLevel {
        match self.bits_since(revision::V4_41, index::BKOPS_STATUS) & 3 {
            0 => BkopsLevel::None,
            1 => BkopsLevel::Wanted,
            2 => BkopsLevel::Impacted,
            _ => BkopsLevel::Critical,
        }
    }

    /// EXCEPTION_EVENTS_STATUS (54): returns the meaning of the exception bit of a status.
    #[must_use]
    pub fn exceptions(&self) -> ExceptionEvents {
        let at = index::EXCEPTION_EVENTS_STATUS;
        ExceptionEvents(u16::from_le_bytes([
            self.bits_since(revision::V4_5, at),
            self.bits_since(revision::V4_5, at + 1),
        ]))
    }

    /// EXCEPTION_EVENTS_CTRL (56), bit 3: returns whether the device reports packed commands that
    /// failed.
    #[must_use]
    pub(crate) fn packed_events_on(&self) -> bool {
        let on = self.bits_since(revision::V4_5, index::EXCEPTION_EVENTS_CTRL);
        ExceptionEvents(u16::from(on)).has(ExceptionEvents::PACKED_FAILURE)
    }

    /// PACKED_COMMAND_STATUS (36) and PACKED_FAILURE_INDEX (35): returns whether the last packed
    /// command failed, and then which of its entries, from 1; 0 if the device does not state which.
    #[must_use]
    pub fn packed_failure(&self) -> Option<u8> {
        let status = self.bits_since(revision::V4_5, index::PACKED_COMMAND_STATUS);
        let entry = if status & 2 != 0 { self.byte(index::PACKED_FAILURE_INDEX) } else { 0 };
        (status & 1 != 0).then_some(entry)
    }

    /// CORRECTLY_PRG_SECTORS_NUM (242): returns the number of good sectors of the last write, if it
    /// was interrupted (HPI).
    #[must_use]
    pub fn programmed_sectors(&self) -> u32 {
        self.number::<4>(index::CORRECTLY_PRG_SECTORS_NUM)
    }

    /// SEC_FEATURE_SUPPORT (231): trim, secure erase, sanitize.
    #[must_use]
    pub fn secure_features(&self) -> SecureFeatures {
        let known = if self.revision() < revision::V4_5 { 0x15 } else { 0x55 };
        SecureFeatures(self.bits_since(revision::V4_4, index::SEC_FEATURE_SUPPORT) & known)
    }

    /// Returns whether the device supports discard: all do from 4.5 on.
    #[must_use]
    pub const fn discard(&self) -> bool {
        self.revision() >= revision::V4_5
    }

    /// ERASED_MEM_CONT (181): returns whether erased and trimmed sectors read as ones, not as
    /// zeroes.
    #[must_use]
    pub(crate) const fn erased_reads_as_ones(&self) -> bool {
        self.byte(index::ERASED_MEM_CONT) & 1 != 0
    }

    /// REL_WR_SEC_C (222): returns the largest number of sectors of a reliable write; `None` for
    /// any number, as EN_REL_WR (bit 2 of 166) says.
    #[must_use]
    pub fn reliable_write_sectors(&self) -> Option<u8> {
        let enhanced = self.bits_since(revision::V4_41, index::WR_REL_PARAM) & 0b100 != 0;
        (!enhanced).then_some(self.byte(index::REL_WR_SEC_C))
    }

    /// Returns whether `other` is of the same device: the fields that never change agree. A host
    /// that reads the register again after a change of mode thus checks that it reads well.
    #[must_use]
    pub(crate) fn same_device(&self, other: &Self) -> bool {
        [
            index::CSD_STRUCTURE,
            index::EXT_CSD_REV,
            index::DEVICE_TYPE,
            index::SEC_COUNT,
            index::SEC_COUNT + 1,
            index::SEC_COUNT + 2,
            index::SEC_COUNT + 3,
            index::HC_ERASE_GRP_SIZE,
            index::HC_WP_GRP_SIZE,
            index::REL_WR_SEC_C,
            index::ERASE_TIMEOUT_MULT,
            index::TRIM_MULT,
            index::PARTITIONING_SUPPORT,
            index::GENERIC_CMD6_TIME,
        ]
        .iter()
        .all(|&at| self.byte(at) == other.byte(at))
    }
}

impl core::fmt::Debug for ExtCsd {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ExtCsd").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
