//! The lines of the file: their common beginning, and the names of tracks.

use super::super::file::{OutputError, OutputFile};
use super::super::json::{micros, number};
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::Opcode;
use blockyard_mmc::controller::SlotId;
use std::path::Path;

/// The processes of a lane, in the order of display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Processors,
    SoftwareQueues,
    HardwareQueues,
    DeviceSlots,
    Requests,
    Bus,
}

impl Process {
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Processors, "processors"),
        (Self::SoftwareQueues, "software queues"),
        (Self::HardwareQueues, "hardware queues"),
        (Self::DeviceSlots, "device slots"),
        (Self::Requests, "requests"),
        (Self::Bus, "bus"),
    ];

    /// The track of the process itself, for lines that belong to no numbered track.
    pub(super) const fn itself(self) -> Track {
        Track { process: self, thread: 0 }
    }

    /// The track with this number.
    pub(super) const fn track(self, number: u32) -> Track {
        Track { process: self, thread: number + 1 }
    }
}

// `Lines::pid` reserves ten numbers for the processes of a lane.
const _: () = assert!(Process::ALL.len() <= 10);

/// A thread of a process, numbered from 1; 0 is the process itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    process: Process,
    thread: u32,
}

/// The file, line by line.
#[derive(Debug)]
pub(super) struct Lines {
    file: OutputFile,
    /// Number of lanes in earlier worlds.
    lanes_before: u32,
    /// The lane of the next lines.
    lane: usize,
    /// Whether the file has a line, so that the next one needs a comma.
    begun: bool,
    /// The text of a line between phase and time, by lane of this world, process and thread. It is
    /// empty if the track has no name in the file yet.
    heads: Vec<[Vec<Vec<u8>>; Process::ALL.len()]>,
    /// The time written last, with its digits: many lines share it.
    now: (Instant, Vec<u8>),
}

impl Lines {
    /// Creates an empty trace at `path`.
    pub(super) fn create(path: &Path) -> Result<Self, OutputError> {
        let mut file = OutputFile::create(path)?;
        file.bytes.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        let now = (Instant::ZERO, b"0.000".to_vec());
        Ok(Self { file, lanes_before: 0, lane: 0, begun: false, heads: Vec::new(), now })
    }

    /// Begins another world.
    pub(super) fn begin_world(&mut self) {
        self.lanes_before += u32::try_from(self.heads.len()).expect("lanes should fit in 32 bits");
        self.heads.clear();
        self.now = (Instant::ZERO, b"0.000".to_vec());
    }

    /// Begins another lane of the world. Its `processes` are named after `name`.
    pub(super) fn begin_lane(&mut self, name: &str, processes: &[(Process, &'static str)]) {
        self.lane = self.heads.len();
        self.heads.push(Default::default());
        for (process, what) in processes {
            let pid = self.pid(*process);
            let head = format!("\",\"pid\":{pid},\"ts\":").into_bytes();
            self.heads[self.lane][*process as usize] = vec![head];
            let track = process.itself();
            self.metadata(track, "process_name", "name", &format!("\"{name}: {what}\""));
            self.metadata(track, "process_sort_index", "sort_index", &pid.to_string());
        }
    }

    /// Makes `lane` the lane of the next lines.
    pub(super) const fn select_lane(&mut self, lane: usize) {
        debug_assert!(lane < self.heads.len(), "each lane of a world was begun");
        self.lane = lane;
    }

    fn pid(&self, process: Process) -> u32 {
        let lane = u32::try_from(self.lane).expect("lanes should fit in 32 bits");
        (self.lanes_before + lane) * 10 + process as u32 + 1
    }

    /// Gives `track` its name, unless it has one.
    #[inline]
    pub(super) fn name_track(&mut self, track: Track, name: impl FnOnce() -> String) {
        let pid = self.pid(track.process);
        let heads = &mut self.heads[self.lane][track.process as usize];
        let at = track.thread as usize;
        if heads.get(at).is_some_and(|head| !head.is_empty()) {
            return;
        }
        if heads.len() <= at {
            heads.resize(at + 1, Vec::new());
        }
        heads[at] = format!("\",\"pid\":{pid},\"tid\":{at},\"ts\":").into_bytes();
        self.metadata(track, "thread_name", "name", &format!("\"{}\"", name()));
        self.metadata(track, "thread_sort_index", "sort_index", &at.to_string());
    }

    fn metadata(&mut self, track: Track, what: &str, key: &str, value: &str) {
        let mut line = self.line(b'M', track, Instant::ZERO);
        line.name(what).text(",\"args\":{\"").text(key).text("\":").text(value).text("}}");
    }

    /// Begins a line of `phase`. The caller adds the name, more fields and the closing brace.
    ///
    /// # Panics
    ///
    /// If the track has no name.
    #[inline]
    pub(super) fn line(&mut self, phase: u8, track: Track, at: Instant) -> Line<'_> {
        let to = &mut self.file.bytes;
        to.extend_from_slice(if self.begun { b",\n{\"ph\":\"" } else { b"\n{\"ph\":\"" });
        self.begun = true;
        to.push(phase);
        to.extend_from_slice(&self.heads[self.lane][track.process as usize][track.thread as usize]);
        let ns = at.since(Instant::ZERO);
        if at > self.now.0 {
            self.now.0 = at;
            self.now.1.clear();
            micros(&mut self.now.1, ns);
        }
        if at == self.now.0 {
            to.extend_from_slice(&self.now.1);
        } else {
            micros(to, ns);
        }
        Line(to)
    }

    /// Writes the buffer if it holds a whole piece.
    #[inline]
    pub(super) fn spill(&mut self) -> Result<(), OutputError> {
        self.file.spill()
    }

    /// Ends the file.
    pub(super) fn finish(&mut self) -> Result<(), OutputError> {
        self.file.bytes.extend_from_slice(b"\n]}\n");
        self.file.write()
    }
}

/// A line that was begun.
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

    /// Appends the name, which must be escaped.
    #[inline]
    pub(super) fn name(&mut self, name: &str) -> &mut Self {
        self.text(",\"name\":\"").text(name).text("\"")
    }

    /// Appends a command of an MMC bus.
    pub(super) fn command(&mut self, opcode: Opcode) -> &mut Self {
        self.text(if opcode.is_application() { "ACMD" } else { "CMD" });
        self.number(opcode.index().into())
    }

    /// Appends the slot of a request in the driver of an MMC host.
    pub(super) fn slot(&mut self, slot: SlotId) -> &mut Self {
        self.text(",\"args\":{\"slot\":").number(slot.0.into()).text("}")
    }

    /// Appends the duration.
    #[inline]
    pub(super) fn lasts(&mut self, span: Duration) -> &mut Self {
        self.text(",\"dur\":");
        micros(self.0, span);
        self
    }
}
