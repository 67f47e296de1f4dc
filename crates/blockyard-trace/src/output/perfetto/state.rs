//! The state of a world that its next lines depend on.

use crate::observe::Setting;
use blockyard::bio::Op;
use blockyard::driver::Busy;
use blockyard::time::Instant;
use blockyard::trace::Hold;
use blockyard::unit::{DriverTag, HctxId, QueueId, RequestId};

/// A number that changes over time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    pub(super) now: u64,
    written: u64,
}

impl Counter {
    /// Whether the current value has been written.
    pub(super) const fn is_written(&self) -> bool {
        self.written == self.now
    }

    /// Returns the value if it must be written.
    pub(super) fn write(&mut self) -> Option<u64> {
        let changed = !self.is_written();
        self.written = self.now;
        changed.then_some(self.now)
    }
}

/// A stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Staged,
    Held,
    InDriver,
}

impl Stage {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Held => "held",
            Self::InDriver => "in driver",
        }
    }
}

/// The current stage of a request, and its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) stage: Stage,
    pub(super) since: Instant,
    /// Whether it has a driver tag. Without an elevator it always has one.
    pub(super) tagged: bool,
    /// The driver's last refusal in this stage.
    pub(super) refused: Option<Busy>,
}

/// The queue of a disk.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// The life of each request, by its number; `None` for an idle request.
    pub(super) requests: Vec<Option<Life>>,
    pub(super) held: Counter,
    pub(super) in_flight: Counter,
    pub(super) submitted: Counter,
    /// The last hold of each hardware queue, with its reason and time.
    pub(super) holds: Vec<Option<(Hold, Instant)>>,
}

impl Disk {
    /// The request with this number.
    pub(super) fn request(&mut self, id: RequestId) -> &mut Option<Life> {
        if self.requests.len() <= id.index() {
            self.requests.resize(id.index() + 1, None);
        }
        &mut self.requests[id.index()]
    }

    /// Returns the hold of a request of `hctx` with this `life`.
    pub(super) fn reason(&self, life: &Life, hctx: HctxId) -> Option<Hold> {
        debug_assert!(life.stage == Stage::Held, "only a dequeued request is held");
        let stopped = self.holds[hctx.index()].filter(|(_, at)| *at >= life.since);
        life.refused.map(Hold::from).or(stopped.map(|(hold, _)| hold))
    }
}

/// The last command of the device under a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) since: Instant,
    pub(super) op: Op,
}

impl Slot {
    const EMPTY: Self = Self { since: Instant::ZERO, op: Op::Read };
}

/// A world, or one of its lanes.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) cpus: u32,
    pub(super) hctxs: u32,
    depth: u32,
    pub(super) disks: Vec<Disk>,
    /// The driver tags in use of each hardware queue.
    pub(super) tags: Vec<Counter>,
    /// The device slots, by hardware queue and tag.
    pub(super) slots: Vec<Slot>,
    /// Slots with a command that has not reached the device yet.
    pub(super) starting: Vec<u32>,
    /// The instant of the latest change of a counter.
    pub(super) counted_at: Instant,
    /// The instant from which counters may be written again.
    pub(super) counters_due: Instant,
}

impl World {
    pub(super) fn new(setting: &Setting) -> Self {
        let slots = usize::from(setting.hctxs) * usize::from(setting.depth);
        Self {
            cpus: u32::from(setting.cpus),
            hctxs: u32::from(setting.hctxs),
            depth: u32::from(setting.depth),
            tags: vec![Counter::default(); usize::from(setting.hctxs)],
            slots: vec![Slot::EMPTY; slots],
            ..Self::default()
        }
    }

    /// The disk with this number.
    #[inline]
    pub(super) fn disk(&mut self, disk: QueueId) -> &mut Disk {
        while self.disks.len() <= disk.index() {
            let holds = vec![None; self.hctxs as usize];
            self.disks.push(Disk { holds, ..Disk::default() });
        }
        &mut self.disks[disk.index()]
    }

    /// Returns the number of a device slot.
    pub(super) fn slot(&self, hctx: HctxId, tag: DriverTag) -> u32 {
        debug_assert!(u32::from(hctx.0) < self.hctxs, "{hctx:?} of {}", self.hctxs);
        debug_assert!(u32::from(tag.0) < self.depth, "{tag:?} of {}", self.depth);
        u32::from(hctx.0) * self.depth + u32::from(tag.0)
    }
}
