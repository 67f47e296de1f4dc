//! Extended CSDs for tests.

use super::index;

/// A 4 GB device of eMMC 4.41, as Linux prints it: the last byte first. From "Parse eMMC Extended
/// CSD registers with Python" on blog.kylemanna.com; lines of zeroes are left out, see
/// [`emmc_4_41`].
const KYLE_MANNA: [(usize, &str); 5] = [
    (511, "0000000000000001030100000000000000000000000000000000000000000000000000000000"),
    (283, "0000000000000000000000000000000000000000000000000000000000000000000000000002"),
    (245, "000000087a000000000000000006150203070010060801010108080010000072800000080808"),
    (207, "0808080000000000010200070002000500000000000001000200000000000000000000000000"),
    (169, "000100050000000000030001ca00000000000000000000000000000000000000000000000000"),
];

/// The published device of eMMC 4.41.
pub(crate) fn emmc_4_41() -> [u8; 512] {
    let mut bytes = [0; 512];
    for (first, text) in KYLE_MANNA {
        let line: [u8; 38] = super::super::example::hex(text);
        for (at, byte) in line.into_iter().enumerate() {
            bytes[first - at] = byte;
        }
    }
    bytes
}

/// A 32 GB device of eMMC 5.1 with everything, put together from the standard.
pub(crate) fn emmc_5_1() -> [u8; 512] {
    let mut bytes = [0; 512];
    for (at, value) in [
        (index::EXT_CSD_REV, 8),
        (index::CSD_STRUCTURE, 2),
        (index::DEVICE_TYPE, 0x57),
        (index::STROBE_SUPPORT, 1),
        // 61,071,360 sectors: 0x03a3e000.
        (index::SEC_COUNT + 1, 0xe0),
        (index::SEC_COUNT + 2, 0xa3),
        (index::SEC_COUNT + 3, 0x03),
        // 65,536 Kibit: 8 MiB.
        (index::CACHE_SIZE + 2, 1),
        (index::CMDQ_SUPPORT, 1),
        (index::CMDQ_DEPTH, 31),
        (index::MAX_PACKED_WRITES, 63),
        (index::MAX_PACKED_READS, 60),
        (index::HPI_FEATURES, 1),
        (index::BKOPS_SUPPORT, 1),
        (index::BKOPS_EN, 2),
        (index::SEC_FEATURE_SUPPORT, 0x55),
        (index::GENERIC_CMD6_TIME, 25),
        (index::OUT_OF_INTERRUPT_TIME, 5),
        (index::HC_ERASE_GRP_SIZE, 1),
        (index::HC_WP_GRP_SIZE, 16),
        (index::ERASE_TIMEOUT_MULT, 2),
        (index::TRIM_MULT, 5),
        (index::SEC_ERASE_MULT, 27),
        (index::SEC_TRIM_MULT, 17),
        (index::REL_WR_SEC_C, 1),
        (index::WR_REL_PARAM, 0x14),
        (index::BOOT_SIZE_MULT, 32),
        (index::RPMB_SIZE_MULT, 128),
        (index::PARTITIONING_SUPPORT, 7),
        (index::PARTITION_SETTING_COMPLETED, 1),
        (index::GP_SIZE_MULT + 3, 0x02),
        (index::GP_SIZE_MULT + 4, 0x01),
    ] {
        bytes[usize::from(at)] = value;
    }
    bytes
}
