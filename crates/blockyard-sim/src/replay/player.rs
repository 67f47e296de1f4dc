//! Hands the records of a trace to tasks just before they are due.
//!
//! A task must know a record by the time the record may be due. In an open loop that is the
//! record's own instant. With think time, a submitter can be ahead of the trace, because the device
//! is faster than the recorded one. It must then know its records earlier by the *lead*, which is
//! how far the foremost submitter is ahead. Memory therefore holds only the records between the
//! slowest and the fastest submitter.

use super::calls::Calls;
use super::limits::BACKLOG_MAX;
use super::options::{Options, Pace, Speed};
use super::placing::{Placing, Submitters};
use blockyard::bio::{Bio, Op};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{QueueId, SECTOR_BYTES};
use blockyard_fio::job::Op as Kind;
use blockyard_trace::observe::TaskId;
use blockyard_trace::{OPEN_MAX, Reader, Record, TraceError, TraceFault};
use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Bytes of a memory page, which is one segment of a payload.
const PAGE_BYTES: u32 = 4096;

/// When a task issues a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// As soon as the task has room.
    AtOnce,
    /// In the call that issues the record before it, under the same plug.
    Joined,
    /// At this instant.
    At(Instant),
    /// This long after both the task's latest issue and the instant when no more than this many
    /// I/Os were outstanding.
    After {
        /// The maximum number of outstanding I/Os.
        outstanding: u32,
        /// The time after both.
        gap: Duration,
    },
}

/// A record for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The request queue of its disk.
    pub queue: QueueId,
    /// The bio to submit, without a cookie.
    pub bio: Bio,
    /// The kind of I/O for the statistics; `None` for a flush or a driver command.
    pub kind: Option<Kind>,
    /// Length, bytes.
    pub len_bytes: u32,
    /// When the task issues the record.
    pub due: Due,
    /// When the trace issued the record, in virtual time at the replay's speed.
    pub at: Instant,
    /// When the trace completed the record, likewise.
    pub ended: Option<Instant>,
}

/// Reads a trace as virtual time advances.
#[derive(Debug)]
pub struct Player {
    reader: Reader,
    /// The next records of disks that are replayed.
    calls: Calls,
    /// The record that was read last.
    last: Option<Record>,
    at_end: bool,
    pace: Pace,
    speed: Speed,
    placings: Vec<Option<Placing>>,
    submitters: Submitters,
    thinking: BTreeMap<u32, Thinking>,
    /// How far the foremost submitter is ahead of the trace.
    lead: Duration,
    /// Records that were handed out and have not been submitted.
    backlog: usize,
    /// Records of the call that is being handed out.
    ready: VecDeque<(TaskId, Delivery)>,
}

/// The latest event of a submitter in the trace, and its outstanding I/Os.
#[derive(Debug, Default)]
struct Thinking {
    /// Outstanding I/Os with a known completion: its instant.
    completions: BinaryHeap<Reverse<Instant>>,
    /// Number of outstanding I/Os whose completion is unknown.
    unknown: u32,
    /// The latest issue or completion.
    last: Instant,
}

impl Thinking {
    fn due(&mut self, at: Instant, ended: Option<Instant>) -> Due {
        while let Some(&Reverse(completion)) = self.completions.peek()
            && completion <= at
        {
            self.completions.pop();
            self.last = self.last.max(completion);
        }
        let known = u32::try_from(self.completions.len()).unwrap_or(u32::MAX);
        let outstanding = known.saturating_add(self.unknown);
        debug_assert!(self.last <= at, "[records-in-time-order]");
        debug_assert!(self.completions.len() <= OPEN_MAX, "[bounded-trace-memory]");
        let gap = at.since(self.last);
        self.last = at;
        match ended {
            Some(completion) if self.completions.len() < OPEN_MAX => {
                self.completions.push(Reverse(completion));
            }
            _ => self.unknown = self.unknown.saturating_add(1),
        }
        Due::After { outstanding, gap }
    }
}

impl Player {
    pub(super) fn new(
        reader: Reader,
        options: &Options,
        placings: Vec<Option<Placing>>,
        submitters: Submitters,
    ) -> Self {
        Self {
            reader,
            calls: Calls::default(),
            last: None,
            at_end: false,
            pace: options.pace,
            speed: options.speed,
            placings,
            submitters,
            thinking: BTreeMap::new(),
            lead: Duration::ZERO,
            backlog: 0,
            ready: VecDeque::new(),
        }
    }

    /// Returns the next record that a task must know at `now`, with that task; `None` if no record
    /// is needed yet. Call this again at `next_at`, and after [`Self::submitted`] or
    /// `reached` returns true.
    ///
    /// # Errors
    ///
    /// If the trace cannot be read any more, or has changed.
    pub fn take(&mut self, now: Instant) -> Result<Option<(TaskId, Delivery)>, TraceError> {
        debug_assert!(self.ready.len() <= self.backlog, "ready records are in the backlog");
        if let Some(delivery) = self.ready.pop_front() {
            return Ok(Some(delivery));
        }
        self.read()?;
        let Some(first) = self.calls.first() else { return Ok(None) };
        let room = match self.pace {
            // Twice the depth, so that the task never runs out of records.
            Pace::Closed(depth) => self.backlog < 2 * depth as usize,
            Pace::Open | Pace::Think => self.backlog < BACKLOG_MAX && self.known_at(first) <= now,
        };
        if !room {
            return Ok(None);
        }
        let call = self.calls.take().expect("a call that has a first record");
        self.read()?;
        self.backlog += call.len();
        let handed_out = self.hand_out(&call);
        handed_out.ok_or_else(|| self.reader.fault(TraceFault::Changed))?;
        Ok(self.ready.pop_front())
    }

