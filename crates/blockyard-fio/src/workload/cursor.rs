//! The offset and length of the next I/O in a file.

use crate::job::{
    Distribution, FileRange, FileService, Job, Op, PerOp, Resolved, Sequencer, Units, Visits,
};

use super::distribution::Sampler;
use super::length::Lengths;
use super::permutation::Permutation;
use super::prng::Prng;
use super::random_map::RandomMap;
use super::zone::Zone;

/// The offsets in one file. They follow fio's rules, which distinguish the end of the region
/// (offset plus size) from the end of the file: an I/O that *begins* at or behind the end of its
/// region, or would reach beyond the end of its file, is not issued, and the file is done.
#[derive(Clone, Debug)]
pub(super) struct FileCursor {
    range: FileRange,
    /// The start of the region, or of the current zone of it. Offsets below count from here.
    base: u64,
    /// The end of the last I/O of each kind in the file.
    last_end: PerOp<u64>,
    /// The start of the last I/O of each kind in the file.
    last_start: PerOp<Option<u64>>,
    /// The signed gap after an I/O.
    skip_bytes: i64,
    /// Whether I/O in order goes back to the start at the end of the region.
    goes_around: bool,
    /// Whether a random I/O that finds all blocks visited begins anew.
    begins_anew: bool,
    /// How often I/O went back to the start, or found all blocks visited, and began anew.
    begun_anew: u64,
    random: Option<Random>,
}

/// Random offsets.
#[derive(Clone, Debug)]
struct Random {
    prng: Prng,
    /// The state of `prng` at the start of each pass, if passes repeat their offsets.
    prng_of_pass: Option<Prng>,
    /// The unit of positions in bytes that are not in a map; block numbers are below `blocks`.
    unit_bytes: u64,
    blocks: u64,
    /// The first blocks of a map, in which an I/O of each kind may begin.
    blocks_of: PerOp<u64>,
    choice: Choice,
    align_bytes: PerOp<u64>,
    /// The last offset of each kind at which the shortest I/O fits.
    last_bytes: PerOp<u64>,
    percent: PerOp<u8>,
    identical: bool,
}

#[derive(Clone, Debug)]
enum Choice {
    /// Visits each block once before any block repeats. An I/O ends before the first block that
    /// was visited, as in fio.
    Map(RandomMap),
    /// The same without memory, for I/Os of one length.
    Each {
        order: Permutation,
        index: u64,
    },
    Any(Sampler),
    /// Blocks in a fixed order.
    Sequence {
        blocks: Vec<u64>,
        strides: bool,
        index: u64,
    },
}

/// Where the next I/O begins, and whether its blocks count as visited.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: u64,
    marks: bool,
}

impl FileCursor {
    /// Returns the offsets of `job` in file `file` of `resolved`.
    pub(super) fn new(job: &Job, resolved: &Resolved, file: usize, prng: Prng) -> Self {
        let range = resolved.files[file];
        let is_endless = resolved.passes == u64::MAX;
        let is_alone = resolved.files.len() == 1;
        let drawn_bytes = Zone::of(job).map_or(range.len_bytes, |zone| zone.range_bytes());
        Self {
            range,
            base: range.start_bytes,
            last_end: PerOp::all(range.start_bytes),
            last_start: PerOp::all(None),
            skip_bytes: job.pattern.skip_bytes,
            goes_around: is_endless && is_alone,
            begins_anew: is_endless || matches!(job.file_service, FileService::Skewed(_)),
            begun_anew: 0,
            random: job.pattern.random.then(|| Random::new(job, drawn_bytes, prng)),
        }
    }

    /// Returns how often the I/Os of the file began anew within a pass.
    pub(super) const fn begun_anew(&self) -> u64 {
        self.begun_anew
    }

    /// Begins a pass at the start of the region.
    pub(super) fn start_pass(&mut self) {
        self.base = self.range.start_bytes;
        if let Some(random) = &mut self.random {
            random.start_pass();
        }
    }

