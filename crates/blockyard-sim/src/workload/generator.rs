//! The sequence of I/Os of one job instance.

use crate::job::{FileService, Job, Mix, Op, PerOp, Resolved};

use super::cursor::FileCursor;
use super::length::Lengths;
use super::prng::Prng;

/// The operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim.
    Trim,
    /// Sync: makes the earlier writes durable, without an offset or length.
    Sync {
        /// Data only (`fdatasync`).
        datasync: bool,
    },
}

impl From<Op> for IoOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write => Self::Write,
            Op::Trim => Self::Trim,
        }
    }
}

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The operation.
    pub op: IoOp,
    /// The index of the file in [`Resolved::files`].
    pub file: u16,
    /// Offset in the file, bytes; 0 for a sync.
    pub offset_bytes: u64,
    /// Length, bytes, at least 1; 0 for a sync.
    pub len_bytes: u32,
}

/// The seed of a job without a `randseed`.
const DEFAULT_SEED: u64 = 0x89;

/// Returns the I/Os of one job instance in order.
///
/// Only [`Generator::new`] allocates. An I/O costs about ten nanoseconds with a uniform or sequential
/// offset, and about a hundred with a zipf, pareto or normal one.
#[derive(Clone, Debug)]
pub struct Generator {
    plan: Plan,
    files: Vec<FileCursor>,
    draws: Prng,
    lengths: PerOp<Lengths>,
    turn: Turn,
    progress: Progress,
    /// The write that follows a trim.
    write_after: Option<Io>,
    /// The I/O behind a sync.
    after_sync: Option<Io>,
    syncs: Syncs,
}

/// The part of a generator that never changes.
#[derive(Clone, Debug)]
struct Plan {
    mix: Mix,
    read_percent: u64,
    file_service: FileService,
    /// The shortest I/O of the job. An I/O that is cut short is a multiple of it.
    min_bytes: u32,
    pass_bytes: u64,
    passes: u64,
    io_bytes: u64,
    pass_ios: u64,
}

/// The current file, and its number of remaining I/Os.
#[derive(Clone, Debug)]
struct Turn {
    file: u16,
    ios_left: u32,
    file_bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    passes: u64,
    pass_bytes: u64,
    pass_ios: u64,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Syncs {
    fsync: u32,
    fdatasync: u32,
    at_end: bool,
    writes: u64,
    /// Whether writes were issued since the last sync.
    dirty: bool,
    file: u16,
    /// The next I/O, if it is a sync.
    due: Option<IoOp>,
}

impl Generator {
    /// Returns the I/Os of instance `instance` of `job` in the regions `resolved`, which come from
    /// [`Job::resolve`]. `seed` is the seed of the run ([repeatable-draws]).
    pub fn new(job: &Job, instance: u32, resolved: &Resolved, seed: u64) -> Self {
        let (offsets, draws) = streams(job, instance, seed);
        let lengths = |op| Lengths::new(job.block.of(op), job.block_unaligned);
        assert!(!resolved.files.is_empty(), "a resolved job must have a file");
        let cursors = resolved.files.iter().zip(0..);
        Self {
            files: cursors
                .map(|(range, file)| FileCursor::new(job, *range, offsets.fork(file)))
                .collect(),
            plan: Plan {
                mix: job.pattern.mix,
                read_percent: job.rwmix_read_percent.into(),
                file_service: job.file_service,
                min_bytes: job.min_block_bytes().max(1),
                pass_bytes: resolved.pass_bytes,
                passes: resolved.passes,
                io_bytes: resolved.io_bytes,
                pass_ios: job.number_ios.unwrap_or(u64::MAX),
            },
            draws,
            lengths: PerOp {
                read: lengths(Op::Read),
                write: lengths(Op::Write),
                trim: lengths(Op::Trim),
            },
            turn: Turn { file: 0, ios_left: 0, file_bytes: 0 },
            progress: Progress::default(),
            write_after: None,
            after_sync: None,
            syncs: Syncs::new(job),
        }
    }

    /// Returns the next I/O; `None` after the last. An instance that ends only by time has no last I/O. With a
    /// `direction`, an I/O has that one, whatever the job draws.
    #[inline]
    pub fn next(&mut self, direction: Option<Op>) -> Option<Io> {
        if let Some(io) = self.after_sync.take() {
            return Some(io);
        }
        let sync = self.syncs.take_due();
        let Some(io) = self.next_without_sync(direction) else {
            // fio looks for a due sync before it issues another I/O, so none follows the last one.
            self.syncs.dirty |= sync.is_some();
            return self.syncs.last();
        };
        if sync.is_some() {
            self.after_sync = Some(io);
        }
        sync.or(Some(io))
    }

    fn next_without_sync(&mut self, direction: Option<Op>) -> Option<Io> {
        if let Some(write) = self.write_after.take() {
            self.syncs.wrote(write.file);
            return Some(write);
        }
        let drawn = self.choose_op();
        let op = direction.unwrap_or(drawn);
        self.choose_len(op).map(|len_bytes| self.issue(op, len_bytes))
    }

    fn choose_op(&mut self) -> Op {
        match self.plan.mix {
            Mix::Read => Op::Read,
            Mix::Write => Op::Write,
            Mix::Trim | Mix::TrimWrite => Op::Trim,
            Mix::ReadWrite if self.draws.below(100) < self.plan.read_percent => Op::Read,
            Mix::ReadWrite => Op::Write,
        }
    }

