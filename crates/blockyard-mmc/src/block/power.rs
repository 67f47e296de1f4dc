//! The power state of a host: enabled, idle, disabled.

use blockyard::time::{Duration, Instant};

/// The time limit for a host that is to be disabled to become idle. As in Linux.
pub const DISABLE_LIMIT: Duration = Duration::from_ms(500);

/// Whether the host accepts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    /// It does.
    On,
    /// It does until it is idle, and is off then; or it stays on, if it is not idle by this
    /// instant.
    Disabling(Instant),
    /// It does not.
    Off,
}

impl Power {
    /// Returns the instant at which the attempt to disable the host ends.
    pub(super) const fn wakes_at(self) -> Option<Instant> {
        match self {
            Self::Disabling(at) => Some(at),
            Self::On | Self::Off => None,
        }
    }
}

/// Whether a host is idle, for a caller that wants the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// The host has no request.
    Yes,
    /// The host has requests.
    NotYet,
    /// The host has requests and recovers from an error: waiting alone does not help.
    Halted,
}

/// The host is enabled already, so enabling it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillEnabled;
