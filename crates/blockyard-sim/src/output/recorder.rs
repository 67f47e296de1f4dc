//! The observer that hands everything to a thread which writes files.

use super::blktrace::Blktrace;
use super::perfetto::Perfetto;
use super::record::{Record, Step, Thread};
use super::{Output, OutputError};
use crate::device::mmc::used::BusUse;
use crate::machine::cpu::{TaskId, Work};
use crate::observe::{Observer, Setting};
use blockyard::driver::Finished;
use blockyard::time::Instant;
use blockyard::trace::{Event, Sink};
use blockyard::unit::CpuId;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Records that go to the thread at once.
const BATCH: usize = 1 << 13;
/// Batches that may wait for the thread before the simulation waits for it.
const BATCHES: usize = 8;

/// Where traces go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// A file of [`perfetto`](super::perfetto) JSON.
    pub perfetto: Option<PathBuf>,
    /// The prefix of [`blktrace`](super::blktrace) files.
    pub blktrace: Option<PathBuf>,
}

/// What the thread is told.
enum Message {
    World(Setting),
    Task(TaskId, String),
    Records(Vec<Record>),
}

/// Writes traces of the worlds it watches.
///
/// Say [`Self::finish`] when the last of them has ended: only that tells whether everything was
/// written. Dropped without it, the files are left as far as they got.
#[derive(Debug)]
pub struct Recorder {
    batch: Vec<Record>,
    /// What is being done, where, and since when (rule W2 of [`observe`](crate::observe)).
    doing: Option<(CpuId, Work, Instant)>,
    /// `None` once the thread has given up.
    to_thread: Option<SyncSender<Message>>,
    /// Emptied batches.
    back: Receiver<Vec<Record>>,
    thread: JoinHandle<Result<(), OutputError>>,
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
        let mut outputs: Vec<Box<dyn Output>> = Vec::new();
        if let Some(path) = &files.perfetto {
            outputs.push(Box::new(Perfetto::create(path)?));
        }
        if let Some(prefix) = &files.blktrace {
            outputs.push(Box::new(Blktrace::new(prefix.clone())));
        }
        let (to_thread, messages) = sync_channel(BATCHES);
        let (give_back, back) = sync_channel(BATCHES + 1);
        let thread = thread::spawn(move || write(outputs, &messages, &give_back));
        let batch = Vec::with_capacity(BATCH);
        Ok(Self { batch, doing: None, to_thread: Some(to_thread), back, thread })
    }

    /// Whether a file could not be written: [`Self::finish`] says which. What is recorded from then
    /// on is lost.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.to_thread.is_none()
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if anything could not be written, now or before.
    pub fn finish(mut self) -> Result<(), OutputError> {
        self.hand_over();
        self.to_thread = None;
        match self.thread.join() {
            Ok(written) => written,
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
    }

    #[inline]
    fn note(&mut self, record: Record) {
        self.batch.push(record);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let mut empty = self.back.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        core::mem::swap(&mut self.batch, &mut empty);
        self.send(Message::Records(empty));
    }

    fn send(&mut self, message: Message) {
        let sent = self.to_thread.as_ref().is_none_or(|to_thread| to_thread.send(message).is_ok());
        if !sent {
            self.to_thread = None; // the thread has ended, with an error
        }
    }
}

/// What the thread does: `messages` to every one of `outputs`, until there are no more.
fn write(
    mut outputs: Vec<Box<dyn Output>>,
    messages: &Receiver<Message>,
    give_back: &SyncSender<Vec<Record>>,
) -> Result<(), OutputError> {
    for message in messages {
        for output in &mut outputs {
            match &message {
                Message::World(setting) => output.world(setting)?,
                Message::Task(task, name) => output.task(*task, name)?,
                Message::Records(records) => output.records(records)?,
            }
        }
        if let Message::Records(mut records) = message {
            records.clear();
            // Where nobody wants it back, it is freed.
            drop(give_back.try_send(records));
        }
    }
    outputs.iter_mut().try_for_each(|output| output.finish())
}

impl Sink for Recorder {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let (on, by) = match &self.doing {
            Some((cpu, work, _)) => (*cpu, Thread::from(work)),
            None => (event.cpu, Thread::None), // W2
        };
        self.note(Record::Step(Step {
            at: event.at,
            sector: event.sector,
            sectors: event.sectors,
            request: event.request.map(|(id, _)| id),
            on,
            by,
            queue: event.queue,
            cpu: event.cpu,
            hctx: event.hctx,
            tag: event.request.and_then(|(_, request)| request.driver_tag()),
            action: event.action,
            op: event.op,
            flags: event.flags,
        }));
    }
}

impl Observer for Recorder {
    fn world_begins(&mut self, setting: &Setting) {
        self.hand_over();
        self.doing = None;
        self.send(Message::World(setting.clone()));
    }

    fn task_begins(&mut self, task: TaskId, name: &str) {
        self.hand_over();
        self.send(Message::Task(task, name.to_owned()));
    }

    #[inline]
    fn work_begins(&mut self, cpu: CpuId, work: &Work, now: Instant) {
        self.doing = Some((cpu, *work, now));
    }

    #[inline]
    fn work_ends(&mut self, end: Instant) {
        if let Some((on, work, begin)) = self.doing.take() {
            self.note(Record::Work { on, work, begin, end });
        }
    }

    fn spun(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        self.note(Record::Spin { on: cpu, begin: since, end: now });
    }

    fn polled(&mut self, cpu: CpuId, since: Instant, now: Instant) {
        self.note(Record::Poll { on: cpu, begin: since, end: now });
    }

    #[inline]
    fn bus_used(&mut self, used: &BusUse) {
        self.note(Record::Bus(*used));
    }

    #[inline]
    fn device_done(&mut self, finished: &Finished, now: Instant) {
        let (hctx, tag) = (finished.hctx, finished.tag);
        self.note(Record::DeviceDone { hctx, tag, at: now });
    }
}
