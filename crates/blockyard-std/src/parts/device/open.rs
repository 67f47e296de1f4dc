//! Opens files and block devices.
//!
//! # Rules (cited by name)
//!
//! - **[path-opened-once]** A path may name another file later. So it is opened once, and
//!   everything else is done to the descriptor that has the lock. The kernel claims a block device
//!   only when it is opened: it is opened once more, and refused if the path names another device
//!   then. The descriptors of flushes (`File::flushed_by`) are opened through the first one.

use super::file::{Damaged, File};
use super::overlap::Overlaps;
use super::{FILE_REQUEST_SECTORS, limits};
use crate::parts::ring::Backing;
use crate::parts::words::error_words;
use blockyard::limits::Limits;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time for which a killed process may still hold a file: its I/O ends some time after the
/// process.
const DYING: Duration = Duration::from_secs(2);
/// The largest block size for which direct I/O is used, in bytes.
const BLOCK_BYTES_MAX: u64 = 4096;
/// The numbers of the file systems whose direct writes obey `RWF_DSYNC`: ext2 to ext4, XFS, Btrfs,
/// F2FS and tmpfs.
const WITH_FUA: [rustix::fs::FsWord; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, TMPFS];
/// The number of tmpfs.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// The reason why a disk cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The file cannot be opened.
    Open(String, io::Error),
    /// The path names neither a regular file nor a block device.
    NotAFile(String),
    /// The disk has a size of 0 bytes.
    Empty(String),
    /// Another disk or program writes to the file, or another user, such as a mount, holds the
    /// block device exclusively.
    Busy(String),
    /// There is not enough memory for a disk of this many bytes.
    Memory(u64, io::Error),
    /// No queue can have these policies, for this reason: the elevator is your own and none is
    /// given ([`Options::elevator`](crate::Options::elevator)), it may hold no request, or a depth
    /// of kyber is 0.
    Policies(&'static str),
    /// There is no io_uring or no thread.
    Start(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(path, error) => write!(f, "{path}: {}", error_words(error)),
            Self::NotAFile(path) => write!(f, "{path}: neither a file nor a block device"),
            Self::Empty(path) => write!(f, "{path}: it is empty"),
            Self::Busy(path) => write!(f, "{path}: another disk, program or mount writes to it"),
            Self::Memory(bytes, error) => {
                write!(f, "no memory for a disk of {bytes} bytes: {}", error_words(error))
            }
            Self::Policies(why) => write!(f, "the design of the queue: {why}"),
            Self::Start(error) => write!(f, "the disk's thread: {}", error_words(error)),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Open(_, ref cause)
            | OpenError::Memory(_, ref cause)
            | OpenError::Start(ref cause) => Self::new(cause.kind(), error),
            OpenError::NotAFile(_) | OpenError::Empty(_) | OpenError::Policies(_) => {
                Self::new(ErrorKind::InvalidInput, error)
            }
            OpenError::Busy(_) => Self::new(ErrorKind::ResourceBusy, error),
        }
    }
}

/// Options for opening a file.
#[derive(Debug)]
pub struct How<'a> {
    /// Open the file for reading only.
    pub read_only: bool,
    /// Use the page cache even if direct I/O is possible.
    pub buffered: bool,
    /// The bells of the lanes, by number.
    pub bells: &'a [Arc<OwnedFd>],
    /// Claims the file, for writing if set, in addition to the lock that this module takes. A claim
    /// that is refused with [`ErrorKind::ResourceBusy`] is tried again for a while; other errors
    /// are ignored.
    pub claim: fn(&OwnedFd, bool) -> io::Result<()>,
    /// Receives reports of damage.
    pub damaged: Arc<dyn Damaged>,
}

