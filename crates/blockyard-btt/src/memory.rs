//! The seam to what holds a BTT: bytes that can be addressed one by one.
//!
//! # Rules
//!
//! - **Y1.** What is written by [`write`](Memory::write) or [`zero`](Memory::zero), or stored and then
//!   passed to [`write_back`](Memory::write_back), is durable once a [`fence`](Memory::fence) that the
//!   same thread began afterwards has returned. Before that, each aligned word of eight bytes may be
//!   durable or not, in any order, whether it was written back or not.
//! - **Y2.** Loads and stores of words are atomic, and what is stored is seen by other threads at once: a
//!   load acquires, a store releases. They are aligned to their size.
//! - **Y3.** Copies may run beside other copies to the same bytes; what is read then is some mix. BTT
//!   throws such bytes away.
//! - **Y4.** What a thread wrote or stored before a fence, other threads see before what it writes or stores
//!   behind that fence (`versions` S2), non-temporal stores included.
//! - **Y5.** A call that fails has done nothing, or some of what it was asked to.

use super::touch::Touch;

/// Bytes that keep a BTT, shared by threads. See the [module](self).
///
/// # Panics
///
/// All calls may panic if asked for bytes beyond [`len`](Memory::len): BTT asks for none.
pub trait Memory {
    /// How many bytes there are. Never changes.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the bytes at `at` out (Y3).
    ///
    /// # Errors
    ///
    /// [`MediaError::Bad`] if the medium lost them.
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError>;

    /// Copies bytes in: durable after the next fence, without a call of `write_back` (Y1).
    ///
    /// # Errors
    ///
    /// Those of the medium.
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError>;

    /// Makes bytes zeroes, as `write` would, or better: holes of a file may stay holes. Mends what was
    /// [`Bad`](MediaError::Bad), if anything can.
    ///
    /// # Errors
    ///
    /// Those of the medium.
    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError>;

    /// Loads a little-endian word of four bytes (Y2).
    ///
    /// # Errors
    ///
    /// Those of the medium.
    fn load(&self, at: u64) -> Result<u32, MediaError>;

    /// Stores a little-endian word of four bytes (Y2).
    ///
    /// # Errors
    ///
    /// Those of the medium.
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError>;

    /// Stores a little-endian word of eight bytes (Y2).
    ///
    /// # Errors
    ///
    /// Those of the medium.
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError>;

    /// Begins to make what was stored there durable (Y1).
    fn write_back(&self, at: u64, len: u64);

    /// Waits until all that this thread wrote or wrote back is durable (Y1).
    ///
    /// # Errors
    ///
    /// Those of the medium: what is durable is unknown then.
    fn fence(&self) -> Result<(), MediaError>;

    /// Makes durable what all threads wrote, as far as this memory can: more than a fence where fences only
    /// order, as on a file that is not synchronised at each of them.
    ///
    /// # Errors
    ///
    /// Those of the medium.
    fn flush(&self) -> Result<(), MediaError> {
        self.fence()
    }

    /// A hint that these bytes are wanted soon.
    fn prefetch(&self, at: u64, len: u64) {
        let _ = (at, len);
    }

    /// Told what is done to a word of the BTT's own that threads share: for models of what that costs.
    #[inline]
    fn touched(&self, touch: Touch) {
        let _ = touch;
    }

    /// Called between two looks at something that another thread is about to change; `turn` counts
    /// them. A thread may sleep or yield here.
    fn relax(&self, turn: u32) {
        let _ = turn;
        core::hint::spin_loop();
    }
}

/// What a medium answers where it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaError {
    /// These bytes are lost, others are not: a bad block, a poisoned line. Zeroing may mend it.
    Bad,
    /// There is no room for what was written.
    NoSpace,
    /// It failed otherwise.
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
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        (**self).read(at, to)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        (**self).write(at, from)
    }
    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        (**self).zero(at, len)
    }
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        (**self).load(at)
    }
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        (**self).store(at, word)
    }
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        (**self).store_long(at, word)
    }
    fn write_back(&self, at: u64, len: u64) {
        (**self).write_back(at, len);
    }
    fn fence(&self) -> Result<(), MediaError> {
        (**self).fence()
    }
    fn flush(&self) -> Result<(), MediaError> {
        (**self).flush()
    }
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