    /// Forgets the earlier I/Os, as fio does when it opens the file.
    pub(super) fn open(&mut self) {
        self.last_end = PerOp::all(self.base);
        self.last_start = PerOp::all(None);
        if let Some(random) = &mut self.random {
            random.forget();
        }
    }

    /// Returns the offset in the file and the length of the next I/O `op`; `None` if the file is
    /// done. If it `moves`, a random offset is drawn.
    #[inline]
    pub(super) fn next(
        &mut self,
        op: Op,
        moves: bool,
        lengths: &Lengths,
        draws: &mut Prng,
        zone: Option<&mut Zone>,
    ) -> Option<(u64, u32)> {
        if let Some(zone) = zone {
            self.enter_zone(op, zone);
        }
        let Start { at, marks } = self.start(op, moves)?;
        if at >= self.range.len_bytes {
            return None;
        }
        let offset = self.base + at;
        let room = self.range.end_bytes().saturating_sub(offset);
        let mut len_bytes = lengths.draw(room, draws)?;
        // [io-in-its-file]
        if offset + u64::from(len_bytes) > self.range.file_bytes {
            return None;
        }
        if marks && let Some(random) = &mut self.random {
            len_bytes = random.cut(op, at, len_bytes);
        }
        *self.last_start.of_mut(op) = Some(offset);
        *self.last_end.of_mut(op) = offset + u64::from(len_bytes);
        Some((offset, len_bytes))
    }

    /// Goes to the next zone if the current one has had its I/O.
    fn enter_zone(&mut self, op: Op, zone: &mut Zone) {
        let last_end = self.last_end.of_mut(op);
        if let Some(step_bytes) = zone.leave() {
            self.base = self.base.saturating_add(step_bytes);
            if self.base >= self.range.file_bytes {
                self.base = self.range.start_bytes;
            }
            *last_end = self.base;
        }
        if *last_end >= self.base.saturating_add(zone.range_bytes()) {
            *last_end = self.base;
        }
        if zone.begins_range() {
            self.open();
        }
    }

    /// Returns where the next I/O `op` begins; `None` if the file is done.
    #[inline]
    fn start(&mut self, op: Op, moves: bool) -> Option<Start> {
        let Some(random) = &mut self.random else {
            return self.follow(op).map(|at| Start { at, marks: false });
        };
        if moves && random.is_random(op) {
            return self.draw(op).map(|at| Start { at, marks: true });
        }
        let at = if !moves && random.identical {
            self.last_start.of(op).map_or(0, |start| start - self.base)
        } else {
            // A sequence that meets the end of its file goes on at a random place.
            self.follow(op).or_else(|| self.draw(op))?
        };
        Some(Start { at, marks: false })
    }

    fn draw(&mut self, op: Op) -> Option<u64> {
        let drawn = self.random.as_mut()?.draw(op);
        if drawn.is_some() || !self.begins_anew {
            return drawn;
        }
        self.open();
        self.begun_anew += 1;
        self.random.as_mut()?.draw(op)
    }

    /// Returns the place behind the last I/O `op`; `None` at the end of the file.
    #[inline]
    fn follow(&mut self, op: Op) -> Option<u64> {
        let FileRange { len_bytes, file_bytes, .. } = self.range;
        let mut last_end = *self.last_end.of(op);
        if self.goes_around && last_end >= self.range.end_bytes() {
            last_end = self.base;
            self.begun_anew += 1;
        }
        if last_end >= file_bytes {
            return None;
        }
        let back_from = len_bytes.min(file_bytes);
        // fio begins backward I/O at the start of a region with offset 0, and otherwise at `size`,
        // whatever the offset.
        if self.skip_bytes < 0 && last_end == self.base && self.base > 0 {
            last_end = back_from;
        }
        let at = last_end.wrapping_sub(self.base);
        if at == 0 || self.skip_bytes == 0 {
            return Some(at);
        }
        // A place before the region is a large number.
        let skipped = at.wrapping_add_signed(self.skip_bytes);
        if skipped < file_bytes {
            return Some(skipped);
        }
        let forward = self.skip_bytes > 0;
        Some(if forward { self.base } else { back_from.wrapping_add_signed(self.skip_bytes) })
    }
}