    /// Returns when a task must know the next record; `None` if no record is left, or if that does
    /// not depend on time.
    #[must_use]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let record = self.calls.first()?;
        let waits = self.backlog < BACKLOG_MAX && !matches!(self.pace, Pace::Closed(_));
        waits.then(|| self.known_at(record))
    }

    /// Whether every record has been handed out.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.at_end && self.calls.first().is_none() && self.ready.is_empty()
    }

    /// Notes that a task has submitted a record. Returns whether this made room for more records.
    #[must_use = "the player may have room for more records"]
    pub const fn submitted(&mut self) -> bool {
        assert!(self.backlog > 0, "a task can only submit a record that it was handed");
        self.backlog -= 1;
        match self.pace {
            Pace::Closed(depth) => self.backlog <= depth as usize,
            Pace::Open | Pace::Think => self.backlog + 1 == BACKLOG_MAX,
        }
    }

    /// Notes that at `now` a submitter has reached the event that the trace has at `then`. Returns
    /// whether tasks must know records earlier because of it.
    #[must_use = "tasks may have to know records earlier"]
    pub(crate) fn reached(&mut self, then: Instant, now: Instant) -> bool {
        let ahead = then.since(now);
        let earlier = self.pace == Pace::Think && ahead > self.lead;
        if earlier {
            self.lead = ahead;
        }
        earlier
    }

    fn known_at(&self, record: &Record) -> Instant {
        debug_assert!(!matches!(self.pace, Pace::Closed(_)), "a closed loop must have no instants");
        let at = self.speed.scale(record.at).as_ns();
        Instant::from_ns(at.saturating_sub(self.lead.as_ns()))
    }

    /// Reads until the first call is complete.
    fn read(&mut self) -> Result<(), TraceError> {
        while !self.at_end && self.calls.wants(self.last.as_ref()) {
            self.last = self.reader.next()?;
            let Some(record) = self.last else {
                self.at_end = true;
                break;
            };
            match self.placings.get(usize::from(record.disk)) {
                Some(None) => self.calls.skip(&record),
                _ => self.calls.push(record),
            }
        }
        Ok(())
    }

    /// Makes the records of a call ready. Returns `None` if a disk, processor or process was not in
    /// the trace when the trace was opened.
    fn hand_out(&mut self, call: &[Record]) -> Option<()> {
        let first = call.first()?;
        let task = match &self.submitters {
            Submitters::One => 0,
            Submitters::Cpus { cpus, tasks } => *tasks.get(&(first.cpu % cpus))?,
            Submitters::Processes(tasks) => *tasks.get(&first.pid)?,
        };
        for (n, record) in call.iter().enumerate() {
            let delivery = self.delivery(record, task, n > 0)?;
            self.ready.push_back((TaskId(task), delivery));
        }
        Some(())
    }

    /// Returns the delivery of `record` to `task`; `None` if the disk was not in the trace when the
    /// trace was opened.
    fn delivery(&mut self, record: &Record, task: u32, joins: bool) -> Option<Delivery> {
        let placing = self.placings.get(usize::from(record.disk)).copied().flatten()?;
        let at = self.speed.scale(record.at);
        let ended = record.took.map(|took| self.speed.scale(record.at + took));
        debug_assert!(ended.is_none_or(|ended| at <= ended), "a record must end after its issue");
        let alone = match self.pace {
            Pace::Open => Due::At(at),
            Pace::Closed(_) => Due::AtOnce,
            Pace::Think => self.thinking.entry(task).or_default().due(at, ended),
        };
        let due = if joins { Due::Joined } else { alone };
        Some(Delivery {
            queue: placing.queue,
            bio: bio_of(record, &placing),
            kind: kind_of(record.op),
            len_bytes: record.len_bytes,
            due,
            at,
            ended,
        })
    }
}

fn bio_of(record: &Record, placing: &Placing) -> Bio {
    let offset = placing.place(record.offset_bytes, record.len_bytes);
    let segments = match record.op {
        Op::Read | Op::Write | Op::DriverIn | Op::DriverOut => {
            record.len_bytes.div_ceil(PAGE_BYTES)
        }
        Op::Flush | Op::Discard | Op::WriteZeroes | Op::SecureErase => 1,
    };
    let bio = Bio {
        segments: u16::try_from(segments).unwrap_or(u16::MAX),
        ..Bio::new(record.op, offset / u64::from(SECTOR_BYTES), record.len_bytes / SECTOR_BYTES, 0)
    };
    bio.with_flags(record.flags)
}

const fn kind_of(op: Op) -> Option<Kind> {
    match op {
        Op::Read => Some(Kind::Read),
        Op::Write | Op::WriteZeroes => Some(Kind::Write),
        Op::Discard | Op::SecureErase => Some(Kind::Trim),
        Op::Flush | Op::DriverIn | Op::DriverOut => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_time_counts_from_the_latest_issue_or_completion() {
        let at = Instant::from_ns;
        let mut thinking = Thinking::default();
        fn after(outstanding: u32, gap: u64) -> Due {
            Due::After { outstanding, gap: Duration::from_ns(gap) }
        }
        assert_eq!(thinking.due(at(5), Some(at(100))), after(0, 5));
        assert_eq!(thinking.due(at(20), Some(at(60))), after(1, 15), "after the issue at 5");
        assert_eq!(thinking.due(at(70), None), after(1, 10), "after the completion at 60");
        assert_eq!(thinking.due(at(100), None), after(1, 0), "the unknown one is outstanding");
        assert_eq!(thinking.due(at(130), None), after(2, 30));
    }
}
