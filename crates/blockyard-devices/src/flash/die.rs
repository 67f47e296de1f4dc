//! A die: it does one thing at a time, in the order that its [`Turns`] keep.
//!
//! A read that may go before other work suspends a program or erase that has begun, if the die can.
//! That ends later by the time of the reads and of the suspension: with 20 us for a suspension, a
//! program of 600 us and a read of 60 us end 680 us after the program began.
//!
//! A page that was read stays in a register of the die until the channel has carried it. A die
//! whose registers are full begins nothing. Errors of a page are corrected or not after the channel
//! has carried it. If not, the die reads it again, before other reads.
//!
//! The row that was read last stays in its register until the die begins something else. Reads of
//! it that come meanwhile, or while it is being read, cost no more than the channel: with rows of
//! 32 KiB, eight reads of 4 KiB one after another are one read of 60 us and eight transfers. While
//! other work waits for a die's only register, reads that come take their turn instead.

use super::slc::FoldReason;
use super::turns::Turns;
use crate::flash::profile::FlashProfile;
use crate::load::{Work, WorkTimes};
use crate::medium::CommandId;
use blockyard::time::{Duration, Instant};
use std::collections::VecDeque;

/// Whose data a page read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Data of a command.
    Command(CommandId),
    /// Data that a command may want next: the number of the piece.
    Ahead(u64),
    /// A page of the map that a command needs.
    Map(CommandId),
    /// A page of the map with the place of data that a write replaced. Nobody waits for it.
    Replaced,
    /// The collection of the die.
    Collection,
    /// The folding of the cache of single-level cells.
    Fold(FoldReason),
}

/// A read of a page of all planes, of which so many units leave the die.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRead {
    pub(super) reader: Reader,
    /// The row, and which of the data that shares it on the scaled map, if other reads may want it.
    pub(super) row: Option<(u32, u64)>,
    pub(super) units: u32,
    /// When it was asked for.
    pub(super) asked_at: Instant,
    /// How many more times the page must be read after that.
    pub(super) retries: u64,
    /// The number of the first program that does not go before it, in the order of arrival; 0 in
    /// any other order.
    pub(super) before: u64,
}

impl PageRead {
    /// Returns a read of `units` for `reader`, asked for now, that succeeds.
    pub(super) const fn new(reader: Reader, units: u32, asked_at: Instant) -> Self {
        Self { reader, row: None, units, asked_at, retries: 0, before: 0 }
    }

    /// Returns the row that it leaves in a register, where its errors can be corrected.
    const fn kept_row(&self) -> Option<(u32, u64)> {
        if self.retries == 0 { self.row } else { None }
    }
}

/// Whose data a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// The write buffer: the number of the program, its units, and which work that is.
    Buffer(u64, u32, Work),
    /// The map, for a flush: the number of the program.
    Map(u64),
    /// The collection of the die.
    Collection,
    /// The folding of the cache of single-level cells.
    Fold(FoldReason),
}

/// What a die does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Reads a page.
    Read(PageRead),
    /// Programs a row, if the map knows it.
    Program(Writer, Option<u32>),
    /// Erases a block.
    Erase(u32),
}

impl Operation {
    /// Returns the kind of work that it is.
    pub(super) const fn work(&self) -> Work {
        match self {
            Self::Read(read) => match read.reader {
                Reader::Command(_) | Reader::Ahead(_) => Work::Reads,
                Reader::Map(_) | Reader::Replaced => Work::MapReads,
                Reader::Collection => Work::Collection,
                Reader::Fold(reason) => reason.work(),
            },
            Self::Program(Writer::Buffer(_, _, work), _) => *work,
            Self::Program(Writer::Map(_), _) => Work::MapPrograms,
            Self::Program(Writer::Collection, _) => Work::Collection,
            Self::Program(Writer::Fold(reason), _) => reason.work(),
            Self::Erase(_) => Work::Erases,
        }
    }
}

