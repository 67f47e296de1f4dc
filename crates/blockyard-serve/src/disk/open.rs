//! Opens the memory, file or BTT that holds the data of a disk.

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
use core::sync::atomic::{AtomicBool, AtomicUsize};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The time for which a killed process may still hold a file: its I/O ends some time after the process.
const DYING: Duration = Duration::from_secs(2);
/// The largest block size for which direct I/O is used, in bytes.
const BLOCK_BYTES_MAX: u64 = 4096;
/// The numbers of the file systems whose direct writes obey `RWF_DSYNC`: ext2 to ext4, XFS, Btrfs, F2FS and tmpfs.
const WITH_FUA: [rustix::fs::FsWord; 5] =
    [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

impl Disk {
    /// Opens the disk of `config` for the lanes with these bells. Damage is reported to `events`.
    ///
    /// # Errors
    ///
    /// Any [`OpenError`].
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
                // A model limits the depth itself, in requests.
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
            faults: Arc::new(FaultCounts::new(config.layers.faults.as_deref().unwrap_or_default())),
            damage,
            admission: config.admission.clone(),
            clients: AtomicUsize::new(0),
            kept,
        };
        match disk.impossible_fault(disk.layers.faults.as_deref().unwrap_or_default()) {
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
        // Without O_NONBLOCK, opening a pipe would wait for its other end.
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
        // [edge-has-one-writer] holds only within one `File`, so no other process may write. A block device is opened
        // with O_EXCL, which mounts respect; its `flock` belongs to udev.
        let alone = if is_block_device && !read_only { OFlags::EXCL } else { OFlags::empty() };
        let open_alone = |flags| patiently(|| open(alone | flags));
        let direct = block_bytes.map(|block| open_alone(OFlags::DIRECT).map(|fd| (fd, block)));
        let opened = match direct {
            Some(opened @ (Ok(_) | Err(Errno::BUSY))) => opened,
            _ => open_alone(OFlags::empty()).map(|fd| (fd, 1)),
        };
        let (fd, block_bytes) = opened.map_err(refused)?;
        let is_written_elsewhere = read_only && blockyard_pmem::is_written(&fd);
        let lock = || match read_only || is_block_device {
            true => Ok(()),
            false => rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive),
        };
        let claim = || match blockyard_pmem::claim(&fd, !read_only) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => Err(Errno::BUSY),
            _ => lock(),
        };
        // On a file system without locks, no other process can hold one.
        if let Err(error) = patiently(claim)
            && is_taken(error)
        {
            return Err(refused(error));
        }
        // [fua-needs-a-known-system]. A block device has the number of the file system that has its node.
        let knows_fua = || {
            let system = rustix::fs::fstatfs(&fd);
            is_block_device || system.is_ok_and(|system| WITH_FUA.contains(&system.f_type))
        };
        let has_fua = block_bytes == 1 || knows_fua();
        Ok(Self {
            fd: Arc::new(fd),
            block_bytes,
            size_bytes,
            is_block_device,
            is_written_elsewhere,
            has_fua,
            overlaps: Overlaps::new(bells),
            has_lost_writes: AtomicBool::new(false),
            damage: Arc::clone(damage),
        })
    }

    /// Returns the length in bytes of the run of data or hole at `offset`, and whether it is data.
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
            // A hole up to the end of the file. If the file was cut short, report data: reads beyond its end fail.
            Err(Errno::NXIO) => (to_end, self.end_bytes() < self.size_bytes),
            Err(_) => (to_end, true), // the file system reports no holes
        }
    }

    /// Returns the present size of the file or block device, or 0 if it cannot be read: the size is only reported.
    /// A seek finds the end of both; `fstat` gives no size of a block device.
    fn end_bytes(&self) -> u64 {
        rustix::fs::seek(&self.fd, SeekFrom::End(0)).unwrap_or(0)
    }

    /// Returns whether a file is now shorter than the disk and than `end`. Does not ask a file server.
    pub(super) fn ends_before(&self, end: u64) -> bool {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        !self.is_block_device
            && rustix::fs::statx(&self.fd, "", flags, StatxFlags::SIZE)
                .is_ok_and(|stat| stat.stx_size < end.min(self.size_bytes))
    }

    /// Counts and reports an access beyond the present end of the file.
    #[cold]
    pub(super) fn note_cut(&self) {
        let (disk_bytes, file_bytes) = (self.size_bytes, self.end_bytes());
        self.damage.note(Harm::CutShort { disk_bytes, file_bytes });
    }
}

/// Returns the block size of direct I/O to `fd` in bytes, or `None` if direct I/O is impossible or its blocks are too
/// large.
fn direct_block(fd: &OwnedFd, is_block_device: bool) -> Option<u64> {
    let stat = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let known = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let block = match known {
        true => u64::from(stat.stx_dio_offset_align),
        // Linux before 6.1 does not report it: assume a size that nearly every device accepts.
        false if is_block_device => BLOCK_BYTES_MAX,
        false => u64::from(stat.stx_blksize).min(BLOCK_BYTES_MAX),
    };
    (block.is_power_of_two() && block <= BLOCK_BYTES_MAX).then_some(block.max(512))
}

fn is_taken(error: Errno) -> bool {
    matches!(error, Errno::BUSY | Errno::WOULDBLOCK)
}

/// Repeats `take` while another process holds the file, for up to [`DYING`].
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
