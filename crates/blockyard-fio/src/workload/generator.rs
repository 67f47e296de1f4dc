//! The sequence of I/Os of one job instance.

use crate::job::{Job, Mix, Op, PerOp, Resolved};

use super::cursor::FileCursor;
use super::length::Lengths;
use super::prng::Prng;
use super::progress::Progress;
use super::turns::{Turn, Turns};
use super::zone::Zone;

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
/// Only [`Generator::new`] allocates. An I/O costs about ten nanoseconds with a uniform or
/// sequential offset, and about a hundred with a zipf, pareto or normal one.
#[derive(Clone, Debug)]
pub struct Generator {
    mix: Mix,
    read_percent: u64,
    files: Vec<FileCursor>,
    /// All draws but those of offsets.
    draws: Prng,
    /// The state of `draws` at the start of each pass, if passes repeat their draws.
    draws_of_pass: Option<Prng>,
    lengths: PerOp<Lengths>,
    turns: Turns,
    zone: Option<Zone>,
    progress: Progress,
    /// I/Os for each random offset, and how many have yet to use the last one.
    ios_per_offset: u32,
    ios_at_offset: u32,
    /// The write that follows a trim.
    write_after: Option<Io>,
    syncs: Syncs,
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
    /// [`Job::resolve`]. `seed` is the seed of the run.
    pub fn new(job: &Job, instance: u32, resolved: &Resolved, seed: u64) -> Self {
        let (offsets, mut draws) = streams(job, instance, seed);
        assert!(!resolved.files.is_empty(), "a resolved job must have a file");
        let cursors = (0..resolved.files.len()).zip(0..);
        let turns = Turns::new(job, resolved.files.len(), &mut draws);
        Self {
            mix: job.pattern.mix,
            read_percent: job.rwmix_read_percent.into(),
            files: cursors
                .map(|(file, stream)| FileCursor::new(job, resolved, file, offsets.fork(stream)))
                .collect(),
            draws_of_pass: job.randrepeat.then(|| draws.clone()),
            draws,
            lengths: PerOp::from_fn(|op| Lengths::new(job.block.of(op), job.block_unaligned)),
            turns,
            zone: Zone::of(job),
            progress: Progress::new(job, resolved),
            ios_per_offset: job.pattern.ios_per_offset,
            ios_at_offset: 0,
            write_after: None,
            syncs: Syncs::new(job),
        }
    }

    /// Returns the next I/O; `None` after the last. An instance that ends only by time has no last
    /// I/O. With a `direction`, an I/O has that one, whatever the job draws.
    #[inline]
    pub fn next(&mut self, direction: Option<Op>) -> Option<Io> {
        if let Some(write) = self.write_after.take() {
            self.syncs.issued(Op::Write, write.file);
            return Some(write);
        }
        loop {
            // As in fio, a sync waits for the next I/O to begin, so none follows the last one.
            if !self.progress.pass_is_over()
                && let Some(io) = self.issue(direction)
            {
                return Some(io);
            }
            if let Some(sync) = self.syncs.last() {
                return Some(sync);
            }
            if !self.start_pass() {
                return None;
            }
        }
    }

    fn start_pass(&mut self) -> bool {
        let goes_on = self.progress.start_pass(self.turns.are_over());
        if goes_on {
            self.turns.start_pass();
            if let Some(zone) = &mut self.zone {
                zone.start_pass();
            }
            self.files.iter_mut().for_each(FileCursor::start_pass);
            if let Some(draws) = &self.draws_of_pass {
                self.draws = draws.clone();
            }
        }
        goes_on
    }

    /// Returns the next I/O of this pass; `None` if no file has one. A file that has none leaves
    /// the round.
    #[inline]
    fn issue(&mut self, direction: Option<Op>) -> Option<Io> {
        loop {
            let Turn { file, opens } = self.turns.choose(&mut self.draws)?;
            if opens {
                self.files[file].open();
            }
            // FILES_MAX is 4096.
            let number = u16::try_from(file).unwrap_or(u16::MAX);
            if let Some(sync) = self.syncs.take_due(number) {
                return Some(sync);
            }
            let drawn = self.choose_op();
            let op = direction.unwrap_or(drawn);
            // A trim has the length of the write that follows.
            let sizes = if self.mix == Mix::TrimWrite { Op::Write } else { op };
            let moves = self.moves_on();
            let lengths = self.lengths.of(sizes);
            let zone = self.zone.as_mut();
            let place = self.files[file].next(op, moves, lengths, &mut self.draws, zone);
            if let Some((offset_bytes, len_bytes)) = place {
                return Some(self.issued(Io {
                    op: op.into(),
                    file: number,
                    offset_bytes,
                    len_bytes,
                }));
            }
            self.turns.finish(file);
        }
    }

