//! The disk as a front end sees it: commands in, ends out.

use super::*;
use crate::disk::profile::{CommandOrder, DiskCacheProfile, EstimateProfile, Leaving, SeekProfile};
use blockyard::unit::HctxId;
use std::collections::BTreeMap;

mod partial_sectors;
mod streams;
mod turns;

/// Sectors of the disk: 1 TB.
const CAPACITY: u64 = 1_953_525_168;

/// A 7200 disk without a cache, 200 MB/s outside and 100 MB/s inside.
fn profile() -> PlattersProfile {
    let seek = SeekProfile {
        track: Duration::from_us(1_000),
        average: Duration::from_us(8_500),
        full: Duration::from_ms(18),
    };
    PlattersProfile {
        rpm: 7_200,
        heads: 2,
        zones: 20,
        outer: 200_000_000,
        inner: 100_000_000,
        band: 100,
        head_switch: Duration::from_us(1_200),
        physical_sector: 512,
        read: seek,
        write: SeekProfile { average: Duration::from_us(9_500), ..seek },
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
            idle: Duration::from_ms(50),
            start: 100,
            batch: 1_000,
            turns: Turns::OneEach,
        },
    }
}

fn read_cache(bytes: u64) -> PlattersProfile {
    let cache = DiskCacheProfile { read: bytes, segments: 4, ..profile().cache };
    PlattersProfile { cache, ..profile() }
}

fn write_cache(bytes: u64) -> PlattersProfile {
    PlattersProfile { cache: DiskCacheProfile { write: bytes, ..profile().cache }, ..profile() }
}

/// A disk in time.
struct Rig {
    disk: Platters,
    events: MediumEvents,
    pending: BTreeMap<(Instant, u32), MediumEvent>,
    now: Instant,
    next: u32,
    /// Begins and ends of commands by number.
    began: Vec<Instant>,
    ended: Vec<Option<Instant>>,
}

