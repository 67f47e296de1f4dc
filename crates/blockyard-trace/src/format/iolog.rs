//! fio's iolog, as `write_iolog` writes it and `read_iolog` reads it.
//!
//! ```text
//! fio version 2 iolog          fio version 3 iolog
//! FILE add                     TIME FILE add
//! FILE open                    TIME FILE open
//! FILE read 0 4096             TIME FILE read 0 4096
//! FILE wait 20 0               TIME FILE datasync 0 0
//! FILE close                   TIME FILE close
//! ```
//!
//! Offsets and lengths are in bytes. A TIME is in microseconds since the start of the run. A `wait`
//! lasts until that many *milliseconds* after the start of the run: that is what fio does, though
//! its manual says microseconds after the previous wait. The log has no processes and no
//! completions.
//!
//! Two instances of a job (`numjobs=2`) write one log after the other into a file. As in fio, the
//! second one follows the first. In version 3, fio ignores a `wait`, because each line has its
//! time.

use super::super::disks::Disks;
use super::super::error::{TraceError, TraceFault};
use super::super::limits::DISKS_MAX;
use super::super::lines::Lines;
use super::super::record::{Entry, EntryKind, Issue};
use super::super::source::Part;
use super::super::trace_format::Format;
use super::fields::{clip, number, on_sectors, word};
use blockyard::bio::{Flags, Op};
use std::collections::BTreeSet;

const BEGIN: &str = "fio version ";
/// Microseconds of about three years; no run of fio is longer.
const TIME_US_MAX: u64 = 100_000_000_000_000;

/// Returns the format that the first line of `text` declares, if it is an iolog's.
pub(in super::super) fn version(text: &str) -> Option<Result<Format, TraceFault>> {
    let line = text.lines().next()?.trim_end();
    let found = line.strip_prefix(BEGIN)?.strip_suffix(" iolog")?.parse().ok()?;
    Some(match found {
        2 => Ok(Format::IologV2),
        3 => Ok(Format::IologV3),
        _ => Err(TraceFault::Version { format: "a fio iolog", found, known: "2 and 3" }),
    })
}

/// Reads an iolog.
#[derive(Debug)]
pub(in super::super) struct Iolog {
    lines: Lines,
    grammar: Grammar,
}

#[derive(Debug)]
struct Grammar {
    timed: bool,
    disks: Disks,
    added: BTreeSet<String>,
    /// Time of the latest line or wait.
    at_ns: u64,
    /// When the current log began: 0, or behind the end of the one before it in the file.
    begun_ns: u64,
    /// The first time of a log that follows another one; `None` before its first line.
    first_ns: Option<u64>,
    /// The latest wait as written; `None` before the first.
    last_wait_ms: Option<u64>,
}

#[derive(Clone, Copy)]
enum Action {
    Add,
    OpenOrClose,
    Wait,
    Range(Op),
    Sync,
}

const ACTIONS: &[(&str, Action)] = &[
    ("add", Action::Add),
    ("open", Action::OpenOrClose),
    ("close", Action::OpenOrClose),
    ("wait", Action::Wait),
    ("read", Action::Range(Op::Read)),
    ("write", Action::Range(Op::Write)),
    ("trim", Action::Range(Op::Discard)),
    ("sync", Action::Sync),
    ("datasync", Action::Sync),
];
const KNOWN: &str = "add, open, close, wait, read, write, trim, sync, datasync";

impl Iolog {
    pub(in super::super) fn new(part: &Part, format: Format) -> Result<Self, TraceError> {
        debug_assert!(matches!(format, Format::IologV2 | Format::IologV3), "{format} is no iolog");
        let mut lines = Lines::of(part)?;
        // The first line has the version, which is known already.
        lines.next()?;
        let grammar = Grammar {
            timed: format == Format::IologV3,
            disks: Disks::default(),
            added: BTreeSet::new(),
            at_ns: 0,
            begun_ns: 0,
            first_ns: Some(0),
            last_wait_ms: None,
        };
        Ok(Self { lines, grammar })
    }

    pub(in super::super) fn disks(&self) -> &[String] {
        self.grammar.disks.names()
    }

