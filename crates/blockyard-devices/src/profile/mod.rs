//! Profiles: designs and devices as data.
//!
//! A [`Design`] is a named set of policies. A [`Device`] is a named model with its figures, and the
//! machine that uses it. Both are TOML files. Some are built in, and a path to a file works
//! wherever a name does. A file may build on a built-in profile with `base = "name"`, or on another
//! file with `base = "path.toml"`; then it has only the keys that differ. `processors = "name"`
//! gives a device's machine the costs of a class of processors. Times, sizes and rates carry their
//! unit (`"1.5us"`, `"1TiB"`, `"2400MB/s"`).
//!
//! An [`Override`] replaces one value of a device or of a design: `card.read.access=900us`,
//! `queue.deadline.fifo-batch=4`.
//!
//! [`FaultRules`] and [`FileSystem`]s are read in the same way, from files of their own.
//!
//! Nothing is ignored. An unknown key or value, a wrong type, a number out of range and a missing
//! key are errors with file and line and, if there is one, the nearest valid spelling.
//!
//! The figures of a family stand in the folder of the family, next to its model; this module joins
//! them to devices.

mod adios;
mod charged;
mod design;
mod device;
mod fault;
mod filesystem;
mod host;
mod linux;
mod overrides;
mod read_ahead;
#[cfg(test)]
mod tests;
mod wbt;
mod worker;

pub use crate::btt::{BttDesign, Copying, Fences, Words};
pub use crate::cache::CacheProfile;
pub use crate::crosspoint::profile::CrosspointProfile;
pub use crate::disk::profile::{CommandOrder, DiskCacheProfile, PlattersProfile, SeekProfile};
pub use crate::families::{DeviceModel, family_tables};
pub use crate::flash::profile::{Choice, DieOrder, FlashProfile, FullBuffer};
pub use crate::fronts::ahci::profile::AhciProfile;
pub use crate::fronts::coalescing::CoalescingProfile;
pub use crate::fronts::nvme::pcie::PcieProfile;
pub use crate::fronts::nvme::profile::NvmeProfile;
pub use crate::fronts::profile::{DriveProfile, FrontProfile, MediumProfile, drive_tables};
pub use crate::fronts::ufs::profile::UfsProfile;
pub use crate::fronts::usb::profile::{UsbProfile, UsbProtocol};
pub use crate::fronts::virtio::profile::{VirtioEngine, VirtioProfile};
pub use crate::machine::MachineProfile;
pub use crate::mmc::profile::{
    AheadTiming, BackgroundTiming, BadTiming, CardFaults, CardFeatures, CardProfile, CardTiming,
    ControlTiming, EraseTiming, Gather, HostCosts, HostFaults, MemoryCosts, MmcFaults,
    MmcHostProfile, MmcProfile, PioMisses, PioWait, ReadTiming, Stall, UnitTiming, WriteTiming,
};
pub use crate::null::profile::{NullCompletion, NullProfile};
pub use crate::pmem::profile::{CAPACITY_MAX, CAPACITY_MIN, CopyProfile, Mapping, PmemProfile};
pub use crate::reader::builtin::{Builtin, is_path};
pub use crate::reader::error::{MAX_FILE_BYTES, Problem, ProfileError};
pub use crate::reader::instead::read_time;
pub use crate::reader::reading::{Basis, Figure, Reading};
pub use crate::reader::spread::Spread;
pub use crate::scsi::profile::{HbaProfile, Refusal, RefusalMode};
pub use crate::terms::DISKS_MAX;
pub use crate::volume::profile::{BucketProfile, VolumeProfile};
pub use design::{Design, KindQueues, canonical, short_name};
pub(crate) use design::{POLL_QUEUES, READ_QUEUES};
pub use device::Device;
pub use fault::{FaultRules, NoCard};
pub use filesystem::{CommitSizes, FileSystem, FileSystemRules, Journal};
pub(crate) use host::asked;
pub use host::{Ask, HostLines};
pub use overrides::{Override, variant_name};
pub use read_ahead::{PAGE_BYTES, Reach, ReadAheadPolicy};
pub use wbt::WbtLatency;
pub use worker::WorkerTurn;

use crate::reader::{base, source};

/// Returns the built-in designs, oldest first.
#[must_use]
pub const fn builtin_designs() -> &'static [Builtin] {
    design::BUILTIN
}

/// Returns the built-in devices.
#[must_use]
pub const fn builtin_devices() -> &'static [Builtin] {
    device::BUILTIN
}

/// Returns the built-in classes of processors, of which devices are made.
#[must_use]
pub const fn builtin_processors() -> &'static [Builtin] {
    crate::machine::PROCESSORS
}

/// Returns the built-in file systems.
#[must_use]
pub const fn builtin_file_systems() -> &'static [Builtin] {
    filesystem::BUILTIN
}

/// Returns the built-in design, device, class of processors or file system with this name, or the
/// design that it is [short for](canonical).
///
/// # Errors
///
/// [`ProfileError::UnknownName`] if there is none.
pub fn builtin(name: &str) -> Result<Builtin, ProfileError> {
    all_builtin().find(|builtin| builtin.name == canonical(name)).copied().ok_or_else(|| {
        ProfileError::UnknownName {
            what: "design, device, processors or file system",
            name: name.to_owned(),
            known: all_builtin().map(|builtin| builtin.name).collect(),
        }
    })
}

fn all_builtin() -> impl Iterator<Item = &'static Builtin> {
    let parts = builtin_processors().iter().chain(builtin_file_systems());
    builtin_designs().iter().chain(builtin_devices()).chain(parts)
}

/// Returns the text of the file at `path` and those of the profiles on which it builds, the nearest
/// first.
///
/// # Errors
///
/// A file cannot be read.
pub fn layers(path: &str) -> Result<Vec<String>, ProfileError> {
    let text = source::read(path)?;
    let mut files = base::Bases::of(path, &text)?.into_texts();
    let mut texts = Vec::new();
    let mut next = Some(text);
    while let Some(text) = next {
        // The class of processors comes after the file and before its base.
        let class = builtin_named_in(&text, base::PROCESSORS);
        next = files.next().or_else(|| builtin_named_in(&text, base::BASE));
        texts.push(text);
        texts.extend(class);
    }
    Ok(texts)
}

/// Returns the text of the built-in profile that `text` names for `key`, if there is one.
fn builtin_named_in(text: &str, key: &str) -> Option<String> {
    let name = base::named_in(text, key)?;
    builtin(&name).ok().map(|builtin| builtin.text.to_owned())
}
