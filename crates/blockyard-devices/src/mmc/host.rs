//! The request path of `blockyard-mmc` on the simulated controller. The caller runs the work of the
//! path's [contexts](super::contexts) on processors and charges for it.

use super::card::Card;
use super::controller::{Controller, RCA};
use super::fault::Faults;
use super::per_kib;
use super::registers::{known, registers};
use crate::activity::Activity;
use crate::data::event::{DataEvent, Place, ReportsData};
use crate::family::FamilyModel;
use crate::mmc::profile::{HostCosts, MmcProfile};
use crate::terms::{Completion, Dispatch};
use crate::{DeviceEvent, Events};
use blockyard::driver::{Accept, Device, Driver, Finished, Issue, Outcome};
use blockyard::prng::Prng;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, CpuId, QueueId};
use blockyard_mmc::block::{Act, ActKind, Context, Counts, Idle, Mmc, Target, Unsupported};
use blockyard_mmc::bus_use::BusUse;
use blockyard_mmc::command::Direction;
use blockyard_mmc::controller::HostController as _;
use blockyard_mmc::host::HostCapabilities;
use blockyard_mmc::mode::Width;
use blockyard_mmc::policy::HostPolicy;
use core::ops::Range;

/// Time that processors spent on preparing or cleaning up memory, split by the state of the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// While a transaction was on the bus.
    pub inside: Duration,
    /// While no transaction was on the bus.
    pub outside: Duration,
}

/// The measured work of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostReport {
    /// The number of times each command was sent, by command number, without
    /// [`Self::queue_status`].
    pub commands: [u64; 64],
    /// The number of queue status commands (CMD13 with bit 15), which ask the card for its ready
    /// tasks. The simulated engine sends one when a task is ready. A real engine polls, and so
    /// sends more.
    pub queue_status: u64,
    /// The transfers that continued an open one, without a command: reads, and writes.
    pub continued: [u64; 2],
    /// The number of failures that the card reported for acknowledged writes. See
    /// [`Counts::lost_writes`].
    pub lost_writes: u64,
    /// The number of times it is unknown whether an acknowledged write failed. See
    /// [`Counts::doubtful_writes`].
    pub doubtful_writes: u64,
    /// Time with an MMC request on the bus; with PIO, with commands or pieces of data on it.
    pub bus_busy: Duration,
    /// The mean time between two requests on the bus, without [`Self::unnoticed`].
    pub bus_gap: Duration,
    /// Time in which a request was over, but its interrupt was lost and its time limit had not
    /// passed. Faults cause this time, not the design.
    pub unnoticed: Duration,
    /// Time without a request in the driver or waiting for it.
    pub absent: Duration,
    /// Time in which the card's memory worked unseen by the bus: it programmed pages or fetched
    /// data ahead.
    pub memory: Duration,
    /// Time spent preparing memory for transfers.
    pub map: Overlap,
    /// Time spent cleaning up memory after transfers.
    pub unmap: Overlap,
    /// MMC requests whose start had to wait for the wake-up of a driver thread, with bus and card
    /// idle.
    pub awaited_wakeups: u64,
    /// Interrupts of the controller.
    pub interrupts: u64,
    /// Wake-ups of the driver's thread.
    pub thread_wakeups: u64,
    /// Wake-ups of the worker that does what interrupts leave for later.
    pub deferred_wakeups: u64,
}

/// The model of a host. See the [module](self).
#[derive(Debug)]
pub struct MmcHost {
    mmc: Mmc<Controller>,
    costs: HostCosts,
    interrupt_cpu: CpuId,
    activity: Activity,
    /// The instant since which the driver has had no request.
    empty_since: Option<Instant>,
    absent: Duration,
    /// The card memory's work when measuring began.
    memory_before: Duration,
    /// The counts when measuring began.
    counts_before: Counts,
    map: Overlap,
    unmap: Overlap,
    awaited_wakeups: u64,
    /// By context: how often it was entered by an interrupt or woken.
    entered: [u64; 3],
    /// By context: whether it was woken while bus and card were idle, and nothing has started
    /// since.
    woken: [bool; 3],
    /// By context: the bus time when its current act began, or when measuring began.
    bus_at_begin: [Duration; 3],
    measured_from: Instant,
    interrupt: bool,
}

