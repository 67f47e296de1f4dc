//! A standstill: the jobs, bios and requests that wait when no event is left.

use super::World;
use blockyard_mmc::block::Idle;
use core::fmt;

/// Counts of the jobs, bios and requests that wait at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// Job instances that have not ended.
    pub tasks: u32,
    /// Job instances that wait for a tag.
    pub for_tag: u32,
    /// Bios that have not ended.
    pub bios: u32,
    /// Requests that the driver owns.
    pub at_driver: u32,
    /// The state of the MMC host, if the device is one.
    pub host: Option<HostStandstill>,
}

/// The state of an MMC host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStandstill {
    /// Whether its driver has requests or recovers from an error.
    pub idle: Idle,
    /// Whether the dispatching thread and the thread of deferred work run or have been woken.
    pub awake: [bool; 2],
    /// Whether these two threads have work.
    pub pending: [bool; 2],
}

impl World<'_> {
    /// Returns the jobs, bios and requests that wait now.
    #[must_use]
    pub fn standstill(&self) -> Standstill {
        let for_tag = self.tasks.iter().filter(|task| task.waits_for_tag()).count();
        debug_assert!(self.alive as usize <= self.tasks.len(), "{} tasks", self.alive);
        Standstill {
            tasks: self.alive,
            for_tag: u32::try_from(for_tag).expect("a count of tasks should fit 32 bits"),
            bios: self.queues.iter().map(|queue| queue.bios_in_use()).sum(),
            at_driver: self.queues.iter().map(|queue| queue.in_flight()).sum(),
            host: self.host_standstill(),
        }
    }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, for_tag, bios, at_driver, host } = self;
        write!(
            f,
            "{tasks} job instances wait, {for_tag} of them for a tag; of {bios} bios that have not \
             ended, {at_driver} requests are the driver's"
        )?;
        let Some(HostStandstill { idle, awake, pending }) = host else { return Ok(()) };
        f.write_str(match idle {
            Idle::Yes => "; its MMC host has none",
            Idle::NotYet => "; its MMC host waits for the bus or for a thread",
            Idle::Halted => "; its MMC host recovers from an error",
        })?;
        let threads = ["the thread that dispatches", "deferred work"];
        for ((thread, awake), pending) in threads.into_iter().zip(awake).zip(pending) {
            let sleeps = if *awake { "is awake" } else { "sleeps" };
            let work = if *pending { "something" } else { "nothing" };
            write!(f, ", {thread} {sleeps} and has {work} to do")?;
        }
        Ok(())
    }
}
