//! The shape of a disk: its limits and policies, as its queue needs them.

use crate::parts::bios::BIO_SECTORS_MAX;
use crate::parts::device::{OpenError, RANGE_SECTORS_MAX, SLICE_SECTORS};
use blockyard::bio::Op;
use blockyard::elevator::Elevator;
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, Policies, SchedDepth};
use blockyard::request_queue::QueueConfig;
use blockyard::tag::TagSetConfig;
use blockyard::time::Duration;

/// Makes an elevator of the embedder's own for a queue of this configuration, on a host with these
/// tags.
pub type MakeElevator = fn(&QueueConfig, &TagSetConfig) -> Box<dyn Elevator + Send>;

/// The limits and policies of a disk. See the [module](self).
#[derive(Clone, Debug)]
pub struct Shape {
    /// The limits of the device.
    pub limits: Limits,
    /// The design of the queue.
    pub policies: Policies,
    /// Its elevator, if the design has one of the embedder's own
    /// ([`ElevatorKind::Other`](blockyard::policy::ElevatorKind)).
    pub elevator: Option<MakeElevator>,
    /// The largest number of requests in flight at the device.
    pub depth: u16,
    /// The alignment that the device needs, in bytes, or 1 for none.
    pub block_bytes: u64,
    /// The time after which the core asks the device about a request; `None` for the core's
    /// default.
    pub timeout: Option<Duration>,
    /// Whether the lane's own thread discards and zeroes, which may take long
    /// (`[range-in-slices]`).
    pub takes_slices: bool,
    /// Whether a discard or zeroing of any length is one bio.
    pub takes_long_ranges: bool,
}

impl Shape {
    /// Returns the tags of the disk's only hardware queue.
    #[must_use]
    pub const fn tags(&self) -> TagSetConfig {
        TagSetConfig {
            hctxs: 1,
            depth: self.depth,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 1,
        }
    }

    /// Returns whether bios of `op` are submitted in slices (`[range-in-slices]`).
    #[inline]
    pub(super) const fn is_sliced(&self, op: Op) -> bool {
        matches!(op, Op::Discard | Op::WriteZeroes) && self.takes_slices
    }

    /// Returns the length of the longest bio of `op`, in sectors. The bios of one job follow each
    /// other.
    #[inline]
    pub(crate) const fn longest_bio(&self, op: Op) -> u32 {
        match op {
            Op::Discard | Op::WriteZeroes if self.takes_slices => SLICE_SECTORS,
            Op::Discard | Op::WriteZeroes if !self.takes_long_ranges => RANGE_SECTORS_MAX,
            _ => BIO_SECTORS_MAX,
        }
    }
}

/// The most requests that an elevator may hold: the most tags of a hardware queue in Linux
/// (BLK_MQ_MAX_DEPTH). All of their memory is reserved when a disk opens.
const SCHED_DEPTH_MAX: u32 = 10_240;

/// Refuses policies of which the core makes no queue with this `elevator`, or one that takes no
/// request.
///
/// # Errors
///
/// [`OpenError::Policies`].
pub fn check_policies(
    policies: &Policies,
    elevator: Option<MakeElevator>,
) -> Result<(), OpenError> {
    match policies.elevator {
        ElevatorKind::None => Ok(()),
        _ if policies.sched_depth == SchedDepth::Fixed(0) => {
            Err(OpenError::Policies("the elevator may hold no request"))
        }
        _ if matches!(policies.sched_depth, SchedDepth::Fixed(depth) if depth > SCHED_DEPTH_MAX) => {
            Err(OpenError::Policies("the elevator may hold more than 10240 requests"))
        }
        ElevatorKind::Other if elevator.is_none() => {
            Err(OpenError::Policies("an elevator of your own is missing"))
        }
        ElevatorKind::Kyber(kyber)
            if [kyber.read_depth, kyber.write_depth, kyber.discard_depth, kyber.other_depth]
                .contains(&0) =>
        {
            Err(OpenError::Policies("a depth of kyber is 0"))
        }
        ElevatorKind::Bfq(bfq) if bfq.back_seek_penalty == 0 => {
            Err(OpenError::Policies("the penalty of bfq for seeks back is 0"))
        }
        ElevatorKind::Bfq(bfq) if bfq.timeout_sync == Duration::ZERO => {
            Err(OpenError::Policies("the slots of bfq have no time"))
        }
        ElevatorKind::Adios(adios) if !(-20..=19).contains(&adios.read_priority) => {
            Err(OpenError::Policies("the read priority of adios is not from -20 to 19"))
        }
        ElevatorKind::Adios(adios) if !(1..=3).contains(&adios.shrink_resist) => {
            Err(OpenError::Policies("the models of adios forget a half, a quarter or an eighth"))
        }
        _ => Ok(()),
    }
}
