//! The commands that a host sends, each with its constructor.

use super::address::Rca;
use super::data::{Data, Direction};
use super::erase::{MmcErase, SdErase};
use super::opcode::Opcode;
use super::response::ResponseKind;
use crate::register::extension::ExtensionPlace;
use crate::register::switch::Group;
use core::fmt;

/// A command with its argument, its response and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command's meaning.
    pub opcode: Opcode,
    /// Its argument.
    pub argument: u32,
    /// The form of the card's response.
    pub response: ResponseKind,
    /// The data that is transferred.
    pub data: Option<Data>,
}

/// The announcement of CMD23 (eMMC; SD takes the count alone).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCount {
    /// Blocks of the read or write that follows; 0: until CMD12.
    pub blocks: u16,
    /// Bit 31: the write happens whole or, block by block, not at all.
    pub reliable: bool,
    /// Bit 30: what follows is a packed command.
    pub packed: bool,
    /// Bit 29: the data is for the faster area.
    pub tagged: bool,
    /// Bit 24: the data goes to the medium past the cache.
    pub forced: bool,
}

impl BlockCount {
    /// A count of `blocks` without flags.
    #[must_use]
    pub const fn new(blocks: u16) -> Self {
        Self { blocks, reliable: false, packed: false, tagged: false, forced: false }
    }

    /// Returns the argument of CMD23.
    #[must_use]
    pub fn argument(self) -> u32 {
        u32::from(self.reliable) << 31
            | u32::from(self.packed) << 30
            | u32::from(self.tagged) << 29
            | u32::from(self.forced) << 24
            | u32::from(self.blocks)
    }
}

/// The way in which CMD6 of eMMC changes a byte of EXT_CSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchAccess {
    /// The bits that the value has are set.
    SetBits,
    /// The bits that the value has are cleared.
    ClearBits,
    /// The value is written.
    WriteByte,
}

/// Commands that identify and select cards.
impl Command {
    /// CMD0: return to the state after power-up.
    #[must_use]
    pub fn go_idle() -> Self {
        Self::plain(Opcode::GoIdle, 0)
    }

    /// CMD1 of eMMC: report whether the device is ready, and its OCR. See
    /// [`MmcOcr`](crate::register::ocr::MmcOcr) for `ocr`; 0 only asks.
    #[must_use]
    pub fn send_op_cond(ocr: u32) -> Self {
        Self::plain(Opcode::SendOpCond, ocr)
    }

    /// ACMD41 of SD: report whether the card is ready, and its OCR. See
    /// [`SdOcr`](crate::register::ocr::SdOcr) for `ocr`.
    #[must_use]
    pub(crate) fn sd_send_op_cond(ocr: u32) -> Self {
        Self::plain(Opcode::SdSendOpCond, ocr)
    }

    /// CMD5 of SDIO: report an I/O card. Memory cards do not answer.
    #[must_use]
    pub(crate) fn io_send_op_cond() -> Self {
        Self::plain(Opcode::IoSendOpCond, 0)
    }

    /// CMD8 of SD: confirm 2.7 to 3.6 V, and return `pattern`. Cards before 2.00 do not answer.
    #[must_use]
    pub(crate) fn send_if_cond(pattern: u8) -> Self {
        Self::plain(Opcode::SendIfCond, 0x100 | u32::from(pattern))
    }

    /// CMD11 of SD: change signals to 1.8 V.
    #[must_use]
    pub(crate) fn voltage_switch() -> Self {
        Self::plain(Opcode::VoltageSwitch, 0)
    }

    /// CMD2: all cards send their CID.
    #[must_use]
    pub fn all_send_cid() -> Self {
        Self::plain(Opcode::AllSendCid, 0)
    }

    /// CMD3 of eMMC: take the address `rca`.
    #[must_use]
    pub fn set_relative_addr(rca: Rca) -> Self {
        Self::plain(Opcode::SetRelativeAddr, rca.argument())
    }

    /// CMD3 of SD: choose an address.
    #[must_use]
    pub(crate) fn send_relative_addr() -> Self {
        Self::plain(Opcode::SendRelativeAddr, 0)
    }

    /// CMD9: send the CSD.
    #[must_use]
    pub fn send_csd(rca: Rca) -> Self {
        Self::plain(Opcode::SendCsd, rca.argument())
    }

