//! Drives: the tables of their front ends, and the choice of front end and medium.

use blockyard::limits::Limits;

use super::ahci::profile::{AhciProfile, ahci};
use super::nvme::profile::{NvmeProfile, nvme};
use super::ufs::profile::{UfsProfile, ufs};
use super::usb::profile::{UsbProfile, usb};
use super::virtio::profile::{VirtioProfile, virtio};
use crate::crosspoint::profile::{CrosspointProfile, crosspoint};
use crate::disk::profile::{PlattersProfile, platters};
use crate::flash::profile::{FlashProfile, flash};
use crate::profile::error::{Problem, ProfileError};
use crate::profile::exclusive::{FRONT_TABLES, MEDIUM_TABLES};
use crate::profile::table::Table;
use crate::volume::profile::{VolumeProfile, volume};

/// A drive: a front end over a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveProfile {
    /// The front end.
    pub front: FrontProfile,
    /// The medium.
    pub medium: MediumProfile,
}

/// The part of a drive that the host sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontProfile {
    /// NVMe over PCI Express: `[nvme]`.
    Nvme(NvmeProfile),
    /// AHCI over Serial ATA: `[ahci]`.
    Ahci(AhciProfile),
    /// virtio-blk: `[virtio]`.
    Virtio(VirtioProfile),
    /// UFS: `[ufs]`.
    Ufs(UfsProfile),
    /// USB storage: `[usb]`.
    Usb(UsbProfile),
}

/// The part of a drive that keeps the data.
#[expect(clippy::large_enum_variant, reason = "there are one or two of them at a time")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumProfile {
    /// Memory that is written in place: `[crosspoint]`.
    Crosspoint(CrosspointProfile),
    /// A volume in a cloud: `[volume]`.
    Volume(VolumeProfile),
    /// A hard disk's mechanics: `[platters]`.
    Platters(PlattersProfile),
    /// Flash memory behind a translation layer: `[flash]`.
    Flash(FlashProfile),
}

impl MediumProfile {
    /// Whether the medium rotates.
    pub(crate) const fn rotates(&self) -> bool {
        matches!(self, Self::Platters(_))
    }

    /// Whether the medium acknowledges writes before they are durable.
    pub(crate) const fn write_cache(&self) -> bool {
        match self {
            Self::Crosspoint(_) | Self::Volume(_) => false,
            Self::Platters(platters) => platters.cache.write > 0,
            Self::Flash(flash) => !flash.protected,
        }
    }
}

impl DriveProfile {
    /// The tables of its profile that only a drive like it has.
    pub(crate) fn tables(&self) -> Vec<&'static str> {
        let front = match self.front {
            FrontProfile::Nvme(_) => "nvme",
            FrontProfile::Ahci(_) => "ahci",
            FrontProfile::Virtio(_) => "virtio",
            FrontProfile::Ufs(_) => "ufs",
            FrontProfile::Usb(_) => "usb",
        };
        let medium = match self.medium {
            MediumProfile::Crosspoint(_) => "crosspoint",
            MediumProfile::Volume(_) => "volume",
            MediumProfile::Platters(_) => "platters",
            MediumProfile::Flash(_) => "flash",
        };
        vec![front, medium]
    }

    /// The kind of drive in a noun phrase, for messages.
    pub(crate) const fn kind(&self) -> &'static str {
        match self.front {
            FrontProfile::Nvme(_) => "an NVMe drive",
            FrontProfile::Ahci(_) => "a SATA drive",
            FrontProfile::Virtio(_) => "a virtual disk",
            FrontProfile::Ufs(_) => "a UFS device",
            FrontProfile::Usb(_) => "a USB drive",
        }
    }

    /// Checks that the medium can have these limits.
    pub(crate) fn agrees(&self, limits: &Limits) -> Result<(), &'static str> {
        match self.medium {
            MediumProfile::Crosspoint(_) | MediumProfile::Volume(_) => Ok(()),
            MediumProfile::Flash(flash) => flash.agrees(limits.capacity_sectors),
            MediumProfile::Platters(_) if limits.max_discard_sectors > 0 => {
                Err("`[platters]` have nothing to discard: every sector has its place")
            }
            MediumProfile::Platters(platters) => platters.agrees(limits.capacity_sectors),
        }
    }

    /// Hardware queues.
    #[must_use]
    pub const fn hw_queues(&self) -> u16 {
        match self.front {
            FrontProfile::Nvme(nvme) => nvme.hw_queues,
            FrontProfile::Ahci(_) | FrontProfile::Usb(_) => 1,
            FrontProfile::Virtio(virtio) => virtio.hw_queues,
            FrontProfile::Ufs(ufs) => ufs.hw_queues,
        }
    }

    /// Commands that one hardware queue takes.
    #[must_use]
    pub const fn depth(&self) -> u16 {
        match self.front {
            FrontProfile::Nvme(nvme) => nvme.depth,
            FrontProfile::Ahci(ahci) => ahci.depth,
            FrontProfile::Virtio(virtio) => virtio.depth,
            FrontProfile::Ufs(ufs) => ufs.depth,
            FrontProfile::Usb(usb) => usb.commands(),
        }
    }

    /// Whether the hardware queues share that depth.
    #[must_use]
    pub const fn shares_depth(&self) -> bool {
        matches!(self.front, FrontProfile::Ufs(ufs) if ufs.hw_queues > 1)
    }
}

/// Reads the front end and the medium of `top`, each from the file itself or else from its base.
pub(crate) fn drive(top: &Table<'_>) -> Result<DriveProfile, ProfileError> {
    let front = match one_of(
        top,
        FRONT_TABLES,
        "front end: `[nvme]`, `[ahci]`, `[virtio]`, `[ufs]` or `[usb]`",
    )? {
        "ahci" => ahci(top).map(FrontProfile::Ahci)?,
        "virtio" => virtio(top).map(FrontProfile::Virtio)?,
        "ufs" => ufs(top).map(FrontProfile::Ufs)?,
        "usb" => usb(top).map(FrontProfile::Usb)?,
        _nvme => nvme(top).map(FrontProfile::Nvme)?,
    };
    let medium = match one_of(
        top,
        MEDIUM_TABLES,
        "medium: `[crosspoint]`, `[flash]`, `[platters]` or `[volume]`",
    )? {
        "volume" => volume(top).map(MediumProfile::Volume)?,
        "platters" => platters(top).map(MediumProfile::Platters)?,
        "flash" => flash(top).map(MediumProfile::Flash)?,
        _crosspoint => crosspoint(top).map(MediumProfile::Crosspoint)?,
    };
    Ok(DriveProfile { front, medium })
}

/// Returns the one of `tables` that `top` has, or else its base. `words` say what they are.
fn one_of(
    top: &Table<'_>,
    tables: &[&'static str],
    words: &'static str,
) -> Result<&'static str, ProfileError> {
    for file in top.files() {
        let given: Vec<_> = tables.iter().filter(|key| file.has(key)).collect();
        match given[..] {
            [] => {}
            [one] => return Ok(one),
            [_, other, ..] => {
                let words = format!("a drive has one {words}");
                return Err(file.wrong(other, Problem::Unfit(words)));
            }
        }
    }
    Err(top.wrong("", Problem::MissingTable(format!("a drive needs a {words}"))))
}
