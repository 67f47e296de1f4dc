//! The front end of an NVMe drive: commands in queues in the host's memory, over PCI Express.
//!
//! The controller learns of new commands by a doorbell. It fetches each, and then the data of a write; when the medium
//! is done, it sends the data of a read, and a completion. Each direction of the link carries one transfer at a time.
//!
//! # Rules
//!
//! - **[controller-takes-turns]** The controller takes one command at a time from all queues, so it has a largest rate of
//!   commands. The latency of a command in the controller occupies nothing.

use super::line::Line;
use crate::device::medium::Access;
use crate::device::null::transfer_time;
use crate::profile::NvmeProfile;
use blockyard::bio::Op;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// The front end.
#[derive(Debug)]
pub(super) struct Nvme {
    profile: NvmeProfile,
    controller: Line,
    to_device: Line,
    to_host: Line,
}

impl Nvme {
    pub(super) fn new(profile: NvmeProfile) -> Self {
        let idle = Line::default();
        Self { profile, controller: idle, to_device: idle, to_host: idle }
    }

    /// Takes a command of whose doorbell the controller learns at `now`. Returns when the medium can begin.
    pub(super) fn send(&mut self, access: Access, now: Instant) -> Instant {
        let taken = self.controller.pass(now, self.profile.interval); // [controller-takes-turns]
        let ready = taken + self.profile.command;
        match access.op {
            Op::Write => self.to_device.pass(ready, self.transfer(access)),
            _ => ready,
        }
    }

    /// Answers a command with which the medium is done at `now`. Returns when the host has the answer.
    pub(super) fn answer(&mut self, access: Access, now: Instant) -> Instant {
        match access.op {
            Op::Read => self.to_host.pass(now, self.transfer(access)),
            _ => now,
        }
    }

    fn transfer(&self, access: Access) -> Duration {
        transfer_time(u64::from(access.sectors) * u64::from(SECTOR_BYTES), self.profile.link)
    }
}
