//! A file as the memory of a BTT, accessed by system calls: a failure of the medium is an error,
//! holes stay holes, and a file that another process truncated cannot be read any more.
//!
//! This is how the file keeps the rules of [`Memory`] on Linux:
//!
//! - [fence-makes-durable]: every call writes to the page cache, and a fence is a synchronisation
//!   of the file that starts later. Before it, pages may reach the disk in any order. A word of
//!   eight bytes is durable as it was before or after a store if the disk does not tear 512 bytes,
//!   and if whoever copies a page to the disk does not see half of a word. So a word is always
//!   written by one call with eight aligned bytes, which Linux copies with one instruction, and no
//!   call stores a word while a synchronisation copies pages. Only the pages that the kernel itself
//!   writes meanwhile depend on that instruction alone, and nobody promises that a disk sees all or
//!   nothing of its effect.
//! - [words-are-atomic]: kernels do not promise that a read sees a whole word while it is being
//!   written. Loads and stores of one word exclude each other by one of a few locks, and a load
//!   sees everything before the store. Copies of data exclude nothing.
//! - [fence-orders-threads]: the calls of one thread reach the page cache in order, and other
//!   threads see it like any memory. A fence orders like any other fence.
//!
//! # Rules
//!
//! - **[cut-file-stays-broken]** After a call has found that another process cut a file short,
//!   every later call fails, also if the file is long again. Each write looks at the length first:
//!   beyond the end, it would make the file long again, and what was cut off would read as zeroes.
//!   Each read that meets the end finds the cut, and so does a synchronisation.

use crate::file::{media, media_read, relax};
use crate::group::Group;
use crate::parts::Parts;
use blockyard_btt::{MediaError, Memory};
use core::sync::atomic::{AtomicBool, Ordering, fence};
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// The number of locks for words ([words-are-atomic]).
const LOCKS: u64 = 64;
const WORD_BYTES: usize = 8;
/// The zeroes that one call writes.
static ZEROES: [u8; 1 << 16] = [0; 1 << 16];
/// The number of looks before a thread sleeps: the thread it waits for may be waiting for a disk.
const LOOKS: u32 = 1 << 7;
/// The first sleep. Each later one is twice as long, up to [`SLEEP_MAX`]: many threads that look
/// often would leave no processor to the thread that they wait for.
const SLEEP: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(2);

const _: () = assert!(ZEROES.len().is_multiple_of(WORD_BYTES), "no call zeroes half of a word");

/// A file that is accessed by system calls. See the [module](self).
#[derive(Debug)]
pub struct Unmapped {
    parts: Parts,
    len: u64,
    locks: Box<[Mutex<()>]>,
    sync: Option<Sync>,
    /// For [cut-file-stays-broken].
    is_cut: AtomicBool,
}

/// The state for a synchronisation at every fence.
#[derive(Debug, Default)]
struct Sync {
    group: Group,
    /// Locked for reading by threads that store a word, and for writing by the one that
    /// synchronises.
    words: RwLock<()>,
}

impl Unmapped {
    /// Opens a whole file or block device for reading and, if it was opened so, for writing. A
    /// `synchronised` file is synchronised at each fence; otherwise a fence only orders.
    ///
    /// # Errors
    ///
    /// Another process has the file open, or it has no end.
    pub fn new(file: File, writable: bool, synchronised: bool) -> io::Result<Self> {
        Self::of_parts(Parts::whole(file)?, writable, synchronised)
    }

    /// Opens parts one after another, as [`new`](Self::new) opens one file.
    ///
    /// # Errors
    ///
    /// The same as [`new`](Self::new).
    pub(crate) fn of_parts(parts: Parts, writable: bool, synchronised: bool) -> io::Result<Self> {
        parts.lock(writable)?;
        Self::without_lock(parts, synchronised)
    }

    /// Opens parts for reading while another process may write them.
    ///
    /// # Errors
    ///
    /// They can only be mapped.
    pub(crate) fn unlocked(parts: Parts) -> io::Result<Self> {
        Self::without_lock(parts, false)
    }

    fn without_lock(parts: Parts, synchronised: bool) -> io::Result<Self> {
        if parts.is_device() {
            let words = "a device DAX can only be mapped";
            return Err(io::Error::new(io::ErrorKind::Unsupported, words));
        }
        // Pages that were read ahead from allocated space would no longer count as holes.
        parts.expect_random_reads();
        let locks = (0..LOCKS).map(|_| Mutex::default()).collect();
        let sync = synchronised.then(Sync::default);
        Ok(Self { len: parts.len(), parts, locks, sync, is_cut: AtomicBool::new(false) })
    }

