//! A queue over a stack of layers over a disk that records its writes.

use blockyard::bio::{Bio, Op};
use blockyard::driver::{Accept, DataEffect, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard::request::Request;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use std::collections::BTreeMap;

pub(crate) const SERVICE: Duration = Duration::from_us(100);
pub(crate) const TAGS: TagSetConfig = TagSetConfig {
    hctxs: 1,
    depth: 8,
    reserved: 0,
    shared_over_hctxs: false,
    queues: 1,
    max_waiters: 8,
};

/// A disk that completes every request after [`SERVICE`]. Its data changes immediately.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) commands: Vec<(Instant, Finished)>,
    /// The cookie of the last bio that wrote each sector.
    pub(crate) medium: BTreeMap<u64, u64>,
    /// The requests that the disk has accepted.
    pub(crate) taken: u64,
    /// Whether the disk gives up every request that times out.
    pub(crate) gives_up: bool,
    /// How many of the next requests the disk gives back prepared.
    pub(crate) gives_back: u64,
}

impl Disk {
    fn write(&mut self, issue: &Issue<'_>) {
        let request = issue.request();
        let (at, sectors) = match issue.effect() {
            DataEffect::Whole => (request.sector, request.sectors),
            DataEffect::First(sectors) => (request.sector, sectors.min(request.sectors)),
            DataEffect::Nowhere => (request.sector, 0),
            DataEffect::At(sector) => (sector, request.sectors),
        };
        let cookies =
            issue.pieces().flat_map(|piece| (0..piece.sectors).map(move |_| piece.cookie));
        let places = at..at + u64::from(sectors);
        self.medium.extend(places.zip(cookies));
    }
}

impl Driver for Disk {
    blockyard::leaf_calls!(take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        self.taken += 1;
        if issue.request().op == Op::Write {
            self.write(issue);
        }
        let queue = issue.queue;
        let hctx = issue.hctx;
        let tag = issue.tag;
        let mut outcome = Outcome::Done(Status::Ok);
        if let Some(left) = self.gives_back.checked_sub(1) {
            (self.gives_back, outcome) = (left, Outcome::AgainPrepared);
        }
        let finished = Finished { queue, hctx, tag, outcome };
        self.commands.push((issue.now + SERVICE, finished));
        Accept::Queued
    }

    fn timed_out(
        &mut self,
        _queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        _request: &Request,
        _now: Instant,
    ) -> TimedOut {
        if !self.gives_up {
            return TimedOut::Reset;
        }
        self.commands.retain(|(_, command)| (command.hctx, command.tag) != (hctx, tag));
        TimedOut::Ended(Outcome::Done(Status::Timeout))
    }
}

impl Device for Disk {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let at = self.commands.iter().position(|(due, _)| *due <= now)?;
        Some(self.commands.remove(at).1)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.commands.iter().map(|(due, _)| *due).min()
    }
}

/// The status with which a bio ended, and the instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) cookie: u64,
    pub(crate) status: Status,
    pub(crate) at: Instant,
}

pub(crate) struct Rig<D> {
    pub(crate) host: Host<D>,
    pub(crate) queue: RequestQueue,
    pub(crate) now: Instant,
    pub(crate) ends: Vec<End>,
}

/// Returns the configuration of a [`Rig`]'s queue.
pub(crate) fn config(policies: Policies) -> QueueConfig {
    let limits = Limits { max_sectors: 64, ..Limits::new(1 << 20) };
    QueueConfig { timeout: Duration::MAX, ..QueueConfig::new(1, 1, limits, policies) }
}

impl<D: Device> Rig<D> {
    pub(crate) fn new(stack: D, policies: Policies) -> Self {
        let host = Host::new(stack, (), TAGS);
        let queue = RequestQueue::new(QueueId(0), config(policies), &host);
        Self { host, queue, now: Instant::ZERO, ends: Vec::new() }
    }

    /// Submits each bio as soon as a tag is free, and runs until all have ended.
    pub(crate) fn run(&mut self, bios: impl IntoIterator<Item = Bio>) {
        let mut bios = bios.into_iter().peekable();
        loop {
            while let Some(bio) = bios.peek() {
                match self.queue.submit(&mut self.host, CpuId(0), *bio, self.now) {
                    Ok(()) => bios.next(),
                    Err(SubmitError::NoTag) => break,
                    Err(refused) => panic!("{refused}"),
                };
            }
            self.settle();
            let next = self.host.driver.poll_at().into_iter().chain(self.queue.poll_at()).min();
            match next.filter(|_| !self.queue.is_empty()) {
                Some(at) => self.now = at.max(self.now),
                None if bios.peek().is_some() => {}
                None => return,
            }
        }
    }

    /// Submits each bio when the previous one has ended, so that none merge.
    pub(crate) fn run_each(&mut self, bios: impl IntoIterator<Item = Bio>) {
        bios.into_iter().for_each(|bio| self.run([bio]));
    }

    /// Returns the driver's answer to a timeout of its first request.
    pub(crate) fn ask_for_first(&mut self) -> TimedOut {
        let hctx = HctxId(0);
        let tag = DriverTag(0);
        let request = self
            .queue
            .in_flight_request(&self.host, hctx, tag)
            .expect("the request should be in flight");
        self.host.driver.timed_out(QueueId(0), hctx, tag, &request.clone(), self.now)
    }

    /// Does all work that is due now.
    pub(crate) fn settle(&mut self) {
        loop {
            if let Some(run) = self.queue.next_run(&mut self.host, self.now) {
                let _ = self.queue.run(&mut self.host, run.hctx, self.now);
            } else if let Some((_, hctx)) = self.host.next_starved() {
                let _ = self.queue.run(&mut self.host, hctx, self.now);
            } else if let Some(finished) = self.host.driver.next_finished(self.now) {
                self.queue
                    .conclude(&mut self.host, &finished, self.now)
                    .expect("the request should be in flight");
            } else {
                break;
            }
        }
        while let Some(ended) = self.queue.next_ended() {
            let cookie = ended.bio.cookie;
            let status = ended.status;
            let at = self.now;
            self.ends.push(End { cookie, status, at });
        }
        self.queue.self_check(&self.host);
    }
}
