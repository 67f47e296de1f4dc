//! Behaviour of flash, with the counters that cause it.

#![expect(
    clippy::float_arithmetic,
    reason = "the published analysis has no closed form in integers"
)]

mod ahead;
mod far;
mod registers;
mod waits;

use super::closed::Closed;
use super::collect::Step;
use super::map::Source;
use super::*;
use crate::flash::profile::{Choice, DieOrder};
use crate::load::Work;
use crate::reader::spread::Spread;
use blockyard::unit::HctxId;
use core::cell::RefCell;
use std::collections::BTreeSet;

fn profile() -> FlashProfile {
    FlashProfile {
        channels: 2,
        dies: 2,
        planes: 1,
        page: 16 << 10,
        programs: 64,
        simulated: 128 << 20,
        spare: 28,
        fill: 100,
        overwritten: 0,
        collection: Choice::Greedy,
        read: Duration::from_us(60),
        read_spread: None,
        retries: None,
        program: Duration::from_us(700),
        erase: Duration::from_us(3500),
        erase_programs: None,
        suspend: None,
        order: DieOrder::ReadsFirst,
        passes: 16,
        queued: 1000,
        share: 50,
        registers: 2,
        read_ahead: 0,
        read_streams: 8,
        transfer: Duration::from_us(5),
        discard: Duration::from_us(60),
        discard_per_gib: Duration::from_ms(5),
        buffer: 1 << 20,
        full_buffer: FullBuffer::Writes,
        buffered: Duration::from_us(5),
        protected: false,
        write_cache: None,
        protected_flush: Duration::ZERO,
        flush_steps: 0,
        flush_map: 4096,
        slc: 0,
        slc_program: Duration::from_us(200),
        slc_idle: Duration::from_ms(100),
        slc_bypass: true,
        map_memory: None,
    }
}

/// Flash with the events that it scheduled.
struct Rig {
    flash: Flash,
    events: MediumEvents,
    /// Events by time and order.
    due: BTreeSet<(u64, u64, u32)>,
    serial: u64,
    now: Instant,
}

impl Rig {
    /// Flash by `profile`, of which the host sees as much as the map has.
    fn new(profile: FlashProfile) -> Self {
        let sectors = profile.simulated / u64::from(SECTOR_BYTES);
        let flash = Flash::new(profile, sectors, Prng::new(1));
        let events = MediumEvents::new();
        let due = BTreeSet::new();
        Self { flash, events, due, serial: 0, now: Instant::ZERO }
    }

    fn begin(&mut self, id: u32, access: Access) {
        self.flash.begin(CommandId(id), access, self.now, &mut self.events);
    }

    /// Handles the next event if it is due before `until`. Returns whether there was one.
    fn step(&mut self, until: u64) -> bool {
        for (at, event) in self.events.drain(..) {
            assert!(at >= self.now, "{event:?} at {at}, in the past of {}", self.now);
            self.serial += 1;
            self.due.insert((at.as_ns(), self.serial, event.0));
        }
        let next = self.due.first().copied().filter(|(at, ..)| *at < until);
        let Some((at, _, event)) = next else { return false };
        self.due.pop_first();
        self.now = Instant::from_ns(at);
        self.flash.event(MediumEvent(event), self.now, &mut self.events);
        true
    }

    /// Lets time pass until `until`.
    fn wait(&mut self, until: u64) {
        while self.step(until) {}
        self.now = Instant::from_ns(until);
    }

    /// Runs `commands` accesses, `depth` at a time, and returns the operation and the time of each.
    fn run(
        &mut self,
        depth: u32,
        commands: u32,
        mut next: impl FnMut(u32) -> Access,
    ) -> Vec<(Op, Duration)> {
        let mut slots: Vec<_> = (0..depth).map(|_| (Op::Read, self.now)).collect();
        let mut begun = 0;
        let mut times = Vec::new();
        let mut free: Vec<_> = (0..depth).collect();
        while times.len() < commands as usize {
            while begun < commands
                && let Some(slot) = free.pop()
            {
                let access = next(begun);
                begun += 1;
                slots[slot as usize] = (access.op, self.now);
                self.begin(slot, access);
            }
            let mut ended = self.flash.next_ended();
            while ended.is_none() {
                assert!(self.step(u64::MAX), "an event should be due");
                ended = self.flash.next_ended();
            }
            while let Some(CommandId(slot)) = ended {
                let (op, began) = slots[slot as usize];
                times.push((op, self.now.since(began)));
                free.push(slot);
                ended = self.flash.next_ended();
            }
        }
        times
    }

    fn count(&self, name: &str) -> u64 {
        let counts = self.flash.counts();
        counts.into_iter().find(|(other, _)| *other == name).expect("a counter").1
    }
}

