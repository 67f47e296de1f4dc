//! Devices: models with their figures and limits, and the machine that uses them.

use std::borrow::Cow;

use crate::null::profile::{NullProfile, null};
use crate::scsi::profile::{HbaProfile, hba};
use blockyard::limits::Limits;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;

use super::base::{self, Bases};
use super::builtin::{Builtin, builtins, text_of};
use super::design::Design;
use super::error::{Problem, ProfileError};
use super::exclusive::DRIVE_TABLES;
use super::machine::{MachineProfile, PROCESSORS, machine};
use super::overrides::{self, Overlay, Override};
use super::reading::{Figure, Notes, Reading};
use super::source::Source;
use super::table::{Choices, Table};
use super::value::{Bytes, Count, Flag, OneOf, Text, Time};
use crate::flash::profile::{FLASH_KEYS, FlashProfile};
use crate::fronts::profile::{DriveProfile, MediumProfile, drive};
use crate::mmc::profile::{MmcProfile, mmc};
use crate::pmem::profile::{CAPACITY_MAX, CAPACITY_MIN, PmemProfile, pmem};

/// The largest number of disks on one host.
pub const DISKS_MAX: u16 = 1024;

/// A device, and the machine that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The built-in name or the path by which it was asked for.
    pub name: String,
    /// A description in one line; empty if the file has none.
    pub title: String,
    /// The model.
    pub model: DeviceModel,
    /// The limits of a request; the capacity is that of one LUN.
    pub limits: Limits,
    /// The costs of its volatile cache, if the file has them.
    pub cache: Option<CacheProfile>,
    /// The machine.
    pub machine: MachineProfile,
    /// The figures that say where they come from, by key.
    pub figures: Vec<Figure>,
}

/// The time of a flush of a volatile write cache, beyond that of the command itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheProfile {
    /// Time of any flush.
    pub flush: Duration,
    /// Time for each MiB written since the last flush.
    pub flush_per_mib: Duration,
}

/// The model of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there are one or two of them at a time")]
pub enum DeviceModel {
    /// A device that only completes requests: `[null]`.
    Null(NullProfile),
    /// A SCSI host with its target: `[hba]`.
    Hba(HbaProfile),
    /// An eMMC device or SD card behind its host: `[card]` and `[host]`.
    Mmc(MmcProfile),
    /// Memory that keeps its bytes: `[pmem]`.
    Pmem(PmemProfile),
    /// A drive: the tables of a front end and of a medium.
    Drive(DriveProfile),
}

pub(crate) const BUILTIN: &[Builtin] = builtins!("devices":
    "null",
    "srp",
    "lpfc",
    "lpfc-host-full",
    "lpfc-target-full",
    "lpfc-lun-full",
    "qla2xxx",
    "sd-ux500",
    "emmc-u5500",
    "emmc-hs400-sprd",
    "sd-hs-sprd",
    "sd-default",
    "sd-hs",
    "sd-hs-bounce",
    "sd-sdr50",
    "sd-ddr50",
    "sd-sdr104",
    "sd-noname",
    "sd-a1",
    "sd-a2",
    "sd-endurance",
    "emmc-hs",
    "emmc-ddr52",
    "emmc-hs200",
    "emmc-hs400",
    "emmc-45",
    "emmc-51-small",
    "emmc-51-large",
    "pmem-dram",
    "pmem-3dxpoint",
    "pmem-dram-2015",
    "nvme-3dxpoint",
    "nvme-tlc",
    "nvme-tlc-dramless",
    "nvme-qlc",
    "nvme-dc",
    "sata-ssd",
    "sata-ssd-dc",
    "virtio-3dxpoint",
    "virtio-page-cache",
    "cloud-gp3",
    "cloud-gp2",
    "hdd-7200",
    "hdd-5400",
    "hdd-15k",
    "usb-hdd",
    "usb-ssd",
    "ufs-3",
    "ufs-4",
);

