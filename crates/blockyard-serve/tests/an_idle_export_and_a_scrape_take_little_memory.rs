//! An idle export takes little memory, and so does a scrape of its metrics.
//!
//! Each line of `/metrics` once built a structure of 1 MB, so a scrape of one export took 0.32 s of
//! processor time. Each export held such a structure in each lane, and a lane copied those of all
//! exports in one turn.

#![allow(unsafe_code, reason = "a counting allocator has no safe form")]

mod nbd;

use blockyard::policy::Policies;
use blockyard_serve::{Address, DiskConfig};
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};
use nbd::{Running, memory};
use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Bytes allocated and not freed, by all threads.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Bytes ever allocated, by all threads.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
/// The largest allocation of a lane, in bytes.
static LARGEST_OF_LANE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

impl Counting {
    fn count(bytes: usize) {
        HELD.fetch_add(bytes, Ordering::Relaxed);
        ALLOCATED.fetch_add(bytes, Ordering::Relaxed);
        let mut name = [0_u8; 16];
        // SAFETY: the call writes the name of this thread, of at most 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        if name.starts_with(b"lane-") {
            LARGEST_OF_LANE.fetch_max(bytes, Ordering::Relaxed);
        }
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: the caller upholds the same contract that this call requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Starts a server with one lane, and with disks of the depth that `blockyard serve` gives them,
/// behind mq-deadline.
fn start(exports: usize) -> Running {
    let disk = DiskConfig { depth: 128, policies: Policies::mq_deadline(), ..memory(1 << 20) };
    Running::start(disk.clone(), |config| {
        config.metrics = Some("127.0.0.1:0".to_owned());
        let more = (1..exports).map(|number| format!("disk{number}"));
        config.disks.extend(more.map(|name| DiskConfig { name, ..disk.clone() }));
    })
}

/// Reads all metrics into `page`, which is reserved by the caller.
fn scrape(running: &Running, page: &mut Vec<u8>) {
    let Some(Address::Tcp(address)) = running.server.metrics_address() else {
        panic!("the server has metrics")
    };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    page.clear();
    stream.read_to_end(page).unwrap();
    assert!(page.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

const KIB: usize = 1 << 10;
const FEW: usize = 1;
const MANY: usize = 65;

#[test]
fn an_export_holds_and_a_scrape_takes_a_few_kilobytes() {
    let mut page = Vec::with_capacity(16 << 20);
    let [few, many] = [FEW, MANY].map(|exports| {
        let before = HELD.load(Ordering::Relaxed);
        let running = start(exports);
        running.client().bye();
        scrape(&running, &mut page);
        let held = HELD.load(Ordering::Relaxed) - before;
        LARGEST_OF_LANE.store(0, Ordering::Relaxed);
        let before = ALLOCATED.load(Ordering::Relaxed);
        scrape(&running, &mut page);
        let scraped = ALLOCATED.load(Ordering::Relaxed) - before;
        let largest = LARGEST_OF_LANE.load(Ordering::Relaxed);
        running.stop();
        println!(
            "{exports} exports hold {held} B; a scrape takes {scraped} B, {largest} B at once"
        );
        (held, scraped, largest)
    });
    let each = (many.0 - few.0) / (MANY - FEW);
    assert!(each < 100 * KIB, "{each} bytes for an idle export");
    assert!(few.1 < 300 * KIB, "{} bytes for a scrape of one export", few.1);
    let each = (many.1 - few.1) / (MANY - FEW);
    assert!(each < 300 * KIB, "{each} bytes in a scrape for each export");
    // 16 disks of 5 KiB, and not all 65.
    assert!(many.2 < 128 * KIB, "a lane copied {} bytes at once", many.2);
}
