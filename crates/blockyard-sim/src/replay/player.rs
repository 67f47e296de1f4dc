//! Hands the records of a trace to tasks, not earlier than they have to be known.
//!
//! A task need not know a record before it may be due. In an open loop that is its own instant. With
//! think time kept, a submitter that is ahead of the trace, because the device is faster than the
//! recorded one was, has to know its records as much earlier: the *lead* is by how much the
//! foremost submitter is ahead. So what is kept in memory is what lies between the submitters of a
//! trace, not the trace.

use super::error::{TraceError, TraceFault};
use super::plan::{Options, Pace, Placing, Speed, Submitters};
use super::reader::Reader;
use super::record::Record;
use super::{BACKLOG_MAX, OPEN_MAX};
use crate::job::Op as Kind;
use crate::machine::cpu::TaskId;
use blockyard::bio::{Bio, Op};
use blockyard::time::{Duration, Instant};
use blockyard::unit::{QueueId, SECTOR_BYTES};
use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Bytes of a memory page: one segment of a payload.
const PAGE_BYTES: u32 = 4096;

/// When a task issues a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// As soon as there is room.
    AtOnce,
    /// At this instant.
    At(Instant),
    /// So long after the task's latest issue, and after it had no more than so many outstanding.
    After {
        /// I/Os outstanding at most.
        outstanding: u32,
        /// How long after.
        gap: Duration,
    },
}

/// A record for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The request queue of its disk.
    pub queue: QueueId,
    /// What is submitted, without a cookie.
    pub bio: Bio,
    /// The kind it counts as; `None` for a flush or a command of a driver.
    pub kind: Option<Kind>,
    /// Bytes.
    pub len_bytes: u32,
    /// When.
    pub due: Due,
    /// When it was issued, in virtual time at the trace's speed.
    pub at: Instant,
    /// When it was completed, likewise.
    pub ended: Option<Instant>,
}

/// Reads a trace as virtual time goes on.
#[derive(Debug)]
pub struct Player {
    reader: Reader,
    /// The next record of a disk that is replayed.
    next: Option<Record>,
    begun: bool,
    pace: Pace,
    speed: Speed,
    placings: Vec<Option<Placing>>,
    submitters: Submitters,
    thinking: BTreeMap<u32, Thinking>,
    /// By how much the foremost submitter is ahead of the trace.
    lead: Duration,
    /// Records handed out and not submitted yet.
    backlog: usize,
}

/// What a submitter did last in the trace, and what it had outstanding.
#[derive(Debug, Default)]
struct Thinking {
    /// Of what it has outstanding: when each will complete, if that is known.
    completions: BinaryHeap<Reverse<Instant>>,
    /// Those of which it is not known.
    unknown: u32,
    /// Its latest issue or completion.
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
    pub(super) const fn new(
        reader: Reader,
        options: &Options,
        placings: Vec<Option<Placing>>,
        submitters: Submitters,
    ) -> Self {
        Self {
            reader,
            next: None,
            begun: false,
            pace: options.pace,
            speed: options.speed,
            placings,
            submitters,
            thinking: BTreeMap::new(),
            lead: Duration::ZERO,
            backlog: 0,
        }
    }

    /// The next record that has to be known at `now`, and the task it is for; `None` if there is
    /// none yet. Ask again at [`Self::next_at`], and after [`Self::submitted`] and
    /// [`Self::reached`].
    ///
    /// # Errors
    ///
    /// If the trace cannot be read any more, or is not what it was.
    pub fn take(&mut self, now: Instant) -> Result<Option<(TaskId, Delivery)>, TraceError> {
        if !self.begun {
            self.begun = true;
            self.read()?;
        }
        let Some(record) = self.next else { return Ok(None) };
        let room = match self.pace {
            // As much again as can be outstanding, so that the task never runs out.
            Pace::Closed(depth) => self.backlog < 2 * depth as usize,
            Pace::Open | Pace::Think => self.backlog < BACKLOG_MAX && self.known_at(&record) <= now,
        };
        if !room {
            return Ok(None);
        }
        self.read()?;
        self.backlog += 1;
        let delivered = self.deliver(&record);
        delivered.map(Some).ok_or_else(|| self.reader.fault(TraceFault::Changed))
    }

