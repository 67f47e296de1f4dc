//! libpmemblk's calls over [`blockyard_btt`]. `include/blockyard_pmemblk.h` documents them.
//!
//! # Safety
//!
//! As with libpmemblk, callers ensure what C cannot express: a pool came from `pmemblk_open` or `pmemblk_create` and
//! was not passed to `pmemblk_close`; a text ends with a zero; a buffer has the bytes of a block. A pool is one
//! allocation, which `pmemblk_close` frees.

mod error;
mod pool;
mod seat;

use blockyard_btt::check;
use blockyard_pmem::{Durability, Image, ImageOptions};
use core::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use core::{ptr, slice};
use error::{Failure, number, pointer};
use pool::Pool;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The version of libpmemblk's interface.
const VERSION: (c_uint, c_uint) = (1, 1);

/// # Safety
///
/// `text` ends with a zero, and outlives the path.
unsafe fn path<'a>(text: *const c_char) -> &'a Path {
    debug_assert!(!text.is_null(), "the caller passes the path of a pool");
    // SAFETY: as the caller promises.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()))
}

/// # Safety
///
/// `pool` came from `pmemblk_open` or `pmemblk_create` and is still open.
unsafe fn opened<'a>(pool: *mut Pool) -> &'a Pool {
    debug_assert!(pool.is_aligned() && !pool.is_null(), "the caller passes an open pool");
    // SAFETY: as the caller promises.
    unsafe { &*pool }
}

fn block_bytes(bytes: usize) -> Result<u32, Failure> {
    u32::try_from(bytes).map_err(|_| Failure::argument("a block of 4 GiB or more is impossible"))
}

fn block(number: c_longlong) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| Failure::argument("the number of a block is negative"))
}

/// Opens a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_open(file: *const c_char, bsize: usize) -> *mut Pool {
    // SAFETY: a path, as the header asks.
    let path = unsafe { path(file) };
    pointer(block_bytes(bsize).and_then(|bytes| Ok(Pool::open(path, bytes)?)))
}

/// Creates a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_create(
    file: *const c_char,
    bsize: usize,
    poolsize: usize,
    mode: libc::mode_t,
) -> *mut Pool {
    // SAFETY: a path, as the header asks.
    let path = unsafe { path(file) };
    pointer(block_bytes(bsize).and_then(|bytes| Pool::create(path, bytes, poolsize as u64, mode)))
}

/// Closes a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_close(pool: *mut Pool) {
    debug_assert!(!pool.is_null(), "the caller passes an open pool");
    // SAFETY: a pool from `pointer`, which nobody uses any more.
    drop(unsafe { Box::from_raw(pool) });
}

/// Checks whether a pool that nobody uses is consistent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_check(file: *const c_char, bsize: usize) -> c_int {
    // SAFETY: a path, as the header asks.
    let path = unsafe { path(file) };
    let options =
        ImageOptions { read_only: true, durability: Durability::Calls, ..ImageOptions::default() };
    let checked = block_bytes(bsize).and_then(|bytes| {
        let image = Image::identify(path, &options)?;
        let Image { memory, container, own_uuid, unwritten } = &image;
        let whole = check::Options { container: *container, own_uuid: *own_uuid, keep: 0 };
        let (report, _) = check::check(memory, &whole, &mut |_| ())
            .map_err(|error| Failure::new(libc::EIO, error))?;
        // An unwritten pool has no BTT that could be damaged.
        let is_whole = report.is_clean() || unwritten.is_some();
        if is_whole && bytes != 0 && image.open(&options)?.sector_bytes() != bytes {
            return Err(Failure::argument("the blocks of the pool have another size"));
        }
        Ok(is_whole)
    });
    match checked {
        Ok(is_whole) => is_whole.into(),
        Err(failure) => {
            failure.keep();
            -1
        }
    }
}

/// Returns the bytes of a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_bsize(pool: *mut Pool) -> usize {
    // SAFETY: an open pool.
    unsafe { opened(pool) }.btt().sector_bytes() as usize
}

/// Returns the number of blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_nblock(pool: *mut Pool) -> usize {
    // SAFETY: an open pool.
    let sectors = unsafe { opened(pool) }.btt().sectors();
    usize::try_from(sectors).unwrap_or(usize::MAX)
}

/// Reads a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_read(
    pool: *mut Pool,
    to: *mut c_void,
    blockno: c_longlong,
) -> c_int {
    // SAFETY: an open pool.
    let pool = unsafe { opened(pool) };
    debug_assert!(!to.is_null(), "the caller passes a buffer");
    // SAFETY: a buffer of a block's bytes, which nothing else uses during the call.
    let to = unsafe { slice::from_raw_parts_mut(to.cast(), pool.btt().sector_bytes() as usize) };
    number(block(blockno).and_then(|lba| Ok(pool.act(|worker| worker.read(lba, to))?)))
}

/// Writes a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_write(
    pool: *mut Pool,
    from: *const c_void,
    blockno: c_longlong,
) -> c_int {
    // SAFETY: an open pool.
    let pool = unsafe { opened(pool) };
    debug_assert!(!from.is_null(), "the caller passes a buffer");
    // SAFETY: a buffer of a block's bytes, which nobody writes during the call.
    let from = unsafe { slice::from_raw_parts(from.cast(), pool.btt().sector_bytes() as usize) };
    number(block(blockno).and_then(|lba| Ok(pool.act(|worker| worker.write(lba, from))?)))
}

/// Zeroes a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_set_zero(pool: *mut Pool, blockno: c_longlong) -> c_int {
    // SAFETY: an open pool.
    let btt = unsafe { opened(pool) }.btt();
    number(block(blockno).and_then(|lba| Ok(btt.set_zero(lba, 1)?)))
}

/// Marks a block as lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_set_error(pool: *mut Pool, blockno: c_longlong) -> c_int {
    // SAFETY: an open pool.
    let btt = unsafe { opened(pool) }.btt();
    number(block(blockno).and_then(|lba| Ok(btt.set_error(lba)?)))
}

/// Returns why a program compiled for a version cannot run with this library, or null if it can.
#[unsafe(no_mangle)]
pub extern "C" fn pmemblk_check_version(major: c_uint, minor: c_uint) -> *const c_char {
    if major == VERSION.0 && minor <= VERSION.1 {
        return ptr::null();
    }
    Failure::argument("this library has version 1.1 of the interface").keep();
    error::last()
}

/// Returns the text of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn pmemblk_errormsg() -> *const c_char {
    error::last()
}

/// Accepted and ignored: the library does not allocate with these functions.
#[unsafe(no_mangle)]
pub extern "C" fn pmemblk_set_funcs(
    _malloc: *const c_void,
    _free: *const c_void,
    _realloc: *const c_void,
    _strdup: *const c_void,
) {
}

fn unknown_name() -> c_int {
    number(Err(Failure::new(libc::ENOENT, "no setting has this name")))
}

/// Fails, because no setting can be read by name.
#[unsafe(no_mangle)]
pub extern "C" fn pmemblk_ctl_get(_: *mut Pool, _: *const c_char, _: *mut c_void) -> c_int {
    unknown_name()
}

/// Fails, because no setting can be set by name.
#[unsafe(no_mangle)]
pub extern "C" fn pmemblk_ctl_set(_: *mut Pool, _: *const c_char, _: *mut c_void) -> c_int {
    unknown_name()
}

/// Fails, because no action can be run by name.
#[unsafe(no_mangle)]
pub extern "C" fn pmemblk_ctl_exec(_: *mut Pool, _: *const c_char, _: *mut c_void) -> c_int {
    unknown_name()
}
