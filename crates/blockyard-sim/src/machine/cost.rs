//! The costs of the steps of the I/O path, derived from the queues' event stream.

use blockyard::policy::{Model, Policies};
use blockyard::trace::{Action, Event, Sink};

use crate::profile::MachineProfile;

/// The cost of one step in nanoseconds: outside any lock, and under the design's lock.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    free_ns: u64,
    locked_ns: u64,
}

/// A sink that adds up the costs of the steps of one piece of work.
///
/// In the single-lock model every step holds the one lock. In the multi-queue model only inserts into an
/// elevator with one lock, and removals from it, hold that lock.
#[derive(Debug)]
pub struct CostSink {
    queue: Step,
    get_request: Step,
    insert: Step,
    schedule: Step,
    issue: Step,
    complete: Step,
    spent: Step,
}

impl CostSink {
    /// Returns the costs of `policies` on `machine`.
    #[must_use]
    pub fn new(machine: &MachineProfile, policies: &Policies) -> Self {
        assert!(machine.cpus > 0, "a machine must have processors");
        let single = policies.model == Model::SingleLock;
        let elevator = !single && policies.elevator.has_one_lock();
        let step = |free: u64, single_lock: u64, elevator_lock: u64| Step {
            free_ns: free,
            locked_ns: if single {
                single_lock
            } else if elevator {
                elevator_lock
            } else {
                0
            },
        };
        let sort = machine.elevator_lock.as_ns();
        let merge_try = machine.merge_try.as_ns();
        Self {
            queue: step(machine.submit.as_ns() + merge_try, machine.lock_merge.as_ns(), merge_try),
            get_request: step(0, machine.lock_submit.as_ns(), 0),
            insert: step(machine.insert.as_ns(), 0, sort),
            schedule: step(0, 0, sort),
            issue: step(machine.dispatch.as_ns(), machine.lock_dispatch.as_ns(), 0),
            complete: step(machine.complete.as_ns(), machine.lock_complete.as_ns(), 0),
            spent: Step::default(),
        }
    }

    /// Takes the nanoseconds spent since the last call: outside any lock, and under the lock.
    pub fn take(&mut self) -> (u64, u64) {
        let spent = core::mem::take(&mut self.spent);
        (spent.free_ns, spent.locked_ns)
    }

    fn add(&mut self, step: Step) {
        self.spent.free_ns += step.free_ns;
        self.spent.locked_ns += step.locked_ns;
    }
}

impl Sink for CostSink {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        match event.action {
            Action::Queue => self.add(self.queue),
            Action::GetRequest => self.add(self.get_request),
            Action::Insert => self.add(self.insert),
            Action::Schedule => self.add(self.schedule),
            Action::Issue | Action::Refuse(_) => self.add(self.issue),
            Action::Complete(_) | Action::SequenceEnd(_) => self.add(self.complete),
            _ => {}
        }
    }
}