    pub(in super::super) fn next(&mut self) -> Result<Option<Entry>, TraceError> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            match self.grammar.line(line) {
                Ok(None) => {}
                Ok(entry) => return Ok(entry),
                Err(fault) => return Err(self.lines.fault(fault)),
            }
        }
    }

    pub(in super::super) fn fault(&self, fault: TraceFault) -> TraceError {
        self.lines.fault(fault)
    }
}

impl Grammar {
    fn line(&mut self, line: &str) -> Result<Option<Entry>, TraceFault> {
        if line.starts_with(BEGIN) {
            return self.begin_another(line).map(|()| None);
        }
        let mut words = line.split_ascii_whitespace();
        let first = words.next();
        let name = if self.timed { words.next() } else { first };
        let Some(first) = first else { return Ok(None) };
        let Some((name, action)) = name.zip(words.next()) else { return Err(self.fields()) };
        if self.timed {
            let time_ns = time_ns(first)?;
            let first_ns = *self.first_ns.get_or_insert(time_ns);
            self.at_ns = self.begun_ns + time_ns.saturating_sub(first_ns);
        }
        let action = word("action", action, ACTIONS, KNOWN)?;
        let numbers = (words.next(), words.next(), words.next());
        match (action, numbers) {
            (Action::Add, (None, ..)) => {
                if self.added.len() == DISKS_MAX && !self.added.contains(name) {
                    return Err(TraceFault::TooManyDisks);
                }
                self.added.insert(name.to_owned());
                Ok(None)
            }
            (Action::OpenOrClose, (None, ..)) => Ok(None),
            (Action::Wait, _) if self.timed => Ok(None),
            // fio takes a wait only with a fourth word, which it does not use.
            (Action::Wait, (Some(until), Some(_), None)) => self.wait(until).map(|()| None),
            (Action::Wait, _) => Err(TraceFault::Fields { expected: "FILE wait MILLISECONDS 0" }),
            (Action::Sync, _) => self.io(name, Op::Flush, 0, 0).map(Some),
            (Action::Range(op), (Some(offset), Some(len), None)) => {
                let offset = number("offset", offset, "a number of bytes")?;
                let len = number("length", len, "a number of bytes")?;
                self.io(name, op, offset, len).map(Some)
            }
            _ => Err(self.fields()),
        }
    }

    const fn fields(&self) -> TraceFault {
        TraceFault::Fields {
            expected: if self.timed {
                "TIME FILE ACTION` or `TIME FILE ACTION OFFSET LENGTH"
            } else {
                "FILE ACTION` or `FILE ACTION OFFSET LENGTH"
            },
        }
    }

    /// Begins another log of the same version in the file.
    fn begin_another(&mut self, header: &str) -> Result<(), TraceFault> {
        let format = if self.timed { Format::IologV3 } else { Format::IologV2 };
        if version(header).transpose()? != Some(format) {
            return Err(self.fields());
        }
        self.begun_ns = self.at_ns;
        self.first_ns = None;
        Ok(())
    }

    fn wait(&mut self, until: &str) -> Result<(), TraceFault> {
        let until = number("wait", until, "a number of milliseconds")?;
        if let Some(before) = self.last_wait_ms.filter(|before| until <= *before) {
            return Err(TraceFault::WaitBackwards { found: until, before });
        }
        self.last_wait_ms = Some(until);
        self.at_ns = until.checked_mul(1_000_000).filter(|_| until <= TIME_US_MAX / 1000).ok_or(
            TraceFault::Unit {
                field: "wait",
                found: until,
                expected: "milliseconds since the start of the run",
                looks_like: "microseconds, nanoseconds, or a time of day",
            },
        )?;
        Ok(())
    }

    fn io(&mut self, name: &str, op: Op, offset: u64, len: u64) -> Result<Entry, TraceFault> {
        if !self.added.contains(name) {
            return Err(TraceFault::NotAdded(clip(name)));
        }
        debug_assert!(self.added.len() <= DISKS_MAX, "[bounded-trace-memory]");
        let (offset_bytes, len_bytes) = on_sectors(offset, len)?;
        let disk = self.disks.number(name)?;
        // A fio job waits for its I/O.
        let flags = Flags::SYNC;
        let cpu = 0;
        let pid = 0;
        let took = None;
        let issue =
            Issue { disk, cpu, pid, op, offset_bytes, len_bytes, flags, took, joins: false };
        let empty = len_bytes == 0 && op != Op::Flush;
        let kind = if empty { EntryKind::Other } else { EntryKind::Queue(issue) };
        Ok(Entry { at_ns: self.at_ns, kind })
    }
}