    /// When the next record has to be known; `None` if there is none, or that depends on
    /// something else than time.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let record = self.next.as_ref()?;
        let waits = self.backlog < BACKLOG_MAX && !matches!(self.pace, Pace::Closed(_));
        waits.then(|| self.known_at(record))
    }

    /// Whether every record has been handed out.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.begun && self.next.is_none()
    }

    /// A task has submitted a record. Whether there is room for more because of it.
    #[must_use = "records may be waiting for the room"]
    pub const fn submitted(&mut self) -> bool {
        self.backlog -= 1;
        match self.pace {
            Pace::Closed(depth) => self.backlog <= depth as usize,
            Pace::Open | Pace::Think => self.backlog + 1 == BACKLOG_MAX,
        }
    }

    /// At `now` a submitter has reached what it did in the trace at `then`. Whether records have to
    /// be known earlier because of it.
    #[must_use = "records may have to be known"]
    pub fn reached(&mut self, then: Instant, now: Instant) -> bool {
        let ahead = then.since(now);
        let earlier = self.pace == Pace::Think && ahead > self.lead;
        if earlier {
            self.lead = ahead;
        }
        earlier
    }

    fn known_at(&self, record: &Record) -> Instant {
        let at = self.speed.scale_ns(record.at.as_ns());
        Instant::from_ns(at.saturating_sub(self.lead.as_ns()))
    }

    /// Reads on to the next record of a disk that is replayed.
    fn read(&mut self) -> Result<(), TraceError> {
        loop {
            self.next = self.reader.next()?;
            let disk = self.next.map(|record| usize::from(record.disk));
            let wanted = |disk| self.placings.get(disk).is_none_or(Option::is_some);
            if disk.is_none_or(wanted) {
                return Ok(());
            }
        }
    }

    /// `None`: no such disk, processor or process was there when the trace was opened.
    fn deliver(&mut self, record: &Record) -> Option<(TaskId, Delivery)> {
        let placing = self.placings.get(usize::from(record.disk)).copied().flatten()?;
        let task = match &self.submitters {
            Submitters::One => 0,
            Submitters::Cpus { cpus, tasks } => *tasks.get(&(record.cpu % cpus))?,
            Submitters::Processes(tasks) => *tasks.get(&record.pid)?,
        };
        let scaled = |instant: Instant| Instant::from_ns(self.speed.scale_ns(instant.as_ns()));
        let at = scaled(record.at);
        let ended = record.took.map(|took| scaled(record.at + took));
        let due = match self.pace {
            Pace::Open => Due::At(at),
            Pace::Closed(_) => Due::AtOnce,
            Pace::Think => self.thinking.entry(task).or_default().due(at, ended),
        };
        let delivery = Delivery {
            queue: placing.queue,
            bio: bio_of(record, &placing),
            kind: kind_of(record.op),
            len_bytes: record.len_bytes,
            due,
            at,
            ended,
        };
        Some((TaskId(task), delivery))
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
    fn what_a_submitter_waited_for_is_its_latest_completion_or_issue() {
        let at = Instant::from_ns;
        let mut thinking = Thinking::default();
        let after = |outstanding, gap| Due::After { outstanding, gap: Duration::from_ns(gap) };
        assert_eq!(thinking.due(at(5), Some(at(100))), after(0, 5));
        assert_eq!(thinking.due(at(20), Some(at(60))), after(1, 15), "after the issue at 5");
        assert_eq!(thinking.due(at(70), None), after(1, 10), "after the completion at 60");
        assert_eq!(thinking.due(at(100), None), after(1, 0), "the one unknown is outstanding");
        assert_eq!(thinking.due(at(130), None), after(2, 30));
    }
}
