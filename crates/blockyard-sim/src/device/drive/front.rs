//! The front end of a drive: one of several.

use super::ahci::Ahci;
use super::nvme::Nvme;
use super::virtio::Virtio;
use crate::device::medium::Access;
use crate::profile::FrontProfile;
use blockyard::time::{Duration, Instant};

/// A front end.
#[derive(Debug)]
pub(super) enum Front {
    /// NVMe over PCI Express.
    Nvme(Nvme),
    /// AHCI over Serial ATA.
    Ahci(Ahci),
    /// virtio-blk.
    Virtio(Virtio),
}

/// The times for which parts of a front end were in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontUse {
    /// The controller, or the host's thread that stands for one.
    pub controller: Duration,
    /// The link, in the direction that was used for longer.
    pub link: Duration,
}

impl Front {
    pub(super) fn new(profile: FrontProfile) -> Self {
        match profile {
            FrontProfile::Nvme(profile) => Self::Nvme(Nvme::new(profile)),
            FrontProfile::Ahci(profile) => Self::Ahci(Ahci::new(profile)),
            FrontProfile::Virtio(profile) => Self::Virtio(Virtio::new(profile)),
        }
    }

    /// Takes room for a command. Returns whether there was room.
    pub(super) fn admit(&mut self, access: Access) -> bool {
        match self {
            Self::Nvme(_) | Self::Virtio(_) => true,
            Self::Ahci(ahci) => ahci.admit(access),
        }
    }

    /// Returns whether it takes a doorbell at `now` to let the drive know of commands.
    pub(super) fn needs_doorbell(&self, now: Instant) -> bool {
        match self {
            Self::Nvme(_) | Self::Ahci(_) => true,
            Self::Virtio(virtio) => virtio.needs_kick(now),
        }
    }

    /// Gives the room of a command back.
    pub(super) fn release(&mut self, access: Access) {
        match self {
            Self::Nvme(_) | Self::Virtio(_) => {}
            Self::Ahci(ahci) => ahci.release(access),
        }
    }

    /// Takes a command of which the controller learns at `now`. Returns when the medium can begin.
    pub(super) fn send(&mut self, access: Access, now: Instant) -> Instant {
        match self {
            Self::Nvme(nvme) => nvme.send(access, now),
            Self::Ahci(ahci) => ahci.send(access, now),
            Self::Virtio(virtio) => virtio.send(now),
        }
    }

    /// Answers a command with which the medium is done at `now`. Returns when the host has the answer.
    pub(super) fn answer(&mut self, access: Access, now: Instant) -> Instant {
        match self {
            Self::Nvme(nvme) => nvme.answer(access, now),
            Self::Ahci(ahci) => ahci.answer(access, now),
            Self::Virtio(virtio) => virtio.answer(now),
        }
    }

    /// Returns what was in use since the last call of [`Self::forget`].
    pub(super) fn used(&self) -> FrontUse {
        match self {
            Self::Nvme(nvme) => FrontUse {
                controller: nvme.controller.used(),
                link: nvme.to_device.used().max(nvme.to_host.used()),
            },
            Self::Ahci(ahci) => {
                FrontUse { controller: ahci.controller.used(), link: ahci.wire.used() }
            }
            Self::Virtio(virtio) => {
                FrontUse { controller: virtio.thread.used(), link: Duration::ZERO }
            }
        }
    }

    pub(super) fn forget(&mut self) {
        match self {
            Self::Nvme(nvme) => {
                [&mut nvme.controller, &mut nvme.to_device, &mut nvme.to_host]
                    .into_iter()
                    .for_each(|line| line.forget());
            }
            Self::Ahci(ahci) => {
                [&mut ahci.controller, &mut ahci.wire].into_iter().for_each(|line| line.forget());
            }
            Self::Virtio(virtio) => virtio.thread.forget(),
        }
    }
}
