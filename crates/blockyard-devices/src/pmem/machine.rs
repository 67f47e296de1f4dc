//! The cost of an operation to its processor, from its accesses to the memory and to shared words.
//!
//! The machine records the steps of an operation while it is carried out. At the end of the
//! operation the machine lays them one after another from the start of the operation; a step waits
//! while a lock is held or the channels are saturated. An operation makes its changes as if it were
//! alone: others wait for it in virtual time only.
//!
//! # Rules
//!
//! - **[time-counted-once]** Every nanosecond of an operation counts towards exactly one [`Part`].

use super::calendar::{Calendar, Channels};
use super::lines::Lines;
use crate::btt::{BttDesign, Copying, Fences, Words};
use crate::pmem::profile::{CopyProfile, Mapping, PmemProfile};
use blockyard::time::{Duration, Instant};
use blockyard_btt::layout::NFREE;
use blockyard_btt::{ReadTracking, Touch, Word};
use core::ops::Range;

/// A part of the time of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Copying data, and waiting for channels.
    Copy,
    /// Tracking readers: publishing blocks, reading these words, versions.
    Tracking,
    /// Taking lanes and map entries, and waiting for them.
    Locks,
    /// Storing and writing back log entries.
    Log,
    /// Loading, storing and writing back map entries.
    Map,
    /// Fences.
    Fences,
}

impl Part {
    /// All parts, in order.
    pub const ALL: [Self; 6] =
        [Self::Copy, Self::Tracking, Self::Locks, Self::Log, Self::Map, Self::Fences];
}

/// The operations and their times, of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmemReport {
    /// The time of each [`Part`], in their order.
    pub parts: [Duration; Part::ALL.len()],
    /// Operations that read.
    pub reads: u64,
    /// Operations that wrote.
    pub writes: u64,
    /// Fences executed.
    pub fences: u64,
    /// Lines written back, except lines of data.
    pub write_backs: u64,
    /// Scans of the words of all readers.
    pub scans: u64,
    /// Lines of shared words that came from another processor's cache.
    pub transfers: u64,
    /// Time spent waiting for locks that others held; [`Part::Locks`] includes it.
    pub lock_wait: Duration,
    /// Channels to the memory.
    pub channels: u16,
    /// The time for which channels were used, summed over all channels.
    pub channels_used: Duration,
}

/// A step of an operation.
#[derive(Clone, Copy, Debug)]
enum Step {
    Spend { part: Part, ns: u64 },
    Pass { part: Part, work_ps: u64, ns: u64 },
    Hold(usize),
    Leave(usize),
}

/// Bytes of a line.
pub(super) const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// Readers' words per line in Linux's table, which has a word of four bytes for each lane of an
/// arena.
const READERS_IN_LINE: u32 = 16;
/// The largest numbers of words that hold map entries, and of sets of lanes.
const WORDS: usize = NFREE as usize;
/// The numbers of locks and lines: entries, then lanes, then the counter, then readers.
const LANES: usize = WORDS;
const COUNTER: usize = 2 * WORDS;
const ZEROINGS: usize = COUNTER + 1;
const READERS: usize = ZEROINGS + 1;
const LINES: usize = READERS + WORDS;

/// The processors that use the memory.
#[derive(Debug)]
pub(super) struct Machine {
    profile: PmemProfile,
    copy: Copying,
    /// The time to load a word if no cache can hold it; `None`: caches hold lines.
    uncached_word: Option<Duration>,
    fence_each: bool,
    prefetches: bool,
    /// Whether each reader's word has its own line.
    padded: bool,
    lines: Lines,
    locks: Vec<Calendar>,
    channels: Channels,
    now: Now,
    steps: Vec<Step>,
    report: PmemReport,
    /// The time for which channels were used, in picoseconds.
    passed_ps: u64,
}

/// The operation in progress.
#[derive(Debug, Default)]
struct Now {
    cpu: u16,
    reads: bool,
    /// Whether stored words are not durable yet.
    dirty: bool,
    /// The time of the operation so far, without waits.
    elapsed_ns: u64,
    /// Lines that it prefetched, with the instant of each.
    fetched: Vec<(u64, u64)>,
    /// Lines of the memory that the processor has in its cache.
    cached: Vec<u64>,
}