const KEYS: &[&str] = &[
    "title",
    "base",
    "processors",
    "limits",
    "cache",
    "null",
    "hba",
    "host",
    "card",
    "pmem",
    "nvme",
    "ahci",
    "virtio",
    "ufs",
    "usb",
    "crosspoint",
    "volume",
    "platters",
    "flash",
    "cpu",
];
const CACHE: &[&str] = &["flush", "flush-per-mib"];
const LIMITS: &[&str] = &[
    "capacity",
    "logical-block",
    "max-sectors",
    "max-segments",
    "max-discard-sectors",
    "max-discard-segments",
    "max-write-zeroes-sectors",
    "chunk-sectors",
    "virt-boundary",
    "write-cache",
    "fua",
    "rotational",
];
/// For each table, the device that is most likely the base of a file with it; others are drives of flash. The first one counts.
pub(crate) const USUAL_BASES: &[(&str, &str)] = &[
    ("platters", "hdd-7200"),
    ("volume", "cloud-gp3"),
    ("crosspoint", "nvme-3dxpoint"),
    ("ahci", "sata-ssd"),
    ("ufs", "ufs-3"),
    ("usb", "usb-ssd"),
    ("virtio", "virtio-3dxpoint"),
    ("card", "emmc-hs400"),
    ("host", "emmc-hs400"),
    ("pmem", "pmem-dram"),
    ("hba", "srp"),
    ("null", "null"),
];
/// The sizes of a logical block, in sectors.
const LOGICAL_BLOCK: &[(&str, u32)] =
    &[("512B", 1), ("1KiB", 2), ("2KiB", 4), ("4KiB", 8), ("8KiB", 16), ("16KiB", 32)];

impl DeviceModel {
    /// The tables of its profile that only this model has.
    pub(crate) fn tables(&self) -> Vec<&'static str> {
        match self {
            Self::Null(_) => vec!["null"],
            Self::Hba(_) => vec!["hba"],
            Self::Mmc(_) => vec!["card", "host"],
            Self::Pmem(_) => vec!["pmem"],
            Self::Drive(drive) => drive.tables(),
        }
    }

    /// The kind of device in a noun phrase, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null(_) => "a null device",
            Self::Hba(_) => "a SCSI host",
            Self::Mmc(mmc) if mmc.card.is_emmc() => "an eMMC device",
            Self::Mmc(_) => "an SD card",
            Self::Pmem(_) => "persistent memory",
            Self::Drive(drive) => drive.kind(),
        }
    }
}

impl Device {
    /// Returns the number of disks.
    #[must_use]
    pub const fn disks(&self) -> u16 {
        match self.model {
            DeviceModel::Mmc(_) | DeviceModel::Pmem(_) | DeviceModel::Drive(_) => 1,
            DeviceModel::Null(null) => null.disks,
            DeviceModel::Hba(hba) => hba.luns,
        }
    }

    /// Returns the device with `disks` disks on its one host, whose tags they share. `None` if a device of its kind is
    /// always one disk.
    #[must_use]
    pub fn with_disks(self, disks: u16) -> Option<Self> {
        assert!((1..=DISKS_MAX).contains(&disks), "{disks} disks");
        let model = match self.model {
            DeviceModel::Null(null) => DeviceModel::Null(NullProfile { disks, ..null }),
            DeviceModel::Hba(hba) => DeviceModel::Hba(HbaProfile { luns: disks, ..hba }),
            one if disks == 1 => one,
            DeviceModel::Mmc(_) | DeviceModel::Pmem(_) | DeviceModel::Drive(_) => return None,
        };
        Some(Self { model, ..self })
    }

