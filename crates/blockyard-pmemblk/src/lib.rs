//! libpmemblk's calls over [`blockyard_btt`]. `include/blockyard_pmemblk.h` documents them.
//!
//! # Safety
//!
//! As with libpmemblk, callers ensure what C cannot express: a pool came from `pmemblk_open` or
//! `pmemblk_create` and was not passed to `pmemblk_close`; a text ends with a zero; a buffer has
//! the bytes of a block. A null pointer gives EINVAL. A pool is one allocation, which
//! `pmemblk_close` frees.

mod error;
mod pool;
mod seat;
mod setting;

use blockyard_btt::check;
use blockyard_pmem::{Durability, Image, ImageOptions};
use core::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use core::{ptr, slice};
use error::{Failure, number, or_zero, pointer};
use pool::Pool;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The version of libpmemblk's interface.
const VERSION: (c_uint, c_uint) = (1, 1);

/// Returns the path at `text`; `None` for null.
///
/// # Safety
///
/// `text` is null, or a string that ends in a zero byte and lives as long as the result.
unsafe fn path_at<'a>(text: *const c_char) -> Option<&'a Path> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    Some(Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes())))
}

/// Carries out a call with a path.
fn with_path<T>(
    call: &str,
    path: Option<&Path>,
    act: impl FnOnce(&Path) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(path) = path else {
        return Err(Failure::argument(format_args!("{call}: the path is NULL")));
    };
    act(path).map_err(|failure| failure.of(call, path))
}

/// Returns the pool at `pool`; `None` for null.
///
/// # Safety
///
/// `pool` is null, or came from `pmemblk_open` or `pmemblk_create` and stays open as long as the
/// result lives.
unsafe fn pool_at<'a>(pool: *mut Pool) -> Option<&'a Pool> {
    debug_assert!(pool.is_aligned(), "the caller passes an open pool");
    // SAFETY: as the caller promises.
    unsafe { pool.as_ref() }
}

/// Carries out a call with an open pool.
fn with_pool<T>(
    call: &str,
    pool: Option<&Pool>,
    act: impl FnOnce(&Pool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(pool) = pool else {
        return Err(Failure::argument(format_args!("{call}: the pool is NULL")));
    };
    act(pool).map_err(|failure| failure.of(call, pool.path()))
}

fn buffer_is_null() -> Failure {
    Failure::argument("the buffer is NULL")
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
    // SAFETY: a path or null, as the header asks.
    let path = unsafe { path_at(file) };
    pointer(with_path("pmemblk_open", path, |path| Ok(Pool::open(path, block_bytes(bsize)?)?)))
}

/// Creates a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_create(
    file: *const c_char,
    bsize: usize,
    poolsize: usize,
    mode: libc::mode_t,
) -> *mut Pool {
    // SAFETY: a path or null, as the header asks.
    let path = unsafe { path_at(file) };
    pointer(with_path("pmemblk_create", path, |path| {
        Pool::create(path, block_bytes(bsize)?, poolsize as u64, mode)
    }))
}

/// Closes a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_close(pool: *mut Pool) {
    if pool.is_null() {
        return Failure::argument("pmemblk_close: the pool is NULL").keep();
    }
    // SAFETY: a pool from `pointer`, which nobody uses any more.
    drop(unsafe { Box::from_raw(pool) });
}

/// Checks whether a pool that nobody uses is consistent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_check(file: *const c_char, bsize: usize) -> c_int {
    let options =
        ImageOptions { read_only: true, durability: Durability::Calls, ..ImageOptions::default() };
    // SAFETY: a path or null, as the header asks.
    let path = unsafe { path_at(file) };
    match with_path("pmemblk_check", path, |path| {
        let bytes = block_bytes(bsize)?;
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
    }) {
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
    // SAFETY: an open pool or null.
    let pool = unsafe { pool_at(pool) };
    or_zero(with_pool("pmemblk_bsize", pool, |pool| Ok(pool.btt().sector_bytes() as usize)))
}

/// Returns the number of blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_nblock(pool: *mut Pool) -> usize {
    // SAFETY: an open pool or null.
    let pool = unsafe { pool_at(pool) };
    or_zero(with_pool("pmemblk_nblock", pool, |pool| {
        Ok(usize::try_from(pool.btt().sectors()).unwrap_or(usize::MAX))
    }))
}

/// Reads a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_read(
    pool: *mut Pool,
    to: *mut c_void,
    blockno: c_longlong,
) -> c_int {
    // SAFETY: an open pool or null.
    let pool = unsafe { pool_at(pool) };
    number(with_pool("pmemblk_read", pool, |pool| {
        if to.is_null() {
            return Err(buffer_is_null());
        }
        let bytes = pool.btt().sector_bytes() as usize;
        // SAFETY: a buffer of a block's bytes, which nothing else uses during the call.
        let to = unsafe { slice::from_raw_parts_mut(to.cast(), bytes) };
        block(blockno).and_then(|lba| Ok(pool.act(|worker| worker.read(lba, to))?))
    }))
}

/// Writes a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_write(
    pool: *mut Pool,
    from: *const c_void,
    blockno: c_longlong,
) -> c_int {
    // SAFETY: an open pool or null.
    let pool = unsafe { pool_at(pool) };
    number(with_pool("pmemblk_write", pool, |pool| {
        if from.is_null() {
            return Err(buffer_is_null());
        }
        let bytes = pool.btt().sector_bytes() as usize;
        // SAFETY: a buffer of a block's bytes, which nobody writes during the call.
        let from = unsafe { slice::from_raw_parts(from.cast(), bytes) };
        block(blockno).and_then(|lba| Ok(pool.act(|worker| worker.write(lba, from))?))
    }))
}

/// Zeroes a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_set_zero(pool: *mut Pool, blockno: c_longlong) -> c_int {
    // SAFETY: an open pool or null.
    let pool = unsafe { pool_at(pool) };
    number(with_pool("pmemblk_set_zero", pool, |pool| {
        Ok(pool.btt().set_zero(block(blockno)?, 1)?)
    }))
}

/// Marks a block as lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_set_error(pool: *mut Pool, blockno: c_longlong) -> c_int {
    // SAFETY: an open pool or null.
    let pool = unsafe { pool_at(pool) };
    number(with_pool("pmemblk_set_error", pool, |pool| {
        Ok(pool.btt().set_error(block(blockno)?)?)
    }))
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

/// Reads a setting into an int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_ctl_get(
    _: *mut Pool,
    name: *const c_char,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: a text or null, and an int or null, as the header asks.
    number(unsafe { setting::with("pmemblk_ctl_get", name, arg, setting::get) })
}

/// Sets a setting to an int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_ctl_set(
    _: *mut Pool,
    name: *const c_char,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: as above.
    number(unsafe { setting::with("pmemblk_ctl_set", name, arg, setting::set) })
}

/// Fails, because no action can be run by name.
#[unsafe(no_mangle)]
pub extern "C" fn pmemblk_ctl_exec(_: *mut Pool, _: *const c_char, _: *mut c_void) -> c_int {
    number(Err(Failure::argument("pmemblk_ctl_exec: no action has this name")))
}
