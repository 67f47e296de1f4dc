//! The processes that BFQ knows, and the groups that they belong to.
//!
//! A process is known from its first request on. Not everybody says when one ends
//! ([`Elevator::submitter_ended`]): the one that has been silent for the longest time makes room
//! for another, so that no memory is needed but at first.
//!
//! [`Elevator::submitter_ended`]: crate::elevator::Elevator::submitter_ended

use super::entity::Raise;
use super::queue::{LEVELS, Marks, Think};
use super::scheduler::CLASSES;
use crate::bio::{IoPrio, Submitter};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

const NONE: usize = usize::MAX;

/// The number of groups that have shares of their own, besides group 0: 15, the first ones that
/// come or are weighed. Processes of further groups count as of group 0.
pub const GROUPS: usize = 15;

/// What a queue had before it was merged into another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) marks: Marks,
    pub(super) weight: u32,
    pub(super) think: Think,
    pub(super) io_since: Instant,
    pub(super) idle_ns: u64,
    pub(super) service_ns: u64,
    pub(super) inject_limit: u32,
    pub(super) limit_changed: Instant,
    pub(super) raise: u32,
    pub(super) raised_as: Raise,
    pub(super) raised_for: Duration,
    pub(super) raised_at: Instant,
    pub(super) raised_before: Option<Instant>,
    pub(super) raised_service: u32,
}

/// A process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    key: Submitter,
    /// The level of its group.
    pub(super) level: usize,
    pub(super) prio: IoPrio,
    /// The queue of its synchronous requests.
    pub(super) sync: Option<usize>,
    /// The queue of its last asynchronous request.
    pub(super) last_async: Option<usize>,
    /// Requests that are held, or dispatched and not finished.
    pub(super) requests: u32,
    /// What its queue had before it was merged.
    pub(super) saved: Option<Saved>,
    /// Whether its queue was merged for good.
    pub(super) is_stable: bool,
    /// The queue that its own one may be merged into for good.
    pub(super) stable_heir: Option<usize>,
    /// The next one in the chain of its hash.
    next: usize,
    /// The turn in which it was last looked up.
    used: u64,
}

impl Process {
    /// Forgets what it had besides its queue, which it has given up.
    pub(super) fn forget(&mut self) {
        debug_assert!(self.sync.is_none() && self.requests == 0, "{:?} is there", self.key);
        self.last_async = None;
        self.saved = None;
        self.is_stable = false;
        self.stable_heir = None;
    }
}

/// All processes.
#[derive(Debug)]
pub(super) struct Processes {
    slots: Vec<Process>,
    chains: Vec<usize>,
    capacity: usize,
    last: usize,
    turns: u64,
}

impl Processes {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            slots: Vec::with_capacity(capacity),
            chains: alloc::vec![NONE; capacity.next_power_of_two()],
            capacity,
            last: NONE,
            turns: 0,
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(super) const fn heap(capacity: usize) -> usize {
        capacity * size_of::<Process>() + capacity.next_power_of_two() * size_of::<usize>()
    }

    pub(super) fn of(&self, process: usize) -> &Process {
        &self.slots[process]
    }

    pub(super) fn of_mut(&mut self, process: usize) -> &mut Process {
        &mut self.slots[process]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Process> {
        self.slots.iter()
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        self.slots.iter_mut()
    }

    fn chain_of(&self, key: Submitter) -> usize {
        let mixed = (u64::from(key.group) << 32 | u64::from(key.process))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let high = usize::try_from(mixed >> 40).unwrap_or_default();
        high & (self.chains.len() - 1)
    }

    /// Returns the process with this key.
    pub(super) fn find(&mut self, key: Submitter) -> Option<usize> {
        self.turns += 1;
        if self.slots.get(self.last).is_some_and(|last| last.key == key) {
            self.slots[self.last].used = self.turns;
            return Some(self.last);
        }
        let mut at = self.chains[self.chain_of(key)];
        while at != NONE && self.slots[at].key != key {
            at = self.slots[at].next;
        }
        let found = self.slots.get_mut(at)?;
        found.used = self.turns;
        self.last = at;
        Some(at)
    }

    /// Whether there is room for another process.
    pub(super) const fn has_room(&self) -> bool {
        self.slots.len() < self.capacity
    }

    /// Returns the process without requests that has been silent for the longest time.
    pub(super) fn longest_silent(&self) -> Option<usize> {
        let silent = self.slots.iter().enumerate().filter(|(_, process)| process.requests == 0);
        silent.min_by_key(|(_, process)| process.used).map(|(at, _)| at)
    }

    /// Adds a process, in the place of `old` if it is given.
    pub(super) fn add(
        &mut self,
        key: Submitter,
        level: usize,
        prio: IoPrio,
        old: Option<usize>,
    ) -> usize {
        debug_assert!(old.is_some() || self.has_room(), "no room");
        let at = old.unwrap_or(self.slots.len());
        if let Some(old) = old {
            self.unchain(old);
        }
        let chain = self.chain_of(key);
        let process = Process {
            key,
            level,
            prio,
            sync: None,
            last_async: None,
            requests: 0,
            saved: None,
            is_stable: false,
            stable_heir: None,
            next: core::mem::replace(&mut self.chains[chain], at),
            used: self.turns,
        };
        match self.slots.get_mut(at) {
            Some(slot) => *slot = process,
            None => self.slots.push(process),
        }
        self.last = at;
        at
    }

    fn unchain(&mut self, process: usize) {
        let chain = self.chain_of(self.slots[process].key);
        let next = self.slots[process].next;
        if self.chains[chain] == process {
            self.chains[chain] = next;
            return;
        }
        let mut at = self.chains[chain];
        while self.slots[at].next != process {
            at = self.slots[at].next;
        }
        self.slots[at].next = next;
    }
}

/// A group: its number, its queues that have requests, and its asynchronous queues.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) number: u32,
    /// Queues with requests that are held, or dispatched and not finished.
    pub(super) pending: u32,
    /// By class and level. The idle class has one.
    pub(super) of_async: [[Option<usize>; LEVELS]; CLASSES],
}

/// Returns the level of the group with this number; a new one gets a level if there is room.
pub(super) fn level_of(groups: &mut Vec<Group>, number: u32) -> usize {
    if number == 0 && !groups.is_empty() {
        return 0;
    }
    if let Some(at) = groups.iter().position(|group| group.number == number) {
        return at;
    }
    if groups.len() > GROUPS {
        return 0;
    }
    groups.push(Group { number, pending: 0, of_async: [[None; LEVELS]; CLASSES] });
    groups.len() - 1
}
