//! The command queue engine of the scripted controller, and the card's queue. They check
//! [engine-owns-bus], [task-number-is-slot] and [halt-frees-bus].
//!
//! A task is ready a given time after it arrived. Tasks are transferred one at a time, in the order
//! in which they become ready. A failure may name its task, another task, or none.

use super::*;
use crate::command::queue::TaskId;
use crate::engine::{DIRECT, EngineEvent, QueueEngine, Task, TaskSet};
use std::collections::BTreeSet;

/// A task that the engine holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    task: Task,
    ready_at: Instant,
    /// The task has failed and is not transferred again.
    failed: bool,
}

/// The engine's current activity.
enum Next {
    /// The transfer of a task, from this instant.
    Transfer(usize, Instant),
    Direct,
    Halted,
}

#[derive(Debug, Default)]
pub(in super::super) struct Engine {
    enabled: bool,
    /// The bus was taken from the engine, which is still enabled.
    halted: bool,
    /// The engine is halting, until this instant.
    halts_at: Option<Instant>,
    /// A transfer hangs, and no event follows.
    hangs: bool,
    held: Vec<Held>,
    /// Tasks done since a task failed, with the blocks that had moved before.
    noted: Vec<(SlotId, u32)>,
    free_at: Instant,
    /// A direct command, and the number of tasks before it.
    direct: Option<(Command, usize)>,
    /// CMDQ_MODE_EN, and the card's tasks.
    card_queue: bool,
    card_tasks: BTreeSet<u8>,
    /// The time until tasks are ready, by the first sector of their requests; otherwise 0.
    pub(in super::super) access: BTreeMap<u64, Duration>,
    /// Whether the next commands to halt and to clear are ignored; later ones are not.
    pub(in super::super) deaf: VecDeque<bool>,
    /// All tasks that the engine was given.
    pub(in super::super) tasks: Vec<Task>,
    pub(in super::super) most_held: usize,
    /// The instants at which the engine was cleared, and disabled.
    pub(in super::super) clears: Vec<Instant>,
    pub(in super::super) disables: Vec<Instant>,
}

impl Engine {
    pub(super) fn has_bus(&self) -> bool {
        self.enabled && !self.halted
    }

    pub(super) fn has(&self, slot: SlotId) -> bool {
        self.held.iter().any(|held| held.task.parameters.task.number() == slot.0)
    }

    pub(super) fn card_queue(&self) -> Queue {
        match (self.card_queue, self.card_tasks.is_empty()) {
            (false, _) => Queue::Off,
            (true, true) => Queue::Empty,
            (true, false) => Queue::Busy,
        }
    }

    /// Plays the effect of `command` on the card.
    pub(super) fn play_command(&mut self, command: &Command) {
        match command.opcode {
            Opcode::Switch if super::is_queue_switch(command) => {
                self.card_queue = command.argument >> 8 & 1 != 0;
            }
            Opcode::ManageTasks | Opcode::ManageQueue => {
                assert_eq!(command.argument, 1, "all of them");
                self.card_tasks.clear();
            }
            _ => {}
        }
    }

    /// Turns the card's queue on or off.
    pub(super) const fn turn_queue(&mut self, on: bool) {
        self.card_queue = on;
    }

    /// The engine is off, without tasks.
    fn forget(&mut self) {
        self.held.clear();
        self.noted.clear();
        (self.direct, self.halts_at) = (None, None);
        (self.enabled, self.halted, self.hangs) = (false, false, false);
    }

    pub(in super::super) fn reset(&mut self) {
        self.forget();
        self.card_queue = false;
        self.card_tasks.clear();
    }

    /// The direct command in flight, and the instant at which the card is ready again.
    pub(super) fn take_sent_direct(
        &mut self,
        now: Instant,
        busy: Duration,
    ) -> Option<(Command, Instant)> {
        match self.next(busy) {
            Some((Next::Direct, until)) if self.free_at < now => {
                self.direct.take().map(|(command, _)| (command, until))
            }
            _ => None,
        }
    }

    /// Takes the bus from the engine. Returns the direction of the interrupted transfer.
    pub(super) fn abort(&mut self, now: Instant, busy: Duration) -> Option<Direction> {
        if !self.has_bus() {
            return None;
        }
        let next = self.next(busy);
        (self.halted, self.halts_at) = (true, None);
        match next {
            Some((Next::Transfer(at, from), _)) if from < now => {
                Some(self.held[at].task.parameters.direction)
            }
            _ => None,
        }
    }

