//! blktrace's binary files, one for each processor, for `blkparse` and `btt`.
//!
//! The file of processor N is `PREFIX.blktrace.N`. It is a sequence of records; all numbers are
//! little-endian:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | magic `0x65617400`, the version (7) in the lowest byte |
//! | 4 | 4 | number within the file, from 1; 0 in a note |
//! | 8 | 8 | time in nanoseconds |
//! | 16 | 8 | first sector |
//! | 24 | 4 | bytes |
//! | 28 | 4 | action in the lower half, categories in the upper |
//! | 32 | 4 | process |
//! | 36 | 4 | device: major above 20 bits of minor |
//! | 40 | 4 | processor |
//! | 44 | 2 | error, a negative errno |
//! | 46 | 2 | bytes that follow (the payload) |
//!
//! A note with the name of a process precedes the first record of the process.
//!
//! A record is in the file of the processor that did the step: a completion in that of the
//! processor which handled it. Each file is therefore in the order of time. A lane is a processor
//! and writes only to its own file.
//!
//! Events without a blktrace letter are left out: a request that leaves the elevator, a hold, a
//! refusal. The join of two requests is an `M` with the range of the request that ends. Job
//! instances and lanes are processes from 1000 on, in order of their start; a worker is a
//! `kworker`; interrupts and timers are process 0. Disk N is device 8, 16 N. A payload has 8 bytes,
//! big-endian: the number of requests for `U`, the first sector of the rest for `X`.

use super::file::{OutputError, OutputFile};
use super::format::Output;
use super::record::{LaneId, Record, Step, Thread};
use crate::observe::{Setting, TaskId};
use blockyard::bio::{Flags, Op};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::trace::Action;
use blockyard::unit::{CpuId, SECTOR_BYTES};
use std::path::PathBuf;

const MAGIC: u32 = 0x6561_7400 | VERSION;
const VERSION: u32 = 7;
/// Bytes of a record without payload.
const RECORD_BYTES: usize = 48;
/// Bytes of a process's name in a note, the last of them zero.
const COMM_BYTES: usize = 16;
/// Job instances are processes from a multiple of this on.
const FIRST_TASK_STEP: u32 = 1000;
const FIRST_WORKER: u32 = 10;

/// Categories, as bits of the action's upper half.
mod category {
    pub(super) const READ: u32 = 1 << 16;
    pub(super) const WRITE: u32 = 1 << 17;
    pub(super) const FLUSH: u32 = 1 << 18;
    pub(super) const SYNC: u32 = 1 << 19;
    pub(super) const QUEUE: u32 = 1 << 20;
    pub(super) const REQUEUE: u32 = 1 << 21;
    pub(super) const ISSUE: u32 = 1 << 22;
    pub(super) const COMPLETE: u32 = 1 << 23;
    pub(super) const PASSTHROUGH: u32 = 1 << 25;
    pub(super) const NOTIFY: u32 = 1 << 26;
    pub(super) const META: u32 = 1 << 28;
    pub(super) const DISCARD: u32 = 1 << 29;
    pub(super) const FUA: u32 = 1 << 31;
}

/// The files of the current world. The next world replaces them.
#[derive(Debug)]
pub(super) struct Blktrace {
    prefix: PathBuf,
    /// One file for each processor.
    files: Vec<OutputFile>,
    /// The number of the last record of each file.
    sequence: Vec<u32>,
    /// Names of the tasks.
    tasks: Vec<String>,
    first_task: u32,
    /// Whether each process has its note: interrupts, workers, tasks.
    noted: (bool, Vec<bool>, Vec<bool>),
}

