//! The settings that programs read and set by name. They are those of libpmemblk, and belong to the
//! process.

use crate::error::Failure;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering};
use std::sync::Once;

/// The settings, with libpmemblk's values at the start.
static SETTINGS: [(&str, AtomicI32); 5] = [
    ("fallocate.at_create", AtomicI32::new(1)),
    ("sds.at_create", AtomicI32::new(1)),
    ("prefault.at_open", AtomicI32::new(0)),
    ("prefault.at_create", AtomicI32::new(0)),
    ("copy_on_write.at_open", AtomicI32::new(0)),
];

/// The variable with values at the start of the process, as `name=value;name=value`.
const VARIABLE: &str = "PMEMBLK_CONF";

/// Returns the settings, after those of the variable were read once. What is malformed there is
/// ignored.
fn settings() -> &'static [(&'static str, AtomicI32)] {
    static READ: Once = Once::new();
    READ.call_once(|| {
        let variable = std::env::var(VARIABLE).unwrap_or_default();
        for (name, value) in variable.split(';').filter_map(|query| query.split_once('=')) {
            let value = match value.as_bytes().first() {
                Some(b'1' | b'y' | b'Y') => 1,
                Some(b'0' | b'n' | b'N') => 0,
                _ => continue,
            };
            if let Some((_, setting)) = SETTINGS.iter().find(|setting| setting.0 == name) {
                setting.store(value, Ordering::Relaxed);
            }
        }
    });
    &SETTINGS
}

/// Whether pools in existing files are to get all their space.
pub(crate) fn allocates() -> bool {
    let [(name, value), ..] = settings() else { unreachable!("the table of settings has rows") };
    debug_assert_eq!(*name, "fallocate.at_create", "the first setting");
    value.load(Ordering::Relaxed) != 0
}

/// Whether changes to pools are to end when they are closed.
pub(crate) fn copies_on_write() -> bool {
    let [.., (name, value)] = settings() else { unreachable!("the table of settings has rows") };
    debug_assert_eq!(*name, "copy_on_write.at_open", "the last setting");
    value.load(Ordering::Relaxed) != 0
}

pub(crate) fn get(setting: &AtomicI32, arg: &mut c_int) {
    *arg = setting.load(Ordering::Relaxed);
}

pub(crate) fn set(setting: &AtomicI32, arg: &mut c_int) {
    setting.store(*arg, Ordering::Relaxed);
}

/// Calls `act` with the setting of a name and the int at `arg`.
///
/// # Safety
///
/// `name` is null or ends with a zero. `arg` is null or points to an int that nothing else uses.
pub(crate) unsafe fn with(
    call: &str,
    name: *const c_char,
    arg: *mut c_void,
    act: impl FnOnce(&AtomicI32, &mut c_int),
) -> Result<(), Failure> {
    if name.is_null() || arg.is_null() {
        return Err(Failure::argument(format_args!("{call}: the name or its argument is NULL")));
    }
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(name) };
    let Some((_, setting)) = settings()
        .iter()
        .find(|setting: &&(&str, AtomicI32)| setting.0.as_bytes() == name.to_bytes())
    else {
        let name = name.to_string_lossy();
        return Err(Failure::argument(format_args!("{call}: no setting is called {name}")));
    };
    // SAFETY: as the caller promises.
    act(setting, unsafe { &mut *arg.cast::<c_int>() });
    Ok(())
}
