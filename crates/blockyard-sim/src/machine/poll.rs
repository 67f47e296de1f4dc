//! Polled hardware queues. They raise no interrupt, so their completions wait here for a poll.

use blockyard::driver::Finished;
use blockyard::hardware_queue::QueueMap;
use blockyard::unit::{CpuId, HctxId};
use std::collections::VecDeque;

/// The polled hardware queues of a host, and their completions.
#[derive(Debug)]
pub struct PolledQueues {
    /// The queue that each processor polls; empty if there is none.
    by_cpu: Vec<HctxId>,
    /// Completions that no poll has found, by hardware queue; empty for queues that interrupt.
    completed: Vec<VecDeque<Finished>>,
}

impl PolledQueues {
    /// Returns the queues that `map` names as polled.
    #[must_use]
    pub fn new(map: &QueueMap) -> Self {
        let hctxs = map.poll.iter().map(|hctx| hctx.index() + 1).max();
        let completed = vec![VecDeque::new(); hctxs.unwrap_or(0)];
        Self { by_cpu: map.poll.clone(), completed }
    }

    /// Whether `hctx` is polled.
    #[must_use]
    pub fn contains(&self, hctx: HctxId) -> bool {
        // Polled queues have the highest numbers.
        self.by_cpu.first().is_some_and(|first| hctx >= *first)
    }

    /// Keeps `finished` until a processor polls.
    pub fn put(&mut self, finished: Finished) {
        debug_assert!(self.contains(finished.hctx), "{finished:?} must belong to a polled queue");
        self.completed[finished.hctx.index()].push_back(finished);
    }

    /// Takes the next completion that a poll from `cpu` finds.
    pub fn take(&mut self, cpu: CpuId) -> Option<Finished> {
        let hctx = *self.by_cpu.get(cpu.index())?;
        self.completed[hctx.index()].pop_front()
    }

    /// Whether a poll from `cpu` would find a completion.
    #[must_use]
    pub(crate) fn has_for(&self, cpu: CpuId) -> bool {
        let hctx = self.by_cpu.get(cpu.index());
        hctx.is_some_and(|hctx| !self.completed[hctx.index()].is_empty())
    }

    /// Returns the processors that poll `hctx`.
    pub(crate) fn cpus_of(&self, hctx: HctxId) -> impl Iterator<Item = CpuId> {
        let cpus = (0..).map(CpuId).zip(&self.by_cpu);
        cpus.filter(move |(_, of_cpu)| **of_cpu == hctx).map(|(cpu, _)| cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::driver::Outcome;
    use blockyard::status::Status;
    use blockyard::unit::{DriverTag, QueueId};

    fn finished(hctx: u16, tag: u16) -> Finished {
        let outcome = Outcome::Done(Status::Ok);
        Finished { queue: QueueId(0), hctx: HctxId(hctx), tag: DriverTag(tag), outcome }
    }

    #[test]
    fn a_processor_finds_what_its_own_queue_completed_in_order() {
        let mut polled = PolledQueues::new(&QueueMap::with_kinds(4, 1, 1, 2));
        assert_eq!(
            [0, 1, 2, 3].map(|hctx| polled.contains(HctxId(hctx))),
            [false, false, true, true]
        );
        let of_second: Vec<_> = polled.cpus_of(HctxId(3)).collect();
        assert_eq!(of_second, [CpuId(2), CpuId(3)]);
        polled.put(finished(3, 8));
        polled.put(finished(3, 7));
        assert!(!polled.has_for(CpuId(0)) && polled.has_for(CpuId(2)) && polled.has_for(CpuId(3)));
        assert_eq!(polled.take(CpuId(1)), None);
        assert_eq!(polled.take(CpuId(2)), Some(finished(3, 8)));
        assert_eq!(polled.take(CpuId(3)), Some(finished(3, 7)));
        assert!(!polled.has_for(CpuId(3)));
    }

    #[test]
    fn without_polled_queues_nothing_is_polled() {
        let mut none = PolledQueues::new(&QueueMap::with_kinds(4, 2, 2, 0));
        assert!(!none.contains(HctxId(3)) && !none.has_for(CpuId(3)));
        assert_eq!((none.take(CpuId(3)), none.cpus_of(HctxId(3)).count()), (None, 0));
    }
}