fn at(op: Op, unit: u64) -> Access {
    Access { op, start: unit * UNIT_SECTORS, sectors: 8, fua: false, queue: HctxId(0) }
}

/// A flush of the whole drive.
const FLUSH: Access = Access { op: Op::Flush, start: 0, sectors: 0, fua: false, queue: HctxId(0) };

/// Returns the time of 100000 random writes of 4 KiB at steady state, and the write amplification.
fn steady(fill: u16) -> (u64, f64) {
    let mut rig = Rig::new(FlashProfile { fill, overwritten: 400, ..profile() });
    let mut prng = Prng::new(2);
    let units = rig.flash.map.units();
    rig.run(32, 100_000, |_| at(Op::Write, prng.below(units)));
    (rig.now.as_ns(), rig.count("write_amplification_percent") as f64 / 100.0)
}

/// P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, and L. Xiang and B.
/// Kurkoski, "An Improved Analytical Expression for Write Amplification in NAND Flash", ICNC 2012:
/// with large blocks, the victim's valid share v solves v = exp(-(1 - v) T / U), and 1 / (1 - v) is
/// the amplification. T are the pages in use, U those with data.
#[test]
fn amplification_of_uniform_random_writes_is_that_of_the_published_analysis() {
    for fill in [100, 80] {
        let profile = profile();
        let in_use = (profile.die_blocks() - 1) * profile.all_dies() * profile.block_units();
        let data = profile.simulated / UNIT_BYTES * u64::from(fill) / 100;
        let ratio = in_use as f64 / data as f64;
        let v = (0..1000).fold(0.5_f64, |v, _| (-(1.0 - v) * ratio).exp());
        let expected = 1.0 / (1.0 - v);
        let (_, seen) = steady(fill);
        println!("fill {fill}: analysis {expected:.2}, seen {seen:.2}");
        assert!((seen / expected - 1.0).abs() < 0.1, "{seen} instead of {expected}");
    }
}

/// Returns the write amplification of 200000 writes at steady state, in percent. `hot` percent of
/// them go to the first 100 - `hot` percent of the units. A die has 160 blocks, as those of drives
/// have some 128.
fn amplification(collection: Choice, hot: u64) -> u64 {
    let mut rig = Rig::new(FlashProfile { collection, fill: 90, programs: 16, ..profile() });
    let mut prng = Prng::new(2);
    let units = rig.flash.map.units();
    let hot_units = units * (100 - hot) / 100;
    let mut write = |_| {
        let of_hot = prng.below(100) < hot;
        let within = if of_hot { 0..hot_units } else { hot_units..units };
        at(Op::Write, within.start + prng.below(within.end - within.start))
    };
    rig.run(32, 400_000, &mut write);
    rig.flash.forget();
    rig.run(32, 200_000, &mut write);
    rig.count("write_amplification_percent")
}

fn amplifications(hot: u64) -> [u64; 2] {
    [Choice::Greedy, Choice::CostBenefit].map(|by| amplification(by, hot))
}

/// M. Rosenblum and J. Ousterhout, "The Design and Implementation of a Log-Structured File System",
/// TOCS 10(1), 1992: greedy cleaning costs more with locality than without, and cost-benefit
/// cleaning up to half of greedy's. A. Kawaguchi, S. Nishioka and H. Motoda, "A Flash-Memory Based
/// File System", USENIX 1995, have the same in flash, where cleaned data has segments of its own.
#[test]
fn cost_benefit_collection_moves_less_than_greedy_where_writes_are_skewed() {
    let even = amplifications(50);
    let skewed = amplifications(80);
    let more = amplifications(90);
    println!("greedy and cost-benefit: uniform {even:?}, 80 to 20 {skewed:?}, 90 to 10 {more:?} %");
    assert!(even[0].abs_diff(even[1]) * 100 <= even[0] * 5);
    assert!(even[0] < skewed[0] && skewed[0] < more[0]);
    assert!(skewed[1] * 100 < skewed[0] * 90 && more[1] * 100 < more[0] * 75);
}

/// Blocks of four units. Their ages are 4, 3, 2 and 1, so age (1 - u) / u is 4/3, 3, 2 and 1.
fn order(take: fn(&mut Closed, usize) -> Option<u32>, valid: [u32; 4]) -> [u32; 4] {
    let mut closed = Closed::new(1, 4, 4);
    (0..4).zip(valid).for_each(|(block, valid)| closed.insert(0, block, valid));
    [(); 4].map(|()| take(&mut closed, 0).expect("a block"))
}