    /// Returns the engine's next activity and its end. The card is busy for `busy` after a write.
    fn next(&self, busy: Duration) -> Option<(Next, Instant)> {
        if !self.has_bus() {
            return None;
        }
        let before = self.direct.map_or(usize::MAX, |(_, before)| before);
        let transfers = self.held.iter().enumerate().take(before).filter(|(_, held)| !held.failed);
        let first = transfers.min_by_key(|(_, held)| held.ready_at.max(self.free_at));
        let transfer = first.filter(|_| !self.hangs).map(|(at, held)| {
            let parameters = held.task.parameters;
            let from = held.ready_at.max(self.free_at);
            let blocks = BLOCK.as_ns() * u64::from(parameters.blocks);
            let to = from + COMMAND + Duration::from_ns(blocks);
            let writes = parameters.direction == Direction::Write;
            (Next::Transfer(at, from), from, if writes { to + busy } else { to })
        });
        let waits = self.held.iter().take(before).next().is_some();
        let direct = self.direct.filter(|_| !waits && !self.hangs);
        let direct = direct.map(|(command, _)| {
            let busy = if command.response.has_busy() { busy } else { Duration::ZERO };
            (Next::Direct, self.free_at, self.free_at + COMMAND + busy)
        });
        let work = transfer.or(direct);
        match (work, self.halts_at) {
            (Some((next, from, to)), Some(halts_at)) if from < halts_at => Some((next, to)),
            (_, Some(halts_at)) => Some((Next::Halted, halts_at.max(self.free_at))),
            (work, None) => work.map(|(next, _, to)| (next, to)),
        }
    }
}

impl Scripted {
    /// Returns the instant of the engine's next event.
    pub(super) fn engine_event(&self) -> Option<Instant> {
        self.engine.next(self.busy).map(|(_, at)| at)
    }

    /// Ends every activity that is due at `now`.
    pub(super) fn run_engine(&mut self, now: Instant) {
        if let Some((next, at)) = self.engine.next(self.busy).filter(|(_, at)| *at <= now) {
            match next {
                Next::Transfer(index, from) => self.transfer(index, from, at),
                Next::Direct => self.send_direct(at),
                Next::Halted => {
                    (self.engine.halted, self.engine.halts_at) = (true, None);
                    self.engine_tells(at, EngineEvent::Halted);
                }
            }
        }
    }

    /// The card reports a failure, so recently done tasks are suspect.
    pub(super) fn disown_noted(&mut self) {
        for (slot, before) in core::mem::take(&mut self.engine.noted) {
            let memory = &mut self.memory[slot.index()];
            memory.moved = before;
            self.well.insert(memory.sector, before);
        }
    }

    fn engine_tells(&mut self, at: Instant, event: EngineEvent) {
        self.events.push_back((at, HostEvent::Engine(event)));
    }

    /// Transfers a task according to the script.
    fn transfer(&mut self, index: usize, from: Instant, to: Instant) {
        let Held { task, .. } = self.engine.held[index];
        let parameters = task.parameters;
        let number = parameters.task;
        let slot = SlotId(number.number());
        let direction = parameters.direction;
        let blocks = parameters.blocks;
        let sector = self.memory[slot.index()].sector;
        let fault = self.fault_of_blocks(slot, task.skip, blocks);
        let command = match direction {
            Direction::Read => Command::execute_read(number, blocks),
            Direction::Write => Command::execute_write(number, blocks),
        };
        let opcode = command.opcode;
        let sector_of = Some(sector);
        let limit = Duration::ZERO;
        self.spans.push(Span { command: opcode, sector: sector_of, requests: 1, limit, from, to });
        self.engine.free_at = to;
        let unheard = matches!(fault, Some(Fault::Error(Part::Announce | Part::Command, ..)));
        if !unheard && fault != Some(Fault::Gone) {
            self.send(&command);
            if direction == Direction::Write {
                self.written(sector, parameters.reliable);
            }
        }
        let failure = match fault {
            Some(Fault::Gone) => {
                self.engine.forget();
                return self.events.push_back((to, HostEvent::CardGone));
            }
            // The transfer hangs in the middle.
            Some(Fault::Silence) => {
                self.engine.hangs = true;
                return;
            }
            Some(Fault::Error(Part::Data, error, _)) => {
                self.engine.hangs = true;
                self.engine.held[index].failed = true;
                return self.engine_tells(to, failed(TaskSet::of(number), Part::Data, error));
            }
            Some(Fault::Bits(part, bits)) => self.status_event(part, bits, &command, number, to),
            _ => fault.and_then(|fault| failure_of_task(fault, number)),
        };
        if !unheard {
            self.state = self.state.after_data().after_busy();
            self.engine.card_tasks.remove(&slot.0);
        }
        if let Some(event) = failure {
            self.engine.held[index].failed = true;
            return self.engine_tells(to, event);
        }
        self.finish_task(index);
        if fault == Some(Fault::Drift) {
            self.events.push_back((to, HostEvent::RetuneNeeded));
            self.drifted = self.tuned;
        }
        if self.level >= 2 {
            let status = CardStatus(CardStatus::EXCEPTION_EVENT);
            let command = opcode.index();
            let tasks = TaskSet::of(number);
            self.engine_tells(to, EngineEvent::Responded { command, tasks, status });
        }
        self.engine_tells(to, EngineEvent::TaskDone(number));
    }

