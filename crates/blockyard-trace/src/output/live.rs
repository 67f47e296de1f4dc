//! Traces of request queues that several threads drive in real time.

use super::file::OutputError;
use super::files::Files;
use super::record::{LaneId, Record, Step, Thread};
use super::writer::{Notes, Writer};
use crate::observe::{Setting, TaskId};
use blockyard::time::Instant;
use blockyard::trace::{Action, Event};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use std::sync::OnceLock;

/// The lanes of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The name of its processes.
    pub name: String,
    /// Number of threads. Each has a request queue for each disk.
    pub lanes: u16,
    /// Number of disks.
    pub disks: u16,
    /// The largest number of driver tags of a request queue.
    pub depth: u16,
}

/// Writes traces of request queues in real time.
///
/// Call [`Self::finish`] after every [`LaneRecorder`] is dropped: only its result says whether the
/// files are complete. An earlier call closes the files without the records still in the recorders.
#[derive(Debug)]
pub struct LiveRecorder {
    writer: Writer,
    lanes: Lanes,
    /// Time zero of the trace.
    begin: OnceLock<Instant>,
}

impl LiveRecorder {
    /// Creates `files` and returns their recorder. A thread calls `broken` as soon as a record
    /// cannot be written: the trace then ends.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a file cannot be created.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    pub fn create(
        files: &Files,
        lanes: Lanes,
        broken: impl FnOnce(&OutputError) + Send + 'static,
    ) -> Result<Self, OutputError> {
        let setting = Setting {
            name: lanes.name.clone(),
            device: String::new(),
            cpus: lanes.lanes,
            hctxs: lanes.disks,
            depth: lanes.depth,
            mmc: false,
            lanes: Some(lanes.lanes),
        };
        let mut writer = Writer::create(files, Some(&setting), Box::new(broken))?;
        for lane in 0..lanes.lanes {
            writer.task(TaskId(lane.into()), &format!("lane-{lane}"));
        }
        Ok(Self { writer, lanes, begin: OnceLock::new() })
    }

    /// Returns the recorder of `lane`, which begins at `now`. The first lane begins the trace.
    ///
    /// # Panics
    ///
    /// If there is no such lane.
    #[must_use]
    pub fn lane(&self, lane: u16, now: Instant) -> LaneRecorder {
        assert!(lane < self.lanes.lanes, "lane {lane} of a recorder for {}", self.lanes.lanes);
        let slots = usize::from(self.lanes.disks) * usize::from(self.lanes.depth);
        LaneRecorder {
            notes: self.writer.notes(LaneId(lane)),
            lane,
            begin: *self.begin.get_or_init(|| now),
            depth: usize::from(self.lanes.depth),
            issued: vec![false; slots],
        }
    }

    /// Writes the remaining records and closes the files. Records that a [`LaneRecorder`] still
    /// holds or takes later are lost.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a record could not be written, now or before.
    pub fn finish(self) -> Result<(), OutputError> {
        self.writer.finish()
    }
}

/// Records the events of one lane's queues. It waits while too many records are unwritten, and
/// drops all records after a file could not be written.
///
/// In the trace a lane is a processor, and its queue of disk N is hardware queue N of disk N. The
/// device completes a request when the lane learns of it.
#[derive(Debug)]
pub struct LaneRecorder {
    notes: Notes,
    lane: u16,
    begin: Instant,
    depth: usize,
    /// Whether the device has a request, by disk and driver tag.
    issued: Vec<bool>,
}

impl LaneRecorder {
    /// Records `event` of this lane's queue of `disk`.
    #[inline]
    pub fn event(&mut self, disk: u16, event: &Event<'_>) {
        let event = Event {
            at: Instant::ZERO + event.at.since(self.begin),
            queue: QueueId(disk),
            cpu: CpuId(self.lane),
            hctx: HctxId(disk),
            ..*event
        };
        let by = Thread::Task(TaskId(self.lane.into()));
        let step = Step::of(&event, CpuId(self.lane), by);
        match (step.action, step.tag) {
            (Action::Issue, Some(tag)) => *self.is_issued(disk, tag) = true,
            (Action::Complete(_) | Action::Requeue, Some(tag))
                if core::mem::take(self.is_issued(disk, tag)) =>
            {
                self.notes.note(Record::DeviceDone { hctx: step.hctx, tag, at: step.at });
            }
            _ => {}
        }
        self.notes.note(Record::Step(step));
    }

    fn is_issued(&mut self, disk: u16, tag: DriverTag) -> &mut bool {
        debug_assert!(tag.index() < self.depth, "{tag:?} of a queue with {}", self.depth);
        &mut self.issued[usize::from(disk) * self.depth + tag.index()]
    }
}