#[test]
fn cost_benefit_weighs_the_age_of_a_block_against_its_valid_units() {
    assert_eq!(order(Closed::take_best, [3, 2, 2, 2]), [1, 2, 0, 3]);
    assert_eq!(order(Closed::take_least, [3, 2, 2, 2]), [3, 2, 1, 0]);
    // A block without valid units costs nothing, and a full one has no benefit.
    assert_eq!(order(Closed::take_best, [4, 1, 1, 0]), [3, 1, 2, 0]);
}

#[test]
fn random_writes_at_steady_state_slow_down_as_the_fill_rises() {
    let low = steady(50);
    let high = steady(100);
    println!("50 %: {} ns, {:.2}; 100 %: {} ns, {:.2}", low.0, low.1, high.0, high.1);
    assert!(high.0 > 2 * low.0 && high.1 > low.1);
}

/// Writes 32 MiB, as much as the cache of single-level cells holds, and then as much again.
/// Returns the times of both in nanoseconds.
fn write_twice(slc_bypass: bool) -> (u64, u64, Rig) {
    let profile = FlashProfile { fill: 10, slc: 32 << 20, buffer: 1 << 18, ..profile() };
    let mut rig = Rig::new(FlashProfile { slc_bypass, ..profile });
    rig.run(8, 8192, |nth| at(Op::Write, nth.into()));
    rig.run(1, 1, |_| FLUSH);
    let fast = rig.now.as_ns();
    assert_eq!(rig.count("slc_programs"), 2048);
    rig.run(8, 8192, |nth| at(Op::Write, (8192 + nth).into()));
    rig.run(1, 1, |_| FLUSH);
    (fast, rig.now.as_ns() - fast, rig)
}

/// Whether `time` is that of 512 rows, within a tenth.
fn are_rows(time: u64, row: u64) -> bool {
    time.abs_diff(512 * row) < 512 * row / 10
}

fn has_work(rig: &Rig, kind: Work) -> bool {
    let load = rig.flash.load();
    let mut work = load.parts.iter().flat_map(|parts| parts.work.iter());
    work.any(|(work, time)| work == kind && time > Duration::ZERO)
}

#[test]
fn the_write_rate_drops_once_the_cache_of_single_level_cells_is_full_and_idle_time_frees_it() {
    // Four dies program rows of four units: in the cache 220 us each, past it 720 us, and with
    // folding 60 us and 20 us more for the read and as much as a program past the cache.
    let (fast, past, mut rig) = write_twice(true);
    println!("first 32 MiB: {fast} ns, next past the cache: {past} ns");
    assert!(are_rows(fast, 220_000) && are_rows(past, 720_000));
    assert_eq!((rig.count("slc_programs"), rig.count("units_folded")), (2048, 0));
    // A second later the host has been idle for long enough.
    rig.wait(rig.now.as_ns() + 1_000_000_000);
    assert_eq!((rig.count("units_folded"), rig.count("units_written")), (8192, 16_384));
    assert_eq!(rig.count("write_amplification_percent"), 150);
    assert!(
        has_work(&rig, Work::IdleFolding) && !has_work(&rig, Work::Folding),
        "{:?}",
        rig.flash.load()
    );
    assert_eq!(rig.flash.load().written.unwrap().folded, 0, "no write needed the room");

    let (fast, folded, rig) = write_twice(false);
    println!("first 32 MiB: {fast} ns, next with folding: {folded} ns");
    assert!(are_rows(folded, 220_000 + 60_000 + 20_000 + 720_000));
    assert_eq!((rig.count("slc_programs"), rig.count("units_folded")), (4096, 8192));
    assert!(
        has_work(&rig, Work::Folding) && !has_work(&rig, Work::IdleFolding),
        "{:?}",
        rig.flash.load()
    );
    assert_eq!(rig.flash.load().written.unwrap().folded, 8192);
}

/// The 99.9th percentile of reads, and their waits, in nanoseconds.
fn tail_of_reads(writes: bool) -> (u64, u64) {
    let mut rig = Rig::new(FlashProfile { overwritten: 100, ..profile() });
    let mut prng = Prng::new(3);
    let units = rig.flash.map.units();
    let times = rig.run(2, 20_000, |nth| {
        let op = if writes && nth % 4 == 0 { Op::Write } else { Op::Read };
        at(op, prng.below(units))
    });
    let reads = times.into_iter().filter(|(op, _)| *op == Op::Read);
    let mut reads: Vec<_> = reads.map(|(_, time)| time.as_ns()).collect();
    reads.sort_unstable();
    (reads[reads.len() * 999 / 1000], rig.count("read_wait_ns"))
}

#[test]
fn a_tail_of_reads_rises_by_an_order_of_magnitude_beside_writes() {
    let alone = tail_of_reads(false);
    let beside = tail_of_reads(true);
    println!("p99.9 alone {} ns, beside writes {} ns", alone.0, beside.0);
    assert!(beside.0 > 10 * alone.0 && beside.1 > 10 * alone.1);
}

