//! A disk in a file or on a block device, through io_uring.
//!
//! The page cache writes single bytes. Direct I/O needs whole blocks: a write of partial blocks
//! first reads the blocks at its edges, then writes them with its own bytes between. With blocks of
//! 512 bytes, a write of 100 to 1100 reads 0 to 512 and 1024 to 1536. After a short read or write,
//! the rest is issued too.
//!
//! Zeroes that must be written fast are refused before anything is touched. Linux drops the page
//! cache of a range of a block device, with writes that have not reached the device, before it
//! finds that the device cannot zero. So a block device takes no such request through the page
//! cache. Nor does it take one that must leave no hole, because Linux would write zeroes without a
//! report. File systems refuse before they change anything.
//!
//! A direct file has FUA only on file systems that are known to obey `RWF_DSYNC` there; elsewhere a
//! flush follows such a write instead. Where FUSE completes direct writes asynchronously, Linux
//! only passes the flag on to the file system, and most ignore it. A file system above others, such
//! as overlayfs, may hide a FUSE.
//!
//! # Rules (cited by name)
//!
//! - **[edge-has-one-writer]** While a write keeps edges, no other write touches those blocks
//!   ([`Overlaps`]). A write that arrives meanwhile gets Busy, and its lane is rung when a write
//!   has ended.
//! - **[failed-flush-stays-failed]** After a flush has failed, every later flush fails: the kernel
//!   reports lost writes once to each descriptor, and may then have forgotten them. The answer to a
//!   write may be that report: with FUA, and on NFS also without. So each lane flushes by a
//!   descriptor of its own (`File::flushed_by`), which nothing is written to. A lane has one
//!   flush in flight at a time, so no other call receives the report that belongs to it. A write
//!   that fails by itself, as for lack of space, fails alone.
//! - **[end-is-no-zeroes]** A read that finds the end of the file fails: the disk was as long as
//!   the file, so the file was cut short. The damage is reported. A write beyond the end fails too:
//!   it would make the file long again, and what was lost between would read as zeroes.

