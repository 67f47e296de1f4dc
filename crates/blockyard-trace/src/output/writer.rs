//! The thread that writes files, and the channel to it.
//!
//! A recorder sends its records in batches, and waits while too many batches are unwritten. Memory
//! is therefore bounded, and no record is left out.

use super::blktrace::Blktrace;
use super::file::OutputError;
use super::files::Files;
use super::format::Output;
use super::perfetto::Perfetto;
use super::record::{LaneId, Record};
use crate::observe::{Setting, TaskId};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Number of records in a batch.
const BATCH: usize = 1 << 13;
/// Number of batches that may wait for the thread before a recorder waits.
const BATCHES: usize = 8;

/// A message to the thread.
enum Message {
    World(Setting),
    Task(TaskId, String),
    /// Records of a lane, and the channel that returns their memory.
    Records(LaneId, Vec<Record>, SyncSender<Vec<Record>>),
    /// Later messages are not written.
    End,
}

/// A function that hears that the files will not be complete, as soon as a record cannot be
/// written.
pub(super) type Broken = Box<dyn FnOnce(&OutputError) + Send>;

/// The thread, and the channel to it.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once the thread has ended.
    messages: Option<SyncSender<Message>>,
    thread: JoinHandle<Result<(), OutputError>>,
}

impl Writer {
    /// Starts a thread that writes `files`. The Perfetto file is created now. blktrace's files are
    /// created when a world begins, or now if there is a `setting`. The thread calls `broken` if a
    /// record cannot be written, and ends.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    pub(super) fn create(
        files: &Files,
        setting: Option<&Setting>,
        broken: Broken,
    ) -> Result<Self, OutputError> {
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
        let thread = thread::spawn(move || {
            write(&mut outputs, &received).inspect_err(|error| broken(error))?;
            outputs.iter_mut().try_for_each(|output| output.finish())
        });
        Ok(Self { messages: Some(messages), thread })
    }

    pub(super) fn world(&mut self, setting: &Setting) {
        send(&mut self.messages, Message::World(setting.clone()));
    }

    pub(super) fn task(&mut self, task: TaskId, name: &str) {
        send(&mut self.messages, Message::Task(task, name.to_owned()));
    }

    /// Returns the channel for the records of `lane`.
    pub(super) fn notes(&self, lane: LaneId) -> Notes {
        let (give_back, back) = sync_channel(BATCHES + 1);
        let batch = Vec::with_capacity(BATCH);
        Notes { lane, batch, messages: self.messages.clone(), give_back, back }
    }

    /// Waits until all batches that were sent are written, and closes the files. Records in other
    /// [`Notes`] are lost.
    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        send(&mut self.messages, Message::End);
        match self.thread.join() {
            Ok(written) => written,
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
    }
}

/// The records of one lane that were not sent yet. Dropping this sends them.
#[derive(Debug)]
pub(super) struct Notes {
    lane: LaneId,
    batch: Vec<Record>,
    /// `None` once the thread has ended.
    messages: Option<SyncSender<Message>>,
    give_back: SyncSender<Vec<Record>>,
    /// Empty batches, to be used again.
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
        debug_assert!(self.batch.len() <= BATCH, "a batch is sent as soon as it is full");
        let mut empty = self.back.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        debug_assert!(empty.is_empty(), "the thread clears a batch before it returns it");
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

/// Passes `messages` on to every output until the end, or until all senders are gone.
fn write(outputs: &mut [Box<dyn Output>], messages: &Receiver<Message>) -> Result<(), OutputError> {
    for message in messages {
        let mut outputs = outputs.iter_mut();
        match message {
            Message::World(setting) => outputs.try_for_each(|output| output.world(&setting))?,
            Message::Task(task, name) => outputs.try_for_each(|output| output.task(task, &name))?,
            Message::Records(lane, mut records, give_back) => {
                outputs.try_for_each(|output| output.records(lane, &records))?;
                records.clear();
                // If nobody takes the memory back, it is freed.
                drop(give_back.try_send(records));
            }
            Message::End => break,
        }
    }
    Ok(())
}