fn count_of(times: &[(Op, Duration)], us: u64) -> usize {
    times.iter().filter(|(_, time)| *time == Duration::from_us(us)).count()
}

/// The pages of a cell with several bits take different times.
#[test]
fn reads_take_the_times_of_their_spread_and_no_longer_on_average() {
    // The faster half takes half of the time, the slower one half as much more.
    let halves = [(0, 50), (50_000_000, 50), (50_000_001, 150), (100_000_000, 150)];
    let read_spread = Spread::new(&halves);
    assert!(read_spread.is_some());
    let mut rig = Rig::new(FlashProfile { read_spread, ..profile() });
    let mut prng = Prng::new(3);
    let units = rig.flash.map.units();
    let times = rig.run(1, 10_000, |_| at(Op::Read, prng.below(units)));
    // 5 us more on the channel.
    let fast = count_of(&times, 30 + 5);
    let slow = count_of(&times, 90 + 5);
    // A few find their row in the register.
    assert_eq!((fast + slow) as u64 + rig.count("reads_joined"), 10_000);
    assert!((4800..5200).contains(&fast), "{fast} fast reads, {slow} slow ones");
}

/// [real-erase]
#[test]
fn an_erase_takes_its_whole_time_once_for_the_blocks_of_the_map_that_a_real_one_is() {
    let erases = |erase_programs| {
        let mut rig = Rig::new(FlashProfile { overwritten: 100, erase_programs, ..profile() });
        let mut prng = Prng::new(2);
        let units = rig.flash.map.units();
        rig.run(32, 50_000, |_| at(Op::Write, prng.below(units)));
        let load = rig.flash.load();
        let work = load.parts.iter().flat_map(|parts| parts.work.iter());
        let erases = work.filter(|(work, _)| *work == Work::Erases);
        let time: u64 = erases.map(|(_, time)| time.as_ns()).sum();
        (rig.count("erases"), time)
    };
    // Blocks of 64 programs, and an erase of 3.5 ms. One of each of the four dies may be under way.
    for (programs, real) in [(None, 64), (Some(48), 48), (Some(96), 96), (Some(256), 256)] {
        let (count, time) = erases(programs);
        println!("{programs:?}: {count} blocks, {time} ns");
        assert!(count > 200 && time % 3_500_000 == 0);
        assert!((time / 3_500_000).abs_diff(count * 64 / real) <= 4);
    }
}

/// Returns when reads of one die that begin together, 100 us after a write and its flush, end, and
/// when the flush does.
fn beside_a_program(reads: u32, profile: FlashProfile) -> (Vec<u64>, u64) {
    let mut rig = Rig::new(FlashProfile { channels: 1, dies: 1, ..profile });
    rig.begin(0, at(Op::Write, 0));
    rig.begin(1, FLUSH);
    rig.wait(100_000);
    assert_eq!(rig.flash.next_ended(), Some(CommandId(0)));
    (0..reads).for_each(|nth| rig.begin(2 + nth, at(Op::Read, 64 * u64::from(nth + 1))));
    let mut ends = vec![0; reads as usize + 1];
    while rig.step(u64::MAX) {
        while let Some(CommandId(id)) = rig.flash.next_ended() {
            ends[id as usize - 1] = rig.now.as_ns();
        }
    }
    let flush = ends.remove(0);
    (ends, flush)
}

#[test]
fn writes_slow_down_evenly_when_the_drive_must_collect() {
    let mut rig = Rig::new(FlashProfile { overwritten: 400, ..profile() });
    let mut prng = Prng::new(2);
    let units = rig.flash.map.units();
    rig.run(4, 50_000, |_| at(Op::Write, prng.below(units)));
    let before = rig.now.as_ns();
    let times = rig.run(4, 50_000, |_| at(Op::Write, prng.below(units)));
    let mean = (rig.now.as_ns() - before) / 50_000 * 4;
    let longest = times.iter().map(|(_, time)| time.as_ns()).max().expect("writes");
    // Two thirds of a block of 64 rows are valid, so its collection takes 64 reads and 43 programs
    // of a die.
    let block = 64 * 60_000 + 43 * 720_000;
    println!("mean {mean} ns, longest {longest} ns; a block takes {block} ns");
    assert!(longest < block / 4);
}

#[test]
fn a_read_suspends_a_program_which_ends_later_by_as_much() {
    let suspend = Some(Duration::from_us(20));
    // 20 us to give way, 60 us for the page, 5 us on the channel. The program ended at 5 + 700 us.
    let (reads, flush) = beside_a_program(1, FlashProfile { suspend, ..profile() });
    assert_eq!((reads, flush), (vec![185_000], 705_000 + 80_000));
    let (reads, flush) = beside_a_program(1, profile());
    assert_eq!((reads, flush), (vec![705_000 + 65_000], 705_000));
}