/// A die.
#[derive(Debug)]
pub(super) struct Die {
    /// Reads that wait.
    reads: VecDeque<PageRead>,
    state: State,
    /// Registers of a page that are empty.
    registers: u8,
    /// The row that was read last, while it is in its register.
    row: Option<(u32, u64)>,
    /// Transfers out of the register that was filled last, and out of the one before. The channel
    /// carries the latter first.
    leaving: [u32; 2],
    /// An operation that is ready to go on, with the rest of its time: a program whose data is
    /// there, or what was suspended.
    held: Option<(Operation, Duration)>,
    turns: Turns,
    /// When it came into its state.
    since: Instant,
    /// What it was occupied with, waits for the data of programs included.
    work: WorkTimes,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Idle,
    /// The data of a program is on its way; then it takes so long.
    Loading(Operation, Duration),
    /// An operation is under way until then.
    Busy(Operation, Instant),
}

impl Die {
    /// Returns an idle die with so many registers.
    pub(super) const fn new(registers: u8) -> Self {
        debug_assert!(registers > 0, "a die holds what it reads");
        Self {
            reads: VecDeque::new(),
            state: State::Idle,
            registers,
            row: None,
            leaving: [0; 2],
            held: None,
            turns: Turns::NEW,
            since: Instant::ZERO,
            work: WorkTimes::NONE,
        }
    }

