//! The lines of the file: what all of them begin with, and the names of tracks.

use super::super::file::{OutputError, OutputFile};
use super::super::json::{micros, number};
use blockyard::time::Instant;
use std::path::Path;

/// The processes of a world, in the order they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Processors,
    SoftwareQueues,
    HardwareQueues,
    DeviceSlots,
    Requests,
}

impl Process {
    pub(super) const ALL: [(Self, &'static str); 5] = [
        (Self::Processors, "processors"),
        (Self::SoftwareQueues, "software queues"),
        (Self::HardwareQueues, "hardware queues"),
        (Self::DeviceSlots, "device slots"),
        (Self::Requests, "requests"),
    ];
}

/// A track: a thread of a process.
pub(super) type Track = (Process, u32);

/// The file, line by line.
#[derive(Debug)]
pub(super) struct Lines {
    file: OutputFile,
    /// Worlds that have ended.
    worlds: u32,
    /// A line stands in the file, so that a comma comes before the next.
    begun: bool,
    /// Tracks of this world that have a name in the file.
    named: [Vec<bool>; Process::ALL.len()],
}

impl Lines {
    /// An empty trace at `path`.
    pub(super) fn create(path: &Path) -> Result<Self, OutputError> {
        let mut file = OutputFile::create(path)?;
        file.bytes.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        Ok(Self { file, worlds: 0, begun: false, named: Default::default() })
    }

    /// What follows belongs to a new world, whose processes are named after `design`.
    pub(super) fn begin_world(&mut self, design: &str) {
        if self.begun {
            self.worlds += 1;
        }
        self.named = Default::default();
        for (process, name) in Process::ALL {
            let name = format!("{design}: {name}");
            self.metadata("process_name", (process, 0), "name", &format!("\"{name}\""));
            let place = self.pid(process);
            self.metadata("process_sort_index", (process, 0), "sort_index", &place.to_string());
        }
    }

    /// Gives `track` a name, unless it has one.
    #[inline]
    pub(super) fn name_track(&mut self, track: Track, name: impl FnOnce() -> String) {
        let (process, at) = (track.0, track.1 as usize);
        let named = &mut self.named[process as usize];
        if named.get(at) == Some(&true) {
            return;
        }
        if named.len() <= at {
            named.resize(at + 1, false);
        }
        named[at] = true;
        self.metadata("thread_name", track, "name", &format!("\"{}\"", name()));
        self.metadata("thread_sort_index", track, "sort_index", &at.to_string());
    }

    fn metadata(&mut self, what: &str, track: Track, key: &str, value: &str) {
        let mut line = self.line(b'M', track, Instant::ZERO);
        line.name(what);
        line.text(",\"args\":{\"").text(key).text("\":").text(value).text("}}");
    }

    fn pid(&self, process: Process) -> u32 {
        self.worlds * 10 + process as u32 + 1
    }

    /// Begins a line of `phase`; the caller adds a name, what it likes, and the closing brace.
    #[inline]
    pub(super) fn line(&mut self, phase: u8, track: Track, at: Instant) -> Line<'_> {
        let pid = self.pid(track.0);
        let to = &mut self.file.bytes;
        to.extend_from_slice(if self.begun { b",\n{\"ph\":\"" } else { b"\n{\"ph\":\"" });
        self.begun = true;
        to.push(phase);
        to.extend_from_slice(b"\",\"pid\":");
        number(to, u64::from(pid));
        to.extend_from_slice(b",\"tid\":");
        number(to, u64::from(track.1) + 1);
        to.extend_from_slice(b",\"ts\":");
        micros(to, at.since(Instant::ZERO));
        Line(to)
    }

    /// Writes what has been collected if it is enough for a piece.
    pub(super) fn spill(&mut self) -> Result<(), OutputError> {
        self.file.spill()
    }

    /// Ends the file.
    pub(super) fn finish(&mut self) -> Result<(), OutputError> {
        self.file.bytes.extend_from_slice(b"\n]}\n");
        self.file.write()
    }
}

/// A line that has begun.
pub(super) struct Line<'a>(&'a mut Vec<u8>);

impl Line<'_> {
    #[inline]
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    #[inline]
    pub(super) fn number(&mut self, value: u64) -> &mut Self {
        number(self.0, value);
        self
    }

    /// The name, which has been escaped.
    #[inline]
    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        self.text(",\"name\":\"").text(name).text("\"")
    }

    /// How long it lasts, from `begin` to `end`.
    #[inline]
    pub(super) fn lasts(&mut self, begin: Instant, end: Instant) -> &mut Self {
        self.text(",\"dur\":");
        micros(self.0, end.since(begin));
        self
    }
}
