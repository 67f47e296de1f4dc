//! blkparse's default output: one event per line.
//!
//! ```text
//! MAJOR,MINOR CPU SEQUENCE SECONDS.NANOSECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]
//!   8,0    3      11     0.009507758   697  Q   W 223490 + 8 [kjournald]
//!   8,0    3      15     0.009512020     0  C   W 223490 + 8 [0]
//! ```
//!
//! A sector has 512 bytes. Lines of other actions, messages, and the statistics after the events
//! are skipped. A line that begins like an event but cannot be parsed is an error.

use super::super::disks::Disks;
use super::super::error::{TraceError, TraceFault};
use super::super::lines::Lines;
use super::super::record::{Entry, EntryKind, Issue};
use super::super::source::Part;
use super::fields::{clip, next, number, on_sectors};
use super::rwbs;
use blockyard::unit::SECTOR_BYTES;

const FIELDS: &str =
    "DEVICE CPU SEQUENCE SECONDS.NANOSECONDS PID ACTION RWBS SECTOR + SECTORS [PROCESS]";

/// Whether `line` has the shape of an event.
pub(in super::super) fn looks_like(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let device = words.next().is_some_and(is_device);
    let numbers = words.next().is_some_and(is_digits) && words.next().is_some_and(is_digits);
    let time = words.next().is_some_and(|time| time.contains('.') && time_of(time).is_ok());
    device && numbers && time
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_device(text: &str) -> bool {
    text.split_once(',').is_some_and(|(major, minor)| is_digits(major) && is_digits(minor))
}

/// Reads the events.
#[derive(Debug)]
pub(in super::super) struct Blkparse {
    lines: Lines,
    disks: Disks,
}

impl Blkparse {
    pub(in super::super) fn new(part: &Part) -> Result<Self, TraceError> {
        Ok(Self { lines: Lines::of(part)?, disks: Disks::default() })
    }

    pub(in super::super) fn disks(&self) -> &[String] {
        self.disks.names()
    }

    pub(in super::super) fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            if !line.split_ascii_whitespace().next().is_some_and(is_device) {
                continue;
            }
            let entry = entry(line, &mut self.disks);
            return entry.map(Some).map_err(|fault| self.lines.fault(fault));
        }
    }

    pub(in super::super) fn fault(&self, fault: TraceFault) -> TraceError {
        self.lines.fault(fault)
    }
}

fn entry(line: &str, disks: &mut Disks) -> Result<Entry, TraceFault> {
    let mut words = line.split_ascii_whitespace();
    let device = next(&mut words, FIELDS)?;
    let cpu = next(&mut words, FIELDS)?;
    let _sequence = next(&mut words, FIELDS)?;
    let time = next(&mut words, FIELDS)?;
    let pid = next(&mut words, FIELDS)?;
    let action = next(&mut words, FIELDS)?;
    let at_ns = time_of(time)?;
    let cpu = number("CPU", cpu, "a whole number")?;
    let cpu = u16::try_from(cpu).map_err(|_| TraceFault::Value {
        field: "CPU",
        found: cpu.to_string(),
        expected: "a number below 65536",
    })?;
    let pid = number("PID", pid, "a whole number")?;
    let pid = u32::try_from(pid).map_err(|_| TraceFault::Value {
        field: "PID",
        found: pid.to_string(),
        expected: "a number of 32 bits",
    })?;
    let passed_over = match action {
        "A" => Some(EntryKind::Remap),
        "P" => Some(EntryKind::Plug { pid }),
        // `UT`: a thread that sleeps passes on the requests of its plug.
        "U" | "UT" => Some(EntryKind::Unplug { pid }),
        "I" => Some(EntryKind::Insert { pid }),
        "Q" | "D" | "C" => None,
        _ if action.len() <= 2 => Some(EntryKind::Other),
        _ => {
            return Err(TraceFault::Value {
                field: "action",
                found: clip(action),
                expected: "one of blkparse's letters, such as Q, D and C",
            });
        }
    };
    if let Some(kind) = passed_over {
        return Ok(Entry { at_ns, kind });
    }
    let letters = next(&mut words, FIELDS)?;
    let range = range(&words.collect::<Vec<_>>())?.filter(|(_, sectors)| *sectors > 0);
    // Without a range it is a flush, or a command that is not block I/O.
    let (offset_bytes, len_bytes) = match range {
        None => (0, 0),
        Some((sector, sectors)) => {
            let bytes = u64::from(SECTOR_BYTES);
            let offset = sector.checked_mul(bytes).ok_or(TraceFault::Beyond)?;
            let len = sectors.checked_mul(bytes).ok_or(TraceFault::Beyond)?;
            on_sectors(offset, len)?
        }
    };
    let Some((op, flags)) = rwbs::parse(letters, range.is_none())? else {
        return Ok(Entry { at_ns, kind: EntryKind::Other });
    };
    let disk = disks.number(device)?;
    let issue =
        Issue { disk, cpu, pid, op, offset_bytes, len_bytes, flags, took: None, joins: false };
    Ok(Entry { at_ns, kind: of_action(action, issue) })
}

