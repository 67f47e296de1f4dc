//! Claims on a file that QEMU honours: record locks on single bytes, which belong to the open file.
//!
//! A program that uses a permission holds a read lock on byte 100 plus the number of the
//! permission. A program that grants others no such permission holds a read lock on byte 200 plus
//! its number. So a conflict is a lock of somebody else at the other byte. The numbers are those of
//! QEMU's file driver: 0 is consistent reads, 1 is writes, 3 is changes of the size.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::io;
use std::os::fd::AsFd;

const READS: i64 = 0;
const WRITES: i64 = 1;
const RESIZES: i64 = 3;
/// The byte of permission 0, for a program that uses it.
const USED: i64 = 100;
/// The byte of permission 0, for a program that denies it to others.
const DENIED: i64 = 200;

/// Claims a file: for reading, along with writers, or for writing, along with readers but no other
/// writer. The claim ends when the file is closed.
///
/// # Errors
///
/// [`io::ErrorKind::ResourceBusy`]: another program may write the file, or lets nobody else write
/// it.
pub fn claim(file: impl AsFd, writable: bool) -> io::Result<()> {
    let claimed = try_claim(&file, writable);
    if claimed.is_err() {
        // Two programs that try again and again must not see each other's attempts for ever.
        release(&file);
    }
    claimed
}

/// Ends the claim of a file, although a copy of its descriptor may still be open.
pub(crate) fn release(file: impl AsFd) {
    let all = libc::flock { l_len: DENIED, ..byte_lock(libc::F_UNLCK, USED) };
    let _ = fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&all)); // it fails where there are no locks
}

fn try_claim(file: &impl AsFd, writable: bool) -> io::Result<()> {
    let (used, denied): (&[_], &[_]) =
        if writable { (&[READS, WRITES], &[WRITES, RESIZES]) } else { (&[READS], &[]) };
    let mine = used.iter().map(|bit| USED + bit).chain(denied.iter().map(|bit| DENIED + bit));
    for byte in mine {
        let lock = byte_lock(libc::F_RDLCK, byte);
        match fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&lock)) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => return Err(busy()),
            Err(_) => return Ok(()), // a file system without locks: nobody can hold one
        }
    }
    let theirs = used.iter().map(|bit| DENIED + bit).chain(denied.iter().map(|bit| USED + bit));
    for byte in theirs {
        if is_locked(file, byte) {
            return Err(busy());
        }
    }
    Ok(())
}

/// Whether another program may write the file, by its claim.
pub fn is_written(file: impl AsFd) -> bool {
    is_locked(&file, USED + WRITES)
}

fn is_locked(file: &impl AsFd, byte: i64) -> bool {
    let mut lock = byte_lock(libc::F_WRLCK, byte);
    let asked = fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut lock));
    asked.is_ok() && i32::from(lock.l_type) != libc::F_UNLCK
}

fn byte_lock(kind: i32, byte: i64) -> libc::flock {
    libc::flock {
        l_type: small(kind),
        l_whence: small(libc::SEEK_SET),
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}

fn small(number: i32) -> i16 {
    i16::try_from(number).expect("a constant of 16 bits")
}

pub(crate) fn busy() -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, "another process has it open")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_refused_claim_leaves_no_lock() {
        let path = std::env::temp_dir().join(format!("blockyard-claim-{}", std::process::id()));
        File::create(&path).expect("the file should be new");
        let [first, second, third] = [(); 3].map(|()| {
            File::options().read(true).write(true).open(&path).expect("the file should open")
        });
        claim(&first, true).expect("nobody else has a claim");
        assert!(claim(&second, true).is_err(), "one program writes");
        drop(first);
        claim(&third, true).expect("the refused claim is gone, although its file is open");
        assert!(is_written(&second));
        std::fs::remove_file(path).expect("the file should be removable");
    }
}
