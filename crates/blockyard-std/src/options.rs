//! Options for opening a disk.

use crate::disk::{Disk, Facts};
use crate::driver::{Bell, Data, Tools};
use crate::inbox::Inbox;
use crate::lane::{Files, Kit, Lane, Shared};
use crate::memory_queue::MemoryQueue;
use crate::parts::bell;
use crate::parts::device::at_once::AtOnce;
use crate::parts::device::file::{Damaged, File, FileDevice};
use crate::parts::device::memory::{Memory, MemoryDevice};
use crate::parts::device::{How, MEMORY_REQUEST_SECTORS, OpenError, limits};
use crate::parts::job::SECTOR;
use crate::parts::ring::IoEngine;
use crate::parts::shape::{MakeElevator, Shape, check_policies};
use crate::stats::Counters;
use crate::worker::Worker;
use blockyard::driver::Device;
use blockyard::limits::Limits;
use blockyard::policy::{ElevatorKind, Policies};
use blockyard::time::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

/// Options for opening a [`Disk`]: the design of its queue, its depth, and how it uses files.
#[derive(Clone, Copy, Debug)]
#[must_use = "options do nothing until they open a disk"]
pub struct Options {
    policies: Policies,
    elevator: Option<MakeElevator>,
    depth: u16,
    timeout: Duration,
    read_only: bool,
    buffered: bool,
    huge_pages: bool,
    io: IoEngine,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policies: Policies::mq_deadline(),
            elevator: None,
            depth: 32,
            timeout: Duration::MAX,
            read_only: false,
            buffered: false,
            huge_pages: false,
            io: IoEngine::Auto,
        }
    }
}

impl Disk {
    /// Opens a disk in memory with the default [`Options`].
    ///
    /// # Errors
    ///
    /// As [`Options::memory`].
    pub fn memory(bytes: u64) -> Result<Self, OpenError> {
        Options::new().memory(bytes)
    }

    /// Opens a file or block device with the default [`Options`].
    ///
    /// # Errors
    ///
    /// As [`Options::file`].
    pub fn file(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Options::new().file(path)
    }
}

impl Options {
    /// Returns the defaults: mq-deadline, a depth of 32, no timeout, direct I/O where it is
    /// possible.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the design of the queue, with a built-in elevator or none. See [`Self::elevator`] for
    /// one of your own.
    ///
    /// ```
    /// use blockyard::policy::Policies;
    /// use blockyard_std::Options;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let disk = Options::new().policies(Policies::mq_kyber()).depth(64).memory(1 << 20)?;
    /// # disk.shutdown()?.ok()?;
    /// # Ok(()) }
    /// ```
    pub const fn policies(mut self, policies: Policies) -> Self {
        self.policies = policies;
        self.elevator = None;
        self
    }

    /// Puts an elevator of your own in the place of that of [`Self::policies`], which come first.
    /// `make` makes it in the disk's thread. [`blockyard::conformance`] tests it.
    pub const fn elevator(mut self, make: MakeElevator) -> Self {
        self.policies.elevator = ElevatorKind::Other;
        self.elevator = Some(make);
        self
    }

    /// Sets the largest number of requests in flight at the device. A depth of 0 counts as 1.
    pub const fn depth(mut self, requests: u16) -> Self {
        self.depth = if requests == 0 { 1 } else { requests };
        self
    }

    /// Sets the time after which a device of your own is asked about a request
    /// ([`Driver::timed_out`](blockyard::driver::Driver::timed_out)). Memory always answers
    /// immediately; of a file, the kernel keeps a request for as long as it takes.
    pub const fn timeout(mut self, timeout: core::time::Duration) -> Self {
        self.timeout = Duration::from_ns(match timeout.as_nanos() {
            #[expect(clippy::cast_possible_truncation, reason = "the arm checks the range")]
            ns @ 0..=0xFFFF_FFFF_FFFF_FFFF => ns as u64,
            _ => u64::MAX,
        });
        self
    }

    /// Refuses everything that would change the disk.
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Uses the page cache even if direct I/O to the file is possible.
    pub const fn buffered(mut self) -> Self {
        self.buffered = true;
        self
    }

