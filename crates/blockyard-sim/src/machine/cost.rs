//! The costs of the steps of the I/O path, derived from the queues' event stream.

use blockyard::policy::{ElevatorKind, Merges, Model, Policies};
use blockyard::tag::TagSetConfig;
use blockyard::time::Duration;
use blockyard::trace::{Action, Event, Sink};

use super::lock::{Hold, LockHolder};
use super::locks::Sites;
use blockyard_devices::profile::MachineProfile;

/// The steps that cost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Queue,
    GetRequest,
    Insert,
    Schedule,
    Issue,
    Complete,
}

impl Step {
    /// Returns what holds a lock that the step takes.
    const fn holder(self) -> LockHolder {
        match self {
            Self::Queue | Self::GetRequest => LockHolder::Submit,
            Self::Insert => LockHolder::Insert,
            Self::Schedule | Self::Issue => LockHolder::Dispatch,
            Self::Complete => LockHolder::Complete,
        }
    }
}

/// The cost of a step in nanoseconds: outside any lock, and under the lock of its queue.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    free_ns: u64,
    locked_ns: u64,
    lock: Acquisition,
}

impl Cost {
    /// Returns the cost of a step that needs no lock.
    const fn free(free_ns: u64) -> Self {
        Self { free_ns, locked_ns: 0, lock: Acquisition::None }
    }

    /// Returns this cost with a time under the lock of the queue.
    const fn locked(self, lock: Acquisition, time: Duration) -> Self {
        Self { locked_ns: time.as_ns(), lock, ..self }
    }
}

/// How a step gets the lock of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acquisition {
    /// The step needs no lock.
    #[default]
    None,
    /// The step before it leaves the lock to it.
    Kept,
    /// So many of such steps, if one follows another, have the lock by one acquisition.
    Row(u32),
}

/// Steps of one kind on one queue that follow each other.
#[derive(Clone, Copy, Debug)]
struct Row {
    step: Step,
    site: usize,
    /// How many more steps the acquisition of the first is good for.
    left: u32,
}

/// A sink that adds up the costs of the steps of one piece of work.
///
/// Each queue has one lock at most. In the single-lock model every step holds it. In the
/// multi-queue model, inserts into an elevator with one lock, and removals from it, hold that lock.
/// As in Linux, a list of requests is inserted under one acquisition, each merge that is tried has
/// its own, and so has each removal unless the design takes several at once.
///
/// A request uses the word of its tag when the tag is taken and when it is put back. A request that
/// the driver refuses uses its dispatch list when it is put there and when it is taken from there;
/// both are counted when it is refused.
#[derive(Debug)]
pub struct CostSink {
    sites: Sites,
    costs: [Cost; 6],
    free_ns: u64,
    /// The holds of each lock.
    holds: Vec<Vec<Hold>>,
    /// The locks that are used.
    used: Vec<usize>,
    /// The holds of the lock that was taken from `used` last.
    taken: Vec<Hold>,
    row: Option<Row>,
}

impl CostSink {
    /// Returns the costs of `policies` on `machine` with `tags`. An acquisition of an elevator's
    /// lock is good for `lock_batch` removals.
    #[must_use]
    pub fn new(
        machine: &MachineProfile,
        policies: &Policies,
        lock_batch: u32,
        tags: &TagSetConfig,
    ) -> Self {
        assert!(machine.cpus > 0, "a machine must have processors");
        let single = policies.model == Model::SingleLock;
        let elevator = !single && policies.elevator.has_one_lock();
        let costs = if single {
            costs_under_single_lock(machine, policies)
        } else if elevator {
            costs_under_elevator_lock(machine, policies, lock_batch)
        } else {
            costs_with_tags(machine, policies)
        };
        let sites = Sites::new(policies, tags, machine.line_transfer > Duration::ZERO);
        Self {
            costs,
            free_ns: 0,
            holds: vec![Vec::new(); sites.all()],
            used: Vec::with_capacity(sites.all()),
            taken: Vec::new(),
            row: None,
            sites,
        }
    }