impl Machine {
    /// Returns a machine of `cpus` idle processors, with a disk under the BTT design `btt`, or a
    /// raw disk.
    pub(super) fn new(profile: PmemProfile, btt: Option<&BttDesign>, cpus: u16) -> Self {
        let loads = match btt.map(|btt| btt.words) {
            Some(Words::Copied) => u64::from(profile.loads_of_word),
            Some(Words::Loaded) | None => 1,
        };
        let uncached_word = Duration::from_ns(profile.uncached_load.as_ns() * loads);
        Self {
            profile,
            uncached_word: (profile.mapping == Mapping::WriteCombining).then_some(uncached_word),
            copy: btt.map_or(Copying::AlignedNt, |btt| btt.copy),
            fence_each: btt.is_some_and(|btt| btt.fences == Fences::EachStore),
            prefetches: btt.is_some_and(|btt| btt.prefetch)
                && profile.mapping == Mapping::WriteBack,
            padded: btt.is_some_and(|btt| btt.tracking != ReadTracking::Scan),
            lines: Lines::new(LINES, cpus),
            locks: (0..2 * WORDS).map(|_| Calendar::default()).collect(),
            channels: Channels::new(profile.channels),
            now: Now::default(),
            steps: Vec::new(),
            report: PmemReport { channels: profile.channels, ..PmemReport::default() },
            passed_ps: 0,
        }
    }

    /// Whether each store is durable at once.
    pub(super) const fn fences_each(&self) -> bool {
        self.fence_each
    }

    /// The processor at work.
    pub(super) const fn cpu(&self) -> u16 {
        self.now.cpu
    }

    pub(super) fn report(&self) -> PmemReport {
        let channels_used = Duration::from_ns(self.passed_ps / 1000);
        PmemReport { channels_used, ..self.report }
    }

    /// Starts counting again.
    pub(super) fn forget(&mut self) {
        self.report = PmemReport { channels: self.profile.channels, ..PmemReport::default() };
        self.passed_ps = 0;
    }

    /// Begins an operation of `cpu` that reads or writes.
    pub(super) fn begin(&mut self, cpu: u16, reads: bool) {
        self.steps.clear();
        self.now.fetched.clear();
        self.now.cached.clear();
        (self.now.cpu, self.now.reads) = (cpu, reads);
        (self.now.dirty, self.now.elapsed_ns) = (false, 0);
    }

    /// Ends the operation that began at `from`, and returns its time. No other operation begins
    /// before `now`.
    pub(super) fn end(&mut self, from: Instant, now: Instant) -> Duration {
        debug_assert!(now <= from, "an operation began at {from}, before {now}");
        self.channels.forget_before(now);
        let count = if self.now.reads { &mut self.report.reads } else { &mut self.report.writes };
        *count += 1;
        let counted = self.counted();
        let begun = from.as_ns();
        let mut at = begun;
        let mut held = Vec::new();
        for n in 0..self.steps.len() {
            match self.steps[n] {
                Step::Spend { part, ns } => {
                    at += ns;
                    self.count(part, ns);
                }
                Step::Pass { part, work_ps, ns } => {
                    let passed = self.channels.pass(at, work_ps, ns);
                    self.count(part, passed - at);
                    at = passed;
                }
                Step::Hold(lock) => {
                    self.locks[lock].forget_before(now);
                    let begin = self.locks[lock].fit(at, self.held_for(n, lock));
                    debug_assert!(begin >= at, "lock {lock} was taken before it was requested");
                    self.count(Part::Locks, begin - at);
                    self.report.lock_wait += Duration::from_ns(begin - at);
                    held.push((lock, begin));
                    at = begin;
                }
                Step::Leave(lock) => {
                    let of = held.iter().rposition(|(other, _)| *other == lock);
                    let (_, begin) = held
                        .swap_remove(of.expect("an operation should release a lock that it holds"));
                    self.locks[lock].hold(begin, at);
                }
            }
        }
        assert!(held.is_empty(), "an operation ended while it still held {held:?}");
        let time = Duration::from_ns(at - begun);
        debug_assert_eq!(self.counted(), counted + time, "[time-counted-once]");
        time
    }