#[test]
fn a_program_is_suspended_by_a_bounded_number_of_reads() {
    let suspend = Some(Duration::from_us(20));
    let (reads, flush) = beside_a_program(4, FlashProfile { suspend, passes: 3, ..profile() });
    // The fourth read waits for the end of the program.
    assert_eq!(flush, 705_000 + 20_000 + 3 * 60_000);
    assert_eq!(reads, [185_000, 245_000, 305_000, flush + 65_000]);
}

#[test]
fn a_busy_die_keeps_no_channel_from_another() {
    // Units 0 and 4 lie on two dies of a channel. The first is busy with a program of a flushed
    // write.
    let mut rig = Rig::new(FlashProfile { channels: 1, ..profile() });
    rig.begin(0, at(Op::Write, 1000));
    rig.begin(1, FLUSH);
    rig.wait(100_000);
    assert_eq!(rig.flash.next_ended(), Some(CommandId(0)));
    rig.begin(2, at(Op::Read, 0));
    rig.begin(3, at(Op::Read, 4));
    let mut ends = Vec::new();
    while rig.step(u64::MAX) {
        ends.extend(rig.flash.next_ended().map(|id| (id.0, rig.now.as_ns())));
    }
    assert_eq!(ends, [(3, 165_000), (1, 705_000), (2, 770_000)]);
}

/// Half of the reads succeed at once, and half after two more.
const TWO_FOR_HALF: [(u32, u32); 4] = [(0, 0), (50_000_000, 0), (50_000_001, 2), (100_000_000, 2)];

#[test]
fn a_page_that_cannot_be_corrected_is_read_and_carried_again() {
    let retries = Spread::new(&TWO_FOR_HALF);
    let mut rig = Rig::new(FlashProfile { retries, ..profile() });
    let units = rig.flash.map.units();
    let mut prng = Prng::new(3);
    let times = rig.run(1, 10_000, |_| at(Op::Read, prng.below(units)));
    // 60 us for the page and 5 us on the channel, each time.
    let slow = times.iter().filter(|(_, time)| time.as_ns() == 3 * 65_000).count();
    let fast = times.iter().filter(|(_, time)| time.as_ns() == 65_000).count();
    // A few find their row in the register.
    assert_eq!((fast + slow) as u64 + rig.count("reads_joined"), 10_000);
    assert!(slow.abs_diff(5_000) < 200, "{slow} of 10000 reads were retried");
    assert_eq!(
        (rig.count("read_retries"), rig.count("pages_read")),
        (2 * slow as u64, (fast + 3 * slow) as u64)
    );
}

#[test]
fn a_die_reads_a_page_again_before_it_begins_with_another() {
    let retries = Spread::new(&[(0, 1), (100_000_000, 1)]);
    let mut rig = Rig::new(FlashProfile { channels: 1, dies: 1, retries, ..profile() });
    (0..3).for_each(|nth| rig.begin(nth, at(Op::Read, 4 * u64::from(nth))));
    let mut ends = Vec::new();
    while rig.step(u64::MAX) {
        ends.extend(rig.flash.next_ended().map(|id| (id.0, rig.now.as_ns() / 1000)));
    }
    // The die reads the first page from 0 us, the second from 60, the first again from 120, the
    // second again from 180, the third from 240, and that again from 305, when it has been carried.
    // Each takes 60 us, and 5 us on the channel.
    assert_eq!(ends, [(0, 185), (1, 245), (2, 370)]);
}

/// The time of a read of `unit`.
fn read_ns(rig: &mut Rig, unit: u64) -> u64 {
    rig.run(1, 1, |_| at(Op::Read, unit))[0].1.as_ns()
}

#[test]
fn only_data_from_before_the_run_is_read_again() {
    let retries = Spread::new(&[(0, 3), (100_000_000, 3)]);
    let mut rig = Rig::new(FlashProfile { retries, ..profile() });
    assert_eq!(read_ns(&mut rig, 7), 4 * 65_000);
    rig.run(1, 2, |nth| if nth == 0 { at(Op::Write, 7) } else { FLUSH });
    assert_eq!((read_ns(&mut rig, 7), rig.count("read_retries")), (65_000, 3));
}

fn median_and_tail(retries: Option<Spread>) -> [u64; 2] {
    let mut rig = Rig::new(FlashProfile { retries, ..profile() });
    let mut prng = Prng::new(3);
    let units = rig.flash.map.units();
    let times = rig.run(4, 50_000, |_| at(Op::Read, prng.below(units)));
    let mut times: Vec<_> = times.into_iter().map(|(_, time)| time.as_ns()).collect();
    times.sort_unstable();
    [times.len() / 2, times.len() * 995 / 1000].map(|at| times[at])
}