    /// Chooses what does the I/O of a file. By default, threads do where the kernel offers or
    /// permits no io_uring.
    pub const fn io(mut self, engine: IoEngine) -> Self {
        self.io = engine;
        self
    }

    /// Takes all memory of a disk in memory at once, in huge pages where the kernel has any.
    pub const fn huge_pages(mut self) -> Self {
        self.huge_pages = true;
        self
    }

    /// Opens a disk in memory, of `bytes` zeroes. It ends with its last handle.
    ///
    /// It has no thread: the thread that calls it carries its request out, one caller after the
    /// other, so that a long discard keeps other callers waiting. With an
    /// [elevator](Self::elevator) of your own, which may hold a request back, it has a thread.
    ///
    /// # Errors
    ///
    /// Fails if `bytes` is 0, if no queue can have the [policies](OpenError::Policies), if a thread
    /// is needed and the system gives none, or if the system has no room for `bytes` in the address
    /// space or none for the bitmap of what was written, 1/32768 of `bytes`. The memory of a page
    /// is taken with the first write to it, so that a disk may be larger than what is free, and the
    /// system decides what happens when there is none left. With [`Self::huge_pages`] all of it is
    /// taken here, or the call fails.
    pub fn memory(&self, bytes: u64) -> Result<Disk, OpenError> {
        check_policies(&self.policies, self.elevator)?;
        if bytes == 0 {
            return Err(OpenError::Empty("memory".to_owned()));
        }
        let memory =
            Memory::new(bytes, self.huge_pages).map_err(|error| OpenError::Memory(bytes, error))?;
        let shape = self.shape(limits(bytes, 1, MEMORY_REQUEST_SECTORS), 1, self.depth);
        let facts = Facts { size_bytes: bytes, block_bytes: 1, read_only: self.read_only };
        if self.elevator.is_none() {
            return Ok(Disk::new(Worker::callers(MemoryQueue::new(shape, memory)), facts));
        }
        let memory = Arc::new(memory);
        let shape = Shape { takes_slices: true, ..shape };
        start(new_bell()?, facts, shape, None, |kit| {
            AtOnce::new(MemoryDevice::new(memory, kit.jobs, true))
        })
    }

    /// Opens the file or block device at `path`, which keeps its size. Nobody else may write to it
    /// meanwhile. What is opened for writing is therefore locked: a file by `flock`, which disks of
    /// this crate and of `blockyard-serve` heed and other programs may not; a block device by
    /// `O_EXCL`, which mounts heed too. Where another one has it, the call tries again for up to 2
    /// s, so that a process that is ending can let go of it. A file system without locks protects
    /// nothing, and nor does a disk that is [read-only](Self::read_only).
    ///
    /// Direct I/O needs memory that begins at a multiple of [`Disk::block_bytes`], as a
    /// [`Buffer`](crate::Buffer) does, and a range of whole blocks; any other request is copied
    /// once, and a write of a part of a block reads the rest first.
    ///
    /// # Errors
    ///
    /// Any [`OpenError`] but [`OpenError::Memory`]; [`OpenError::Start`] if the kernel offers no
    /// io_uring and [`Self::io`] demands it.
    pub fn file(&self, path: impl AsRef<Path>) -> Result<Disk, OpenError> {
        check_policies(&self.policies, self.elevator)?;
        let bell = new_bell()?;
        let how = How {
            read_only: self.read_only,
            buffered: self.buffered,
            bells: &[Arc::clone(&bell)],
            claim: |_, _| Ok(()),
            damaged: Arc::new(Cut),
        };
        let file = File::open(path.as_ref(), how)?;
        let align = file.block_bytes;
        let depth = self.depth;
        let shape = Shape {
            // The kernel never times out an I/O of a file, so the queue does not either.
            timeout: Some(Duration::MAX),
            ..self.shape(file.limits(), align, depth)
        };
        let facts = Facts {
            size_bytes: file.size_bytes,
            // The kernel zeroes only whole blocks of a block device.
            block_bytes: if file.is_block_device { align.max(SECTOR) } else { 1 },
            read_only: self.read_only,
        };
        let memory_align = usize::try_from(align).expect("block size within memory");
        let files = Files { engine: self.io, memory_align };
        start(bell, facts, shape, Some(files), move |kit| {
            FileDevice::new(Arc::new(file), 0, kit.jobs, kit.outbox, depth)
        })
    }

