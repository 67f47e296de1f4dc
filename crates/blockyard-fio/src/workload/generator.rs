//! The sequence of I/Os of one job instance.

use crate::job::{Job, Mix, Op, PerOp, Resolved};

use super::cursor::FileCursor;
use super::length::Lengths;
use super::prng::Prng;
use super::progress::Progress;
use super::turns::{Turn, Turns};
use super::zone::Zone;
use core::ops::Range;

/// The operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim.
    Trim,
    /// Sync, without an offset or length.
    Sync(SyncCall),
}

/// The call of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncCall {
    /// `fsync`: makes all of a file durable.
    All,
    /// `fdatasync`: makes the data of a file durable.
    Data,
    /// `sync_file_range`: writes back what the page cache has of a part of a file, without a flush.
    /// Which steps it takes is [`Job::sync_file_range`].
    Range {
        /// Where the part begins in the file, bytes.
        offset_bytes: u64,
        /// Its length, bytes; 0 if nothing was written since the last sync of the file, for which
        /// fio makes no call.
        len_bytes: u64,
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

/// The part of a file of which nothing was written.
const NOTHING: Range<u64> = Range { start: u64::MAX, end: 0 };

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

/// The syncs of a job instance.
#[derive(Clone, Debug)]
struct Syncs {
    fsync: u32,
    fdatasync: u32,
    range: u32,
    at_end: bool,
    at_closing: bool,
    writes: u64,
    /// Whether the last I/O is no sync, in a job that writes.
    can_sync: bool,
    /// The kind of the next I/O, if it is a sync.
    due: Option<SyncKind>,
    /// The files that the end of a pass has yet to sync.
    at_end_left: Range<u16>,
    /// The part of each file that was written since its last sync, if syncs of parts follow.
    written: Vec<Range<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncKind {
    All,
    Data,
    Range,
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
            syncs: Syncs::new(job, resolved.files.len()),
        }
    }

    /// Returns the next I/O; `None` after the last. An instance that ends only by time has no last
    /// I/O. With a `direction`, an I/O has that one, whatever the job draws.
    #[inline]
    pub fn next(&mut self, direction: Option<Op>) -> Option<Io> {
        if let Some(write) = self.write_after.take() {
            self.syncs.issued(Op::Write, &write);
            return Some(write);
        }
        loop {
            // As in fio, a sync waits for the next I/O to begin, so none follows the last one.
            if !self.progress.pass_is_over()
                && let Some(io) = self.issue(direction)
            {
                return Some(io);
            }
            if let Some(sync) = self.syncs.last(self.files.len()) {
                return Some(sync);
            }
            if !self.start_pass() {
                return None;
            }
        }
    }

    /// Returns the number of passes that ended before the last I/O of [`Self::next`].
    #[must_use]
    pub const fn passes_done(&self) -> u64 {
        self.progress.passes_done()
    }

    /// Returns how often the I/Os of file number `file` began anew within a pass, up to the last
    /// one of [`Self::next`]: those of a job that ends by time go back to the start of its only
    /// file, or have visited all blocks of a file. A number beyond the last file has none.
    #[must_use]
    pub fn begun_anew(&self, file: u16) -> u64 {
        self.files.get(usize::from(file)).map_or(0, FileCursor::begun_anew)
    }

    /// Counts the I/Os of `number_ios` anew, with `ios` done. As in fio, those of a ramp time do
    /// not count, except the ones that are in flight at its end.
    pub const fn count_anew(&mut self, ios: u64) {
        self.progress.count_anew(ios);
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
            // The write behind a trim has its length.
            let moves = self.moves_on();
            let lengths = self.lengths.of(op);
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
            if let Some(sync) = self.syncs.closing(number) {
                return Some(sync);
            }
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
            self.syncs.issued(op, &io);
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
    fn new(job: &Job, files: usize) -> Self {
        let range = job.sync_file_range.every;
        let writes = job.pattern.mix.ops().contains(&Op::Write);
        Self {
            fsync: job.fsync,
            fdatasync: job.fdatasync,
            range,
            // fio's syncs at the end and at the closing that follows are one.
            at_end: job.syncs_at_end() && writes,
            at_closing: job.fsync_on_close && writes,
            writes: 0,
            can_sync: false,
            due: None,
            at_end_left: 0..0,
            written: vec![NOTHING; if range > 0 { files } else { 0 }],
        }
    }

    /// Counts an I/O. If several kinds of sync are due, the one that does most is issued.
    ///
    /// As in fio, a sync is due behind each I/O, also a read, while the number of writes is a
    /// multiple: in `rw=rw fsync=8` behind the eighth write and behind each read before the ninth.
    /// fio 3.33: `rw=randrw bs=4k size=1m fsync=1` calls fsync 252 times for 124 writes and 132
    /// reads, of which three come before the first write.
    #[inline]
    fn issued(&mut self, op: Op, io: &Io) {
        self.can_sync = true;
        if op == Op::Write {
            self.writes += 1;
            self.note_written(io);
        }
        if self.writes == 0 {
            return;
        }
        self.due = if self.is_due(self.fsync) {
            Some(SyncKind::All)
        } else if self.is_due(self.fdatasync) {
            Some(SyncKind::Data)
        } else if self.is_due(self.range) {
            Some(SyncKind::Range)
        } else {
            None
        };
    }

    /// Whether a sync behind each so many writes is due.
    const fn is_due(&self, every: u32) -> bool {
        every > 0 && self.writes.is_multiple_of(every as u64)
    }

    /// Extends the part of a file that was written, if syncs of parts follow: writes of 0 to 4096
    /// and 8192 to 12,288 are a part of 0 to 12,288.
    fn note_written(&mut self, io: &Io) {
        let Some(written) = self.written.get_mut(usize::from(io.file)) else { return };
        written.start = written.start.min(io.offset_bytes);
        written.end = written.end.max(io.offset_bytes + u64::from(io.len_bytes));
    }

    /// Returns the sync that is due, once. As in fio, it goes to the file whose turn it is, and
    /// takes that turn.
    fn take_due(&mut self, file: u16) -> Option<Io> {
        let kind = self.due.take()?;
        Some(self.io(kind, file))
    }

    fn io(&mut self, kind: SyncKind, file: u16) -> Io {
        self.can_sync = false;
        let written = self.written.get_mut(usize::from(file));
        let written = written.map_or(NOTHING, |written| core::mem::replace(written, NOTHING));
        let call = match kind {
            SyncKind::All => SyncCall::All,
            SyncKind::Data => SyncCall::Data,
            SyncKind::Range if written.is_empty() => {
                SyncCall::Range { offset_bytes: 0, len_bytes: 0 }
            }
            SyncKind::Range => SyncCall::Range {
                offset_bytes: written.start,
                len_bytes: written.end - written.start,
            },
        };
        Io { op: IoOp::Sync(call), file, offset_bytes: 0, len_bytes: 0 }
    }

    /// Returns the sync of a file that is closed before the end of a pass, because it has no other
    /// I/O. fio counts no I/O for it, and opens the file for the sync at the end: 15 writes of 64k
    /// with `size=1000k` are followed by two syncs.
    fn closing(&self, file: u16) -> Option<Io> {
        let op = IoOp::Sync(SyncCall::All);
        self.at_closing.then_some(Io { op, file, offset_bytes: 0, len_bytes: 0 })
    }

    /// Returns the next sync at the end of a pass. As in fio, each of the `files` has one, unless
    /// the last I/O was a sync.
    fn last(&mut self, files: usize) -> Option<Io> {
        if self.at_end && self.can_sync {
            self.at_end_left = 0..u16::try_from(files).unwrap_or(u16::MAX);
        }
        let file = self.at_end_left.next()?;
        Some(self.io(SyncKind::All, file))
    }
}
