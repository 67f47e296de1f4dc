//! The I/Os of a task that were submitted and not reaped, one in each slot.

use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_fio::job::{Op, Priority};
use blockyard_fio::measure::Taken;
use std::collections::VecDeque;

/// An I/O that was submitted and not reaped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The kind of I/O; `None` for a sync.
    pub(super) op: Option<Op>,
    /// The index of its file in the job.
    pub(super) file: u16,
    pub(super) len_bytes: u32,
    pub(super) offset_bytes: u64,
    /// When a trace wanted the I/O to be issued, if that is earlier than `begun`, which it
    /// otherwise equals.
    pub(super) due: Instant,
    pub(super) begun: Instant,
    pub(super) submitted: Instant,
    pub(super) completed: Instant,
    pub(super) status: Status,
    pub(super) priority: Option<Priority>,
    pub(super) polled: bool,
    /// When the trace completed the I/O.
    pub(super) recorded_end: Option<Instant>,
}

impl Slot {
    /// What a slot has before its first I/O.
    const IDLE: Self = Self {
        op: None,
        file: 0,
        len_bytes: 0,
        offset_bytes: 0,
        due: Instant::ZERO,
        begun: Instant::ZERO,
        submitted: Instant::ZERO,
        completed: Instant::ZERO,
        status: Status::Ok,
        priority: None,
        polled: false,
        recorded_end: None,
    };
}

/// The slots of a task, as many as its depth. A slot is free, in flight, or completed and not
/// reaped.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    completed: VecDeque<u32>,
    /// The number of polled I/Os in flight.
    polled: u32,
    /// The slots that the current step has submitted.
    submitting: Vec<u32>,
}

impl Slots {
    pub(super) fn new(depth: u32) -> Self {
        Self {
            slots: vec![Slot::IDLE; depth as usize],
            free: (0..depth).rev().collect(),
            completed: VecDeque::with_capacity(depth as usize),
            polled: 0,
            submitting: Vec::with_capacity(depth as usize),
        }
    }

    /// Returns the number of I/Os in flight, or completed and not reaped.
    pub(super) fn outstanding(&self) -> u32 {
        let used = self.slots.len() - self.free.len();
        u32::try_from(used).expect("used slots should fit the depth")
    }

    /// Returns the number of I/Os that are completed and not reaped.
    pub(super) fn completed(&self) -> usize {
        self.completed.len()
    }

    pub(super) const fn has_polled(&self) -> bool {
        self.polled > 0
    }

    /// Whether the current step has submitted an I/O.
    pub(super) const fn has_submitted(&self) -> bool {
        !self.submitting.is_empty()
    }

    /// Returns the slot that the next I/O takes.
    pub(super) fn next_free(&self) -> Option<u32> {
        self.free.last().copied()
    }

    pub(super) fn get(&self, at: u32) -> &Slot {
        &self.slots[at as usize]
    }

    /// Puts an I/O in flight. Returns its slot, which is that of [`Self::next_free`].
    pub(super) fn begin(&mut self, io: Slot) -> u32 {
        let at = self.free.pop().expect("a submitted bio should have a slot");
        debug_assert!(io.due <= io.begun, "an I/O is issued before it is due: {io:?}");
        self.polled += u32::from(io.polled);
        self.slots[at as usize] = io;
        // The I/O counts as submitted when the step ends, whose cost is not known yet.
        self.submitting.push(at);
        at
    }

    /// Ends a step at `now`: the call returns, and the I/Os of the step count as submitted now.
    pub(super) fn end_step(&mut self, now: Instant) {
        for at in self.submitting.drain(..) {
            self.slots[at as usize].submitted = now;
        }
    }

    /// Counts the I/O of a slot as submitted at `now`.
    pub(super) fn set_submitted(&mut self, at: u32, now: Instant) {
        self.slots[at as usize].submitted = now;
    }

    /// Ends an I/O in flight at `now`.
    pub(super) fn end(&mut self, at: u32, status: Status, now: Instant) {
        debug_assert!(self.completed.len() < self.outstanding() as usize, "slot {at} is idle");
        let done = &mut self.slots[at as usize];
        done.status = status;
        done.completed = now;
        self.polled -= u32::from(done.polled);
    }

    /// Lets an I/O that has ended be reaped, after those that ended before it.
    pub(super) fn push_completed(&mut self, at: u32) {
        debug_assert!(self.completed.len() < self.outstanding() as usize, "slot {at} is idle");
        self.completed.push_back(at);
    }

    /// Returns the slot of the I/O that is reaped next.
    pub(super) fn pop_completed(&mut self) -> Option<u32> {
        self.completed.pop_front()
    }

    /// Reaps the I/O of a slot at `now`, and frees the slot.
    pub(super) fn take(&mut self, at: u32, now: Instant) -> Taken {
        debug_assert!(self.free.len() < self.slots.len(), "slot {at} is in use");
        self.free.push(at);
        self.slots[at as usize].taken(now)
    }

    /// Returns the I/O of the only slot as it is reaped at `now`, if it is completed.
    pub(super) fn only_completed(&self, now: Instant) -> Option<Taken> {
        let [slot] = &self.slots[..] else { return None };
        (self.completed.len() == 1).then(|| slot.taken(now))
    }

    /// Makes the I/O of the only slot one at `offset_bytes` of file number `file`, whose call
    /// begins at `begun` and ends at `ended`. Returns the slot.
    pub(super) fn redo(
        &mut self,
        (file, offset_bytes): (u16, u64),
        begun: Instant,
        ended: Instant,
    ) -> u32 {
        debug_assert_eq!(self.completed.len(), self.slots.len(), "the only slot is completed");
        let slot = &mut self.slots[0];
        (slot.file, slot.offset_bytes) = (file, offset_bytes);
        (slot.due, slot.begun, slot.submitted, slot.completed) = (begun, begun, ended, ended);
        0
    }
}

impl Slot {
    /// Returns the I/O as it is reaped at `now`.
    fn taken(&self, now: Instant) -> Taken {
        Taken {
            op: self.op,
            len_bytes: self.len_bytes,
            offset_bytes: self.offset_bytes,
            late: self.begun.since(self.due),
            slat: self.submitted.since(self.begun),
            clat: now.since(self.submitted),
            completed: self.completed,
            status: self.status,
            priority: self.priority,
        }
    }
}
