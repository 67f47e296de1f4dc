//! The contexts of an MMC host's driver: its interrupt handler, its thread and its deferred work.
//!
//! [`Contexts`] is their state machine: it decides what each context does next, what that costs a
//! processor, and which threads to wake. It has no processors and no clock. In virtual time the
//! contexts share the processors of a `world` with everything else. For `serve --as` each context
//! has its own processor ([`live`](crate::live)). Both callers carry out the [`Step`]s of each
//! [`Turn`], and call [`Contexts::take_effect`] when a processor has paid for its work.
//!
//! A processor first pays for an act, an interrupt or a wake-up with its time. The effect comes at
//! the end of that time. Until then all others see the act as begun: an act of 3 us that begins at
//! 10 us has its effect at 13 us. The processor that wakes a thread pays for the wake-up, as part
//! of a piece of work, an act, or the end of an interrupt. The thread is woken at the end of that
//! time.

use super::host::MmcHost;
use crate::Events;
use crate::machine::MachineProfile;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{HctxId, QueueId};
use blockyard_mmc::block::{Act, ActKind, Context};
use std::collections::VecDeque;

/// The contexts that are threads, in the order of every array of threads.
pub const THREADS: [Context; 2] = [Context::Thread, Context::Deferred];

/// The position of `thread` in [`THREADS`].
#[must_use]
pub fn thread_index(thread: Context) -> usize {
    match thread {
        Context::Thread => 0,
        Context::Deferred => 1,
        Context::Interrupt => unreachable!("the interrupt handler is no thread"),
    }
}

/// Work of a processor for a context. It takes effect when the processor has paid for it.
#[derive(Debug, PartialEq, Eq)]
pub enum Doing {
    /// Switches to the thread.
    Enter(Context),
    /// Handles an interrupt.
    Interrupt,
    /// Wakes threads for work that this context passes on to them.
    Wake(Context),
    /// Carries out an act that began at the given instant.
    Act(Act, Instant),
}

impl Doing {
    /// Returns the context for which the processor works.
    #[must_use]
    pub fn context(&self) -> Context {
        match self {
            Self::Enter(context) | Self::Wake(context) => *context,
            Self::Interrupt => Context::Interrupt,
            Self::Act(act, _) => act.context(),
        }
    }
}

/// The changes that an effect may have made outside the contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// The controller may have pending events.
    Controller,
    /// The controller may have pending events, and requests have completed.
    Requests,
}

/// A thread of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    /// The thread waits to be woken.
    Asleep,
    /// The thread runs or has been woken.
    Awake {
        /// When the thread runs after its last wake-up. Work given to it earlier waits until then.
        there_at: Instant,
        /// The number of pieces of work that the thread has not begun.
        queued: u32,
    },
}

/// The sleeping threads that have something to do, in the order of [`THREADS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sleepers([bool; 2]);

impl Sleepers {
    /// Returns whether `thread` is one of these threads.
    #[must_use]
    pub fn has(self, thread: Context) -> bool {
        self.0[thread_index(thread)]
    }

    /// Returns the first of these threads, if there is one.
    #[must_use]
    pub fn first(self) -> Option<Context> {
        THREADS.into_iter().zip(self.0).find_map(|(thread, is_one)| is_one.then_some(thread))
    }
}

/// A turn of a context on its processor: from one piece of paid work to the next.
#[derive(Debug)]
pub struct Turn {
    context: Context,
    phase: Phase,
    /// Whether the context may have work that this turn has not looked for: it stands aside, or the
    /// controller had news after the context looked.
    may_have_work: bool,
    /// The act that the context has begun, and its cost.
    act: Option<(Act, Duration)>,
    /// The cost of the wake-ups of this turn.
    waking: Duration,
}

/// The next part of a turn.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The context looks for its next act.
    Begin,
    /// Threads that have something to do are woken.
    Wake,
    /// The processor gets its work.
    Do,
    /// The turn has ended.
    Ended,
}

impl Turn {
    /// Returns a new turn of `context`. A context that stands aside begins no act, because its
    /// processor has more urgent work.
    #[must_use]
    pub const fn new(context: Context, stands_aside: bool) -> Self {
        let may_have_work = stands_aside;
        Self { context, phase: Phase::Begin, may_have_work, act: None, waking: Duration::ZERO }
    }
}

/// The caller's next step in a turn.
#[derive(Debug)]
pub enum Step {
    /// Take the controller's news: finished bus uses and an interrupt.
    LookAtController,
    /// Wake these threads, and hand wanted runs to the thread that dispatches, both at this
    /// instant.
    Wake(Sleepers, Instant),
    /// Spend this time on a processor, then call [`Contexts::take_effect`]. Ends the turn.
    Do(Doing, Duration),
    /// The thread has more to do. Give its processor another piece of work for it, before any other
    /// thread. Ends the turn.
    Again,
    /// The context has nothing to do. Ends the turn.
    Rest,
}

