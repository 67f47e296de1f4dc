//! Devices: models with their figures and limits, and the machine that uses them.

use std::borrow::Cow;

use crate::cache::CacheProfile;
use crate::families::{DeviceModel, FAMILIES, KEYS, USUAL_BASES};
use crate::family::LIMITS;
use crate::terms::DISKS_MAX;
use blockyard::limits::Limits;
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;

use super::design::Design;
use super::linux::MAX_REQUEST_SECTORS;
use super::overrides::{self, Overlay, Override};
use crate::machine::{MachineProfile, PROCESSORS, machine};
use crate::reader::base::{self, Bases};
use crate::reader::builtin::{Builtin, builtins, text_of};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::reading::{Figure, Notes, Reading};
use crate::reader::source::Source;
use crate::reader::table::{Choices, Table};
use crate::reader::value::{Bytes, Count, Flag, OneOf, Text, Time};

/// A device, and the machine that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The built-in name or the path by which it was asked for.
    pub name: String,
    /// A description in one line; empty if the file has none.
    pub title: String,
    /// The model.
    pub model: DeviceModel,
    /// The limits of a request; the capacity is that of one LUN. `max_sectors` is what kernels from
    /// 4.3 to 6.16 allow: see [`Self::under`].
    pub limits: Limits,
    /// Sectors of the largest request of the hardware, where the kernel allows less by default;
    /// `None`: `limits` has what the file states.
    pub max_hw_sectors: Option<u32>,
    /// The costs of its volatile cache, if the file has them.
    pub cache: Option<CacheProfile>,
    /// The machine.
    pub machine: MachineProfile,
    /// The figures that say where they come from, by key.
    pub figures: Vec<Figure>,
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

const CACHE: &[&str] = &["flush", "flush-per-mib"];
/// The sizes of a logical block, in sectors.
const LOGICAL_BLOCK: &[(&str, u32)] =
    &[("512B", 1), ("1KiB", 2), ("2KiB", 4), ("4KiB", 8), ("8KiB", 16), ("16KiB", 32)];

impl Device {
    /// Returns the number of disks.
    #[must_use]
    pub fn disks(&self) -> u16 {
        self.model.queues(None).disks
    }

    /// Returns the device with `disks` disks on its one host, whose tags they share. `None` if a
    /// device of its kind is always one disk.
    #[must_use]
    pub fn with_disks(self, disks: u16) -> Option<Self> {
        assert!((1..=DISKS_MAX).contains(&disks), "{disks} disks");
        Some(Self { model: self.model.with_disks(disks)?, ..self })
    }

    /// Returns the device as jobs see it under `design`. The logical blocks of a disk in persistent
    /// memory are the sectors of its block translation table. Of the largest request that the
    /// hardware takes, the kernel allows a part: of 65535 sectors, 8192 under `mq-none` of Linux
    /// 7.3 and 2560 under `mq-none-6.12`. A design of a kernel that leaves the cache of an SD card
    /// off takes its write cache away, and one that leaves transfers of a card open adds one.
    #[must_use]
    pub fn under(&self, design: &Design) -> Cow<'_, Self> {
        let mut limits = self.limits.clone();
        if let (DeviceModel::Pmem(_), Some(btt)) = (&self.model, design.btt) {
            debug_assert!(btt.sector_bytes.is_multiple_of(SECTOR_BYTES), "whole sectors");
            limits.logical_block_sectors = btt.sector_bytes / SECTOR_BYTES;
        }
        if let Some(of_hardware) = self.max_hw_sectors {
            limits.max_sectors = of_hardware.min(design.max_request_sectors);
        }
        if let DeviceModel::Mmc(mmc) = &self.model {
            limits.write_cache &= mmc.with_sd_cache(design.sd_cache).has_write_cache(limits.fua);
        }
        // Data of a transfer that is open needs a flush to be durable.
        limits.write_cache |= design.leaves_transfers_open();
        if limits == self.limits {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { limits, ..self.clone() })
    }

    /// Returns the device with this name, or reads it from this path.
    ///
    /// # Errors
    ///
    /// No built-in device has the name, the file cannot be read, or a line of it is wrong.
    pub fn lookup(name_or_path: &str) -> Result<Self, ProfileError> {
        Self::lookup_with(name_or_path, &[])
    }

    /// Returns the device with this name, or reads it from this path; `overrides` replace values of
    /// its profile.
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

    /// Returns `count` other [readings](Reading) of the device with this name, or of the file at
    /// this path. `overrides` replace values of its profile, so they have the same value in all
    /// readings.
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
        let top = Table::open(Source::new(name, text, &notes), &KEYS, choices)?;
        let device = Self::noted(name, &top)
            .map_err(|error| base::with_base(error, text, &USUAL_BASES, "nvme-tlc"))?;
        let keys = notes.keys();
        let figures = notes.into_figures();
        if overrides.is_empty() {
            return Ok(Self { figures, ..device });
        }
        let overlay = Overlay::new(overrides, &device.model.tables(), &figures, &keys)?;
        let notes = Notes::of(reading);
        let top = Table::open(Source::new(name, text, &notes), &KEYS, choices)?;
        let top = top.under(Source::new("", &overlay.text, &notes));
        let device = top.and_then(|top| Self::noted(&overrides::named(name, overrides), &top));
        let device = device.map_err(|error| overlay.blamed("", error))?;
        Ok(Self { figures: notes.into_figures(), ..device })
    }

    fn noted(name: &str, top: &Table<'_>) -> Result<Self, ProfileError> {
        let title = top.take("title", Text)?.unwrap_or_default();
        let model = model(top)?;
        let (limits, max_hw_sectors) = limits(top, &model)?;
        model.check(top, &limits)?;
        Ok(Self {
            name: name.to_owned(),
            title,
            model,
            cache: cache(top, &limits)?,
            limits,
            max_hw_sectors,
            machine: machine(top)?,
            figures: Vec::new(),
        })
    }
}

