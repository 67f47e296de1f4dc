//! The times that requests spend in each stage, and counts of the events on the way.

use super::Distribution;
use super::histogram::Histogram;
use super::hold::HoldTimes;
use crate::bio::Op;
use crate::request::StageTimes;
use crate::status::Status;
use crate::time::{Duration, Instant};
use crate::trace::{Action, Event, Hold, Sink};

/// The directions for which statistics are kept separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes and all other ops that are not reads.
    Write,
    /// Flushes: those that bios ask for, and the commands that serve them.
    Flush,
}

impl Direction {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Flush];
    /// Those that move data, in order.
    pub const DATA: [Self; 2] = [Self::Read, Self::Write];
}

impl From<Op> for Direction {
    fn from(op: Op) -> Self {
        match op {
            Op::Flush => Self::Flush,
            op if op.is_read() => Self::Read,
            _ => Self::Write,
        }
    }
}

/// A stage of a request's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// From its submission until it left the elevator or software queue, without the flushes before
    /// its data.
    Staged,
    /// From there until the driver accepted it; [`Action::Hold`] counts the reasons.
    Held,
    /// From there until the driver was done with it.
    InDriver,
    /// Waiting for flushes, before and behind its data. Only for requests that need any.
    Flushing,
    /// From its submission to its end.
    Total,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 5] =
        [Self::Staged, Self::Held, Self::InDriver, Self::Flushing, Self::Total];
}

/// A sink that keeps the time requests spend in each stage, and counts actions. A sink made by
/// [`Self::watching`] also keeps how long hardware queues were held, by reason.
///
/// `H` keeps the times of one direction in one stage, of which there are fifteen. A [`Histogram`]
/// of 58 KiB answers any percentile; a smaller [`Distribution`] suits a process that has many of
/// these sinks.
///
/// An event costs one count. A completion also records up to four times, in nanoseconds; a request
/// that the driver never accepted has none for the stages it did not reach. A flush command has no
/// times: they belong to the requests that it serves.
#[derive(Clone, Debug, Default)]
pub struct StageStats<H = Histogram> {
    directions: [DirectionStats<H>; Direction::ALL.len()],
    holds: HoldTimes,
}

impl StageStats {
    /// Returns an empty sink that watches no hardware queue. Reserves all its memory, 870 KiB.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<H: Distribution> StageStats<H> {
    /// Like [`StageStats::new`], and watches `hctxs` hardware queues of each of `queues` request
    /// queues, all numbered from 0: [`Self::held_ns`] returns how long they were held.
    #[must_use]
    pub fn watching(queues: u16, hctxs: u16) -> Self {
        Self { holds: HoldTimes::new(queues, hctxs), ..Self::default() }
    }

    /// Clears all counts, times and current holds.
    pub fn clear(&mut self) {
        for direction in &mut self.directions {
            direction.times.iter_mut().for_each(H::clear);
            direction.counts.fill(0);
        }
        self.holds.clear();
    }

    /// Adds all counts and times of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (to, from) in self.directions.iter_mut().zip(&other.directions) {
            for (times, more) in to.times.iter_mut().zip(&from.times) {
                times.merge(more);
            }
            for (count, more) in to.counts.iter_mut().zip(&from.counts) {
                *count += more;
            }
        }
        self.holds.merge(&other.holds);
    }

    /// Returns the times, in nanoseconds, that completed requests spent in `stage`.
    #[must_use]
    pub fn times_ns(&self, direction: Direction, stage: Stage) -> &H {
        &self.directions[direction as usize].times[stage as usize]
    }

    /// Returns the nanoseconds that the watched hardware queues were held for `hold`, added up:
    /// each from a run that stopped for it until the driver accepted the next request for that
    /// hardware queue, or another reason took over.
    #[must_use]
    pub const fn held_ns(&self, hold: Hold) -> u128 {
        self.holds.held_ns(hold)
    }

    /// Returns how often `action` happened, in all directions.
    #[must_use]
    pub fn count(&self, action: Action) -> u64 {
        Direction::ALL.map(|direction| self.count_of(direction, action)).iter().sum()
    }

    /// Returns how often `action` happened to bios and requests of `direction`. A [`Action::Hold`]
    /// concerns a hardware queue, so use [`Self::count`] for it.
    #[must_use]
    pub fn count_of(&self, direction: Direction, action: Action) -> u64 {
        self.directions[direction as usize].counts[slot_of(action)]
    }

    /// Returns how many bios, and parts of split ones, have joined a request or got one of their
    /// own.
    #[must_use]
    pub fn bios(&self, direction: Direction) -> u64 {
        [Action::GetRequest, Action::BackMerge, Action::FrontMerge]
            .map(|action| self.count_of(direction, action))
            .iter()
            .sum()
    }

    /// Returns how many requests the [`Self::bios`] have become, with joined requests counted as
    /// one. Bios divided by requests is the number of I/Os per command.
    #[must_use]
    pub fn requests(&self, direction: Direction) -> u64 {
        self.count_of(direction, Action::GetRequest) - self.count_of(direction, Action::Join)
    }
}

