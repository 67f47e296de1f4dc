//! Errors in C's form: a special return value, `errno`, and a text for the thread.
#![allow(clippy::missing_const_for_thread_local, reason = "a text is not made at compile time")]

use blockyard_btt::{IoError, MediaError};
use blockyard_pmem::{ImageError, PoolSetError};
use core::cell::RefCell;
use core::ffi::{c_char, c_int};
use core::fmt::Display;
use std::ffi::CString;
use std::io;
use std::path::Path;

/// Why a call failed.
pub(crate) struct Failure {
    number: c_int,
    text: String,
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

impl Failure {
    /// Makes a failure with an `errno` value and a text.
    pub(crate) fn new(number: c_int, text: impl Display) -> Self {
        debug_assert!(number > 0, "values of errno are positive");
        Self { number, text: text.to_string() }
    }

    /// Makes a failure for an impossible argument.
    pub(crate) fn argument(text: impl Display) -> Self {
        Self::new(libc::EINVAL, text)
    }

    /// Names the call that failed, and its file.
    pub(crate) fn of(self, call: &str, file: &Path) -> Self {
        let text = format!("{call}: {}: {}", file.display(), self.text);
        Self { text: text.replace('\0', ""), ..self }
    }

    /// Sets `errno` and the thread's text.
    pub(crate) fn keep(&self) {
        debug_assert!(!self.text.contains('\0'), "a text without zero bytes");
        LAST.set(CString::new(&*self.text).unwrap_or_default());
        // SAFETY: the address of this thread's errno.
        unsafe { *libc::__errno_location() = self.number };
    }
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Self {
        let number = match error {
            IoError::OutOfRange | IoError::Length => libc::EINVAL,
            IoError::ReadOnly => libc::EROFS,
            IoError::Media(MediaError::NoSpace) => libc::ENOSPC,
            IoError::Lost | IoError::Broken | IoError::Map | IoError::Media(_) => libc::EIO,
        };
        Self::new(number, error)
    }
}

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        match &error {
            ImageError::File(file) => Self::new(from_io(file), &error),
            ImageError::PoolSet(PoolSetError::Unsupported(..)) => Self::new(libc::ENOTSUP, &error),
            ImageError::Pool(_)
            | ImageError::PoolSet(_)
            | ImageError::Btt(_)
            | ImageError::Broken(..) => Self::argument(&error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(from_io(&error), error)
    }
}

fn from_io(error: &io::Error) -> c_int {
    let by_kind = match error.kind() {
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::StorageFull => libc::ENOSPC,
        io::ErrorKind::AlreadyExists => libc::EEXIST,
        io::ErrorKind::ResourceBusy => libc::EWOULDBLOCK,
        io::ErrorKind::Unsupported => libc::ENOTSUP,
        _ => libc::EIO,
    };
    error.raw_os_error().unwrap_or(by_kind)
}

/// Returns 0, or keeps the failure and returns -1.
pub(crate) fn number(done: Result<(), Failure>) -> c_int {
    match done {
        Ok(()) => 0,
        Err(failure) => {
            failure.keep();
            -1
        }
    }
}

/// Returns the value, or keeps the failure and returns 0.
pub(crate) fn or_zero(done: Result<usize, Failure>) -> usize {
    done.unwrap_or_else(|failure| {
        failure.keep();
        0
    })
}

/// Returns a pointer to the value in an allocation of its own, or keeps the failure and returns
/// null.
pub(crate) fn pointer<T>(made: Result<T, Failure>) -> *mut T {
    match made {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(failure) => {
            failure.keep();
            core::ptr::null_mut()
        }
    }
}

/// Returns this thread's last text.
pub(crate) fn last() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}
