//! Checks requests against the table of errors in the [module](super).

use super::super::errno::Errno;
use super::super::flags::ExportFlags;
use super::super::handshake::{Agreed, Headers};
use super::super::number::{cmd, cmd_flag};
use super::command::Command;
use super::header::Header;

/// The bytes before the data in a chunk of a READ. The length of the chunk, which includes them, is
/// sent in 32 bits.
const CHUNK_OFFSET_BYTES: u32 = 8;

/// Returns the command of a request, or the error to answer it with.
#[inline]
pub(super) fn check(header: &Header, agreed: &Agreed) -> Result<Command, Errno> {
    let command = command(header, agreed)?;
    flags(header, command, agreed)?;
    if command.writes() && agreed.flags.contains(ExportFlags::READ_ONLY) {
        return Err(Errno::NotPermitted);
    }
    if command == Command::Flush {
        let reserved = header.offset | header.len;
        return if reserved == 0 { Ok(command) } else { Err(Errno::Invalid) };
    }
    range(header, command, agreed)?;
    length(header, command, agreed)?;
    Ok(command)
}

fn command(header: &Header, agreed: &Agreed) -> Result<Command, Errno> {
    let no_hole = header.flags & cmd_flag::NO_HOLE != 0;
    let fast = header.flags & cmd_flag::FAST_ZERO != 0;
    match header.kind {
        cmd::READ => Ok(Command::Read),
        cmd::WRITE => Ok(Command::Write),
        cmd::FLUSH if agreed.flags.contains(ExportFlags::FLUSH) => Ok(Command::Flush),
        cmd::TRIM if agreed.flags.contains(ExportFlags::TRIM) => Ok(Command::Trim),
        cmd::CACHE if agreed.flags.contains(ExportFlags::CACHE) => Ok(Command::Cache),
        cmd::WRITE_ZEROES if agreed.flags.contains(ExportFlags::WRITE_ZEROES) => {
            Ok(Command::WriteZeroes { no_hole, fast })
        }
        cmd::BLOCK_STATUS if !header.contexts.is_empty() => Ok(Command::BlockStatus),
        _ => Err(Errno::Invalid),
    }
}

/// Checks that the flags are known, offered and valid for the command.
fn flags(header: &Header, command: Command, agreed: &Agreed) -> Result<(), Errno> {
    let extended = agreed.headers == Headers::Extended;
    let own = match command {
        Command::Read => bits_if_offered(agreed, ExportFlags::DF, cmd_flag::DF),
        Command::Write if extended => cmd_flag::PAYLOAD_LEN,
        Command::WriteZeroes { .. } => {
            cmd_flag::NO_HOLE | bits_if_offered(agreed, ExportFlags::FAST_ZERO, cmd_flag::FAST_ZERO)
        }
        Command::BlockStatus => {
            cmd_flag::REQ_ONE
                | bits_if_offered(agreed, ExportFlags::BLOCK_STATUS_PAYLOAD, cmd_flag::PAYLOAD_LEN)
        }
        Command::Write | Command::Flush | Command::Trim | Command::Cache => 0,
    };
    let legal = own | bits_if_offered(agreed, ExportFlags::FUA, cmd_flag::FUA);
    if header.flags & !legal == 0 { Ok(()) } else { Err(Errno::Invalid) }
}

fn bits_if_offered(agreed: &Agreed, flag: ExportFlags, bits: u16) -> u16 {
    if agreed.flags.contains(flag) { bits } else { 0 }
}

/// Checks that the range lies within the export and, where that matters, is aligned.
fn range(header: &Header, command: Command, agreed: &Agreed) -> Result<(), Errno> {
    let end = header.offset.checked_add(header.len);
    if end.is_none_or(|end| end > agreed.size_bytes) {
        return Err(match command {
            Command::Write | Command::WriteZeroes { .. } => Errno::NoSpace,
            _ => Errno::Invalid,
        });
    }
    debug_assert!(agreed.blocks.minimum.is_power_of_two(), "block sizes of a checked export");
    let within_block = u64::from(agreed.blocks.minimum) - 1;
    if (header.offset | header.len) & within_block == 0 {
        return Ok(());
    }
    match command {
        // The session keeps only the whole blocks of the range.
        Command::Trim => Ok(()),
        Command::WriteZeroes { .. } if agreed.blocks.partial_zeroes => Ok(()),
        _ => Err(Errno::Invalid),
    }
}

/// Checks that the length is possible for the command.
fn length(header: &Header, command: Command, agreed: &Agreed) -> Result<(), Errno> {
    let maximum = agreed.blocks.maximum;
    match command {
        Command::Read if header.len > u64::from(maximum.min(u32::MAX - CHUNK_OFFSET_BYTES)) => {
            Err(match agreed.headers {
                Headers::Simple => Errno::Invalid,
                Headers::Structured | Headers::Extended => Errno::Overflow,
            })
        }
        Command::Write if header.len > u64::from(maximum) => Err(Errno::Invalid),
        Command::BlockStatus if header.len == 0 => Err(Errno::Invalid),
        _ => Ok(()),
    }
}