impl Random {
    fn new(job: &Job, region_bytes: u64, mut prng: Prng) -> Self {
        let units = Units::of(job, region_bytes);
        let Units { align_bytes, unit_bytes, blocks, blocks_of, visits } = units;
        let choice = match (visits, &job.distribution) {
            (_, Distribution::Sequence(order)) => {
                let blocks = order.clone();
                let strides = job.sequence_strides;
                Choice::Sequence { blocks, strides, index: 0 }
            }
            (Visits::Once | Visits::Mapped, _) => Choice::Map(RandomMap::new(blocks)),
            (Visits::InOrder, _) => {
                Choice::Each { order: Permutation::new(blocks, &mut prng), index: 0 }
            }
            (Visits::Any, _) => {
                Choice::Any(Sampler::new(&job.distribution, blocks, unit_bytes, &mut prng))
            }
        };
        // fio repeats its uniform draws only: a skewed distribution goes on.
        let repeats = job.randrepeat && !job.distribution.is_skewed();
        Self {
            prng_of_pass: repeats.then(|| prng.clone()),
            prng,
            unit_bytes,
            blocks,
            blocks_of,
            choice,
            last_bytes: PerOp::from_fn(|op| (blocks_of.of(op) - 1) * align_bytes.of(op)),
            align_bytes,
            percent: job.percentage_random,
            identical: job.sequencer == Sequencer::Identical,
        }
    }

    fn start_pass(&mut self) {
        if let Some(prng) = &self.prng_of_pass {
            self.prng = prng.clone();
            // The order of the blocks repeats, too.
            if let Choice::Each { index, .. } = &mut self.choice {
                *index = 0;
            }
        }
    }

    /// Forgets which blocks were visited.
    fn forget(&mut self) {
        match &mut self.choice {
            Choice::Each { order, index } if *index > 0 => {
                *order = Permutation::new(self.blocks, &mut self.prng);
                *index = 0;
            }
            Choice::Map(map) => map.free_all(),
            Choice::Each { .. } | Choice::Any(_) | Choice::Sequence { .. } => {}
        }
    }

    /// Returns the length of an I/O at the offset `at`, which was drawn, and marks its blocks as
    /// visited.
    fn cut(&mut self, op: Op, at: u64, len_bytes: u32) -> u32 {
        let Choice::Map(map) = &mut self.choice else { return len_bytes };
        let unit_bytes = *self.align_bytes.of(op);
        let taken = map.take(at / unit_bytes, u64::from(len_bytes).div_ceil(unit_bytes));
        u32::try_from(taken * unit_bytes).map_or(len_bytes, |taken| taken.min(len_bytes))
    }

    /// Whether the next I/O `op` has a random offset rather than follow the last one.
    #[inline]
    fn is_random(&mut self, op: Op) -> bool {
        let percent = *self.percent.of(op);
        percent >= 100 || self.prng.below(100) < percent.into()
    }

    /// Returns a random offset; `None` if no block is left.
    #[inline]
    fn draw(&mut self, op: Op) -> Option<u64> {
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
            Choice::Map(map) => {
                let block = map.draw(*self.blocks_of.of(op), &mut self.prng)?;
                return Some(block * self.align_bytes.of(op));
            }
            Choice::Each { index, .. } if *index == self.blocks => return None,
            Choice::Each { order, index } => {
                *index += 1;
                order.at(*index - 1)
            }
        };
        debug_assert!(block < self.blocks, "block {block} of {}", self.blocks);
        let offset = block * self.unit_bytes;
        Some((offset - offset % self.align_bytes.of(op)).min(*self.last_bytes.of(op)))
    }
}
