//! An open pool, and a worker for each of its threads.

use crate::error::Failure;
use crate::{seat, setting};
use blockyard_btt::{Btt, Container, IoError, Policy, Worker};
use blockyard_pmem::{Durability, Image, ImageError, ImageMemory, ImageOptions, NewImage, PoolSet};
use core::cell::UnsafeCell;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statvfs, statx};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of threads that can have a worker of their own. Others make one for each call, which
/// is many times slower.
const SEATS: usize = 256;

/// The number of threads that can have lanes to themselves, the most there are. Threads with lanes
/// of their own wait for a disk together, and there may be far more of them than processors.
const THREADS: u32 = 96;

/// A worker that keeps its BTT open.
type OwnWorker = Worker<Arc<Btt<ImageMemory>>, ImageMemory>;

/// An open pool.
pub struct Pool {
    // Workers are dropped before the BTT.
    workers: Box<[UnsafeCell<Option<OwnWorker>>]>,
    btt: Arc<Btt<ImageMemory>>,
    path: PathBuf,
}

// SAFETY: a worker is used only by the thread that has its seat (`act`), or by the one that closes
// the pool, when no other thread is in a call. A thread gets a seat from its previous owner under a
// lock.
unsafe impl Sync for Pool {}
// SAFETY: as above. A worker moves to another thread only after its thread ended. The end passes
// through the kernel, which completes all write-backs of that thread.
unsafe impl Send for Pool {}

impl Pool {
    /// Opens a pool with blocks of `bytes`, or of any size if `bytes` is 0.
    pub(crate) fn open(path: &Path, bytes: u32) -> Result<Self, ImageError> {
        let mut options = options(path)?;
        if setting::copies_on_write() {
            options.durability = Durability::Discarded;
        }
        let image = Image::identify(path, &options)?;
        let pool = Self::new(image.open(&options)?, path);
        if bytes != 0 && pool.btt.sector_bytes() != bytes {
            let why = format!("the blocks have {} bytes, not {bytes}", pool.btt.sector_bytes());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        Ok(pool)
    }

    /// Creates a pool with blocks of `sector_bytes` in a new file of `bytes`, with permissions
    /// `mode`; or, if `bytes` is 0, in an existing file, which keeps its size and permissions, or
    /// in the parts of a pool set, of which new ones get the permissions.
    pub(crate) fn create(
        path: &Path,
        sector_bytes: u32,
        bytes: u64,
        mode: libc::mode_t,
    ) -> Result<Self, Failure> {
        if sector_bytes == 0 {
            return Err(Failure::argument("a block has at least one byte"));
        }
        if bytes == 0 {
            let allocated = setting::allocates();
            let options = ImageOptions { allocated, mode: Some(mode), ..options(path)? };
            let made = Image::create_in(path, sector_bytes, Container::Pool, &options)?;
            return Ok(Self::new(made, path));
        }
        let new = NewImage { bytes, sector_bytes, container: Container::Pool };
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let options =
            ImageOptions { mode: Some(mode), ..options(beside.unwrap_or(Path::new(".")))? };
        let folder = statvfs(beside.unwrap_or(Path::new("."))).map_err(io::Error::from)?;
        if bytes / folder.f_frsize.max(1) > folder.f_bfree {
            return Err(Failure::new(libc::ENOSPC, "the file system has no space for the pool"));
        }
        Ok(Self::new(Image::create(path, &new, &options)?, path))
    }

    fn new(btt: Btt<ImageMemory>, path: &Path) -> Self {
        let workers = (0..SEATS).map(|_| UnsafeCell::new(None)).collect();
        Self { workers, btt: Arc::new(btt), path: path.to_owned() }
    }

    /// The file of the pool.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The BTT of the pool.
    pub(crate) fn btt(&self) -> &Btt<ImageMemory> {
        &self.btt
    }

    /// Calls `act` with this thread's worker.
    pub(crate) fn act(
        &self,
        act: impl FnOnce(&mut OwnWorker) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        match seat::thread_number().and_then(|seat| self.workers.get(seat)) {
            Some(worker) => {
                // SAFETY: this thread has the seat, and `act` does not use the pool.
                let worker = unsafe { &mut *worker.get() };
                act(worker.get_or_insert_with(|| Worker::new(Arc::clone(&self.btt))))
            }
            None => act(&mut Worker::without_own_lanes(Arc::clone(&self.btt))),
        }
    }
}

/// Returns the options for a pool or pool set at `path`: cache lines are written back on persistent
/// memory. A new pool gets all its space.
fn options(path: &Path) -> Result<ImageOptions, ImageError> {
    let forced = std::env::var_os("PMEM_IS_PMEM_FORCE").is_some_and(|value| value == "1");
    let durability =
        if forced || is_direct_image(path)? { Durability::Memory } else { Durability::Disk };
    let policy = Policy::for_threads(THREADS);
    Ok(ImageOptions { durability, policy, allocated: true, ..ImageOptions::default() })
}

/// Returns whether processors reach the whole image past the page cache.
fn is_direct_image(path: &Path) -> Result<bool, ImageError> {
    match PoolSet::read(path)?.transpose()? {
        None => is_direct(path),
        Some(set) => set.parts.iter().try_fold(true, |direct, part| {
            let folder = part.path.parent().unwrap_or(&part.path);
            Ok(direct && is_direct(if part.path.exists() { &part.path } else { folder })?)
        }),
    }
}

/// Whether a file or folder is on persistent memory that is mapped directly.
fn is_direct(path: &Path) -> Result<bool, ImageError> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS);
    let found = found.map_err(io::Error::from)?;
    Ok(found.stx_attributes.contains(StatxAttributes::DAX))
}
