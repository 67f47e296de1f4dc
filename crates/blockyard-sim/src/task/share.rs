//! The share of a task in the I/Os of its flow (fio's `flow`).

use blockyard::time::Duration;
use blockyard_fio::job::Flow;

/// A task's weight in a flow, and the I/Os that it has issued there.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The number of the flow.
    pub flow: u32,
    /// The part of the flow's I/Os is this over the weights of all its tasks. Not 0.
    pub weight: u64,
    /// I/Os issued since the task joined the flow.
    pub(crate) issued: u64,
    /// Whether the task counts in the flow: it has begun and not ended.
    pub(crate) joined: bool,
    /// The sleep of a task that is ahead of its share; zero: until it has a turn.
    pub pause: Duration,
}

impl Share {
    /// Returns the share of an instance of a job; `None` if the job is in no flow.
    #[must_use]
    pub fn of(flow: &Flow) -> Option<Self> {
        (flow.weight > 0).then(|| Self {
            flow: flow.id,
            weight: flow.weight.into(),
            issued: 0,
            joined: false,
            pause: Duration::from_ns(flow.pause_ns),
        })
    }
}
