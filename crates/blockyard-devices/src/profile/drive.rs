//! Drives: the tables of their front ends, and the choice of front end and medium.

use blockyard::limits::Limits;
use blockyard::time::Duration;

use super::crosspoint::{CrosspointProfile, crosspoint};
use super::error::{Problem, ProfileError};
use super::exclusive::{FRONT_TABLES, MEDIUM_TABLES};
use super::flash::{FlashProfile, flash};
use super::pcie::{PcieProfile, link};
use super::platters::{PlattersProfile, platters};
use super::table::{Table, table_of};
use super::ufs::{UfsProfile, ufs};
use super::usb::{UsbProfile, usb};
use super::value::{Count, Flag, Rate, Time};
use super::virtio::{VirtioProfile, virtio};
use super::volume::{VolumeProfile, volume};

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
    pub(super) const fn rotates(&self) -> bool {
        matches!(self, Self::Platters(_))
    }

    /// Whether the medium acknowledges writes before they are durable.
    pub(super) const fn write_cache(&self) -> bool {
        match self {
            Self::Crosspoint(_) | Self::Volume(_) => false,
            Self::Platters(platters) => platters.cache.write > 0,
            Self::Flash(flash) => !flash.protected,
        }
    }
}

/// The figures of an NVMe controller and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvmeProfile {
    /// Pairs of a submission and a completion queue for I/O.
    pub hw_queues: u16,
    /// Commands that one queue takes.
    pub depth: u16,
    /// Time for which a processor is busy with ringing a doorbell.
    pub doorbell: Duration,
    /// Time for which a command occupies the controller.
    pub interval: Duration,
    /// Latency of a command in the controller beyond that time.
    pub command: Duration,
    /// The interrupts that are held back.
    pub coalescing: CoalescingProfile,
    /// The link.
    pub link: PcieProfile,
}

/// The figures of an AHCI port, its wire and the drive's side of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AhciProfile {
    /// Commands that the drive takes at once, from 1 to 32.
    pub depth: u16,
    /// Time for which a processor is busy with telling the port of new commands.
    pub issue: Duration,
    /// Time for which a command occupies the drive's controller.
    pub interval: Duration,
    /// Latency of a command in the drive's controller beyond that time.
    pub command: Duration,
    /// Bytes per second through the wire, frames included, after the encoding.
    pub link: u64,
    /// Time of a frame, beside that of its bytes.
    pub frame: Duration,
    /// Whether the drive queues trims.
    pub queued_trim: bool,
}

/// The coalescing of interrupts, for each vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoalescingProfile {
    /// Completions that are announced together. 1: nothing is held back.
    pub entries: u16,
    /// How long a completion waits for others. Zero: nothing is held back.
    pub time: Duration,
}

impl CoalescingProfile {
    /// Whether interrupts are held back at all. As in NVMe, it takes both figures.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.entries > 1 && self.time > Duration::ZERO
    }
}

impl DriveProfile {
    /// The tables of its profile that only a drive like it has.
    pub(super) fn tables(&self) -> Vec<&'static str> {
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
    pub(super) const fn kind(&self) -> &'static str {
        match self.front {
            FrontProfile::Nvme(_) => "an NVMe drive",
            FrontProfile::Ahci(_) => "a SATA drive",
            FrontProfile::Virtio(_) => "a virtual disk",
            FrontProfile::Ufs(_) => "a UFS device",
            FrontProfile::Usb(_) => "a USB drive",
        }
    }

    /// Checks that the medium can have these limits.
    pub(super) fn agrees(&self, limits: &Limits) -> Result<(), &'static str> {
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
pub(super) fn drive(top: &Table<'_>) -> Result<DriveProfile, ProfileError> {
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

table_of!(NVME, fn nvme("nvme") -> NvmeProfile {
    hw_queues: "hw-queues" need(Count(1..=1024)),
    depth: "depth" need(Count(1..=1023)),
    doorbell: "doorbell" need(Time),
    interval: "interval" need(Time),
    command: "command" need(Time),
    coalescing: "coalescing" by(coalescing),
    link: "link" by(link),
});

table_of!(AHCI, fn ahci("ahci") -> AhciProfile {
    depth: "depth" need(Count(1..=32)),
    issue: "issue" need(Time),
    interval: "interval" need(Time),
    command: "command" need(Time),
    link: "link" need(Rate),
    frame: "frame" need(Time),
    queued_trim: "queued-trim" take_or(Flag, false),
});

table_of!(COALESCING, fn coalescing("nvme.coalescing") -> CoalescingProfile {
    entries: "entries" take_or(Count(1..=256), 1),
    time: "time" take_or(Time, Duration::ZERO),
});