    /// Returns the response with `bits` as a failure; tells it, and returns `None`, if it has no
    /// error bit.
    fn status_event(
        &mut self,
        part: Part,
        bits: u32,
        command: &Command,
        number: TaskId,
        to: Instant,
    ) -> Option<EngineEvent> {
        let status = CardStatus(CardStatus::new(CardState::Transfer, true).0 | bits);
        let tasks = if part == Part::Announce { TaskSet::NONE } else { TaskSet::of(number) };
        let event = EngineEvent::Responded { command: command.opcode.index(), tasks, status };
        if status.errors() != 0 {
            return Some(event);
        }
        self.engine_tells(to, event);
        None
    }

    /// Notes that all blocks of the task at `index` have moved, and removes it.
    fn finish_task(&mut self, index: usize) {
        let task = self.engine.held[index].task;
        let slot = SlotId(task.parameters.task.number());
        let memory = &mut self.memory[slot.index()];
        if self.engine.held.iter().any(|held| held.failed) {
            self.engine.noted.push((slot, memory.moved));
        }
        memory.moved = task.skip + u32::from(task.parameters.blocks);
        self.well.insert(memory.sector, memory.moved);
        self.engine.held.remove(index);
        if let Some((_, before)) = &mut self.engine.direct
            && index < *before
        {
            *before -= 1;
        }
    }

    /// Queues the task at `index` in the card.
    fn tell_card(&mut self, index: usize, now: Instant) {
        let task = self.engine.held[index].task;
        let number = task.parameters.task.number();
        self.send(&Command::queue_task_parameters(task.parameters));
        self.send(&Command::queue_task_address(task.address));
        assert!(self.engine.card_tasks.insert(number), "the card should not hold {task:?} already");
        let sector = self.memory[usize::from(number)].sector;
        let access = self.engine.access.get(&sector).copied().unwrap_or(Duration::ZERO);
        self.engine.held[index].ready_at = now + COMMAND + COMMAND + access;
    }

    /// Sends the direct command, and then the tasks after it.
    fn send_direct(&mut self, at: Instant) {
        let (command, _) = self.engine.direct.take().expect("a direct command should wait");
        let fault = self.faults.get(&self.spans.len()).copied();
        let opcode = command.opcode;
        let from = self.engine.free_at;
        let limit = Duration::ZERO;
        self.spans.push(Span { command: opcode, sector: None, requests: 0, limit, from, to: at });
        self.engine.free_at = at;
        match fault {
            Some(Fault::Silence) => self.engine.hangs = true,
            Some(Fault::Gone) => {
                self.engine.forget();
                self.events.push_back((at, HostEvent::CardGone));
            }
            Some(Fault::Error(part, error, _)) => {
                let tasks = TaskSet::of(DIRECT);
                self.engine_tells(at, EngineEvent::Failed { tasks, part, error });
            }
            _ => {
                let HostEvent::CommandDone { response, .. } = self.response(fault, Part::Command)
                else {
                    unreachable!("a response")
                };
                self.send(&command);
                if command.opcode != Opcode::SendStatus {
                    self.note(&command);
                }
                self.state = self.state.after_busy();
                self.engine_tells(at, EngineEvent::DirectDone(response));
                (0..self.engine.held.len()).for_each(|index| self.tell_card(index, at));
            }
        }
    }
}

