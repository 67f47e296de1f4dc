//! One lane's device to a BTT.
//!
//! # Rules
//!
//! - **[no-answer-from-a-cut-file]** A device looks at the length of a file after it has carried
//!   requests out and before it answers them. The kernel tells nothing of a cut within a page of a
//!   mapping: the rest of the page reads as zeroes, and what is written there is lost. A file that
//!   was made long again has lost the end of its last arena, where nothing writes. If the file was
//!   cut short, the requests fail. One look serves all requests of a turn.

use super::Table;
use super::gathered::{Gathered, Way, to_usize};
use super::reads::Reads;
use crate::disk::damage::Damage;
use crate::observation::event::Harm;
use blockyard::bio::Op;
use blockyard::driver::{Accept, DataEffect, Device, Driver, Finished, Issue, Outcome};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard_btt::{IoError, MediaError, Worker};
use blockyard_std::parts::device::completions::{Completions, completion};
use blockyard_std::parts::job::{Jobs, Transfer, job_of};
use std::sync::Arc;

/// A lane's device to a [`Table`]. It answers a write only after it has carried the write out, so a
/// read finds every write that was answered.
#[derive(Debug)]
pub(crate) struct BttDevice {
    way: Way,
    table: Arc<Table>,
    jobs: Jobs,
    reads: Reads,
    gathered: Gathered,
    /// Requests that are gathered, by their numbers in `reads` and `gathered`.
    waiting: Vec<(Finished, Result<(), IoError>)>,
    finished: Completions,
    /// Requests were carried out since the last look at the file ([no-answer-from-a-cut-file]).
    is_unsure: bool,
}

impl BttDevice {
    pub(in crate::disk) fn new(table: Arc<Table>, jobs: Jobs) -> Self {
        let way = Worker::new(Arc::clone(&table.btt));
        let sector = way.btt().sector_bytes() as usize;
        Self {
            way,
            jobs,
            reads: Reads::new(sector, to_usize(table.data_bytes)),
            gathered: Gathered::new(sector),
            waiting: Vec::new(),
            finished: Completions::default(),
            is_unsure: false,
            table,
        }
    }

    /// Gathers the reads or the changes of request number `of`.
    fn gather(&mut self, of: usize, issue: &Issue<'_>) {
        let op = issue.request().op;
        if op == Op::Flush {
            return self.gathered.flush(of);
        }
        let (sector, data) = self.sizes();
        let jobs = self.jobs.borrow();
        for piece in issue.pieces() {
            let transfer: &Transfer = &jobs[job_of(piece.cookie)].transfer;
            let bytes = transfer.bytes_of(&piece);
            if !matches!(op, Op::Read | Op::Write) {
                // A BTT has no holes and no faster way to zero, so `no_hole` and `fast` make no
                // difference.
                self.gathered.zero_bytes(of, &bytes, data as u64, op == Op::WriteZeroes);
                continue;
            }
            let start = to_usize(bytes.start - transfer.offset);
            let end = to_usize(bytes.end - transfer.offset);
            let mut lba = bytes.start / data as u64;
            for (pages, piece) in transfer.place.pieces(start..end) {
                assert!(piece.len().is_multiple_of(data), "a piece consists of whole sectors");
                let count = (piece.len() / data) as u64;
                if op == Op::Read {
                    self.reads.read(of, lba, count, pages, piece.start);
                } else {
                    self.gathered.write(of, lba, count, |to| {
                        for first in piece.step_by(data) {
                            let end = to.len() + sector;
                            pages.read(first..first + data, to);
                            to.resize(end, 0);
                        }
                    });
                }
                lba += count;
            }
            assert_eq!(lba, bytes.end / data as u64, "mappings with all data of a BTT's request");
        }
    }

    fn carry_out(&mut self) {
        let Self { reads, gathered, way, waiting, finished, table, .. } = self;
        let mut tell = |of: usize, done| {
            let (_, before) = &mut waiting[of];
            if before.is_ok() {
                *before = done;
            }
        };
        // Requests of one turn are concurrent, so the reads may come first.
        reads.carry_out(way, &mut tell);
        gathered.carry_out(way, &table.sharing, tell);
        for (request, done) in waiting.drain(..) {
            let outcome = Outcome::Done(status_of(done, &table.damage));
            finished.push(Finished { outcome, ..request });
        }
        self.is_unsure = true;
    }

    /// Fails the requests that are finished if the file was cut short
    /// ([no-answer-from-a-cut-file]).
    fn look_for_cut(&mut self) {
        let btt = self.way.btt();
        let is_whole = btt.memory().look_for_cut().is_ok();
        // A page at the end that cannot be read any more is no cut.
        let is_end_lost = self.table.end.is_some_and(|end| btt.end().is_ok_and(|now| now != end));
        if !is_whole || is_end_lost {
            let damage = &self.table.damage;
            self.finished.fail(|| status_of(Err(MediaError::Failed.into()), damage));
        }
    }

    /// Returns the size of a sector and of the data in it, in bytes.
    fn sizes(&self) -> (usize, usize) {
        (self.way.btt().sector_bytes() as usize, to_usize(self.table.data_bytes))
    }
}

impl Driver for BttDevice {
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
        if issue.effect() == DataEffect::Nowhere {
            self.finished.push(completion(issue, Status::Ok));
        } else {
            self.gather(self.waiting.len(), issue);
            self.waiting.push((completion(issue, Status::Ok), Ok(())));
            if self.gathered.is_full() || self.reads.is_full() {
                self.carry_out();
            }
        }
        Accept::Queued
    }
}

impl Device for BttDevice {
    /// The lane calls this after it has issued all requests of a turn, so these are carried out
    /// together.
    fn next_finished(&mut self, _now: Instant) -> Option<Finished> {
        if self.finished.poll_at().is_none() && !self.waiting.is_empty() {
            self.carry_out();
        }
        if core::mem::take(&mut self.is_unsure) {
            self.look_for_cut();
        }
        self.finished.pop()
    }

    fn poll_at(&self) -> Option<Instant> {
        let gathered = (!self.waiting.is_empty()).then_some(Instant::ZERO);
        self.finished.poll_at().or(gathered)
    }
}

fn status_of(done: Result<(), IoError>, damage: &Damage) -> Status {
    match done {
        Ok(()) => Status::Ok,
        Err(IoError::Lost | IoError::Media(MediaError::Bad)) => Status::Medium,
        Err(IoError::Media(MediaError::NoSpace)) => Status::NoSpace,
        Err(IoError::Media(MediaError::Failed) | IoError::Broken) => {
            damage.note_failure(Harm::Failed);
            Status::IoError
        }
        Err(_) => Status::IoError,
    }
}
