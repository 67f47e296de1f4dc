//! Counts of what happened, and a hash over all of it.

use blockyard::trace::{Action, Event, Sink};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub(crate) merges: u64,
    pub(crate) joins: u64,
    pub(crate) splits: u64,
    pub(crate) sleeps: u64,
    pub(crate) refusals: u64,
    /// FNV-1a over every event.
    pub(crate) hash: u64,
}

impl Default for Tally {
    fn default() -> Self {
        let hash = 0xcbf2_9ce4_8422_2325;
        Self { merges: 0, joins: 0, splits: 0, sleeps: 0, refusals: 0, hash }
    }
}

impl Tally {
    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01b3);
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
            _ => {}
        }
        for byte in format!("{:?}", event.action).bytes() {
            self.mix(u64::from(byte));
        }
        self.mix(event.at.as_ns());
        self.mix(u64::from(event.queue.0) << 16 | u64::from(event.hctx.0));
        self.mix(event.sector << 20 | u64::from(event.sectors));
        self.mix(event.request.map_or(u64::MAX, |(id, _)| u64::from(id.0)));
    }
}