impl Rig {
    fn new(profile: PlattersProfile) -> Self {
        Self {
            disk: Platters::new(profile, CAPACITY, Prng::new(3)),
            events: MediumEvents::new(),
            pending: BTreeMap::new(),
            now: Instant::ZERO,
            next: 0,
            began: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn collect(&mut self) {
        for (at, event) in self.events.drain(..) {
            assert!(at >= self.now, "{event:?} at {at} is in the past");
            self.next += 1;
            self.pending.insert((at, self.next), event);
        }
        while let Some(CommandId(id)) = self.disk.next_ended() {
            let end = &mut self.ended[id as usize];
            assert_eq!(*end, None, "command {id} ends twice");
            *end = Some(self.now);
        }
    }

    fn begin(&mut self, access: Access) -> u32 {
        let id = u32::try_from(self.began.len()).unwrap();
        self.began.push(self.now);
        self.ended.push(None);
        self.disk.begin(CommandId(id), access, self.now, &mut self.events);
        self.collect();
        id
    }

    /// Handles the next event. Returns whether there was one.
    fn step(&mut self) -> bool {
        let Some(((at, _), event)) = self.pending.pop_first() else { return false };
        self.now = at;
        self.disk.event(event, at, &mut self.events);
        self.collect();
        true
    }

    /// Lets `time` pass.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.pending.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs one command until its end, and returns its time.
    fn run(&mut self, access: Access) -> Duration {
        let id = self.begin(access) as usize;
        while self.ended[id].is_none() {
            assert!(self.step(), "command {id} never ends");
        }
        self.time_of(id)
    }

    fn time_of(&self, id: usize) -> Duration {
        self.ended[id].unwrap().since(self.began[id])
    }

    /// Keeps `depth` commands of `next` in the disk until `count` have ended. Returns the number
    /// per second.
    fn rate(&mut self, depth: usize, count: usize, mut next: impl FnMut(usize) -> Access) -> u64 {
        let first = self.began.len();
        let start = self.now;
        for nth in 0..count {
            self.begin(next(nth));
            while self.ended[first..].iter().filter(|end| end.is_none()).count() >= depth {
                assert!(self.step(), "the disk stands still");
            }
        }
        while self.ended[first..].iter().any(Option::is_none) {
            assert!(self.step(), "the disk stands still");
        }
        count as u64 * 1_000_000_000 / self.now.since(start).as_ns()
    }

    /// Returns how many of the commands `ids` have ended.
    fn ended_of(&self, ids: &[usize]) -> usize {
        ids.iter().filter(|&&id| self.ended[id].is_some()).count()
    }
}

const fn access(op: Op, start: u64, sectors: u32) -> Access {
    Access { op, start, sectors, fua: false, queue: HctxId(0) }
}

fn random(op: Op, seed: u64) -> impl FnMut(usize) -> Access {
    let mut prng = Prng::new(seed);
    move |_| access(op, prng.below(CAPACITY / 8) * 8, 8)
}

fn rate_of(profile: PlattersProfile, depth: usize, op: Op) -> u64 {
    Rig::new(profile).rate(depth, 2_000, random(op, 5))
}

#[test]
fn one_read_at_a_time_takes_a_seek_and_half_a_turn() {
    // The oracle knows no arm and no angle: the mean seek of all pairs of sectors, half a turn, and
    // the transfer.
    let mut rig = Rig::new(profile());
    let rate = rig.rate(1, 4_000, random(Op::Read, 5));
    let mean_us = 1_000_000 / rate;
    let seek_us = mean_seek_us();
    let expected_us = seek_us + 8_333 / 2 + 20;
    assert!(mean_us.abs_diff(expected_us) < expected_us / 50, "{mean_us} us, not {expected_us}");
    let Counts { rotation, seek, .. } = rig.disk.counts;
    let wait_us = rotation.as_ns() / 4_000_000;
    assert!(wait_us.abs_diff(8_333 / 2) < 100, "{wait_us} us for the sector");
    let sought_us = seek.as_ns() / 4_000_000;
    assert!(sought_us.abs_diff(seek_us) < 150, "{sought_us} us for the cylinder, not {seek_us}");
}

/// Returns the mean seek between two sectors in microseconds. The outermost tracks have twice the
/// sectors of the innermost, so of 500 rings the first has the weight 1000 and the last 501.
fn mean_seek_us() -> u64 {
    let curve = Seek::new(profile().read, Duration::ZERO, 500);
    let mut sum_us = 0;
    let mut pairs = 0;
    for (one, other) in (0..500_u32).flat_map(|one| (0..500).map(move |other| (one, other))) {
        let both = u64::from(1_000 - one) * u64::from(1_000 - other);
        sum_us += curve.time(one.abs_diff(other), false).as_ns() / 1_000 * both;
        pairs += both;
    }
    sum_us / pairs
}

#[test]
fn random_reads_reach_the_published_rates() {
    // 70 to 200 a second by depth; "nearly 100 %" more with deep queues.
    let rates = [1, 4, 32].map(|depth| rate_of(profile(), depth, Op::Read));
    assert!((70..=85).contains(&rates[0]), "{rates:?}");
    assert!(rates[1] > rates[0] * 11 / 10, "{rates:?}");
    assert!((140..=230).contains(&rates[2]), "{rates:?}");
}

#[test]
fn in_the_order_of_arrival_depth_gains_nothing() {
    let profile = PlattersProfile { order: CommandOrder::Arrival, ..profile() };
    let rates = [1, 32].map(|depth| rate_of(profile, depth, Op::Read));
    assert!(rates[1].abs_diff(rates[0]) <= rates[0] / 50, "{rates:?}");
}

/// Reads near the outside while one on the inside waits. Returns the time of that one, and how many
/// commands were too old to wait longer.
fn flood(age_max: Duration) -> (Duration, u64) {
    let mut rig = Rig::new(PlattersProfile { age_max, ..profile() });
    let mut prng = Prng::new(9);
    let near = move |_| access(Op::Read, prng.below(10_000) * 8, 8);
    rig.begin(access(Op::Read, 0, 8));
    let far = rig.begin(access(Op::Read, CAPACITY - 8, 8)) as usize;
    rig.rate(16, 2_000, near);
    while rig.ended[far].is_none() {
        assert!(rig.step());
    }
    (rig.time_of(far), rig.disk.counts.overdue)
}

#[test]
fn no_command_starves() {
    // A flood on the outside would keep the arm there for ever.
    let (late, none) = flood(Duration::from_secs(60));
    assert!(late > Duration::from_secs(1) && none == 0, "{late:?}");
    let (bounded, some) = flood(Duration::from_ms(500));
    assert!(bounded < Duration::from_ms(540) && some > 0, "{bounded:?}");
}

/// Four reads in sequence are in the disk at any time. Returns the time of a read elsewhere that
/// comes among them.
fn beside_a_stream(stream_max: u64) -> Duration {
    let mut rig = Rig::new(PlattersProfile { stream_max, ..profile() });
    let mut reads = (0..).map(|nth| access(Op::Read, nth * 256, 256));
    let mut next = move |_| reads.next().expect("reads without end");
    (0..4).for_each(|nth| {
        rig.begin(next(nth));
    });
    let far = rig.begin(access(Op::Read, CAPACITY - 8, 8)) as usize;
    rig.rate(4, 4_000, next);
    rig.time_of(far)
}

#[test]
fn a_stream_has_its_share_in_a_row_while_others_wait() {
    // At 200 MB/s, 8 MiB take 42 ms. A full seek of 18 ms and a turn of 8.3 ms at most follow, and
    // one command of 0.7 ms is under way. The stream may lose a turn where it changes tracks.
    let bounded = beside_a_stream(8 << 20);
    let most = Duration::from_us(42_000 + 18_000 + 2 * 8_400 + 700);
    assert!(bounded > Duration::from_ms(42 + 9) && bounded < most, "{bounded:?}");
    // Without a bound it is too old after a second.
    let unbounded = beside_a_stream(1 << 40);
    assert!(unbounded > Duration::from_secs(1), "{unbounded:?}");
}

#[test]
fn the_outer_zone_is_twice_as_fast_as_the_inner() {
    // The rates of the data sheet include the steps from track to track.
    let [outer, inner] = [0, CAPACITY - 1_024_000].map(|first| {
        let mut rig = Rig::new(profile());
        let rate = rig.rate(2, 1_000, |nth| access(Op::Read, first + nth as u64 * 1_024, 1_024));
        rate * 512 * 1_024 / 1_000_000
    });
    assert!(outer.abs_diff(200) <= 3, "{outer} MB/s");
    assert!(inner.abs_diff(100) <= 3, "{inner} MB/s");
}

#[test]
fn a_sequential_write_without_a_cache_loses_a_turn() {
    // The sector that follows has just passed when the host sends it.
    let mut rig = Rig::new(profile());
    rig.run(access(Op::Write, 0, 8));
    for nth in 1..50 {
        rig.pass(Duration::from_us(50));
        let time = rig.run(access(Op::Write, nth * 8, 8)).as_ns();
        assert!(time.abs_diff(8_333_333 - 50_000) < 30_000, "{time} ns");
    }
    let mut rig = Rig::new(write_cache(8 << 20));
    assert_eq!(rig.run(access(Op::Write, 0, 8)), Duration::ZERO);
    rig.run(Access { fua: true, ..access(Op::Write, 8, 8) });
    rig.pass(Duration::from_us(50));
    let next = Access { fua: true, ..access(Op::Write, 16, 8) };
    assert!(rig.run(next) > Duration::from_ms(8));
}

#[test]
fn a_reader_alone_is_served_from_what_was_read_ahead() {
    let gap = Duration::from_us(50);
    let [without, with] = [profile(), read_cache(8 << 20)].map(|profile| {
        let mut rig = Rig::new(profile);
        rig.run(access(Op::Read, 0, 128));
        let start = rig.now;
        for nth in 1..2_000 {
            rig.pass(gap);
            rig.run(access(Op::Read, nth * 128, 128));
        }
        2_000 * 128 * 512 * 1_000 / rig.now.since(start).as_ns()
    });
    assert!(without < 15, "{without} MB/s: a turn for each read");
    assert!(with.abs_diff(200) <= 6, "{with} MB/s");
}

#[test]
fn a_read_that_is_prepared_while_the_head_reads_ahead_does_not_stop_it() {
    // Each read comes 50 us after the one before, so its data is not there yet. Within the overhead
    // of 700 us the head reads all of its 64 KiB, 330 us, and it reads on. So a read takes 0.7 ms
    // or nothing, and at the end of a track, which is each 28th, at most the step of 1 ms longer.
    let overhead = Duration::from_us(700);
    let mut rig = Rig::new(PlattersProfile { overhead, ..read_cache(8 << 20) });
    rig.run(access(Op::Read, 0, 128));
    for nth in 1..200 {
        rig.pass(Duration::from_us(50));
        let time = rig.run(access(Op::Read, nth * 128, 128));
        assert!(time <= overhead + Duration::from_ms(1), "read {nth}: {time:?}");
    }
    assert!(rig.disk.counts.cached_reads >= 199 - 8, "{:?}", rig.disk.counts);
    // The reader waits for the head but for the 50 us between its reads.
    let occupied = rig.disk.load().parts[0].used;
    let passed = rig.now.since(Instant::ZERO);
    assert!(occupied.as_ns() * 10 > passed.as_ns() * 7, "{occupied:?} of {passed:?}");
}

#[test]
fn a_head_that_reads_ahead_for_longer_than_a_segment_keeps_its_place() {
    // A read of 128 KiB each 750 us or less, of which the head needs 655 us: it never stops, and is
    // never further than a segment of 1 MiB from the reader. No read takes a turn, 8.3 ms.
    let overhead = Duration::from_us(300);
    let mut rig = Rig::new(PlattersProfile { overhead, ..read_cache(4 << 20) });
    rig.run(access(Op::Read, 0, 256));
    for nth in 1..200 {
        rig.pass(Duration::from_us(450));
        let time = rig.run(access(Op::Read, nth * 256, 256));
        assert!(time < Duration::from_ms(2), "read {nth}: {time:?}");
    }
}

#[test]
fn a_slow_reader_finds_its_data_in_the_cache() {
    let mut rig = Rig::new(read_cache(4 << 20));
    rig.run(access(Op::Read, 0, 128));
    rig.pass(Duration::from_ms(30));
    for nth in 1..200 {
        assert_eq!(rig.run(access(Op::Read, nth * 128, 128)), Duration::ZERO, "read {nth}");
        rig.pass(Duration::from_ms(2));
    }
    assert_eq!(rig.disk.counts.cached_reads, 199);
    // A write into it takes it out.
    rig.run(access(Op::Write, 200 * 128, 8));
    assert!(rig.run(access(Op::Read, 200 * 128, 8)) > Duration::ZERO);
}

#[test]
fn acknowledged_writes_are_sorted_and_faster_than_reads() {
    let rig = |order| {
        let mut rig = Rig::new(PlattersProfile { order, ..write_cache(4 << 20) });
        let rate = rig.rate(1, 6_000, random(Op::Write, 5));
        (rate, rig.disk.counts)
    };
    let (sorted, counts) = rig(CommandOrder::Shortest);
    assert!(counts.destages > 4_000 && counts.cached_writes == 6_000, "{counts:?}");
    let reads = rate_of(profile(), 1, Op::Read);
    assert!(sorted > 2 * reads, "{sorted} writes and {reads} reads per second");
}

#[test]
fn reads_and_writes_that_wait_for_room_take_turns() {
    // The cache has room for 16 writes; 24 more wait.
    let mut rig = Rig::new(write_cache(64 << 10));
    let mut write = random(Op::Write, 11);
    let mut read = random(Op::Read, 12);
    let writes: Vec<_> = (0..40).map(|nth| rig.begin(write(nth)) as usize).collect();
    let reads: Vec<_> = (0..10).map(|nth| rig.begin(read(nth)) as usize).collect();
    assert_eq!(rig.ended_of(&writes), 16);
    while rig.ended_of(&reads) < reads.len() {
        rig.step();
        let read = rig.ended_of(&reads);
        let written = rig.ended_of(&writes) - 16;
        assert!(read.abs_diff(written) <= 1, "{read} reads and {written} writes");
    }
}

#[test]
fn acknowledged_writes_go_in_a_sweep() {
    // 1000 writes over all the disk wait, so a window of 32 is a thirtieth of it.
    let mut rig = Rig::new(write_cache(16 << 20));
    let mut write = random(Op::Write, 13);
    for nth in 0..1_000 {
        assert_eq!(rig.run(write(nth)), Duration::ZERO);
    }
    rig.begin(access(Op::Flush, 0, 0));
    let mut last = rig.disk.arm.cylinder;
    let mut back = 0;
    while rig.step() {
        back += u32::from(rig.disk.arm.cylinder + 20_000 < last);
        last = rig.disk.arm.cylinder;
    }
    assert!(rig.disk.counts.destages >= 1_000);
    // In any order, it would go back every second time.
    assert!(back < 50, "the arm went back {back} times");
}

#[test]
fn a_flush_ends_when_the_cache_is_empty() {
    let mut rig = Rig::new(write_cache(8 << 20));
    let mut next = random(Op::Write, 11);
    for nth in 0..20 {
        assert_eq!(rig.run(next(nth)), Duration::ZERO);
    }
    let flush = rig.begin(access(Op::Flush, 0, 0)) as usize;
    let behind = rig.begin(next(20)) as usize;
    while rig.ended[flush].is_none() {
        assert_eq!(rig.ended[behind], None, "a write behind a flush waits");
        assert!(rig.step());
    }
    assert_eq!(rig.disk.counts.destages, 20);
    assert!(rig.time_of(flush) > Duration::from_ms(60));
    assert!(rig.ended[behind].is_some());
    assert!(rig.run(access(Op::Flush, 0, 0)) > Duration::ZERO, "one write came after it");
    assert_eq!(rig.run(access(Op::Flush, 0, 0)), Duration::ZERO);
}

#[test]
fn an_idle_disk_writes_what_it_has_acknowledged() {
    let mut rig = Rig::new(write_cache(8 << 20));
    rig.run(access(Op::Write, 4_096, 8));
    rig.pass(Duration::from_ms(49));
    assert_eq!(rig.disk.counts.destages, 0);
    rig.pass(Duration::from_ms(40));
    assert_eq!(rig.disk.counts.destages, 1);
    assert!(rig.pending.is_empty(), "an idle disk schedules nothing");
}

#[test]
fn reads_that_lie_behind_each_other_pass_in_one_turn() {
    // [one-arm]: eight reads of one track, in the wrong order, at once.
    let mut rig = Rig::new(profile());
    rig.run(access(Op::Read, 0, 8));
    let start = rig.now;
    for nth in (1..=8).rev() {
        rig.begin(access(Op::Read, nth * 200, 8));
    }
    while rig.ended.iter().any(Option::is_none) {
        assert!(rig.step());
    }
    // The eighth had the arm when the others came; the others follow in one more turn.
    assert!(rig.now.since(start) < Duration::from_us(2 * 8_334));
}

/// Of 4 ms for which the head reads ahead, the first three had been read before anybody asked for
/// more.
#[test]
fn reading_ahead_occupies_the_head_as_far_as_a_read_waits_for_it() {
    let mut rig = Rig::new(read_cache(16 << 20));
    rig.run(access(Op::Read, 0, 64));
    rig.pass(Duration::from_ms(3));
    let before = rig.disk.load().parts[0].used;
    assert_eq!(rig.run(access(Op::Read, 64, 64)), Duration::ZERO, "the head has read it");
    let asked = rig.now;
    rig.pass(Duration::from_ms(1));
    let read = access(Op::Read, 1_500, 1_000);
    assert!(rig.run(read) > Duration::ZERO, "the head is not there yet");
    let since = rig.now.since(asked).as_ns();
    let spent = rig.disk.load().parts[0].used.as_ns() - before.as_ns();
    assert!(spent.abs_diff(since) * 50 < since, "{spent} ns in use, of {since} ns");
}

/// A profile that estimates by `estimate`.
fn estimated(estimate: EstimateProfile) -> PlattersProfile {
    PlattersProfile { order: CommandOrder::Estimated, estimate, ..profile() }
}

/// Errors of seeks with a deviation of so many microseconds.
fn seek_error(us: u64) -> EstimateProfile {
    EstimateProfile { seek_error: Duration::from_us(us), ..EstimateProfile::EXACT }
}

/// Returns when each of 600 random reads at depth 32 ended.
fn ends_of(profile: PlattersProfile) -> Vec<Option<Instant>> {
    let mut rig = Rig::new(profile);
    rig.rate(32, 600, random(Op::Read, 5));
    rig.ended
}

#[test]
fn without_errors_the_estimate_is_the_exact_order_and_a_window_of_one_is_that_of_arrival() {
    assert_eq!(ends_of(estimated(EstimateProfile::EXACT)), ends_of(profile()));
    let one = EstimateProfile { window: 1, ..EstimateProfile::EXACT };
    let arrival = PlattersProfile { order: CommandOrder::Arrival, ..profile() };
    assert_eq!(ends_of(estimated(one)), ends_of(arrival));
}

/// Returns the random reads per second at depth 32 of a disk by `profile` without a bound on ages.
fn aged_rate(profile: PlattersProfile) -> u64 {
    rate_of(PlattersProfile { age_max: Duration::from_secs(60), ..profile }, 32, Op::Read)
}

#[test]
fn errors_cost_what_sorting_gains() {
    // With errors that are far longer than any movement, the order is one by chance, which is as
    // good as that of arrival: a seek and half a turn, 12.6 ms, with a deviation of 4 ms. The mean
    // of 2000 is within 3 * 4 / 45 ms of it, which is 2 %, in both runs.
    let arrival = aged_rate(PlattersProfile { order: CommandOrder::Arrival, ..profile() });
    let blind = aged_rate(estimated(seek_error(60_000_000)));
    assert!(blind.abs_diff(arrival) * 100 <= 4 * arrival, "{blind}, by arrival {arrival}");
    let rates = [0, 200, 1_000, 5_000].map(|us| aged_rate(estimated(seek_error(us))));
    assert!(rates.is_sorted_by(|less, more| less > more), "{rates:?}");
    assert!(rates[3] > blind, "{rates:?}, without any knowledge {blind}");
}

/// The longest wait of a command at depth 16 that is before all younger ones after `wait_ms`. No
/// service takes longer than the longest seek, a turn and the transfer: 18, 8.4 and 0.1 ms. When a
/// command is that old, one service is under way, and at most 15 older ones and its own follow. So
/// it waits for 17 services more.
fn longest_wait(wait_ms: u64) -> Duration {
    Duration::from_us(wait_ms * 1_000 + 17 * 26_500)
}

/// Returns the time of a read at the end of the disk, while 15 others are kept at its start, by a
/// firmware that gives a credit of `credit_ms` for each second.
fn far_read(credit_ms: u64) -> Duration {
    let age_credit = Duration::from_ms(credit_ms);
    let estimate = EstimateProfile { age_credit, ..EstimateProfile::EXACT };
    let age_max = Duration::from_secs(60);
    let mut rig = Rig::new(PlattersProfile { age_max, ..estimated(estimate) });
    let mut prng = Prng::new(9);
    rig.begin(access(Op::Read, 0, 8));
    let far = rig.begin(access(Op::Read, CAPACITY - 8, 8)) as usize;
    rig.rate(15, 2_000, move |_| access(Op::Read, prng.below(10_000) * 8, 8));
    while rig.ended[far].is_none() {
        assert!(rig.step());
    }
    rig.time_of(far)
}

#[test]
fn an_age_or_its_credit_bounds_the_wait() {
    let mut rig = Rig::new(PlattersProfile { age_max: Duration::from_ms(100), ..profile() });
    rig.rate(16, 1_500, random(Op::Read, 5));
    let longest = (0..1_500).map(|id| rig.time_of(id)).max().unwrap();
    assert!(longest <= longest_wait(100), "{longest:?}");
    // With a credit of 100 ms for each second, a command of 265 ms is before any that is younger by
    // this much, as that has an expected time of 0 at least, and its own is 26.5 ms at most.
    assert!(far_read(100) <= longest_wait(265), "{:?}", far_read(100));
    // Without one, those on the outside would keep the arm there for ever.
    assert!(far_read(0) > longest_wait(265), "{:?}", far_read(0));
}

/// Returns the nanoseconds of a first read of 4 KiB from `sector`, the arm being on its track.
fn first_read(overhead: Duration, sector: u64) -> u64 {
    let mut rig = Rig::new(PlattersProfile { overhead, ..profile() });
    rig.run(access(Op::Read, sector, 8)).as_ns()
}

#[test]
fn the_overhead_of_a_command_is_lost_only_where_the_arm_would_have_moved() {
    // A sector that comes round after the overhead of 300 us is read as early as without; one that
    // comes round before is read a turn later.
    let overhead = Duration::from_us(300);
    let mut late = 0;
    let mut equal = 0;
    for sector in (0..3_200).step_by(100) {
        let [without, with] = [Duration::ZERO, overhead].map(|of| first_read(of, sector));
        // The transfer of 8 of the 3600 sectors of a track takes 20 us.
        if without < 300_000 + 15_000 {
            assert!(with.abs_diff(without + 8_333_333) <= 1, "{sector}: {without} and {with} ns");
            late += 1;
        } else if without > 300_000 + 25_000 {
            assert_eq!(with, without, "sector {sector}");
            equal += 1;
        }
    }
    assert!(late > 0 && equal > 20, "{late} late and {equal} as early");
    // While the arm works, the firmware prepares the next command.
    let rates = [Duration::ZERO, overhead]
        .map(|overhead| rate_of(PlattersProfile { overhead, ..profile() }, 32, Op::Read));
    assert!(rates[0].abs_diff(rates[1]) * 25 <= rates[0], "{rates:?}");
}

#[test]
fn a_cache_is_written_back_from_a_part_of_it_on() {
    // Half of a cache of 16 writes. The disk is idle after 50 ms, so it is not yet.
    let cache = DiskCacheProfile { start: 50, ..write_cache(64 << 10).cache };
    let mut rig = Rig::new(PlattersProfile { cache, ..profile() });
    let mut write = random(Op::Write, 11);
    for nth in 0..7 {
        assert_eq!(rig.run(write(nth)), Duration::ZERO);
    }
    rig.pass(Duration::from_ms(30));
    assert_eq!(rig.disk.counts.destages, 0);
    rig.run(write(7));
    rig.pass(Duration::from_ms(20));
    assert!(rig.disk.counts.destages > 0);
}

/// Returns the random writes per second to a full cache of 1024 writes with batches of `batch`.
fn batch_rate(batch: u32) -> u64 {
    let cache = DiskCacheProfile { batch, ..write_cache(4 << 20).cache };
    let mut rig = Rig::new(PlattersProfile { cache, ..profile() });
    (0..1_024).map(random(Op::Write, 4)).for_each(|write| assert!(rig.begin(write) < 1_024));
    rig.rate(1, 2_000, random(Op::Write, 5))
}

#[test]
fn batches_of_one_are_as_slow_as_writes_by_arrival_and_larger_ones_faster() {
    // Batches of one leave nothing to sort: a seek and half a turn for each.
    let arrival = PlattersProfile { order: CommandOrder::Arrival, ..profile() };
    let rates = [1, 4, 32, 1_024].map(batch_rate);
    let alone = rate_of(arrival, 1, Op::Write);
    assert!(rates[0].abs_diff(alone) * 100 <= 5 * alone, "{rates:?}, without a cache {alone}");
    assert!(rates.is_sorted_by(|less, more| less < more), "{rates:?}");
}

/// [one-arm]: reads of six places, of which the cache has four, so that it answers some two of
/// three. The head often begins to read ahead and is broken off. All that it did took place one
/// after the other.
#[test]
fn the_arm_is_never_in_use_for_longer_than_the_time_that_passes() {
    for order in [CommandOrder::Shortest, CommandOrder::Arrival] {
        let overhead = Duration::from_us(200);
        let mut rig = Rig::new(PlattersProfile { order, overhead, ..read_cache(8 << 20) });
        let mut prng = Prng::new(9);
        rig.rate(4, 1_000, |_| access(Op::Read, prng.below(6) * (CAPACITY / 6), 8));
        let occupied = rig.disk.load().parts[0].used;
        let passed = rig.now.since(Instant::ZERO);
        assert!(rig.disk.counts.cached_reads > 400, "{:?}", rig.disk.counts);
        assert!(occupied <= passed, "{occupied:?} of {passed:?}: {:?}", rig.disk.counts);
    }
}