impl<H: Distribution> Sink for StageStats<H> {
    #[inline(always)] // its callers know the action: the `match` is decided at compile time
    fn event(&mut self, event: &Event<'_>) {
        let stats = &mut self.directions[Direction::from(event.op) as usize];
        stats.counts[slot_of(event.action)] += 1;
        match (event.action, event.request) {
            // A flush that completes is the command, not a request of its own.
            (Action::Complete(status), Some((_, request))) if request.op != Op::Flush => {
                stats.record_completed(&request.times, event.at);
                if request.ends_with(status) {
                    stats.record_ended(&request.times, event.at);
                }
            }
            (Action::SequenceEnd(_), Some((_, request))) => {
                stats.record_ended(&request.times, event.at)
            }
            (Action::Hold(hold), _) => {
                self.holds.begin_hold(event.queue, event.hctx, hold, event.at)
            }
            (Action::Issue, _) => self.holds.end_hold(event.queue, event.hctx, event.at),
            _ => {}
        }
    }
}

#[derive(Clone, Debug)]
struct DirectionStats<H> {
    times: [H; Stage::ALL.len()],
    counts: [u64; SLOTS],
}

impl<H: Default> Default for DirectionStats<H> {
    fn default() -> Self {
        Self { times: Default::default(), counts: [0; SLOTS] }
    }
}

impl<H: Distribution> DirectionStats<H> {
    /// Notes that the driver was done with a request at `now`. The instant of a stage that was not
    /// reached is zero, or left from before a requeue, and so earlier than the one before it.
    fn record_completed(&mut self, times: &StageTimes, now: Instant) {
        let passed = [times.queued + times.flushed, times.scheduled, times.issued, now];
        for (times, stage) in self.times.iter_mut().zip(passed.windows(2)) {
            if stage[1] < stage[0] {
                break;
            }
            times.record(stage[1].since(stage[0]).as_ns());
        }
    }

    /// Notes that a request ended at `now`.
    fn record_ended(&mut self, times: &StageTimes, now: Instant) {
        if times.flushed > Duration::ZERO {
            self.times[Stage::Flushing as usize].record(times.flushed.as_ns());
        }
        self.times[Stage::Total as usize].record(now.since(times.queued).as_ns());
    }
}

const HOLD: usize = 14;
const REFUSE: usize = HOLD + Hold::ALL.len();
const COMPLETE: usize = REFUSE + Hold::ALL.len();
const SEQUENCE_END: usize = COMPLETE + Status::Gone as usize + 1;
const SLOTS: usize = SEQUENCE_END + Status::Gone as usize + 1;

