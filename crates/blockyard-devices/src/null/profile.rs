//! A device that only completes requests: the table `[null]`.

use super::Null;
use crate::charges::{Charges, Resource};
use crate::family::{FamilyProfile, NoHost, Queues, Setup};
use blockyard::time::Duration;
use blockyard_mmc::policy::HostPolicy;
use core::convert::Infallible;

use crate::reader::error::ProfileError;
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Count, Flag, OneOf, Rate, Time};
use crate::terms::DISKS_MAX;

/// The figures of a null device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullProfile {
    /// The way in which it completes a request.
    pub completion: NullCompletion,
    /// The time from acceptance to completion, for [`NullCompletion::Timer`].
    pub completion_time: Duration,
    /// Hardware queues.
    pub submit_queues: u16,
    /// Driver tags of each hardware queue, or of all of them if tags are shared.
    pub depth: u16,
    /// Whether all hardware queues share one set of tags.
    pub shared_tags: bool,
    /// Disks, which share the tags (null_blk's `nr_devices` and `shared_tag_set`).
    pub disks: u16,
    /// The largest rate in bytes per second; `None`: no limit.
    pub bandwidth_limit: Option<u64>,
}

/// The way in which a null device completes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullCompletion {
    /// Within the call that issues it.
    None,
    /// Right after that call, from another context of the same processor.
    Softirq,
    /// After [`NullProfile::completion_time`].
    Timer,
}

const COMPLETION: &[(&str, NullCompletion)] = &[
    ("none", NullCompletion::None),
    ("softirq", NullCompletion::Softirq),
    ("timer", NullCompletion::Timer),
];

impl FamilyProfile for NullProfile {
    type Model = Null;
    type Figures = Infallible;
    type Limit = Infallible;

    const TABLES: &'static [&'static str] = &["null"];
    const SIGN_WORDS: &'static str = "`[null]`";

    fn bases() -> Vec<(&'static str, &'static str)> {
        vec![("null", "null")]
    }

    fn read(top: &Table<'_>) -> Result<Self, ProfileError> {
        null(top)
    }

    fn kind(&self) -> &'static str {
        "a null device"
    }

    fn disk_condition(&self) -> &'static str {
        r#"KERNEL=="nullb[0-9]*""#
    }

    fn queues(&self, _host: Option<HostPolicy>) -> Queues {
        Queues {
            hctxs: self.submit_queues,
            depth: self.depth,
            disks: self.disks,
            own_tags: false,
            shared: self.shared_tags,
            scsi_depth: None,
        }
    }

    fn build(&self, setup: Setup<'_>) -> Result<Self::Model, NoHost> {
        Ok(Null::new(*self, setup.hctxs, setup.cache))
    }

    fn with_disks(self, disks: u16) -> Option<Self> {
        Some(Self { disks, ..self })
    }
}

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[("completion-time", &[Resource::Device])];

table_of!(NULL, /// Reads the table `[null]` of `parent`.
pub(crate) fn null("null") -> NullProfile {
    completion: "completion" need(OneOf(COMPLETION)),
    completion_time: "completion-time" take_or(Time, Duration::from_us(10)),
    submit_queues: "submit-queues" need(Count(1..=1024)),
    depth: "depth" need(Count(1..=10_240)),
    shared_tags: "shared-tags" take_or(Flag, false),
    disks: "disks" take_or(Count(1..=DISKS_MAX), 1),
    bandwidth_limit: "bandwidth-limit" take(Rate),
});