impl File {
    /// Opens the file or block device at `path`, and waits for up to 2 s while another process
    /// holds it.
    ///
    /// # Errors
    ///
    /// Any [`OpenError`] but [`OpenError::Memory`].
    pub fn open(path: &Path, how: How<'_>) -> Result<Self, OpenError> {
        let How { read_only, buffered, bells, claim, damaged } = how;
        let name = path.display().to_string();
        let access = if read_only { OFlags::RDONLY } else { OFlags::RDWR } | OFlags::CLOEXEC;
        let refused = |error| match is_taken(error) {
            true => OpenError::Busy(name.clone()),
            false => OpenError::Open(name.clone(), error.into()),
        };
        let mut fd = open_with(path, access, OFlags::empty()).map_err(refused)?;
        let stat = rustix::fs::fstat(&fd).map_err(refused)?;
        let is_block_device = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => false,
            FileType::BlockDevice => true,
            _ => return Err(OpenError::NotAFile(name)),
        };
        // [edge-has-one-writer] holds only within one `File`, so no other process may write. A
        // block device is opened with O_EXCL, which mounts respect; its `flock` belongs to udev.
        if is_block_device && !read_only {
            // The kernel claims a block device only in `open`.
            let alone =
                retry_while_held(|| open_with(path, access, OFlags::EXCL)).map_err(refused)?;
            if rustix::fs::fstat(&alone).map_err(refused)?.st_rdev != stat.st_rdev {
                let words = "another device has taken its place";
                return Err(OpenError::Open(name, io::Error::other(words))); // [path-opened-once]
            }
            fd = alone;
        }
        // On a file system without locks, no other process can hold one.
        if let Err(error) = retry_while_held(|| match claim(&fd, !read_only) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => Err(Errno::BUSY),
            _ if read_only || is_block_device => Ok(()),
            _ => rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive),
        }) && is_taken(error)
        {
            return Err(refused(error));
        }
        // Its former owner may have changed the size until it let go of the lock.
        let size_bytes = rustix::fs::seek(&fd, SeekFrom::End(0)).map_err(refused)?;
        if size_bytes == 0 {
            return Err(OpenError::Empty(name));
        }
        let direct_block = if buffered { None } else { direct_block(&fd, is_block_device) };
        let direct_block = direct_block.filter(|_| set_direct(&fd, true).is_ok());
        // FUA is believed only of file systems that obey it. A block device has the number of the
        // file system that has its node.
        let system = rustix::fs::fstatfs(&fd).ok().filter(|_| !is_block_device);
        let knows_fua =
            is_block_device || system.is_some_and(|system| WITH_FUA.contains(&system.f_type));
        let lanes = if read_only { 0 } else { bells.len() };
        let flushed_by = (0..lanes).map(|_| open_again(&fd, path).map(Arc::new));
        let flushed_by = flushed_by.collect::<Result<_, _>>().map_err(refused)?;
        let mut file = Self {
            fd: Arc::new(fd),
            flushed_by,
            block_bytes: 1,
            direct_block,
            size_bytes,
            is_block_device,
            is_in_memory: system.is_some_and(|system| system.f_type == TMPFS),
            knows_fua,
            has_fua: true,
            overlaps: Overlaps::new(bells),
            has_lost_writes: AtomicBool::new(false),
            damaged,
        };
        file.fit_size();
        file.set_direct().map_err(refused)?;
        Ok(file)
    }

    /// Returns the same open file as a disk of another size, for the lanes with these bells. The
    /// file itself changes with [`set_len`](Self::set_len) and [`set_direct`](Self::set_direct)
    /// ([path-opened-once]).
    #[must_use]
    pub fn resized(
        &self,
        size_bytes: u64,
        bells: &[Arc<OwnedFd>],
        damaged: Arc<dyn Damaged>,
    ) -> Self {
        let mut file = Self {
            fd: Arc::clone(&self.fd),
            flushed_by: self.flushed_by.clone(),
            size_bytes,
            overlaps: Overlaps::new(bells),
            has_lost_writes: AtomicBool::new(self.has_lost_writes.load(Ordering::SeqCst)),
            damaged,
            ..*self
        };
        file.fit_size();
        file
    }

    /// Returns where the data is.
    #[must_use]
    pub const fn backing(&self) -> Backing {
        match (self.is_in_memory, self.block_bytes) {
            (true, _) => Backing::Memory,
            (false, 1) => Backing::PageCache,
            (false, _) => Backing::Disk,
        }
    }

    /// Chooses direct I/O if the disk has whole blocks.
    fn fit_size(&mut self) {
        let direct = self.direct_block.filter(|block| self.size_bytes.is_multiple_of(*block));
        self.block_bytes = direct.unwrap_or(1);
        self.has_fua = self.block_bytes == 1 || self.knows_fua;
    }

    /// Makes the descriptor do direct or buffered I/O, as this disk needs. No I/O may be in flight.
    ///
    /// # Errors
    ///
    /// The file system refuses direct I/O.
    pub fn set_direct(&self) -> rustix::io::Result<()> {
        set_direct(&self.fd, self.block_bytes > 1)
    }

    /// Gives the file a length in bytes.
    ///
    /// # Errors
    ///
    /// The file system refuses it. The length is then as before.
    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.fd, bytes)?)
    }

    /// Returns the limits of the file's device.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            write_cache: true,
            fua: self.has_fua,
            ..limits(self.size_bytes, self.block_bytes, FILE_REQUEST_SECTORS)
        }
    }

    /// Returns the length in bytes of the run of data or hole at `offset`, and whether it is data.
    pub fn run_at(&self, offset: u64) -> (u64, bool) {
        let to_end = self.size_bytes - offset;
        if self.is_block_device {
            return (to_end, true);
        }
        match rustix::fs::seek(&self.fd, SeekFrom::Data(offset)) {
            Ok(data) if data > offset => ((data - offset).min(to_end), false),
            Ok(_) => match rustix::fs::seek(&self.fd, SeekFrom::Hole(offset)) {
                Ok(hole) if hole > offset => ((hole - offset).min(to_end), true),
                _ => (to_end, true),
            },
            // A hole up to the end of the file. If the file was cut short, report data: reads
            // beyond its end fail.
            Err(Errno::NXIO) => (to_end, self.end_bytes() < self.size_bytes),
            Err(_) => (to_end, true), // the file system reports no holes
        }
    }

    /// Returns the present size of the file or block device, or 0 if it cannot be read: the size is
    /// only reported. A seek finds the end of both; `fstat` gives no size of a block device.
    pub fn end_bytes(&self) -> u64 {
        rustix::fs::seek(&self.fd, SeekFrom::End(0)).unwrap_or(0)
    }

    /// Returns whether a file is now shorter than the disk and than `end`. Does not ask a file
    /// server.
    pub(super) fn ends_before(&self, end: u64) -> bool {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        !self.is_block_device
            && rustix::fs::statx(&self.fd, "", flags, StatxFlags::SIZE)
                .is_ok_and(|stat| stat.stx_size < end.min(self.size_bytes))
    }

    /// Counts and reports an access beyond the present end of the file.
    #[cold]
    pub(super) fn note_cut(&self) {
        let disk_bytes = self.size_bytes;
        let file_bytes = self.end_bytes();
        self.damaged.cut_short(disk_bytes, file_bytes);
    }
}

