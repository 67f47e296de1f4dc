//! When calls end: borrowed memory until then, futures, dropped futures, timeouts, shutdowns, and a
//! device that panics.

mod common;

use blockyard::limits::Limits;
use blockyard::status::Status;
use blockyard_std::{Disk, Error, Failure, Op, Options};
use common::{Scratch, Shared, release, slow};
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, mpsc};
use std::task::Wake;

const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_secs(20);

fn disk(wires: &Shared) -> Disk {
    slow(Options::new(), Limits { write_cache: true, ..Limits::new(1 << 12) }, wires)
}

/// Waits until the device has got `count` requests.
fn await_requests(wires: &Shared, count: usize) {
    for _ in 0..2000 {
        if wires.lock().unwrap().got.len() >= count {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the device got {} requests", wires.lock().unwrap().got.len());
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Checks [lender-waits]: not even `Debug` looks at memory that is lent.
#[test]
fn a_pending_io_does_not_show_its_memory() {
    struct Hidden(Vec<u8>);
    impl core::fmt::Debug for Hidden {
        fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            panic!("the device may write to it")
        }
    }
    impl AsMut<[u8]> for Hidden {
        fn as_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
    let wires = Shared::default();
    let disk = disk(&wires);
    let io = disk.read(Hidden(vec![0; 512]), 0);
    await_requests(&wires, 1);
    assert_eq!(format!("{io:?}"), "Io { .. }");
    let io = io.wait_timeout(SHORT).map(|_| ()).unwrap_err();
    release(&wires);
    assert_eq!(io.wait().0, Ok(()));
}

/// Callers carry out the requests of a disk in memory: nobody else wakes them.
#[test]
fn an_io_of_memory_has_ended_when_its_call_returns() {
    let disk = Options::new().depth(2).memory(1 << 20).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    ended(&mut disk.write((0..=255).cycle().take(1 << 20).collect(), 0), &mut cx);
    let mut batch = disk.batch();
    let mut ios: Vec<_> = (0..20).map(|n| batch.read(vec![0; 3], 1000 * n + 1)).collect();
    batch.submit();
    for (n, io) in (0_u64..).zip(&mut ios) {
        let bytes = [1, 2, 3].map(|more| (1000 * n + more).to_le_bytes()[0]);
        assert_eq!(ended(io, &mut cx), bytes);
    }
    assert_eq!((disk.stats().reads.ended, disk.stats().in_flight), (20, 0));
    let other = disk.clone();
    disk.shutdown().unwrap().ok().unwrap();
    assert_eq!(other.write_at(&[0], 0), Err(Error::ShutDown));
    assert_eq!(other.shutdown().unwrap().stats.reads.bytes, 60, "the report is kept");
}

fn ended(io: &mut blockyard_std::Io<Vec<u8>>, cx: &mut Context<'_>) -> Vec<u8> {
    let Poll::Ready((result, bytes)) = Pin::new(io).poll(cx) else { panic!("it waits") };
    assert_eq!(result, Ok(()));
    bytes
}

/// Reads the first byte of a disk when it is woken, and sends what it read.
struct Reader {
    disk: Disk,
    to: mpsc::Sender<(Result<(), Error>, u8)>,
}

impl Reader {
    fn read(&self) {
        let mut byte = [0];
        let result = self.disk.read_at(&mut byte, 0);
        self.to.send((result, byte[0])).unwrap();
    }
}

impl Wake for Reader {
    fn wake(self: Arc<Self>) {
        self.read();
    }
}

/// A buffer whose reader reads when it is dropped.
struct Reads(Vec<u8>, Reader);

impl AsRef<[u8]> for Reads {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.1.read();
    }
}

/// Checks [loans-end-unlocked]: a buffer that read the disk under its lock waited for itself
/// without end.
#[test]
fn a_buffer_and_a_waker_may_read_the_disk_in_memory_that_lets_them_go() {
    let disk = Disk::memory(1 << 20).unwrap();
    let (to, from) = mpsc::channel();
    let dropped = Reads(vec![7; 512], Reader { disk: disk.clone(), to: to.clone() });
    let woken = Reader { disk: disk.clone(), to: to.clone() };
    let after = disk.clone();
    let caller = std::thread::spawn(move || {
        let mut batch = after.batch();
        drop(batch.write(dropped, 0)); // its loan keeps the buffer
        let waker = Waker::from(Arc::new(woken));
        let mut io = batch.write(vec![8; 512], 512);
        assert!(Pin::new(&mut io).poll(&mut Context::from_waker(&waker)).is_pending());
        batch.submit();
        io.wait().0
    });
    let read = [from.recv_timeout(LONG), from.recv_timeout(LONG)];
    assert_eq!(read, [Ok((Ok(()), 7)), Ok((Ok(()), 7))], "by the buffer and by the waker");
    assert_eq!(caller.join().unwrap(), Ok(()));
}

/// Checks [loans-end-unlocked]: the queue is back in its place when a loan ends, and every result
/// is known.
#[test]
fn a_buffer_that_panics_costs_a_disk_in_memory_nothing() {
    struct Panics;
    impl AsRef<[u8]> for Panics {
        fn as_ref(&self) -> &[u8] {
            &[9; 512]
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("the test wants it");
        }
    }
    let disk = Disk::memory(1 << 20).unwrap();
    let mut batch = disk.batch();
    drop(batch.write(Panics, 0));
    let write = batch.write(vec![8; 512], 512);
    assert!(std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| batch.submit())).is_err());
    assert_eq!(write.wait().0, Ok(()));
    let mut bytes = [0; 1024];
    disk.read_at(&mut bytes, 0).unwrap();
    assert_eq!((&bytes[..512], &bytes[512..]), (&[9; 512][..], &[8; 512][..]));
    assert_eq!(disk.shutdown().unwrap().ok(), Ok(()));
}

