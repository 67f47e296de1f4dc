//! libpmemblk, loaded at run time. No program links to it; where it is missing, it is not compared.
#![allow(clippy::cast_possible_truncation, reason = "sizes are those of a benchmark")]

use core::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use libloading::Library;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

type Handle = *mut c_void;

/// A pool, and the functions of libpmemblk that the benchmark calls.
pub struct Pmemblk {
    pool: Handle,
    nblock: unsafe extern "C" fn(Handle) -> usize,
    read: unsafe extern "C" fn(Handle, *mut c_void, c_longlong) -> c_int,
    write: unsafe extern "C" fn(Handle, *const c_void, c_longlong) -> c_int,
    set_zero: unsafe extern "C" fn(Handle, c_longlong) -> c_int,
    close: unsafe extern "C" fn(Handle),
    _library: Library,
}

// SAFETY: libpmemblk allows several threads to use a pool.
unsafe impl Sync for Pmemblk {}

impl Pmemblk {
    /// Creates a pool at `path`, and replaces an existing file.
    ///
    /// # Errors
    ///
    /// Returns an error if the library is not installed or lacks a function.
    ///
    /// # Panics
    ///
    /// Panics if there is no room for the pool.
    pub fn create(path: &Path, sector_bytes: u32, bytes: u64) -> Result<Self, libloading::Error> {
        type Create = unsafe extern "C" fn(*const c_char, usize, usize, c_uint) -> Handle;
        let _ = std::fs::remove_file(path);
        let path = CString::new(path.as_os_str().as_bytes()).expect("path without a NUL byte");
        // SAFETY: the library's initialisation is sound; the types are those of its header.
        unsafe {
            let library = Library::new("libpmemblk.so.1")?;
            let create = library.get::<Create>(b"pmemblk_create")?;
            let pool = create(path.as_ptr(), sector_bytes as usize, bytes as usize, 0o600);
            assert!(!pool.is_null(), "libpmemblk should create the pool");
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

    /// The number of sectors in the pool.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        // SAFETY: the pool is open.
        unsafe { (self.nblock)(self.pool) as u64 }
    }

    /// Reads a sector.
    ///
    /// # Panics
    ///
    /// Panics if the read fails.
    pub fn read(&self, lba: u64, to: &mut [u8]) {
        // SAFETY: `to` has room for a sector: the caller created the pool with this size.
        let done = unsafe { (self.read)(self.pool, to.as_mut_ptr().cast(), lba as c_longlong) };
        assert_eq!(done, 0, "libpmemblk should read the sector");
    }

    /// Writes a sector.
    ///
    /// # Panics
    ///
    /// Panics if the write fails.
    pub fn write(&self, lba: u64, from: &[u8]) {
        // SAFETY: `from` is a whole sector: the caller created the pool with this size.
        let done = unsafe { (self.write)(self.pool, from.as_ptr().cast(), lba as c_longlong) };
        assert_eq!(done, 0, "libpmemblk should write the sector");
    }

    /// Zeroes a sector.
    ///
    /// # Panics
    ///
    /// Panics if the sector cannot be zeroed.
    pub fn set_zero(&self, lba: u64) {
        // SAFETY: the pool is open.
        let done = unsafe { (self.set_zero)(self.pool, lba as c_longlong) };
        assert_eq!(done, 0, "libpmemblk should zero the sector");
    }
}

impl Drop for Pmemblk {
    fn drop(&mut self) {
        // SAFETY: the pool is open and is not used again.
        unsafe { (self.close)(self.pool) };
    }
}