/// A page in a hundred is read five times more.
#[test]
fn read_retries_cause_a_tail_that_reads_of_other_data_share() {
    let aged =
        median_and_tail(Spread::new(&[(0, 0), (99_000_000, 0), (99_000_001, 5), (100_000_000, 5)]));
    let fresh = median_and_tail(None);
    println!("p50 and p99.5: {aged:?} ns, without retries {fresh:?} ns");
    assert!(aged[0] <= fresh[0] * 11 / 10 && aged[1] >= fresh[1] + 4 * 65_000);
}

fn full_after(profile: FlashProfile, from: u64, discarded: u64) -> u64 {
    let units = profile.simulated / UNIT_BYTES;
    let sectors = 10 * units * UNIT_SECTORS;
    let mut flash = Flash::new(profile, sectors, Prng::new(1));
    flash.discard(from..from + discarded);
    (0..units).filter(|unit| flash.map.row_of(flash.entry(*unit)).is_some()).count() as u64
}

#[test]
fn a_discard_empties_its_share_of_the_map() {
    let profile = FlashProfile { fill: 100, ..profile() };
    let units = profile.simulated / UNIT_BYTES;
    assert_eq!(full_after(profile, 0, 10 * units), 0);
    // A tenth of the drive, in one piece or across the end of the simulated span.
    for (from, discarded) in [(0, units), (units / 2, units), (7 * units, units)] {
        let emptied = units - full_after(profile, from, discarded);
        assert!(emptied.abs_diff(units / 10) < units / 100, "{emptied} of {units} units");
    }
    let halves = full_after(profile, 0, units / 2) + full_after(profile, units / 2, units / 2);
    assert_eq!(halves, units + full_after(profile, 0, units));
}

const fn discard(sectors: u32) -> Access {
    Access { op: Op::Discard, start: 0, sectors, fua: false, queue: HctxId(0) }
}

#[test]
fn a_discard_takes_a_time_by_its_length_and_the_next_one_waits() {
    // 60 us, and 5 ms for each GiB.
    let mut rig = Rig::new(profile());
    assert_eq!(rig.run(1, 1, |_| discard(8))[0].1.as_ns(), 60_000 + 5_000_000 / (1 << 18));
    rig.now = Instant::ZERO + Duration::from_secs(1);
    let start = rig.now.as_ns();
    (0..2).for_each(|id| rig.begin(id, discard(1 << 18)));
    rig.begin(2, at(Op::Write, 7));
    let mut ends = Vec::new();
    while rig.step(start + 10_000_000) {
        ends.extend(rig.flash.next_ended().map(|id| (id.0, rig.now.as_ns() - start)));
    }
    // An eighth of a GiB each. Other commands do not wait.
    assert_eq!(ends, [(2, 5_000), (0, 685_000), (1, 2 * 685_000)]);
}

/// A run of 18 ms once took 20 s, because each discard of the drive looked at all of its map.
#[test]
fn a_discard_looks_only_at_units_that_have_a_place() {
    let looked = RefCell::new(Vec::new());
    let mut prng = Prng::new(7);
    let mut rig = Rig::new(FlashProfile { fill: 99, ..profile() });
    let units = u32::try_from(rig.flash.map.units()).expect("a small map");
    // Looks at `range` and discards every `nth` unit of it.
    let discard = |flash: &mut Flash, range: Range<u32>, nth: u32| {
        let placed: Vec<_> =
            range.clone().filter(|unit| flash.map.row_of(*unit).is_some()).collect();
        let discarded = |unit: u32| {
            looked.borrow_mut().push(unit);
            unit.is_multiple_of(nth)
        };
        flash.map.discard(range.clone(), discarded);
        assert!(looked.take() == placed, "{range:?}");
        let kept = placed.iter().filter(|unit| **unit % nth != 0).count();
        assert_eq!(range.filter(|unit| flash.map.row_of(*unit).is_some()).count(), kept);
    };
    for _ in 0..50 {
        rig.run(8, 200, |_| at(Op::Write, prng.below(units.into())));
        let ends = [(); 2].map(|()| u32::try_from(prng.below(units.into())).expect("a unit"));
        discard(&mut rig.flash, ends[0].min(ends[1])..ends[0].max(ends[1]), 3);
        discard(&mut rig.flash, ends[0]..ends[0], 1);
        discard(&mut rig.flash, ends[0]..ends[0] + 1, 1);
    }
    discard(&mut rig.flash, 0..units, 1);
    discard(&mut rig.flash, 0..units, 1);
}

