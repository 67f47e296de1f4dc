//! Operations on files that mappings and system calls share: locks, lengths, space, and the meaning
//! of errors.

use crate::claim::{busy, claim, is_written, release};
use blockyard_btt::MediaError;
use rustix::fs::{
    AtFlags, FallocateFlags, FileType, FlockOperation, SeekFrom, StatxFlags, fallocate, flock,
    fstat, fstatvfs, seek, statx,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

/// The unit of the blocks that `stat` counts.
const STAT_BLOCK_BYTES: u64 = 512;

/// Locks a file for one writer or several readers, until [`unlock`].
///
/// # Errors
///
/// Another process has the file open.
pub(crate) fn lock(file: &File, writable: bool) -> io::Result<()> {
    let lock = match writable {
        true => FlockOperation::NonBlockingLockExclusive,
        false => FlockOperation::NonBlockingLockShared,
    };
    flock(file, lock).map_err(|error| match io::Error::from(error) {
        error if error.kind() == io::ErrorKind::WouldBlock => busy(),
        error => error,
    })?;
    claim(file, writable)?;
    // A BTT cannot be read while another process writes it.
    match !writable && is_written(file) {
        true => Err(busy()),
        false => Ok(()),
    }
}

/// Ends what [`lock`] began, although a copy of the file's descriptor may still be open.
pub(crate) fn unlock(file: &File) {
    release(file);
    let _ = flock(file, FlockOperation::Unlock); // it fails where there are no locks
}

/// Returns the bytes of a file or block device.
///
/// # Errors
///
/// The file has no end.
pub(crate) fn len(file: &File) -> io::Result<u64> {
    Ok(seek(file, SeekFrom::End(0))?)
}

/// Whether a file still has its first `len` bytes. Only regular files can be cut short. Does not
/// ask a file server.
pub(crate) fn is_whole(file: &File, len: u64) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(file, "", flags, StatxFlags::TYPE | StatxFlags::SIZE).is_ok_and(|now| {
        !(FileType::from_raw_mode(now.stx_mode.into()).is_file() && now.stx_size < len)
    })
}

/// Returns the number of bytes at `at` that are a hole of a file of `len` bytes. Without reading,
/// nothing is known of other bytes, of a file system without holes, and of a block device.
#[must_use]
pub fn hole(file: &File, at: u64, len: u64) -> u64 {
    debug_assert!(at <= len, "a position within the file");
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.clamp(at, len) - at,
        // No data follow: in a file that is still whole, because what another process cut off is no
        // hole.
        Err(Errno::NXIO) if file.metadata().is_ok_and(|now| now.len() >= len) => len - at,
        Err(_) => 0,
    }
}

/// Allocates the space for `len` bytes at `at`, so that no store meets a hole that cannot be
/// filled.
///
/// # Errors
///
/// The space is not available.
pub(crate) fn take_room(file: &File, at: u64, len: u64) -> io::Result<()> {
    // Otherwise some file systems would give all their space to the file before they find that it
    // is too little. What is no file has no space to take, and a file system without blocks does
    // not count them.
    let space = fstatvfs(file)?;
    let file_now = fstat(file)?;
    let has = file_now.st_blocks.cast_unsigned() * STAT_BLOCK_BYTES;
    let is_counted = FileType::from_raw_mode(file_now.st_mode).is_file() && space.f_blocks > 0;
    if is_counted && len.saturating_sub(has) / space.f_frsize.max(1) > space.f_bfree {
        return Err(Errno::NOSPC.into());
    }
    match fallocate(file, FallocateFlags::empty(), at, len) {
        // Without this call, a file system has no holes that matter, and a block device has none.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The synchronisations of a file so far. An error is permanent: the kernel reports once that it
/// has lost writes, and may then have forgotten them.
#[derive(Debug, Default)]
pub(crate) struct Synced {
    has_failed: Mutex<bool>,
}

impl Synced {
    /// Synchronises the file by `sync`.
    ///
    /// # Errors
    ///
    /// This synchronisation failed, or an earlier one.
    pub(crate) fn by(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        // One at a time. Of two calls at once, the kernel tells one that writes were lost, and the
        // other could end well before the first has noted it.
        let mut has_failed = self.has_failed.lock().unwrap_or_else(PoisonError::into_inner);
        let done = sync();
        if *has_failed {
            return Err(io::Error::other("an earlier synchronisation of the file failed"));
        }
        *has_failed = done.is_err();
        done
    }
}

/// Translates an I/O error to an error of the medium.
pub(crate) fn media(error: &io::Error) -> MediaError {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        // Too large: beyond RLIMIT_FSIZE.
        StorageFull | QuotaExceeded | FileTooLarge => MediaError::NoSpace,
        _ => MediaError::Failed,
    }
}

/// Translates an error of a read to an error of the medium. EIO concerns only these bytes. Missing
/// bytes, because another process truncated the file, are a failure of the whole file.
pub(crate) fn media_read(error: &io::Error) -> MediaError {
    match Errno::from_io_error(error) {
        Some(Errno::IO | Errno::NODATA) => MediaError::Bad,
        _ => media(error),
    }
}

/// Lets another thread work. `turn` counts the looks at what this thread waits for.
pub(crate) fn relax(turn: u32) {
    // The other thread may be waiting for this processor.
    match turn {
        0..64 => core::hint::spin_loop(),
        _ => std::thread::yield_now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn lost_bytes_are_distinguished_from_other_errors() {
        // A process has no memory at address 0, and this file reports that with EIO, as a disk
        // would.
        let memory = File::open("/proc/self/mem").expect("memory of this process");
        let error = memory.read_exact_at(&mut [0], 0).expect_err("unmapped memory");
        assert_eq!((media_read(&error), media(&error)), (MediaError::Bad, MediaError::Failed));
        let empty = File::open("/dev/null").expect("null device");
        let error = empty.read_exact_at(&mut [0], 0).expect_err("empty file");
        assert_eq!(media_read(&error), MediaError::Failed);
        for full in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
            assert_eq!(media(&full.into()), MediaError::NoSpace);
        }
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("full device");
        let error = full.write_all_at(&[0], 0).expect_err("full device");
        assert_eq!(media(&error), MediaError::NoSpace);
    }
}