    /// CMD7: be selected.
    #[must_use]
    pub fn select(rca: Rca) -> Self {
        Self::plain(Opcode::Select, rca.argument())
    }

    /// CMD7 with an address that no card has: no card is selected.
    #[must_use]
    pub fn deselect() -> Self {
        Self::plain(Opcode::Deselect, 0)
    }

    /// CMD5 of eMMC: sleep.
    #[must_use]
    pub fn sleep(rca: Rca) -> Self {
        Self::plain(Opcode::Sleep, rca.argument() | 1 << 15)
    }

    /// CMD5 of eMMC: wake up.
    #[must_use]
    pub fn awake(rca: Rca) -> Self {
        Self::plain(Opcode::Awake, rca.argument())
    }

    /// CMD55: the next command is an application command (ACMD). `rca` is 0 before a card has an
    /// address.
    #[must_use]
    pub fn application(rca: Rca) -> Self {
        Self::plain(Opcode::Application, rca.argument())
    }
}

/// Commands for registers and settings.
impl Command {
    /// CMD8 of eMMC: send EXT_CSD.
    #[must_use]
    pub fn send_ext_csd() -> Self {
        Self::reading(Opcode::SendExtCsd, 0, 512)
    }

    /// ACMD51 of SD: send the SCR.
    #[must_use]
    pub fn send_scr() -> Self {
        Self::reading(Opcode::SendScr, 0, 8)
    }

    /// ACMD13 of SD: send the SD status.
    #[must_use]
    pub(crate) fn sd_status() -> Self {
        Self::reading(Opcode::SdStatus, 0, 64)
    }

    /// CMD6 of eMMC: change byte `index` of EXT_CSD.
    ///
    /// # Panics
    ///
    /// Panics if `index` is above 191: properties cannot be written.
    #[must_use]
    pub fn switch(access: SwitchAccess, index: u16, value: u8) -> Self {
        assert!(index < 192, "EXT_CSD byte {index} cannot be written: only bytes 0 to 191 can");
        let access = match access {
            SwitchAccess::SetBits => 1,
            SwitchAccess::ClearBits => 2,
            SwitchAccess::WriteByte => 3,
        };
        Self::plain(Opcode::Switch, access << 24 | u32::from(index) << 16 | u32::from(value) << 8)
    }

    /// CMD48 of SD: send 512 bytes of the extension registers from `place` on (5.7.2.4).
    #[must_use]
    pub fn read_extension(place: ExtensionPlace) -> Self {
        // LEN, in bits 8 to 0, is one less than the bytes that are wanted.
        Self::reading(Opcode::ReadExtension, place.argument() | 511, 512)
    }

    /// CMD48 of SD: send the byte of the extension registers at `place`, in front of 511 bytes that
    /// mean nothing.
    #[must_use]
    pub fn read_extension_byte(place: ExtensionPlace) -> Self {
        Self::reading(Opcode::ReadExtension, place.argument(), 512)
    }

    /// CMD49 of SD: write the byte of the extension registers at `place` (5.7.2.5). It is the first
    /// of a block of 512 bytes, whose others mean nothing. The card is then busy, up to 1 s.
    #[must_use]
    pub fn write_extension_byte(place: ExtensionPlace) -> Self {
        Self::blocks(Opcode::WriteExtension, place.argument(), 1)
    }

    /// CMD6 of SD, mode 0: list the functions. None changes.
    #[must_use]
    pub fn check_functions() -> Self {
        Self::reading(Opcode::SwitchFunction, 0x00ff_ffff, 64)
    }

    /// CMD6 of SD, mode 1: select function `number` of `group`; other groups stay.
    ///
    /// # Panics
    ///
    /// Panics if `number` is above 14: 15 means "leave it".
    #[must_use]
    pub fn set_function(group: Group, number: u8) -> Self {
        assert!(number < 15, "function {number} cannot be chosen: only 0 to 14 can");
        let shift = 4 * group.index();
        let argument = 0x80ff_ffff & !(0xf << shift) | u32::from(number) << shift;
        Self::reading(Opcode::SwitchFunction, argument, 64)
    }

    /// ACMD6 of SD: 4 lanes of data, else 1.
    #[must_use]
    pub(crate) fn set_bus_width(four: bool) -> Self {
        Self::plain(Opcode::SetBusWidth, if four { 2 } else { 0 })
    }

