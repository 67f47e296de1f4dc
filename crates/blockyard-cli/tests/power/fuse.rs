//! A file system of one file, which records its writes: the kernel's FUSE protocol, without a
//! library.
//!
//! The disk answers writes late and in any order. It zeroes only by punching holes, so the server
//! must write zeroes itself where a client forbids holes.

use super::history::{Record, Shared};
use blockyard::prng::Prng;
use core::ops::Add;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const STATFS: u32 = 17;
const FSYNC: u32 = 20;
const INIT: u32 = 26;
const FALLOCATE: u32 = 43;
/// Requests that have no answer: FORGET, INTERRUPT and BATCH_FORGET.
const UNANSWERED: [u32; 3] = [2, 36, 42];

/// Flags of INIT: writes of more than a page; direct I/O that the kernel does not wait for; a page
/// cache that keeps writes until they are synchronised.
const BIG_WRITES: u32 = 1 << 5;
const ASYNC_DIO: u32 = 1 << 15;
const WRITEBACK_CACHE: u32 = 1 << 16;
/// A flag of WRITE: the bytes come from the page cache.
const FROM_CACHE: u32 = 1;
/// A flag of the open file, in WRITE.
const O_DIRECT: u32 = 0o40000;

const PUNCH_HOLE: u32 = 2;
const ZERO_RANGE: u32 = 16;

const ENODEV: i32 = 19;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

const HEADER_BYTES: usize = 40;
const WRITE_BYTES_MAX: usize = 1 << 17;
/// The server takes it for the block of direct I/O.
const BLOCK_BYTES: u32 = 4096;

/// How writes to the file reached the disk, in numbers of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    pub(crate) direct: usize,
    pub(crate) from_cache: usize,
    pub(crate) through_cache: usize,
}

impl Add for Ways {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            direct: self.direct + other.direct,
            from_cache: self.from_cache + other.from_cache,
            through_cache: self.through_cache + other.through_cache,
        }
    }
}

/// A mounted file.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
    serving: Option<JoinHandle<Ways>>,
}

struct Serving {
    device: Arc<File>,
    history: Arc<Shared>,
    bytes: Vec<u8>,
    keeps_writes: bool,
    late: mpsc::Sender<Late>,
    ways: Ways,
}

/// A write that is not answered yet.
struct Late {
    unique: u64,
    len: usize,
    /// Its place in the history.
    place: usize,
}

impl Disk {
    /// Mounts a file with `bytes` on the file at `path`. The page cache keeps writes back if
    /// `keeps_writes` is set.
    ///
    /// # Errors
    ///
    /// There is no FUSE, or this user may not mount.
    pub(crate) fn mount(
        path: &Path,
        bytes: Vec<u8>,
        keeps_writes: bool,
        seed: u64,
        history: &Arc<Shared>,
    ) -> io::Result<Self> {
        let device = Arc::new(File::options().read(true).write(true).open("/dev/fuse")?);
        let options = "fd=0,rootmode=100600,user_id=0,group_id=0";
        let mounted = Command::new("mount")
            .args(["-i", "-t", "fuse", "-o", options, "blockyard"])
            .arg(path)
            .stdin(device.try_clone()?)
            .output()?;
        if !mounted.status.success() {
            let words = String::from_utf8_lossy(&mounted.stderr);
            return Err(io::Error::other(words.lines().next().unwrap_or_default().to_owned()));
        }
        let len = bytes.len() as u64;
        let (late, writes) = mpsc::channel();
        let history = Arc::clone(history);
        let answering = (Arc::clone(&device), Arc::clone(&history), Prng::new(seed));
        std::thread::spawn(move || answer_late(&writes, answering));
        let ways = Ways::default();
        let serving = Serving { device, history, bytes, keeps_writes, late, ways };
        let serving = Some(std::thread::spawn(move || serving.run()));
        let disk = Self { path: path.to_owned(), serving };
        // A cache that keeps writes does not ask for the length of the root.
        File::options().write(true).open(path)?.set_len(len)?;
        Ok(disk)
    }

    /// Unmounts the file, which nobody has open. Returns how it was written.
    pub(crate) fn unmount(mut self) -> Ways {
        self.detach();
        let serving = self.serving.take().expect("thread of a mounted file");
        serving.join().expect("no panic in the file system")
    }

    fn detach(&self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.path).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "the file can be unmounted");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.serving.is_some() {
            self.detach();
        }
    }
}

impl Serving {
    /// Answers requests until the file is unmounted.
    fn run(mut self) -> Ways {
        let mut buffer = vec![0; HEADER_BYTES + 40 + WRITE_BYTES_MAX + 4096];
        loop {
            match (&*self.device).read(&mut buffer) {
                Ok(len) => self.answer(&buffer[..len]),
                Err(error) if error.raw_os_error() == Some(ENODEV) => return self.ways,
                // A request was interrupted before it was read.
                Err(_) => {}
            }
        }
    }

