//! Opening what a disk is kept in.

use super::btt::{Table, Wanted};
use super::error::OpenError;
use super::file::File;
use super::limited::SharedDepth;
use super::live::Timing;
use super::memory::Memory;
use super::overlap::Overlaps;
use super::{Damage, Disk, DiskConfig, FaultCounts, Kept, NULL_READ_BYTES_MAX, Source};
use crate::depth::{DEPTH_BYTES_MAX, Depth, SHARING_LANES_MAX};
use crate::event::{Event, Harm};
use crate::job::SECTOR;
use crate::map::Map;
use core::sync::atomic::AtomicBool;
use rustix::fs::{Advice, AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How long who was killed may have a file yet: its I/O ends some time after it.
const DYING: Duration = Duration::from_secs(2);
/// Largest block of direct I/O that is worth it, in bytes.
const BLOCK_BYTES_MAX: u64 = 4096;
/// The number of FUSE among file systems.
const FUSE: rustix::fs::FsWord = 0x6573_5546;

impl Disk {
    /// Opens what `config` says, for as many lanes as there are bells to wake them. Damage is reported to `events`.
    ///
    /// # Errors
    ///
    /// Each [`OpenError`].
    pub(crate) fn open(
        config: &DiskConfig,
        bells: &[Arc<OwnedFd>],
        events: Option<&mpsc::SyncSender<Event>>,
    ) -> Result<Self, OpenError> {
        let lanes = bells.len();
        if lanes > 1 && !config.layers.is_empty() {
            return Err(OpenError::Lanes(lanes));
        }
        let modelled = config.layers.model.as_ref().map_or(u16::MAX, |model| model.depth());
        let depth = config.depth.min(modelled);
        let count = u32::try_from(lanes).ok().filter(|lanes| *lanes <= SHARING_LANES_MAX);
        let Some(count) = count.filter(|_| usize::from(depth) >= lanes) else {
            return Err(OpenError::Depth { depth, lanes });
        };
        let damage = Arc::new(Damage::new(&config.name, events));
        let (size_bytes, kept) = match &config.source {
            Source::Memory { bytes: 0, .. } => return Err(OpenError::Empty("memory".to_owned())),
            Source::Null { bytes: 0 } => return Err(OpenError::Empty("null".to_owned())),
            Source::Memory { bytes, huge_pages } => {
                let memory = Memory::new(*bytes, *huge_pages)
                    .map_err(|error| OpenError::Memory(*bytes, error))?;
                (*bytes, Kept::Memory(Arc::new(memory)))
            }
            Source::Null { bytes } => {
                let zeroes = Map::new(NULL_READ_BYTES_MAX)
                    .map_err(|error| OpenError::Memory(*bytes, error))?;
                (*bytes, Kept::Null(Arc::new(zeroes)))
            }
            Source::Btt { path, durability, container, force } => {
                let (durability, container, force) = (*durability, *container, *force);
                let read_only = config.read_only;
                let wanted = Wanted { durability, container, read_only, force, lanes };
                let table = Table::open(path, wanted, &damage)?;
                (table.size_bytes(), Kept::Btt(Arc::new(table)))
            }
            Source::File { path, buffered } => {
                let file = File::open(path, config.read_only, *buffered, bells, &damage)?;
                // Of a model the depth is its own, in requests.
                let is_modelled = config.layers.model.is_some();
                let bytes = if is_modelled { DEPTH_BYTES_MAX } else { config.depth_bytes };
                let depth = Depth::new(u64::from(depth), bytes, count);
                let shared = SharedDepth { depth, bells: bells.to_vec() };
                (file.size_bytes, Kept::File(Arc::new(file), Arc::new(shared)))
            }
        };
        if let Some(model) = &config.layers.model {
            let most = model.limits().capacity_sectors.saturating_mul(SECTOR);
            if size_bytes > most {
                return Err(OpenError::TooLarge { bytes: size_bytes, most });
            }
        }
        let disk = Self {
            name: config.name.clone(),
            size_bytes,
            read_only: config.read_only,
            policies: config.policies,
            depth,
            layers: config.layers.clone(),
            timing: Arc::new(Timing::default()),
            faults: Arc::new(FaultCounts::new(&config.layers.faults)),
            damage,
            kept,
        };
        match disk.layers.impossible_fault(&disk.limits(), disk.read_only) {
            None => Ok(disk),
            Some((rule, why)) => {
                Err(OpenError::Fault { rule: rule.to_owned(), why, disk: disk.name.clone() })
            }
        }
    }
}

impl File {
    fn open(
        path: &Path,
        read_only: bool,
        buffered: bool,
        bells: &[Arc<OwnedFd>],
        damage: &Arc<Damage>,
    ) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        let access = if read_only { OFlags::RDONLY } else { OFlags::RDWR } | OFlags::CLOEXEC;
        let open = |flags| rustix::fs::open(path, access | flags, Mode::empty());
        let refused = |error| match is_taken(error) {
            true => OpenError::Busy(name.clone()),
            false => OpenError::Open(name.clone(), error.into()),
        };
        // A pipe would wait for somebody at its other end.
        let fd = open(OFlags::NONBLOCK).map_err(refused)?;
        let stat = rustix::fs::fstat(&fd).map_err(refused)?;
        let is_block_device = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => false,
            FileType::BlockDevice => true,
            _ => return Err(OpenError::NotAFile(name)),
        };
        let size_bytes = rustix::fs::seek(&fd, SeekFrom::End(0)).map_err(refused)?;
        if size_bytes == 0 {
            return Err(OpenError::Empty(name));
        }
        let block_bytes = if buffered { None } else { direct_block(&fd, is_block_device) };
        let block_bytes = block_bytes.filter(|block| size_bytes.is_multiple_of(*block));
        // Who writes parts of blocks knows of the writes of one `File` only ([edge-has-one-writer]). Devices have a way of
        // their own to be one's alone, which mounting respects; their locks are udev's.
        let alone = if is_block_device && !read_only { OFlags::EXCL } else { OFlags::empty() };
        let open_alone = |flags| patiently(|| open(alone | flags));
        let direct = block_bytes.map(|block| open_alone(OFlags::DIRECT).map(|fd| (fd, block)));
        let opened = match direct {
            Some(opened @ (Ok(_) | Err(Errno::BUSY))) => opened,
            _ => open_alone(OFlags::empty()).map(|fd| (fd, 1)),
        };
        let (fd, block_bytes) = opened.map_err(refused)?;
        if !is_block_device && !read_only {
            let lock = || rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
            // Where a file system has no locks, nobody else can have one.
            if patiently(lock) == Err(Errno::WOULDBLOCK) {
                return Err(refused(Errno::WOULDBLOCK));
            }
        }
        let is_fuse = rustix::fs::fstatfs(&fd).map_or(true, |system| system.f_type == FUSE);
        let has_fua = block_bytes == 1 || !is_fuse; // [fuse-has-no-fua]
        Ok(Self {
            fd: Arc::new(fd),
            block_bytes,
            size_bytes,
            is_block_device,
            has_fua,
            overlaps: Overlaps::new(bells),
            has_lost_writes: AtomicBool::new(false),
            damage: Arc::clone(damage),
        })
    }

    /// How many bytes from `offset` on are alike, and whether they are data.
    pub(crate) fn run_at(&self, offset: u64) -> (u64, bool) {
        let to_end = self.size_bytes - offset;
        let seek = |from| rustix::fs::seek(&self.fd, from);
        if self.is_block_device {
            return (to_end, true);
        }
        match seek(SeekFrom::Data(offset)) {
            Ok(data) if data > offset => ((data - offset).min(to_end), false),
            Ok(_) => match seek(SeekFrom::Hole(offset)) {
                Ok(hole) if hole > offset => ((hole - offset).min(to_end), true),
                _ => (to_end, true),
            },
            // A hole up to the end of the file. Reads beyond an end that was cut off fail.
            Err(Errno::NXIO) => (to_end, self.end_bytes() < self.size_bytes),
            Err(_) => (to_end, true), // nobody knows
        }
    }

    /// The size that the file has now.
    fn end_bytes(&self) -> u64 {
        rustix::fs::seek(&self.fd, SeekFrom::End(0)).unwrap_or(0)
    }

    /// A read found nothing beyond the end of the file.
    #[cold]
    pub(super) fn note_cut(&self) {
        let (disk_bytes, file_bytes) = (self.size_bytes, self.end_bytes());
        self.damage.note(Harm::CutShort { disk_bytes, file_bytes });
    }

    /// Reads ahead, through the page cache.
    pub(crate) fn cache(&self, offset: u64, len: u64) {
        if self.block_bytes == 1 {
            // Advice: what cannot be followed is no failure.
            let _ = rustix::fs::fadvise(&self.fd, offset, NonZeroU64::new(len), Advice::WillNeed);
        }
    }
}

/// What direct I/O of `fd` takes multiples of, if it is possible.
fn direct_block(fd: &OwnedFd, is_block_device: bool) -> Option<u64> {
    let stat = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let known = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let block = match known {
        true => u64::from(stat.stx_dio_offset_align),
        // Linux before 6.1 does not say: what nearly all take.
        false if is_block_device => BLOCK_BYTES_MAX,
        false => u64::from(stat.stx_blksize).min(BLOCK_BYTES_MAX),
    };
    (block.is_power_of_two() && block <= BLOCK_BYTES_MAX).then_some(block.max(512))
}

/// Whether it is an error of who takes what another one has to itself.
fn is_taken(error: Errno) -> bool {
    matches!(error, Errno::BUSY | Errno::WOULDBLOCK)
}

/// Takes what somebody who is dying may have yet.
fn patiently<T>(mut take: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
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