    /// Returns the places of locks.
    #[must_use]
    pub(crate) const fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Takes the time spent outside any lock since the last call. `next_lock` has the rest.
    pub(crate) fn take_free(&mut self) -> Duration {
        debug_assert!(self.used.is_empty(), "the locks {:?} are not accounted for", self.used);
        self.row = None;
        Duration::from_ns(core::mem::take(&mut self.free_ns))
    }

    /// Goes to the next lock that was used, until there is none, and returns its place.
    /// [`Self::taken`] has its holds.
    pub(crate) fn next_lock(&mut self) -> Option<usize> {
        let site = self.used.pop()?;
        self.taken.clear();
        core::mem::swap(&mut self.taken, &mut self.holds[site]);
        Some(site)
    }

    /// Returns the holds of the lock that `next_lock` returned last, in their order.
    #[must_use]
    pub fn taken(&self) -> &[Hold] {
        &self.taken
    }

    /// Drops what was used and spent since the last call: nobody pays for it.
    pub(crate) fn drop_unpaid(&mut self) {
        while self.next_lock().is_some() {}
        let _ = self.take_free();
    }

    /// Adds the cost of `step`.
    fn add(&mut self, step: Step, event: &Event<'_>) {
        let Cost { free_ns, locked_ns, lock } = self.costs[step as usize];
        self.free_ns += free_ns;
        let row = self.row.take();
        if lock == Acquisition::None {
            return;
        }
        let site = self.sites.queue(event.queue);
        let follows = row.filter(|row| row.step == step && row.site == site && row.left > 0);
        // A step that keeps the lock may be the first of its piece of work.
        let goes_on = match lock {
            Acquisition::Kept => !self.holds[site].is_empty(),
            _ => follows.is_some(),
        };
        // A list of five inserts is one acquisition: the first step begins a row, and the others
        // use it up.
        if let Acquisition::Row(steps) = lock {
            let left = follows.map_or(steps, |row| row.left) - 1;
            self.row = Some(Row { step, site, left });
        }
        let time = Duration::from_ns(locked_ns);
        let by = step.holder();
        // Under the single lock, the requests of a split bio are taken and inserted in turns.
        match self.holds[site].iter_mut().rfind(|hold| goes_on && hold.by == by) {
            Some(hold) => hold.time += time,
            None => self.acquire(Some(site), Hold { by, time }),
        }
    }

    /// Adds a hold of the lock at `site`, if there is one.
    fn acquire(&mut self, site: Option<usize>, hold: Hold) {
        let Some(site) = site else { return };
        let of_lock = &mut self.holds[site];
        if of_lock.is_empty() {
            self.used.push(site);
        }
        of_lock.push(hold);
    }
}

impl Sink for CostSink {
    #[inline(always)] // its callers know the action: the `match` is decided at compile time
    fn event(&mut self, event: &Event<'_>) {
        let step = match event.action {
            Action::Queue => Step::Queue,
            Action::GetRequest => Step::GetRequest,
            Action::Insert => Step::Insert,
            Action::Schedule => Step::Schedule,
            Action::Issue | Action::Refuse(_) => Step::Issue,
            Action::Complete(_) | Action::SequenceEnd(_) => Step::Complete,
            _ => return,
        };
        self.add(step, event);
        // A word or list costs only the move of its line.
        let once = Hold { by: step.holder(), time: Duration::ZERO };
        match event.action {
            Action::GetRequest => {
                let sched = self.sites.sched_tag(event);
                self.acquire(sched.or_else(|| self.sites.driver_tag(event)), once);
            }
            Action::Insert => {
                // The list of one call is added under one acquisition.
                let site = self.sites.insertions(event);
                self.acquire(site.filter(|site| self.holds[*site].is_empty()), once);
            }
            Action::Schedule => self.acquire(self.sites.insertions(event), once),
            Action::Issue if self.sites.has_sched_tags() => {
                self.acquire(self.sites.driver_tag(event), once);
            }
            Action::Refuse(_) => {
                self.acquire(self.sites.list(event), once);
                self.acquire(self.sites.list(event), once);
            }
            Action::Complete(_) => {
                self.acquire(self.sites.driver_tag(event), once);
                self.acquire(self.sites.sched_tag(event), once);
            }
            _ => {}
        }
    }
}