    /// Whether it does nothing, and has a register free to begin something.
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle) && self.registers > 0
    }

    pub(super) const fn holds_work(&self) -> bool {
        self.held.is_some()
    }

    /// Lets `read` wait.
    pub(super) fn ask(&mut self, read: PageRead) {
        self.reads.push_back(read);
    }

    /// Lets `read` join the row in the register, if it wants that. Returns whether it does.
    ///
    /// It does not where the only register has data to leave and other work waits, of the die or
    /// programs of the buffer (`has_program`): the register would never be empty while reads of its
    /// row come faster than the channel carries them, and the other work would wait for ever.
    pub(super) fn joins(&mut self, read: &PageRead, has_program: bool) -> bool {
        let is_there = matches!(self.state, State::Idle) && read.row.is_some();
        let is_awaited = self.registers == 0 && self.leaving[1] == 0;
        let holds_up = is_awaited && (has_program || self.holds_work() || !self.reads.is_empty());
        let joins = is_there && read.row == self.row && !holds_up;
        if joins {
            self.leave_register();
        }
        joins
    }

    /// Takes the next read that waits for the row in the register, and lets it join.
    pub(super) fn next_joined(&mut self) -> Option<PageRead> {
        let row = self.row?;
        let at = self.reads.iter().position(|read| read.row == Some(row))?;
        self.leave_register();
        self.reads.remove(at)
    }

    /// Lets `read`, of a page that could not be corrected, go before the others that wait.
    pub(super) fn ask_first(&mut self, read: PageRead) {
        self.reads.push_front(read);
    }

    /// Returns the next read.
    pub(super) fn first_read(&self) -> Option<&PageRead> {
        self.reads.front()
    }

    /// Takes the next read, unless it must let work pass that is `due`.
    pub(super) fn next_read(&mut self, due: bool, profile: &FlashProfile) -> Option<PageRead> {
        if due && !self.turns.may_pass(profile) {
            return None;
        }
        let read = self.reads.pop_front()?;
        self.turns.read_begins(due, profile);
        Some(read)
    }

    /// Takes the next read if other work that was due cannot begin.
    pub(super) fn idle_read(&mut self) -> Option<PageRead> {
        self.reads.pop_front()
    }

    /// Begins `operation`, which takes `time`, and returns when it ends.
    pub(super) fn begin(&mut self, operation: Operation, time: Duration, now: Instant) -> Instant {
        debug_assert!(self.is_idle(), "a die does one thing at a time: {:?}", self.state);
        self.row = None;
        self.state = State::Busy(operation, now + time);
        self.since = now;
        now + time
    }

    /// Begins `operation` other than a read, and returns when it ends.
    pub(super) fn begin_fresh(
        &mut self,
        operation: Operation,
        time: Duration,
        profile: &FlashProfile,
        now: Instant,
    ) -> Instant {
        debug_assert!(!matches!(operation, Operation::Read(_)), "a read lets other work pass");
        self.turns.work_begins(!self.reads.is_empty(), time, profile);
        self.begin(operation, time, now)
    }

    /// Keeps the page that `read` has read in a register, which it is carried from.
    pub(super) fn fill(&mut self, read: &PageRead) {
        debug_assert!(self.leaving[1] == 0, "two registers are carried at most");
        self.leaving = [0, self.leaving[0]];
        self.row = read.kept_row();
        self.leave_register();
    }

    /// Notes that the channel is to carry data of the register that was filled last.
    fn leave_register(&mut self) {
        if self.leaving[0] == 0 {
            debug_assert!(self.registers > 0, "a page is in an empty register");
            self.registers -= 1;
        }
        self.leaving[0] += 1;
    }

    /// Notes that the channel has carried data of a page.
    pub(super) fn drain(&mut self) {
        let of = if self.leaving[1] > 0 { &mut self.leaving[1] } else { &mut self.leaving[0] };
        debug_assert!(*of > 0, "the channel carries what was read");
        *of -= 1;
        if *of == 0 {
            self.registers += 1;
        }
    }

    /// Waits from `now` on for the data of `operation`, a program that takes `time`.
    pub(super) fn load(
        &mut self,
        operation: Operation,
        time: Duration,
        profile: &FlashProfile,
        now: Instant,
    ) {
        debug_assert!(self.is_idle() && self.held.is_none(), "a die has one program at a time");
        self.turns.work_begins(!self.reads.is_empty(), time, profile);
        self.since = now;
        self.row = None;
        self.state = State::Loading(operation, time);
    }

    /// Notes that the data of the program is there.
    pub(super) fn loaded(&mut self, now: Instant) {
        let State::Loading(operation, time) = self.state else {
            unreachable!("a die should wait for data: {:?}", self.state)
        };
        debug_assert!(self.held.is_none(), "a die that waits for data holds no other work");
        self.leave(operation, now);
        self.held = Some((operation, time));
    }

    /// Leaves the state in which it was occupied with `operation`.
    fn leave(&mut self, operation: Operation, now: Instant) {
        debug_assert!(self.since <= now, "{operation:?} should have begun");
        self.state = State::Idle;
        self.work.add(operation.work(), now.since(self.since));
    }

    /// Returns what it was occupied with since it last forgot that.
    pub(super) const fn work(&self) -> &WorkTimes {
        &self.work
    }

    /// Forgets what it was occupied with.
    pub(super) fn forget(&mut self) {
        self.work = WorkTimes::NONE;
    }

    /// Goes on with what it holds, and returns when that ends.
    pub(super) fn resume(&mut self, now: Instant) -> Option<Instant> {
        let (operation, left) = self.held.take()?;
        debug_assert!(!matches!(operation, Operation::Read(_)), "a read is never held");
        Some(self.begin(operation, left, now))
    }

    /// Suspends a program or erase whose rest takes longer than `cost`. Returns whether it did.
    pub(super) fn suspend(&mut self, cost: Duration, profile: &FlashProfile, now: Instant) -> bool {
        let State::Busy(operation, end) = self.state else { return false };
        let read = matches!(operation, Operation::Read(_));
        if read || !self.turns.may_pass(profile) || end.since(now) <= cost {
            return false;
        }
        debug_assert!(self.held.is_none(), "a die holds one operation at a time");
        self.leave(operation, now);
        self.held = Some((operation, end.since(now)));
        true
    }

    /// Returns the operation that ends now. There is none if the one that was to end now was
    /// suspended.
    pub(super) fn end(&mut self, now: Instant) -> Option<Operation> {
        match self.state {
            State::Busy(operation, end) if end == now => {
                self.leave(operation, now);
                Some(operation)
            }
            _ => None,
        }
    }

    /// Whether a program of `row` has not ended, so that its data is still in the drive's memory.
    pub(super) fn programs(&self, row: u32) -> bool {
        let begun = match self.state {
            State::Loading(operation, _) | State::Busy(operation, _) => Some(operation),
            State::Idle => None,
        };
        [begun, self.held.map(|(operation, _)| operation)]
            .iter()
            .any(|of| matches!(of, Some(Operation::Program(_, Some(at))) if *at == row))
    }
}
