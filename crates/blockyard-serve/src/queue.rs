//! A disk as one lane sees it: the core's request queue, the device below it, and the bios that wait for a tag.
//!
//! # Rules (cited by name)
//!
//! - **[range-in-slices]** In one turn, a lane discards and zeroes at most one slice of a disk whose work its own thread does,
//!   or that much of shorter ranges. The slices of several requests take turns.

use crate::disk::{Change, Disk, Medium, Outbox, SLICE_SECTORS};
use crate::job::Jobs;
use crate::meter::{Counts, Meter};
use crate::traffic::Traffic;
use blockyard::bio::Bio;
use blockyard::driver::Device;
use blockyard::host::Host;
use blockyard::request::Ended;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, HctxId, QueueId};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The only CPU of a lane.
const CPU: CpuId = CpuId(0);
/// The only hardware queue of a lane's disk.
const HCTX: HctxId = HctxId(0);

/// A disk as one lane sees it. See the [module](self).
#[derive(Debug)]
pub(crate) struct DiskQueue {
    pub(crate) disk: Arc<Disk>,
    pub(crate) outbox: Rc<Outbox>,
    /// The requests of clients that have ended.
    pub(crate) traffic: Traffic,
    queue: RequestQueue,
    host: Host<Medium, Meter>,
    /// Bios that wait for a tag, the oldest first.
    waiting: VecDeque<Bio>,
    /// Discards and zeroings for the next turns, each of at most a slice ([range-in-slices]).
    slices: VecDeque<Bio>,
    refused: VecDeque<Ended>,
    is_plugged: bool,
    /// Whether the kernel is reading a range of the disk into the page cache.
    pub(crate) is_prefetching: bool,
}

impl DiskQueue {
    pub(crate) fn new(disk: &Arc<Disk>, lane: u32, jobs: &Jobs, meter: Meter) -> Self {
        let outbox = Rc::new(Outbox::default());
        let tags = TagSetConfig {
            hctxs: 1,
            depth: disk.depth,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: 1,
        };
        let host = Host::new(disk.medium(lane, jobs, &outbox, &tags), meter, tags);
        let mut config = QueueConfig::new(1, 1, disk.limits(), disk.policies);
        if disk.layers.is_empty() {
            // The kernel never times out an I/O of a file, so the queue does not either.
            config.timeout = Duration::MAX;
        }
        Self {
            disk: Arc::clone(disk),
            outbox,
            traffic: Traffic::default(),
            queue: RequestQueue::new(QueueId(0), config, &host),
            host,
            waiting: VecDeque::new(),
            slices: VecDeque::new(),
            refused: VecDeque::new(),
            is_plugged: false,
            is_prefetching: false,
        }
    }

    /// Submits `bio` now, in a later turn ([range-in-slices]), or as soon as a tag is free. [`Self::next_ended`] returns the
    /// bio when it ends.
    #[inline]
    pub(crate) fn submit(&mut self, bio: Bio, now: Instant) {
        if self.disk.takes_slices(bio.op) {
            self.slices.push_back(bio);
        } else {
            self.submit_now(bio, now);
        }
    }

    /// Submits the slices of this turn ([range-in-slices]).
    pub(crate) fn submit_slices(&mut self, now: Instant) {
        let mut left = SLICE_SECTORS;
        while let Some(&bio) = self.slices.front().filter(|bio| bio.sectors <= left) {
            self.slices.pop_front();
            left -= bio.sectors;
            self.submit_now(bio, now);
        }
    }

    #[inline]
    fn submit_now(&mut self, bio: Bio, now: Instant) {
        if !self.is_plugged {
            self.queue.plug(CPU);
            self.is_plugged = true;
        }
        if !self.waiting.is_empty() {
            self.waiting.push_back(bio);
        } else if !self.enters(bio, now) {
            self.advance(now);
            if !self.enters(bio, now) {
                self.waiting.push_back(bio);
            }
        }
    }

    /// Submits `bio`. Returns whether the queue accepted it or rejected it for good; `false` means that no
    /// tag is free.
    #[inline]
    fn enters(&mut self, bio: Bio, now: Instant) -> bool {
        let status = match self.queue.submit(&mut self.host, CPU, bio, now) {
            Ok(()) => return true,
            Err(SubmitError::NoTag | SubmitError::TooManyBios) => return false,
            Err(SubmitError::NotSupported) => Status::NotSupported,
            Err(_) => Status::IoError,
        };
        self.refused.push_back(Ended { bio, status });
        true
    }

    /// Does everything that can be done now: runs the queue, concludes completed requests, and submits the
    /// bios that waited for their tags.
    pub(crate) fn advance(&mut self, now: Instant) {
        if self.is_plugged {
            self.is_plugged = false;
            self.queue.unplug(&mut self.host, CPU, now);
        }
        loop {
            self.run(now);
            let mut has_finished = false;
            while let Some(finished) = self.host.driver.next_finished(now) {
                has_finished = true;
                let concluded = self.queue.conclude(&mut self.host, &finished, now);
                concluded.expect("a request that the device completes is one that it owned");
            }
            if !has_finished {
                return;
            }
            if !self.waiting.is_empty() {
                self.run(now); // bios in the queue precede the waiting ones
            }
            while let Some(&bio) = self.waiting.front() {
                if !self.enters(bio, now) {
                    break;
                }
                self.waiting.pop_front();
            }
        }
    }

    /// Runs the queue after another lane has given back depth, since requests may wait for that.
    pub(crate) fn try_again(&mut self, now: Instant) {
        let _ = self.queue.run(&mut self.host, HCTX, now);
    }

