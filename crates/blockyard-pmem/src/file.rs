//! What mappings and calls need of a file alike: it is locked, its length, and what its errors mean.

use blockyard_btt::MediaError;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};

/// Locks a file, for one who writes or many who read, until it is closed.
///
/// # Errors
///
/// Somebody else has it.
pub(crate) fn lock(file: &File, writable: bool) -> io::Result<()> {
    let lock = match writable {
        true => FlockOperation::NonBlockingLockExclusive,
        false => FlockOperation::NonBlockingLockShared,
    };
    flock(file, lock).map_err(|error| match io::Error::from(error) {
        error if error.kind() == io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::ResourceBusy, "somebody else has it open")
        }
        error => error,
    })
}

/// The bytes of a file or block device.
///
/// # Errors
///
/// It has no end.
pub(crate) fn len(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Takes the room for `len` bytes at `at`, so that no hole is left there that could not be filled.
///
/// # Errors
///
/// There is not enough.
pub(crate) fn take_room(file: &File, at: u64, len: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), at, len) {
        // A file system without this call has no holes to speak of, and a block device none at all.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What the medium did, as a BTT wants to hear it.
pub(crate) fn media(error: &io::Error) -> MediaError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => MediaError::NoSpace,
        _ => MediaError::Failed,
    }
}

/// What the medium did in a read: an error of input is of these bytes. That there are none any more, as
/// somebody cut off the file, is an error of the file.
pub(crate) fn media_read(error: &io::Error) -> MediaError {
    match Errno::from_io_error(error) {
        Some(Errno::IO | Errno::NODATA) => MediaError::Bad,
        _ => media(error),
    }
}

/// Lets another thread do what is waited for; `turn` counts the looks.
pub(crate) fn relax(turn: u32) {
    // Whoever is waited for may be waiting for this processor.
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
    fn bytes_that_a_medium_lost_are_told_from_other_errors() {
        // A process has no memory at its first byte, and this file says so as a disk would.
        let memory = File::open("/proc/self/mem").expect("it is there");
        let error = memory.read_exact_at(&mut [0], 0).expect_err("nothing is there");
        assert_eq!((media_read(&error), media(&error)), (MediaError::Bad, MediaError::Failed));
        let empty = File::open("/dev/null").expect("it is there");
        let error = empty.read_exact_at(&mut [0], 0).expect_err("nothing is there");
        assert_eq!(media_read(&error), MediaError::Failed);
        for full in [Errno::NOSPC, Errno::DQUOT] {
            assert_eq!(media(&full.into()), MediaError::NoSpace);
        }
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let error = full.write_all_at(&[0], 0).expect_err("it is full");
        assert_eq!(media(&error), MediaError::NoSpace);
    }
}
