//! Threads that read and write files, for a ring without io_uring.
//!
//! ```text
//! lane ── begin ──► waiting ──► thread: preadv, pwritev2, … ──► ended ── collect ──► lane
//!                                                       └─ rings the bell of a lane that sleeps
//! ```
//!
//! A call waits in a thread, so as many calls can be at the disk as there are threads. A thread
//! starts when a call finds all others busy, and ends with the ring. Where the system gives no
//! thread, the first of them included, the lane does the call itself.

use super::ops::{Backing, FileOp};
use crate::parts::bell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// The largest number of threads of one ring: the default depth of a disk.
const THREADS_MAX: usize = 32;
/// The stack of a thread, which only does system calls, in bytes.
const STACK_BYTES: usize = 128 << 10;

/// A system call on a file.
pub(super) struct Call {
    /// The number of the operation.
    pub(super) at: u32,
    /// Open until the call has ended ([kernel-memory-stays]).
    pub(super) file: Arc<OwnedFd>,
    pub(super) op: FileOp,
    pub(super) memory: Memory,
}

/// The pieces of memory of a call, which stay until it has ended ([kernel-memory-stays]).
#[derive(Clone, Copy)]
pub(super) struct Memory {
    iovecs: *const libc::iovec,
    count: libc::c_int,
}

// SAFETY: [kernel-memory-stays]: the memory stays until the call has ended, and nobody else uses it
// meanwhile.
unsafe impl Send for Memory {}

impl Memory {
    pub(super) fn of(iovecs: &[libc::iovec]) -> Self {
        let count = libc::c_int::try_from(iovecs.len()).expect("number of segments within 31 bits");
        Self { iovecs: iovecs.as_ptr(), count }
    }
}

impl Call {
    /// Does the call if it need not wait for a disk: a read that the page cache answers, and reads
    /// and writes of memory. Otherwise, or if the kernel cannot say, returns `None`. Linux 5.9 and
    /// 5.10 return 0 bytes for pages that are not in the page cache, as at the end of the file,
    /// preadv2(2): a thread reads again.
    pub(super) fn at_once(&self, backing: Backing) -> Option<io::Result<usize>> {
        match (backing, self.op) {
            (Backing::Memory, FileOp::Read { .. } | FileOp::Write { .. }) => Some(self.run()),
            (Backing::PageCache, FileOp::Read { offset }) => {
                let Memory { iovecs, count } = self.memory;
                let fd = self.file.as_raw_fd();
                // SAFETY: [kernel-memory-stays].
                let result =
                    unsafe { libc::preadv2(fd, iovecs, count, signed(offset), libc::RWF_NOWAIT) };
                counted(result).ok().filter(|bytes| *bytes > 0).map(Ok)
            }
            _ => None,
        }
    }

    /// Does the call.
    fn run(&self) -> io::Result<usize> {
        let fd = self.file.as_raw_fd();
        let Memory { iovecs, count } = self.memory;
        // SAFETY: [kernel-memory-stays]: `iovecs` points to `count` pieces of memory that stay in
        // place. The other calls use no memory.
        let result = unsafe {
            match self.op {
                FileOp::Read { offset } => libc::preadv(fd, iovecs, count, signed(offset)),
                FileOp::Write { offset, fua } => {
                    let flags = if fua { libc::RWF_DSYNC } else { 0 };
                    libc::pwritev2(fd, iovecs, count, signed(offset), flags)
                }
                FileOp::Sync => status(libc::fdatasync(fd)),
                FileOp::Prefetch { offset, len } => {
                    let errno = libc::posix_fadvise(
                        fd,
                        signed(offset),
                        len.into(),
                        libc::POSIX_FADV_WILLNEED,
                    );
                    return match errno {
                        0 => Ok(0),
                        errno => Err(io::Error::from_raw_os_error(errno)),
                    };
                }
                FileOp::Allocate { mode, offset, len } => {
                    status(libc::fallocate(fd, mode, signed(offset), signed(len)))
                }
            }
        };
        counted(result)
    }
}

fn signed(offset: u64) -> i64 {
    i64::try_from(offset).expect("offset of a file within 63 bits")
}

fn status(result: libc::c_int) -> libc::ssize_t {
    libc::ssize_t::try_from(result).expect("0 or -1")
}

