//! blktrace's binary records, in the byte order of the traced machine.
//!
//! ```text
//! byte  0  u32  magic: 0x656174 and the version, 7
//!       4  u32  sequence
//!       8  u64  time, nanoseconds
//!      16  u64  sector
//!      24  u32  bytes
//!      28  u32  action: the event in the lower half, its categories in the upper
//!      32  u32  pid
//!      36  u32  device: major in the upper 12 bits, minor in the lower 20
//!      40  u32  CPU
//!      44  u16  error
//!      46  u16  bytes that follow the record
//! ```
//!
//! Each processor has a file; the files are read in parallel and merged by time. A single file, as
//! `blkparse -d` writes it, is read in the same way.

use super::super::disks::Disks;
use super::super::error::{Place, Position, TraceError, TraceFault};
use super::super::order::Order;
use super::super::record::{Entry, EntryKind, Issue};
use super::super::source::Part;
use super::fields::on_sectors;
use blockyard::bio::{Flags, Op};
use blockyard::unit::SECTOR_BYTES;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const RECORD_BYTES: usize = 48;

/// Categories: bits of the upper half of an action.
mod category {
    pub(super) const WRITE: u16 = 1 << 1;
    pub(super) const FLUSH: u16 = 1 << 2;
    pub(super) const SYNC: u16 = 1 << 3;
    pub(super) const PASSTHROUGH: u16 = 1 << 9;
    pub(super) const NOTIFY: u16 = 1 << 10;
    pub(super) const META: u16 = 1 << 12;
    pub(super) const DISCARD: u16 = 1 << 13;
    pub(super) const FUA: u16 = 1 << 15;
}

/// The event: the lower half of an action, without the bit for control groups.
mod action {
    pub(super) const QUEUE: u16 = 1;
    pub(super) const ISSUE: u16 = 7;
    pub(super) const COMPLETE: u16 = 8;
    pub(super) const PLUG: u16 = 9;
    pub(super) const UNPLUG: u16 = 10;
    /// A thread that sleeps passes on the requests of its plug: blkparse's `UT`.
    pub(super) const UNPLUG_TO_SLEEP: u16 = 11;
    pub(super) const INSERT: u16 = 12;
    pub(super) const REMAP: u16 = 15;
    pub(super) const OF_CONTROL_GROUP: u16 = 1 << 8;
}

/// Whether `bytes` begins with a record, in either byte order.
pub(in super::super) fn begins_with_magic(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|word| ByteOrder::of(*word).is_some())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn of(magic: [u8; 4]) -> Option<Self> {
        if is_magic(u32::from_le_bytes(magic)) {
            return Some(Self::Little);
        }
        is_magic(u32::from_be_bytes(magic)).then_some(Self::Big)
    }

    const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// Whether a word is a record's magic number, whatever its version.
fn is_magic(word: u32) -> bool {
    word & !0xff == MAGIC
}

/// A record without the bytes that follow it.
#[derive(Clone, Copy, Debug)]
struct Raw {
    magic: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    cpu: u32,
    follows: u16,
}

impl Raw {
    fn parse(order: ByteOrder, bytes: &[u8; RECORD_BYTES]) -> Self {
        debug_assert!(ByteOrder::of(field(bytes, 0)) == Some(order), "the magic gives the order");
        Self {
            magic: order.u32(field(bytes, 0)),
            time_ns: order.u64(field(bytes, 8)),
            sector: order.u64(field(bytes, 16)),
            bytes: order.u32(field(bytes, 24)),
            action: order.u32(field(bytes, 28)),
            pid: order.u32(field(bytes, 32)),
            device: order.u32(field(bytes, 36)),
            cpu: order.u32(field(bytes, 40)),
            follows: order.u16(field(bytes, 46)),
        }
    }
}

/// Returns the `N` bytes of a record from `at` on.
fn field<const N: usize>(bytes: &[u8; RECORD_BYTES], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("a field should lie within the record")
}

/// Reads the files of all processors.
#[derive(Debug)]
pub(in super::super) struct Blktrace {
    files: Vec<OneFile>,
    disks: Disks,
    /// The file of the entry returned last.
    last: usize,
}

/// Reads one file.
struct OneFile {
    name: Arc<str>,
    bytes: Box<dyn Read>,
    order: Option<ByteOrder>,
    /// First byte of the record read last.
    at_byte: u64,
    next_byte: u64,
    sorter: Order,
    ended: bool,
    /// The earliest entry that was not returned yet.
    head: Option<Entry>,
}

