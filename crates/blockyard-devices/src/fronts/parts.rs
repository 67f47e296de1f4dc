//! The front ends and media that a drive may have.

use super::ahci::Ahci;
use super::front::Front;
use super::nvme::Nvme;
use super::ufs::Ufs;
use super::usb::Usb;
use super::virtio::Virtio;
use crate::crosspoint::Crosspoint;
use crate::disk::Platters;
use crate::flash::Flash;
use crate::medium::Medium;
use crate::profile::{FrontProfile, MediumProfile};
use crate::volume::Volume;
use blockyard::prng::Prng;

/// Returns an idle front end by `profile`.
pub(super) fn front(profile: FrontProfile) -> Box<dyn Front> {
    match profile {
        FrontProfile::Nvme(profile) => Box::new(Nvme::new(profile)),
        FrontProfile::Ahci(profile) => Box::new(Ahci::new(profile)),
        FrontProfile::Virtio(profile) => Box::new(Virtio::new(profile)),
        FrontProfile::Ufs(profile) => Box::new(Ufs::new(profile)),
        FrontProfile::Usb(profile) => Box::new(Usb::new(profile)),
    }
}

/// Returns an idle medium by `profile` with `capacity` sectors.
pub(super) fn medium(profile: MediumProfile, capacity: u64, prng: Prng) -> Box<dyn Medium> {
    match profile {
        MediumProfile::Crosspoint(profile) => Box::new(Crosspoint::new(profile, prng)),
        MediumProfile::Flash(profile) => Box::new(Flash::new(profile, capacity, prng)),
        MediumProfile::Platters(profile) => Box::new(Platters::new(profile, capacity, prng)),
        MediumProfile::Volume(profile) => Box::new(Volume::new(profile, prng)),
    }
}
