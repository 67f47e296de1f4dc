//! What has to be known of a world to write its next line.

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
    /// Whether it is as it was written last.
    pub(super) const fn is_written(&self) -> bool {
        self.written == self.now
    }

    /// What to write, if it has changed.
    pub(super) fn write(&mut self) -> Option<u64> {
        let changed = !self.is_written();
        self.written = self.now;
        changed.then_some(self.now)
    }
}

/// A part of a request's way (P1).
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

/// Where a request stands, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) stage: Stage,
    pub(super) since: Instant,
    /// It has a driver tag, as it always has without an elevator.
    pub(super) tagged: bool,
    /// How the driver has refused it in this stage.
    pub(super) refused: Option<Busy>,
}

/// A disk's queue.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// By number; `None` for one that is idle.
    pub(super) requests: Vec<Option<Life>>,
    pub(super) held: Counter,
    pub(super) in_flight: Counter,
    pub(super) submitted: Counter,
    /// By hardware queue: why and when a run last stopped.
    pub(super) holds: Vec<Option<(Hold, Instant)>>,
}

impl Disk {
    /// The request of that number.
    pub(super) fn request(&mut self, id: RequestId) -> &mut Option<Life> {
        if self.requests.len() <= id.index() {
            self.requests.resize(id.index() + 1, None);
        }
        &mut self.requests[id.index()]
    }

    /// What has held a request of `hctx` that has waited as `life` says.
    pub(super) fn reason(&self, life: &Life, hctx: HctxId) -> Option<Hold> {
        let stopped = self.holds[hctx.index()].filter(|(_, at)| *at >= life.since);
        life.refused.map(Hold::from).or(stopped.map(|(hold, _)| hold))
    }
}

/// The last command that the device had under a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) since: Instant,
    pub(super) op: Op,
}

impl Slot {
    const EMPTY: Self = Self { since: Instant::ZERO, op: Op::Read };
}

/// A world, or a lane of it.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) cpus: u32,
    pub(super) hctxs: u32,
    depth: u32,
    pub(super) disks: Vec<Disk>,
    /// By hardware queue: driver tags in use.
    pub(super) tags: Vec<Counter>,
    /// By hardware queue and tag.
    pub(super) slots: Vec<Slot>,
    /// Slots whose command is on its way to the device.
    pub(super) starting: Vec<u32>,
    /// The instant of the last change of a counter.
    pub(super) counted_at: Instant,
    /// When counters may be written again.
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

    /// The disk of that number.
    #[inline]
    pub(super) fn disk(&mut self, disk: QueueId) -> &mut Disk {
        while self.disks.len() <= disk.index() {
            let holds = vec![None; self.hctxs as usize];
            self.disks.push(Disk { holds, ..Disk::default() });
        }
        &mut self.disks[disk.index()]
    }

    /// The number of a device slot.
    pub(super) fn slot(&self, hctx: HctxId, tag: DriverTag) -> u32 {
        u32::from(hctx.0) * self.depth + u32::from(tag.0)
    }
}