    /// Returns the device as jobs see it under `design`: the logical blocks of a disk in persistent memory are the
    /// sectors of its block translation table.
    #[must_use]
    pub fn under(&self, design: &Design) -> Cow<'_, Self> {
        match (&self.model, design.btt) {
            (DeviceModel::Pmem(_), Some(btt)) => {
                let mut device = self.clone();
                debug_assert!(btt.sector_bytes.is_multiple_of(SECTOR_BYTES), "whole sectors");
                device.limits.logical_block_sectors = btt.sector_bytes / SECTOR_BYTES;
                Cow::Owned(device)
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Returns the device with this name, or reads it from this path.
    ///
    /// # Errors
    ///
    /// No built-in device has the name, the file cannot be read, or a line of it is wrong.
    pub fn lookup(name_or_path: &str) -> Result<Self, ProfileError> {
        Self::lookup_with(name_or_path, &[])
    }

    /// Returns the device with this name, or reads it from this path; `overrides` replace values of its profile.
    ///
    /// # Errors
    ///
    /// Those of [`Self::lookup`], and [`ProfileError::Override`].
    pub fn lookup_with(name_or_path: &str, overrides: &[Override]) -> Result<Self, ProfileError> {
        Self::parse_with(name_or_path, &Self::text(name_or_path)?, overrides)
    }

    /// Returns the text of the built-in device with this name, or of the file at this path.
    ///
    /// # Errors
    ///
    /// No built-in device has the name, or the file cannot be read.
    pub fn text(name_or_path: &str) -> Result<String, ProfileError> {
        text_of("device", name_or_path, BUILTIN)
    }

    /// Reads a device from `text`. `name` becomes its name, and the name of the file in errors.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Wrong`] for the first error in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        Self::parse_with(name, text, &[])
    }

    /// Reads a device from `text`, as [`Self::parse`]; `overrides` replace values of its profile.
    ///
    /// # Errors
    ///
    /// Those of [`Self::parse`], and [`ProfileError::Override`].
    pub fn parse_with(
        name: &str,
        text: &str,
        overrides: &[Override],
    ) -> Result<Self, ProfileError> {
        Self::parse_as(name, text, overrides, None)
    }

    /// Returns `count` other [readings](Reading) of the device with this name, or of the file at this path. `overrides`
    /// replace values of its profile, so they have the same value in all readings.
    ///
    /// # Errors
    ///
    /// As [`Self::lookup_with`]; or figures within their ranges contradict each other.
    pub fn readings(
        name_or_path: &str,
        overrides: &[Override],
        seed: u64,
        count: u32,
    ) -> Result<Vec<Self>, ProfileError> {
        let text = Self::text(name_or_path)?;
        let readings = (0..count).map(|number| Reading { seed, number });
        let read = |reading| Self::parse_as(name_or_path, &text, overrides, Some(reading));
        readings.map(read).collect()
    }

    fn parse_as(
        name: &str,
        text: &str,
        overrides: &[Override],
        reading: Option<Reading>,
    ) -> Result<Self, ProfileError> {
        let files = Bases::of(name, text)?;
        let choices = Choices { bases: BUILTIN, processors: PROCESSORS, files: &files };
        let notes = Notes::of(reading);
        let top = Table::open(Source::new(name, text, &notes), KEYS, choices)?;
        let device = Self::noted(name, &top)
            .map_err(|error| base::with_base(error, text, USUAL_BASES, "nvme-tlc"))?;
        let keys = notes.keys();
        let figures = notes.into_figures();
        if overrides.is_empty() {
            return Ok(Self { figures, ..device });
        }
        let overlay = Overlay::new(overrides, &device.model.tables(), &figures, &keys)?;
        let notes = Notes::of(reading);
        let top = Table::open(Source::new(name, text, &notes), KEYS, choices)?;
        let top = top.under(Source::new("", &overlay.text, &notes));
        let device = top.and_then(|top| Self::noted(&overrides::named(name, overrides), &top));
        let device = device.map_err(|error| overlay.blamed("", error))?;
        Ok(Self { figures: notes.into_figures(), ..device })
    }

    fn noted(name: &str, top: &Table<'_>) -> Result<Self, ProfileError> {
        let title = top.take("title", Text)?.unwrap_or_default();
        let model = model(top)?;
        let limits = limits(top, &model)?;
        if let DeviceModel::Pmem(_) = &model {
            agrees_with_pmem(&limits)
                .map_err(|words| top.wrong("limits", Problem::Contradiction(words)))?;
        }
        if let DeviceModel::Drive(drive) = &model {
            drive
                .agrees(&limits)
                .map_err(|words| top.wrong("limits", Problem::Contradiction(words)))?;
        }
        if let DeviceModel::Drive(DriveProfile { medium: MediumProfile::Flash(flash), .. }) = &model
        {
            cache_fits(top, flash, &limits)?;
        }
        if let DeviceModel::Mmc(mmc) = &model {
            mmc.agrees(&limits)
                .map_err(|words| top.wrong("limits", Problem::Contradiction(words)))?;
        }
        Ok(Self {
            name: name.to_owned(),
            title,
            model,
            cache: cache(top, &limits)?,
            limits,
            machine: machine(top)?,
            figures: Vec::new(),
        })
    }
}

/// Reads the model whose tables the file has, or else that of its base. A `[host]` alone goes with the card of the base.
fn model(top: &Table<'_>) -> Result<DeviceModel, ProfileError> {
    let mut host = None;
    for file in top.files() {
        host = host.or_else(|| file.has("host").then_some(file));
        let first = |keys: &&[&'static str]| keys.iter().copied().find(|key| file.has(key));
        let given: Vec<_> =
            MODELS.iter().filter_map(|(keys, model)| Some((first(keys)?, model))).collect();
        match (&given[..], host) {
            ([], _) => {}
            ([(key, _)], Some(host)) if *key != "card" => {
                let words = "`[host]` goes only with `[card]`";
                return Err(host.wrong("host", Problem::Contradiction(words)));
            }
            ([(_, model)], host) => return model(host.unwrap_or(file)),
            ([_, (other, _), ..], _) => {
                let words = "a device is one of `[null]`, `[hba]`, `[card]`, `[pmem]` and a \
                             drive's front end";
                return Err(file.wrong(other, Problem::Contradiction(words)));
            }
        }
    }
    let words = "no device: none of `[null]`, `[hba]`, `[card]`, `[pmem]` and a drive's front \
                 end, nor a `base` that has one";
    Err(top.wrong("", Problem::MissingTable(words.to_owned())))
}

/// A reader of one kind of device.
type ReadModel = fn(&Table<'_>) -> Result<DeviceModel, ProfileError>;

/// The models, each with the tables that make a file one of it.
const MODELS: &[(&[&str], ReadModel)] = &[
    (&["null"], |top| null(top).map(DeviceModel::Null)),
    (&["hba"], |top| hba(top).map(DeviceModel::Hba)),
    (&["card"], |top| mmc(top).map(DeviceModel::Mmc)),
    (&["pmem"], |top| pmem(top).map(DeviceModel::Pmem)),
    (DRIVE_TABLES, |top| drive(top).map(DeviceModel::Drive)),
];

/// Reads the table `[cache]` of a device with a volatile cache.
fn cache(top: &Table<'_>, limits: &Limits) -> Result<Option<CacheProfile>, ProfileError> {
    let table = top.table("cache", CACHE)?;
    if table.is_empty() {
        return Ok(None);
    }
    if !limits.write_cache {
        let words = "a device with a `[cache]` says `write-cache = true` in `[limits]`";
        return Err(top.wrong("cache", Problem::Contradiction(words)));
    }
    Ok(Some(CacheProfile {
        flush: table.take_or("flush", Time, Duration::ZERO)?,
        flush_per_mib: table.take_or("flush-per-mib", Time, Duration::ZERO)?,
    }))
}

/// Checks the limits of persistent memory.
fn agrees_with_pmem(limits: &Limits) -> Result<(), &'static str> {
    let bytes = limits.capacity_sectors * u64::from(SECTOR_BYTES);
    if !(CAPACITY_MIN..=CAPACITY_MAX).contains(&bytes) {
        return Err("a disk in `[pmem]` has 16MiB to 504GiB, so that it fits one arena of a BTT");
    }
    if limits.write_cache {
        return Err("`[pmem]` has no volatile cache: a write is durable when it ends");
    }
    Ok(())
}

/// Checks that the cache of single-level cells is not larger than the drive, where a file of `top` states the
/// cache. On a drive whose capacity alone was lowered, the cache takes all data.
fn cache_fits(top: &Table<'_>, flash: &FlashProfile, limits: &Limits) -> Result<(), ProfileError> {
    debug_assert!(limits.capacity_sectors > 0, "a drive without sectors");
    if top.is_reading() || flash.slc <= limits.capacity_sectors * u64::from(SECTOR_BYTES) {
        return Ok(());
    }
    for file in top.files() {
        let (table, limits) = (file.table("flash", FLASH_KEYS)?, file.table("limits", LIMITS)?);
        if table.has("slc") {
            let words = format!(
                "`slc` is `{}`, more than the drive's `capacity`, `{}`: lower `slc` or raise `capacity` of `[limits]`",
                table.stated("slc"),
                limits.stated("capacity")
            );
            return Err(table.wrong("slc", Problem::Unfit(words)));
        }
        if limits.has("capacity") {
            break;
        }
    }
    Ok(())
}

/// Reads the table `[limits]`: the capacity, and the limits that differ from the defaults or do not
/// follow from the `model`.
fn limits(top: &Table<'_>, model: &DeviceModel) -> Result<Limits, ProfileError> {
    let table = top.table("limits", LIMITS)?;
    let capacity = table.need("capacity", Bytes(1 << 20..=1 << 60))?;
    let usual = Limits::new(capacity / u64::from(SECTOR_BYTES));
    let any = || Count(0..=u32::MAX);
    let usual = match model {
        // The processor copies any amount.
        DeviceModel::Pmem(_) => Limits { max_sectors: u32::MAX, max_segments: u16::MAX, ..usual },
        _ => usual,
    };
    let card = match model {
        DeviceModel::Mmc(mmc) => Some(mmc),
        _ => None,
    };
    let has_fua = card.is_some_and(MmcProfile::has_reliable_writes);
    let fua = table.take_or("fua", Flag, has_fua)?;
    let has_cache = match model {
        DeviceModel::Mmc(mmc) => mmc.write_cache(fua),
        DeviceModel::Drive(drive) => drive.medium.write_cache(),
        _ => false,
    };
    let rotates = matches!(model, DeviceModel::Drive(drive) if drive.medium.rotates());
    Ok(Limits {
        capacity_sectors: usual.capacity_sectors,
        logical_block_sectors: table.take_or("logical-block", OneOf(LOGICAL_BLOCK), 1)?,
        max_sectors: table.take_or("max-sectors", Count(8..=u32::MAX), usual.max_sectors)?,
        max_segments: table.take_or("max-segments", Count(1..=u16::MAX), usual.max_segments)?,
        max_discard_sectors: table.take_or("max-discard-sectors", any(), 0)?,
        max_discard_segments: table.take_or("max-discard-segments", Count(1..=256), 1)?,
        max_write_zeroes_sectors: table.take_or("max-write-zeroes-sectors", any(), 0)?,
        chunk_sectors: table.take_or("chunk-sectors", any(), 0)?,
        virt_boundary: table.take_or("virt-boundary", Flag, false)?,
        write_cache: table.take_or("write-cache", Flag, has_cache)?,
        fua,
        rotational: table.take_or("rotational", Flag, rotates)?,
    })
}
