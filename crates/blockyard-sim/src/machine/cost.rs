//! The costs of the steps of the I/O path, derived from the queues' event stream.

use blockyard::policy::{Model, Policies};
use blockyard::time::Duration;
use blockyard::trace::{Action, Event, Sink};
use blockyard::unit::QueueId;

use super::lock::Hold;
use crate::profile::MachineProfile;

/// The cost of one step in nanoseconds: outside any lock, and under the lock of its queue.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    free_ns: u64,
    locked_ns: u64,
    lock: Acquisition,
}

/// How a step under a lock gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acquisition {
    /// The step needs no lock.
    #[default]
    None,
    /// The step before it leaves the lock to it.
    Kept,
    /// It takes the lock.
    Each,
    /// A row of such steps takes the lock once.
    Row,
}

/// A sink that adds up the costs of the steps of one piece of work.
///
/// Each queue has one lock at most. In the single-lock model every step holds it. In the multi-queue model, inserts into
/// an elevator with one lock, and removals from it, hold that lock. As in Linux, a list of requests is inserted under one
/// acquisition, and each merge that is tried and each removal has its own.
#[derive(Debug)]
pub struct CostSink {
    queue: Step,
    get_request: Step,
    insert: Step,
    schedule: Step,
    issue: Step,
    complete: Step,
    free_ns: u64,
    /// The use of each queue's lock, by number of the queue.
    holds: Vec<Hold>,
    /// The queues whose lock is used.
    used: Vec<QueueId>,
    /// The queue of the last step, if that step belongs to a row.
    in_row: Option<QueueId>,
}

impl CostSink {
    /// Returns the costs of `policies` on `machine`, for so many queues.
    #[must_use]
    pub fn new(machine: &MachineProfile, policies: &Policies, queues: u16) -> Self {
        assert!(machine.cpus > 0, "a machine must have processors");
        let single = policies.model == Model::SingleLock;
        let elevator = !single && policies.elevator.has_one_lock();
        let step = |free: Duration, (of_single, single_lock), (of_elevator, elevator_lock)| {
            let (lock, locked): (Acquisition, Duration) = match (single, elevator) {
                (true, _) => (of_single, single_lock),
                (_, true) => (of_elevator, elevator_lock),
                _ => Default::default(),
            };
            Step { free_ns: free.as_ns(), locked_ns: locked.as_ns(), lock }
        };
        let none = (Acquisition::None, Duration::ZERO);
        let each = |hold| (Acquisition::Each, hold);
        let (merge_try, sort) = (machine.merge_try, machine.elevator_lock);
        Self {
            queue: step(machine.submit + merge_try, each(machine.lock_merge), each(merge_try)),
            get_request: step(Duration::ZERO, (Acquisition::Kept, machine.lock_submit), none),
            insert: step(
                machine.insert,
                (Acquisition::Row, Duration::ZERO),
                (Acquisition::Row, sort),
            ),
            schedule: step(Duration::ZERO, none, each(sort)),
            issue: step(machine.dispatch, each(machine.lock_dispatch), none),
            complete: step(machine.complete, each(machine.lock_complete), none),
            free_ns: 0,
            holds: vec![Hold::default(); usize::from(queues)],
            used: Vec::with_capacity(usize::from(queues)),
            in_row: None,
        }
    }

    /// Takes the time spent outside any lock since the last call. [`Self::next_hold`] has the rest.
    pub fn take_free(&mut self) -> Duration {
        debug_assert!(self.used.is_empty(), "the locks of {:?} are not accounted for", self.used);
        self.in_row = None;
        Duration::from_ns(core::mem::take(&mut self.free_ns))
    }

    /// Takes the use of a queue's lock, until no lock was used since the last call.
    pub fn next_hold(&mut self) -> Option<(QueueId, Hold)> {
        let queue = self.used.pop()?;
        Some((queue, core::mem::take(&mut self.holds[queue.index()])))
    }

    fn add(&mut self, step: Step, queue: QueueId) {
        self.free_ns += step.free_ns;
        let in_row = (step.lock == Acquisition::Row).then_some(queue);
        let follows = in_row.is_some() && self.in_row == in_row;
        self.in_row = in_row;
        if step.lock == Acquisition::None {
            return;
        }
        let hold = &mut self.holds[queue.index()];
        if hold.acquisitions == 0 {
            self.used.push(queue);
        }
        // A step that keeps the lock may be the first of its piece of work.
        let takes = !follows && (step.lock != Acquisition::Kept || hold.acquisitions == 0);
        hold.acquisitions += u32::from(takes);
        hold.time += Duration::from_ns(step.locked_ns);
    }
}

impl Sink for CostSink {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        let step = match event.action {
            Action::Queue => self.queue,
            Action::GetRequest => self.get_request,
            Action::Insert => self.insert,
            Action::Schedule => self.schedule,
            Action::Issue | Action::Refuse(_) => self.issue,
            Action::Complete(_) | Action::SequenceEnd(_) => self.complete,
            _ => return,
        };
        self.add(step, event.queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Device;
    use blockyard::bio::{Flags, Op};
    use blockyard::time::Instant;
    use blockyard::unit::{CpuId, HctxId};

    /// Returns the acquisitions of the locks of two queues by a piece of work with these steps.
    fn acquisitions(policies: &Policies, steps: &[(u16, Action)]) -> [u32; 2] {
        let machine = Device::lookup("null").unwrap().machine;
        let mut sink = CostSink::new(&machine, policies, 2);
        for &(queue, action) in steps {
            sink.event(&Event {
                at: Instant::ZERO,
                action,
                queue: QueueId(queue),
                cpu: CpuId(0),
                hctx: HctxId(0),
                op: Op::Read,
                flags: Flags::NONE,
                sector: 0,
                sectors: 8,
                request: None,
            });
        }
        let mut found = [0; 2];
        while let Some((queue, hold)) = sink.next_hold() {
            found[queue.index()] = hold.acquisitions;
        }
        sink.take_free();
        found
    }

    use Action::{GetRequest, Insert, Issue, Queue, Schedule};

    #[test]
    fn a_list_is_inserted_under_one_acquisition_and_each_removal_has_its_own() {
        let two = [Queue, GetRequest, Queue, GetRequest, Insert, Insert, Schedule, Schedule];
        let steps: Vec<_> = two.into_iter().map(|action| (0, action)).collect();
        // Two merges that are tried, one list, two removals.
        assert_eq!(acquisitions(&Policies::mq_deadline(), &steps), [5, 0]);
        assert_eq!(acquisitions(&Policies::NONE, &steps), [0, 0]);
        assert_eq!(acquisitions(&Policies::mq_kyber(), &steps), [0, 0]);
        let lists = [(0, Insert), (1, Insert), (1, Insert), (1, Schedule), (1, Insert)];
        assert_eq!(acquisitions(&Policies::mq_deadline(), &lists), [1, 3]);
    }

    #[test]
    fn under_the_single_lock_a_bio_gets_its_request_with_the_lock_that_it_has() {
        let single = Policies { model: Model::SingleLock, ..Policies::mq_deadline() };
        let steps = [(1, Queue), (1, GetRequest), (1, Insert), (1, Issue)];
        assert_eq!(acquisitions(&single, &steps), [0, 3]);
        assert_eq!(acquisitions(&single, &[(0, GetRequest)]), [1, 0], "a split bio goes on");
    }
}
