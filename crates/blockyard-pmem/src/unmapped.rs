//! A file as the memory of a BTT without a mapping, read and written by calls: errors of the medium are
//! errors, holes stay holes, and a file that somebody cut off is one that cannot be read any more.
//!
//! # Rules
//!
//! How this keeps the rules of [`Memory`], on Linux:
//!
//! - **U1.** For Y1: every call writes to the page cache, and a fence is a synchronisation of the file that
//!   begins after it. What reaches the disk before may do so in any order. That a word of eight bytes is there
//!   as it was before or after a store, asks two things of the system: that a disk does not tear 512 bytes,
//!   and that who copies a page to the disk does not meet half of a word. So a word is always written by one
//!   call, of eight aligned bytes, which Linux copies by one instruction; and no call of ours stores a word
//!   while a synchronisation of ours copies pages. Only pages that the kernel writes by itself meanwhile rest on
//!   that instruction alone, of which nobody promises that a disk sees all or nothing.
//! - **U2.** For Y2: kernels do not promise that a read sees a word whole which is being written. Loads and
//!   stores of one word exclude each other, by one of a few locks; who loads after a store has seen all that
//!   was before it.
//! - **U3.** For Y3: nothing excludes copies of data.
//! - **U4.** For Y4: calls of one thread reach the page cache in their order, and other threads see it as any
//!   memory; a fence orders as any other.
//! - **U5.** For Y5: a call that the medium cut short has written some of its bytes.

use crate::file::{len, lock, media, media_read, relax, take_room};
use crate::group::Group;
use blockyard_btt::{MediaError, Memory};
use core::sync::atomic::{Ordering, fence};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// Locks of words (U2).
const LOCKS: u64 = 64;
const WORD_BYTES: usize = 8;
/// Zeroes of one call.
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];
/// How often a thread looks before it sleeps: who holds what it wants may be waiting for a disk.
const LOOKS: u32 = 1 << 10;
const SLEEP: Duration = Duration::from_micros(50);

/// A file that is read and written by calls. See the [module](self).
#[derive(Debug)]
pub struct Unmapped {
    file: File,
    len: u64,
    locks: Box<[Mutex<()>]>,
    sync: Option<Sync>,
}

/// What it takes to synchronise at every fence.
#[derive(Debug, Default)]
struct Sync {
    group: Group,
    /// Held by those who store a word, and by who synchronises (U1).
    words: RwLock<()>,
}

impl Unmapped {
    /// All of a file or block device, for reading and, if it was opened for that, for writing. With
    /// `synchronised` a fence waits until the file is; without, it orders.
    ///
    /// # Errors
    ///
    /// Somebody else has it, or it has no end.
    pub fn new(file: File, writable: bool, synchronised: bool) -> io::Result<Self> {
        lock(&file, writable)?;
        let locks = (0..LOCKS).map(|_| Mutex::default()).collect();
        Ok(Self { len: len(&file)?, file, locks, sync: synchronised.then(Sync::default) })
    }

    /// Takes the room for `len` bytes at `at`.
    ///
    /// # Errors
    ///
    /// There is not enough.
    pub fn take_room(&self, at: u64, len: u64) -> io::Result<()> {
        take_room(&self.file, at, len)
    }

    /// How often the file was synchronised for fences.
    #[must_use]
    pub fn synchronisations(&self) -> u64 {
        self.sync.as_ref().map_or(0, |sync| sync.group.over())
    }

    fn within(&self, at: u64, len: usize) {
        assert!(at <= self.len && len as u64 <= self.len - at, "beyond the end");
    }

    /// Nobody else loads or stores the word at `at` while this lives (U2).
    fn word(&self, at: u64) -> MutexGuard<'_, ()> {
        let nth = at / WORD_BYTES as u64 % LOCKS;
        let lock = &self.locks[usize::try_from(nth).expect("locks are few")];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody synchronises while this lives (U1).
    fn storing(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.sync.as_ref().map(|sync| sync.words.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        self.within(at, from.len());
        self.file.write_all_at(from, at).map_err(|error| media(&error))
    }
}

impl Memory for Unmapped {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        self.within(at, to.len());
        self.file.read_exact_at(to, at).map_err(|error| media_read(&error))
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        self.put(at, from)
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let most = ZEROES.len() as u64;
        (0..len).step_by(ZEROES.len()).try_for_each(|done| {
            let count = usize::try_from((len - done).min(most)).expect("at most all zeroes");
            self.put(at + done, &ZEROES[..count])
        })
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        let mut bytes = [0; 4];
        let _word = self.word(at);
        self.read(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        let start = at - at % WORD_BYTES as u64;
        let _storing = self.storing();
        let _word = self.word(start);
        // Both halves (U1).
        let mut bytes = [0; WORD_BYTES];
        self.read(start, &mut bytes)?;
        let half = usize::try_from(at - start).expect("it is 0 or 4");
        bytes[half..half + 4].copy_from_slice(&word.to_le_bytes());
        self.put(start, &bytes)
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        let _storing = self.storing();
        let _word = self.word(at);
        self.put(at, &word.to_le_bytes())
    }

    fn write_back(&self, _at: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediaError> {
        fence(Ordering::SeqCst);
        let Some(Sync { group, words }) = &self.sync else { return Ok(()) };
        let synchronise = || {
            let _nobody_stores = words.write().unwrap_or_else(PoisonError::into_inner);
            self.file.sync_data()
        };
        group.join(synchronise).map_err(|error| media(&error))
    }

    fn flush(&self) -> Result<(), MediaError> {
        match self.sync {
            Some(_) => self.fence(),
            None => self.file.sync_data().map_err(|error| media(&error)),
        }
    }

    fn relax(&self, turn: u32) {
        match turn {
            0..LOOKS => relax(turn),
            _ => std::thread::sleep(SLEEP),
        }
    }
}
