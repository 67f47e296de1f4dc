//! The command queue inside a card: numbered tasks, each ready from some instant on.

use super::misuse::Wrong;
use super::transfer::Ahead;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::Direction;
use blockyard_mmc::command::state::Queue;

/// The maximum number of tasks in a queue.
const TASKS: usize = 32;

/// A task as CMD44 describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) number: u8,
    pub(super) direction: Direction,
    pub(super) blocks: u32,
    /// The task is a reliable or forced write: it completes only when its data is programmed.
    pub(super) durable: bool,
}

impl Parameters {
    /// Reads the argument of CMD44.
    pub(super) const fn parse(argument: u32) -> Self {
        let [flags, number, ..] = argument.to_be_bytes();
        let read = flags & 0x40 != 0;
        Self {
            number: number & 0x1f,
            direction: if read { Direction::Read } else { Direction::Write },
            blocks: argument & 0xffff,
            durable: flags & 0x81 != 0,
        }
    }
}

/// A task in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) parameters: Parameters,
    pub(super) sector: u64,
    /// When a read has its data, and when the card has taken a write. That is ready if there is
    /// room, too.
    pub(super) ready_at: Instant,
    /// The stream of the read.
    pub(super) stream: Ahead,
}

impl Task {
    /// Returns whether it is a read that has its data at `at`.
    fn is_read_at(&self, at: Instant) -> bool {
        self.parameters.direction == Direction::Read && self.ready_at <= at
    }
}

/// The queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tasks {
    depth: u8,
    tasks: [Option<Task>; TASKS],
    /// The queued tasks, one bit each.
    queued: u32,
    /// Those of them that write and that the card has reported as ready.
    reported: u32,
    described: Option<Parameters>,
    /// When each of the card's parallel accesses is free again.
    accesses: Vec<Instant>,
}

impl Tasks {
    /// Returns an empty queue of `depth` tasks, at most 32, on a card that makes `parallel`
    /// accesses at a time.
    pub(super) fn new(depth: u8, parallel: u8) -> Self {
        assert!(usize::from(depth) <= TASKS, "a queue of {depth} tasks exceeds the maximum of 32");
        assert!(parallel > 0, "a card must make at least one access at a time");
        let accesses = vec![Instant::ZERO; usize::from(parallel)];
        Self { depth, tasks: [None; TASKS], queued: 0, reported: 0, described: None, accesses }
    }

    /// Returns the queue's state for the table of legal commands.
    pub(super) fn queue(&self, on: bool) -> Queue {
        match (on, self.is_empty()) {
            (false, _) => Queue::Off,
            (true, true) => Queue::Empty,
            (true, false) => Queue::Busy,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Returns whether CMD44 can describe such a task.
    pub(super) fn check_new(&self, parameters: Parameters) -> Result<(), Wrong> {
        let number = parameters.number;
        let free = number < self.depth && self.tasks[usize::from(number)].is_none();
        if free && parameters.blocks > 0 { Ok(()) } else { Err(Wrong::Task(number)) }
    }

    pub(super) const fn describe(&mut self, parameters: Parameters) {
        self.described = Some(parameters);
    }

    /// Returns the task that CMD45 would queue.
    pub(super) const fn described(&self) -> Option<Parameters> {
        self.described
    }

    /// Queues the task that was described last, starting at `sector`, if there is such a sector.
    pub(super) fn queue_described(
        &mut self,
        sector: Option<u64>,
        ready_at: Instant,
        stream: Ahead,
    ) {
        if let (Some(parameters), Some(sector)) = (self.described.take(), sector) {
            let task = Task { parameters, sector, ready_at, stream };
            debug_assert_eq!(self.queued >> parameters.number & 1, 0, "{task:?} is queued twice");
            self.tasks[usize::from(parameters.number)] = Some(task);
            self.queued |= 1 << parameters.number;
        }
    }

    /// Begins an access of length `access` at `at`, or as soon as one is free. Returns the start.
    pub(super) fn access(&mut self, at: Instant, access: Duration) -> Instant {
        let free = self
            .accesses
            .iter_mut()
            .min()
            .expect("a card should make at least one access at a time");
        let begin = at.max(*free);
        *free = begin + access;
        begin
    }

    /// Returns the reads that are ready at `at`, and the writes that were reported, one bit each.
    pub(super) fn ready(&self, at: Instant) -> u32 {
        let ready = self.queued().filter(|task| self.is_reported(task) || task.is_read_at(at));
        ready.fold(0, |mask, task| mask | 1 << task.parameters.number)
    }

    /// Returns whether the card has reported `task`, a write, as ready.
    pub(super) const fn is_reported(&self, task: &Task) -> bool {
        self.reported >> task.parameters.number & 1 != 0
    }

    /// Notes that the card reports the write `number` as ready.
    pub(super) const fn report(&mut self, number: u8) {
        debug_assert!(self.queued >> number & 1 != 0, "a reported task is queued");
        self.reported |= 1 << number;
    }

    /// Returns the task with this number.
    pub(super) fn get(&self, number: u8) -> Option<Task> {
        self.tasks[usize::from(number) % TASKS]
    }

    /// Discards one task, or all tasks.
    pub(super) fn forget(&mut self, number: Option<u8>) {
        match number {
            Some(number) => {
                let at = usize::from(number) % TASKS;
                self.tasks[at] = None;
                self.queued &= !(1 << at);
                self.reported &= !(1 << at);
            }
            None => (self.tasks, self.queued, self.reported) = ([None; TASKS], 0, 0),
        }
    }

    /// Returns all tasks in the order of their numbers.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Task> {
        let mut left = self.queued;
        core::iter::from_fn(move || {
            let task = self.tasks.get(left.trailing_zeros() as usize)?.as_ref();
            left &= left - 1;
            task
        })
    }
}
