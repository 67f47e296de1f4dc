//! libpmemblk, loaded at run time: nothing is linked to it, and where it is missing nothing is compared.
#![allow(clippy::cast_possible_truncation, reason = "sizes are those of a benchmark")]

use core::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use libloading::Library;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

type Handle = *mut c_void;

/// A pool, and the functions of libpmemblk's header that are called.
pub struct Pmemblk {
    pool: Handle,
    nblock: unsafe extern "C" fn(Handle) -> usize,
    read: unsafe extern "C" fn(Handle, *mut c_void, c_longlong) -> c_int,
    write: unsafe extern "C" fn(Handle, *const c_void, c_longlong) -> c_int,
    set_zero: unsafe extern "C" fn(Handle, c_longlong) -> c_int,
    close: unsafe extern "C" fn(Handle),
    _library: Library,
}

// SAFETY: pools of libpmemblk may be used by several threads at once.
unsafe impl Sync for Pmemblk {}

impl Pmemblk {
    /// Makes a pool at `path`, where one may be.
    ///
    /// # Errors
    ///
    /// The library is not installed, or is another one.
    ///
    /// # Panics
    ///
    /// If there is no room for the pool.
    pub fn create(path: &Path, sector_bytes: u32, bytes: u64) -> Result<Self, libloading::Error> {
        type Create = unsafe extern "C" fn(*const c_char, usize, usize, c_uint) -> Handle;
        let _ = std::fs::remove_file(path);
        let path = CString::new(path.as_os_str().as_bytes()).expect("no zero in a path");
        // SAFETY: what it does when loaded is its own matter; the types are those of its header.
        unsafe {
            let library = Library::new("libpmemblk.so.1")?;
            let create = library.get::<Create>(b"pmemblk_create")?;
            let pool = create(path.as_ptr(), sector_bytes as usize, bytes as usize, 0o600);
            assert!(!pool.is_null(), "libpmemblk makes no pool");
            Ok(Self {
                pool,
                nblock: *library.get(b"pmemblk_nblock")?,
                read: *library.get(b"pmemblk_read")?,
                write: *library.get(b"pmemblk_write")?,
                set_zero: *library.get(b"pmemblk_set_zero")?,
                close: *library.get(b"pmemblk_close")?,
                _library: library,
            })
        }
    }

    /// Its sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        // SAFETY: the pool is open.
        unsafe { (self.nblock)(self.pool) as u64 }
    }

    /// Reads a sector.
    ///
    /// # Panics
    ///
    /// If it cannot be read.
    pub fn read(&self, lba: u64, to: &mut [u8]) {
        // SAFETY: a sector fits into `to`, as whoever made the pool sees to.
        let done = unsafe { (self.read)(self.pool, to.as_mut_ptr().cast(), lba as c_longlong) };
        assert_eq!(done, 0, "libpmemblk reads");
    }

    /// Writes a sector.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn write(&self, lba: u64, from: &[u8]) {
        // SAFETY: `from` is a sector, as whoever made the pool sees to.
        let done = unsafe { (self.write)(self.pool, from.as_ptr().cast(), lba as c_longlong) };
        assert_eq!(done, 0, "libpmemblk writes");
    }

    /// Zeroes a sector.
    ///
    /// # Panics
    ///
    /// If it cannot be zeroed.
    pub fn set_zero(&self, lba: u64) {
        // SAFETY: the pool is open.
        let done = unsafe { (self.set_zero)(self.pool, lba as c_longlong) };
        assert_eq!(done, 0, "libpmemblk zeroes");
    }
}

impl Drop for Pmemblk {
    fn drop(&mut self) {
        // SAFETY: the pool is open, and not used again.
        unsafe { (self.close)(self.pool) };
    }
}
