//! Where requests spend their time, and what holds hardware queues.

#![expect(clippy::float_arithmetic, reason = "means are for reading: nothing is ordered by them")]

use blockyard::stats::{Direction, Stage};
use blockyard::trace::{Action, Hold};
use serde::{Serialize, Serializer};

use blockyard_sim::simulate::Report;
use blockyard_text::number::{approximate, approximate_sum, per_io, ratio};

/// Mean times in nanoseconds. The first and the last are of an I/O, the others of the request that
/// carries it. Syncs are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Life {
    /// An I/O waits for a tag before it can be submitted.
    pub waiting_for_tag: f64,
    /// The request is in the scheduler or a software queue, where I/Os can be merged into it.
    pub queued: f64,
    /// The request has left the scheduler, and the driver has not accepted it yet.
    pub dequeued: f64,
    /// From there until the driver completes it.
    pub in_driver: f64,
    /// The request waits for the flushes before and after its data, and its call for the one at its
    /// end.
    pub waiting_for_flush: f64,
    /// An I/O is complete, and its job has not reaped it yet.
    pub not_reaped: f64,
}

/// A part of a [`Life`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LifeStage {
    /// [`Life::waiting_for_tag`].
    WaitingForTag,
    /// [`Life::queued`].
    Queued,
    /// [`Life::dequeued`].
    Dequeued,
    /// [`Life::in_driver`].
    InDriver,
    /// [`Life::waiting_for_flush`].
    WaitingForFlush,
    /// [`Life::not_reaped`].
    NotReaped,
}

impl LifeStage {
    /// The name that tables and sentences use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WaitingForTag => "waiting for a tag",
            Self::Queued => "queued",
            Self::Dequeued => "dequeued, not issued",
            Self::InDriver => "in the driver",
            Self::WaitingForFlush => "waiting for flushes",
            Self::NotReaped => "completed, not reaped",
        }
    }
}

impl Life {
    /// The mean times in `report`, of a run with `ios` I/Os, each of which spent `in_memory_ns` in
    /// persistent memory. Such an I/O ends in its own system call: the time counts as the driver's.
    pub(super) fn new(report: &Report, ios: u64, in_memory_ns: f64) -> Self {
        let not_reaped = per_io(report.totals.not_reaped.as_ns(), ios) - in_memory_ns;
        Self {
            waiting_for_tag: per_io(report.totals.tag_wait.as_ns(), ios),
            queued: mean_ns(report, Stage::Staged),
            dequeued: mean_ns(report, Stage::Held),
            in_driver: mean_ns(report, Stage::InDriver) + in_memory_ns,
            waiting_for_flush: mean_ns(report, Stage::Flushing)
                + per_io(report.totals.call_flushes.as_ns(), ios),
            not_reaped: not_reaped.max(0.0),
        }
    }

    /// The mean times of requests in `direction` from their submission until the driver completes
    /// them. The times before and after are those of I/Os, are not known by direction, and are 0
    /// here.
    pub(super) fn of_requests(report: &Report, direction: Direction) -> Self {
        Self {
            queued: mean_of(report, &[direction], Stage::Staged),
            dequeued: mean_of(report, &[direction], Stage::Held),
            in_driver: mean_of(report, &[direction], Stage::InDriver),
            waiting_for_flush: mean_of(report, &[direction], Stage::Flushing),
            ..Self::default()
        }
    }

    /// Its parts, in the order in which a request passes them.
    #[must_use]
    pub const fn parts(&self) -> [(LifeStage, f64); 6] {
        [
            (LifeStage::WaitingForTag, self.waiting_for_tag),
            (LifeStage::Queued, self.queued),
            (LifeStage::Dequeued, self.dequeued),
            (LifeStage::InDriver, self.in_driver),
            (LifeStage::WaitingForFlush, self.waiting_for_flush),
            (LifeStage::NotReaped, self.not_reaped),
        ]
    }

    /// All of its parts together.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts().iter().map(|(_, ns)| ns).sum()
    }
}

/// The mean time of a request in `stage` in nanoseconds, reads and writes together.
fn mean_ns(report: &Report, stage: Stage) -> f64 {
    mean_of(report, &Direction::DATA, stage)
}

/// The mean time of a request in one of `directions` in `stage`, in nanoseconds.
fn mean_of(report: &Report, directions: &[Direction], stage: Stage) -> f64 {
    let times =
        |stage| directions.iter().map(move |direction| report.stages.times_ns(*direction, stage));
    let sum: u128 = times(stage).map(|times| times.sum()).sum();
    // Only some requests wait for flushes: the mean is over all requests.
    let of = if stage == Stage::Flushing { Stage::Total } else { stage };
    let count: u64 = times(of).map(|times| times.count()).sum();
    ratio(approximate_sum(sum), approximate(count))
}

/// How a reason held hardware queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// How often a run of a hardware queue stopped for it while there was work.
    pub count: u64,
    /// The same for each I/O.
    pub per_io: f64,
    /// The share of the time that a hardware queue was held for it, as a mean over all of them.
    pub percent: f64,
}

/// What held hardware queues: a [`Held`] for each [`Hold`], by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Holds([Held; Hold::ALL.len()]);

impl Holds {
    /// What held hardware queues in `report`, of a run with `ios` I/Os.
    pub(super) fn new(report: &Report, ios: u64) -> Self {
        let queue_time = approximate(report.span.as_ns()) * f64::from(report.hctxs);
        Self(Hold::ALL.map(|hold| {
            let count = report.stages.count(Action::Hold(hold));
            let held_ns = approximate_sum(report.stages.held_ns(hold));
            Held {
                count,
                per_io: ratio(approximate(count), approximate(ios)),
                percent: ratio(100.0 * held_ns, queue_time),
            }
        }))
    }

    /// What `hold` did.
    #[must_use]
    pub fn of(&self, hold: Hold) -> Held {
        self.iter().find(|(other, _)| *other == hold).expect("every reason is in its list").1
    }

    /// The reason that makes up half of the time that hardware queues were held, if one does.
    #[must_use]
    pub fn main(&self) -> Option<Hold> {
        let all: f64 = self.iter().map(|(_, held)| held.percent).sum();
        debug_assert!(all >= 0.0, "a share is not negative");
        self.iter()
            .find(|(_, held)| held.percent > 0.0 && 2.0 * held.percent >= all)
            .map(|(hold, _)| hold)
    }

    /// Whether no hardware queue was ever held: each request went to the driver when it came.
    #[must_use]
    pub(crate) fn are_none(&self) -> bool {
        self.iter().all(|(_, held)| held.count == 0 && held.percent == 0.0)
    }

    /// Every reason with what it did, in the order of [`Hold::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Hold, Held)> {
        Hold::ALL.into_iter().zip(self.0)
    }
}

impl FromIterator<(Hold, Held)> for Holds {
    fn from_iter<I: IntoIterator<Item = (Hold, Held)>>(all: I) -> Self {
        let mut holds = Self::default();
        for (hold, held) in all {
            let at = Hold::ALL.iter().position(|other| *other == hold);
            holds.0[at.expect("every reason is in its list")] = held;
        }
        holds
    }
}

impl Serialize for Holds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(hold, held)| (hold.name(), held)))
    }
}
