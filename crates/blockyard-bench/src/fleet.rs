//! Threads that read from disks of one host, as many of each as wished: the cost of an I/O as they grow.
//!
//! The device completes at once and is always full. Each thread has one read under way at a time; those that get no tag
//! sleep until a queue names them. One step is one I/O: the oldest request completes, its thread reads again, or sleeps,
//! and those that were woken try again.

use crate::{CAPACITY_SECTORS, SECTORS_PER_BIO, Sectors};
use blockyard::bio::Bio;
use blockyard::device::null::NullDevice;
use blockyard::driver::Device;
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::{Policies, SchedDepth};
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::{Status, SubmitError};
use blockyard::tag::TagSetConfig;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, QueueId};
use std::collections::VecDeque;

/// How much of each there is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Disks on the host, which share its tags.
    pub disks: u16,
    /// Processors, over which the threads are spread.
    pub cpus: u16,
    /// Hardware queues; they divide the processors.
    pub hctxs: u16,
    /// Requests that the device holds for each hardware queue.
    pub depth: u16,
    /// Threads beyond those that the device keeps busy.
    pub waiters: u16,
}

impl Size {
    /// One disk with one hardware queue of 32 requests, one processor, and no waiting thread.
    pub const ONE: Self = Self { disks: 1, cpus: 1, hctxs: 1, depth: 32, waiters: 0 };

    fn threads(&self) -> u64 {
        u64::from(self.hctxs) * u64::from(self.depth) + u64::from(self.waiters)
    }
}

/// The host with its disks and threads.
#[derive(Debug)]
pub struct Fleet {
    size: Size,
    host: Host<NullDevice>,
    disks: Vec<RequestQueue>,
    sectors: Sectors,
    /// Threads that are about to read.
    ready: VecDeque<u64>,
    now: Instant,
}

impl Fleet {
    /// Makes a fleet whose threads have begun to read.
    #[must_use]
    pub fn new(size: Size, policies: Policies) -> Self {
        let tags = TagSetConfig {
            hctxs: size.hctxs,
            queues: size.disks,
            max_waiters: u32::from(size.waiters) + 1,
            ..TagSetConfig::single(size.depth)
        };
        let host = Host::new(NullDevice::new(size.hctxs, size.depth), (), tags);
        let policies = Policies { sched_depth: SchedDepth::Fixed(size.depth.into()), ..policies };
        let limits = Limits::new(CAPACITY_SECTORS);
        let config = QueueConfig {
            max_bios: u32::from(size.hctxs) * u32::from(size.depth) + 1,
            max_waiters: u32::from(size.waiters) + 1,
            ..QueueConfig::new(size.cpus, size.hctxs, limits, policies)
        };
        let disks = (0..size.disks)
            .map(|number| RequestQueue::new(QueueId(number), config.clone(), &host))
            .collect();
        let sectors = Sectors::default();
        let ready = (0..size.threads()).collect();
        let mut fleet = Self { size, host, disks, sectors, ready, now: Instant::ZERO };
        fleet.go_on();
        fleet
    }

    /// Does one I/O.
    ///
    /// # Panics
    ///
    /// Panics if a read fails, or the device has nothing to complete: a thread was lost.
    pub fn step(&mut self) {
        self.now = self.now + Duration::from_us(1);
        let finished = self.host.driver.next_finished(self.now).expect("a full device");
        let disk = &mut self.disks[finished.queue.index()];
        disk.conclude(&mut self.host, &finished, self.now).expect("a request in the device");
        while let Some(ended) = disk.next_ended() {
            assert_eq!(ended.status, Status::Ok, "read of thread {}", ended.bio.cookie);
            self.ready.push_back(ended.bio.cookie);
        }
        self.run(finished.queue);
        self.go_on();
    }

    /// Lets threads read until none is ready.
    fn go_on(&mut self) {
        while let Some(thread) = self.ready.pop_front() {
            let queue = self.disk_of(thread);
            let cpu = self.cpu_of(thread);
            let bio = Bio::read(self.sectors.draw(), SECTORS_PER_BIO, thread);
            let disk = &mut self.disks[queue.index()];
            match disk.submit(&mut self.host, cpu, bio, self.now) {
                Ok(()) => {}
                Err(SubmitError::NoTag) => {
                    let waits = disk.wait(&mut self.host, cpu, &bio, thread, self.now);
                    waits.expect("room for every thread to wait");
                }
                Err(other) => panic!("thread {thread}: {other}"),
            }
            self.run(queue);
        }
    }

    /// Runs what the last call on a disk has marked, and takes those whom it has woken.
    fn run(&mut self, queue: QueueId) {
        let disk = &mut self.disks[queue.index()];
        while let Some(run) = disk.next_run(&mut self.host, self.now) {
            let _ = disk.run(&mut self.host, run.hctx, self.now);
        }
        while let Some(thread) = disk.next_woken(&mut self.host) {
            self.ready.push_back(thread);
        }
        while let Some((queue, hctx)) = self.host.next_starved() {
            let _ = self.disks[queue.index()].run(&mut self.host, hctx, self.now);
        }
    }

    fn cpu_of(&self, thread: u64) -> CpuId {
        CpuId(u16::try_from(thread % u64::from(self.size.cpus)).expect("below a 16-bit count"))
    }

    fn disk_of(&self, thread: u64) -> QueueId {
        let at = thread / u64::from(self.size.cpus) % u64::from(self.size.disks);
        QueueId(u16::try_from(at).expect("below a 16-bit count"))
    }
}
