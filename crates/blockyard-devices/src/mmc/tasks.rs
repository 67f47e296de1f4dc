//! The part of a controller that carries out the tasks of its command queue
//! [engine](super::engine).

use super::card::{DataError, Reaction};
use super::controller::{Controller, RCA};
use super::engine::{Engine, Moving, Power};
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::queue::TaskId;
use blockyard_mmc::command::status::Status;
use blockyard_mmc::command::{Command, Direction, Opcode};
use blockyard_mmc::controller::{
    HostController, HostError, HostEvent, MmcRequest, Part, Payload, SlotId,
};
use blockyard_mmc::engine::{DIRECT, EngineEvent, QueueEngine, Task, TaskSet};
use std::collections::VecDeque;

/// The engine's time limit for data: 2^27 clocks of 50 MHz.
const DATA_LIMIT: Duration = Duration::from_ns((1 << 27) * 20);

impl Controller {
    /// Handles an event of the engine. Returns whether the controller interrupts.
    pub(super) fn engine_happens(&mut self, now: Instant) -> bool {
        if self.engine.power != Power::Off && self.faults.gone_by(now).is_some() {
            self.card.remove(now);
            self.engine = Engine::default();
            self.events.push_back(HostEvent::CardGone);
            return true;
        }
        self.run_engine(now);
        let Self { engine, events, .. } = self;
        let before = events.len();
        events.extend(engine.take_told(now).map(HostEvent::Engine));
        let tells = events.len() > before;
        self.schedule_engine(now);
        tells && !self.faults.loses_interrupt()
    }

    /// Does all work that the engine can do at `now`.
    fn run_engine(&mut self, now: Instant) {
        if let (Some(moving), Some(busy)) = (&mut self.engine.moving, self.card.busy_until())
            && moving.end == EngineEvent::TaskDone(moving.task)
        {
            // A read went before the last pages of this write.
            moving.until = moving.until.max(busy);
        }
        if let Some(moved) = self.engine.moving.take_if(|moving| moving.until <= now) {
            self.uses.transaction(&moved.transaction, moved.since, moved.until);
            self.engine.polls_from = moved.until;
            self.engine.told.push_back((now, moved.end));
            for task in core::mem::take(&mut self.engine.behind) {
                self.take_task(&task, now); // [direct-command-after-tasks]
            }
        }
        if self.engine.moving.is_some() {
            return;
        }
        if self.engine.power == Power::Halting {
            self.engine.power = Power::Halted;
            self.engine.told.push_back((now, EngineEvent::Halted));
        }
        if !self.engine.has_bus() || self.engine.failed {
            return;
        }
        if !self.engine.tasks.is_empty() {
            self.begin_transfer(now);
        } else if let Some(command) = self.engine.direct.take() {
            self.begin_direct(command, now);
        }
    }

    /// Schedules the next event of the engine.
    fn schedule_engine(&mut self, now: Instant) {
        let engine = &self.engine;
        let told = engine.told.front().map(|(at, _)| *at);
        let moves = engine.moving.as_ref().map(|moving| moving.until);
        let waits = engine.moving.is_none() && engine.has_bus() && !engine.failed;
        let begins = if waits { self.may_begin(now) } else { None };
        let next = told.into_iter().chain(moves).chain(begins).min();
        if let Some(at) = next {
            self.serial = self.serial.wrapping_add(1);
            self.wakes_at = Some(at.max(now));
            if engine.has_bus() {
                self.device.add(now, at.max(now));
            }
        }
    }

    /// Returns when the next transfer may begin: the command line is free, the card has a task
    /// ready, and the engine knows it or asks.
    fn may_begin(&self, now: Instant) -> Option<Instant> {
        let free_at = self.free_at.max(now);
        if self.engine.first_ready().is_some() {
            return Some(free_at);
        }
        let ready = self.card.next_task_ready(Instant::ZERO)?;
        Some(self.engine.next_poll(self.status_poll, ready.max(free_at)).0)
    }

    /// Moves the data of a task, if one is ready.
    fn begin_transfer(&mut self, now: Instant) {
        // Most of the time the command line is not free, and no task need be looked at.
        if self.free_at > now || self.may_begin(now) != Some(now) {
            return;
        }
        let Some(at) = self.engine.first_ready().or_else(|| self.ask_which_is_ready(now)) else {
            return;
        };
        debug_assert!(self.engine.moving.is_none(), "[one-task-moves-data]");
        debug_assert!(!self.engine.failed, "[failed-engine-starts-nothing]");
        let task = self.engine.tasks[at];
        let number = task.parameters.task;
        let blocks = task.parameters.blocks;
        let command = match task.parameters.direction {
            Direction::Read => Command::execute_read(number, blocks),
            Direction::Write => Command::execute_write(number, blocks),
        };
        self.engine.ready &= !(1 << number.number());
        let Some(reaction) = self.send_for_engine(&command, TaskSet::of(number), now) else {
            return;
        };
        self.engine.tasks.remove(at);
        let payload = Payload::Slot { slot: SlotId(number.number()), skip: task.skip };
        let transaction = MmcRequest { payload, ..MmcRequest::plain(command, DATA_LIMIT) };
        let done = self.transfer(&transaction, u32::from(blocks), reaction.at);
        if done.error.is_none() {
            self.ledger.passed(&transaction, u32::from(blocks));
        }
        let (end, until) = match done.error {
            None => (EngineEvent::TaskDone(number), done.busy_until.unwrap_or(done.end)),
            Some(DataError::Crc) => (failed(number, Part::Data, HostError::Damaged), done.end),
            Some(DataError::Timeout) => {
                (failed(number, Part::Data, HostError::Timeout), done.end + DATA_LIMIT)
            }
        };
        self.engine.failed |= done.error.is_some();
        self.bus.add(now, done.end.max(done.busy_until.unwrap_or(done.end)));
        self.engine.moving = Some(Moving { task: number, transaction, since: now, until, end });
    }