    /// CMD16: set the block length in bytes. Cards above 2 GB always use 512.
    #[must_use]
    pub fn set_block_len(bytes: u32) -> Self {
        Self::plain(Opcode::SetBlockLen, bytes)
    }

    /// CMD19 of SD: send a known block of 64 bytes, for tuning.
    #[must_use]
    pub(crate) fn sd_tuning_block() -> Self {
        Self::reading(Opcode::SdTuningBlock, 0, 64)
    }

    /// CMD21 of eMMC: send a known block for tuning, of 128 bytes on 8 lanes and of 64 on 4.
    #[must_use]
    pub(crate) fn mmc_tuning_block(eight_lanes: bool) -> Self {
        Self::reading(Opcode::MmcTuningBlock, 0, if eight_lanes { 128 } else { 64 })
    }

    /// CMD13: send the status.
    #[must_use]
    pub fn send_status(rca: Rca) -> Self {
        Self::plain(Opcode::SendStatus, rca.argument())
    }

    /// CMD13 with its lowest bit set: interrupt the present operation (HPI).
    #[must_use]
    pub fn interrupt_by_status(rca: Rca) -> Self {
        Self::plain(Opcode::InterruptByStatus, rca.argument() | 1)
    }

    /// CMD12 with its lowest bit set: interrupt the present operation (HPI).
    #[must_use]
    pub fn interrupt_by_stop(rca: Rca) -> Self {
        Self::plain(Opcode::InterruptByStop, rca.argument() | 1)
    }
}

/// Commands for data. Addresses come from [`Addressing::argument`](super::Addressing::argument);
/// blocks have 512 bytes.
impl Command {
    /// CMD17: read one block.
    #[must_use]
    pub fn read_single(address: u32) -> Self {
        Self::blocks(Opcode::ReadSingle, address, 1)
    }

    /// CMD18: read blocks, until the count that CMD23 gave, or CMD12.
    #[must_use]
    pub fn read_multiple(address: u32, blocks: u16) -> Self {
        Self::blocks(Opcode::ReadMultiple, address, blocks)
    }

    /// CMD24: write one block.
    #[must_use]
    pub fn write_single(address: u32) -> Self {
        Self::blocks(Opcode::WriteSingle, address, 1)
    }

    /// CMD25: write blocks, until the count that CMD23 gave, or CMD12.
    #[must_use]
    pub fn write_multiple(address: u32, blocks: u16) -> Self {
        Self::blocks(Opcode::WriteMultiple, address, blocks)
    }

    /// CMD12: end the transfer. After a write the card is busy with its data; after a read it is
    /// not.
    #[must_use]
    pub fn stop_transmission(after: Direction) -> Self {
        let response = match after {
            Direction::Read => ResponseKind::R1,
            Direction::Write => ResponseKind::R1b,
        };
        Self { response, ..Self::plain(Opcode::StopTransmission, 0) }
    }

    /// CMD23 of eMMC: set the block count of the next read or write.
    #[must_use]
    pub fn set_block_count(count: BlockCount) -> Self {
        Self::plain(Opcode::SetBlockCount, count.argument())
    }

    /// ACMD22 of SD: send the number of good blocks of the last write.
    #[must_use]
    pub fn send_written_blocks() -> Self {
        Self::reading(Opcode::SendWrittenBlocks, 0, 4)
    }

    /// CMD35 of eMMC: the first block, or erase group, of an erase.
    #[must_use]
    pub fn mmc_erase_start(address: u32) -> Self {
        Self::plain(Opcode::MmcEraseStart, address)
    }

    /// CMD36 of eMMC: the last block, or erase group, of an erase.
    #[must_use]
    pub fn mmc_erase_end(address: u32) -> Self {
        Self::plain(Opcode::MmcEraseEnd, address)
    }

    /// CMD38 of eMMC: erase the range of CMD35 and CMD36.
    #[must_use]
    pub fn mmc_erase(kind: MmcErase) -> Self {
        Self::plain(Opcode::Erase, kind.argument())
    }

    /// CMD32 of SD: the first block of an erase.
    #[must_use]
    pub(crate) fn sd_erase_start(address: u32) -> Self {
        Self::plain(Opcode::SdEraseStart, address)
    }

