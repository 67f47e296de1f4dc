//! A program without std: it sends one read through the core and one through an NBD session, and
//! runs the firmware of `crates/blockyard-mmc/examples/firmware`.
//!
//! The libraries need only memory and a panic handler, both of which are here. If a dependency
//! brought in std, there would be two panic handlers, and the program would not build.
#![no_std]
#![no_main]

extern crate alloc;

#[path = "../../../crates/blockyard-mmc/examples/firmware/card.rs"]
mod card;
#[path = "../../../crates/blockyard-mmc/examples/firmware/chip.rs"]
mod chip;
#[path = "../../../crates/blockyard-mmc/examples/firmware/demo.rs"]
#[expect(dead_code, reason = "this program prints nothing")]
mod demo;
#[path = "../../../crates/blockyard-mmc/examples/firmware/disk.rs"]
mod disk;
#[path = "../../../crates/blockyard-mmc/examples/firmware/sdhci.rs"]
mod sdhci;

use alloc::vec;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use blockyard::bio::Bio;
use blockyard::driver::{Accept, Driver, Issue};
use blockyard::host::Host;
use blockyard::limits::Limits;
use blockyard::policy::Policies;
use blockyard::request_queue::{QueueConfig, RequestQueue};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
use blockyard_mmc::policy::{HsqPolicy, Pipeline};
use blockyard_wire::nbd::number::{IHAVEOPT, REQUEST_MAGIC, cmd, opt};
use blockyard_wire::nbd::{
    ANSWER_BYTES_MAX, Event, Export, Exports, Handshake, Limits as WireLimits, Step, Tls,
    Transmission,
};

const ARENA_BYTES: usize = 16 << 20;

/// Memory that is allocated once and never freed.
#[repr(align(64))]
struct Arena {
    memory: UnsafeCell<[u8; ARENA_BYTES]>,
    used_bytes: AtomicUsize,
}

// SAFETY: `used_bytes` only grows, so no two callers get the same byte of `memory`.
unsafe impl Sync for Arena {}

// SAFETY: each result lies within `memory`, has the requested alignment, and is returned once.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.memory.get().cast::<u8>();
        let mut used = self.used_bytes.load(Ordering::Relaxed);
        loop {
            let pad = (base as usize + used).wrapping_neg() & (layout.align() - 1);
            let start = used + pad;
            let Some(end) = start.checked_add(layout.size()).filter(|end| *end <= ARENA_BYTES)
            else {
                return ptr::null_mut();
            };
            match self.used_bytes.compare_exchange(used, end, Ordering::Relaxed, Ordering::Relaxed)
            {
                // SAFETY: `start` is within the arena.
                Ok(_) => return unsafe { base.add(start) },
                Err(now) => used = now,
            }
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ARENA: Arena =
    Arena { memory: UnsafeCell::new([0; ARENA_BYTES]), used_bytes: AtomicUsize::new(0) };

// For the memory functions that the compiler calls, and for `abort`.
#[link(name = "c")]
unsafe extern "C" {
    fn abort() -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: `abort` has no preconditions.
    unsafe { abort() }
}

/// A device that accepts one request and keeps its tag.
#[derive(Default)]
struct One(Option<(HctxId, DriverTag)>);

impl Driver for One {
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
        self.0 = Some((issue.hctx, issue.tag));
        Accept::Queued
    }
}

/// Whether a bio ends successfully, with its cookie, in a queue of this design.
fn passes(policies: Policies, cookie: u64) -> bool {
    let tags = TagSetConfig {
        hctxs: 1,
        depth: 4,
        reserved: 0,
        shared_over_hctxs: false,
        queues: 1,
        max_waiters: 4,
    };
    let mut host = Host::new(One::default(), (), tags);
    let config = QueueConfig::new(1, 1, Limits::new(1 << 21), policies);
    let mut queue = RequestQueue::new(QueueId(0), config, &host);
    let now = Instant::ZERO;
    if queue.submit(&mut host, CpuId(0), Bio::read(8, 8, cookie), now).is_err() {
        return false;
    }
    while let Some(run) = queue.next_run(&mut host, now) {
        let _ = queue.run(&mut host, run.hctx, now);
    }
    let Some((hctx, tag)) = host.driver.0.take() else { return false };
    let completed = queue.complete(&mut host, hctx, tag, Status::Ok, now);
    let ended = queue.next_ended();
    completed.is_ok()
        && ended.is_some_and(|ended| ended.bio.cookie == cookie && ended.status == Status::Ok)
        && queue.is_empty()
}

/// Whether the firmware reads back its writes under both pipelines, and the host software queue
/// leaves the bus idle for a shorter time than the serial pipeline.
fn firmware_works() -> bool {
    let pipelines = [Pipeline::Serial, Pipeline::Hsq(HsqPolicy::TODAY)];
    let [serial, hsq] = pipelines.map(|pipeline| demo::run(pipeline, 0));
    serial.intact && hsq.intact && hsq.gap() < serial.gap()
}

/// The length of the answer to a READ of 512 bytes from a client of the default export.
fn serves(cookie: u64) -> Option<u64> {
    let exports = Exports::new(vec![Export { size_bytes: 512, ..Export::default() }]).ok()?;
    let mut handshake = Handshake::new(Tls::Off, WireLimits::DEFAULT);
    let mut out = Vec::new();
    let enter = [&3u32.to_be_bytes()[..], &IHAVEOPT.to_be_bytes(), &opt::EXPORT_NAME.to_be_bytes()];
    let entered = [&enter.concat()[..], &[0; 4]].concat();
    let Step::Transmit(agreed) = handshake.receive(&entered, &exports, &mut out).step else {
        return None;
    };
    let mut transmission = Transmission::new(agreed, WireLimits::DEFAULT);
    let kind = u32::from(cmd::READ);
    let head = [REQUEST_MAGIC.to_be_bytes(), kind.to_be_bytes()].concat();
    let read = [&head[..], &cookie.to_be_bytes(), &[0; 8], &512u32.to_be_bytes()].concat();
    let Event::Request(request) = transmission.next(&read).event else { return None };
    let mut header = [0; ANSWER_BYTES_MAX];
    let answer = transmission.answer(request, Ok(()), &mut header);
    header[8..16].eq(&cookie.to_be_bytes()).then_some(answer.data_bytes)
}

/// Returns 0 on success. Adds 1 if a read fails in the core or in the NBD session, and 2 if the
/// firmware fails.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    let core = passes(Policies::NONE, 7) && passes(Policies::mq_deadline(), 8);
    let reads = core && serves(9) == Some(512);
    i32::from(!reads) + 2 * i32::from(!firmware_works())
}
