//! The processors on which workers run hardware queues, as Linux chooses them.
//!
//! The only hardware queue of a disk is run on the processor that asks for it. One of several has
//! processors of its own, and moves to the next of them with each eighth request for a run
//! (`BLK_MQ_CPU_WORK_BATCH`), along with a run that has not begun. A run that has begun is not
//! joined by another one elsewhere: workqueues do not run an item twice at a time, so the next run
//! follows on the same processor.

use super::{Event, World};
use crate::machine::worker::Worker;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, HctxId, QueueId};
use blockyard_trace::observe::Runner;

/// Requests for a run after which the worker of a hardware queue moves.
const BATCH: u32 = 8;

/// The place of the worker of one hardware queue of one disk.
#[derive(Clone, Debug)]
struct Place {
    /// The processors of the hardware queue.
    cpus: Vec<CpuId>,
    /// The position of the next run among them, and the requests until it moves.
    at: usize,
    left: u32,
    /// The processor of the only hardware queue's next run.
    asked_on: CpuId,
    /// The processor of the last run, and the end of that run.
    ran_on: CpuId,
    ran_until: Instant,
}

impl Place {
    fn new(cpus: Vec<CpuId>) -> Self {
        assert!(!cpus.is_empty(), "a hardware queue without a processor");
        let first = cpus[0];
        let never = Instant::ZERO;
        Self { cpus, at: 0, left: BATCH, asked_on: first, ran_on: first, ran_until: never }
    }

    /// Notes a request for a run from `from`.
    fn ask(&mut self, from: CpuId, is_only: bool) {
        if is_only {
            self.asked_on = from;
            return;
        }
        debug_assert!(self.left > 0, "a worker has moved with its eighth request");
        self.left -= 1;
        if self.left == 0 {
            self.left = BATCH;
            self.at = (self.at + 1) % self.cpus.len();
        }
        self.asked_on = self.cpus[self.at];
    }

    /// Returns the processor of a run at `now`.
    fn cpu(&self, now: Instant) -> CpuId {
        if now < self.ran_until { self.ran_on } else { self.asked_on }
    }
}

/// The places of all workers, by disk and hardware queue.
#[derive(Clone, Debug)]
pub(super) struct Places {
    places: Vec<Vec<Place>>,
    /// The processor that does a piece of work now, or did the last one.
    acting: CpuId,
}

impl Places {
    fn place(&mut self, queue: QueueId, hctx: HctxId) -> &mut Place {
        &mut self.places[queue.index()][hctx.index()]
    }

    /// Notes that `cpu` begins a piece of work.
    pub(super) const fn act(&mut self, cpu: CpuId) {
        self.acting = cpu;
    }

    /// Notes that a worker runs a hardware queue on `cpu` until `end`.
    pub(super) fn note_run(&mut self, queue: QueueId, hctx: HctxId, cpu: CpuId, end: Instant) {
        let place = self.place(queue, hctx);
        place.ran_on = cpu;
        place.ran_until = end;
    }
}

impl World<'_> {
    /// Lets workers share their processors by their lag, each hardware queue on the processors that
    /// `cpus` names for it. Without this call a worker stays on one processor, where it takes turns
    /// with the other threads.
    pub(crate) fn run_workers_by_lag(&mut self, cpus: Vec<Vec<CpuId>>) {
        debug_assert_eq!(cpus.len(), self.worker_cpu.len(), "processors of hardware queues");
        let of_disk: Vec<_> = cpus.into_iter().map(Place::new).collect();
        let places = vec![of_disk; self.queues.len()];
        self.places = Some(Places { places, acting: CpuId(0) });
        let cpus = self.machine.cpus;
        self.cpus.iter_mut().for_each(|cpu| cpu.worker = Some(Worker::new(cpus)));
    }

    /// Returns the processor of the worker that runs `hctx` of `queue`.
    pub(super) fn cpu_of_worker(&mut self, queue: QueueId, hctx: HctxId) -> CpuId {
        let now = self.now;
        match &mut self.places {
            Some(places) => places.place(queue, hctx).cpu(now),
            None => self.worker_cpu[hctx.index()],
        }
    }

    /// Leaves a run of `hctx` to a worker. If one is `pending`, it may move to another processor.
    pub(super) fn ask_worker(&mut self, queue: QueueId, hctx: HctxId, pending: bool) {
        let before = self.cpu_of_worker(queue, hctx);
        let is_only = self.worker_cpu.len() == 1;
        if let Some(places) = &mut self.places {
            let from = places.acting;
            places.place(queue, hctx).ask(from, is_only);
        }
        let cpu = self.cpu_of_worker(queue, hctx);
        debug_assert!(cpu.index() < self.cpus.len(), "a worker on {cpu:?}");
        // A run on its way goes where the place is when it arrives.
        let moves = pending && cpu != before && self.cpus[before.index()].withdraw(queue, hctx);
        if pending && !moves {
            return;
        }
        if !pending {
            self.count_interrupt_of(cpu);
        }
        let there_at = self.worker_is_there_at(cpu);
        self.events.push(there_at, Event::Run(Runner::Worker, queue, hctx));
    }

    /// Returns when a worker that is woken now is ready on `cpu`.
    fn worker_is_there_at(&mut self, cpu: CpuId) -> Instant {
        let now = self.now;
        let later = now + self.machine.run_delay;
        let state = &mut self.cpus[cpu.index()];
        if self.places.is_none() || state.is_idle(now) {
            return later;
        }
        // A worker by lag is ready at once where its processor is at work. It pays for the switch
        // from a thread. A processor that was idle when its interrupt came turns to threads later:
        // to the worker, and then to a submitter that the same interrupt has woken.
        if !state.has_thread(now) {
            state.hold_threads(later);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::time::Duration;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    /// Of the requests for runs of one of several hardware queues, the eighth goes to its next
    /// processor, and each eighth one after it.
    #[test]
    fn a_worker_moves_with_each_eighth_request() {
        let mut place = Place::new([2, 3].map(CpuId).to_vec());
        let mut asked = Vec::new();
        for _ in 0..24 {
            place.ask(CpuId(3), false);
            asked.push(place.cpu(at(0)).0);
        }
        let expected = [[2; 7].as_slice(), &[3; 8], &[2; 8], &[3; 1]].concat();
        assert_eq!(asked, expected);
    }

    /// The only hardware queue is run where the request comes from, unless a run is under way.
    #[test]
    fn the_worker_of_the_only_queue_is_that_of_the_submitter() {
        let place = Place::new([0, 1, 2].map(CpuId).to_vec());
        let mut places = Places { places: vec![vec![place]], acting: CpuId(0) };
        let queue = QueueId(0);
        let hctx = HctxId(0);
        places.place(queue, hctx).ask(CpuId(2), true);
        assert_eq!(places.place(queue, hctx).cpu(at(1)), CpuId(2));
        places.note_run(queue, hctx, CpuId(2), at(5));
        places.place(queue, hctx).ask(CpuId(1), true);
        assert_eq!(places.place(queue, hctx).cpu(at(4)), CpuId(2), "it still runs there");
        assert_eq!(places.place(queue, hctx).cpu(at(5)), CpuId(1));
    }
}
