//! The bytes of an image: those of one file, or of several parts one after another.

use crate::device;
use crate::file::{Synced, hole, is_whole, len, lock, take_room, unlock};
use crate::pool::HEADER_BYTES;
use crate::pool_set::{PoolPart, PoolSet, kind_of};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The smallest part of a pool set.
const PART_BYTES_MIN: u64 = 2 << 20;

/// Files whose bytes follow each other. No word and no page spans two of them.
#[derive(Debug)]
pub(crate) struct Parts {
    parts: Vec<Part>,
    synced: Synced,
    /// They are device DAX, which can only be mapped.
    is_device: bool,
    /// Only the first part has a header.
    single_header: bool,
}

/// The files with the headers of parts after the first.
#[derive(Debug)]
pub(crate) struct Headers {
    pub(crate) files: Vec<File>,
    pub(crate) single_header: bool,
}

/// A file from its byte `skipped` on, as bytes of the image from `start` on.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) file: File,
    /// Its path, if a pool set names it.
    path: Option<PathBuf>,
    pub(crate) skipped: u64,
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// Names the file of an error.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn refusal(part: &PoolPart, kind: io::ErrorKind, why: &str) -> io::Error {
    io::Error::new(kind, format!("{}: {why}", part.path.display()))
}

fn unsupported(part: &PoolPart, why: &str) -> io::Error {
    refusal(part, io::ErrorKind::Unsupported, why)
}

impl Parts {
    /// Makes one part of a whole file, block device or device DAX.
    ///
    /// # Errors
    ///
    /// The file has no end.
    pub(crate) fn whole(file: File) -> io::Result<Self> {
        let device = device::bytes(&file)?;
        let len = device.map_or_else(|| len(&file), Ok)?;
        let part = Part { file, path: None, skipped: 0, start: 0, len };
        let synced = Synced::default();
        Ok(Self { parts: vec![part], synced, is_device: device.is_some(), single_header: false })
    }

    /// Puts the parts of a set together, whose files `open` opens or makes.
    ///
    /// # Errors
    ///
    /// A file cannot be opened, or does not fit the set.
    pub(crate) fn of_set(
        set: &PoolSet,
        mut open: impl FnMut(&PoolPart) -> io::Result<File>,
    ) -> io::Result<Self> {
        let PoolSet { ref parts, single_header } = *set;
        let synced = Synced::default();
        let mut all = Self { parts: Vec::new(), synced, is_device: false, single_header };
        for part in parts {
            if part.path.exists()
                && kind_of(&part.path).map_err(|error| named(&part.path, &error))?.is_dir()
            {
                return Err(unsupported(part, "a directory as a part of a pool is not supported"));
            }
            let file = open(part).map_err(|error| named(&part.path, &error))?;
            let Self { parts: whole, is_device, .. } = Self::whole(file)?;
            if is_device && parts.len() > 1 {
                let why = "a pool of several parts is not supported on a device DAX";
                return Err(unsupported(part, why));
            }
            for mut own in whole {
                let len = own.len;
                let wanted = part.bytes.or(is_device.then_some(len));
                if wanted != Some(len) || len < PART_BYTES_MIN {
                    let why =
                        format!("it has {len} bytes, the set wants {wanted:?}, at least 2 MiB");
                    return Err(refusal(part, io::ErrorKind::InvalidInput, &why));
                }
                own.path = Some(part.path.clone());
                own.start = all.len();
                own.skipped = if own.start > 0 && !single_header { HEADER_BYTES as u64 } else { 0 };
                own.len = len - len % rustix::param::page_size() as u64 - own.skipped;
                all.parts.push(own);
            }
            all.is_device = is_device;
        }
        debug_assert!(!all.parts.is_empty(), "a set names at least one part");
        Ok(all)
    }

