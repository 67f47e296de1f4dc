//! Sizes in EXT_CSD: the user area, the partitions and the groups.

use super::{ExtCsd, index, revision};

/// A part of an eMMC device with addresses of its own. PARTITION_CONFIG (179) selects the one that
/// commands reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Partition {
    /// The user area.
    User,
    /// A boot partition: 0 or 1.
    Boot(u8),
    /// The replay protected memory block, which takes authenticated frames only.
    Rpmb,
    /// A general purpose partition: 0 to 3.
    General(u8),
}

impl Partition {
    /// All partitions, the user area first.
    pub const ALL: [Self; 8] = [
        Self::User,
        Self::Boot(0),
        Self::Boot(1),
        Self::Rpmb,
        Self::General(0),
        Self::General(1),
        Self::General(2),
        Self::General(3),
    ];

    /// Returns PARTITION_ACCESS: bits 2:0 of PARTITION_CONFIG that select the partition.
    #[must_use]
    pub const fn access(self) -> u8 {
        match self {
            Self::User => 0,
            Self::Boot(number) => 1 + number,
            Self::Rpmb => 3,
            Self::General(number) => 4 + number,
        }
    }
}

/// The number of sectors in a KiB.
const SECTORS_PER_KIB: u64 = 2;

impl ExtCsd {
    /// SEC_COUNT (212): returns the size of the user area in sectors; `None` if the CSD states it.
    #[must_use]
    pub fn sectors(&self) -> Option<u64> {
        let count = self.number::<4>(index::SEC_COUNT);
        (self.revision() >= revision::V4_2 && count != 0).then_some(u64::from(count))
    }

    /// Returns the size of a partition in sectors; 0 if there is none. The size of the user area is
    /// [`Self::sectors`], or 0 if the CSD states it.
    #[must_use]
    pub fn partition_sectors(&self, partition: Partition) -> u64 {
        match partition {
            Partition::User => self.sectors().unwrap_or(0),
            Partition::Boot(_) => self.sectors_of_128_kib(index::BOOT_SIZE_MULT),
            Partition::Rpmb if self.revision() >= revision::V4_41 => {
                self.sectors_of_128_kib(index::RPMB_SIZE_MULT)
            }
            Partition::General(number) if self.partitions_complete() => {
                let at = index::GP_SIZE_MULT + 3 * u16::from(number);
                u64::from(self.number::<3>(at)) * self.write_protect_group_sectors()
            }
            Partition::Rpmb | Partition::General(_) => 0,
        }
    }

    fn sectors_of_128_kib(&self, at: u16) -> u64 {
        128 * SECTORS_PER_KIB * u64::from(self.bits_since(revision::V4_3, at))
    }

    /// PARTITION_SETTING_COMPLETED (155): returns whether they were made.
    #[must_use]
    pub(crate) fn partitions_complete(&self) -> bool {
        self.bits_since(revision::V4_41, index::PARTITION_SETTING_COMPLETED) & 1 != 0
    }

    /// ERASE_GROUP_DEF (175): returns whether erases go by [`Self::erase_group_sectors`], not by
    /// the CSD.
    #[must_use]
    pub(crate) fn erase_group_on(&self) -> bool {
        self.bits_since(revision::V4_3, index::ERASE_GROUP_DEF) & 1 != 0
    }

    /// HC_ERASE_GRP_SIZE (224): returns the high-capacity erase group in sectors; 0 if there is
    /// none.
    #[must_use]
    pub(crate) fn erase_group_sectors(&self) -> u64 {
        512 * SECTORS_PER_KIB * u64::from(self.bits_since(revision::V4_3, index::HC_ERASE_GRP_SIZE))
    }

    /// HC_WP_GRP_SIZE (221): returns the high-capacity write-protect group in sectors; 0 if there
    /// is none.
    #[must_use]
    pub(crate) fn write_protect_group_sectors(&self) -> u64 {
        u64::from(self.bits_since(revision::V4_3, index::HC_WP_GRP_SIZE))
            * self.erase_group_sectors()
    }

    /// DATA_SECTOR_SIZE (61): returns the number of 512-byte sectors in the smallest read or write,
    /// 1 or 8.
    #[must_use]
    pub(crate) fn data_sector_sectors(&self) -> u32 {
        if self.bits_since(revision::V4_5, index::DATA_SECTOR_SIZE) == 0 { 1 } else { 8 }
    }
}
