//! The seam to the bytes of a BTT.
//!
//! # Rules
//!
//! - **[fence-makes-durable]** Bytes that a thread passed to [`write`](Memory::write) or
//!   [`zero`](Memory::zero), or stored and then passed to [`write_back`](Memory::write_back), are
//!   durable once a later [`fence`](Memory::fence) of the same thread has returned. Until then,
//!   each aligned word of eight bytes may or may not be durable, in any order, whether it was
//!   written back or not.
//! - **[words-are-atomic]** Loads and stores of words are atomic and aligned to their size. A load
//!   acquires and a store releases.
//! - **[fence-orders-threads]** Other threads see what a thread wrote or stored before a fence,
//!   including non-temporal stores, before anything that it writes or stores after that fence.
//!   [same-version-same-block] depends on it.
//!
//! Copies may race with other copies to the same bytes. The result is then an unspecified mix,
//! which a BTT discards. A call that fails may have done none or part of its work.

use super::touch::Touch;

/// The bytes of a BTT, shared by threads. See the [module](self).
///
/// # Panics
///
/// Every call may panic if the range ends beyond [`len`](Memory::len). A BTT never passes such a
/// range.
pub trait Memory {
    /// The number of bytes. It never changes.
    fn len(&self) -> u64;

    /// Whether the memory has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes at `at` into `to`. The copy may race with writes.
    ///
    /// # Errors
    ///
    /// [`MediaError::Bad`] if the medium lost them.
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError>;

    /// Copies `from` to `at`. The bytes are durable after the next fence, without `write_back`
    /// ([fence-makes-durable]).
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError>;

    /// Zeroes `len` bytes at `at`. Holes of a file may stay holes. This repairs
    /// [`Bad`](MediaError::Bad) bytes if the medium can.
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError>;

    /// Loads a little-endian word of four bytes ([words-are-atomic]).
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    fn load(&self, at: u64) -> Result<u32, MediaError>;

    /// Stores a little-endian word of four bytes ([words-are-atomic]).
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError>;

    /// Stores a little-endian word of eight bytes ([words-are-atomic]).
    ///
    /// # Errors
    ///
    /// Returns the medium's error.
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError>;

    /// Starts to make stored bytes durable ([fence-makes-durable]).
    fn write_back(&self, at: u64, len: u64);

    /// Waits until everything that this thread wrote or wrote back is durable
    /// ([fence-makes-durable]).
    ///
    /// # Errors
    ///
    /// Returns the medium's error. It is then unknown which bytes are durable.
    fn fence(&self) -> Result<(), MediaError>;

    /// Makes the writes of all threads durable, as far as this memory can. This is stronger than a
    /// fence where fences only order, for example on a file that is not synchronised at each fence.
    ///
    /// # Errors
    ///
    /// Returns the medium's error. If writes were lost, every later flush fails too.
    fn flush(&self) -> Result<(), MediaError> {
        self.fence()
    }

    /// The number of bytes at `at` that are known to be zero without reading them, as in a hole of
    /// a file.
    fn hole(&self, at: u64) -> u64 {
        let _ = at;
        0
    }

    /// Hints that these bytes are needed soon.
    fn prefetch(&self, at: u64, len: u64) {
        let _ = (at, len);
    }

    /// Reports an access to a shared word of the BTT itself, so that a model can charge for it.
    #[inline]
    fn touched(&self, touch: Touch) {
        let _ = touch;
    }

    /// Called between two looks at a word that another thread is about to change. `turn` counts the
    /// looks. The thread may sleep or yield here.
    fn relax(&self, turn: u32) {
        let _ = turn;
        core::hint::spin_loop();
    }
}

/// Reads an array of bytes at `at`.
pub(crate) fn read_array<const N: usize>(
    memory: &impl Memory,
    at: u64,
) -> Result<[u8; N], MediaError> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes)?;
    Ok(bytes)
}

/// An error of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaError {
    /// These bytes are lost, but others are not: a bad block or a poisoned line. Zeroing may repair
    /// them.
    Bad,
    /// The medium has no space for the bytes that were written.
    NoSpace,
    /// Any other failure.
    Failed,
}

impl core::fmt::Display for MediaError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Bad => "the medium lost these bytes",
            Self::NoSpace => "there is no space left on the medium",
            Self::Failed => "the medium failed",
        })
    }
}

impl core::error::Error for MediaError {}

impl<M: Memory + ?Sized> Memory for &M {
    fn len(&self) -> u64 {
        (**self).len()
    }
    #[inline]
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        (**self).read(at, to)
    }
    #[inline]
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        (**self).write(at, from)
    }
    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        (**self).zero(at, len)
    }
    #[inline]
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        (**self).load(at)
    }
    #[inline]
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        (**self).store(at, word)
    }
    #[inline]
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        (**self).store_long(at, word)
    }
    #[inline]
    fn write_back(&self, at: u64, len: u64) {
        (**self).write_back(at, len);
    }
    #[inline]
    fn fence(&self) -> Result<(), MediaError> {
        (**self).fence()
    }
    fn flush(&self) -> Result<(), MediaError> {
        (**self).flush()
    }
    fn hole(&self, at: u64) -> u64 {
        (**self).hole(at)
    }
    #[inline]
    fn prefetch(&self, at: u64, len: u64) {
        (**self).prefetch(at, len);
    }
    #[inline]
    fn touched(&self, touch: Touch) {
        (**self).touched(touch);
    }
    fn relax(&self, turn: u32) {
        (**self).relax(turn);
    }
}