    /// Starts a new pass if needed. Returns a length that fits into the rest of the pass; `None` at the end.
    fn choose_len(&mut self, op: Op) -> Option<u32> {
        // A trim has the length of the write that follows.
        let op = if self.plan.mix == Mix::TrimWrite { Op::Write } else { op };
        let min_bytes = self.plan.min_bytes;
        let mut left = self.left();
        if left < u64::from(min_bytes) {
            self.start_pass()?;
            left = self.left();
        }
        let len = self.lengths.of(op).draw(&mut self.draws);
        if u64::from(len) <= left {
            return Some(len);
        }
        let fits = left - left % u64::from(min_bytes);
        u32::try_from(fits).ok().filter(|fits| *fits > 0)
    }

    /// Returns the bytes left in this pass.
    fn left(&self) -> u64 {
        let progress = &self.progress;
        if progress.pass_ios >= self.plan.pass_ios {
            return 0;
        }
        debug_assert!(
            progress.pass_bytes <= self.plan.pass_bytes,
            "a pass must not exceed its bytes"
        );
        let pass = self.plan.pass_bytes - progress.pass_bytes;
        if progress.passes < self.plan.passes {
            return pass;
        }
        // `io_size` asks for passes beyond `loops`.
        pass.min(self.plan.io_bytes.saturating_sub(progress.bytes))
    }

    fn start_pass(&mut self) -> Option<()> {
        let progress = &mut self.progress;
        let counted_out = progress.pass_ios >= self.plan.pass_ios;
        progress.passes += 1;
        let more_passes = progress.passes < self.plan.passes;
        let more_bytes = progress.bytes < self.plan.io_bytes && !counted_out;
        // A pass without an I/O would be followed by infinitely many.
        if progress.pass_ios == 0 || !(more_passes || more_bytes) {
            return None;
        }
        (progress.pass_bytes, progress.pass_ios) = (0, 0);
        self.turn = Turn { file: 0, ios_left: 0, file_bytes: 0 };
        self.files.iter_mut().for_each(FileCursor::start_over);
        Some(())
    }

    fn issue(&mut self, op: Op, len_bytes: u32) -> Io {
        let file = self.choose_file();
        let cursor = &mut self.files[usize::from(file)];
        let (offset_bytes, len_bytes) = cursor.next(op, len_bytes, self.plan.min_bytes);
        debug_assert!(len_bytes > 0, "[io-in-its-region]: an I/O without bytes");
        self.progress.pass_ios += 1;
        self.progress.pass_bytes += u64::from(len_bytes);
        self.progress.bytes += u64::from(len_bytes);
        self.turn.file_bytes += u64::from(len_bytes);
        let io = Io { op: op.into(), file, offset_bytes, len_bytes };
        if self.plan.mix == Mix::TrimWrite {
            self.write_after = Some(Io { op: IoOp::Write, ..io });
        } else if op == Op::Write {
            self.syncs.wrote(file);
        }
        io
    }

    #[inline]
    fn choose_file(&mut self) -> u16 {
        // FILES_MAX is 4096.
        let count = u16::try_from(self.files.len()).unwrap_or(u16::MAX);
        let turn = &mut self.turn;
        if count == 1 {
            return 0;
        }
        match self.plan.file_service {
            FileService::Sequential => {
                let len = self.files[usize::from(turn.file)].len_bytes();
                if turn.file_bytes + u64::from(self.plan.min_bytes) > len && turn.file_bytes > 0 {
                    *turn = Turn { file: (turn.file + 1) % count, ios_left: 0, file_bytes: 0 };
                }
                return turn.file;
            }
            _ if turn.ios_left > 0 => {}
            FileService::RoundRobin(ios) => {
                let first = self.progress.pass_ios == 0;
                turn.file = if first { 0 } else { (turn.file + 1) % count };
                turn.ios_left = ios;
            }
            FileService::Random(ios) => {
                turn.file = u16::try_from(self.draws.below(count.into())).unwrap_or(0);
                turn.ios_left = ios;
            }
        }
        debug_assert!(turn.file < count && turn.ios_left > 0, "{turn:?} with {count} files");
        turn.ios_left -= 1;
        turn.file
    }
}

/// Returns the streams for offsets and for all other draws ([repeatable-draws]).
fn streams(job: &Job, instance: u32, seed: u64) -> (Prng, Prng) {
    let own = Prng::new(job.randseed.unwrap_or(DEFAULT_SEED));
    let repeat = job.allrandrepeat || job.randseed.is_some();
    let stream = |repeat: bool, number: u64| {
        let base = if repeat { own.clone() } else { own.fork(seed) };
        base.fork(u64::from(job.first_instance) + u64::from(instance)).fork(number)
    };
    (stream(repeat || job.randrepeat, 0), stream(repeat, 1))
}

impl Syncs {
    fn new(job: &Job) -> Self {
        Self {
            fsync: job.fsync,
            fdatasync: job.fdatasync,
            at_end: job.end_fsync,
            writes: 0,
            dirty: false,
            file: 0,
            due: None,
        }
    }

    /// Counts a write. If both kinds of sync are due, the full sync is issued.
    #[inline]
    fn wrote(&mut self, file: u16) {
        self.writes += 1;
        (self.dirty, self.file) = (true, file);
        let due = |every: u32| every > 0 && self.writes.is_multiple_of(every.into());
        if due(self.fsync) {
            self.due = Some(IoOp::Sync { datasync: false });
        } else if due(self.fdatasync) {
            self.due = Some(IoOp::Sync { datasync: true });
        }
    }

    /// Returns the sync that is due, once.
    fn take_due(&mut self) -> Option<Io> {
        self.due.take().map(|op| self.io(op))
    }

    fn io(&mut self, op: IoOp) -> Io {
        self.dirty &= op == IoOp::Sync { datasync: true };
        Io { op, file: self.file, offset_bytes: 0, len_bytes: 0 }
    }

    /// Returns the sync at the end of the job, once.
    fn last(&mut self) -> Option<Io> {
        (self.at_end && self.dirty).then(|| self.io(IoOp::Sync { datasync: false }))
    }
}
