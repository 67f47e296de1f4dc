//! libpmemblk's calls over [`blockyard_btt`]. `include/blockyard_pmemblk.h` documents them.
//!
//! # Safety
//!
//! As with libpmemblk, callers ensure what C cannot express: a pool came from `pmemblk_open` or `pmemblk_create` and
//! was not passed to `pmemblk_close`; a text ends with a zero; a buffer has the bytes of a block. A null pointer gives EINVAL. A pool is one
//! allocation, which `pmemblk_close` frees.

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

/// Carries out a call with the path of a file.
///
/// # Safety
///
/// `text` is null, or ends with a zero and outlives the call.
unsafe fn with_path<T>(
    call: &str,
    text: *const c_char,
    act: impl FnOnce(&Path) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if text.is_null() {
        return Err(Failure::argument(format_args!("{call}: the path is NULL")));
    }
    // SAFETY: as the caller promises.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()));
    act(path).map_err(|failure| failure.of(call, path))
}

/// Carries out a call with an open pool.
///
/// # Safety
///
/// `pool` is null, or came from `pmemblk_open` or `pmemblk_create` and is still open.
unsafe fn with_pool<T>(
    call: &str,
    pool: *mut Pool,
    act: impl FnOnce(&Pool) -> Result<T, Failure>,
) -> Result<T, Failure> {
    debug_assert!(pool.is_aligned(), "the caller passes an open pool");
    // SAFETY: as the caller promises.
    let Some(pool) = (unsafe { pool.as_ref() }) else {
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
    let open = |path: &Path| Ok(Pool::open(path, block_bytes(bsize)?)?);
    // SAFETY: a path or null, as the header asks.
    pointer(unsafe { with_path("pmemblk_open", file, open) })
}

/// Creates a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_create(
    file: *const c_char,
    bsize: usize,
    poolsize: usize,
    mode: libc::mode_t,
) -> *mut Pool {
    let create = |path: &Path| Pool::create(path, block_bytes(bsize)?, poolsize as u64, mode);
    // SAFETY: a path or null, as the header asks.
    pointer(unsafe { with_path("pmemblk_create", file, create) })
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
    let check = |path: &Path| {
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
    };
    // SAFETY: a path or null, as the header asks.
    match unsafe { with_path("pmemblk_check", file, check) } {
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
    let bytes = |pool: &Pool| Ok(pool.btt().sector_bytes() as usize);
    // SAFETY: an open pool or null.
    or_zero(unsafe { with_pool("pmemblk_bsize", pool, bytes) })
}

/// Returns the number of blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_nblock(pool: *mut Pool) -> usize {
    let blocks = |pool: &Pool| Ok(usize::try_from(pool.btt().sectors()).unwrap_or(usize::MAX));
    // SAFETY: an open pool or null.
    or_zero(unsafe { with_pool("pmemblk_nblock", pool, blocks) })
}

/// Reads a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_read(
    pool: *mut Pool,
    to: *mut c_void,
    blockno: c_longlong,
) -> c_int {
    let read = |pool: &Pool| {
        if to.is_null() {
            return Err(buffer_is_null());
        }
        let bytes = pool.btt().sector_bytes() as usize;
        // SAFETY: a buffer of a block's bytes, which nothing else uses during the call.
        let to = unsafe { slice::from_raw_parts_mut(to.cast(), bytes) };
        block(blockno).and_then(|lba| Ok(pool.act(|worker| worker.read(lba, to))?))
    };
    // SAFETY: an open pool or null.
    number(unsafe { with_pool("pmemblk_read", pool, read) })
}

/// Writes a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_write(
    pool: *mut Pool,
    from: *const c_void,
    blockno: c_longlong,
) -> c_int {
    let write = |pool: &Pool| {
        if from.is_null() {
            return Err(buffer_is_null());
        }
        let bytes = pool.btt().sector_bytes() as usize;
        // SAFETY: a buffer of a block's bytes, which nobody writes during the call.
        let from = unsafe { slice::from_raw_parts(from.cast(), bytes) };
        block(blockno).and_then(|lba| Ok(pool.act(|worker| worker.write(lba, from))?))
    };
    // SAFETY: an open pool or null.
    number(unsafe { with_pool("pmemblk_write", pool, write) })
}

/// Zeroes a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_set_zero(pool: *mut Pool, blockno: c_longlong) -> c_int {
    let zero = |pool: &Pool| Ok(pool.btt().set_zero(block(blockno)?, 1)?);
    // SAFETY: an open pool or null.
    number(unsafe { with_pool("pmemblk_set_zero", pool, zero) })
}

/// Marks a block as lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmemblk_set_error(pool: *mut Pool, blockno: c_longlong) -> c_int {
    let mark = |pool: &Pool| Ok(pool.btt().set_error(block(blockno)?)?);
    // SAFETY: an open pool or null.
    number(unsafe { with_pool("pmemblk_set_error", pool, mark) })
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