/// Returns the index of an action's count.
fn slot_of(action: Action) -> usize {
    match action {
        Action::Queue => 0,
        Action::Split => 1,
        Action::BackMerge => 2,
        Action::FrontMerge => 3,
        Action::Join => 4,
        Action::GetRequest => 5,
        Action::Sleep => 6,
        Action::Plug => 7,
        Action::Unplug { .. } => 8,
        Action::Insert => 9,
        Action::Schedule => 10,
        Action::Issue => 11,
        Action::Requeue => 12,
        Action::TimedOut => 13,
        Action::Hold(hold) => HOLD + hold as usize,
        Action::Refuse(busy) => REFUSE + Hold::from(busy) as usize,
        Action::Complete(status) => COMPLETE + status as usize,
        Action::SequenceEnd(status) => SEQUENCE_END + status as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::{Bio, Flags};
    use crate::driver::Busy;
    use crate::request::{Bios, Request, Requests};
    use crate::unit::{CpuId, HctxId, QueueId, RequestId};
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    const ID: RequestId = RequestId(0);

    fn event<'a>(ns: u64, action: Action, op: Op, request: Option<&'a Request>) -> Event<'a> {
        Event {
            at: Instant::from_ns(ns),
            action,
            queue: QueueId(0),
            cpu: CpuId(0),
            hctx: HctxId(0),
            op,
            flags: Flags::NONE,
            sector: 0,
            sectors: 8,
            request: request.map(|request| (ID, request)),
        }
    }

    /// A request of one bio that passed its stages at these nanoseconds.
    fn with_request(bio: Bio, passed: [u64; 3], use_it: impl FnOnce(&Request)) {
        let mut bios = Bios::new(1);
        let mut requests = Requests::new(1);
        let id = bios.take(bio).unwrap();
        requests.start(ID, id, &bios[id], CpuId(0), HctxId(0), Instant::ZERO);
        let times = &mut requests[ID].times;
        [times.queued, times.scheduled, times.issued] = passed.map(Instant::from_ns);
        use_it(&requests[ID]);
    }

    fn sums(stats: &StageStats, direction: Direction) -> Vec<(u64, u128)> {
        let stages = Stage::ALL.iter().map(|&stage| stats.times_ns(direction, stage));
        stages.map(|times| (times.count(), times.sum())).collect()
    }

    #[test]
    fn a_completion_records_the_time_in_each_stage() {
        let mut stats = StageStats::new();
        with_request(Bio::write(0, 8, 0), [100, 150, 400], |request| {
            stats.event(&event(1400, Action::Complete(Status::Ok), Op::Write, Some(request)));
        });
        assert_eq!(
            sums(&stats, Direction::Write),
            [(1, 50), (1, 250), (1, 1000), (0, 0), (1, 1300)]
        );
        assert_eq!(sums(&stats, Direction::Read), [(0, 0); 5]);
    }

    #[test]
    fn stages_not_reached_are_not_recorded() {
        let failed = Action::Complete(Status::IoError);
        for (passed, stages) in [
            ([100, 0, 0], [(0, 0), (0, 0), (0, 0), (0, 0), (1, 400)]),
            ([100, 150, 0], [(1, 50), (0, 0), (0, 0), (0, 0), (1, 400)]),
            ([100, 300, 200], [(1, 200), (0, 0), (0, 0), (0, 0), (1, 400)]),
        ] {
            let mut stats = StageStats::new();
            with_request(Bio::read(0, 8, 0), passed, |request| {
                stats.event(&event(500, failed, Op::Read, Some(request)));
            });
            assert_eq!(sums(&stats, Direction::Read), stages);
        }
    }

    /// A stage that was reached and left at the same instant counts, with no time.
    #[test]
    fn a_stage_that_takes_no_time_is_recorded() {
        let mut stats = StageStats::new();
        with_request(Bio::read(0, 8, 0), [100, 100, 100], |request| {
            stats.event(&event(100, Action::Complete(Status::Ok), Op::Read, Some(request)));
        });
        assert_eq!(sums(&stats, Direction::Read), [(1, 0), (1, 0), (1, 0), (0, 0), (1, 0)]);
    }

    #[test]
    fn bios_per_request_counts_merges_and_joins() {
        let mut stats = StageStats::new();
        for (times, action) in [
            (3, Action::GetRequest),
            (4, Action::BackMerge),
            (1, Action::FrontMerge),
            (1, Action::Join),
        ] {
            for _ in 0..times {
                stats.event(&event(0, action, Op::Read, None));
            }
        }
        assert_eq!((stats.bios(Direction::Read), stats.requests(Direction::Read)), (8, 2));
        assert_eq!((stats.bios(Direction::Write), stats.requests(Direction::Write)), (0, 0));
    }

    #[test]
    fn merged_counts_add_up_and_cleared_ones_are_gone() {
        let mut stats = StageStats::new();
        with_request(Bio::read(0, 8, 0), [1, 2, 3], |request| {
            stats.event(&event(9, Action::Complete(Status::Ok), Op::Read, Some(request)));
        });
        let once = stats.clone();
        stats.merge(&once);
        assert_eq!(stats.count(Action::Complete(Status::Ok)), 2);
        assert_eq!(sums(&stats, Direction::Read), [(2, 2), (2, 2), (2, 12), (0, 0), (2, 16)]);
        stats.clear();
        assert_eq!(stats.count(Action::Complete(Status::Ok)), 0);
        assert_eq!(sums(&stats, Direction::Read), [(0, 0); 5]);
    }

    /// The command is not a request of its own; those that it serves have their times recorded.
    #[test]
    fn a_flush_command_has_no_times() {
        let mut stats = StageStats::new();
        with_request(Bio::new(Op::Flush, 0, 0, 0), [1, 2, 3], |request| {
            stats.event(&event(9, Action::Complete(Status::Ok), Op::Flush, Some(request)));
        });
        assert_eq!(stats.count(Action::Complete(Status::Ok)), 1);
        assert_eq!(sums(&stats, Direction::Flush), [(0, 0); 5]);
    }

    #[test]
    fn holds_of_the_hardware_queues_watched_are_timed() {
        let held = |mut stats: StageStats| {
            for (ns, action) in [(100, Action::Hold(Hold::Device)), (350, Action::Issue)] {
                stats.event(&event(ns, action, Op::Read, None));
            }
            let once = stats.clone();
            stats.merge(&once);
            let held = stats.held_ns(Hold::Device);
            stats.clear();
            assert_eq!(stats.held_ns(Hold::Device), 0, "cleared");
            held
        };
        assert_eq!(held(StageStats::watching(1, 1)), 500);
        assert_eq!(held(StageStats::new()), 0);
    }

    #[test]
    fn every_action_is_counted_apart() {
        let mut actions = alloc::vec![
            Action::Queue,
            Action::Split,
            Action::BackMerge,
            Action::FrontMerge,
            Action::Join,
            Action::GetRequest,
            Action::Sleep,
            Action::Plug,
            Action::Unplug { requests: 1, sleeping: false },
            Action::Insert,
            Action::Schedule,
            Action::Issue,
            Action::Requeue,
            Action::TimedOut,
            Action::Refuse(Busy::Device),
            Action::Refuse(Busy::Resource),
        ];
        for status in [
            Status::Ok,
            Status::IoError,
            Status::Medium,
            Status::Timeout,
            Status::NoSpace,
            Status::NotSupported,
            Status::Gone,
        ] {
            actions.extend([Action::Complete(status), Action::SequenceEnd(status)]);
        }
        actions.extend(Hold::ALL.map(Action::Hold));
        let slots: BTreeSet<usize> = actions.iter().map(|&action| slot_of(action)).collect();
        assert_eq!(slots.len(), actions.len());
        assert!(slots.last() < Some(&SLOTS));

        let mut stats = StageStats::new();
        stats.event(&event(0, Action::Hold(Hold::Tag), Op::Read, None));
        stats.event(&event(0, Action::Refuse(Busy::Device), Op::Write, None));
        let counts = [Hold::Tag, Hold::Device].map(|hold| stats.count(Action::Hold(hold)));
        assert_eq!(counts, [1, 0]);
        assert_eq!(stats.count(Action::Refuse(Busy::Device)), 1);
        assert_eq!(stats.count_of(Direction::Read, Action::Refuse(Busy::Device)), 0);
    }
}