impl Blktrace {
    /// Returns an output whose files begin with `prefix`.
    pub(super) const fn new(prefix: PathBuf) -> Self {
        Self {
            prefix,
            files: Vec::new(),
            sequence: Vec::new(),
            tasks: Vec::new(),
            first_task: 0,
            noted: (false, Vec::new(), Vec::new()),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), OutputError> {
        // blktrace has no letter for the other events.
        let Some(action) = action_of(step.action) else { return Ok(()) };
        let process = self.process(step);
        let mut kind = kind_of(step);
        let mut sector = step.sector;
        let mut bytes = bytes_of(step.sectors);
        let mut payload = None;
        let mut error = 0;
        match step.action {
            Action::Plug => (kind, sector, bytes) = (category::READ, 0, 0),
            Action::Unplug { requests, .. } => {
                (kind, sector, bytes) = (category::READ, 0, 0);
                payload = Some(u64::from(requests));
            }
            Action::Split => payload = Some(step.sector + u64::from(step.sectors)),
            Action::Complete(status) | Action::SequenceEnd(status) => error = errno(status),
            _ => {}
        }
        // The file of the processor that did the step, not of the one that submitted the request.
        let at = step.on.index();
        debug_assert!(at < self.files.len(), "each processor of the world has a file");
        self.sequence[at] += 1;
        let header = Header {
            sequence: self.sequence[at],
            time: step.at,
            sector,
            bytes,
            action: action | kind,
            process,
            device: device_of(step.queue.0),
            cpu: step.on,
            error,
            payload_bytes: if payload.is_some() { 8 } else { 0 },
        };
        let file = &mut self.files[at];
        file.bytes.extend_from_slice(&header.bytes());
        if let Some(payload) = payload {
            file.bytes.extend_from_slice(&payload.to_be_bytes());
        }
        file.spill()
    }

    /// Returns the process that did `step`, after writing its note.
    fn process(&mut self, step: &Step) -> u32 {
        debug_assert_eq!(self.noted.2.len(), self.tasks.len(), "each task may get its note");
        let (process, noted) = match step.by {
            Thread::None => (0, &mut self.noted.0),
            Thread::Worker => {
                (FIRST_WORKER + u32::from(step.on.0), &mut self.noted.1[step.on.index()])
            }
            Thread::Task(task) => (self.first_task + task.0, &mut self.noted.2[task.0 as usize]),
        };
        if !core::mem::replace(noted, true) {
            let name = match step.by {
                Thread::None => "swapper".to_owned(),
                Thread::Worker => format!("kworker/{}:1H", step.on.0),
                Thread::Task(task) => self.tasks[task.0 as usize].clone(),
            };
            self.note(process, &name, step);
        }
        process
    }

    fn note(&mut self, process: u32, name: &str, step: &Step) {
        let header = Header {
            sequence: 0,
            time: step.at,
            sector: 0,
            bytes: 0,
            action: category::NOTIFY,
            process,
            device: device_of(step.queue.0),
            cpu: step.on,
            error: 0,
            payload_bytes: 16,
        };
        debug_assert!(usize::from(header.payload_bytes) == COMM_BYTES, "the payload is the name");
        let mut comm = [0; COMM_BYTES];
        let len = name.len().min(COMM_BYTES - 1);
        comm[..len].copy_from_slice(&name.as_bytes()[..len]);
        let bytes = &mut self.files[step.on.index()].bytes;
        bytes.extend_from_slice(&header.bytes());
        bytes.extend_from_slice(&comm);
    }
}

impl Output for Blktrace {
    fn world(&mut self, setting: &Setting) -> Result<(), OutputError> {
        *self = Self::new(core::mem::take(&mut self.prefix));
        for cpu in 0..setting.cpus {
            let mut name = self.prefix.clone().into_os_string();
            name.push(format!(".blktrace.{cpu}"));
            self.files.push(OutputFile::create(name.as_ref())?);
        }
        let cpus = usize::from(setting.cpus);
        self.sequence = vec![0; cpus];
        self.noted.1 = vec![false; cpus];
        self.first_task =
            (FIRST_WORKER + u32::from(setting.cpus)).next_multiple_of(FIRST_TASK_STEP);
        debug_assert!(self.first_task > 0, "process 0 stands for interrupts");
        Ok(())
    }

    fn task(&mut self, task: TaskId, name: &str) -> Result<(), OutputError> {
        assert_eq!(task.0 as usize, self.tasks.len(), "tasks should be numbered in order");
        self.tasks.push(name.to_owned());
        self.noted.2.push(false);
        Ok(())
    }

