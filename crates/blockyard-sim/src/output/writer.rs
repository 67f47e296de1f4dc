//! The thread that writes files, and how what was noted comes to it.
//!
//! Who notes sends batches of records and waits where too many have not been written yet: memory is
//! bounded, and nothing is left out.

use super::blktrace::Blktrace;
use super::perfetto::Perfetto;
use super::record::{LaneId, Record};
use super::{Files, Output, OutputError};
use crate::machine::cpu::TaskId;
use crate::observe::Setting;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Records that go to the thread at once.
const BATCH: usize = 1 << 13;
/// Batches that may wait for the thread before who notes waits for it.
const BATCHES: usize = 8;

/// What the thread is told.
enum Message {
    World(Setting),
    Task(TaskId, String),
    /// What a lane noted, and where the memory of it goes back to.
    Records(LaneId, Vec<Record>, SyncSender<Vec<Record>>),
    /// Nothing that comes after this is written.
    End,
}

/// The thread, and whatever it was told so far.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once the thread has ended.
    messages: Option<SyncSender<Message>>,
    thread: JoinHandle<Result<(), OutputError>>,
}

impl Writer {
    /// A thread that writes `files`, of which a Perfetto file is created now and those of blktrace
    /// when a world begins, as one does now where there is a `setting`.
    ///
    /// # Panics
    ///
    /// If the system does not give a thread.
    pub(super) fn create(files: &Files, setting: Option<&Setting>) -> Result<Self, OutputError> {
        let mut outputs: Vec<Box<dyn Output>> = Vec::new();
        if let Some(path) = &files.perfetto {
            outputs.push(Box::new(Perfetto::create(path)?));
        }
        if let Some(prefix) = &files.blktrace {
            outputs.push(Box::new(Blktrace::new(prefix.clone())));
        }
        if let Some(setting) = setting {
            outputs.iter_mut().try_for_each(|output| output.world(setting))?;
        }
        let (messages, received) = sync_channel(BATCHES);
        let thread = thread::spawn(move || write(outputs, &received));
        Ok(Self { messages: Some(messages), thread })
    }

    pub(super) fn world(&mut self, setting: &Setting) {
        send(&mut self.messages, Message::World(setting.clone()));
    }

    pub(super) fn task(&mut self, task: TaskId, name: &str) {
        send(&mut self.messages, Message::Task(task, name.to_owned()));
    }

    /// What `lane` notes goes to the thread.
    pub(super) fn notes(&self, lane: LaneId) -> Notes {
        let (give_back, back) = sync_channel(BATCHES + 1);
        let batch = Vec::with_capacity(BATCH);
        Notes { lane, batch, messages: self.messages.clone(), give_back, back }
    }

    /// Waits until everything that was handed over is written, and files are closed. What notes that
    /// are still there hold is lost.
    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        send(&mut self.messages, Message::End);
        match self.thread.join() {
            Ok(written) => written,
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
    }
}

/// What one lane has noted and not handed over. It is handed over at the latest when this is dropped.
#[derive(Debug)]
pub(super) struct Notes {
    lane: LaneId,
    batch: Vec<Record>,
    /// `None` once the thread has ended.
    messages: Option<SyncSender<Message>>,
    give_back: SyncSender<Vec<Record>>,
    /// Emptied batches.
    back: Receiver<Vec<Record>>,
}

impl Notes {
    #[inline]
    pub(super) fn note(&mut self, record: Record) {
        self.batch.push(record);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    pub(super) fn hand_over(&mut self) {
        let mut empty = self.back.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        core::mem::swap(&mut self.batch, &mut empty);
        send(&mut self.messages, Message::Records(self.lane, empty, self.give_back.clone()));
    }

    /// Whether the thread has ended: a file could not be written.
    pub(super) const fn is_broken(&self) -> bool {
        self.messages.is_none()
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        self.hand_over();
    }
}

fn send(messages: &mut Option<SyncSender<Message>>, message: Message) {
    if messages.as_ref().is_some_and(|messages| messages.send(message).is_err()) {
        *messages = None; // the thread has ended
    }
}

/// What the thread does: `messages` to every one of `outputs`, until the end or who sends has gone.
fn write(
    mut outputs: Vec<Box<dyn Output>>,
    messages: &Receiver<Message>,
) -> Result<(), OutputError> {
    for message in messages {
        let mut outputs = outputs.iter_mut();
        match message {
            Message::World(setting) => outputs.try_for_each(|output| output.world(&setting))?,
            Message::Task(task, name) => outputs.try_for_each(|output| output.task(task, &name))?,
            Message::Records(lane, mut records, give_back) => {
                outputs.try_for_each(|output| output.records(lane, &records))?;
                records.clear();
                // Where nobody wants it back, it is freed.
                drop(give_back.try_send(records));
            }
            Message::End => break,
        }
    }
    outputs.iter_mut().try_for_each(|output| output.finish())
}
