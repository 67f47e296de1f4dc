//! The registers of the SD Host Controller Standard, version 2 and 3, by their offset in bytes.

/// SDMA: the address in memory of the next byte.
pub(crate) const SDMA_ADDRESS: usize = 0x00;
/// 16 bits: the size of a block; bits 14:12 say at which boundary SDMA pauses.
pub(crate) const BLOCK_SIZE: usize = 0x04;
/// Bits of BLOCK_SIZE: 512 KiB.
pub(crate) const LARGEST_SDMA_BOUNDARY: u16 = 7 << 12;
/// 16 bits.
pub(crate) const BLOCK_COUNT: usize = 0x06;
pub(crate) const ARGUMENT: usize = 0x08;
/// 16 bits of transfer mode, 16 bits of command. Writing the highest byte puts the command on the
/// bus.
pub(crate) const MODE_AND_COMMAND: usize = 0x0c;
/// Four words.
pub(crate) const RESPONSE: usize = 0x10;
/// The response to a CMD12 that the controller sends by itself.
pub(crate) const RESPONSE_AUTO: usize = 0x1c;
pub(crate) const PRESENT: usize = 0x24;
/// 8 bits.
pub(crate) const HOST_CONTROL: usize = 0x28;
/// 8 bits.
pub(crate) const POWER: usize = 0x29;
/// 16 bits.
pub(crate) const CLOCK: usize = 0x2c;
/// 8 bits: data times out after 2^(13 + this) ticks of the timeout clock.
pub(crate) const TIMEOUT: usize = 0x2e;
/// 8 bits.
pub(crate) const RESET: usize = 0x2f;
/// 16 bits of events, 16 bits of errors. Writing a bit clears it.
pub(crate) const STATUS: usize = 0x30;
/// The bits of STATUS that can be set.
pub(crate) const STATUS_ENABLE: usize = 0x34;
/// The bits of STATUS that interrupt.
pub(crate) const SIGNAL_ENABLE: usize = 0x38;
pub(crate) const CAPABILITIES: usize = 0x40;
/// ADMA2: the address of the table of descriptors.
pub(crate) const ADMA_ADDRESS: usize = 0x58;
/// 16 bits; the lowest 8 are 0, 1 or 2 for versions 1 to 3.
pub(crate) const VERSION: usize = 0xfe;
/// The size of all registers.
pub(crate) const REGISTER_BYTES: usize = 0x100;

/// Bits of the transfer mode.
pub(crate) mod mode {
    pub(crate) const DMA: u32 = 1 << 0;
    pub(crate) const COUNTS_BLOCKS: u32 = 1 << 1;
    pub(crate) const AUTO_CMD12: u32 = 1 << 2;
    pub(crate) const READS: u32 = 1 << 4;
    pub(crate) const SEVERAL_BLOCKS: u32 = 1 << 5;
}

/// Bits of the command, which lie above the transfer mode.
pub(crate) mod command {
    pub(crate) const LONG: u32 = 1 << 16;
    pub(crate) const SHORT: u32 = 2 << 16;
    pub(crate) const SHORT_BUSY: u32 = 3 << 16;
    pub(crate) const CHECKS_CRC: u32 = 1 << 19;
    pub(crate) const CHECKS_INDEX: u32 = 1 << 20;
    pub(crate) const HAS_DATA: u32 = 1 << 21;
    /// CMD12 outside a request, which ends what the data lines do.
    pub(crate) const ABORTS: u32 = 3 << 22;
    pub(crate) const INDEX_SHIFT: u32 = 24;
}

/// Bits of PRESENT.
pub(crate) mod present {
    pub(crate) const COMMAND_INHIBIT: u32 = 1 << 0;
    pub(crate) const DATA_INHIBIT: u32 = 1 << 1;
    pub(crate) const CARD: u32 = 1 << 16;
    pub(crate) const DAT0: u32 = 1 << 20;
}

/// Bits of STATUS.
pub(crate) mod status {
    pub(crate) const COMMAND_COMPLETE: u32 = 1 << 0;
    pub(crate) const TRANSFER_COMPLETE: u32 = 1 << 1;
    pub(crate) const CARD_INSERTED: u32 = 1 << 6;
    pub(crate) const CARD_REMOVED: u32 = 1 << 7;
    pub(crate) const COMMAND_TIMEOUT: u32 = 1 << 16;
    /// CRC, end bit or index.
    pub(crate) const COMMAND_DAMAGED: u32 = 7 << 17;
    pub(crate) const DATA_TIMEOUT: u32 = 1 << 20;
    /// CRC or end bit.
    pub(crate) const DATA_DAMAGED: u32 = 3 << 21;
    pub(crate) const AUTO_COMMAND: u32 = 1 << 24;
    pub(crate) const ADMA: u32 = 1 << 25;

    pub(crate) const COMMAND_ERRORS: u32 = COMMAND_TIMEOUT | COMMAND_DAMAGED;
    pub(crate) const ERRORS: u32 =
        COMMAND_ERRORS | DATA_TIMEOUT | DATA_DAMAGED | AUTO_COMMAND | ADMA;
    /// All that the driver looks at.
    pub(crate) const USED: u32 =
        COMMAND_COMPLETE | TRANSFER_COMPLETE | CARD_INSERTED | CARD_REMOVED | ERRORS;
}

/// Bits of HOST_CONTROL.
pub(crate) mod host_control {
    pub(crate) const FOUR_LANES: u8 = 1 << 1;
    pub(crate) const HIGH_SPEED: u8 = 1 << 2;
    /// DMA by ADMA2, with addresses of 32 bits; SDMA without these bits.
    pub(crate) const ADMA2: u8 = 2 << 3;
}

/// POWER: on, at 3.3 V.
pub(crate) const POWER_3V3: u8 = 7 << 1 | 1;

/// Bits of CLOCK.
pub(crate) mod clock {
    pub(crate) const RUNS: u16 = 1 << 0;
    pub(crate) const IS_STABLE: u16 = 1 << 1;
    pub(crate) const GOES_TO_CARD: u16 = 1 << 2;
}

/// Bits of RESET.
pub(crate) mod reset {
    pub(crate) const ALL: u8 = 1 << 0;
    pub(crate) const COMMAND_AND_DATA: u8 = 3 << 1;
}

/// A descriptor of ADMA2 has 8 bytes: attributes, length (0: 64 KiB), address.
pub(crate) mod descriptor {
    pub(crate) const BYTES: u32 = 8;
    /// Valid, and a transfer.
    pub(crate) const TRANSFER: u16 = 0x21;
    pub(crate) const IS_LAST: u16 = 0x02;
    pub(crate) const TRANSFER_BYTES_MAX: u32 = 0x1_0000;
}