    fn records(&mut self, _lane: LaneId, records: &[Record]) -> Result<(), OutputError> {
        for record in records {
            if let Record::Step(step) = record {
                self.step(step)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), OutputError> {
        self.files.iter_mut().try_for_each(OutputFile::write)
    }
}

/// A record without its payload.
struct Header {
    sequence: u32,
    time: Instant,
    sector: u64,
    bytes: u32,
    action: u32,
    process: u32,
    device: u32,
    cpu: CpuId,
    error: u16,
    payload_bytes: u16,
}

impl Header {
    fn bytes(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.time.as_ns().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sector.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.action.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.process.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.device.to_le_bytes());
        bytes[40..44].copy_from_slice(&u32::from(self.cpu.0).to_le_bytes());
        bytes[44..46].copy_from_slice(&self.error.to_le_bytes());
        bytes[46..48].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes
    }
}

/// Returns blktrace's number for an action, with its category; `None` if blktrace has none.
const fn action_of(action: Action) -> Option<u32> {
    Some(match action {
        Action::Queue => 1 | category::QUEUE,
        Action::BackMerge | Action::Join => 2 | category::QUEUE,
        Action::FrontMerge => 3 | category::QUEUE,
        Action::GetRequest => 4 | category::QUEUE,
        Action::Sleep => 5 | category::QUEUE,
        Action::Requeue => 6 | category::REQUEUE,
        Action::Issue => 7 | category::ISSUE,
        Action::Complete(_) | Action::SequenceEnd(_) => 8 | category::COMPLETE,
        Action::Plug => 9 | category::QUEUE,
        Action::Unplug { sleeping: false, .. } => 10 | category::QUEUE,
        Action::Unplug { sleeping: true, .. } => 11 | category::QUEUE,
        Action::Insert => 12 | category::QUEUE,
        Action::Split => 13,
        Action::Schedule | Action::Refuse(_) | Action::Hold(_) | Action::TimedOut => return None,
    })
}

/// Returns the categories of a step's operation and its flags, as Linux states them.
///
/// Linux submits a flush as an empty write with a preflush (`FWS`), which ends as an empty write
/// (`WS`). Between the two, the driver gets a request of its own without direction (`FN`).
fn kind_of(step: &Step) -> u32 {
    let Step { op, flags, action, .. } = *step;
    let ends = matches!(action, Action::Complete(_) | Action::SequenceEnd(_));
    let op = match op {
        Op::Flush if flags.contains(Flags::PREFLUSH) => return category::READ | category::FLUSH,
        Op::Flush if ends => category::WRITE,
        Op::Read => category::READ,
        Op::Write | Op::WriteZeroes => category::WRITE,
        Op::Discard | Op::SecureErase => category::WRITE | category::DISCARD,
        Op::Flush => category::WRITE | category::FLUSH,
        Op::DriverIn => category::READ | category::PASSTHROUGH,
        Op::DriverOut => category::WRITE | category::PASSTHROUGH,
    };
    [
        (Flags::SYNC, category::SYNC),
        (Flags::META, category::META),
        (Flags::PREFLUSH, category::FLUSH),
        (Flags::FUA, category::FUA),
    ]
    .into_iter()
    .filter(|(flag, _)| flags.contains(*flag))
    .fold(op, |all, (_, category)| all | category)
}

/// Returns the device number of a disk.
fn device_of(disk: u16) -> u32 {
    8 << 20 | u32::from(disk) << 4
}

/// Returns the length in bytes, capped at 32 bits: Linux has no longer bios.
fn bytes_of(sectors: u32) -> u32 {
    sectors.min(u32::MAX / SECTOR_BYTES) * SECTOR_BYTES
}

/// Returns Linux's negative errno for a status.
const fn errno(status: Status) -> u16 {
    let errno: u16 = match status {
        Status::Ok => 0,
        Status::IoError => 5,
        Status::Gone => 19,
        Status::NoSpace => 28,
        Status::Medium => 61,
        Status::NotSupported => 95,
        Status::Timeout => 110,
    };
    errno.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::category::{FLUSH, FUA, READ, SYNC, WRITE};
    use super::*;
    use blockyard::unit::{HctxId, QueueId};

    /// Returns the categories of a step without a range.
    fn kind(op: Op, flags: Flags, action: Action) -> u32 {
        kind_of(&Step {
            at: Instant::ZERO,
            sector: 0,
            sectors: 0,
            request: None,
            on: CpuId(0),
            by: Thread::None,
            queue: QueueId(0),
            cpu: CpuId(0),
            hctx: HctxId(0),
            tag: None,
            action,
            op,
            flags,
        })
    }

    /// The kinds as blkparse prints them: `FWS`, `FN`, `FN`, `WS`, and `FWFS` for a durable write.
    #[test]
    fn a_flush_has_the_kinds_that_linux_records() {
        let of_driver = Flags::PREFLUSH | Flags::SYNC;
        let ended = Action::Complete(Status::Ok);
        assert_eq!(kind(Op::Flush, Flags::SYNC, Action::Queue), WRITE | FLUSH | SYNC);
        assert_eq!(kind(Op::Flush, of_driver, Action::Issue), READ | FLUSH);
        assert_eq!(kind(Op::Flush, of_driver, ended), READ | FLUSH);
        assert_eq!(kind(Op::Flush, Flags::SYNC, ended), WRITE | SYNC);
        let durable = Flags::PREFLUSH | Flags::FUA | Flags::SYNC;
        assert_eq!(kind(Op::Write, durable, Action::Queue), WRITE | FLUSH | FUA | SYNC);
    }
}
