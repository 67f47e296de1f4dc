//! The medium of a drive: one of several.

use crate::device::crosspoint::Crosspoint;
use crate::device::medium::{
    Access, CommandId, MediumCounts, MediumEvent, MediumEvents, MediumUse,
};
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
}

impl Medium {
    pub(super) fn new(profile: MediumProfile, prng: Prng) -> Self {
        match profile {
            MediumProfile::Crosspoint(profile) => Self::Crosspoint(Crosspoint::new(profile, prng)),
            MediumProfile::Volume(profile) => Self::Volume(Volume::new(profile, prng)),
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
        }
    }

    pub(super) fn event(&mut self, event: MediumEvent, _now: Instant, _events: &mut MediumEvents) {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.event(event),
            Self::Volume(volume) => volume.event(event),
        }
    }

    /// Returns what the medium did since the last call of [`Self::forget`].
    pub(super) fn counts(&self) -> MediumCounts {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.counts(),
            Self::Volume(volume) => volume.counts(),
        }
    }

    /// Returns how much of the medium was in use since then.
    pub(super) fn used(&self) -> MediumUse {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.used(),
            Self::Volume(volume) => volume.used(),
        }
    }

    /// Starts counting again.
    pub(super) fn forget(&mut self) {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.forget(),
            Self::Volume(volume) => volume.forget(),
        }
    }

    pub(super) fn next_ended(&mut self) -> Option<CommandId> {
        match self {
            Self::Crosspoint(crosspoint) => crosspoint.next_ended(),
            Self::Volume(volume) => volume.next_ended(),
        }
    }
}