/// Reads the model whose tables the file has, or else that of its base. A `[host]` alone goes with
/// the card of the base.
fn model(top: &Table<'_>) -> Result<DeviceModel, ProfileError> {
    let mut host = None;
    for file in top.files() {
        host = host.or_else(|| file.has("host").then_some(file));
        let given: Vec<_> = FAMILIES
            .iter()
            .filter_map(|family| {
                let sign = family.signs.iter().copied().find(|key| file.has(key))?;
                Some((sign, family))
            })
            .collect();
        match (&given[..], host) {
            ([], _) => {}
            ([(key, _)], Some(host)) if *key != "card" => {
                let words = "`[host]` goes only with `[card]`";
                return Err(host.wrong("host", Problem::Contradiction(words)));
            }
            ([(_, family)], host) => return (family.read)(host.unwrap_or(file)),
            ([_, (other, _), ..], _) => {
                let words = format!("a device is one of {}", signs());
                return Err(file.wrong(other, Problem::Unfit(words)));
            }
        }
    }
    let words = format!("no device: none of {}, nor a `base` that has one", signs());
    Err(top.wrong("", Problem::MissingTable(words)))
}

/// Returns the signs of all families, as a list in a sentence.
fn signs() -> String {
    let words = FAMILIES.iter().map(|family| family.sign_words).filter(|words| !words.is_empty());
    let words: Vec<_> = words.collect();
    let (last, first) = words.split_last().expect("there are families");
    format!("{} and {last}", first.join(", "))
}

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

/// Reads the table `[limits]`: the capacity, and the limits that differ from the defaults or do not
/// follow from the `model`. Where no file has `max-sectors`, it is what the kernel allows of
/// `max-hw-sectors`, which comes second.
fn limits(top: &Table<'_>, model: &DeviceModel) -> Result<(Limits, Option<u32>), ProfileError> {
    let table = top.table("limits", LIMITS)?;
    let capacity = table.need("capacity", Bytes(1 << 20..=1 << 60))?;
    let usual = model.usual_limits(Limits::new(capacity / u64::from(SECTOR_BYTES)));
    let fua = table.take_or("fua", Flag, usual.fua)?;
    let of_hardware = table.take("max-hw-sectors", Count(8..=u32::MAX))?;
    let stated = table.take("max-sectors", Count(8..=u32::MAX))?;
    if stated > of_hardware.or(stated) {
        let words = "`max-sectors` is at most `max-hw-sectors`, which the hardware takes";
        return Err(table.wrong("max-sectors", Problem::Contradiction(words)));
    }
    let allowed = of_hardware.map_or(usual.max_sectors, |most| most.min(MAX_REQUEST_SECTORS));
    let limits = Limits {
        capacity_sectors: usual.capacity_sectors,
        logical_block_sectors: table.take_or("logical-block", OneOf(LOGICAL_BLOCK), 1)?,
        max_sectors: stated.unwrap_or(allowed),
        max_segments: table.take_or("max-segments", Count(1..=u16::MAX), usual.max_segments)?,
        max_discard_sectors: table.take_or("max-discard-sectors", Count(0..=u32::MAX), 0)?,
        max_discard_segments: table.take_or("max-discard-segments", Count(1..=256), 1)?,
        max_write_zeroes_sectors: table.take_or(
            "max-write-zeroes-sectors",
            Count(0..=u32::MAX),
            0,
        )?,
        chunk_sectors: table.take_or("chunk-sectors", Count(0..=u32::MAX), 0)?,
        virt_boundary: table.take_or("virt-boundary", Flag, false)?,
        write_cache: table.take_or("write-cache", Flag, model.write_cache(fua))?,
        fua,
        rotational: table.take_or("rotational", Flag, usual.rotational)?,
    };
    Ok((limits, of_hardware.filter(|_| stated.is_none())))
}