#[test]
fn a_map_that_does_not_fit_costs_a_read_of_flash() {
    // The memory has the places of 8 pages, of 4 MiB each.
    let mut rig = Rig::new(FlashProfile { map_memory: Some(32 << 10), ..profile() });
    assert_eq!(
        (read_ns(&mut rig, 0), read_ns(&mut rig, 1023), read_ns(&mut rig, 1024)),
        (130_000, 65_000, 130_000)
    );
    (2..8).for_each(|page| assert_eq!(read_ns(&mut rig, page * 1024), 130_000));
    assert_eq!(read_ns(&mut rig, 0), 65_000);
    // The ninth page replaces the one that was not used for the longest time, which is the second.
    assert_eq!(
        (read_ns(&mut rig, 8 * 1024), read_ns(&mut rig, 0), read_ns(&mut rig, 1024)),
        (130_000, 65_000, 130_000)
    );
    assert_eq!(rig.count("map_pages_read"), 10);
}

#[test]
fn a_long_read_needs_all_pages_of_the_map_for_its_data() {
    // 16 MiB from the middle of a page of the map on, and 4 MiB in each page.
    let mut rig = Rig::new(FlashProfile { map_memory: Some(32 << 10), ..profile() });
    let long = Access {
        op: Op::Read,
        start: 512 * UNIT_SECTORS,
        sectors: 1 << 15,
        fua: false,
        queue: HctxId(0),
    };
    rig.run(1, 1, |_| long);
    assert_eq!(rig.count("map_pages_read"), 5);
    rig.run(1, 1, |_| long);
    assert_eq!(rig.count("map_pages_read"), 5);
}

#[test]
fn a_write_reads_the_part_of_the_map_that_it_changes() {
    let map_memory = Some(32 << 10);
    let mut rig = Rig::new(FlashProfile { channels: 1, dies: 1, map_memory, ..profile() });
    let mut times = |unit| {
        let write = |nth| if nth == 0 { at(Op::Write, unit) } else { FLUSH };
        let times = rig.run(1, 2, write);
        (times[0].1.as_ns(), times[1].1.as_ns(), rig.count("map_pages_read"))
    };
    // The write does not wait for the page of the map. Its program does: the die reads for 60 us,
    // the channel carries both for 5 us each, and the flush began after 5 us.
    assert_eq!(times(0), (5_000, 60_000 + 10_000 + 700_000 - 5_000, 1));
    // The next write of that page of the map finds it in memory, and one of another page does not.
    assert_eq!(times(1), (5_000, 705_000, 1));
    assert_eq!(times(1024).2, 2);
}

/// [bounded-map-reads]: with one read for each program, pages of the map come more slowly than
/// programs end.
#[test]
fn writes_wait_for_the_map_when_its_pages_come_slowly() {
    let map_memory = Some(8 << 10);
    let profile = FlashProfile { map_memory, passes: 1, channels: 1, dies: 1, ..profile() };
    let mut rig = Rig::new(profile);
    let mut prng = Prng::new(5);
    let units = rig.flash.map.units();
    rig.run(64, 4000, |_| at(Op::Write, prng.below(units)));
    assert!(
        rig.count("map_pages_read") > 1000 && rig.flash.replaced <= 256,
        "{}",
        rig.flash.replaced
    );
}

/// Two entries of one unit in the buffer would count as data of two.
#[test]
fn data_that_is_discarded_in_the_buffer_is_there_once() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..profile() });
    for (nth, op) in [Op::Write, Op::Discard, Op::Write].into_iter().enumerate() {
        rig.begin(u32::try_from(nth).expect("three"), at(op, 0));
    }
    assert_eq!((rig.count("units_written"), rig.count("units_combined")), (2, 1));
}

fn flush_ns(protected: bool) -> u64 {
    let mut rig = Rig::new(FlashProfile { protected, fill: 10, ..profile() });
    let next = |nth| if nth == 0 { at(Op::Write, 0) } else { FLUSH };
    rig.run(1, 2, next)[1].1.as_ns()
}

#[test]
fn a_flush_ends_when_the_data_is_in_flash_unless_the_buffer_survives_a_loss_of_power() {
    assert_eq!(flush_ns(false), 705_000);
    assert_eq!(flush_ns(true), 0);
}

#[test]
fn data_is_read_from_the_buffer_until_its_program_has_ended() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..profile() });
    rig.run(1, 4, |nth| at(Op::Write, nth.into()));
    assert_eq!(rig.run(1, 1, |_| at(Op::Read, 2))[0].1.as_ns(), 5_000);
    rig.run(1, 1, |_| FLUSH);
    assert_eq!(rig.run(1, 1, |_| at(Op::Read, 2))[0].1.as_ns(), 65_000);
    assert_eq!(rig.count("pages_read"), 1);
}

