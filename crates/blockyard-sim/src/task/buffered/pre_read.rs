//! The reads that fill the cache before a job begins (`pre_read`).
//!
//! As in fio, a job reads its region of each file, in order, by calls of its longest block for
//! reads. None of them is measured, and the time of the job begins afterwards.

use super::{Buffered, Call, Stream, Tried};
use crate::page_cache::{PageCache, ReadAhead};
use blockyard::bio::IoPrio;
use blockyard::status::Status;
use blockyard::unit::QueueId;
use blockyard_fio::job::{Job, Op, Resolved};
use std::collections::VecDeque;

/// What is left to read before a job begins.
#[derive(Clone, Debug)]
pub(super) struct PreRead {
    /// The first byte and the end of each region, by the number of its file.
    regions: VecDeque<(usize, u64, u64)>,
    block_bytes: u64,
}

impl Buffered {
    /// Reads the regions of `resolved` before `job` begins, if it wants that.
    pub(in super::super) fn read_before(mut self, job: &Job, resolved: &Resolved) -> Self {
        let files = resolved.files.iter().enumerate();
        let regions = files.map(|(at, file)| (at, file.start_bytes, file.end_bytes()));
        let block_bytes = u64::from(job.block.of(Op::Read).max_bytes()).max(1);
        self.pre_read = job.pre_read.then(|| PreRead { regions: regions.collect(), block_bytes });
        self
    }

    /// Whether the job has not begun, because its files are still being read.
    pub(in super::super) const fn is_pre_reading(&self) -> bool {
        self.pre_read.is_some()
    }

    /// Opens the files, and begins the next read. Returns whether there was one.
    pub(crate) fn begin_pre_read(&mut self, cache: &mut PageCache) -> bool {
        self.open(cache);
        let Some(PreRead { regions, block_bytes }) = &mut self.pre_read else { return false };
        let Some((stream, begin, end)) = regions.pop_front() else {
            self.pre_read = None;
            return false;
        };
        let next = end.min(begin + *block_bytes);
        if next < end {
            regions.push_front((stream, next, end));
        }
        debug_assert!(self.call.is_none(), "a read begins between two calls");
        self.call = Some(Call {
            slot: 0,
            writes: false,
            durable: None,
            sync: None,
            stream,
            begin_bytes: begin,
            at_bytes: begin,
            end_bytes: next,
            prio: IoPrio::default(),
            tried: Tried::Nothing,
            failed: None,
        });
        true
    }

    /// Closes the files. Nobody else has one of the disks of `closed` open.
    pub(crate) fn close_after_pre_read(&mut self, closed: &[QueueId], cache: &mut PageCache) {
        debug_assert!(self.pre_read.is_none(), "files are closed when they have been read");
        self.streams.iter_mut().for_each(|stream| stream.ahead = ReadAhead::new(self.advice));
        self.drop_closed(closed, cache);
    }

    /// Drops the pages of the devices among `closed`, which nobody has open any more, as Linux does
    /// (`kill_bdev`). Those of a file stay.
    pub(crate) fn drop_closed(&self, closed: &[QueueId], cache: &mut PageCache) {
        if !self.names_devices || cache.has_file_system() {
            return;
        }
        for Stream { file, .. } in &self.streams {
            if closed.contains(&cache.placement(*file).queue) {
                cache.drop_pages(*file);
            }
        }
    }

    /// Notes the result of a read. After an error, as in fio, nothing more is read.
    pub(in super::super) fn end_pre_read(&mut self, status: Status) {
        if let Some(pre_read) = self.pre_read.as_mut().filter(|_| status != Status::Ok) {
            pre_read.regions.clear();
        }
    }
}