    /// Allocates the space for `len` bytes at `at`.
    ///
    /// # Errors
    ///
    /// The space is not available.
    pub fn take_room(&self, at: u64, len: u64) -> io::Result<()> {
        self.parts.take_room(at, len)
    }

    /// Looks whether another process has cut a file short ([cut-file-stays-broken]).
    ///
    /// # Errors
    ///
    /// [`MediaError::Failed`] if a file was cut short, now or when an earlier call found it.
    pub fn look_for_cut(&self) -> Result<(), MediaError> {
        if !self.parts.are_whole() {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        self.not_cut()
    }

    /// Fails if a call has found a cut ([cut-file-stays-broken]).
    fn not_cut(&self) -> Result<(), MediaError> {
        if self.is_cut.load(Ordering::Relaxed) { Err(MediaError::Failed) } else { Ok(()) }
    }

    /// The number of synchronisations for fences.
    #[must_use]
    pub fn synchronisations(&self) -> u64 {
        self.sync.as_ref().map_or(0, |sync| sync.group.over())
    }

    fn within(&self, at: u64, len: usize) {
        let all = self.len;
        assert!(at <= all && len as u64 <= all - at, "{len} bytes at {at} of a file of {all}");
    }

    /// Locks the word at `at` against other loads and stores ([words-are-atomic]).
    fn word(&self, at: u64) -> MutexGuard<'_, ()> {
        let nth = at / WORD_BYTES as u64 % LOCKS;
        let lock = &self.locks[usize::try_from(nth).expect("number of a lock")];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps synchronisations away while a word is stored ([fence-makes-durable]).
    fn storing(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.sync.as_ref().map(|sync| sync.words.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        self.within(at, from.len());
        self.look_for_cut()?;
        self.parts.write_all_at(from, at).map_err(|error| media(&error))
    }
}

impl Memory for Unmapped {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        self.within(at, to.len());
        self.not_cut()?;
        self.parts.read_exact_at(to, at).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                self.is_cut.store(true, Ordering::Relaxed);
            }
            media_read(&error)
        })
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        self.put(at, from)
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        let piece = ZEROES.len() as u64;
        (0..len).step_by(ZEROES.len()).try_for_each(|done| {
            let count = usize::try_from((len - done).min(piece)).expect("length of a piece");
            self.put(at + done, &ZEROES[..count])
        })
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        debug_assert!(at.is_multiple_of(4), "[words-are-atomic]: aligned to four bytes");
        let mut bytes = [0; 4];
        let _word = self.word(at);
        self.read(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        debug_assert!(at.is_multiple_of(4), "[words-are-atomic]: aligned to four bytes");
        let start = at - at % WORD_BYTES as u64;
        let _storing = self.storing();
        let _word = self.word(start);
        // One call writes all eight bytes ([fence-makes-durable]).
        let mut bytes = [0; WORD_BYTES];
        self.read(start, &mut bytes)?;
        let half = usize::try_from(at - start).expect("offset 0 or 4");
        bytes[half..half + 4].copy_from_slice(&word.to_le_bytes());
        self.put(start, &bytes)
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        debug_assert!(at.is_multiple_of(8), "[words-are-atomic]: aligned to eight bytes");
        let _storing = self.storing();
        let _word = self.word(at);
        self.put(at, &word.to_le_bytes())
    }

    fn write_back(&self, _at: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediaError> {
        fence(Ordering::SeqCst);
        let Some(Sync { group, words }) = &self.sync else { return Ok(()) };
        group
            .join(|| {
                let _nobody_stores = words.write().unwrap_or_else(PoisonError::into_inner);
                self.parts.sync_data()
            })
            .map_err(|error| media(&error))?;
        self.look_for_cut()
    }

    fn flush(&self) -> Result<(), MediaError> {
        match self.sync {
            Some(_) => self.fence(),
            None => {
                self.parts.sync_data().map_err(|error| media(&error))?;
                self.look_for_cut()
            }
        }
    }

    fn hole(&self, at: u64) -> u64 {
        self.not_cut().map_or(0, |()| self.parts.hole(at))
    }

    fn relax(&self, turn: u32) {
        match turn {
            0..LOOKS => relax(turn),
            _ => {
                let doubled = 1 << (turn - LOOKS).min(16);
                std::thread::sleep((SLEEP * doubled).min(SLEEP_MAX));
            }
        }
    }
}
