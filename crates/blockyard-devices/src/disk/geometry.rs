//! Where a sector is: its cylinder, its head, and the angle at which it begins.
//!
//! Zones lie from the outside inwards, each with shorter tracks. Within a zone, one head serves a
//! band of cylinders inwards, the next head serves it outwards, and so on; then the next band
//! begins. With bands of one cylinder, the disk is filled cylinder by cylinder.
//!
//! Each track begins so far behind the end of the one before that the arm gets there in time, for a
//! write too. So a disk loses no revolution between tracks.
//!
//! The time of a sector on the disk's *course* is what a head needs from sector 0 to it if it reads
//! everything in order. A time on the course is an angle too, and the difference of two is the time
//! of a transfer.

use super::seek::Seek;
use crate::disk::profile::PlattersProfile;
use blockyard::time::Duration;

/// The place of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) cylinder: u32,
    pub(super) head: u64,
    /// The instant on the course at which the sector begins, in nanoseconds.
    pub(super) begin: u64,
    /// The instant on the course at which the sector ends.
    pub(super) end: u64,
    /// The first sector that is not on the same track.
    pub(super) track_end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    track_sectors: u64,
    /// The instant on the course at which the zone begins.
    begin: u64,
}

/// The geometry of a disk.
#[derive(Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    heads: u64,
    band: u64,
    revolution: u64,
    /// Behind the track before: one cylinder on with the same head, the next head of a band, and
    /// the next band.
    cylinder_skew: u64,
    head_skew: u64,
    band_skew: u64,
}

impl Geometry {
    /// Returns the geometry of a disk of `capacity` sectors, whose arm moves by one of `seeks`.
    pub(super) fn new(profile: &PlattersProfile, capacity: u64, seeks: [Seek; 2]) -> Self {
        debug_assert!(profile.heads > 0 && profile.band > 0, "a disk has tracks in bands");
        // The skews: how far a track begins behind the end of the one before, so that the arm has
        // settled for a write.
        let back = profile.heads.is_multiple_of(2) && profile.band > 1;
        let of_band = (if back { profile.band } else { 1 }, profile.heads > 1);
        let [cylinder_skew, head_skew, band_skew] = [(1, false), (0, true), of_band].map(|of| {
            let times = seeks.map(|seek| seek.time(of.0, of.1).as_ns());
            times.into_iter().max().unwrap_or_default()
        });
        let mut geometry = Self {
            zones: Vec::with_capacity(profile.zones.into()),
            heads: profile.heads.into(),
            band: profile.band.into(),
            revolution: profile.revolution().as_ns(),
            cylinder_skew,
            head_skew,
            band_skew,
        };
        let cylinders = profile.zone_cylinders(capacity);
        debug_assert!(cylinders.is_multiple_of(geometry.band), "whole bands");
        let mut next = Zone { first_sector: 0, first_cylinder: 0, track_sectors: 0, begin: 0 };
        for zone in 0..profile.zones {
            next.track_sectors = profile.track_sectors(zone);
            geometry.zones.push(next);
            let tracks = cylinders * geometry.heads;
            next.first_sector += tracks * next.track_sectors;
            next.first_cylinder += cylinders;
            next.begin += geometry.track_begin(tracks);
        }
        debug_assert!(next.first_sector >= capacity, "the zones hold the capacity");
        geometry
    }

    /// Returns the instant on the course, from the start of a zone, at which its track `track`
    /// starts.
    const fn track_begin(&self, track: u64) -> u64 {
        let bands = track / (self.heads * self.band);
        let in_band = track % (self.heads * self.band);
        let heads = in_band / self.band;
        let steps = in_band % self.band;
        let of_head = (self.band - 1) * self.cylinder_skew;
        let of_band = self.heads * of_head + (self.heads - 1) * self.head_skew + self.band_skew;
        let skews =
            bands * of_band + heads * (of_head + self.head_skew) + steps * self.cylinder_skew;
        track * self.revolution + skews
    }