/// Returns the costs of the steps without any lock or tag, in the order of [`Step`]. A design that
/// merges nothing looks for no partner.
const fn costs_without_lock(machine: &MachineProfile, policies: &Policies) -> [Cost; 6] {
    let try_ns = if merges(policies) { machine.merge_try.as_ns() } else { 0 };
    [
        Cost::free(machine.submit.as_ns() + try_ns),
        Cost::free(0),
        Cost::free(machine.insert.as_ns()),
        Cost::free(0),
        Cost::free(machine.dispatch.as_ns()),
        Cost::free(machine.complete.as_ns()),
    ]
}

/// Whether `policies` look for requests that a bio may join.
const fn merges(policies: &Policies) -> bool {
    !matches!(policies.merges, Merges::Off)
}

/// Returns the costs of the steps of the multi-queue model without any lock. A request gets its tag
/// with its memory. If an elevator holds it, that is the scheduler's, and the driver's follows when
/// the request is issued.
const fn costs_with_tags(machine: &MachineProfile, policies: &Policies) -> [Cost; 6] {
    let mut costs = costs_without_lock(machine, policies);
    costs[Step::GetRequest as usize].free_ns += machine.tag.as_ns();
    if !matches!(policies.elevator, ElevatorKind::None) {
        costs[Step::Issue as usize].free_ns += machine.tag.as_ns();
    }
    costs
}

/// Returns the costs of the steps where each of them holds the single lock of its queue. A request
/// that this lock guards has no tag of the block layer. As in Linux, a design that merges nothing
/// takes the lock before it finds that out.
const fn costs_under_single_lock(machine: &MachineProfile, policies: &Policies) -> [Cost; 6] {
    let [queue, get_request, insert, schedule, issue, complete] =
        costs_without_lock(machine, policies);
    let lookup = if merges(policies) { machine.lock_merge } else { Duration::ZERO };
    [
        queue.locked(Acquisition::Row(1), lookup),
        get_request.locked(Acquisition::Kept, machine.lock_submit),
        insert.locked(Acquisition::Row(u32::MAX), Duration::ZERO),
        schedule,
        issue.locked(Acquisition::Row(1), machine.lock_dispatch),
        complete.locked(Acquisition::Row(1), machine.lock_complete),
    ]
}