use super::completions::{Completions, completion};
use super::overlap::Overlaps;
use crate::parts::discards::Discard;
use crate::parts::job::{Jobs, Keeper, Place, SECTOR, Transfer, job_of};
use crate::parts::map::{Pages, Span};
use crate::parts::ring::{FileIo, FileOp, SPANS_MAX};
use blockyard::bio::{Flags, Op};
use blockyard::driver::{Accept, Busy, DataEffect, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::Instant;
use core::fmt;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

/// The longest write of zeroes, in bytes, on a file system that cannot zero ranges.
const ZEROES_BYTES: usize = 1 << 20;

/// Receives reports of damage to a file.
pub trait Damaged: fmt::Debug + Send + Sync {
    /// Reports that a request found the end of the file at `file_bytes`, before the end of the disk
    /// at `disk_bytes`.
    fn cut_short(&self, disk_bytes: u64, file_bytes: u64);

    /// Reports that a flush failed, so writes may be lost and every later flush fails
    /// ([failed-flush-stays-failed]).
    fn flush_failed(&self);
}

/// An open file, shared by all lanes.
#[derive(Debug)]
pub struct File {
    /// The open file.
    pub fd: Arc<OwnedFd>,
    /// The same file, opened once more for the flushes of each lane
    /// ([failed-flush-stays-failed]); empty if the file is only read.
    pub(super) flushed_by: Vec<Arc<OwnedFd>>,
    /// The alignment of direct I/O, in bytes; 1 through the page cache.
    pub block_bytes: u64,
    /// The alignment that direct I/O would have, if it is wanted and possible.
    pub(super) direct_block: Option<u64>,
    /// The size of the disk: that of the file when it was opened.
    pub size_bytes: u64,
    /// Whether it is a block device.
    pub is_block_device: bool,
    /// Whether its file system keeps it in memory only.
    pub is_in_memory: bool,
    /// Whether its file system is known to obey FUA of direct writes.
    pub(super) knows_fua: bool,
    /// Whether a write can be durable at its end.
    pub has_fua: bool,
    /// For [edge-has-one-writer].
    pub overlaps: Overlaps,
    /// For [failed-flush-stays-failed].
    pub has_lost_writes: AtomicBool,
    /// Receives reports of damage.
    pub damaged: Arc<dyn Damaged>,
}

/// Connects a lane with its [`FileDevice`], which layers may hide: holds I/O for the lane to begin,
/// and its results.
#[derive(Debug, Default)]
pub struct Outbox {
    /// I/O for the ring.
    pub begun: RefCell<VecDeque<Begun>>,
    /// Discards for the lane's second thread.
    pub discards: RefCell<VecDeque<Discard>>,
    ended: RefCell<VecDeque<(u32, io::Result<usize>)>>,
}

impl Outbox {
    /// Passes the result of the operation with the device's `number` to the device.
    pub fn end(&self, number: u32, result: io::Result<usize>) {
        self.ended.borrow_mut().push_back((number, result));
    }
}

/// An I/O for the lane to begin.
#[derive(Debug)]
pub struct Begun {
    /// The device's number for the I/O, which its result carries.
    pub number: u32,
    /// The I/O.
    pub io: FileIo,
    /// The owners of the memory that the I/O works on.
    pub keepers: Vec<Keeper>,
}

#[derive(Debug)]
enum Step {
    /// Reads the blocks at the edges of a write, whose other bytes are kept.
    Edges { scratch: Rc<Pages>, left: Vec<Edge>, reading: Edge },
    /// Reads or writes the data.
    Data,
    /// `fallocate`.
    Allocate,
    /// Discards on a block device that has no `fallocate`, because it cannot unmap and zero at
    /// once.
    Discard,
    /// Writes zeroes over whole blocks of the bytes that are left, for lack of `fallocate`.
    Zeroes { zeroes: Rc<Pages>, left: Range<u64> },
    /// As above, over the partial block at the start of the bytes that are left: reads the block
    /// first, then writes it.
    ZeroesWithin { block: Rc<Pages>, left: Range<u64>, is_read: bool },
    /// Makes changes durable.
    Sync,
}

/// A block of which a write changes only a part.
#[derive(Clone, Debug)]
struct Edge {
    /// The offset of the block on the disk.
    offset: u64,
    kept: Range<usize>,
    /// The place of that range in the buffer of the write.
    to: usize,
}

#[derive(Debug)]
struct Active {
    finished: Finished,
    op: Op,
    /// Only a write has FUA: behind other changes, the core sends a flush.
    fua: bool,
    no_hole: bool,
    fast: bool,
    step: Step,
    /// The range of the disk; whole blocks for direct I/O.
    bytes: Range<u64>,
    /// How much of that range is done, in bytes.
    done: u64,
    spans: Vec<Span>,
    keepers: Vec<Keeper>,
    /// The range that is registered as being written, and whether edges are kept
    /// ([edge-has-one-writer]).
    writing: Option<(Range<u64>, bool)>,
}

/// One lane's device to a [`File`].
#[derive(Debug)]
pub struct FileDevice {
    file: Arc<File>,
    jobs: Jobs,
    outbox: Rc<Outbox>,
    /// Indexed by tag.
    active: Vec<Option<Active>>,
    finished: Completions,
    zeroes: Option<Rc<Pages>>,
    lane: u32,
}

impl FileDevice {
    /// Returns `lane`'s device to `file`, for `depth` requests at once. It finds data in `jobs` and
    /// passes I/O to the lane through `outbox`.
    pub fn new(file: Arc<File>, lane: u32, jobs: Jobs, outbox: Rc<Outbox>, depth: u16) -> Self {
        Self {
            file,
            jobs,
            outbox,
            active: (0..depth).map(|_| None).collect(),
            finished: Completions::default(),
            zeroes: None,
            lane,
        }
    }

    /// Returns the state of a new request, with its range and the spans of its memory.
    ///
    /// # Errors
    ///
    /// Fails if there is no memory for a block whose rest a write keeps.
    fn active(&self, issue: &Issue<'_>) -> io::Result<Active> {
        let rq = issue.request();
        let mut active = Active {
            finished: completion(issue, Status::Ok),
            op: rq.op,
            fua: rq.flags.contains(Flags::FUA),
            no_hole: false,
            fast: false,
            step: Step::Data,
            bytes: 0..0,
            done: 0,
            spans: Vec::new(),
            keepers: Vec::new(),
            writing: None,
        };
        let jobs = self.jobs.borrow();
        for piece in issue.pieces() {
            let transfer = &jobs[job_of(piece.cookie)].transfer;
            let bytes = transfer.bytes_of(&piece);
            active.no_hole |= transfer.no_hole;
            active.fast |= transfer.fast;
            let bytes = match rq.op {
                Op::Read | Op::Write => self.name(&mut active, transfer, bytes)?,
                _ => bytes,
            };
            active.bytes.start =
                if active.bytes.is_empty() { bytes.start } else { active.bytes.start };
            active.bytes.end = bytes.end;
        }
        Ok(active)
    }

    /// Adds the memory of `bytes` of a transfer to `active`. Returns the whole blocks around
    /// `bytes`.
    ///
    /// # Errors
    ///
    /// As [`Self::active`].
    fn name(
        &self,
        active: &mut Active,
        transfer: &Transfer,
        bytes: Range<u64>,
    ) -> io::Result<Range<u64>> {
        if let Place::GuestRanges(guest) = &transfer.place {
            debug_assert_eq!(self.cover(&bytes), bytes, "a guest's data consists of whole blocks");
            let [start, end] = [bytes.start, bytes.end].map(|offset| {
                usize::try_from(offset - transfer.offset).expect("offset within a request")
            });
            let memory = guest.memory();
            active.spans.extend(guest.pieces(start..end).map(|piece| memory.span(piece)));
            active.keepers.push(Keeper::Map(Rc::clone(memory)));
            return Ok(bytes);
        }
        let (keeper, lead) =
            transfer.place.keeper().expect("memory with the data of a file's request");
        let block = self.file.block_bytes;
        let cover = self.cover(&bytes);
        active.spans.push(keeper.span(
            place_of(lead, transfer.offset, cover.start)
                ..place_of(lead, transfer.offset, cover.end),
        ));
        active.keepers.push(keeper);
        debug_assert!(
            cover == bytes || matches!(transfer.place, Place::Buffer { .. }),
            "foreign memory has no room for the rest of a block"
        );
        if active.op == Op::Write && cover != bytes {
            // The edges are read first. Such a bio does not merge, so the buffer is this piece's
            // alone.
            let block_bytes = usize::try_from(block).expect("block size within memory");
            let mut left = Vec::new();
            let kept_behind =
                usize::try_from(cover.end - bytes.end).expect("offset within a block");
            if kept_behind > 0 {
                let kept = block_bytes - kept_behind..block_bytes;
                left.push(Edge {
                    offset: cover.end - block,
                    kept,
                    to: place_of(lead, transfer.offset, bytes.end),
                });
            }
            let kept_before =
                usize::try_from(bytes.start - cover.start).expect("offset within a block");
            if kept_before > 0 {
                let kept = 0..kept_before;
                left.push(Edge {
                    offset: cover.start,
                    kept,
                    to: place_of(lead, transfer.offset, cover.start),
                });
            }
            let reading = left.pop().expect("edge of a write of partial blocks");
            let scratch = Pages::new(block_bytes)?;
            active.step = Step::Edges { scratch: Rc::new(scratch), left, reading };
        }
        Ok(cover)
    }

    /// Returns the whole blocks around `bytes`.
    fn cover(&self, bytes: &Range<u64>) -> Range<u64> {
        let block = self.file.block_bytes;
        bytes.start / block * block..bytes.end.next_multiple_of(block)
    }

    /// Returns whether the request may begin now ([edge-has-one-writer]).
    fn may_write(&self, active: &mut Active) -> bool {
        if self.file.block_bytes == 1
            || !matches!(active.op, Op::Write | Op::Discard | Op::WriteZeroes)
        {
            return true;
        }
        let cover = self.cover(&active.bytes);
        let may_zero_edges = active.op == Op::WriteZeroes && cover != active.bytes;
        let keeps_edges = may_zero_edges || matches!(active.step, Step::Edges { .. });
        let may = self.file.overlaps.begin(self.lane, cover.clone(), keeps_edges);
        active.writing = may.then_some((cover, keeps_edges));
        may
    }

    /// Asks the lane for the I/O of the step that `active` is at.
    fn begin(&mut self, active: &Active) {
        let offset = active.bytes.start + active.done;
        let mut spans = Vec::new();
        let mut keepers = Vec::new();
        let op = match &active.step {
            Step::Edges { scratch, reading, .. } => {
                spans.push(scratch.span(0..scratch_len(self.file.block_bytes)));
                keepers.push(Keeper::Map(Rc::clone(scratch)));
                FileOp::Read { offset: reading.offset }
            }
            Step::Data => {
                spans = rest_of(&active.spans, active.done);
                // The core estimates how the ranges of a guest are spread over the parts of a split
                // request. Of a part with more of them than the kernel takes at a time, the first
                // are done now, and the rest is issued after them, as after a short read or write.
                spans.truncate(SPANS_MAX);
                keepers.clone_from(&active.keepers);
                match active.op {
                    Op::Read => FileOp::Read { offset },
                    _ => FileOp::Write { offset, fua: active.fua },
                }
            }
            Step::Allocate => {
                let how = match active.no_hole {
                    true => libc::FALLOC_FL_ZERO_RANGE,
                    false => libc::FALLOC_FL_PUNCH_HOLE,
                };
                let mode = how | libc::FALLOC_FL_KEEP_SIZE;
                let len = active.bytes.end - active.bytes.start;
                FileOp::Allocate { mode, offset: active.bytes.start, len }
            }
            Step::Zeroes { zeroes, left } => {
                let len = left.end - left.start;
                let whole = usize::try_from(len - len % self.file.block_bytes);
                let len = whole.map_or(ZEROES_BYTES, |whole| whole.min(ZEROES_BYTES));
                spans.push(zeroes.span(0..len));
                keepers.push(Keeper::Map(Rc::clone(zeroes)));
                FileOp::Write { offset: left.start, fua: false }
            }
            Step::ZeroesWithin { block, left, is_read } => {
                spans.push(block.span(0..scratch_len(self.file.block_bytes)));
                keepers.push(Keeper::Map(Rc::clone(block)));
                let offset = self.cover(left).start;
                match is_read {
                    false => FileOp::Read { offset },
                    true => FileOp::Write { offset, fua: false },
                }
            }
            Step::Discard => {
                let Range { start: offset, end } = active.bytes;
                let number = u32::from(active.finished.tag.0);
                let fd = Arc::clone(&self.file.fd);
                let discard = Discard { number, fd, offset, len: end - offset };
                return self.outbox.discards.borrow_mut().push_back(discard);
            }
            Step::Sync => FileOp::Sync,
        };
        let fd = match op {
            FileOp::Sync => self.file.flushed_by.get(self.lane as usize), // none if only read
            _ => None,
        };
        let fd = Arc::clone(fd.unwrap_or(&self.file.fd));
        let backing = self.file.backing();
        let io = FileIo { fd, backing, op, spans };
        let number = u32::from(active.finished.tag.0);
        self.outbox.begun.borrow_mut().push_back(Begun { number, io, keepers });
    }

    /// Takes the result of a step. Returns how the request ended, or `None` if another step
    /// follows.
    fn advance(&mut self, active: &mut Active, result: io::Result<usize>) -> Option<Outcome> {
        let result = match result {
            Err(error) if is_passing(&error) => return None, // repeat the step
            result => result,
        };
        match (&mut active.step, result) {
            (Step::Edges { .. }, Ok(bytes)) => self.take_edge(active, bytes),
            (Step::Data, Ok(0)) if active.op == Op::Read => {
                self.file.note_cut(); // [end-is-no-zeroes]
                Some(failed(active, Status::IoError))
            }
            (Step::Data, Ok(0)) => Some(failed(active, Status::IoError)),
            (Step::Data, Ok(bytes)) => self.take_data(active, bytes),
            (Step::Data, Err(error)) => Some(failed(active, status_of(&error))),
            (Step::Allocate | Step::Discard, Ok(_)) => Some(Outcome::Done(Status::Ok)),
            // A discard is only advice.
            (Step::Discard, Err(error)) if is_unsupported(&error) => {
                Some(Outcome::Done(Status::Ok))
            }
            (Step::Allocate, Err(error)) if is_unsupported(&error) => self.without_allocate(active),
            (Step::Zeroes { .. }, Ok(0)) => Some(Outcome::Done(Status::IoError)),
            (Step::Zeroes { left, .. }, Ok(bytes)) => {
                let left = left.start + bytes as u64..left.end;
                self.zero(active, left)
            }
            (Step::ZeroesWithin { .. }, Ok(bytes)) => self.take_zeroed_block(active, bytes),
            (Step::Sync, result) => Some(self.take_sync(result)),
            (
                Step::Edges { .. }
                | Step::Allocate
                | Step::Discard
                | Step::Zeroes { .. }
                | Step::ZeroesWithin { .. },
                Err(error),
            ) => Some(Outcome::Done(status_of(&error))),
        }
    }

    /// Takes a block at the edge of a request, of which the request has a part. Its rest goes to
    /// the buffer.
    fn take_edge(&mut self, active: &mut Active, bytes: usize) -> Option<Outcome> {
        let Step::Edges { scratch, left, reading } = &mut active.step else {
            unreachable!("the step reads an edge")
        };
        if bytes < scratch_len(self.file.block_bytes) {
            self.file.note_cut(); // [end-is-no-zeroes]
            return Some(Outcome::Done(Status::IoError));
        }
        let Some(Keeper::Map(pages)) = active.keepers.first() else {
            unreachable!("only a buffer has room for the rest of a block")
        };
        pages.write_from(reading.to, scratch, reading.kept.clone());
        match left.pop() {
            Some(next) => *reading = next,
            None => active.step = Step::Data,
        }
        None
    }

    /// Takes `bytes` transferred bytes. A short transfer continues behind them.
    fn take_data(&mut self, active: &mut Active, bytes: usize) -> Option<Outcome> {
        active.done += bytes as u64;
        let whole = active.done >= active.bytes.end - active.bytes.start;
        if !whole && !active.done.is_multiple_of(self.file.block_bytes) {
            // Direct I/O ended within a block: at the end of the file, or for lack of space.
            if active.op == Op::Read {
                self.file.note_cut(); // [end-is-no-zeroes]
            }
            return Some(failed(active, Status::IoError));
        }
        whole.then_some(Outcome::Done(Status::Ok))
    }

    /// Takes the result of a flush ([failed-flush-stays-failed]).
    fn take_sync(&self, result: io::Result<usize>) -> Outcome {
        match result {
            Ok(_) if self.has_lost_writes() => Outcome::Done(Status::IoError),
            Ok(_) => Outcome::Done(Status::Ok),
            Err(error) => {
                self.note_lost_writes();
                Outcome::Done(status_of(&error))
            }
        }
    }

    /// Takes a block in which a part becomes zeroes: first its bytes, then the end of its write.
    fn take_zeroed_block(&mut self, active: &mut Active, bytes: usize) -> Option<Outcome> {
        let Step::ZeroesWithin { block, left, is_read } = &mut active.step else {
            unreachable!("the step zeroes a part of a block")
        };
        let block_bytes = scratch_len(self.file.block_bytes);
        if bytes < block_bytes {
            return Some(Outcome::Done(Status::IoError)); // the file was cut short, or is full
        }
        let start = self.cover(left).start;
        let end = left.end.min(start + self.file.block_bytes);
        if *is_read {
            let left = end..left.end;
            return self.zero(active, left);
        }
        let within = [left.start, end]
            .map(|offset| usize::try_from(offset - start).expect("offset within a block"));
        block.zero(within[0]..within[1]);
        *is_read = true;
        None
    }

    /// Continues on a file system that cannot deallocate or zero ranges.
    fn without_allocate(&mut self, active: &mut Active) -> Option<Outcome> {
        if active.op == Op::Discard && self.file.is_block_device {
            active.step = Step::Discard;
            return None;
        }
        if active.op == Op::Discard {
            return Some(Outcome::Done(Status::Ok)); // a discard is only advice
        }
        if active.fast {
            return Some(Outcome::Done(Status::NotSupported));
        }
        let all = active.bytes.clone();
        self.zero(active, all)
    }

    /// Zeroes the bytes that are left by writes.
    fn zero(&mut self, active: &mut Active, left: Range<u64>) -> Option<Outcome> {
        if left.is_empty() {
            return Some(Outcome::Done(Status::Ok));
        }
        match self.zero_step(left) {
            Ok(step) => {
                active.step = step;
                None
            }
            Err(error) => Some(Outcome::Done(status_of(&error))),
        }
    }

    fn zero_step(&mut self, left: Range<u64>) -> io::Result<Step> {
        let block = self.file.block_bytes;
        if left.start.is_multiple_of(block) && left.end - left.start >= block {
            let zeroes = match &self.zeroes {
                Some(zeroes) => Rc::clone(zeroes),
                None => Rc::clone(self.zeroes.insert(Rc::new(Pages::new(ZEROES_BYTES)?))),
            };
            return Ok(Step::Zeroes { zeroes, left });
        }
        let block = Rc::new(Pages::new(scratch_len(block))?);
        Ok(Step::ZeroesWithin { block, left, is_read: false })
    }

    /// Takes note that the kernel has lost writes ([failed-flush-stays-failed]).
    fn note_lost_writes(&self) {
        self.file.has_lost_writes.store(true, Ordering::SeqCst);
        self.file.damaged.flush_failed();
    }

    fn has_lost_writes(&self) -> bool {
        self.file.has_lost_writes.load(Ordering::SeqCst)
    }

    fn take_in(&mut self, number: u32, result: io::Result<usize>) {
        let slot = number as usize;
        let mut active =
            self.active[slot].take().expect("request in flight under the number of an ended I/O");
        match self.advance(&mut active, result) {
            None => {
                self.begin(&active);
                self.active[slot] = Some(active);
            }
            Some(outcome) => {
                if let Some((bytes, keeps_edges)) = active.writing {
                    self.file.overlaps.end(bytes, keeps_edges);
                }
                self.finished.push(Finished { outcome, ..active.finished });
            }
        }
    }
}

fn place_of(lead: usize, start: u64, offset: u64) -> usize {
    usize::try_from(lead as u64 + offset - start).expect("offset within a buffer")
}

impl Driver for FileDevice {
    blockyard::leaf_calls!(
        take_budget,
        return_budget,
        prepare,
        unprepare,
        commit,
        timed_out,
        finish
    );

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let mut active = match self.active(issue) {
            Ok(active) => active,
            Err(error) => return Accept::Failed(status_of(&error)),
        };
        active.step = match active.op {
            Op::Read | Op::Write => active.step,
            Op::Flush => Step::Sync,
            Op::Discard | Op::WriteZeroes => Step::Allocate,
            Op::SecureErase | Op::DriverIn | Op::DriverOut => {
                return Accept::Failed(Status::NotSupported);
            }
        };
        if active.op == Op::Flush && self.has_lost_writes() {
            return Accept::Failed(Status::IoError); // [failed-flush-stays-failed]
        }
        let is_cached = self.file.block_bytes == 1;
        if self.file.is_block_device && active.fast && (active.no_hole || is_cached) {
            // The kernel would drop writes from the page cache, or write zeroes slowly.
            return Accept::Failed(Status::NotSupported);
        }
        if issue.effect() == DataEffect::Nowhere {
            self.finished.push(active.finished);
            return Accept::Queued;
        }
        if matches!(active.op, Op::Write | Op::WriteZeroes)
            && self.file.ends_before(active.bytes.end)
        {
            self.file.note_cut(); // [end-is-no-zeroes]
            return Accept::Failed(Status::IoError);
        }
        if !self.may_write(&mut active) {
            return Accept::Busy(Busy::Device); // [edge-has-one-writer]
        }
        self.begin(&active);
        self.active[issue.tag.index()] = Some(active);
        Accept::Queued
    }
}