/// Returns the failure that the engine reports for task `number`. An error in the stop command
/// names another task, one in the announcement none.
fn failure_of_task(fault: Fault, number: TaskId) -> Option<EngineEvent> {
    let own = TaskSet::of(number);
    let others = TaskSet(own.0.rotate_left(1));
    match fault {
        Fault::Error(Part::Announce, error, _) => Some(failed(TaskSet::NONE, Part::Command, error)),
        Fault::Error(Part::Command, error, _) => Some(failed(own, Part::Command, error)),
        Fault::Error(Part::Stop, error, _) => Some(failed(others, Part::Data, error)),
        Fault::Error(Part::Busy, error, _) => Some(failed(own, Part::Data, error)),
        _ => None,
    }
}

fn failed(tasks: TaskSet, part: Part, error: HostError) -> EngineEvent {
    EngineEvent::Failed { tasks, part, error }
}

impl QueueEngine for Scripted {
    fn enable(&mut self, now: Instant) {
        self.settle_busy(now);
        assert!(self.running.is_none() && !self.engine.enabled, "[engine-owns-bus]");
        assert_eq!(
            (self.engine.card_queue(), self.state),
            (Queue::Empty, CardState::Transfer),
            "[engine-owns-bus]"
        );
        self.engine.enabled = true;
        self.engine.free_at = now;
    }

    fn disable(&mut self, now: Instant) {
        assert!(self.engine.enabled && self.running.is_none());
        self.engine.forget();
        self.engine.disables.push(now);
    }

    fn queue(&mut self, task: &Task, now: Instant) {
        let parameters = task.parameters;
        let number = parameters.task.number();
        let at = self.engine.held.len();
        assert!(
            self.engine.has_bus() && self.engine.halts_at.is_none(),
            "an engine that halts or has failed takes no task: {task:?}"
        );
        assert!(!self.drifted, "{task:?} on a bus that is to be tuned first");
        assert!(
            !self.engine.has(SlotId(number)),
            "[task-number-is-slot]: the number of {task:?} is in use"
        );
        assert!(number < self.capabilities.queue_engine_tasks(), "[task-number-is-slot]: {task:?}");
        assert!(
            self.engine.held.iter().all(|held| !held.failed),
            "[no-intake-in-recovery]: {task:?}"
        );
        let memory = self.memory[usize::from(number)];
        assert!(memory.accepted && memory.prepared, "[prepared-while-in-use]: {task:?}");
        assert!(task.skip + u32::from(parameters.blocks) <= memory.sectors);
        let first = memory.sector + u64::from(task.skip);
        assert_eq!(u64::from(task.address), first * self.unit);
        // A task that a failure named wrongly may be transferred twice.
        assert!(task.skip <= memory.moved, "{task:?} leaves blocks out");
        self.copied_as_told(parameters.direction, SlotId(number));
        self.engine.held.push(Held { task: *task, ready_at: now, failed: false });
        self.engine.tasks.push(*task);
        self.engine.most_held = self.engine.most_held.max(at + 1);
        if self.engine.direct.is_none() {
            self.tell_card(at, now);
        }
    }

    fn direct(&mut self, command: &Command, now: Instant) {
        assert!(self.engine.has_bus() && self.engine.direct.is_none());
        self.engine.direct = Some((*command, self.engine.held.len()));
        self.engine.free_at = self.engine.free_at.max(now);
    }

    fn halt(&mut self, now: Instant) {
        assert!(self.engine.enabled && self.running.is_none());
        if self.engine.deaf.pop_front() == Some(true) {
            return;
        }
        if self.engine.halted {
            self.engine_tells(now + COMMAND, EngineEvent::Halted);
        } else {
            self.engine.halts_at = Some(now);
        }
    }

    fn clear(&mut self, now: Instant) {
        assert!(
            self.engine.enabled && self.running.is_none(),
            "an engine is cleared while it is enabled"
        );
        assert_eq!(self.engine.card_queue(), Queue::Empty, "the card should have no tasks");
        self.engine.clears.push(now);
        if self.engine.deaf.pop_front() == Some(true) {
            return;
        }
        self.engine.forget();
        self.engine.enabled = true;
        self.engine.free_at = now;
        self.engine_tells(now + COMMAND, EngineEvent::Cleared);
    }
}
