//! An open pool, and the worker that each thread has in it.

use crate::error::Failure;
use crate::seat;
use blockyard_btt::{Btt, Container, IoError, Worker};
use blockyard_pmem::{Durability, Image, ImageError, ImageMemory, ImageOptions, NewImage};
use core::cell::UnsafeCell;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// Threads that can have a worker of their own; others pass by.
const SEATS: usize = 64;

/// A worker that keeps what it works on.
type OwnWorker = Worker<Arc<Btt<ImageMemory>>, ImageMemory>;

/// A pool.
pub struct Pool {
    // Workers go before what they work on.
    workers: Box<[UnsafeCell<Option<OwnWorker>>]>,
    btt: Arc<Btt<ImageMemory>>,
}

// SAFETY: a worker is only reached by the thread that has its seat (`act`), or by who closes the pool, when
// no other thread is in a call; who has a seat got it under a lock from who had it before.
unsafe impl Sync for Pool {}
// SAFETY: as above. A worker that goes on to another thread is of one that ended, by way of the kernel, which
// leaves nothing of what that thread wrote back on its way.
unsafe impl Send for Pool {}

impl Pool {
    /// Opens a pool with blocks of `bytes`, or any if that is 0.
    pub(crate) fn open(path: &Path, bytes: u32) -> Result<Self, ImageError> {
        let options = options(path)?;
        let image = Image::identify(path, &options)?;
        let pool = Self::new(image.open(&options)?);
        if bytes != 0 && pool.btt.sector_bytes() != bytes {
            let why = format!("blocks have {} bytes, not {bytes}", pool.btt.sector_bytes());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        Ok(pool)
    }

    /// Makes one with blocks of `sector_bytes` in a new file of `bytes`, with these rights.
    pub(crate) fn create(
        path: &Path,
        sector_bytes: u32,
        bytes: u64,
        mode: libc::mode_t,
    ) -> Result<Self, Failure> {
        if bytes == 0 {
            return Err(Failure::argument(
                "a pool is made in a new file: remove the one that is there, and give a size",
            ));
        }
        let new = NewImage { bytes, sector_bytes, container: Container::Pool };
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let options = options(beside.unwrap_or(Path::new(".")))?;
        let pool = Self::new(Image::create(path, &new, &options)?);
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok(pool)
    }

    fn new(btt: Btt<ImageMemory>) -> Self {
        let workers = (0..SEATS).map(|_| UnsafeCell::new(None)).collect();
        Self { workers, btt: Arc::new(btt) }
    }

    /// The BTT in it.
    pub(crate) fn btt(&self) -> &Btt<ImageMemory> {
        &self.btt
    }

    /// Calls `act` with this thread's worker.
    pub(crate) fn act(
        &self,
        act: impl FnOnce(&mut OwnWorker) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        match seat::mine().and_then(|seat| self.workers.get(seat)) {
            Some(worker) => {
                // SAFETY: this thread has the seat, and `act` knows nothing of this pool.
                let worker = unsafe { &mut *worker.get() };
                act(worker.get_or_insert_with(|| Worker::new(Arc::clone(&self.btt))))
            }
            None => act(&mut Worker::without_own_lanes(Arc::clone(&self.btt))),
        }
    }
}

/// How a pool at `path` is kept: by cache lines where they are what is durable.
fn options(path: &Path) -> io::Result<ImageOptions> {
    let forced = std::env::var_os("PMEM_IS_PMEM_FORCE").is_some_and(|value| value == "1");
    let attributes = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS)?.stx_attributes;
    let direct = attributes.contains(StatxAttributes::DAX);
    let durability = if forced || direct { Durability::Memory } else { Durability::Disk };
    Ok(ImageOptions { durability, ..ImageOptions::default() })
}