    fn run(&mut self, now: Instant) {
        loop {
            let hctx = match self.queue.next_run(&mut self.host, now) {
                Some(run) => run.hctx,
                None => match self.host.next_starved() {
                    Some((_, hctx)) => hctx,
                    None => return,
                },
            };
            let _ = self.queue.run(&mut self.host, hctx, now);
        }
    }

    /// Returns a bio that has ended. Each bio is returned exactly once.
    #[inline]
    pub(crate) fn next_ended(&mut self) -> Option<Ended> {
        self.queue.next_ended().or_else(|| self.refused.pop_front())
    }

    /// Returns the counters as of `now`, or `None` if the lane keeps none.
    pub(crate) fn counts(&self, now: Instant) -> Option<Counts> {
        self.host.sink.0.as_ref().map(|metered| metered.counts.at(now))
    }

    /// Counts the turns between the arrival of a request and its answer, if the disk is metered.
    #[inline]
    pub(crate) fn count_turns(&mut self, turns: u64) {
        if let Some(metered) = &mut self.host.sink.0 {
            metered.counts.turns_max = metered.counts.turns_max.max(turns);
        }
    }

    /// Changes the layer that `change` is about. Returns whether there is one.
    pub(crate) fn change(&mut self, change: &Change, now: Instant) -> bool {
        self.host.driver.change(change, now)
    }

    pub(crate) fn tell_faults(&self) {
        self.host.driver.tell_faults(&self.disk.faults);
    }

    /// Returns the instant at which to call [`Self::advance`] if no event occurs earlier.
    pub(crate) fn poll_at(&self) -> Option<Instant> {
        let slices = (!self.slices.is_empty()).then_some(Instant::ZERO);
        self.queue.poll_at().into_iter().chain(self.host.driver.poll_at()).chain(slices).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Admission;
    use crate::disk::{Begun, DiskConfig, Layers, Source};
    use crate::job::{Job, Owner, Place, Transfer};
    use crate::map::Pages;
    use crate::meter::Meter;
    use crate::slab::Slab;
    use blockyard::bio::{Flags, Op};
    use blockyard::policy::Policies;
    use std::cell::RefCell;
    use std::io;

    /// Returns a queue over an unlinked file of 64 KiB, which uses the page cache.
    fn queue(jobs: &Jobs) -> DiskQueue {
        let path = std::env::temp_dir().join(format!("blockyard-queue-{}", std::process::id()));
        let file = std::fs::File::create(&path)
            .expect("the folder for temporary files should accept a new file");
        file.set_len(64 << 10).expect("the file should grow to 64 KiB");
        let config = DiskConfig {
            name: String::new(),
            source: Source::File { path: path.clone(), buffered: true },
            read_only: false,
            policies: Policies::NONE,
            depth: 4,
            depth_bytes: 1 << 20,
            layers: Layers::default(),
            admission: Admission::default(),
        };
        let bells =
            [Arc::new(crate::bell::bell().expect("a descriptor should be left for the bell"))];
        let disk = Disk::open(&config, &bells, None).expect("the disk's file should open");
        std::fs::remove_file(path).expect("the disk's file should be removable");
        DiskQueue::new(&Arc::new(disk), 0, jobs, Meter(None))
    }

    /// Submits `bio`, completes its I/O operations with `answers` in turn, and returns its status.
    fn ends(
        queue: &mut DiskQueue,
        jobs: &Jobs,
        bio: Bio,
        answers: &[Result<usize, i32>],
    ) -> Status {
        let pages = Rc::new(Pages::new(4096).expect("memory should suffice for one page"));
        let place = Place::Buffer { pages, lead: 0 };
        let len = u64::from(bio.sectors) * 512;
        let transfer = Transfer { place, ..Transfer::new(bio.sector * 512, len) };
        let number = jobs.borrow_mut().insert(Job { transfer, owner: Owner::Lane });
        queue.submit(Bio { cookie: number.into(), ..bio }, Instant::ZERO);
        let mut answers = answers.iter();
        loop {
            queue.advance(Instant::ZERO);
            if let Some(ended) = queue.next_ended() {
                assert_eq!(answers.next(), None, "the bio ended before it used every answer");
                jobs.borrow_mut().remove(number);
                return ended.status;
            }
            let Begun { number, io, .. } = queue
                .outbox
                .begun
                .borrow_mut()
                .pop_front()
                .expect("a bio that has not ended has I/O in flight");
            let answer = answers.next().unwrap_or_else(|| panic!("unexpected I/O: {:?}", io.op));
            let answer = answer.map_err(io::Error::from_raw_os_error);
            queue.outbox.end(number, answer);
        }
    }

    /// The kernel reports lost writes only once. If a write with FUA received that report, every later flush
    /// must fail; if the write itself failed, later flushes may succeed.
    ///
    /// Checks [failed-flush-stays-failed].
    #[test]
    fn a_lost_write_fails_every_later_flush() {
        let write = Bio::new(Op::Write, 0, 8, 0).with_flags(Flags::FUA);
        let flush = Bio::new(Op::Flush, 0, 0, 0);
        for error in [libc::EIO, libc::ENOSPC] {
            let jobs = Jobs::new(RefCell::new(Slab::new()));
            let mut queue = queue(&jobs);
            assert_ne!(ends(&mut queue, &jobs, write, &[Err(error), Err(error)]), Status::Ok);
            assert_eq!(
                ends(&mut queue, &jobs, flush, &[Ok(0)]),
                Status::Ok,
                "only this write was lost"
            );
            assert_ne!(ends(&mut queue, &jobs, write, &[Err(error), Ok(4096)]), Status::Ok);
            assert_eq!(
                ends(&mut queue, &jobs, flush, &[]),
                Status::IoError,
                "earlier writes were lost"
            );
        }
    }
}
