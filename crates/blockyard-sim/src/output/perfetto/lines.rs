//! The lines of the file: what all of them begin with, and the names of tracks.

use super::super::file::{OutputError, OutputFile};
use super::super::json::{micros, number};
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::Opcode;
use blockyard_mmc::controller::SlotId;
use std::path::Path;

/// The processes of a lane, in the order they are shown.
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

    /// Where what belongs to no single track of it stands.
    pub(super) const fn itself(self) -> Track {
        Track { process: self, thread: 0 }
    }

    /// Its track of that number.
    pub(super) const fn track(self, number: u32) -> Track {
        Track { process: self, thread: number + 1 }
    }
}

/// A thread of a process, from 1 on; 0 is the process itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    process: Process,
    thread: u32,
}

/// The file, line by line.
#[derive(Debug)]
pub(super) struct Lines {
    file: OutputFile,
    /// Lanes of worlds that are over.
    lanes_before: u32,
    /// The lane whose lines follow.
    lane: usize,
    /// A line stands in the file, so that a comma comes before the next.
    begun: bool,
    /// By lane of this world, process and thread: what its lines have between phase and time; empty
    /// for a track that has no name in the file yet.
    heads: Vec<[Vec<Vec<u8>>; Process::ALL.len()]>,
    /// The latest time written, and its digits: many lines share it.
    now: (Instant, Vec<u8>),
}

impl Lines {
    /// An empty trace at `path`.
    pub(super) fn create(path: &Path) -> Result<Self, OutputError> {
        let mut file = OutputFile::create(path)?;
        file.bytes.extend_from_slice(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
        let now = (Instant::ZERO, b"0.000".to_vec());
        Ok(Self { file, lanes_before: 0, lane: 0, begun: false, heads: Vec::new(), now })
    }

    /// What follows belongs to another world.
    pub(super) fn begin_world(&mut self) {
        self.lanes_before += u32::try_from(self.heads.len()).expect("there are few lanes");
        self.heads.clear();
        self.now = (Instant::ZERO, b"0.000".to_vec());
    }

    /// What follows belongs to a further lane of the world, with `processes` named after `name`.
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

    /// What follows belongs to this lane.
    pub(super) const fn go_on(&mut self, lane: usize) {
        self.lane = lane;
    }

    fn pid(&self, process: Process) -> u32 {
        let lane = u32::try_from(self.lane).expect("there are few lanes");
        (self.lanes_before + lane) * 10 + process as u32 + 1
    }

    /// Gives `track` a name, unless it has one.
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

    /// Begins a line of `phase`; the caller adds a name, what it likes, and the closing brace.
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

    /// Writes what has been collected if it is enough for a piece.
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

    /// A command of an MMC bus by its number.
    pub(super) fn command(&mut self, opcode: Opcode) -> &mut Self {
        self.text(if opcode.is_application() { "ACMD" } else { "CMD" });
        self.number(opcode.index().into())
    }

    /// The place of a request in the driver of an MMC host (P6).
    pub(super) fn slot(&mut self, slot: SlotId) -> &mut Self {
        self.text(",\"args\":{\"slot\":").number(slot.0.into()).text("}")
    }

    /// How long it lasts.
    #[inline]
    pub(super) fn lasts(&mut self, span: Duration) -> &mut Self {
        self.text(",\"dur\":");
        micros(self.0, span);
        self
    }
}
