//! The bytes of EXT_CSD that hosts and models use: the names of JESD84-B51 7.4, each with the index
//! of its first byte. CMD6 writes bytes up to 191, the modes. Bytes above are properties, which
//! cannot be written.

/// Bit 0 turns the command queue on.
pub const CMDQ_MODE_EN: u16 = 15;
/// Bit 0 flushes the cache, bit 1 is a barrier.
pub const FLUSH_CACHE: u16 = 32;
/// Bit 0 turns the cache on.
pub const CACHE_CTRL: u16 = 33;
/// 1: power stays on until told; 2, 3: it goes soon; 4: sleep.
pub const POWER_OFF_NOTIFICATION: u16 = 34;
/// Which entry of a packed command failed first, from 1.
pub const PACKED_FAILURE_INDEX: u16 = 35;
/// Whether, and how, the last packed command failed.
pub const PACKED_COMMAND_STATUS: u16 = 36;
/// The meaning of R1's exception bit; two bytes.
pub const EXCEPTION_EVENTS_STATUS: u16 = 54;
/// Which events set that bit; two bytes.
pub const EXCEPTION_EVENTS_CTRL: u16 = 56;
/// 0: sectors of 512 bytes; 1: of 4 KiB.
pub(crate) const DATA_SECTOR_SIZE: u16 = 61;
/// Sizes of the general purpose partitions; four times three bytes.
pub(crate) const GP_SIZE_MULT: u16 = 143;
/// Bit 0: the partitions are as they will stay.
pub(crate) const PARTITION_SETTING_COMPLETED: u16 = 155;
/// Bit 0: partitions; bit 1: they can be enhanced; bit 2: extended attributes.
pub(crate) const PARTITIONING_SUPPORT: u16 = 160;
/// Bit 0 turns high priority interrupts on.
pub const HPI_MGMT: u16 = 161;
/// Bit 0: the host starts background operations; bit 1: the device does.
pub const BKOPS_EN: u16 = 163;
/// Any value starts background operations.
pub const BKOPS_START: u16 = 164;
/// Any value starts a sanitize.
pub const SANITIZE_START: u16 = 165;
/// Bit 2: reliable writes of any length.
pub const WR_REL_PARAM: u16 = 166;
/// Size of the RPMB partition in units of 128 KiB.
pub(crate) const RPMB_SIZE_MULT: u16 = 168;
/// Bit 0: erase groups are those of HC_ERASE_GRP_SIZE.
pub const ERASE_GROUP_DEF: u16 = 175;
/// Bits 2:0: the partition that commands reach; 5:3: the one to boot from.
pub const PARTITION_CONFIG: u16 = 179;
/// Value that erased sectors read as.
pub(crate) const ERASED_MEM_CONT: u16 = 181;
/// Width, edges and strobe of the bus; write-only.
pub const BUS_WIDTH: u16 = 183;
/// Bit 0: enhanced strobe.
pub const STROBE_SUPPORT: u16 = 184;
/// 0: basic; 1: high speed; 2: HS200; 3: HS400; upper half: driver strength.
pub const HS_TIMING: u16 = 185;
/// Power class in use.
pub const POWER_CLASS: u16 = 187;
/// Revision of the register.
pub const EXT_CSD_REV: u16 = 192;
/// Revision of the CSD.
pub(crate) const CSD_STRUCTURE: u16 = 194;
/// Timings the device has.
pub const DEVICE_TYPE: u16 = 196;
/// Time of an interrupt, in units of 10 ms.
pub(crate) const OUT_OF_INTERRUPT_TIME: u16 = 198;
/// Sectors of the user area; four bytes.
pub const SEC_COUNT: u16 = 212;
/// Erase groups in a write-protect group.
pub(crate) const HC_WP_GRP_SIZE: u16 = 221;
/// Sectors of a reliable write.
pub const REL_WR_SEC_C: u16 = 222;
/// Time of the erase of a group, in units of 300 ms.
pub const ERASE_TIMEOUT_MULT: u16 = 223;
/// Erase group in units of 512 KiB.
pub const HC_ERASE_GRP_SIZE: u16 = 224;
/// Size of each boot partition in units of 128 KiB.
pub const BOOT_SIZE_MULT: u16 = 226;
/// Secure trim takes this many times an erase.
pub(crate) const SEC_TRIM_MULT: u16 = 229;
/// Secure erase takes this many times an erase.
pub(crate) const SEC_ERASE_MULT: u16 = 230;
/// Trim, secure erase, sanitize.
pub const SEC_FEATURE_SUPPORT: u16 = 231;
/// Time of a trim of a group, in units of 300 ms.
pub const TRIM_MULT: u16 = 232;
/// Sectors of an interrupted write that are good; four bytes.
pub const CORRECTLY_PRG_SECTORS_NUM: u16 = 242;
/// Urgency of background operations.
pub const BKOPS_STATUS: u16 = 246;
/// Time of a switch, in units of 10 ms.
pub(crate) const GENERIC_CMD6_TIME: u16 = 248;
/// Size of the cache in units of 1 Kibit; four bytes.
pub const CACHE_SIZE: u16 = 249;
/// Depth of the command queue less 1.
pub const CMDQ_DEPTH: u16 = 307;
/// Bit 0: there is a command queue.
pub const CMDQ_SUPPORT: u16 = 308;
/// Most writes in a packed command.
pub const MAX_PACKED_WRITES: u16 = 500;
/// Most reads in a packed command.
pub const MAX_PACKED_READS: u16 = 501;
/// Bit 0: background operations.
pub const BKOPS_SUPPORT: u16 = 502;
/// Bit 0: high priority interrupts; bit 1: by CMD12.
pub const HPI_FEATURES: u16 = 503;

/// CMD6 can write the bytes that a host switches.
const _: () = {
    assert!(CMDQ_MODE_EN < 192, "a mode");
    assert!(FLUSH_CACHE < 192, "a mode");
    assert!(CACHE_CTRL < 192, "a mode");
    assert!(EXCEPTION_EVENTS_CTRL < 192, "a mode");
    assert!(HPI_MGMT < 192, "a mode");
    assert!(BKOPS_START < 192, "a mode");
    assert!(SANITIZE_START < 192, "a mode");
    assert!(ERASE_GROUP_DEF < 192, "a mode");
    assert!(BUS_WIDTH < 192, "a mode");
    assert!(HS_TIMING < 192, "a mode");
};
