//! A checker of the bios of a journal on a disk with a volatile cache.
//!
//! # Rules
//!
//! - **[journal-in-one-piece]** Each write of the journal begins where the one before it ends, or
//!   at the journal's beginning if there is no room behind it: recovery reads them in this order.
//! - **[record-after-body]** The record that ends a commit reaches the device when all other blocks
//!   of the commit are there, and a flush has followed them. A record without its blocks would make
//!   recovery write anything over the file system.
//! - **[promised-is-committed]** At the end of a sync, each change that its data needs is in a
//!   commit whose record is durable.

use core::ops::Range;

/// A block of a commit, and the step at which it was on the device.
#[derive(Clone, Debug)]
struct Block {
    sectors: Range<u64>,
    ended: Option<u64>,
}

/// The record that ends a commit.
#[derive(Clone, Debug)]
struct Record {
    sectors: Range<u64>,
    /// The step at which the commit began.
    begun: u64,
    /// The step at which the record was on the device.
    ended: Option<u64>,
}

/// The journal of a disk. Steps are counted from 1.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// Its place on the disk.
    sectors: Range<u64>,
    has_fua: bool,
    /// The step of the first bio of the commit under way.
    begun: Option<u64>,
    blocks: Vec<Block>,
    record: Option<Record>,
    /// Where the next write begins.
    next: Option<u64>,
    /// When the last flush that has ended was sent.
    flushed: u64,
    /// The step at which the last durable commit began.
    committed_from: u64,
    pub(crate) commits: u64,
}

impl Journal {
    pub(crate) fn new(sectors: Range<u64>, has_fua: bool) -> Self {
        Self {
            sectors,
            has_fua,
            begun: None,
            blocks: Vec::new(),
            record: None,
            next: None,
            flushed: 0,
            committed_from: 0,
            commits: 0,
        }
    }

    /// Whether blocks of a commit were queued, and its record was not.
    pub(crate) const fn has_blocks_in_flight(&self) -> bool {
        !self.blocks.is_empty() && self.record.is_none()
    }

    /// Notes that a bio entered the queue. `is_record`: it ends a commit.
    pub(crate) fn queued(
        &mut self,
        sectors: Range<u64>,
        is_record: bool,
        step: u64,
    ) -> Result<(), String> {
        let begun = *self.begun.get_or_insert(step);
        let is_next = self.next.is_none_or(|next| {
            let has_room = next + (sectors.end - sectors.start) <= self.sectors.end;
            // The superblock is the first block, of 8 sectors; XFS has records of single sectors.
            let is_begin = sectors.start <= self.sectors.start + 8;
            if has_room { sectors.start == next } else { is_begin }
        });
        if !is_next {
            return Err(format!("[journal-in-one-piece] {sectors:?} after {:?}", self.next));
        }
        self.next = Some(sectors.end);
        if is_record {
            self.record = Some(Record { sectors, begun, ended: None });
        } else {
            self.blocks.push(Block { sectors, ended: None });
        }
        Ok(())
    }

    /// Notes that the device has got a request.
    pub(crate) fn issued(&self, sectors: &Range<u64>) -> Result<(), String> {
        let is_record = |of: &Record| of.sectors.start == sectors.start;
        if !self.record.as_ref().is_some_and(is_record) {
            return Ok(());
        }
        let missing = self.blocks.iter().find(|of| !self.is_flushed(of));
        let flushed = self.flushed;
        missing.map_or(Ok(()), |of| {
            Err(format!("[record-after-body] {sectors:?}, flushed at {flushed}: {of:?}"))
        })
    }

    /// Whether a flush has followed a block of the commit.
    fn is_flushed(&self, of: &Block) -> bool {
        of.ended.is_some_and(|ended| self.flushed > ended)
    }

    /// Notes that a request has ended.
    pub(crate) fn ended(&mut self, sectors: &Range<u64>, step: u64) {
        for block in self.blocks.iter_mut().filter(|of| sectors.contains(&of.sectors.start)) {
            block.ended = Some(step);
        }
        if let Some(record) = &mut self.record
            && record.sectors.start == sectors.start
        {
            record.ended = Some(step);
            if self.has_fua {
                self.commit();
            }
        }
    }

    /// Notes that a flush has ended, which was sent at step `sent`.
    pub(crate) fn flushed(&mut self, sent: u64) {
        self.flushed = sent;
        let is_durable = |of: &Record| of.ended.is_some_and(|ended| ended < sent);
        if self.record.as_ref().is_some_and(is_durable) {
            self.commit();
        }
    }

    /// Ends a commit: its record is durable.
    fn commit(&mut self) {
        let record = self.record.take().expect("a commit that ends has a record");
        self.committed_from = record.begun;
        self.begun = None;
        self.blocks.clear();
        self.commits += 1;
    }

    /// Whether a durable commit began after `step`.
    pub(crate) const fn is_committed_since(&self, step: u64) -> bool {
        self.committed_from > step
    }
}