#[test]
fn a_future_is_woken_once_and_returns_its_buffer() {
    let wires = Shared::default();
    let disk = disk(&wires);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut io = disk.write(vec![7; 512], 1024);
    assert!(Pin::new(&mut io).poll(&mut cx).is_pending());
    await_requests(&wires, 1);
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    assert!(Pin::new(&mut io).poll(&mut cx).is_pending());
    release(&wires);
    for _ in 0..2000 {
        if woken.0.load(Ordering::SeqCst) > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(Pin::new(&mut io).poll(&mut cx), Poll::Ready((Ok(()), vec![7; 512])));
}

/// A buffer that tells when it is dropped.
struct Told(Vec<u8>, Arc<AtomicU32>);

impl AsMut<[u8]> for Told {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

/// Checks [lender-waits].
#[test]
fn a_dropped_future_leaves_its_buffer_to_the_io() {
    let wires = Shared::default();
    let disk = disk(&wires);
    let dropped = Arc::default();
    drop(disk.read(Told(vec![0; 512], Arc::clone(&dropped)), 0));
    await_requests(&wires, 1);
    assert_eq!(dropped.load(Ordering::SeqCst), 0, "the device may still write to it");
    wires.lock().unwrap().is_quick = true; // the last flush
    release(&wires);
    let report = disk.shutdown().unwrap();
    assert_eq!((report.stats.reads.ended, dropped.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn a_wait_with_a_timeout_can_go_on() {
    let wires = Shared::default();
    let disk = disk(&wires);
    let io = disk.read(vec![1; 512], 0).wait_timeout(SHORT).expect_err("the device holds it");
    await_requests(&wires, 1);
    release(&wires);
    assert_eq!(io.wait_timeout(LONG).expect("it was released"), (Ok(()), vec![0; 512]));
    let flush = disk.begin_flush().wait_timeout(SHORT).expect_err("the device holds it");
    release(&wires);
    assert_eq!(flush.wait(), Ok(()));
}

#[test]
fn a_device_is_asked_about_a_request_that_takes_too_long() {
    let wires = Shared::default();
    let options = Options::new().timeout(SHORT);
    let disk = slow(options, Limits::new(1 << 12), &wires);
    assert_eq!(disk.read_at(&mut [0; 512], 0), Err(Error::Failed(Status::Timeout)));
    assert_eq!(wires.lock().unwrap().timed_out, 1);
}

#[test]
fn a_shutdown_ends_all_requests_and_reports_those_that_failed() {
    let wires = Shared::default();
    wires.lock().unwrap().bad_sector = Some(9);
    let disk = disk(&wires);
    let other = disk.clone();
    let after = disk.clone();
    let good = disk.write(vec![1; 512], 0);
    drop(disk.write(vec![2; 1024], 8 * 512)); // nobody looks at its result
    await_requests(&wires, 2);
    let shutdown = std::thread::spawn(move || other.shutdown().unwrap());
    while !disk.read([0; 512], 0).wait_timeout(SHORT).is_ok_and(|read| read.0.is_err()) {}
    assert!(!shutdown.is_finished(), "the device holds requests");
    wires.lock().unwrap().is_quick = true; // the last flush
    release(&wires);
    let report = shutdown.join().unwrap();
    let failure = Failure { op: Op::Write, offset: 4096, len: 1024, status: Status::Medium };
    assert_eq!((report.failures, &report.failed[..]), (1, &[failure][..]));
    assert_eq!((report.flush, report.ok()), (Ok(()), Err(Error::Failed(Status::Medium))));
    assert_eq!(report.stats.flushes.ended, 0);
    assert_eq!((report.stats.writes.ended, report.stats.writes.failed), (2, 1));
    assert_eq!(report.stats.writes.bytes, 512);
    assert!(
        wires.lock().unwrap().got.last().map(|last| last.op) == Some(Op::Flush),
        "the last request of a disk with a cache is a flush"
    );
    assert_eq!(good.wait(), (Ok(()), vec![1; 512]));
    assert_eq!(disk.read_at(&mut [0; 512], 0), Err(Error::ShutDown));
    assert_eq!(disk.write(vec![3; 512], 0).wait().0, Err(Error::ShutDown));
    assert_eq!(after.shutdown().unwrap(), report, "the same for every handle");
}

/// Checks [kernel-first] as far as callers see it: those whose request the device has, and those
/// whose request still waits.
#[test]
fn callers_hear_of_a_device_that_panics() {
    let wires = Shared::default();
    let disk = disk(&wires);
    let mut held = wires.lock().unwrap();
    let first = disk.read(vec![0; 512], 0);
    let first = first.wait_timeout(SHORT).expect_err("the device waits for the lock");
    let second = disk.write(vec![0; 512], 0);
    held.is_to_panic = true;
    drop(held);
    for read in [first, second] {
        let Ok(ended) = read.wait_timeout(LONG) else { panic!("an I/O that does not end") };
        assert_eq!(ended.0, Err(Error::ShutDown));
    }
    assert_eq!(disk.read_at(&mut [0; 512], 0), Err(Error::ShutDown));
    assert!(disk.shutdown().unwrap_err().to_string().contains("panicked"));
}

#[test]
fn the_last_handle_ends_the_disk_in_the_background() {
    let scratch = Scratch::new("background", 1 << 20);
    let disk = Disk::file(&scratch.0).unwrap();
    let io = disk.write(vec![5; 4096], 4096);
    drop(disk);
    assert_eq!(io.wait().0, Ok(()));
    // The next disk waits for the lock of the file.
    let mut read = [0; 1];
    Disk::file(&scratch.0).unwrap().read_at(&mut read, 4096).unwrap();
    assert_eq!(read, [5]);
}
