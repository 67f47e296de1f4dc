//! The medium of a drive: one of several.

use crate::device::crosspoint::Crosspoint;
use crate::device::flash::Flash;
use crate::device::medium::{
    Access, CommandId, MediumCounts, MediumEvent, MediumEvents, MediumUse,
};
use crate::device::platters::Platters;
use crate::device::volume::Volume;
use crate::profile::MediumProfile;
use crate::workload::Prng;
use blockyard::time::Instant;

/// A medium. See [`medium`](crate::device::medium) for its calls.
#[derive(Debug)]
pub(super) enum Medium {
    /// Memory that is written in place.
    Crosspoint(Crosspoint),
    /// A volume in a cloud.
    Volume(Volume),
    /// A hard disk's mechanics.
    Platters(Box<Platters>),
    /// Flash memory behind a translation layer.
    Flash(Box<Flash>),
}

impl Medium {
    /// Returns an idle medium by `profile` with `capacity` sectors.
    pub(super) fn new(profile: MediumProfile, capacity: u64, prng: Prng) -> Self {
        match profile {
            MediumProfile::Crosspoint(profile) => Self::Crosspoint(Crosspoint::new(profile, prng)),
            MediumProfile::Volume(profile) => Self::Volume(Volume::new(profile, prng)),
            MediumProfile::Platters(profile) => {
                Self::Platters(Box::new(Platters::new(profile, capacity, prng)))
            }
            MediumProfile::Flash(profile) => Self::Flash(Box::new(Flash::new(profile, prng))),
        }
    }

    pub(super) fn begin(
        &mut self,
        id: CommandId,
        access: Access,
        now: Instant,
        events: &mut MediumEvents,
    ) {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.begin(id, access, now, events),
            Self::Volume(volume) => volume.begin(id, access, now, events),
            Self::Platters(platters) => platters.begin(id, access, now, events),
            Self::Flash(flash) => flash.begin(id, access, now, events),
        }
    }

    pub(super) fn event(&mut self, event: MediumEvent, now: Instant, events: &mut MediumEvents) {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.event(event),
            Self::Volume(volume) => volume.event(event),
            Self::Platters(platters) => platters.event(event, now, events),
            Self::Flash(flash) => flash.event(event, now, events),
        }
    }

    /// Returns what the medium did since the last call of [`Self::forget`].
    pub(super) fn counts(&self) -> MediumCounts {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.counts(),
            Self::Volume(volume) => volume.counts(),
            Self::Platters(platters) => platters.counts(),
            Self::Flash(flash) => flash.counts(),
        }
    }

    /// Returns how much of the medium was in use since then.
    pub(super) fn used(&self) -> MediumUse {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.used(),
            Self::Volume(volume) => volume.used(),
            Self::Platters(platters) => platters.used(),
            Self::Flash(flash) => flash.used(),
        }
    }

    /// Starts counting again.
    pub(super) fn forget(&mut self) {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.forget(),
            Self::Volume(volume) => volume.forget(),
            Self::Platters(platters) => platters.forget(),
            Self::Flash(flash) => flash.forget(),
        }
    }

    pub(super) fn next_ended(&mut self) -> Option<CommandId> {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.next_ended(),
            Self::Volume(volume) => volume.next_ended(),
            Self::Platters(platters) => platters.next_ended(),
            Self::Flash(flash) => flash.next_ended(),
        }
    }
}