    /// Returns the place of `sector`.
    pub(super) fn spot(&self, sector: u64) -> Spot {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1];
        let in_zone = sector - zone.first_sector;
        let track = in_zone / zone.track_sectors;
        let in_track = in_zone % zone.track_sectors;
        let band = track / (self.heads * self.band);
        let in_band = track % (self.heads * self.band);
        let head = in_band / self.band;
        let step = in_band % self.band;
        let step = if head.is_multiple_of(2) { step } else { self.band - 1 - step };
        let cylinder = zone.first_cylinder + band * self.band + step;
        let begin = zone.begin + self.track_begin(track);
        let [begin, end] = [in_track, in_track + 1]
            .map(|sectors| begin + sectors * self.revolution / zone.track_sectors);
        Spot {
            cylinder: u32::try_from(cylinder).expect("a profile has at most 2 to the 24 cylinders"),
            head,
            begin,
            end,
            track_end: sector - in_track + zone.track_sectors,
        }
    }

    /// Returns how long a head needs from the start of `first` to the end of the sector before
    /// `end`, with the steps between their tracks.
    pub(super) fn transfer(&self, first: u64, end: u64) -> Duration {
        debug_assert!(first < end, "a transfer has a sector");
        Duration::from_ns(self.spot(end - 1).end - self.spot(first).begin)
    }

    /// Returns the first sector that a head has not passed completely when it has read on from
    /// `first` for `time`, at most `end`.
    pub(super) fn passed(&self, first: u64, end: u64, time: Duration) -> u64 {
        debug_assert!(first <= end, "a head reads from {first} on to {end}");
        let mut low = first;
        let mut high = end;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.transfer(first, middle + 1) <= time { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::profile::{
        CommandOrder, DiskCacheProfile, EstimateProfile, Leaving, SeekProfile, Turns,
    };
    use std::collections::BTreeSet;

    const CAPACITY: u64 = 20_000;

    /// A small disk: tracks of 40 to 20 sectors, `heads` surfaces, bands of `band` cylinders.
    fn disk(heads: u16, band: u32) -> (Geometry, [Seek; 2]) {
        let read = SeekProfile {
            track: Duration::from_us(800),
            average: Duration::from_ms(8),
            full: Duration::from_ms(16),
        };
        let write = SeekProfile { track: Duration::from_us(1_000), ..read };
        let profile = PlattersProfile {
            rpm: 7_200,
            heads,
            zones: 4,
            outer: 2_200_000,
            inner: 1_100_000,
            band,
            head_switch: Duration::from_us(900),
            physical_sector: 512,
            read,
            write,
            order: CommandOrder::Shortest,
            estimate: EstimateProfile::EXACT,
            age_max: Duration::from_secs(1),
            stream_max: 1 << 40,
            overhead: Duration::ZERO,
            cache: DiskCacheProfile {
                read: 0,
                segments: 1,
                leaving: Leaving::AtOnce,
                ahead_least: 0,
                write: 0,
                idle: Duration::ZERO,
                start: 100,
                batch: 32,
                turns: Turns::OneEach,
            },
        };
        let cylinders = profile.zone_cylinders(CAPACITY) * 4;
        let seeks = [read, write].map(|times| Seek::new(times, profile.head_switch, cylinders));
        (Geometry::new(&profile, CAPACITY, seeks), seeks)
    }

    #[test]
    fn a_head_reads_everything_in_order_and_is_never_late() {
        for (heads, band) in [(1, 1), (2, 1), (3, 1), (1, 5), (2, 5), (3, 5)] {
            let (geometry, seeks) = disk(heads, band);
            let mut tracks = BTreeSet::new();
            let mut before = geometry.spot(0);
            tracks.insert((before.cylinder, before.head));
            for sector in 1..CAPACITY {
                let spot = geometry.spot(sector);
                if sector < before.track_end {
                    assert_eq!(spot.begin, before.end, "sector {sector} touches the one before");
                    assert_eq!((spot.cylinder, spot.head), (before.cylinder, before.head));
                } else {
                    assert!(tracks.insert((spot.cylinder, spot.head)), "{spot:?} is used twice");
                    let distance = spot.cylinder.abs_diff(before.cylinder);
                    let step = seeks.map(|seek| seek.time(distance, spot.head != before.head));
                    let gap = Duration::from_ns(spot.begin - before.end);
                    let least = step[0].max(step[1]);
                    assert!(gap >= least, "{heads} heads, sector {sector}: {gap:?} for {least:?}");
                    assert!(gap <= least + Duration::from_us(3_000), "{gap:?} for {least:?}");
                }
                before = spot;
            }
            assert!(tracks.iter().all(|(_, head)| *head < u64::from(heads)));
        }
    }

    #[test]
    fn what_a_head_has_passed_is_what_it_could_transfer() {
        let (geometry, _) = disk(2, 5);
        for (first, end) in [(0, 1), (35, 200), (4_000, 4_500), (9_999, 12_000)] {
            let time = geometry.transfer(first, end);
            assert_eq!(geometry.passed(first, CAPACITY, time), end);
            let less = Duration::from_ns(time.as_ns() - 1);
            assert_eq!(geometry.passed(first, CAPACITY, less), end - 1);
            assert_eq!(geometry.passed(first, end - 1, time), end - 1, "no further than asked");
        }
    }
}