    /// Opens a disk over a device of your own, which `make` makes in the disk's thread. The device
    /// finds the data of its requests by [`Tools::data`]; another thread that finishes requests
    /// rings [`Tools::bell`]. Time is that of the monotonic clock.
    ///
    /// A range must consist of whole blocks of [`Limits::logical_block_sectors`].
    ///
    /// # Errors
    ///
    /// Fails if no queue can have the [policies](OpenError::Policies), if there is no thread, if
    /// the capacity of `limits` is 0, or if the disk's thread panics meanwhile, as it does if
    /// `limits` contradict each other ([`Limits::check`]).
    pub fn driver<D: Device + 'static>(
        &self,
        limits: Limits,
        make: impl FnOnce(Tools) -> D + Send + 'static,
    ) -> Result<Disk, OpenError> {
        check_policies(&self.policies, self.elevator)?;
        if limits.capacity_sectors == 0 {
            return Err(OpenError::Empty("driver".to_owned()));
        }
        let block_bytes = u64::from(limits.logical_block_sectors) * SECTOR;
        let size_bytes = limits.capacity_sectors.saturating_mul(SECTOR);
        let facts = Facts { size_bytes, block_bytes, read_only: self.read_only };
        let shape =
            Shape { takes_long_ranges: true, ..self.shape(limits, block_bytes, self.depth) };
        start(new_bell()?, facts, shape, None, move |Kit { jobs, bell, .. }| {
            make(Tools { data: Data(jobs), bell: Bell(bell) })
        })
    }

    const fn shape(&self, limits: Limits, block_bytes: u64, depth: u16) -> Shape {
        Shape {
            limits,
            policies: self.policies,
            elevator: self.elevator,
            depth,
            block_bytes,
            timeout: Some(self.timeout),
            takes_slices: false,
            takes_long_ranges: false,
        }
    }
}

/// A damaged file fails requests; there is nobody else to tell.
#[derive(Debug)]
struct Cut;

impl Damaged for Cut {
    fn cut_short(&self, _disk_bytes: u64, _file_bytes: u64) {}
    fn flush_failed(&self) {}
}

fn new_bell() -> Result<Arc<OwnedFd>, OpenError> {
    bell::bell().map(Arc::new).map_err(OpenError::Start)
}

/// Refuses all requests at the end of the disk's thread, whatever ends it.
struct Closes(Arc<Shared>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.inbox.close();
        self.0.inbox.take(&mut Vec::new());
    }
}

/// Starts the thread of a disk.
fn start<D: Device>(
    bell: Arc<OwnedFd>,
    facts: Facts,
    shape: Shape,
    files: Option<Files>,
    make: impl FnOnce(Kit) -> D + Send + 'static,
) -> Result<Disk, OpenError> {
    let inbox = Inbox::new(Arc::clone(&bell));
    let shared = Arc::new(Shared { inbox, bell, counters: Counters::default() });
    let (started, has_started) = mpsc::channel();
    let of_lane = Arc::clone(&shared);
    let thread = thread::Builder::new().name("blockyard".to_owned()).spawn(move || {
        let _closes = Closes(Arc::clone(&of_lane));
        let lane = match Lane::new(of_lane, shape, files, make) {
            Ok(lane) => lane,
            Err(error) => {
                drop(started.send(Err(error))); // the caller waits for it
                return Err(io::Error::other("the disk did not start"));
            }
        };
        drop(started.send(Ok(())));
        lane.run()
    });
    let thread = thread.map_err(OpenError::Start)?;
    match has_started.recv() {
        Ok(Ok(())) => Ok(Disk::new(Worker::thread(shared, thread), facts)),
        Ok(Err(error)) => Err(OpenError::Start(error)),
        Err(mpsc::RecvError) => {
            Err(OpenError::Start(io::Error::other("the disk's thread panicked while it started")))
        }
    }
}
