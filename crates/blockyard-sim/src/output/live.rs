//! Traces of request queues that are driven in real time, by several threads at once.

use super::record::{LaneId, Record, Step, Thread};
use super::writer::{Notes, Writer};
use super::{Files, OutputError};
use crate::machine::cpu::TaskId;
use crate::observe::Setting;
use blockyard::time::Instant;
use blockyard::trace::{Action, Event};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use std::sync::OnceLock;

/// What is traced, as far as a trace has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// What its processes are called.
    pub name: String,
    /// Threads, each with a request queue of its own for each disk.
    pub lanes: u16,
    /// Disks.
    pub disks: u16,
    /// Most driver tags that a request queue has.
    pub depth: u16,
}

/// Writes traces of request queues in real time.
///
/// Say [`Self::finish`] when every [`LaneRecorder`] is gone: only that tells whether everything was
/// written. Said before, it closes the files without what these have not handed over.
#[derive(Debug)]
pub struct LiveRecorder {
    writer: Writer,
    lanes: Lanes,
    /// When the trace begins: at its time zero.
    begin: OnceLock<Instant>,
}

impl LiveRecorder {
    /// A recorder that writes `files`, which are created now.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if a file cannot be created.
    ///
    /// # Panics
    ///
    /// If the system does not give it a thread.
    pub fn create(files: &Files, lanes: Lanes) -> Result<Self, OutputError> {
        let setting = Setting {
            name: lanes.name.clone(),
            device: String::new(),
            cpus: lanes.lanes,
            hctxs: lanes.disks,
            depth: lanes.depth,
            mmc: false,
            lanes: Some(lanes.lanes),
        };
        let mut writer = Writer::create(files, Some(&setting))?;
        for lane in 0..lanes.lanes {
            writer.task(TaskId(lane.into()), &format!("lane-{lane}"));
        }
        Ok(Self { writer, lanes, begin: OnceLock::new() })
    }

    /// What `lane` tells of its queues; it begins at `now`, and the trace with the first one.
    ///
    /// # Panics
    ///
    /// If there are not as many lanes.
    #[must_use]
    pub fn lane(&self, lane: u16, now: Instant) -> LaneRecorder {
        assert!(lane < self.lanes.lanes, "lane {lane} of {}", self.lanes.lanes);
        let slots = usize::from(self.lanes.disks) * usize::from(self.lanes.depth);
        LaneRecorder {
            notes: self.writer.notes(LaneId(lane)),
            lane,
            begin: *self.begin.get_or_init(|| now),
            depth: usize::from(self.lanes.depth),
            issued: vec![false; slots],
        }
    }

    /// Writes what is left, and closes the files. What a [`LaneRecorder`] that is still there holds, and
    /// notes from now on, is lost.
    ///
    /// # Errors
    ///
    /// [`OutputError`] if anything could not be written, now or before.
    pub fn finish(self) -> Result<(), OutputError> {
        self.writer.finish()
    }
}

/// Notes what happens in the queues of one lane. Where more is noted than can be written, it waits;
/// once a file could not be written, what it notes is lost.
///
/// In the trace a lane is a processor, a disk's queue in it hardware queue N of disk N. The device is done
/// with a request when the lane hears of it.
#[derive(Debug)]
pub struct LaneRecorder {
    notes: Notes,
    lane: u16,
    begin: Instant,
    depth: usize,
    /// By disk and driver tag: whether a request is at the device.
    issued: Vec<bool>,
}

impl LaneRecorder {
    /// `event` is of this lane's queue of `disk`.
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
        &mut self.issued[usize::from(disk) * self.depth + tag.index()]
    }
}