    fn counted(&self) -> Duration {
        self.report.parts.iter().fold(Duration::ZERO, |sum, part| sum + *part)
    }

    /// Returns the time for which the operation holds the lock that step `n` takes, without waits.
    fn held_for(&self, n: usize, lock: usize) -> u64 {
        let left = |step: &&Step| !matches!(step, Step::Leave(other) if *other == lock);
        let held = self.steps[n..].iter().take_while(left);
        held.map(|step| match step {
            Step::Spend { ns, .. } | Step::Pass { ns, .. } => *ns,
            Step::Hold(_) | Step::Leave(_) => 0,
        })
        .sum()
    }

    /// Adds time to its part ([time-counted-once]).
    fn count(&mut self, part: Part, ns: u64) {
        self.report.parts[part as usize] += Duration::from_ns(ns);
    }

    fn spend(&mut self, part: Part, time: Duration) {
        let more = time.as_ns();
        self.now.elapsed_ns += more;
        match self.steps.last_mut() {
            Some(Step::Spend { part: last, ns }) if *last == part => *ns += more,
            _ if more > 0 => self.steps.push(Step::Spend { part, ns: more }),
            _ => {}
        }
    }

    /// Moves `bytes` over the channels, at `rate` on each; the processor takes `time`.
    fn pass(&mut self, part: Part, bytes: u64, rate: u64, time: Duration) {
        let ns = time.as_ns();
        self.now.elapsed_ns += ns;
        let whole = u128::from(bytes.next_multiple_of(self.profile.unit));
        let work_ps = u64::try_from(whole * 1_000_000_000_000 / u128::from(rate));
        let work_ps = work_ps.expect("the time of a copy should fit 64 bits of ps");
        self.passed_ps += work_ps;
        self.steps.push(Step::Pass { part, work_ps, ns });
    }

    /// Returns the time for which the processor waits for a line of the memory.
    fn latency(&mut self, line: u64) -> Duration {
        let load = self.profile.load;
        let Some((_, asked)) = self.now.fetched.iter().find(|(of, _)| *of == line) else {
            return load;
        };
        let since = self.now.elapsed_ns - asked;
        Duration::from_ns(load.as_ns().saturating_sub(since))
    }

    /// Copies data at `at` out of the memory.
    pub(super) fn copy_out(&mut self, at: u64, bytes: u64) {
        let first = self.latency(at / LINE);
        self.spend(Part::Copy, first);
        self.pass_data(self.profile.read, bytes);
    }

    /// Copies data into the memory.
    pub(super) fn copy_in(&mut self, bytes: u64) {
        self.pass_data(self.profile.write, bytes);
        self.stored();
    }

    /// Copies data one way, by the method of the design.
    fn pass_data(&mut self, copies: CopyProfile, bytes: u64) {
        let time = for_bytes(copies.page[self.copy as usize], bytes);
        self.pass(Part::Copy, bytes, copies.rate, time);
    }

    /// Loads a word of the BTT from the medium.
    pub(super) fn load(&mut self, part: Part, at: u64) {
        if let Some(time) = self.uncached_word {
            return self.spend(part, time);
        }
        let line = at / LINE;
        if !self.now.cached.contains(&line) {
            self.now.cached.push(line);
            let latency = self.latency(line);
            self.spend(part, latency);
        }
    }

    /// Writes words of the BTT back to the medium.
    pub(super) fn write_back(&mut self, part: Part, bytes: Range<u64>) {
        debug_assert!(!bytes.is_empty(), "nothing to write back");
        let lines = bytes.end.div_ceil(LINE) - bytes.start / LINE;
        for _ in 0..lines {
            self.pass(part, LINE, self.profile.write.rate, self.profile.write_back);
        }
        self.report.write_backs += lines;
        self.stored();
    }

