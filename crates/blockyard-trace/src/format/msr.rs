//! The traces of Microsoft Research Cambridge, as SNIA publishes them: one I/O per line.
//!
//! ```text
//! Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
//! 128166372003061629,usr,0,Read,7014609920,24576,41286
//! ```
//!
//! Timestamp and ResponseTime are ticks of 100 ns; a timestamp counts from the start of 1601.
//! Offset and Size are in bytes. The first line may be a header. The format has no processes and no
//! processors: each disk counts as a submitter.

use super::super::disks::Disks;
use super::super::error::{TraceError, TraceFault};
use super::super::lines::Lines;
use super::super::record::{Entry, EntryKind, Issue};
use super::super::source::Part;
use super::fields::{next, number, on_sectors, word};
use blockyard::bio::{Flags, Op};
use blockyard::time::Duration;

const TICK_NS: u64 = 100;
/// Ticks from the start of 1990 to the start of 2100. Other numbers are in another unit.
const TICKS: core::ops::Range<u64> = 122_755_104_000_000_000..157_469_184_000_000_000;
const FIELDS: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const TYPES: &[(&str, Op)] = &[("Read", Op::Read), ("Write", Op::Write)];

/// Whether `line` has the shape of this format.
pub(in super::super) fn looks_like(line: &str) -> bool {
    is_header(line) || {
        let fields: Vec<&str> = line.trim().split(',').collect();
        fields.len() == 7 && TYPES.iter().any(|(name, _)| name.eq_ignore_ascii_case(fields[3]))
    }
}

fn is_header(line: &str) -> bool {
    line.trim().eq_ignore_ascii_case(FIELDS)
}

/// Reads a CSV.
#[derive(Debug)]
pub(in super::super) struct Msr {
    lines: Lines,
    disks: Disks,
    /// Buffer for the name of a line's disk.
    name: String,
    begun: bool,
}

impl Msr {
    pub(in super::super) fn new(part: &Part) -> Result<Self, TraceError> {
        let lines = Lines::of(part)?;
        Ok(Self { lines, disks: Disks::default(), name: String::new(), begun: false })
    }

    pub(in super::super) fn disks(&self) -> &[String] {
        self.disks.names()
    }

    pub(in super::super) fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            if line.trim().is_empty() || (!self.begun && is_header(line)) {
                continue;
            }
            self.begun = true;
            let entry = entry(line, &mut self.disks, &mut self.name);
            return entry.map(Some).map_err(|fault| self.lines.fault(fault));
        }
    }

    pub(in super::super) fn fault(&self, fault: TraceFault) -> TraceError {
        self.lines.fault(fault)
    }
}

fn entry(line: &str, disks: &mut Disks, name: &mut String) -> Result<Entry, TraceFault> {
    let mut fields = line.split(',').map(str::trim);
    let time = next(&mut fields, FIELDS)?;
    let host = next(&mut fields, FIELDS)?;
    let disk = next(&mut fields, FIELDS)?;
    let kind = next(&mut fields, FIELDS)?;
    let offset = next(&mut fields, FIELDS)?;
    let size = next(&mut fields, FIELDS)?;
    let response = next(&mut fields, FIELDS)?;
    if fields.next().is_some() {
        return Err(TraceFault::Fields { expected: FIELDS });
    }
    let at_ticks = ticks(time)?;
    number("disk number", disk, "a whole number")?;
    let op = word("type", kind, TYPES, "Read, Write")?;
    let offset = number("offset", offset, "a number of bytes")?;
    let size = number("size", size, "a number of bytes")?;
    let response = number("response time", response, "a number of ticks of 100 ns")?;
    let (offset_bytes, len_bytes) = on_sectors(offset, size)?;
    name.clear();
    name.extend([host, ".", disk]);
    let disk = disks.number(name)?;
    // The trace has a response time, so the submitter waited for the I/O.
    let cpu = 0;
    let pid = u32::from(disk);
    let flags = Flags::SYNC;
    let took = Some(Duration::from_ns(response.saturating_mul(TICK_NS)));
    let issue = Issue { disk, cpu, pid, op, offset_bytes, len_bytes, flags, took, joins: false };
    let kind = if len_bytes == 0 { EntryKind::Other } else { EntryKind::Queue(issue) };
    Ok(Entry { at_ns: (at_ticks - TICKS.start) * TICK_NS, kind })
}

/// Parses a timestamp, which must lie between 1990 and 2100.
fn ticks(text: &str) -> Result<u64, TraceFault> {
    let expected = "ticks of 100 ns since 1601, as Windows counts file times";
    let found = number("timestamp", text, expected)?;
    if TICKS.contains(&found) {
        return Ok(found);
    }
    let looks_like = match found {
        0..1_000_000_000 => "a time since the start of the trace",
        1_000_000_000..100_000_000_000 => "seconds since 1970",
        100_000_000_000..100_000_000_000_000 => "milliseconds since 1970",
        100_000_000_000_000..100_000_000_000_000_000 => "microseconds since 1970",
        1_000_000_000_000_000_000.. => "nanoseconds since 1970",
        _ => "a time before 1990 or after 2099",
    };
    Err(TraceFault::Unit { field: "timestamp", found, expected, looks_like })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Entry, TraceFault> {
        entry(line, &mut Disks::default(), &mut String::new())
    }

    #[test]
    fn ticks_are_a_hundred_nanoseconds() {
        let first = read("128166372003061629,usr,0,Read,7014609920,24576,41286").unwrap();
        let next = read("128166372003061630,usr,0,write,512,512,1").unwrap();
        assert_eq!(next.at_ns - first.at_ns, 100);
        let EntryKind::Queue(issue) = first.kind else { panic!("{first:?}") };
        assert_eq!((issue.op, issue.offset_bytes), (Op::Read, 7_014_609_920));
        assert_eq!(issue.took, Some(Duration::from_ns(4_128_600)));
    }

    #[test]
    fn a_time_in_another_unit_is_recognised_by_its_size() {
        for (time, unit) in [
            ("0", "start of the trace"),
            ("1171610000", "seconds"),
            ("1171610000123", "milliseconds"),
            ("1171610000123456", "microseconds"),
            ("1171610000123456789", "nanoseconds"),
        ] {
            let fault = read(&format!("{time},usr,0,Read,0,512,1")).unwrap_err();
            assert!(fault.to_string().contains(unit), "{fault}");
        }
        assert!(matches!(read("1.5,usr,0,Read,0,512,1"), Err(TraceFault::Value { .. })));
    }

    fn refused(rest: &str) -> TraceFault {
        read(&format!("128166372003061629,usr,0,Read,{rest},1")).unwrap_err()
    }

    #[test]
    fn sectors_in_place_of_bytes_are_refused() {
        assert!(matches!(refused("0,8"), TraceFault::Unit { field: "length", .. }));
        assert!(matches!(refused("7,4096"), TraceFault::Unit { field: "offset", .. }));
    }
}
