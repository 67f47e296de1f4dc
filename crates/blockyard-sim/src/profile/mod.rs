//! Profiles: designs and devices as data.
//!
//! A [`Design`] is a named set of policies, a [`Device`] a named model with its figures and the
//! machine it is used from. Both are TOML files; some are built in, and a path to a file works
//! wherever a name does. A file may build on a built-in profile with `base = "name"` and then says
//! only what differs. Times, sizes and rates carry their unit (`"1.5us"`, `"1TiB"`, `"2400MB/s"`).
//!
//! [`FaultRules`] are read the same way, from a file of their own.
//!
//! Nothing is ignored: an unknown key or value, a wrong type, a number out of range or a missing
//! key is an error that names file, line and, where there is one, the nearest valid spelling.

mod btt;
mod design;
mod device;
mod error;
mod fault;
mod host;
mod machine;
mod mmc;
mod pmem;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::fs::File;
use std::io::Read;

pub use btt::{BttDesign, Fences};
pub use design::{Design, KindQueues, ReadAheadPolicy};
pub(crate) use design::{POLL_QUEUES, READ_QUEUES};
pub use device::{
    CacheProfile, Device, DeviceModel, HbaProfile, NullCompletion, NullProfile, Refusal,
    RefusalMode,
};
pub use error::{Problem, ProfileError};
pub use fault::FaultRules;
pub(crate) use host::asked;
pub use host::{Ask, HostLines};
pub use machine::MachineProfile;
pub use mmc::{
    CardFeatures, CardProfile, HostCosts, HostFaults, MemoryCosts, MmcHostProfile, MmcProfile,
    PioMisses,
};
pub use pmem::{CopyProfile, Copying, Mapping, PmemProfile};
use table::Source;
pub use value::time;

/// Most bytes a profile may have.
pub const MAX_FILE_BYTES: u64 = 64 * 1024;

/// A profile that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its TOML text.
    pub text: &'static str,
}

impl Builtin {
    const fn source(&self) -> Source<'static> {
        Source { name: self.name, text: self.text }
    }
}

/// The built-in profiles that `files` in `folder` are the text of.
macro_rules! builtins {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$($crate::profile::Builtin {
            name: $name,
            text: include_str!(concat!("../../profiles/", $folder, "/", $name, ".toml")),
        }),+]
    };
}
use builtins;

/// The built-in designs, oldest first.
#[must_use]
pub const fn builtin_designs() -> &'static [Builtin] {
    design::BUILTIN
}

/// The built-in devices.
#[must_use]
pub const fn builtin_devices() -> &'static [Builtin] {
    device::BUILTIN
}

/// The built-in profile, design or device, called `name`.
///
/// # Errors
///
/// [`ProfileError::UnknownName`] where there is none.
pub fn builtin(name: &str) -> Result<Builtin, ProfileError> {
    let all = || builtin_designs().iter().chain(builtin_devices());
    all().find(|builtin| builtin.name == name).copied().ok_or_else(|| ProfileError::UnknownName {
        what: "design or device",
        name: name.to_owned(),
        known: all().map(|builtin| builtin.name).collect(),
    })
}

/// Whether `name_or_path` is a path: it has a `/`, or ends in `.toml`.
fn is_path(name_or_path: &str) -> bool {
    name_or_path.contains('/') || name_or_path.ends_with(".toml")
}

/// The text of the profile called or kept at `name_or_path`.
fn text_of(
    what: &'static str,
    name_or_path: &str,
    builtins: &'static [Builtin],
) -> Result<String, ProfileError> {
    if is_path(name_or_path) {
        return read(name_or_path);
    }
    let found = builtins.iter().find(|builtin| builtin.name == name_or_path);
    found.map(|builtin| builtin.text.to_owned()).ok_or_else(|| ProfileError::UnknownName {
        what,
        name: name_or_path.to_owned(),
        known: builtins.iter().map(|builtin| builtin.name).collect(),
    })
}

/// The text of the file at `path`.
fn read(path: &str) -> Result<String, ProfileError> {
    let unreadable = |error| ProfileError::Unreadable { file: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let len = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if len as u64 > MAX_FILE_BYTES {
        return Err(ProfileError::TooLong { file: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        ProfileError::Wrong { file: path.to_owned(), line, problem: Problem::NotText }
    })
}
