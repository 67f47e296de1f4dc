//! The front end of a virtual disk: the table `[virtio]`.

use super::Virtio;
use crate::charges::{Charges, Resource};
use crate::fronts::engine::SyncEngine;
use crate::fronts::front::{FrontFamily, FrontPart};
use blockyard::time::Duration;

use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Count, OneOf, Time};

/// The figures of virtio-blk: a guest's queues, and the thread of the host that serves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtioProfile {
    /// Queues.
    pub hw_queues: u16,
    /// Commands that one queue takes.
    pub depth: u16,
    /// What the host's thread does while the medium works.
    pub engine: VirtioEngine,
    /// Time for which the guest's processor is busy with a kick.
    pub kick: Duration,
    /// Time until the host's thread works, if it slept.
    pub wakeup: Duration,
    /// Time of the thread for a command on its way to the medium.
    pub(crate) interval: Duration,
    /// Time of the thread for its answer.
    pub answer: Duration,
}

/// What the host's thread does while the medium works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtioEngine {
    /// It takes other commands, and answers each as it ends.
    Async,
    /// It waits. It takes commands one by one, and answers all of a batch together.
    Sync,
}

const ENGINE: &[(&str, VirtioEngine)] =
    &[("async", VirtioEngine::Async), ("sync", VirtioEngine::Sync)];

impl FrontFamily for VirtioProfile {
    type Front = Virtio;

    const TABLE: &'static str = "virtio";
    const KIND: &'static str = "a virtual disk";
    const DISK_CONDITION: &'static str = r#"KERNEL=="vd[a-z]*""#;
    const PART: FrontPart = FrontPart::VirtioThread;
    const BASE: Option<&'static str> = Some("virtio-3dxpoint");

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        virtio(top)
    }

    fn hw_queues(&self) -> u16 {
        self.hw_queues
    }

    fn depth(&self) -> u16 {
        self.depth
    }

    fn doorbell(&self) -> Duration {
        self.kick
    }

    fn batches(&self) -> bool {
        true
    }

    fn engine(&self) -> Option<SyncEngine> {
        (self.engine == VirtioEngine::Sync).then(|| SyncEngine::new(self.wakeup))
    }

    fn build(&self) -> Self::Front {
        Virtio::new(*self)
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("interval", &[Resource::Controller]),
    ("kick", &[Resource::Controller, Resource::Device]),
    ("wakeup", &[Resource::Controller, Resource::Device]),
    ("answer", &[Resource::Device]),
];

table_of!(VIRTIO, /// Reads the table `[virtio]` of `parent`.
pub(crate) fn virtio("virtio") -> VirtioProfile {
    hw_queues: "hw-queues" need(Count(1..=1024)),
    depth: "depth" need(Count(1..=1024)),
    engine: "engine" take_or(OneOf(ENGINE), VirtioEngine::Async),
    kick: "kick" need(Time),
    wakeup: "wakeup" need(Time),
    interval: "interval" need(Time),
    answer: "answer" need(Time),
});