    /// CMD33 of SD: the last block of an erase.
    #[must_use]
    pub(crate) fn sd_erase_end(address: u32) -> Self {
        Self::plain(Opcode::SdEraseEnd, address)
    }

    /// CMD38 of SD: erase the range of CMD32 and CMD33.
    #[must_use]
    pub(crate) fn sd_erase(kind: SdErase) -> Self {
        Self::plain(Opcode::Erase, kind.argument())
    }
}

impl Command {
    /// A command without data, with the response of its opcode.
    pub(super) fn plain(opcode: Opcode, argument: u32) -> Self {
        Self { opcode, argument, response: opcode.row().response, data: None }
    }

    /// A command that reads one block of `bytes`.
    pub(super) fn reading(opcode: Opcode, argument: u32, bytes: u16) -> Self {
        debug_assert!(
            bytes > 0 && bytes <= 512,
            "{opcode} of {bytes} bytes: a block has at most 512"
        );
        let data = Data { direction: Direction::Read, block_bytes: bytes, blocks: 1 };
        Self { data: Some(data), ..Self::plain(opcode, argument) }
    }

    /// A command that transfers `blocks` of 512 bytes.
    pub(super) fn blocks(opcode: Opcode, argument: u32, blocks: u16) -> Self {
        let direction = match opcode {
            Opcode::ReadSingle | Opcode::ReadMultiple | Opcode::ExecuteRead => Direction::Read,
            _ => Direction::Write,
        };
        let data = Data { direction, block_bytes: 512, blocks };
        Self { data: Some(data), ..Self::plain(opcode, argument) }
    }
}