impl fmt::Debug for OneFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneFile")
            .field("name", &self.name)
            .field("next_byte", &self.next_byte)
            .finish_non_exhaustive()
    }
}

impl Blktrace {
    pub(in super::super) fn new(parts: &[Part]) -> Result<Self, TraceError> {
        let mut files = Vec::new();
        let mut disks = Disks::default();
        for part in parts {
            let mut file = OneFile {
                name: Arc::clone(&part.name),
                bytes: part.open()?,
                order: None,
                at_byte: 0,
                next_byte: 0,
                sorter: Order::default(),
                ended: false,
                head: None,
            };
            file.advance(&mut disks)?;
            files.push(file);
        }
        Ok(Self { files, disks, last: 0 })
    }

    pub(in super::super) fn disks(&self) -> &[String] {
        self.disks.names()
    }

    pub(in super::super) fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        let at = |(index, file): (usize, &OneFile)| Some((file.head?.at_ns, index));
        let Some((_, earliest)) = self.files.iter().enumerate().filter_map(at).min() else {
            return Ok(None);
        };
        self.last = earliest;
        let file = &mut self.files[earliest];
        let entry = file.head;
        file.advance(&mut self.disks)?;
        Ok(entry)
    }

    /// Returns how many records stood too late in their files, and the largest delay, nanoseconds.
    pub(in super::super) fn moved(&self) -> (u64, u64) {
        let sorters = self.files.iter().map(|file| &file.sorter);
        let delay_ns_max = sorters.clone().map(|sorter| sorter.moved_ns_max).max().unwrap_or(0);
        (sorters.map(|sorter| sorter.moved).sum(), delay_ns_max)
    }

    pub(in super::super) fn fault(&self, fault: TraceFault) -> TraceError {
        self.files[self.last].fault(fault)
    }
}

impl OneFile {
    fn fault(&self, fault: TraceFault) -> TraceError {
        let position = Position::Byte(self.at_byte);
        TraceError { place: Place { file: Arc::clone(&self.name), position }, fault }
    }

    /// Reads on until the next head is known.
    fn advance(&mut self, disks: &mut Disks) -> Result<(), TraceError> {
        while !self.ended && self.sorter.wants() {
            match self.read(disks)? {
                None => self.ended = true,
                Some(entry) => self
                    .sorter
                    .push(entry)
                    .map_err(|by_ns| self.fault(TraceFault::Backwards { by_ns }))?,
            }
        }
        let next = self.sorter.pop();
        if let (Some(head), Some(next)) = (&self.head, &next) {
            debug_assert!(head.at_ns <= next.at_ns, "[records-in-time-order]");
        }
        self.head = next;
        Ok(())
    }

    /// Reads the next record; `None` at the end of the file.
    fn read(&mut self, disks: &mut Disks) -> Result<Option<Entry>, TraceError> {
        loop {
            let mut bytes = [0; RECORD_BYTES];
            self.at_byte = self.next_byte;
            let read = self.fill(&mut bytes)?;
            if read == 0 {
                return Ok(None);
            }
            if read < RECORD_BYTES {
                let needed = RECORD_BYTES as u64;
                let left = read as u64;
                return Err(self.fault(TraceFault::Truncated { needed, left }));
            }
            let magic = *bytes.first_chunk().expect("a record should begin with its magic");
            let Some(order) = ByteOrder::of(magic) else {
                return Err(self.fault(TraceFault::BadMagic(u32::from_be_bytes(magic))));
            };
            if *self.order.get_or_insert(order) != order {
                return Err(self.fault(TraceFault::OtherByteOrder));
            }
            let raw = Raw::parse(order, &bytes);
            if raw.magic & 0xff != VERSION {
                let format = "blktrace";
                let known = "7";
                let found = raw.magic & 0xff;
                return Err(self.fault(TraceFault::Version { format, found, known }));
            }
            self.pass_over(raw.follows)?;
            let entry = entry(&raw, disks).map_err(|fault| self.fault(fault))?;
            if let Some(entry) = entry {
                return Ok(Some(entry));
            }
        }
    }

    /// Reads until `bytes` is full or the file ends. Returns the number of bytes read.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.bytes.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(TraceFault::Unreadable(error.kind()))),
            }
        }
        debug_assert!(filled <= bytes.len());
        self.next_byte += filled as u64;
        Ok(filled)
    }

    fn pass_over(&mut self, follows: u16) -> Result<(), TraceError> {
        let mut bytes = [0; 256];
        let mut left = usize::from(follows);
        while left > 0 {
            let piece = left.min(bytes.len());
            let read = self.fill(&mut bytes[..piece])?;
            if read < piece {
                let needed = RECORD_BYTES as u64 + u64::from(follows);
                let left = self.next_byte - self.at_byte;
                return Err(self.fault(TraceFault::Truncated { needed, left }));
            }
            left -= piece;
        }
        Ok(())
    }
}