/// A thread that has just been woken.
#[derive(Clone, Copy, Debug)]
pub struct Woken {
    /// The thread.
    pub thread: Context,
    /// The thread was running: see [`Contexts::enter`].
    pub enters: bool,
    /// When the thread's first piece of work begins; `None` if that piece is a wanted run.
    pub begins_at: Option<Instant>,
}

/// The state machine. See the [module](self).
#[derive(Debug)]
pub struct Contexts {
    /// The cost of a wake-up to the waker.
    wakeup: Duration,
    /// The time from a wake-up until the thread runs.
    run_delay: Duration,
    /// The cost of taking an interrupt, before the handler begins.
    interrupt: Duration,
    threads: [Thread; 2],
    /// Wanted runs of hardware queues that the dispatching thread has not been given.
    wanted_runs: VecDeque<(QueueId, HctxId)>,
    /// The dispatching thread is a submitter that is about to sleep in the driver. Nobody has to
    /// wake it.
    enters: bool,
}

impl Contexts {
    /// Returns idle contexts on processors of `machine`.
    #[must_use]
    pub const fn new(machine: &MachineProfile) -> Self {
        Self {
            wakeup: machine.wakeup,
            run_delay: machine.run_delay,
            interrupt: machine.interrupt,
            threads: [Thread::Asleep; 2],
            wanted_runs: VecDeque::new(),
            enters: false,
        }
    }

    /// Makes the processor's current thread the dispatching thread, which sleeps: it needs no
    /// wake-up.
    pub fn enter(&mut self) {
        debug_assert!(!self.is_awake(Context::Thread), "the dispatching thread is at work");
        self.enters = true;
    }

    /// Returns whether `thread` runs or has been woken.
    #[must_use]
    pub fn is_awake(&self, thread: Context) -> bool {
        self.threads[thread_index(thread)] != Thread::Asleep
    }

    /// Leaves a run of a hardware queue to the dispatching thread.
    pub fn want_run(&mut self, queue: QueueId, hctx: HctxId) {
        debug_assert!(!self.wanted_runs.contains(&(queue, hctx)), "a run is wanted at most once");
        self.wanted_runs.push_back((queue, hctx));
    }

    /// Returns whether there are wanted runs that the dispatching thread has not been given.
    #[must_use]
    pub fn has_wanted_runs(&self) -> bool {
        !self.wanted_runs.is_empty()
    }

    /// Returns the sleeping threads that have something to do.
    #[must_use]
    pub fn sleepers(&self, mmc: &MmcHost, now: Instant) -> Sleepers {
        Sleepers(THREADS.map(|thread| {
            let has_runs = thread == Context::Thread && self.has_wanted_runs();
            !self.is_awake(thread) && (has_runs || mmc.pending(thread, now))
        }))
    }

    /// Returns the cost of waking `sleepers` to the processor that wakes them.
    #[must_use]
    pub fn cost_of_waking(&self, sleepers: Sleepers) -> Duration {
        if sleepers == Sleepers::default() {
            return Duration::ZERO; // the usual case
        }
        let wake_up = |(thread, is_one): (Context, bool)| {
            let enters = self.enters && thread == Context::Thread;
            if is_one && !enters { self.wakeup } else { Duration::ZERO }
        };
        let costs = THREADS.into_iter().zip(sleepers.0).map(wake_up);
        costs.fold(Duration::ZERO, |sum, cost| sum + cost)
    }

    /// Returns whether a call of [`Self::wake_next`] and [`Self::next_run`] would do anything.
    #[must_use]
    pub fn has_to_wake(&self, sleepers: Sleepers) -> bool {
        sleepers != Sleepers::default() || self.has_wanted_runs()
    }

    /// Wakes the next of `sleepers` at `at`, when the wake-up has been paid for. Skips sleepers
    /// that another context has woken meanwhile.
    pub fn wake_next(
        &mut self,
        mmc: &mut MmcHost,
        sleepers: &mut Sleepers,
        at: Instant,
    ) -> Option<Woken> {
        while let Some(thread) = sleepers.first() {
            let index = thread_index(thread);
            sleepers.0[index] = false;
            if self.is_awake(thread) {
                continue;
            }
            let enters = thread == Context::Thread && core::mem::take(&mut self.enters);
            if !enters {
                mmc.wakes(thread, at);
            }
            let there_at = if enters { at } else { at + self.run_delay };
            let brings_work = thread == Context::Deferred || !self.has_wanted_runs();
            self.threads[index] = Thread::Awake { there_at, queued: u32::from(brings_work) };
            return Some(Woken { thread, enters, begins_at: brings_work.then_some(there_at) });
        }
        None
    }