fn counted(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The threads of a ring, and their calls. See the [module](self).
pub(super) struct Files {
    shared: Arc<Shared>,
    /// The number of threads. Nobody waits for their end.
    threads: usize,
}

struct Shared {
    waiting: Mutex<Waiting>,
    has_waiting: Condvar,
    ended: Mutex<Ended>,
    /// Wakes the lane.
    bell: OwnedFd,
}

#[derive(Default)]
struct Waiting {
    calls: VecDeque<Call>,
    /// Threads without a call.
    idle: usize,
    /// Whether the ring has ended.
    is_over: bool,
}

#[derive(Default)]
struct Ended {
    results: Vec<(u32, io::Result<usize>)>,
    /// Whether the lane sleeps until there is a result.
    is_awaited: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does calls until the ring has ended.
    fn work(&self) {
        loop {
            let mut waiting = self.waiting();
            while waiting.calls.is_empty() && !waiting.is_over {
                waiting.idle += 1;
                waiting = self.has_waiting.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                waiting.idle -= 1;
            }
            let Some(call) = waiting.calls.pop_front() else { return };
            drop(waiting);
            let result = call.run();
            self.end(call, result);
        }
    }

    fn end(&self, call: Call, result: io::Result<usize>) {
        let at = call.at;
        drop(call);
        let mut ended = self.ended();
        ended.results.push((at, result));
        if core::mem::take(&mut ended.is_awaited) {
            bell::ring(&self.bell);
        }
    }
}

impl Files {
    /// Returns no threads and no calls.
    ///
    /// # Errors
    ///
    /// Fails if no descriptor is left.
    pub(super) fn new() -> io::Result<Self> {
        let shared = Shared {
            waiting: Mutex::default(),
            has_waiting: Condvar::new(),
            ended: Mutex::default(),
            bell: bell::bell()?,
        };
        Ok(Self { shared: Arc::new(shared), threads: 0 })
    }

    /// Returns the bell that rings when a call has ended while the lane [sleeps](Self::may_sleep).
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, call: Call) {
        let mut waiting = self.shared.waiting();
        waiting.calls.push_back(call);
        let is_short = waiting.calls.len() > waiting.idle;
        drop(waiting);
        self.shared.has_waiting.notify_one();
        if is_short && self.threads < THREADS_MAX && self.start().is_err() {
            self.without_threads();
        }
    }

    fn start(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let builder = Builder::new().name("files".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(move || shared.work())?;
        self.threads += 1;
        Ok(())
    }

    /// Does the calls that wait, if there is no thread for them.
    fn without_threads(&self) {
        while self.threads == 0
            && let Some(call) = self.shared.waiting().calls.pop_front()
        {
            let result = call.run();
            self.shared.end(call, result);
        }
    }

    /// Returns whether no call has ended. The next one that ends rings the bell.
    pub(super) fn may_sleep(&self) -> bool {
        let mut ended = self.shared.ended();
        ended.is_awaited = ended.results.is_empty();
        ended.is_awaited
    }

    /// Moves the results of the calls that have ended to `results`.
    pub(super) fn collect(&self, results: &mut Vec<(u32, io::Result<usize>)>) {
        let mut ended = self.shared.ended();
        ended.is_awaited = false;
        results.append(&mut ended.results);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let mut waiting = self.shared.waiting();
        waiting.is_over = true;
        waiting.calls.clear(); // a ring that ends immediately does not wait for them
        drop(waiting);
        self.shared.has_waiting.notify_all();
        // The threads are not awaited: one of them may be in a call that takes long, and it keeps
        // what it uses.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::map::Map;
    use crate::parts::ring::ops::iovec;

    /// Linux 5.9 and 5.10 answer so in the middle of a file.
    #[test]
    fn a_read_without_a_wait_that_gets_nothing_is_not_taken_for_the_end_of_the_file() {
        let path = std::env::temp_dir().join(format!("blockyard-files-{}", std::process::id()));
        std::fs::write(&path, [7; 512]).expect("a file in the temporary folder");
        let file: OwnedFd = std::fs::File::open(&path).expect("the file").into();
        std::fs::remove_file(&path).expect("the file");
        let memory = Map::new(512).expect("a small mapping should succeed");
        let iovecs = [iovec(&memory.span(0..512))];
        let op = FileOp::Read { offset: 512 };
        let call = Call { at: 0, file: Arc::new(file), op, memory: Memory::of(&iovecs) };
        assert!(call.at_once(Backing::PageCache).is_none(), "a thread looks again");
        assert_eq!(call.run().expect("a read at the end"), 0);
    }
}