/// Returns the entry for a record; `None` for a notice, which has no place in the order of time.
fn entry(raw: &Raw, disks: &mut Disks) -> Result<Option<Entry>, TraceFault> {
    let [c1, c0, a1, a0] = raw.action.to_be_bytes();
    let categories = u16::from_be_bytes([c1, c0]);
    let happened = u16::from_be_bytes([a1, a0]) & !action::OF_CONTROL_GROUP;
    let has = |category: u16| categories & category != 0;
    if has(category::NOTIFY) {
        return Ok(None);
    }
    let at_ns = raw.time_ns;
    let known = match happened {
        action::REMAP => Err(EntryKind::Remap),
        action::PLUG => Err(EntryKind::Plug { pid: raw.pid }),
        action::UNPLUG | action::UNPLUG_TO_SLEEP => Err(EntryKind::Unplug { pid: raw.pid }),
        action::INSERT => Err(EntryKind::Insert { pid: raw.pid }),
        action::QUEUE | action::ISSUE | action::COMPLETE if !has(category::PASSTHROUGH) => {
            operation(raw, &has).ok_or(EntryKind::Other)
        }
        _ => Err(EntryKind::Other),
    };
    let (op, flags) = match known {
        Ok(known) => known,
        Err(kind) => return Ok(Some(Entry { at_ns, kind })),
    };
    let offset = match op {
        Op::Flush => 0,
        _ => raw.sector.checked_mul(SECTOR_BYTES.into()).ok_or(TraceFault::Beyond)?,
    };
    let (offset_bytes, len_bytes) = on_sectors(offset, raw.bytes.into())?;
    let disk = disks.number(&format!("{},{}", raw.device >> 20, raw.device & 0xf_ffff))?;
    if happened == action::COMPLETE {
        let kind = EntryKind::Complete { disk, offset_bytes, len_bytes };
        return Ok(Some(Entry { at_ns, kind }));
    }
    let cpu = u16::try_from(raw.cpu).map_err(|_| TraceFault::Value {
        field: "CPU",
        found: raw.cpu.to_string(),
        expected: "a number below 65536",
    })?;
    let pid = raw.pid;
    let took = None;
    let issue = Issue { disk, cpu, pid, op, offset_bytes, len_bytes, flags, took, joins: false };
    let kind = match happened {
        action::QUEUE => EntryKind::Queue(issue),
        _ => EntryKind::Dispatch(issue),
    };
    Ok(Some(Entry { at_ns, kind }))
}

/// Returns the operation and flags of a record; `None` if it is not an I/O.
fn operation(raw: &Raw, has: &dyn Fn(u16) -> bool) -> Option<(Op, Flags)> {
    let plain =
        flag_if(has(category::SYNC), Flags::SYNC) | flag_if(has(category::META), Flags::META);
    if raw.bytes == 0 {
        return has(category::FLUSH).then_some((Op::Flush, plain));
    }
    Some(if has(category::DISCARD) {
        (Op::Discard, plain)
    } else if has(category::WRITE) {
        let durable = flag_if(has(category::FLUSH), Flags::PREFLUSH)
            | flag_if(has(category::FUA), Flags::FUA);
        (Op::Write, plain | durable)
    } else {
        (Op::Read, plain)
    })
}

/// The flag, if it applies.
fn flag_if(applies: bool, flag: Flags) -> Flags {
    if applies { flag } else { Flags::NONE }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Actions 10 and 11, in the category of queueing (1 << 20).
    #[test]
    fn both_kinds_of_unplug_end_a_plug() {
        for happened in [action::UNPLUG, action::UNPLUG_TO_SLEEP] {
            let raw = Raw {
                magic: MAGIC | VERSION,
                time_ns: 5,
                sector: 0,
                bytes: 0,
                action: 1 << 20 | u32::from(happened),
                pid: 7,
                device: 8 << 20,
                cpu: 0,
                follows: 8,
            };
            let kind = EntryKind::Unplug { pid: 7 };
            assert_eq!(entry(&raw, &mut Disks::default()), Ok(Some(Entry { at_ns: 5, kind })));
        }
    }
}