/// Returns the entry for `issue` with action `Q`, `D` or `C`.
fn of_action(action: &str, issue: Issue) -> EntryKind {
    let Issue { disk, offset_bytes, len_bytes, .. } = issue;
    match action {
        "Q" => EntryKind::Queue(issue),
        "D" => EntryKind::Dispatch(issue),
        _ => EntryKind::Complete { disk, offset_bytes, len_bytes },
    }
}

/// Parses `SECTOR + SECTORS`, if the line has a range.
fn range(words: &[&str]) -> Result<Option<(u64, u64)>, TraceFault> {
    match words {
        [sector, "+", sectors, ..] => {
            let sector = number("sector", sector, "a sector number")?;
            Ok(Some((sector, number("sectors", sectors, "a number of sectors")?)))
        }
        _ => Ok(None),
    }
}

/// Parses seconds with nine decimals.
fn time_of(text: &str) -> Result<u64, TraceFault> {
    let wrong = || TraceFault::Value {
        field: "time",
        found: clip(text),
        expected: "seconds with nine decimals, such as 0.000012345",
    };
    let (seconds, nanoseconds) = text.split_once('.').ok_or_else(wrong)?;
    if nanoseconds.len() != 9 || !is_digits(nanoseconds) || !is_digits(seconds) {
        return Err(wrong());
    }
    let seconds: u64 = seconds.parse().map_err(|_| wrong())?;
    let nanoseconds: u64 = nanoseconds.parse().map_err(|_| wrong())?;
    let whole = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanoseconds));
    whole.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::bio::{Flags, Op};

    fn read(line: &str) -> Result<Entry, TraceFault> {
        entry(line, &mut Disks::default())
    }

    #[test]
    fn an_event_is_read_to_the_nanosecond_and_the_sector() {
        let entry = read("8,0  3  11  1.009507758  697  Q  WS 223490 + 8 [kjournald]").unwrap();
        assert_eq!(entry.at_ns, 1_009_507_758);
        let EntryKind::Queue(issue) = entry.kind else { panic!("{entry:?}") };
        assert_eq!((issue.cpu, issue.pid, issue.op), (3, 697, Op::Write));
        assert_eq!((issue.offset_bytes, issue.len_bytes), (223_490 * 512, 4096));
        assert_eq!(issue.flags, Flags::SYNC);
    }

    #[test]
    fn events_that_cannot_be_replayed_are_skipped() {
        for line in [
            "8,0 0 0 0.000065500 0 m N cfq hello",
            "8,0 0 17 0.000067000 100 D R 36 (12 00 ..) [fio]",
            "8,0 0 16 0.000066000 100 Q N 0 [fio]",
        ] {
            assert_eq!(read(line).unwrap().kind, EntryKind::Other, "{line}");
        }
        let remap = read("8,0 0 11 0.000063000 100 A W 16 + 16 <- (8,1) 3").unwrap();
        assert_eq!(remap.kind, EntryKind::Remap);
        let kind = |line| read(line).unwrap().kind;
        assert_eq!(kind("8,0 0 1 0.000068000 7 P N [fio]"), EntryKind::Plug { pid: 7 });
        assert_eq!(kind("8,0 0 2 0.000069000 7 U N [fio] 3"), EntryKind::Unplug { pid: 7 });
        assert_eq!(kind("8,0 0 2 0.000069000 7 UT N [fio] 3"), EntryKind::Unplug { pid: 7 });
        assert_eq!(kind("8,0 0 3 0.000070000 7 I WS 8 + 8 [fio]"), EntryKind::Insert { pid: 7 });
    }

    #[test]
    fn a_time_without_nine_decimals_is_in_another_unit() {
        for time in ["0.000065", "65500", "0.0000655001"] {
            let fault = read(&format!("8,0 0 1 {time} 100 Q R 8 + 8 [fio]")).unwrap_err();
            assert!(matches!(fault, TraceFault::Value { field: "time", .. }), "{fault}");
        }
    }
}