impl MmcHost {
    /// Returns a host for the card of `profile` with `sectors` sectors. The driver follows
    /// `policy`. `prng` draws stalls and faults.
    ///
    /// # Errors
    ///
    /// Returns [`Unsupported`] if the policy needs a feature that the host or the card lacks.
    ///
    /// # Panics
    ///
    /// Panics if the timings contradict each other. A profile's parser checks them.
    pub fn new(
        profile: &MmcProfile,
        policy: HostPolicy,
        sectors: u64,
        prng: Prng,
    ) -> Result<Self, Unsupported> {
        let MmcProfile { host, card } = profile;
        let model = Card::new(registers(card, sectors), card.timing, card.mode, prng.fork(0));
        let model = model.expect("the timings of a checked profile should be consistent");
        let capabilities = HostCapabilities {
            width: Width::Eight,
            non_removable: host.non_removable,
            set_block_count: host.set_block_count,
            busy_detect: host.busy_detect,
            transfer: policy.transfer,
            queue_engine_depth: host.queue_engine_depth,
            queue_engine_direct: host.queue_engine_direct,
            ..HostCapabilities::full()
        };
        let faults = Faults::new(host.faults, prng.fork(1));
        let bounces = host.bounce_buffers;
        let controller =
            Controller::new(model, capabilities, bounces, card.mode, faults, &host.costs);
        let known = known(controller.card.registers(), card.mode, RCA);
        let target = Target::of(&known, controller.capabilities());
        Ok(Self {
            mmc: Mmc::new(controller, target, policy)?,
            costs: host.costs,
            interrupt_cpu: CpuId(host.interrupt_cpu),
            activity: Activity::default(),
            empty_since: Some(Instant::ZERO),
            absent: Duration::ZERO,
            memory_before: Duration::ZERO,
            counts_before: Counts::default(),
            map: Overlap::default(),
            unmap: Overlap::default(),
            awaited_wakeups: 0,
            entered: [0; 3],
            woken: [false; 3],
            bus_at_begin: [Duration::ZERO; 3],
            measured_from: Instant::ZERO,
            interrupt: false,
        })
    }

    /// Returns the processor that takes the host's interrupts.
    #[must_use]
    pub const fn interrupt_cpu(&self) -> CpuId {
        self.interrupt_cpu
    }

    /// Takes the controller's interrupt. Returns whether there is one for its processor.
    pub fn take_interrupt(&mut self) -> bool {
        core::mem::take(&mut self.interrupt)
    }

    /// Begins the interrupt handler. Returns the handler's time, without the cost of the interrupt
    /// itself.
    pub(crate) fn begin_interrupt(&mut self) -> Duration {
        self.entered[Context::Interrupt as usize] += 1;
        let copied = self.mmc.controller.begin_interrupt();
        per_kib(self.costs.pio_per_kib, copied.bytes) + copied.wait
    }

    /// Ends the interrupt handler.
    pub(crate) fn end_interrupt(&mut self, now: Instant, events: &mut Events) {
        self.interrupt |= self.mmc.controller.end_interrupt(now);
        while let Some(event) = self.mmc.controller.next_event() {
            self.mmc.interrupt(event, now);
        }
        self.schedule(events);
    }

    /// Puts the system to sleep: disables the host as soon as it is idle, if that is in time.
    pub fn suspend(&mut self, now: Instant) {
        self.mmc.disable(now);
    }

    /// Wakes the system up. Returns whether the host was disabled.
    pub fn resume(&mut self) -> bool {
        self.mmc.enable().is_ok()
    }

