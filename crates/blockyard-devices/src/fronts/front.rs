//! The front end of a drive: what the host sees of it.

use super::coalescing::CoalescingProfile;
use super::engine::SyncEngine;
use crate::medium::Access;
use crate::reader::error::ProfileError;
use crate::reader::table::Table;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use core::fmt::Debug;
use core::ops::RangeInclusive;
use serde::Serialize;

/// The bytes that a drive may ask for at a time.
pub(super) const FETCH: RangeInclusive<u64> = 4096..=1 << 20;
/// Those that it asks for where a file does not say it.
pub(super) const FETCH_USUAL: u64 = 64 << 10;

/// Returns the whole sectors of `bytes`, which fit in a command.
pub(super) fn sectors_of(bytes: u64) -> u32 {
    u32::try_from(bytes / u64::from(SECTOR_BYTES)).expect("a drive asks for 1 MiB at most")
}

/// The times for which parts of a front end were in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontUse {
    /// The controller, or the host's thread that stands for one.
    pub controller: Duration,
    /// The link, in the direction that was used for longer.
    pub link: Duration,
}

/// What takes the commands of a drive one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FrontPart {
    /// The drive's controller.
    Controller,
    /// The host's thread for a virtual disk.
    VirtioThread,
    /// The bridge from USB to the drive.
    UsbBridge,
}

impl FrontPart {
    /// The name of the part, with its article.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Controller => "the drive's controller",
            Self::VirtioThread => "the host's virtio thread",
            Self::UsbBridge => "the USB bridge",
        }
    }
}

/// A front end.
pub(crate) trait Front: Debug + Send {
    /// Takes room for a command. Returns whether there was room.
    fn admit(&mut self, access: Access) -> bool {
        let _ = access;
        true
    }

    /// Gives the room of a command back.
    fn release(&mut self, access: Access) {
        let _ = access;
    }

    /// Returns whether it takes a doorbell at `now` to let the drive know of commands.
    fn needs_doorbell(&self, now: Instant) -> bool {
        let _ = now;
        true
    }

    /// Takes a command of which the controller learns at `now`. Returns when the medium can begin.
    fn send(&mut self, access: Access, now: Instant) -> Instant;

    /// Sectors of a write's data that the drive asks for at a time; `None`: the data comes with the
    /// command.
    fn fetched_sectors(&self) -> Option<u32> {
        None
    }

    /// Takes a command as [`Self::send`] does, without the data of a write.
    fn send_alone(&mut self, access: Access, now: Instant) -> Instant {
        debug_assert!(self.fetched_sectors().is_none(), "this front end fetches data");
        self.send(access, now)
    }

    /// Fetches so many sectors of a write, for which the drive asks at `now`. Returns when they are
    /// there.
    fn fetch(&mut self, sectors: u32, now: Instant) -> Instant {
        debug_assert!(self.fetched_sectors().is_some(), "{sectors} sectors come with a command");
        now
    }

    /// Answers a command with which the medium is done at `now`. Returns when the host has the
    /// answer.
    fn answer(&mut self, access: Access, now: Instant) -> Instant;

    /// Returns what was in use since the last call of [`Self::forget`].
    fn used(&self) -> FrontUse;

    /// Starts measuring use again.
    fn forget(&mut self);
}

/// The figures of a front end.
pub(crate) trait FrontFamily: Copy {
    /// The front end that the figures build.
    type Front: Front + 'static;

    /// The table of a file that has them.
    const TABLE: &'static str;
    /// The kind of drive in a noun phrase, for messages.
    const KIND: &'static str;
    /// The condition of a rule of udev for its disks.
    const DISK_CONDITION: &'static str = r#"KERNEL=="sd[a-z]*""#;
    /// The built-in device that is most likely the base of a file with the table, unless it is the
    /// usual one.
    const BASE: Option<&'static str> = None;

    /// What takes its commands one at a time, in words of evidence.
    const PART: FrontPart = FrontPart::Controller;

    /// Reads the figures from `top`, or else from its base.
    fn read(top: &Table<'_>) -> Result<Self, ProfileError>;

    /// Whether Linux takes the drive as a SCSI disk.
    const IS_SCSI: bool = false;

    /// Disks behind one host at most, each with a front end of its own.
    const DISKS_MAX: u16 = 1;

    /// Hardware queues.
    fn hw_queues(&self) -> u16 {
        1
    }

    /// Commands that one hardware queue takes.
    fn depth(&self) -> u16;

    /// Whether several hardware queues share that depth.
    fn shares_depth(&self) -> bool {
        false
    }

    /// The time for which a processor is busy with a doorbell.
    fn doorbell(&self) -> Duration;

    /// Whether one doorbell is for a batch of commands.
    fn batches(&self) -> bool {
        false
    }

    /// The interrupts that are held back.
    fn coalescing(&self) -> Option<CoalescingProfile> {
        None
    }

    /// The thread of the host that waits for the medium, if there is one.
    fn engine(&self) -> Option<SyncEngine> {
        None
    }

    /// Builds an idle front end.
    fn build(&self) -> Self::Front;
}