    fn choose_op(&mut self) -> Op {
        match self.mix {
            Mix::Read => Op::Read,
            Mix::Write => Op::Write,
            Mix::Trim | Mix::TrimWrite => Op::Trim,
            Mix::ReadWrite if self.draws.below(100) < self.read_percent => Op::Read,
            Mix::ReadWrite => Op::Write,
        }
    }

    /// Whether the next I/O has an offset of its own. As in fio, all files and directions of a job
    /// count together.
    fn moves_on(&mut self) -> bool {
        debug_assert!(self.ios_per_offset > 0, "a random offset must be used at least once");
        let moves = self.ios_at_offset == 0;
        self.ios_at_offset = if moves { self.ios_per_offset } else { self.ios_at_offset } - 1;
        moves
    }

    fn issued(&mut self, io: Io) -> Io {
        debug_assert!(io.len_bytes > 0, "[io-in-its-file]: an I/O without bytes");
        self.progress.count(io.len_bytes);
        if let Some(zone) = &mut self.zone {
            zone.count(io.len_bytes);
        }
        if self.mix == Mix::TrimWrite {
            self.write_after = Some(Io { op: IoOp::Write, ..io });
        } else if let IoOp::Read | IoOp::Write = io.op {
            let op = if io.op == IoOp::Write { Op::Write } else { Op::Read };
            self.syncs.issued(op, io.file);
        }
        io
    }
}

/// Returns the streams for offsets and for all other draws. With seeds 1 and 2 of the
/// run, the offsets of a job with `randrepeat` are the same, and its other draws differ.
fn streams(job: &Job, instance: u32, seed: u64) -> (Prng, Prng) {
    let own = Prng::new(job.randseed.unwrap_or(DEFAULT_SEED));
    let repeat = job.allrandrepeat || job.randseed.is_some();
    let streams = [(repeat || job.randrepeat, 0), (repeat, 1)].map(|(repeat, number)| {
        let base = if repeat { own.clone() } else { own.fork(seed) };
        base.fork(u64::from(job.first_instance) + u64::from(instance)).fork(number)
    });
    streams.into()
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

    /// Counts an I/O. If both kinds of sync are due, the full sync is issued.
    ///
    /// As in fio, a sync is due behind each I/O, also a read, while the number of writes is a
    /// multiple: in `rw=rw fsync=8` behind the eighth write and behind each read before the ninth.
    /// fio 3.33: `rw=randrw bs=4k size=1m fsync=1` calls fsync 252 times for 124 writes and 132
    /// reads, of which three come before the first write.
    #[inline]
    fn issued(&mut self, op: Op, file: u16) {
        if op == Op::Write {
            self.writes += 1;
            self.dirty = true;
            self.file = file;
        }
        if self.writes == 0 {
            return;
        }
        let [fsync, fdatasync] = [self.fsync, self.fdatasync]
            .map(|every| every > 0 && self.writes.is_multiple_of(every.into()));
        if fsync {
            self.due = Some(IoOp::Sync { datasync: false });
        } else if fdatasync {
            self.due = Some(IoOp::Sync { datasync: true });
        }
    }

    /// Returns the sync that is due, once. As in fio, it goes to the file whose turn it is, and
    /// takes that turn.
    fn take_due(&mut self, file: u16) -> Option<Io> {
        let op = self.due.take()?;
        Some(self.io(op, file))
    }

    fn io(&mut self, op: IoOp, file: u16) -> Io {
        self.dirty &= op == IoOp::Sync { datasync: true };
        Io { op, file, offset_bytes: 0, len_bytes: 0 }
    }

    /// Returns the sync at the end of a pass, once.
    fn last(&mut self) -> Option<Io> {
        let file = self.file;
        (self.at_end && self.dirty).then(|| self.io(IoOp::Sync { datasync: false }, file))
    }
}
