//! Memory that is written in place, such as 3D XPoint: a medium without translation, erases or a
//! cache.
//!
//! The memory lies behind channels. An access is cut into units, which lie on the channels in turn.
//! Each unit occupies its channel, which serves one at a time, in the order in which their accesses
//! begin. The latency of the memory follows the last unit and occupies nothing.
//!
//! Left out: wear levelling, refresh, errors and their correction, the power limit of writes, and
//! any difference between accesses to one die and to several.

pub(crate) mod profile;

use super::load::{MediumLoad, Parts, PartsLoad};
use super::medium::{
    Access, CommandId, Medium, MediumCounts, MediumEvent, MediumEvents, MediumUse,
};
use crate::crosspoint::profile::CrosspointProfile;
use blockyard::bio::Op;
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;
use std::collections::VecDeque;

/// The medium.
#[derive(Debug)]
pub(crate) struct Crosspoint {
    profile: CrosspointProfile,
    prng: Prng,
    /// For each channel, the instant from which it is free.
    free_at: Vec<Instant>,
    ended: VecDeque<CommandId>,
    counts: Counts,
}

/// What the memory did.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    units_read: u64,
    units_written: u64,
    /// Time for which channels were occupied.
    used: Duration,
    /// Time that units waited for their channel before the first of them began, summed over
    /// accesses and channels.
    wait: Duration,
}

impl Crosspoint {
    /// Returns idle memory by `profile`. `prng` draws the spread of its latency.
    #[must_use]
    pub(super) fn new(profile: CrosspointProfile, prng: Prng) -> Self {
        debug_assert!(profile.channels > 0, "a memory has a channel");
        let free_at = vec![Instant::ZERO; usize::from(profile.channels)];
        Self { profile, prng, free_at, ended: VecDeque::new(), counts: Counts::default() }
    }

    /// Occupies the channels of `access` from `now` for `time` with each unit, and returns when the
    /// last is done. A unit waits for those that are on its channel already.
    fn occupy(&mut self, access: Access, time: Duration, now: Instant) -> Instant {
        let (first, units) = self.units_of(access);
        let channels = self.free_at.len() as u64;
        let mut end = now;
        for nth in 0..units.min(channels) {
            let at =
                usize::try_from((first + nth) % channels).expect("a channel should be below 1024");
            let on_channel = (units - nth).div_ceil(channels);
            let free_at = &mut self.free_at[at];
            let begin = (*free_at).max(now);
            let time = Duration::from_ns(time.as_ns().saturating_mul(on_channel));
            *free_at = begin + time;
            self.counts.wait += begin.since(now);
            self.counts.used += time;
            end = end.max(*free_at);
        }
        debug_assert!(end >= now, "an access must not end before it begins");
        end
    }

    /// Returns the first unit of `access`, and how many it has.
    fn units_of(&self, access: Access) -> (u64, u64) {
        debug_assert!(access.sectors > 0, "{access:?} has no unit");
        let unit_sectors = self.profile.unit / u64::from(SECTOR_BYTES);
        let first = access.start / unit_sectors;
        (first, (access.start + u64::from(access.sectors)).div_ceil(unit_sectors) - first)
    }
}

impl Medium for Crosspoint {
    fn begin(&mut self, id: CommandId, access: Access, now: Instant, events: &mut MediumEvents) {
        let profile = &self.profile;
        let (latency, unit) = match access.op {
            Op::Read => (profile.read, profile.read_unit),
            Op::Write | Op::WriteZeroes => (profile.write, profile.write_unit),
            // Every write that has ended is in the memory already.
            _ => return self.ended.push_back(id),
        };
        let units = self.units_of(access).1;
        match access.op {
            Op::Read => self.counts.units_read += units,
            _ => self.counts.units_written += units,
        }
        let latency = profile.spread.map_or(latency, |spread| spread.draw(latency, &mut self.prng));
        let end = self.occupy(access, unit, now) + latency;
        events.push_back((end, MediumEvent(id.0)));
    }

    fn event(&mut self, event: MediumEvent, _now: Instant, _events: &mut MediumEvents) {
        self.ended.push_back(CommandId(event.0));
    }

    fn next_ended(&mut self) -> Option<CommandId> {
        self.ended.pop_front()
    }

    fn counts(&self) -> MediumCounts {
        let Counts { units_read, units_written, wait, .. } = self.counts;
        let counts = [("units_read", units_read), ("units_written", units_written)];
        counts.into_iter().chain([("channel_wait_ns", wait.as_ns())]).collect()
    }

    fn used(&self) -> MediumUse {
        MediumUse { used: self.counts.used, units: self.profile.channels.into() }
    }

    fn load(&self) -> MediumLoad {
        let MediumUse { used, units } = self.used();
        let parts = vec![PartsLoad::of_time(Parts::Medium, units, used)];
        MediumLoad { parts, ..MediumLoad::default() }
    }

    fn forget(&mut self) {
        self.counts = Counts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::unit::HctxId;

    /// Two channels with units of 512 bytes, 10 us for a unit that is read and 20 us for one that
    /// is written, 3 us beyond.
    fn memory() -> Crosspoint {
        let us = Duration::from_us;
        let profile = CrosspointProfile {
            channels: 2,
            unit: 512,
            read_unit: us(10),
            write_unit: us(20),
            read: us(3),
            write: us(3),
            spread: None,
        };
        Crosspoint::new(profile, Prng::new(1))
    }

    /// Begins an access of `sectors` from `start` on at `at`, and returns when it ends.
    fn end_of(memory: &mut Crosspoint, op: Op, start: u64, sectors: u32, at: u64) -> Option<u64> {
        let mut events = MediumEvents::new();
        let access = Access { op, start, sectors, fua: false, queue: HctxId(0) };
        memory.begin(CommandId(7), access, Instant::ZERO + Duration::from_us(at), &mut events);
        events.pop_front().map(|(end, event)| {
            assert_eq!(event, MediumEvent(7));
            end.as_ns() / 1000
        })
    }

    #[test]
    fn units_wait_for_their_channel_and_not_for_the_other() {
        let mut memory = memory();
        assert_eq!(end_of(&mut memory, Op::Read, 0, 1, 0), Some(13));
        assert_eq!(end_of(&mut memory, Op::Write, 1, 1, 0), Some(23), "the other channel is free");
        assert_eq!(end_of(&mut memory, Op::Read, 2, 1, 5), Some(23), "behind the first read");
        // Three units: two on the channel that is free from 20 us on, one on that of the write.
        assert_eq!(end_of(&mut memory, Op::Read, 4, 3, 20), Some(43));
        assert_eq!(memory.counts()[2], ("channel_wait_ns", 5_000));
    }

    #[test]
    fn a_flush_has_nothing_to_do() {
        let mut memory = memory();
        assert_eq!(end_of(&mut memory, Op::Flush, 0, 0, 0), None);
        assert_eq!(memory.next_ended(), Some(CommandId(7)));
    }
}
