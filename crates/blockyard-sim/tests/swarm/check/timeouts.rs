//! Checks that the driver is asked about a request after each timeout for which it has owned the
//! request ([asked-each-timeout]): no earlier, and no later than the next whole second.
//! [`seam`](super::seam) and [`cover`](super::cover) check that a request which a timeout ends is
//! ended once.

use crate::draw::Plan;
use crate::recorder::Key;
use blockyard::time::{Duration, Instant};
use std::collections::BTreeMap;

/// The timer fires at whole seconds.
const GRAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Timeouts {
    timeouts: Vec<Duration>,
    /// The instant at which the driver should be asked about each request that it owns.
    due: BTreeMap<Key, Instant>,
}

impl Timeouts {
    pub(super) fn new(plan: &Plan) -> Self {
        let timeouts = plan.queues.iter().map(|queue| queue.timeout).collect();
        Self { timeouts, due: BTreeMap::new() }
    }

    pub(super) fn taken(&mut self, key: Key, now: Instant) {
        self.due.insert(key, now + self.timeouts[key.0.index()]);
    }

    fn check_not_late(due: Instant, key: Key, now: Instant) {
        assert!(
            now <= due + GRAIN,
            "[asked-each-timeout] {key:?} was due at {due}, and it is {now}"
        );
    }

    pub(super) fn asked(&mut self, key: Key, now: Instant) {
        let Some(due) = self.due.get_mut(&key) else {
            panic!("[asked-each-timeout] asked about {key:?}, which the driver does not own")
        };
        assert!(now >= *due, "[asked-each-timeout] {key:?} is asked about at {now}, before {due}");
        Self::check_not_late(*due, key, now);
        *due = now + self.timeouts[key.0.index()];
    }

    pub(super) fn finished(&mut self, key: Key, now: Instant) {
        let due = self.due.remove(&key).expect("a finished request should be known");
        Self::check_not_late(due, key, now);
    }
}