    fn answer(&mut self, request: &[u8]) {
        let opcode = u32_at(request, 4);
        let unique = u64_at(request, 8);
        let body = &request[HEADER_BYTES..];
        let answer = match opcode {
            INIT => Ok(self.init(body)),
            GETATTR | SETATTR => Ok(self.attributes()),
            OPEN => Ok(vec![0; 16]),
            STATFS => Ok(vec![0; 80]),
            READ => Ok(self.read(body)),
            WRITE => return self.write(unique, body),
            FSYNC => {
                self.history.add(Record::Synchronised);
                Ok(Vec::new())
            }
            FALLOCATE => self.allocate(body),
            _ if UNANSWERED.contains(&opcode) => return,
            _ => Err(ENOSYS),
        };
        reply(&self.device, unique, answer);
    }

    fn init(&self, body: &[u8]) -> Vec<u8> {
        let minor = u32_at(body, 4);
        let readahead = u32_at(body, 8);
        let offered = u32_at(body, 12);
        let wanted = match self.keeps_writes {
            true => BIG_WRITES | ASYNC_DIO | WRITEBACK_CACHE,
            false => BIG_WRITES | ASYNC_DIO,
        };
        assert_eq!(offered & wanted, wanted, "the kernel offers what the test needs");
        let write_bytes = u32::try_from(WRITE_BYTES_MAX).expect("length within 32 bits");
        let words = [7, minor.min(31), readahead, wanted, 0, write_bytes, 1];
        words.into_iter().chain([0; 9]).flat_map(u32::to_le_bytes).collect()
    }

    /// How long they are valid, and the attributes: inode, size, blocks, six words of time, mode,
    /// links, owner, block size.
    fn attributes(&self) -> Vec<u8> {
        let size = self.bytes.len() as u64;
        let longs = [3600, 0, 1, size, size / 512, 0, 0, 0];
        let words = [0, 0, 0, 0o100_600, 1, 0, 0, 0, BLOCK_BYTES, 0];
        let words = words.into_iter().flat_map(u32::to_le_bytes);
        longs.into_iter().flat_map(u64::to_le_bytes).chain(words).collect()
    }

    fn read(&self, body: &[u8]) -> Vec<u8> {
        let at = u64_at(body, 8).min(self.bytes.len() as u64);
        let rest = &self.bytes[index(at)..];
        rest[..rest.len().min(u32_at(body, 16) as usize)].to_vec()
    }

    fn write(&mut self, unique: u64, body: &[u8]) {
        let at = u64_at(body, 8);
        let flags = u32_at(body, 20);
        let open_flags = u32_at(body, 32);
        let way = match (flags & FROM_CACHE != 0, open_flags & O_DIRECT != 0) {
            (true, _) => &mut self.ways.from_cache,
            (false, true) => &mut self.ways.direct,
            (false, false) => &mut self.ways.through_cache,
        };
        *way += 1;
        let bytes = body[40..].to_vec();
        self.bytes[index(at)..][..bytes.len()].copy_from_slice(&bytes);
        let len = bytes.len();
        let place = self.history.add(Record::Written { at, bytes });
        self.late.send(Late { unique, len, place }).expect("thread that answers writes");
    }

    fn allocate(&mut self, body: &[u8]) -> Result<Vec<u8>, i32> {
        let at = u64_at(body, 8);
        let len = u64_at(body, 16);
        let mode = u32_at(body, 24);
        if mode & ZERO_RANGE != 0 {
            return Err(EOPNOTSUPP);
        }
        if mode & PUNCH_HOLE != 0 {
            self.bytes[index(at)..index(at + len)].fill(0);
            self.history.add(Record::Zeroed { at, len });
        }
        Ok(Vec::new())
    }
}

/// Answers writes in random order, a while after they came.
fn answer_late(
    writes: &mpsc::Receiver<Late>,
    (device, history, mut prng): (Arc<File>, Arc<Shared>, Prng),
) {
    let mut waiting: Vec<Late> = Vec::new();
    loop {
        if waiting.is_empty() {
            let Ok(write) = writes.recv() else { return };
            waiting.push(write);
        }
        waiting.extend(writes.try_iter());
        if prng.below(2) == 0 {
            std::thread::yield_now();
            continue;
        }
        let write = waiting.swap_remove(index(prng.below(waiting.len() as u64)));
        // Recorded before the answer, so that the server cannot know it earlier than the history.
        history.add(Record::Completed(write.place));
        let len = u32::try_from(write.len).expect("length of a write");
        let answer = [len, 0].into_iter().flat_map(u32::to_le_bytes).collect();
        reply(&device, write.unique, Ok(answer));
    }
}

fn reply(mut device: &File, unique: u64, answer: Result<Vec<u8>, i32>) {
    let error = answer.as_ref().err().map_or(0, |errno| -errno);
    let body = answer.unwrap_or_default();
    let len = u32::try_from(16 + body.len()).expect("length of an answer");
    let mut bytes = [&len.to_le_bytes()[..], &error.to_le_bytes(), &unique.to_le_bytes()].concat();
    bytes.extend(body);
    // An error: the request was interrupted, or the file is being unmounted.
    let _ = device.write(&bytes);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("offset within memory")
}