    /// Returns the counts of errors and recoveries.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.mmc.counts()
    }

    /// Returns the sectors that the card has received and could not program since data is kept.
    #[must_use]
    pub fn failed_sectors(&self) -> &[Range<u64>] {
        self.mmc.controller.card.failed_sectors()
    }

    /// Notes that the thread of `context` is woken.
    pub fn wakes(&mut self, context: Context, now: Instant) {
        debug_assert_ne!(context, Context::Interrupt, "an interrupt handler is never woken");
        self.entered[context as usize] += 1;
        self.woken[context as usize] = !self.mmc.controller.is_at_work(now);
    }

    /// Returns whether [`Self::take_interrupt`] or [`Self::next_use`] has something to return.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.interrupt || self.mmc.controller.uses.are_over()
    }

    /// Returns the next finished bus use.
    pub fn next_use(&mut self) -> Option<BusUse> {
        self.mmc.controller.next_use()
    }

    /// Returns whether the driver has nothing to do.
    #[must_use]
    pub fn idle(&self) -> Idle {
        self.mmc.idle()
    }

    /// Returns whether `context` has something to do.
    #[inline]
    #[must_use]
    pub fn pending(&self, context: Context, now: Instant) -> bool {
        self.mmc.pending(context, now)
    }

    /// Returns whether a thread that has dispatched a request still sleeps in the driver.
    #[must_use]
    pub fn holds_dispatcher(&self) -> bool {
        self.mmc.holds_dispatcher()
    }

    /// Begins the next act of `context`, if it has one. Returns the act and its cost.
    pub(crate) fn begin_act(&mut self, context: Context, now: Instant) -> Option<(Act, Duration)> {
        let act = self.mmc.begin(context, now)?;
        assert!(self.mmc.is_enabled(), "{act:?} on a suspended host");
        self.bus_at_begin[context as usize] = self.mmc.controller.bus.total(now);
        let cost = self.cost(&act);
        Some((act, cost))
    }

    /// Ends an act that began at `begun`.
    pub(crate) fn finish_act(
        &mut self,
        act: Act,
        begun: Instant,
        now: Instant,
        events: &mut Events,
    ) {
        debug_assert!(begun <= now, "{act:?} ends before it began");
        let kind = act.kind();
        let context = act.context();
        let is_beside = matches!(kind, ActKind::PrepareFirst | ActKind::PrepareMore);
        let overlap = match kind {
            ActKind::PrepareFirst | ActKind::PrepareMore | ActKind::Prepare | ActKind::CopyIn => {
                Some(&mut self.map)
            }
            ActKind::Post | ActKind::CopyOut => Some(&mut self.unmap),
            _ => None,
        };
        if let Some(overlap) = overlap {
            let spent = now.since(begun.max(self.measured_from));
            let on_bus = self.mmc.controller.bus.total(now) - self.bus_at_begin[context as usize];
            // The read that waits for its memory has the bus.
            let on_bus = if is_beside { spent } else { on_bus };
            overlap.inside += on_bus.min(spent);
            overlap.outside += spent - on_bus.min(spent);
        }
        if matches!(kind, ActKind::Start | ActKind::SendStatus | ActKind::SendStop) {
            let woken = core::mem::take(&mut self.woken);
            self.awaited_wakeups += u64::from(woken[context as usize]);
        }
        self.mmc.finish(act, now);
        self.schedule(events);
    }

    fn cost(&self, act: &Act) -> Duration {
        let costs = &self.costs;
        let memory = match act.direction() {
            Direction::Read => &costs.read,
            Direction::Write => &costs.write,
        };
        match act.kind() {
            ActKind::Prepare | ActKind::PrepareFirst => {
                memory.map + per_kib(memory.map_per_kib, act.bytes())
            }
            ActKind::PrepareMore => per_kib(memory.map_per_kib, act.bytes()),
            ActKind::Post => memory.unmap + per_kib(memory.unmap_per_kib, act.bytes()),
            ActKind::CopyIn | ActKind::CopyOut => per_kib(costs.copy_per_kib, act.bytes()),
            ActKind::Start
            | ActKind::SendStatus
            | ActKind::SendStop
            | ActKind::SendCommand
            | ActKind::ReadRegister
            | ActKind::SwitchQueue
            | ActKind::DiscardTasks => costs.issue,
            // This act reads a register or two.
            ActKind::PollLine
            | ActKind::EnableEngine
            | ActKind::DisableEngine
            | ActKind::HaltEngine
            | ActKind::ClearTasks
            | ActKind::RestartEngine => costs.look,
            ActKind::Retune => costs.retune,
            ActKind::Reset => costs.reset,
            // This act reads memory that the interrupt handler wrote. The wake-up before it
            // includes the time.
            ActKind::HandleStatus | ActKind::Complete => Duration::ZERO,
        }
    }

    fn schedule(&mut self, events: &mut Events) {
        if let Some((at, serial)) = self.mmc.controller.take_schedule() {
            events.push_back((at, DeviceEvent(serial)));
        }
    }

    /// Returns the work until `now`.
    #[must_use]
    pub(crate) fn report(&self, now: Instant) -> HostReport {
        let controller = &self.mmc.controller;
        HostReport {
            commands: controller.commands,
            queue_status: controller.queue_status,
            continued: controller.continued,
            lost_writes: self.counts().lost_writes - self.counts_before.lost_writes,
            doubtful_writes: self.counts().doubtful_writes - self.counts_before.doubtful_writes,
            bus_busy: controller.bus.total(now),
            bus_gap: controller.bus.mean_gap(),
            unnoticed: controller.unnoticed,
            absent: self.absent + self.empty_since.map_or(Duration::ZERO, |since| now.since(since)),
            memory: controller.memory_time(now) - self.memory_before,
            map: self.map,
            unmap: self.unmap,
            awaited_wakeups: self.awaited_wakeups,
            interrupts: self.entered[Context::Interrupt as usize],
            thread_wakeups: self.entered[Context::Thread as usize],
            deferred_wakeups: self.entered[Context::Deferred as usize],
        }
    }
}

