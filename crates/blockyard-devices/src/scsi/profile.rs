//! A SCSI host, its link and its target: the table `[hba]`.

use crate::charges::{Charges, Resource};
use blockyard::time::Duration;

use crate::reader::error::{Problem, ProfileError};
use crate::reader::spread::{PERCENTS, Spread};
use crate::reader::table::{Table, table_of};
use crate::reader::value::{Bytes, Count, OneOf, Rate, Time};
use crate::terms::DISKS_MAX;

/// The figures of a SCSI host, its link and its target.
///
/// Each command occupies one of [`Self::cmd_per_lun`] slots. Commands are in service side by side.
/// After its time in service, a command passes the port of the target, which serves the commands at
/// it in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HbaProfile {
    /// Hardware queues.
    pub hw_queues: u16,
    /// Commands that the host takes on each hardware queue: its driver tags.
    pub can_queue: u16,
    /// Commands that one LUN takes from all hardware queues together.
    pub cmd_per_lun: u16,
    /// LUNs on the host.
    pub luns: u16,
    /// Time in service of a read command, whatever its size.
    pub command_read: Duration,
    /// Time in service of a write command, whatever its size.
    pub command_write: Duration,
    /// The spread of these times; `None`: they are always the same.
    pub spread: Option<Spread>,
    /// Time of the port for a read command, before its bytes.
    pub port_read: Duration,
    /// Time of the port for a write command, before its bytes.
    pub port_write: Duration,
    /// Bytes of one command that the port carries in one turn.
    pub burst: u64,
    /// Bytes per second through the port from device to host.
    pub link_read: u64,
    /// Bytes per second through the port from host to device.
    pub link_write: u64,
    /// Refusals of commands below these depths; `None`: there are none.
    pub refusal: Option<Refusal>,
}

/// Refusals of commands that the host's depths would still allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The part that refuses, and the reaction of the host.
    pub mode: RefusalMode,
    /// The number of outstanding commands at which that part refuses the next one.
    pub limit: u16,
}

/// The part that refuses a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalMode {
    /// The host, for all its LUNs together. It tries again when a command completes.
    HostFull,
    /// The target, for all its LUNs together. The host tries again when a command of the target
    /// completes.
    TargetFull,
    /// The LUN, by the status QUEUE FULL. The host lowers the depth of the LUN and raises it again.
    LunFull {
        /// After this many refusals in a row, the depth falls to the number of commands that the
        /// LUN held.
        ramp_down_after: u32,
        /// After this long without a refusal, the depth rises by one, up to
        /// [`HbaProfile::cmd_per_lun`].
        ramp_up_period: Duration,
    },
}

const REFUSAL: &[&str] = &["mode", "limit", "ramp-down-after", "ramp-up-period"];

/// What each key of the table charges.
pub(crate) const CHARGES: Charges = &[
    ("command-read", &[Resource::Device]),
    ("command-write", &[Resource::Device]),
    ("port-read", &[Resource::Link]),
    ("port-write", &[Resource::Link]),
    ("link-read", &[Resource::Link]),
    ("link-write", &[Resource::Link]),
];

table_of!(HBA, /// Reads the table `[hba]` of `parent`.
pub(crate) fn hba("hba") -> HbaProfile {
    hw_queues: "hw-queues" need(Count(1..=1024)),
    can_queue: "can-queue" need(Count(1..=10_240)),
    cmd_per_lun: "cmd-per-lun" need(Count(1..=10_240)),
    luns: "luns" need(Count(1..=DISKS_MAX)),
    command_read: "command-read" need(Time),
    command_write: "command-write" need(Time),
    spread: "spread" take(PERCENTS),
    port_read: "port-read" need(Time),
    port_write: "port-write" need(Time),
    burst: "burst" need(Bytes(512..=1 << 30)),
    link_read: "link-read" need(Rate),
    link_write: "link-write" need(Rate),
    refusal: "refusal" by(refusal),
});

fn refusal(hba: &Table<'_>) -> Result<Option<Refusal>, ProfileError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mode {
        Host,
        Target,
        Lun,
    }
    const MODE: &[(&str, Mode)] =
        &[("host-full", Mode::Host), ("target-full", Mode::Target), ("lun-full", Mode::Lun)];

    let table = hba.table("hba.refusal", REFUSAL)?;
    if table.is_empty() {
        return Ok(None);
    }
    let mode = table.need("mode", OneOf(MODE))?;
    let limit = table.need("limit", Count(1..=10_240))?;
    for ramp in ["ramp-down-after", "ramp-up-period"] {
        if mode != Mode::Lun && table.has(ramp) {
            let words = "a ramp goes only with `mode = \"lun-full\"`";
            return Err(table.wrong(ramp, Problem::Contradiction(words)));
        }
    }
    let mode = match mode {
        Mode::Host => RefusalMode::HostFull,
        Mode::Target => RefusalMode::TargetFull,
        Mode::Lun => RefusalMode::LunFull {
            ramp_down_after: table.need("ramp-down-after", Count(1..=u32::MAX))?,
            ramp_up_period: table.need("ramp-up-period", Time)?,
        },
    };
    Ok(Some(Refusal { mode, limit }))
}
