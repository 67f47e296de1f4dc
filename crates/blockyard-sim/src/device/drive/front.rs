//! The front end of a drive: one of several.

use super::ahci::Ahci;
use super::nvme::Nvme;
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
}

/// The times for which parts of a front end were in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontUse {
    /// The controller.
    pub controller: Duration,
    /// The link, in the direction that was used for longer.
    pub link: Duration,
}

impl Front {
    pub(super) fn new(profile: FrontProfile) -> Self {
        match profile {
            FrontProfile::Nvme(profile) => Self::Nvme(Nvme::new(profile)),
            FrontProfile::Ahci(profile) => Self::Ahci(Ahci::new(profile)),
        }
    }

    /// Takes room for a command. Returns whether there was room.
    pub(super) fn admit(&mut self, access: Access) -> bool {
        match self {
            Self::Nvme(_) => true,
            Self::Ahci(ahci) => ahci.admit(access),
        }
    }

    /// Gives the room of a command back.
    pub(super) fn release(&mut self, access: Access) {
        match self {
            Self::Nvme(_) => {}
            Self::Ahci(ahci) => ahci.release(access),
        }
    }

    /// Takes a command of which the controller learns at `now`. Returns when the medium can begin.
    pub(super) fn send(&mut self, access: Access, now: Instant) -> Instant {
        match self {
            Self::Nvme(nvme) => nvme.send(access, now),
            Self::Ahci(ahci) => ahci.send(access, now),
        }
    }

    /// Answers a command with which the medium is done at `now`. Returns when the host has the answer.
    pub(super) fn answer(&mut self, access: Access, now: Instant) -> Instant {
        match self {
            Self::Nvme(nvme) => nvme.answer(access, now),
            Self::Ahci(ahci) => ahci.answer(access, now),
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
        }
    }
}