    /// Notes a store to the medium.
    fn stored(&mut self) {
        self.now.dirty = true;
        if self.fence_each {
            self.wait();
        }
    }

    /// Fences, unless each store has its own fence.
    pub(super) fn fence(&mut self) {
        if !self.fence_each {
            self.wait();
        }
    }

    fn wait(&mut self) {
        let drain = if self.now.dirty { self.profile.drain } else { Duration::ZERO };
        self.now.dirty = false;
        self.report.fences += 1;
        self.spend(Part::Fences, self.profile.fence + drain);
    }

    /// Prefetches a line.
    pub(super) fn prefetch(&mut self, at: u64) {
        if self.prefetches {
            self.now.fetched.push((at / LINE, self.now.elapsed_ns));
        }
    }

    /// Charges for an access to shared words.
    pub(super) fn touched(&mut self, touch: Touch) {
        match touch {
            Touch::Loaded(word) => self.look(word),
            Touch::Stored(word) => {
                self.change(word);
                self.spend(self.part_of(word), self.profile.atomic);
            }
            Touch::Locked(word) => {
                self.change(word);
                self.spend(Part::Locks, self.profile.atomic);
                self.steps.push(Step::Hold(lock_of(word)));
            }
            Touch::Unlocked(word) => {
                self.change(word);
                self.steps.push(Step::Leave(lock_of(word)));
            }
            Touch::ScannedReaders(words) => self.look_through(words),
        }
    }

    fn look_through(&mut self, words: u32) {
        self.report.scans += 1;
        let (of_all, lines) = if self.padded {
            (self.profile.look_through_padded, words)
        } else {
            (self.profile.look_through, words.div_ceil(READERS_IN_LINE))
        };
        let time = of_all.as_ns() * u64::from(words) / u64::from(NFREE);
        self.spend(Part::Tracking, Duration::from_ns(time));
        let lines = READERS..READERS + lines as usize;
        let cpu = self.now.cpu;
        let fetched = lines.filter(|line| self.lines.look(cpu, *line)).count() as u64;
        self.transferred(Part::Tracking, fetched);
    }

    fn look(&mut self, word: Word) {
        let moved = self.lines.look(self.now.cpu, self.line_of(word));
        self.transferred(self.part_of(word), u64::from(moved));
    }

    fn change(&mut self, word: Word) {
        let moved = self.lines.change(self.now.cpu, self.line_of(word));
        self.transferred(self.part_of(word), u64::from(moved));
    }

    fn transferred(&mut self, part: Part, lines: u64) {
        self.report.transfers += lines;
        self.spend(part, Duration::from_ns(self.profile.line_transfer.as_ns() * lines));
    }

    /// Returns the part of an access to `word`. Readers read versions to detect writers; writers
    /// take versions as locks.
    const fn part_of(&self, word: Word) -> Part {
        match word {
            Word::Reader(_) => Part::Tracking,
            Word::Entries(_) if self.now.reads => Part::Tracking,
            Word::Entries(_) | Word::Lanes(_) | Word::Counter | Word::Zeroings => Part::Locks,
        }
    }

    const fn line_of(&self, word: Word) -> usize {
        match word {
            Word::Entries(_) | Word::Lanes(_) => lock_of(word),
            Word::Counter => COUNTER,
            Word::Zeroings => ZEROINGS,
            Word::Reader(place) if self.padded => READERS + place as usize,
            Word::Reader(place) => READERS + (place / READERS_IN_LINE) as usize,
        }
    }
}

const fn lock_of(word: Word) -> usize {
    match word {
        Word::Entries(n) => n as usize,
        Word::Lanes(n) => LANES + n as usize,
        Word::Counter | Word::Zeroings | Word::Reader(_) => panic!("this word is no lock"),
    }
}

/// Returns the time for `bytes` if 4 KiB take `page`.
fn for_bytes(page: Duration, bytes: u64) -> Duration {
    Duration::from_ns((page.as_ns() * bytes).div_ceil(PAGE))
}