/// The usual notation: `CMD18 (0x00001000)`.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#010x})", self.opcode, self.argument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Addressing;
    use crate::register::ext_csd::index;
    use crate::register::switch::Group;
    use std::string::ToString;

    #[test]
    fn arguments_have_their_bits_where_the_standards_put_them() {
        let rca = Rca(0x1234);
        let hs = Command::switch(SwitchAccess::WriteByte, index::HS_TIMING, 1);
        let place = ExtensionPlace::of_address(2 << 18 | 1 << 9 | 16);
        for (command, text) in [
            (Command::go_idle(), "CMD0 (0x00000000)"),
            (Command::send_op_cond(0x40ff_8080), "CMD1 (0x40ff8080)"),
            (Command::set_relative_addr(rca), "CMD3 (0x12340000)"),
            (Command::sleep(rca), "CMD5 (0x12348000)"),
            (hs, "CMD6 (0x03b90100)"),
            (Command::switch(SwitchAccess::SetBits, index::BKOPS_EN, 2), "CMD6 (0x01a30200)"),
            (Command::check_functions(), "CMD6 (0x00ffffff)"),
            (Command::set_function(Group::AccessMode, 3), "CMD6 (0x80fffff3)"),
            (Command::set_function(Group::PowerLimit, 1), "CMD6 (0x80ff1fff)"),
            (Command::set_bus_width(true), "ACMD6 (0x00000002)"),
            (Command::send_if_cond(0xaa), "CMD8 (0x000001aa)"),
            (Command::interrupt_by_status(rca), "CMD13 (0x12340001)"),
            (Command::interrupt_by_stop(rca), "CMD12 (0x12340001)"),
            (Command::sd_send_op_cond(0x51ff_8000), "ACMD41 (0x51ff8000)"),
            (Command::read_multiple(0x1000, 8), "CMD18 (0x00001000)"),
            (Command::mmc_erase(MmcErase::Discard), "CMD38 (0x00000003)"),
            (Command::sd_erase(SdErase::Discard), "CMD38 (0x00000001)"),
            (Command::io_send_op_cond(), "CMD5 (0x00000000)"),
            (Command::voltage_switch(), "CMD11 (0x00000000)"),
            (Command::all_send_cid(), "CMD2 (0x00000000)"),
            (Command::send_relative_addr(), "CMD3 (0x00000000)"),
            (Command::send_csd(rca), "CMD9 (0x12340000)"),
            (Command::select(rca), "CMD7 (0x12340000)"),
            (Command::deselect(), "CMD7 (0x00000000)"),
            (Command::awake(rca), "CMD5 (0x12340000)"),
            (Command::application(rca), "CMD55 (0x12340000)"),
            (Command::send_ext_csd(), "CMD8 (0x00000000)"),
            (Command::send_scr(), "ACMD51 (0x00000000)"),
            // Function 2 in bits 30 to 27, page 1 in 25 to 18, byte 16 in 17 to 9, 511 in 8 to 0.
            (Command::read_extension(place), "CMD48 (0x100421ff)"),
            // LEN is 0 for one byte. Bit 26 would make the second byte of the data a mask.
            (Command::read_extension_byte(place), "CMD48 (0x10042000)"),
            (Command::write_extension_byte(place), "CMD49 (0x10042000)"),
            (Command::sd_status(), "ACMD13 (0x00000000)"),
            (Command::switch(SwitchAccess::ClearBits, 191, 255), "CMD6 (0x02bfff00)"),
            (Command::set_function(Group::CommandSystem, 14), "CMD6 (0x80ffffef)"),
            (Command::set_bus_width(false), "ACMD6 (0x00000000)"),
            (Command::set_block_len(512), "CMD16 (0x00000200)"),
            (Command::sd_tuning_block(), "CMD19 (0x00000000)"),
            (Command::mmc_tuning_block(false), "CMD21 (0x00000000)"),
            (Command::send_status(rca), "CMD13 (0x12340000)"),
            (Command::stop_transmission(Direction::Read), "CMD12 (0x00000000)"),
            (Command::send_written_blocks(), "ACMD22 (0x00000000)"),
        ] {
            assert_eq!(command.to_string(), text);
        }
    }

    #[test]
    fn the_flags_of_a_block_count_are_bits_31_30_29_and_24() {
        let count = BlockCount::new(0x1234);
        assert_eq!(block_count_argument(count), 0x1234);
        assert_eq!(block_count_argument(BlockCount { reliable: true, ..count }), 0x8000_1234);
        assert_eq!(block_count_argument(BlockCount { packed: true, ..count }), 0x4000_1234);
        assert_eq!(block_count_argument(BlockCount { tagged: true, ..count }), 0x2000_1234);
        assert_eq!(block_count_argument(BlockCount { forced: true, ..count }), 0x0100_1234);
    }

    fn block_count_argument(count: BlockCount) -> u32 {
        Command::set_block_count(count).argument
    }

    #[test]
    fn the_command_decides_the_direction_of_its_data() {
        assert_eq!(data_of(Command::read_multiple(0, 3)), Some((Direction::Read, 1536)));
        assert_eq!(data_of(Command::write_single(0)), Some((Direction::Write, 512)));
        assert_eq!(data_of(Command::send_scr()), Some((Direction::Read, 8)));
        for (command, bytes) in [
            (Command::mmc_tuning_block(true), 128),
            (Command::mmc_tuning_block(false), 64),
            (Command::sd_tuning_block(), 64),
            (Command::send_written_blocks(), 4),
            (Command::send_ext_csd(), 512),
            (Command::read_extension(ExtensionPlace::GENERAL), 512),
            (Command::sd_status(), 64),
            (Command::check_functions(), 64),
            (Command::set_function(Group::AccessMode, 1), 64),
        ] {
            assert_eq!(data_of(command), Some((Direction::Read, bytes)), "{command}");
        }
        assert_eq!(data_of(Command::send_status(Rca(1))), None);
        assert!(!Command::stop_transmission(Direction::Read).response.has_busy());
        assert!(Command::stop_transmission(Direction::Write).response.has_busy());
    }

    fn data_of(command: Command) -> Option<(Direction, u32)> {
        command.data.map(|data| (data.direction, data.bytes()))
    }

    #[test]
    fn an_address_beyond_32_bits_is_refused() {
        assert_eq!(Addressing::Bytes.argument(8), Some(4096));
        assert_eq!(Addressing::Bytes.argument((1 << 23) - 1), Some(0xffff_fe00));
        assert_eq!(Addressing::Bytes.argument(1 << 23), None);
        assert_eq!(Addressing::Bytes.argument(u64::MAX), None);
        assert_eq!(Addressing::Sectors.argument(0xffff_ffff), Some(0xffff_ffff));
        assert_eq!(Addressing::Sectors.argument(1 << 32), None);
    }
}