fn time_ns(text: &str) -> Result<u64, TraceFault> {
    let us = number("time", text, "a whole number of microseconds since the start of the run")?;
    if us > TIME_US_MAX {
        return Err(TraceFault::Unit {
            field: "time",
            found: us,
            expected: "microseconds since the start of the run",
            looks_like: "nanoseconds, or a time of day",
        });
    }
    Ok(us * 1000)
}

#[cfg(test)]
mod tests {
    use super::super::super::error::TraceFault as F;
    use super::*;

    fn grammar(timed: bool) -> Grammar {
        let disks = Disks::default();
        Grammar {
            timed,
            disks,
            added: BTreeSet::new(),
            at_ns: 0,
            begun_ns: 0,
            first_ns: Some(0),
            last_wait_ms: None,
        }
    }

    /// fio 3.33 writes such a file with `numjobs=2`, and issues all I/Os that are in it.
    #[test]
    fn another_log_in_the_file_follows_the_first() {
        let mut log = grammar(true);
        let mut at = Vec::new();
        for line in [
            "25 a add",
            "100 a open",
            "106 a write 0 512",
            "127 a close",
            "fio version 3 iolog",
            "25 b add",
            "111 b open",
            "120 b write 0 512",
        ] {
            at.extend(log.line(line).unwrap().map(|entry| entry.at_ns));
        }
        assert_eq!(at, [106_000, (127 + 120 - 25) * 1000]);
        assert!(matches!(log.line("fio version 2 iolog"), Err(F::Fields { .. })));
    }

    /// fio 3.33 ignores it: `ignoring wait command with version 3`.
    #[test]
    fn a_wait_in_version_3_is_ignored() {
        let mut log = grammar(true);
        for line in ["30 a wait 1 0", "30 a wait"] {
            assert_eq!(log.line(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn waits_count_milliseconds_since_the_start_of_the_run() {
        let mut log = grammar(false);
        let mut at = Vec::new();
        for line in
            ["a add", "a open", "a read 0 512", "a wait 3 0", "a read 512 512", "a sync 0 0"]
        {
            at.extend(log.line(line).unwrap().map(|entry| entry.at_ns));
        }
        assert_eq!(at, [0, 3_000_000, 3_000_000]);
        assert_eq!(log.line("a wait 3 0"), Err(F::WaitBackwards { found: 3, before: 3 }));
        // fio 3.33 and 3.42: `bad iolog2` for both.
        for line in ["a wait 5", "wait 5 0"] {
            assert!(log.line(line).is_err(), "{line}");
        }
    }

    #[test]
    fn times_count_microseconds() {
        let mut log = grammar(true);
        log.line("7 a add").unwrap();
        assert_eq!(log.line("20 a write 1024 512").unwrap().unwrap().at_ns, 20_000);
        assert!(matches!(log.line("0.02 a read 0 512"), Err(F::Value { field: "time", .. })));
        let epoch = log.line("1700000000000000 a read 0 512");
        assert!(matches!(epoch, Err(F::Unit { field: "time", .. })));
    }

    #[test]
    fn each_fault_in_a_line_is_reported() {
        let mut log = grammar(false);
        log.line("a add").unwrap();
        assert_eq!(log.line("b read 0 512"), Err(F::NotAdded("b".to_owned())));
        assert!(matches!(log.line("a raed 0 512"), Err(F::Word { nearest: Some("read"), .. })));
        assert!(matches!(log.line("a read 0"), Err(F::Fields { .. })));
        assert!(matches!(log.line("a read 0 8"), Err(F::Unit { field: "length", .. })));
        assert!(matches!(log.line("a read 3 512"), Err(F::Unit { field: "offset", .. })));
        let last = (u64::MAX / 512 * 512).to_string();
        assert_eq!(log.line(&format!("a read {last} 512")), Err(F::Beyond));
        assert!(matches!(log.line("a read -1 512"), Err(F::Value { field: "offset", .. })));
    }
}