impl FamilyModel for MmcHost {
    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn activity_mut(&mut self) -> &mut Activity {
        &mut self.activity
    }

    fn dispatch(&self) -> Dispatch {
        Dispatch::HostThread
    }

    fn completion(&self) -> Completion {
        Completion::HostInterrupt
    }

    fn keep_data(&mut self, _draws: Prng) {
        self.mmc.controller.card.keep_data();
    }

    fn event(&mut self, event: DeviceEvent, now: Instant, events: &mut Events) {
        self.interrupt |= self.mmc.controller.happens(event.0, now);
        self.schedule(events);
    }

    fn forget(&mut self, now: Instant) {
        self.activity.forget(now);
        self.mmc.controller.forget(now);
        self.measured_from = now;
        self.bus_at_begin = [Duration::ZERO; 3];
        (self.map, self.unmap) = (Overlap::default(), Overlap::default());
        self.awaited_wakeups = 0;
        self.entered = [0; 3];
        self.absent = Duration::ZERO;
        self.memory_before = self.mmc.controller.memory_time(now);
        self.counts_before = self.counts();
        self.empty_since = self.empty_since.map(|_| now);
    }

    fn busy(&self, now: Instant) -> Duration {
        self.mmc.controller.device.total(now)
    }

    fn mean_gap(&self) -> Duration {
        self.mmc.controller.device.mean_gap()
    }
}

impl Driver for MmcHost {
    blockyard::pass_on!(mmc: prepare, unprepare, commit, timed_out, finish);

    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        self.mmc.take_budget(queue)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        self.mmc.return_budget(queue, budget);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let accept = self.mmc.queue_rq(issue);
        if accept == Accept::Queued {
            self.activity.begin(issue.now);
            debug_assert!(!self.activity.is_idle(), "a driver with a request is not idle");
            if let Some(since) = self.empty_since.take() {
                self.absent += issue.request().times.queued.max(since).since(since);
            }
        }
        accept
    }
}

impl ReportsData for MmcHost {
    fn keeps_data(&self) -> bool {
        self.mmc.controller.card.keeps_data()
    }

    fn advance_data(&mut self, now: Instant) {
        self.mmc.controller.card.advance_data(now);
    }

    fn next_data_event(&mut self) -> Option<DataEvent<Place>> {
        self.mmc.controller.take_data_events(None);
        self.mmc.controller.data_events.pop_front()
    }
}

impl Device for MmcHost {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let finished = self.mmc.next_finished(now)?;
        let well = finished.outcome == Outcome::Done(Status::Ok);
        self.mmc.controller.ledger.ended(finished.tag, well);
        self.activity.end(now);
        self.empty_since = self.activity.is_idle().then_some(now);
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.mmc.poll_at()
    }
}