    /// Asks the card which tasks are ready. Returns the first of them.
    fn ask_which_is_ready(&mut self, now: Instant) -> Option<usize> {
        self.queue_status += self.engine.next_poll(self.status_poll, now).1; // no task was ready
        self.engine.polls_from = now;
        let ask = Command::send_queue_status(RCA);
        let reaction = self.send_for_engine(&ask, TaskSet::NONE, now)?;
        self.engine.ready =
            reaction.answer.ok()?.short().expect("the response to CMD13 should be short");
        self.engine.first_ready()
    }

    /// Sends the direct command ([direct-command-after-tasks]).
    fn begin_direct(&mut self, command: Command, now: Instant) {
        debug_assert!(self.engine.tasks.is_empty(), "[direct-command-after-tasks]");
        debug_assert!(self.engine.moving.is_none(), "{command} while data of a task passes");
        self.ledger.leaves();
        let reaction = self.send(&command, now.max(self.free_at));
        self.free_at = reaction.at + self.command_gap();
        let (end, until) = match reaction.answer {
            Ok(response) => {
                if response.status().is_some_and(|status| status.errors() != 0) {
                    self.ledger.disowned(None);
                }
                let busy_until = reaction.busy_until.unwrap_or(reaction.at);
                (EngineEvent::DirectDone(response), busy_until.max(reaction.at))
            }
            Err(no) => (failed(DIRECT, Part::Command, no.into()), reaction.at),
        };
        self.engine.failed |= reaction.answer.is_err();
        self.bus.add(now, until);
        let transaction = MmcRequest::plain(command, DATA_LIMIT);
        self.engine.moving = Some(Moving { task: DIRECT, transaction, since: now, until, end });
    }

    /// Queues `task` at the card, unless a direct command goes first
    /// ([direct-command-after-tasks]).
    fn take_task(&mut self, task: &Task, now: Instant) {
        if self.engine.has_direct() {
            return self.engine.behind.push(*task);
        }
        let tasks = TaskSet::of(task.parameters.task);
        let is_first = self.engine.tasks.is_empty() && self.engine.moving.is_none();
        self.engine.tasks.push(*task);
        if !self.engine.failed {
            let parameters = Command::queue_task_parameters(task.parameters);
            let address = Command::queue_task_address(task.address);
            let _ = self
                .send_for_engine(&parameters, tasks, now)
                .and_then(|_| self.send_for_engine(&address, tasks, now));
        }
        if is_first {
            self.engine.polls_from = self.free_at.max(now);
        }
    }

    /// Sends `command`, which concerns `tasks`. Returns `None` if it failed, and reports that.
    fn send_for_engine(
        &mut self,
        command: &Command,
        tasks: TaskSet,
        now: Instant,
    ) -> Option<Reaction> {
        if self.engine.moving.is_none() {
            self.ledger.leaves();
        }
        let from = now.max(self.free_at);
        let reaction = self.send(command, from);
        self.free_at = reaction.at + self.command_gap();
        self.bus.add(now, reaction.at);
        let (failed, event) = match reaction.answer {
            // The response to CMD13 with bit 15 is not a status.
            Ok(_) if command.opcode == Opcode::SendQueueStatus => (false, None),
            Ok(response) => {
                let status = response.status().expect("an R1 response should have a status");
                let is_seen = status.errors() != 0 || status.has(Status::EXCEPTION_EVENT);
                if status.errors() != 0 {
                    self.ledger.disowned(None);
                }
                let command = command.opcode.index();
                let event = EngineEvent::Responded { command, tasks, status };
                (status.errors() != 0, is_seen.then_some(event))
            }
            Err(no) => {
                let part = Part::Command;
                (true, Some(EngineEvent::Failed { tasks, part, error: no.into() }))
            }
        };
        self.engine.told.extend(event.map(|event| (reaction.at, event)));
        self.engine.failed |= failed;
        (!failed).then_some(reaction)
    }
}

const fn failed(task: TaskId, part: Part, error: HostError) -> EngineEvent {
    EngineEvent::Failed { tasks: TaskSet::of(task), part, error }
}

impl QueueEngine for Controller {
    fn enable(&mut self, now: Instant) {
        assert!(
            self.engine.power == Power::Off,
            "[engine-owns-bus]: the engine is already enabled"
        );
        self.engine = Engine::on();
        self.schedule_engine(now);
    }

    fn disable(&mut self, now: Instant) {
        if self.engine.moving.is_some() {
            self.abort(now);
        }
        self.engine = Engine::default();
    }

    fn queue(&mut self, task: &Task, now: Instant) {
        self.take_task(task, now);
        self.run_engine(now);
        self.schedule_engine(now);
    }

    fn direct(&mut self, command: &Command, now: Instant) {
        assert!(
            self.capabilities().queue_engine_direct,
            "this controller takes no direct commands"
        );
        assert!(!self.engine.has_direct(), "one direct command at a time");
        self.engine.direct = Some(*command);
        self.run_engine(now);
        self.schedule_engine(now);
    }

    fn halt(&mut self, now: Instant) {
        if self.engine.power == Power::Off {
            self.engine.told.push_back((now, EngineEvent::Halted)); // the card is gone
        } else {
            self.engine.power = Power::Halting;
        }
        self.run_engine(now);
        self.schedule_engine(now);
    }

    fn clear(&mut self, now: Instant) {
        let told = VecDeque::from([(now, EngineEvent::Cleared)]);
        self.engine = Engine { told, ..Engine::on() };
        self.schedule_engine(now);
    }
}