/// SNIA defines the amplification as what the flash wrote for what the host wrote. A row has four
/// units: three programs of a unit each, and one of a whole row, write 16 units for seven of the
/// host. [row-at-once]
#[test]
fn the_places_that_a_flush_leaves_empty_are_amplification() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..profile() });
    rig.run(1, 6, |nth| if nth % 2 == 0 { at(Op::Write, u64::from(nth)) } else { FLUSH });
    assert_eq!((rig.count("units_written"), rig.count("units_padded")), (3, 9));
    assert_eq!(rig.count("write_amplification_percent"), 400);
    rig.run(1, 5, |nth| if nth < 4 { at(Op::Write, 8 + u64::from(nth)) } else { FLUSH });
    assert_eq!((rig.count("programs"), rig.count("units_padded")), (4, 9));
    assert_eq!(rig.count("write_amplification_percent"), 16 * 100 / 7);
}

/// [row-at-once]
#[test]
fn a_flush_leaves_the_rest_of_a_row_empty() {
    let profile = FlashProfile { channels: 1, dies: 1, fill: 10, ..profile() };
    let mut rig = Rig::new(profile);
    rig.run(1, 4, |nth| if nth % 2 == 0 { at(Op::Write, u64::from(nth) / 2) } else { FLUSH });
    assert_ne!(rig.flash.map.row_of(0), rig.flash.map.row_of(1));
    rig.run(1, 2, |nth| if nth == 0 { Access { sectors: 16, ..at(Op::Write, 2) } } else { FLUSH });
    assert_eq!(rig.flash.map.row_of(2), rig.flash.map.row_of(3));
    assert_eq!((rig.count("units_written"), rig.count("programs")), (4, 3));
}

fn put(map: &mut Map, units: [u32; 4]) {
    units.iter().for_each(|unit| assert!(!map.buffer(*unit)));
    map.program(0, &units.map(Source::buffer));
}

#[test]
fn collection_frees_space_from_blocks_with_one_invalid_unit_each() {
    // 128 of 130 blocks are full, and the first row of another one.
    let profile = FlashProfile { channels: 1, dies: 1, spare: 2, ..profile() };
    let mut map = Map::new(&profile);
    let mut collection = Collection::default();
    (0..64 * 128).for_each(|row| put(&mut map, [0, 1, 2, 3].map(|nth| 4 * row + nth)));
    (0..90).for_each(|block| map.discard(256 * block..256 * block + 1, |_| true));
    assert!(!map.is_short(0));
    put(&mut map, [0, 1, 2, 3].map(|block| 256 * block));
    let mut moved = 0;
    let mut erased = 0;
    while erased == 0 {
        match collection.next_step(&mut map, 0).expect("a die that is short should collect") {
            Step::Read(_) => collection.moved(),
            Step::Program(units) => {
                assert_eq!(units.len(), 4);
                moved += map.program_moved(0, &units).1;
            }
            Step::Erase(block) => {
                erased += 1;
                map.erase(0, block);
            }
        }
    }
    // The 255 units of the first block fill a row with one of the second.
    assert_eq!(moved, 256);
}

/// [last-block-for-collection]
#[test]
fn writes_to_a_few_units_never_fill_a_die() {
    let mut rig = Rig::new(profile());
    let next = |nth: u32| at(Op::Write, u64::from(nth % 512) / 4 * 16 + u64::from(nth % 4));
    rig.run(8, 60_000, next);
    rig.run(1, 1, |_| FLUSH);
    assert!(rig.count("erases") > 100);
    // The whole drive is full, and stays so.
    let full = (0..32_768).filter(|unit| rig.flash.map.row_of(*unit).is_some()).count();
    assert_eq!(full, 32_768);
}

/// The buffer has work for longer than the idle time after the host's last command, and the cache
/// is folded only then.
#[test]
fn a_drive_that_works_off_its_buffer_is_not_idle() {
    let mut rig = Rig::new(FlashProfile { buffer: 64 << 20, slc: 1 << 30, ..profile() });
    for id in 0..256 {
        let start = u64::from(id) * 512;
        rig.begin(id, Access { op: Op::Write, start, sectors: 512, fua: false, queue: HctxId(0) });
    }
    // 4096 programs of 16 KiB on four dies, each of 200 us and 20 us on a channel.
    let done = 4096 / 4 * 220_000;
    rig.wait(done * 9 / 10);
    assert_eq!((rig.flash.counts.folded, rig.flash.buffer.has_program()), (0, true));
    rig.wait(done + 2_000_000_000);
    assert!(rig.flash.counts.folded > 0, "{:?}", rig.flash.counts());
}
