//! Counts of events, a hash over all events, and the steps that checkers examine.

use blockyard::bio::{Flags, Op};
use blockyard::trace::{Action, Event, Hold, Sink};
use blockyard::unit::{HctxId, QueueId, RequestId};
use core::fmt::Write;

/// A step on a request's path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) queue: QueueId,
    pub(crate) hctx: HctxId,
    pub(crate) id: RequestId,
    pub(crate) op: Op,
    pub(crate) flags: Flags,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) merges: u64,
    pub(crate) joins: u64,
    pub(crate) splits: u64,
    pub(crate) sleeps: u64,
    pub(crate) refusals: u64,
    pub(crate) timeouts: u64,
    pub(crate) requeues: u64,
    /// Runs that ended because the elevator withheld its requests.
    pub(crate) withheld: u64,
    pub(crate) hash: Hash,
    /// The steps since the loop last took them.
    pub(crate) steps: Vec<Step>,
}

/// FNV-1a over every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    const fn mix(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01b3);
    }
}

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        text.bytes().for_each(|byte| self.mix(u64::from(byte)));
        Ok(())
    }
}

impl Sink for Tally {
    fn event(&mut self, event: &Event<'_>) {
        match event.action {
            Action::BackMerge | Action::FrontMerge => self.merges += 1,
            Action::Join => self.joins += 1,
            Action::Split => self.splits += 1,
            Action::Sleep => self.sleeps += 1,
            Action::Refuse(_) => self.refusals += 1,
            Action::TimedOut => self.timeouts += 1,
            Action::Requeue => self.requeues += 1,
            Action::Hold(Hold::Order) => self.withheld += 1,
            _ => {}
        }
        if let Some((id, _)) = event.request {
            let Event { action, queue, hctx, op, flags, .. } = *event;
            self.steps.push(Step { action, queue, hctx, id, op, flags });
        }
        let hash = &mut self.hash;
        write!(hash, "{:?}", event.action).expect("a hash takes any text");
        hash.mix(event.at.as_ns());
        hash.mix(u64::from(event.queue.0) << 16 | u64::from(event.hctx.0));
        hash.mix(event.sector << 20 | u64::from(event.sectors));
        hash.mix(event.request.map_or(u64::MAX, |(id, _)| u64::from(id.0)));
    }
}
