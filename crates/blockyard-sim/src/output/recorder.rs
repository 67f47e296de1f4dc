//! The observer that hands everything to a thread which writes files.

use super::record::{LaneId, Record, Step, Thread};
use super::writer::{Notes, Writer};
use super::{Files, OutputError};
use crate::device::mmc::used::BusUse;
use crate::machine::cpu::{TaskId, Work};
use crate::observe::{Observer, Setting};
use blockyard::driver::Finished;
use blockyard::time::Instant;
use blockyard::trace::{Event, Sink};
use blockyard::unit::CpuId;

/// Writes traces of the worlds it watches.
///
/// Say [`Self::finish`] when the last of them has ended: only that tells whether everything was
/// written. Dropped without it, the files are left as far as they got.
#[derive(Debug)]
pub struct Recorder {
    notes: Notes,
    /// What is being done, where, and since when (rule W2 of [`observe`](crate::observe)).
    doing: Option<(CpuId, Work, Instant)>,
    writer: Writer,
}

impl Recorder {
    /// A recorder that writes `files`, of which a Perfetto file is created now and those of
    /// blktrace, one for each processor, when a world begins.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a file cannot be created.
    ///
    /// # Panics
    ///
    /// If the system does not give it a thread.
    pub fn create(files: &Files) -> Result<Self, OutputError> {
        let writer = Writer::create(files, None)?;
        Ok(Self { notes: writer.notes(LaneId(0)), doing: None, writer })
    }

    /// Whether a file could not be written: [`Self::finish`] says which. What is recorded from then
    /// on is lost.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.notes.is_broken()
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if anything could not be written, now or before.
    pub fn finish(self) -> Result<(), OutputError> {
        drop(self.notes);
        self.writer.finish()
    }
}

impl Sink for Recorder {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let (on, by) = match &self.doing {
            Some((cpu, work, _)) => (*cpu, Thread::from(work)),
            None => (event.cpu, Thread::None), // W2
        };
        self.notes.note(Record::Step(Step::of(event, on, by)));
    }
}

impl Observer for Recorder {
    fn world_begins(&mut self, setting: &Setting) {
        self.notes.hand_over();
        self.doing = None;
        self.writer.world(setting);
    }

    fn task_begins(&mut self, task: TaskId, name: &str) {
        self.notes.hand_over();
        self.writer.task(task, name);
    }

    #[inline]
    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        self.doing = Some((cpu, *work, now));
    }

    #[inline]
    fn work_ends(&mut self, end: Instant) {
        if let Some((on, work, begin)) = self.doing.take() {
            self.notes.note(Record::Work { on, work, begin, end });
        }
    }

    fn spun(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        self.notes.note(Record::Spin { on: cpu, begin: since, end: now });
    }

    fn polled(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        self.notes.note(Record::Poll { on: cpu, begin: since, end: now });
    }

    #[inline]
    fn bus_used(&mut self, used: &BusUse) {
        self.notes.note(Record::Bus(*used));
    }

    #[inline]
    fn device_done(&mut self, finished: &Finished, now: Instant) {
        let (hctx, tag) = (finished.hctx, finished.tag);
        self.notes.note(Record::DeviceDone { hctx, tag, at: now });
    }
}
