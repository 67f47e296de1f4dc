//! An entity: what the scheduler serves, a queue or a group of queues.

use super::tree::Stamp;
use crate::elevator::GROUP_WEIGHTS;

/// The bits by which service is shifted before it is divided by a weight.
const SERVICE_SHIFT: u32 = 22;

/// The weight of a group that nobody has weighed: 100.
pub(super) const GROUP_WEIGHT: u32 = 100;
/// The least and the greatest weight of a queue or group.
pub(super) const WEIGHTS: core::ops::RangeInclusive<u32> = GROUP_WEIGHTS;

/// Returns the virtual time in which an entity of this weight gets `service` sectors.
pub(super) fn span(service: u32, weight: u64) -> Stamp {
    (u64::from(service) << SERVICE_SHIFT) / weight.max(1)
}

/// Why the weight of a queue is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raise {
    /// It is not.
    No,
    /// A program starts.
    Interactive,
    /// Its requests come at a low rate, in time.
    SoftRealTime,
}

/// Where an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// In no tree: in service, or forgotten.
    Nowhere,
    /// In the tree of those that have requests.
    Active,
    /// In the tree of those that have none, but whose last service has not ended in virtual time.
    Idle,
}

/// An entity.
#[derive(Clone, Debug)]
pub(super) struct Entity {
    /// The level that it belongs to: 0 is the root, and the others are those of groups.
    pub(super) level: usize,
    /// Its priority class: 0 is real time, 1 best effort, 2 idle. Groups are best effort.
    pub(super) class: usize,
    /// The class that it gets when it is next put into a tree.
    pub(super) asked_class: usize,
    pub(super) start: Stamp,
    pub(super) finish: Stamp,
    pub(super) seat: Seat,
    /// Whether its weight is in the sum of its tree: it is in a tree or in service.
    pub(super) counted: bool,
    /// Sectors that it was served since it was last put in service.
    pub(super) service: u32,
    /// Sectors that it may be served.
    pub(super) budget: u32,
    /// The weight that counts: its own, times [`Self::raise`].
    pub(super) weight: u32,
    pub(super) own_weight: u32,
    /// The weight that it gets when it is next put into a tree.
    pub(super) asked_weight: u32,
    /// The factor of its weight; above 1, it is raised.
    pub(super) raise: u32,
    /// Whether class, weight or factor were changed since it was last put into a tree.
    pub(super) is_changed: bool,
    /// Whether it has requests, or is in service.
    pub(super) is_busy: bool,
    /// The weight under which it is counted among the weights in use.
    pub(super) in_use: Option<u32>,
    /// Its neighbours among the active queues, the newest first.
    pub(super) newer: Option<usize>,
    pub(super) older: Option<usize>,
}

impl Entity {
    /// Returns a new entity that has never been served.
    pub(super) const fn new(level: usize, class: usize, weight: u32) -> Self {
        Self {
            level,
            class,
            asked_class: class,
            start: 0,
            finish: 0,
            seat: Seat::Nowhere,
            counted: false,
            service: 0,
            budget: 0,
            weight,
            own_weight: weight,
            asked_weight: weight,
            raise: 1,
            is_changed: false,
            is_busy: false,
            in_use: None,
            newer: None,
            older: None,
        }
    }

    /// Sectors that are left of its budget; negative if it has got more.
    pub(super) const fn left(&self) -> i64 {
        self.budget as i64 - self.service as i64
    }
}