    /// Returns the files with the headers of parts after the first.
    pub(crate) fn headers(&self) -> io::Result<Headers> {
        let others = self.parts.iter().filter(|part| part.skipped > 0);
        let files = others.map(|part| part.file.try_clone()).collect::<io::Result<_>>()?;
        Ok(Headers { files, single_header: self.single_header })
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Part> {
        self.parts.iter()
    }

    pub(crate) fn len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.start + part.len)
    }

    /// Whether no file was cut short.
    pub(crate) fn are_whole(&self) -> bool {
        self.parts.iter().all(|part| is_whole(&part.file, part.skipped + part.len))
    }

    /// Whether the bytes can only be mapped.
    pub(crate) const fn is_device(&self) -> bool {
        self.is_device
    }

    /// Locks all parts for one writer or several readers, until they are dropped.
    ///
    /// # Errors
    ///
    /// Another process has a part open.
    pub(crate) fn lock(&self, writable: bool) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| lock(&part.file, writable))
    }

    /// Tells the kernel not to read ahead.
    pub(crate) fn expect_random_reads(&self) {
        for part in &self.parts {
            let _ = fadvise(&part.file, 0, None, Advice::Random); // it may be ignored
        }
    }

    /// Each part with bytes of `len` bytes at `at`, their position in its file, and which of the
    /// bytes they are.
    fn pieces(&self, at: u64, len: u64) -> impl Iterator<Item = (&Part, u64, Range<usize>)> {
        debug_assert!(at <= self.len() && len <= self.len() - at, "bytes of the parts");
        self.parts.iter().filter_map(move |part| {
            let from = at.max(part.start);
            let to = (at + len).min(part.start + part.len);
            let position = part.skipped + from.saturating_sub(part.start);
            (from < to).then(|| {
                let [from, to] =
                    [from, to].map(|end| usize::try_from(end - at).expect("length in memory"));
                (part, position, from..to)
            })
        })
    }

    pub(crate) fn read_exact_at(&self, to: &mut [u8], at: u64) -> io::Result<()> {
        self.pieces(at, to.len() as u64).try_for_each(|(part, position, bytes)| {
            part.file.read_exact_at(&mut to[bytes], position)
        })
    }

    pub(crate) fn write_all_at(&self, from: &[u8], at: u64) -> io::Result<()> {
        self.pieces(at, from.len() as u64)
            .try_for_each(|(part, position, bytes)| part.file.write_all_at(&from[bytes], position))
    }

    /// Allocates the space for `len` bytes at `at`, so that no store meets a hole that cannot be
    /// filled.
    ///
    /// # Errors
    ///
    /// The space is not available.
    pub(crate) fn take_room(&self, at: u64, len: u64) -> io::Result<()> {
        self.pieces(at, len).try_for_each(|(part, position, bytes)| {
            let taken = take_room(&part.file, position, bytes.len() as u64);
            taken.map_err(|error| match &part.path {
                Some(path) => named(path, &error),
                None => error,
            })
        })
    }

    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.synced.by(|| self.parts.iter().try_for_each(|part| part.file.sync_data()))
    }

    /// Returns the number of bytes at `at` that are known to be a hole. A hole ends with its part.
    pub(crate) fn hole(&self, at: u64) -> u64 {
        let here = self.parts.iter().find(|part| at < part.start + part.len);
        here.map_or(0, |part| {
            let position = part.skipped + at - part.start;
            let end = part.skipped + part.len;
            hole(&part.file, position, end)
        })
    }
}

impl Drop for Part {
    /// Gives the lock back before the file is closed. A process that another thread has just forked
    /// has a copy of the descriptor until it runs its own program, and would keep the lock
    /// meanwhile.
    fn drop(&mut self) {
        unlock(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A forked process has a copy of the descriptor, which holds no lock.
    #[test]
    fn parts_that_are_dropped_are_unlocked_although_a_copy_is_open() {
        let path = std::env::temp_dir().join(format!("blockyard-parts-{}", std::process::id()));
        std::fs::write(&path, [0; 4096]).expect("the file should be new");
        let [first, second] = [(); 2].map(|()| {
            File::options().read(true).write(true).open(&path).expect("the file should open")
        });
        let copy = first.try_clone().expect("a descriptor should be left");
        let parts = Parts::whole(first).expect("a file has an end");
        parts.lock(true).expect("nobody else has a lock");
        let others = Parts::whole(second).expect("a file has an end");
        others.lock(true).expect_err("one program writes");
        drop(parts);
        others.lock(true).expect("the lock is gone, although a copy is open");
        drop(copy);
        std::fs::remove_file(path).expect("the file should be removable");
    }
}
