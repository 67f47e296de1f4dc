//! The offset of the next I/O in a file.

use crate::job::{Distribution, FileRange, Job, Op, PerOp, Sequencer, Strides, Units, Visits};

use super::distribution::Sampler;
use super::permutation::Permutation;
use super::prng::Prng;
use super::random_map::RandomMap;

/// The offsets in the region of one file.
#[derive(Clone, Debug)]
pub(super) struct FileCursor {
    range: FileRange,
    /// The next sequential offset of each kind of I/O, from the start of the region.
    follow: PerOp<u64>,
    /// The signed gap after an I/O. An offset before the region counts from the region's end.
    skip_bytes: i64,
    random: Option<Random>,
    zone: Option<Zone>,
}

/// The zone of a sequential pass over zones with gaps between them (`zonemode=strided`).
#[derive(Clone, Debug)]
struct Zone {
    /// Bytes of I/O in a zone, and the distance between two zones.
    zone_bytes: u64,
    stride_bytes: u64,
    /// The start of the current zone, and the bytes of I/O in it so far.
    start: u64,
    done: u64,
}

impl Zone {
    fn of(strides: &Strides) -> Option<Self> {
        let Strides { on, zone_bytes, range_bytes, gap_bytes } = *strides;
        let stride_bytes = zone_bytes.max(range_bytes).saturating_add(gap_bytes);
        on.then_some(Self { zone_bytes, stride_bytes, start: 0, done: 0 })
    }

    /// Returns the start of the next zone if the current one has had its I/O. Counts an I/O of `len_bytes`.
    fn moves_on(&mut self, len_bytes: u32, region_bytes: u64) -> Option<u64> {
        let moves = self.done >= self.zone_bytes;
        if moves {
            let next = self.start.saturating_add(self.stride_bytes);
            self.start = if next < region_bytes { next } else { 0 };
            self.done = 0;
        }
        self.done += u64::from(len_bytes);
        moves.then_some(self.start)
    }
}

/// Random offsets.
#[derive(Clone, Debug)]
struct Random {
    prng: Prng,
    /// The unit of positions in bytes; block numbers are below `blocks`.
    unit_bytes: u64,
    blocks: u64,
    choice: Choice,
    align_bytes: PerOp<u64>,
    percent: PerOp<u8>,
    ios_per_offset: u32,
    identical: bool,
    /// The I/Os that still follow the last random offset, and that offset.
    ios_left: PerOp<u32>,
    last: PerOp<u64>,
}

#[derive(Clone, Debug)]
enum Choice {
    /// Visits each block once, then again in another order ([each-block-once]).
    Each {
        order: Permutation,
        index: u64,
    },
    /// The same for I/Os of several lengths: one ends before the first block that was visited, as in fio.
    Map(RandomMap),
    Any(Sampler),
    /// Blocks in a fixed order.
    Sequence {
        blocks: Vec<u64>,
        strides: bool,
        index: u64,
    },
}

/// Where the next I/O of a job with random offsets starts.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At this offset, which was drawn now.
    Drawn(u64),
    /// At this offset, which was drawn before. The I/O keeps its length, visited blocks or not.
    Again(u64),
    /// Behind the previous I/O.
    Follow,
}

impl FileCursor {
    pub(super) fn new(job: &Job, range: FileRange, prng: Prng) -> Self {
        let random = job.pattern.random.then(|| Random::new(job, range.len_bytes, prng));
        let (follow, zone) = (PerOp::all(0), Zone::of(&job.strides));
        Self { range, follow, skip_bytes: job.pattern.skip_bytes, random, zone }
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.range.len_bytes
    }

    /// Starts a new pass at the start of the region.
    pub(super) fn start_over(&mut self) {
        self.follow = PerOp::all(0);
        if let Some(zone) = &mut self.zone {
            (zone.start, zone.done) = (0, 0);
        }
        if let Some(random) = &mut self.random {
            random.start_over();
        }
    }