/// Opens `path`. Without O_NONBLOCK, opening a pipe would wait for its other end.
fn open_with(path: &Path, access: OFlags, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, access | OFlags::NONBLOCK | flags, Mode::empty())
}

/// Opens once more, for reading, the file at `path` that `fd` is.
///
/// # Errors
///
/// The system's. [`Errno::STALE`]: the path names another file by now, and there is no `/proc` in
/// which the file could be found ([path-opened-once]).
fn open_again(fd: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let in_proc = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let access = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut refused = Errno::STALE;
    for path in [Path::new(&in_proc), path] {
        let again = match open_with(path, access, OFlags::empty()) {
            Ok(again) => again,
            Err(error) => {
                refused = error;
                continue;
            }
        };
        let [stat, stat_again] = [rustix::fs::fstat(fd)?, rustix::fs::fstat(&again)?];
        if (stat.st_dev, stat.st_ino) == (stat_again.st_dev, stat_again.st_ino) {
            return Ok(again);
        }
        refused = Errno::STALE;
    }
    Err(refused)
}

/// Returns the block size of direct I/O to `fd` in bytes, or `None` if direct I/O is impossible or
/// its blocks are too large.
fn direct_block(fd: &OwnedFd, is_block_device: bool) -> Option<u64> {
    let stat = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let known = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let block = match known {
        // Memory needs no more than a block nearly everywhere. Where it does, larger blocks serve
        // both.
        true => u64::from(stat.stx_dio_offset_align.max(stat.stx_dio_mem_align)),
        // Linux before 6.1 does not report it: assume a size that nearly every device accepts.
        false if is_block_device => BLOCK_BYTES_MAX,
        false => u64::from(stat.stx_blksize).min(BLOCK_BYTES_MAX),
    };
    (block.is_power_of_two() && block <= BLOCK_BYTES_MAX).then_some(block.max(512))
}

/// Makes `fd` do direct or buffered I/O, and wait as a file does.
fn set_direct(fd: &OwnedFd, direct: bool) -> rustix::io::Result<()> {
    rustix::fs::fcntl_setfl(fd, if direct { OFlags::DIRECT } else { OFlags::empty() })
}

fn is_taken(error: Errno) -> bool {
    matches!(error, Errno::BUSY | Errno::WOULDBLOCK)
}

/// Repeats `take` while another process holds the file, for up to [`DYING`].
fn retry_while_held<T>(mut take: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    let begun = Instant::now();
    loop {
        match take() {
            Err(error) if is_taken(error) && begun.elapsed() < DYING => {
                std::thread::sleep(Duration::from_millis(5));
            }
            taken => return taken,
        }
    }
}
