//! The observer that sends its records to the thread that writes files.

use super::file::OutputError;
use super::files::Files;
use super::record::{LaneId, Record, Step, Thread};
use super::writer::{Notes, Writer};
use crate::observe::{Observer, Setting, TaskId, Work};
use blockyard::driver::Finished;
use blockyard::time::Instant;
use blockyard::trace::{Event, Sink};
use blockyard::unit::CpuId;
use blockyard_mmc::bus_use::BusUse;

/// Writes traces of the worlds that it observes.
///
/// Call [`Self::finish`] after the last world has ended: only its result says whether the files are
/// complete. A recorder that is dropped leaves incomplete files.
#[derive(Debug)]
pub struct Recorder {
    notes: Notes,
    /// The work in progress, with its processor and its start.
    current: Option<(CpuId, Work, Instant)>,
    writer: Writer,
}

impl Recorder {
    /// Returns a recorder that writes `files`. The Perfetto file is created now; blktrace's files,
    /// one for each processor, when a world begins.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a file cannot be created.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    pub fn create(files: &Files) -> Result<Self, OutputError> {
        let writer = Writer::create(files, None, Box::new(|_| ()))?;
        Ok(Self { notes: writer.notes(LaneId(0)), current: None, writer })
    }

    /// Writes the remaining records.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a record could not be written, now or before.
    pub fn finish(self) -> Result<(), OutputError> {
        drop(self.notes);
        self.writer.finish()
    }
}

impl Sink for Recorder {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let (on, by) = match &self.current {
            Some((cpu, work, _)) => (*cpu, Thread::from(work)),
            // The event belongs to the machine, as that of a timer.
            None => (event.cpu, Thread::None),
        };
        self.notes.note(Record::Step(Step::of(event, on, by)));
    }
}

impl Observer for Recorder {
    fn world_begins(&mut self, setting: &Setting) {
        self.notes.hand_over();
        self.current = None;
        self.writer.world(setting);
    }

    fn task_begins(&mut self, task: TaskId, name: &str) {
        self.notes.hand_over();
        self.writer.task(task, name);
    }

    #[inline]
    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        debug_assert!(self.current.is_none(), "{work:?} begins within other work");
        self.current = Some((cpu, *work, now));
    }

    #[inline]
    fn work_ends(&mut self, end: Instant) {
        if let Some((on, work, begin)) = self.current.take() {
            debug_assert!(begin <= end, "[observed-in-time-order]");
            self.notes.note(Record::Work { on, work, begin, end });
        }
    }

    fn spun(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        debug_assert!(since <= now, "[observed-in-time-order]");
        self.notes.note(Record::Spin { on: cpu, begin: since, end: now });
    }

    fn polled(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        debug_assert!(since <= now, "[observed-in-time-order]");
        self.notes.note(Record::Poll { on: cpu, begin: since, end: now });
    }

    #[inline]
    fn bus_used(&mut self, used: &BusUse) {
        self.notes.note(Record::Bus(*used));
    }

    #[inline]
    fn device_done(&mut self, finished: &Finished, now: Instant) {
        let hctx = finished.hctx;
        let tag = finished.tag;
        self.notes.note(Record::DeviceDone { hctx, tag, at: now });
    }

    /// Whether a file could not be written; [`Self::finish`] returns the error. Later records are
    /// lost.
    fn is_broken(&self) -> bool {
        self.notes.is_broken()
    }
}