    /// Gives the dispatching thread, which must be awake, the next wanted run from `at` on. Returns
    /// the run and the instant at which it begins.
    pub fn next_run(&mut self, at: Instant) -> Option<(QueueId, HctxId, Instant)> {
        let (queue, hctx) = self.wanted_runs.pop_front()?;
        let begins_at = match &mut self.threads[thread_index(Context::Thread)] {
            Thread::Awake { there_at, queued } => {
                *queued += 1;
                at.max(*there_at)
            }
            Thread::Asleep => unreachable!("a run was given to a thread that sleeps"),
        };
        Some((queue, hctx, begins_at))
    }

    /// Notes that `thread` begins a piece of work that it was given.
    pub fn piece_begins(&mut self, thread: Context) {
        match &mut self.threads[thread_index(thread)] {
            Thread::Awake { queued, .. } if *queued > 0 => *queued -= 1,
            state => unreachable!("{thread:?} began work that nobody gave it: {state:?}"),
        }
    }

    /// Notes that `thread`, which is awake, gets another piece of work from its own processor.
    pub fn piece_follows(&mut self, thread: Context) {
        match &mut self.threads[thread_index(thread)] {
            Thread::Awake { queued, .. } => *queued += 1,
            Thread::Asleep => unreachable!("{thread:?} sleeps in the middle of its work"),
        }
    }

    /// Takes an interrupt on the interrupt handler's processor. Returns the work and its cost.
    pub fn take_interrupt(&self, mmc: &mut MmcHost) -> (Doing, Duration) {
        (Doing::Interrupt, self.interrupt + mmc.begin_interrupt())
    }

    /// Returns the cost of a timer interrupt to its processor, before it wakes a thread.
    #[must_use]
    pub(crate) const fn timer_cost(&self) -> Duration {
        self.interrupt
    }

    /// Applies `doing`, which a processor has paid for with its time. The caller then gives the
    /// context a [`Turn`].
    pub fn take_effect(
        &self,
        doing: Doing,
        mmc: &mut MmcHost,
        now: Instant,
        events: &mut Events,
    ) -> Effect {
        match doing {
            Doing::Enter(_) | Doing::Wake(_) => Effect::Nothing,
            Doing::Interrupt => {
                mmc.end_interrupt(now, events);
                Effect::Controller
            }
            Doing::Act(act, begun) => {
                debug_assert!(begun <= now, "{act:?} ends before it began");
                let completes = act.kind() == ActKind::Complete;
                mmc.finish_act(act, begun, now, events);
                if completes { Effect::Requests } else { Effect::Controller }
            }
        }
    }

    /// Returns the next step of `turn`. The turn ends with the first [`Step::Do`], [`Step::Again`]
    /// or [`Step::Rest`].
    ///
    /// # Panics
    ///
    /// Panics if the turn has ended.
    #[inline]
    pub fn next(&mut self, turn: &mut Turn, mmc: &mut MmcHost, now: Instant) -> Step {
        let context = turn.context;
        debug_assert!(
            context == Context::Interrupt || self.is_awake(context),
            "{context:?} must not sleep in its turn"
        );
        loop {
            match turn.phase {
                Phase::Begin => {
                    turn.phase = Phase::Wake;
                    if !turn.may_have_work {
                        turn.act = mmc.begin_act(context, now);
                    }
                    if mmc.has_news() {
                        turn.may_have_work = true;
                        return Step::LookAtController;
                    }
                }
                Phase::Wake => {
                    turn.phase = Phase::Do;
                    let sleepers = self.sleepers(mmc, now);
                    if self.has_to_wake(sleepers) {
                        turn.waking = self.cost_of_waking(sleepers);
                        return Step::Wake(sleepers, now + turn.waking);
                    }
                }
                Phase::Do => {
                    turn.phase = Phase::Ended;
                    return match turn.act.take() {
                        // The act begins when the wake-ups have been paid for.
                        Some((act, cost)) => {
                            Step::Do(Doing::Act(act, now + turn.waking), cost + turn.waking)
                        }
                        None if turn.waking > Duration::ZERO => {
                            Step::Do(Doing::Wake(context), turn.waking)
                        }
                        None => self.end(context, turn.may_have_work && mmc.pending(context, now)),
                    };
                }
                Phase::Ended => unreachable!("a turn of {context:?} goes on after its end"),
            }
        }
    }

    /// Ends a turn without an act: a thread continues later if it has something to do, and
    /// otherwise sleeps.
    fn end(&mut self, context: Context, has_work: bool) -> Step {
        if context == Context::Interrupt {
            return Step::Rest;
        }
        if has_work {
            self.piece_follows(context);
            return Step::Again;
        }
        let thread = &mut self.threads[thread_index(context)];
        if matches!(thread, Thread::Awake { queued: 0, .. }) {
            *thread = Thread::Asleep;
        }
        Step::Rest
    }
}