impl Device for FileDevice {
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        loop {
            let ended = self.outbox.ended.borrow_mut().pop_front();
            let Some((number, result)) = ended else { break };
            self.take_in(number, result);
        }
        self.finished.pop()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.finished.poll_at()
    }
}

fn scratch_len(block_bytes: u64) -> usize {
    usize::try_from(block_bytes).expect("block size within memory")
}

/// Returns the outcome of a failed read or write, with the sectors that were done before.
fn failed(active: &Active, status: Status) -> Outcome {
    match u32::try_from(active.done / SECTOR) {
        Ok(sectors @ 1..) => Outcome::Partial { sectors, status },
        _ => Outcome::Done(status),
    }
}

/// Returns the rest of `spans` after the first `done` bytes.
fn rest_of(spans: &[Span], done: u64) -> Vec<Span> {
    let mut skip = usize::try_from(done).expect("length of one request");
    let mut rest = Vec::with_capacity(spans.len());
    for span in spans {
        let here = skip.min(span.len);
        skip -= here;
        if here < span.len {
            rest.push(Span { start: span.start.wrapping_add(here), len: span.len - here });
        }
    }
    rest
}

fn is_passing(error: &io::Error) -> bool {
    [libc::EINTR, libc::EAGAIN].map(Some).contains(&error.raw_os_error())
}

fn is_unsupported(error: &io::Error) -> bool {
    let errnos = [libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL, libc::ENODEV];
    errnos.map(Some).contains(&error.raw_os_error())
}

fn status_of(error: &io::Error) -> Status {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Status::NoSpace,
        Some(libc::EILSEQ | libc::ENODATA) => Status::Medium,
        Some(libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM) => Status::Gone,
        Some(libc::ETIMEDOUT) => Status::Timeout,
        Some(libc::EOPNOTSUPP) => Status::NotSupported,
        _ => Status::IoError,
    }
}

#[cfg(test)]
mod tests;