    /// Returns the offset in the file and the length of the next I/O `op`. The I/O is shortened to end
    /// within the region ([io-in-its-region]), but not below `min_bytes`.
    #[inline]
    pub(super) fn next(&mut self, op: Op, len_bytes: u32, min_bytes: u32) -> (u64, u32) {
        let follow = match op {
            Op::Read => &mut self.follow.read,
            Op::Write => &mut self.follow.write,
            Op::Trim => &mut self.follow.trim,
        };
        let place = self.random.as_mut().map_or(Place::Follow, |random| random.next(op));
        let region = self.range.len_bytes;
        if let Some(start) = self.zone.as_mut().and_then(|zone| zone.moves_on(len_bytes, region)) {
            *follow = start;
        }
        let mut at = match place {
            Place::Drawn(at) | Place::Again(at) => at,
            Place::Follow => *follow,
        };
        if region.saturating_sub(at) < min_bytes.into() {
            // At the end, go back to the start; a random offset moves to the last place that fits.
            let last = region.saturating_sub(min_bytes.into());
            at = if matches!(place, Place::Follow) { 0 } else { last };
        }
        debug_assert!(at <= region, "[io-in-its-region]");
        let room = region - at;
        let len_bytes = match u32::try_from(room) {
            Ok(room) if room < len_bytes => (room - room % min_bytes).max(room.min(min_bytes)),
            _ => len_bytes,
        };
        debug_assert!(u64::from(len_bytes) <= room, "[io-in-its-region]");
        let len_bytes = match (&mut self.random, place) {
            (Some(random), Place::Drawn(_)) => random.cut(at, len_bytes),
            _ => len_bytes,
        };
        let end = at.saturating_add(len_bytes.into());
        let next = end.checked_add_signed(self.skip_bytes);
        *follow = next.unwrap_or_else(|| region.saturating_add_signed(self.skip_bytes));
        (self.range.start_bytes + at, len_bytes)
    }
}

impl Random {
    fn new(job: &Job, region_bytes: u64, mut prng: Prng) -> Self {
        let Units { align_bytes, unit_bytes, blocks, visits } = Units::of(job, region_bytes);
        let choice = match (visits, &job.distribution) {
            (_, Distribution::Sequence(order)) => {
                let (blocks, strides) = (order.clone(), job.sequence_strides);
                Choice::Sequence { blocks, strides, index: 0 }
            }
            (Visits::Mapped, _) => Choice::Map(RandomMap::new(blocks)),
            (Visits::Once, _) => {
                Choice::Each { order: Permutation::new(blocks, &mut prng), index: 0 }
            }
            (Visits::Any, _) => {
                Choice::Any(Sampler::new(&job.distribution, blocks, unit_bytes, &mut prng))
            }
        };
        Self {
            prng,
            unit_bytes,
            blocks,
            choice,
            align_bytes,
            percent: job.percentage_random,
            ios_per_offset: job.pattern.ios_per_offset,
            identical: job.sequencer == Sequencer::Identical,
            ios_left: PerOp::all(0),
            last: PerOp::all(0),
        }
    }

    fn start_over(&mut self) {
        self.ios_left = PerOp::all(0);
        match &mut self.choice {
            Choice::Each { order, index } if *index > 0 => {
                *order = Permutation::new(self.blocks, &mut self.prng);
                *index = 0;
            }
            Choice::Map(map) => map.free_all(),
            Choice::Each { .. } | Choice::Any(_) | Choice::Sequence { .. } => {}
        }
    }

    /// Returns the length of an I/O at the offset `at`, which was drawn, and marks its blocks as visited.
    fn cut(&mut self, at: u64, len_bytes: u32) -> u32 {
        let Choice::Map(map) = &mut self.choice else { return len_bytes };
        let taken = map.take(at / self.unit_bytes, u64::from(len_bytes).div_ceil(self.unit_bytes));
        u32::try_from(taken * self.unit_bytes).map_or(len_bytes, |taken| taken.min(len_bytes))
    }

    #[inline]
    fn next(&mut self, op: Op) -> Place {
        let (ios_left, last) = match op {
            Op::Read => (&mut self.ios_left.read, &mut self.last.read),
            Op::Write => (&mut self.ios_left.write, &mut self.last.write),
            Op::Trim => (&mut self.ios_left.trim, &mut self.last.trim),
        };
        if *ios_left > 0 {
            *ios_left -= 1;
            return if self.identical { Place::Again(*last) } else { Place::Follow };
        }
        let percent = *self.percent.of(op);
        if percent < 100 && self.prng.below(100) >= percent.into() {
            return Place::Follow;
        }
        debug_assert!(self.ios_per_offset > 0, "a random offset must be used at least once");
        *ios_left = self.ios_per_offset - 1;
        let block = match &mut self.choice {
            Choice::Any(sampler) => sampler.draw(&mut self.prng),
            Choice::Sequence { blocks, strides, index } => {
                let length = blocks.len() as u64;
                let at =
                    usize::try_from(*index % length).expect("a remainder of a length should fit");
                let turn = if *strides { *index - *index % length } else { 0 };
                *index += 1;
                (turn + blocks[at]) % self.blocks
            }
            Choice::Map(map) => map.draw(&mut self.prng).unwrap_or_else(|| {
                map.free_all();
                map.draw(&mut self.prng).expect("a map with blocks")
            }),
            Choice::Each { order, index } => {
                if *index == self.blocks {
                    *order = Permutation::new(self.blocks, &mut self.prng);
                    *index = 0;
                }
                *index += 1;
                order.at(*index - 1)
            }
        };
        debug_assert!(block < self.blocks, "block {block} of {}", self.blocks);
        let offset = block * self.unit_bytes;
        *last = offset - offset % self.align_bytes.of(op);
        Place::Drawn(*last)
    }
}