/// Returns the costs of the steps where an elevator with one lock holds the requests. `batch`
/// removals have the lock by one acquisition. A design that merges nothing does not take it for a
/// bio.
const fn costs_under_elevator_lock(
    machine: &MachineProfile,
    policies: &Policies,
    batch: u32,
) -> [Cost; 6] {
    let [queue, get_request, insert, schedule, issue, complete] =
        costs_with_tags(machine, policies);
    let queue =
        if merges(policies) { queue.locked(Acquisition::Row(1), machine.merge_try) } else { queue };
    if policies.elevator.lists_insertions() {
        // A run files each request, and takes it out again.
        let both = Duration::from_ns(2 * machine.elevator_lock.as_ns());
        let schedule = schedule.locked(Acquisition::Row(batch), both);
        return [queue, get_request, insert, schedule, issue, complete];
    }
    [
        queue,
        get_request,
        insert.locked(Acquisition::Row(u32::MAX), machine.elevator_lock),
        schedule.locked(Acquisition::Row(batch), machine.elevator_lock),
        issue,
        complete,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::bio::{Flags, Op};
    use blockyard::status::Status;
    use blockyard::time::Instant;
    use blockyard::unit::{CpuId, HctxId, QueueId};
    use blockyard_devices::profile::Device;

    const fn event(queue: u16, action: Action) -> Event<'static> {
        Event {
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
        }
    }

    /// Returns the holds by a piece of work with these steps: of each lock of two queues with one
    /// hardware queue each, then of each dispatch list and tag word if cache lines move.
    fn all_holds(
        policies: &Policies,
        batch: u32,
        line_ns: u64,
        steps: &[(u16, Action)],
    ) -> Vec<Vec<Hold>> {
        let machine = Device::lookup("null").unwrap().machine;
        let machine = MachineProfile { line_transfer: Duration::from_ns(line_ns), ..machine };
        let tags = TagSetConfig { queues: 2, ..TagSetConfig::single(3) };
        let mut sink = CostSink::new(&machine, policies, batch, &tags);
        for &(queue, action) in steps {
            sink.event(&event(queue, action));
        }
        let mut found = vec![Vec::new(); sink.sites().all()];
        while let Some(site) = sink.next_lock() {
            found[site] = sink.taken().to_vec();
        }
        sink.take_free();
        found
    }

    fn all_acquisitions(
        policies: &Policies,
        batch: u32,
        line_ns: u64,
        steps: &[(u16, Action)],
    ) -> Vec<usize> {
        all_holds(policies, batch, line_ns, steps).iter().map(Vec::len).collect()
    }

    #[test]
    fn nobody_pays_for_what_was_dropped() {
        let tags = TagSetConfig::single(64);
        let machine = Device::lookup("srp").unwrap().machine;
        let mut sink = CostSink::new(&machine, &Policies::mq_deadline(), 1, &tags);
        let paid = [false, true].map(|drops| {
            sink.acquire(Some(0), Hold { by: Submit, time: Duration::from_ns(5) });
            sink.free_ns += 7;
            if drops {
                sink.drop_unpaid();
            }
            let held = sink.next_lock().map(|_| sink.taken()[0].time.as_ns());
            (held, sink.take_free().as_ns())
        });
        assert_eq!(paid, [(Some(5), 7), (None, 0)]);
    }

    fn acquisitions(policies: &Policies, steps: &[(u16, Action)]) -> Vec<usize> {
        all_acquisitions(policies, 1, 0, steps)
    }

    use Action::{GetRequest, Insert, Issue, Queue, Schedule};
    use LockHolder::{Complete, Dispatch, Submit};

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

    /// The times are those of `server-2021`, the processors of `null`: 8 ns to try a merge, 100 ns
    /// to insert or remove a request; under the single lock 50 ns to try a merge, 250 ns to make a
    /// request, 200 ns to issue it and 300 ns to end it.
    #[test]
    fn each_hold_has_what_holds_the_lock_and_the_time_of_its_steps() {
        let holds = |policies: &Policies, line_ns, steps: &[Action], site: usize| {
            let steps: Vec<_> = steps.iter().map(|action| (0, *action)).collect();
            let holds = all_holds(policies, 1, line_ns, &steps).swap_remove(site);
            holds.into_iter().map(|hold| (hold.by, hold.time.as_ns())).collect::<Vec<_>>()
        };
        let end = Action::Complete(Status::Ok);
        let whole = [Queue, GetRequest, Insert, Insert, Schedule, Issue, end];
        let deadline = Policies::mq_deadline();
        let of_elevator = [(Submit, 8), (LockHolder::Insert, 200), (Dispatch, 100)];
        assert_eq!(holds(&deadline, 0, &whole, 0), of_elevator);
        let single = Policies { model: Model::SingleLock, ..deadline };
        let of_queue = [(Submit, 300), (LockHolder::Insert, 0), (Dispatch, 200), (Complete, 300)];
        assert_eq!(holds(&single, 0, &whole, 0), of_queue);
        // A try to merge, and two requests.
        let split = [Queue, GetRequest, Insert, GetRequest, Insert];
        let of_split = [(Submit, 550), (LockHolder::Insert, 0), (LockHolder::Insert, 0)];
        assert_eq!(holds(&single, 0, &split, 0), of_split);
        // After two locks and two lists: a driver tag is taken to dispatch, and put back at the
        // end.
        assert_eq!(holds(&deadline, 1, &whole, 4), [(Dispatch, 0), (Complete, 0)]);
        assert_eq!(holds(&Policies::NONE, 1, &whole, 4), [(Submit, 0), (Complete, 0)]);
        let refused = [Action::Refuse(blockyard::driver::Busy::Device)];
        assert_eq!(holds(&Policies::NONE, 1, &refused, 2), [(Dispatch, 0), (Dispatch, 0)]);
    }

    /// Returns the time of `steps` outside any lock on the processors of `null`, `server-2021`.
    fn free_ns(policies: &Policies, steps: &[Action]) -> u64 {
        let machine = Device::lookup("null").unwrap().machine;
        let machine = MachineProfile {
            submit: Duration::from_ns(1000),
            merge_try: Duration::from_ns(100),
            tag: Duration::from_ns(7),
            dispatch: Duration::from_ns(40),
            ..machine
        };
        let mut sink = CostSink::new(&machine, policies, 1, &TagSetConfig::single(64));
        steps.iter().for_each(|&action| sink.event(&event(0, action)));
        while sink.next_lock().is_some() {}
        sink.take_free().as_ns()
    }

    /// `nomerges` of 2 once charged the lookup that it saves. With 1000 ns for a bio and 100 ns for
    /// a lookup, a bio takes 1100 ns outside any lock with merges, and 1000 ns without. With merges
    /// mq-deadline has its lock once for the bio and once for the insert, and without only for the
    /// insert. The single lock is taken in any case.
    #[test]
    fn a_design_that_merges_nothing_pays_for_no_lookup() {
        let single = Policies { model: Model::SingleLock, ..Policies::mq_deadline() };
        for policies in [Policies::NONE, Policies::mq_deadline(), Policies::mq_kyber(), single] {
            let of = |merges| free_ns(&Policies { merges, ..policies }, &[Queue]);
            let all = [Merges::All, Merges::Last, Merges::Off].map(of);
            assert_eq!(all, [1100, 1100, 1000], "{policies:?}");
        }
        for (policies, merges, locked) in [
            (Policies::mq_deadline(), Merges::All, 2),
            (Policies::mq_deadline(), Merges::Off, 1),
            (single, Merges::All, 2),
            (single, Merges::Off, 2),
        ] {
            let policies = Policies { merges, ..policies };
            let taken = acquisitions(&policies, &[(0, Queue), (0, GetRequest), (0, Insert)])[0];
            assert_eq!(taken, locked, "{policies:?}");
        }
    }

    /// A tag takes 7 ns and a dispatch 40 ns. Without an elevator a request has one tag: 7 + 40 ns.
    /// With one it has two: 2 * 7 + 40 ns. Requests under the single lock have none: 40 ns.
    #[test]
    fn each_tag_of_a_request_costs_its_time() {
        let single = Policies { model: Model::SingleLock, ..Policies::mq_deadline() };
        let of = [Policies::NONE, Policies::mq_deadline(), Policies::mq_kyber(), single];
        let found = of.map(|policies| free_ns(&policies, &[GetRequest, Issue]));
        assert_eq!(found, [47, 54, 54, 40]);
    }

    #[test]
    fn a_design_may_remove_several_requests_under_one_acquisition() {
        let removals = [1, 3, 256].map(|batch| {
            all_acquisitions(&Policies::mq_deadline(), batch, 0, &[(0, Schedule); 7])[0]
        });
        assert_eq!(removals, [7, 3, 1]);
        let in_between = [(0, Schedule), (0, Issue), (0, Schedule)];
        assert_eq!(all_acquisitions(&Policies::mq_deadline(), 256, 0, &in_between)[0], 2);
    }

    #[test]
    fn a_request_uses_the_words_of_its_tags_and_a_refused_one_its_dispatch_list() {
        fn used(policies: &Policies, steps: &[(u16, Action)]) -> Vec<usize> {
            all_acquisitions(policies, 1, 1, steps)
        }
        let whole = [(1, GetRequest), (1, Issue), (1, Action::Complete(Status::Ok))];
        // Two locks, two lists, one word of three driver tags.
        assert_eq!(used(&Policies::NONE, &whole), [0, 0, 0, 0, 2]);
        // Then two maps of scheduler tags: six tags each, in six words of which one processor uses
        // one.
        let of_deadline = used(&Policies::mq_deadline(), &whole);
        assert_eq!(of_deadline[..5], [0, 0, 0, 0, 2]);
        assert_eq!(of_deadline[5..].iter().sum::<usize>(), 2);
        assert_eq!(of_deadline[5..].iter().filter(|word| **word > 0).count(), 1);
        let refused = [(1, Action::Refuse(blockyard::driver::Busy::Device))];
        assert_eq!(used(&Policies::NONE, &refused), [0, 0, 0, 2, 0]);
        let shared =
            Policies { dispatch: blockyard::policy::Dispatch::SharedList, ..Policies::NONE };
        assert_eq!(used(&shared, &refused), [0, 0, 0, 2, 0]);
    }
}
