//! [`Medium`]: a layer that gives a device something to hold, and to lose.
//!
//! It stands right above a model, which knows nothing of data. What a request does to the data, it
//! does when the model names it as finished.
//!
//! # Rules
//!
//! - **V1.** A write that is done is what reads find, and is durable at once where there is no
//!   volatile cache or it was asked to be ([`Flags::FUA`]); else it is in the cache.
//! - **V2.** A flush that is done has made durable all that was done before it was accepted.
//! - **V3.** What is only in the cache may be made durable at any time, in any order.
//! - **V4.** A request that is not done well may have done its part to any of its logical blocks;
//!   so may one that is under way when the power goes. Of each block all or nothing.
//! - **V5.** When the power goes, each block keeps what is durable, or anything in the cache that is
//!   newer.
//! - **V6.** A discard may do nothing.
//!
//! - **V7.** A device that decides itself what it holds ([`Keeper`]) is believed instead: V1 to V4 are
//!   then its own affair, and what it lost (V5) it lost for good. Only of requests with another
//!   [`DataEffect`] than the usual it knows nothing.
//!
//! What is not determined is drawn. A [`DataEffect`] is honoured as it is told, also where no sound
//! device would do such a thing.

use super::deed::{Deed, Keeper, Place};
use super::image::{Content, Image, Stamp};
use super::spans::Spans;
use blockyard::bio::{Flags, Op};
use blockyard::driver::{Accept, DataEffect, Device, Driver, Finished, Issue, Outcome, TimedOut};
use blockyard::limits::Limits;
use blockyard::prng::Prng;
use blockyard::request::{Piece, Request};
use blockyard::status::Status;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use core::ops::Range;
use std::collections::BTreeMap;

/// Most versions of a sector that a cache holds; the oldest is then made durable.
const VERSIONS_MAX: usize = 8;
/// Once in so many writes into the cache, some of it becomes durable at once (V3).
const EARLY_ONE_IN: u64 = 8;
/// Once in so many discards, nothing happens (V6).
const IGNORED_ONE_IN: u64 = 4;
/// Most draws over one range: longer ranges are drawn by several logical blocks at once.
const DRAWS_MAX: u64 = 256;

/// What a read found in a part of its range when it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The bio's queue.
    pub queue: QueueId,
    /// The bio.
    pub cookie: u64,
    /// These sectors of it.
    pub range: Range<u64>,
    /// What they held, in order.
    pub found: Vec<(Range<u64>, Content)>,
}

/// A version of some sectors that is not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cached {
    /// The number of the write that brought it, in the order in which they were done.
    done: u64,
    content: Content,
}

/// One disk.
#[derive(Clone, Debug)]
struct Disk {
    block_sectors: u64,
    volatile: bool,
    fua: bool,
    /// What reads find.
    live: Image,
    /// What is there in any case when the power goes.
    durable: Image,
    /// What is newer than that, oldest version first.
    cache: Spans<Vec<Cached>>,
    /// Writes done.
    done: u64,
}

/// A request that the model has.
#[derive(Clone, Debug)]
struct UnderWay {
    queue: QueueId,
    work: Work,
    /// The device decides what it does to data (V7).
    by_device: bool,
    /// It gives up what was there.
    erases: bool,
    /// What a device sent for it, by sectors of the request.
    came: Spans<Option<Content>>,
}

#[derive(Clone, Debug)]
enum Work {
    /// Parts of bios, to be read from here.
    Read(Vec<(Piece, u64)>),
    /// What is to lie where, and whether it is to be durable at once.
    Write { parts: Vec<(Range<u64>, Content)>, durable: bool, optional: bool },
    /// Everything up to this number is to become durable.
    Flush { up_to: u64 },
    /// None of our matter.
    Nothing,
}

impl Disk {
    fn new(limits: &Limits) -> Self {
        Self {
            block_sectors: u64::from(limits.logical_block_sectors),
            volatile: limits.write_cache,
            fua: limits.fua,
            live: Image::new(),
            durable: Image::new(),
            cache: Spans::new(),
            done: 0,
        }
    }

    /// V1.
    fn write(&mut self, range: Range<u64>, content: Content, durable: bool, draws: &mut Prng) {
        self.live.set(range.clone(), content);
        if durable || !self.volatile {
            self.cache.set(range.clone(), Vec::new());
            self.durable.set(range, content);
            return;
        }
        let (done, image) = (self.done, &mut self.durable);
        self.cache.update(range.clone(), |range, versions| {
            if versions.len() == VERSIONS_MAX {
                image.set(range, versions.remove(0).content);
            }
            versions.push(Cached { done, content });
        });
        if draws.below(EARLY_ONE_IN) == 0 {
            self.some_of(range, draws, |disk, range, _| {
                disk.cache.set(range.clone(), Vec::new());
                disk.durable.set(range, content);
            });
        }
    }

    /// Calls `then` for some of the logical blocks of `range`, each as a coin falls.
    fn some_of(
        &mut self,
        range: Range<u64>,
        draws: &mut Prng,
        mut then: impl FnMut(&mut Self, Range<u64>, &mut Prng),
    ) {
        for blocks in blocks_of(range, self.block_sectors) {
            if draws.below(2) == 0 {
                then(self, blocks, draws);
            }
        }
    }

    /// V2: makes durable what was done up to number `up_to`; all of it, or of each range as a coin
    /// falls.
    fn flush(&mut self, up_to: u64, mut all_of: impl FnMut() -> bool) {
        let (durable, mut rest) = (&mut self.durable, Spans::new());
        for (range, versions) in self.cache.iter() {
            let kept = versions.partition_point(|version| version.done <= up_to);
            let mut versions = versions.clone();
            if kept > 0 && all_of() {
                durable.set(range.clone(), versions[kept - 1].content);
                versions.drain(..kept);
            }
            rest.set(range, versions);
        }
        self.cache = rest;
    }

    /// What came in page number `page` lies there (V7).
    fn put(&mut self, range: Range<u64>, content: Content, page: u64) {
        self.done = page;
        self.live.set(range.clone(), content);
        let image = &mut self.durable;
        self.cache.update(range, |range, versions| {
            if versions.len() == VERSIONS_MAX {
                image.set(range, versions.remove(0).content);
            }
            versions.push(Cached { done: page, content });
        });
    }

    /// What came to `range` in pages up to `page` is certain (V7).
    fn settle(&mut self, range: Range<u64>, page: u64) {
        let image = &mut self.durable;
        self.cache.update(range, |range, versions| {
            let kept = versions.partition_point(|version| version.done <= page);
            if let Some(newest) = versions.drain(..kept).next_back() {
                image.set(range, newest.content);
            }
        });
    }

    /// Power was gone (V5).
    fn lose(&mut self, draws: &mut Prng) {
        self.durable = self.survivors(draws);
        self.live = self.durable.clone();
        self.cache = Spans::new();
    }

    fn read(&self, queue: QueueId, piece: &Piece, from: u64) -> Sample {
        let sectors = u64::from(piece.sectors);
        let to_own = |at: u64| at - from + piece.sector;
        let found = self.live.pieces(from..from.saturating_add(sectors));
        Sample {
            queue,
            cookie: piece.cookie,
            range: piece.sector..piece.sector + sectors,
            found: found.map(|(at, held)| (to_own(at.start)..to_own(at.end), *held)).collect(),
        }
    }

    /// What is there after the power has gone (V5), but for what is under way.
    fn survivors(&self, draws: &mut Prng) -> Image {
        let mut image = self.durable.clone();
        for (range, versions) in self.cache.iter() {
            for blocks in blocks_of(range, self.block_sectors) {
                let choices = versions.len() as u64 + 1;
                let newest = usize::try_from(draws.below(choices)).expect("a few versions");
                if let Some(version) = newest.checked_sub(1) {
                    image.set(blocks, versions[version].content);
                }
            }
        }
        image
    }
}

/// `range` in pieces that end at logical blocks: single blocks, unless there are very many.
fn blocks_of(range: Range<u64>, block_sectors: u64) -> impl Iterator<Item = Range<u64>> {
    let blocks = (range.end - range.start) / block_sectors;
    let step = blocks.div_ceil(DRAWS_MAX).max(1) * block_sectors;
    let mut at = range.start;
    core::iter::from_fn(move || {
        let end = (at - at % block_sectors).saturating_add(step).min(range.end);
        let piece = (at < range.end).then_some(at..end);
        at = end;
        piece
    })
}

/// What the disks of a host hold, and what its requests under way will do to it.
#[derive(Clone, Debug)]
pub struct Media {
    disks: Vec<Disk>,
    depth: usize,
    /// By hardware queue and tag.
    under_way: Vec<Option<UnderWay>>,
    /// Of bios under way, by cookie.
    stamps: BTreeMap<u64, Stamp>,
    samples: Vec<Sample>,
    /// The device has lost something since this was asked for (V7).
    lost: bool,
    draws: Prng,
}

/// Of sectors that nobody meant to erase.
const WIPED: Content = Content::of(Stamp(u64::MAX));

impl Media {
    /// Disks with `limits`, by the numbers of their queues, on a host with `tags`; nobody has
    /// written to them. `draws` decides what is not determined.
    #[must_use]
    pub fn new<'a>(
        limits: impl IntoIterator<Item = &'a Limits>,
        tags: &TagSetConfig,
        draws: Prng,
    ) -> Self {
        let depth = usize::from(tags.depth);
        Self {
            disks: limits.into_iter().map(Disk::new).collect(),
            depth,
            under_way: vec![None; usize::from(tags.hctxs) * depth],
            stamps: BTreeMap::new(),
            samples: Vec::new(),
            lost: false,
            draws,
        }
    }

    /// Whether the device has lost data, other than by a look, since this was asked for.
    pub const fn take_loss(&mut self) -> bool {
        core::mem::replace(&mut self.lost, false)
    }

    /// The device did something (V7): it has one disk and one hardware queue.
    fn done(&mut self, deed: Deed<Place>) {
        let Self { disks, under_way, samples: _, lost, draws, .. } = self;
        let disk = &mut disks[0];
        match deed {
            Deed::Received { place, sectors, page } => {
                disk.done = page;
                let Some(of) = under_way[place.tag.index()].as_ref().filter(|of| of.by_device)
                else {
                    return;
                };
                let Work::Write { parts, .. } = &of.work else {
                    unreachable!("the ledger of the device checks the direction")
                };
                // Its data, as it lies in the memory of the host: where each was meant to be.
                let first =
                    parts.first().map_or(0, |(range, _)| range.start) + u64::from(place.from);
                for (range, content) in parts {
                    let (start, end) = (range.start.max(first), range.end);
                    let end = end.min(first + (sectors.end - sectors.start));
                    if start < end {
                        let at = sectors.start + (start - first);
                        let shift = content.shift + start.wrapping_sub(at).cast_signed();
                        let content = Content { shift, ..*content };
                        disk.put(at..at + (end - start), content, page);
                    }
                }
            }
            Deed::Sent { place, sectors } => {
                let Some(of) = under_way[place.tag.index()].as_mut() else { return };
                let held: Vec<_> = disk.live.pieces(sectors.clone()).collect();
                for (at, content) in held {
                    let from = u64::from(place.from) + (at.start - sectors.start);
                    of.came.set(from..from + (at.end - at.start), Some(*content));
                }
            }
            Deed::Erased { sectors, certain } => {
                let page = disk.done;
                let mut held = Spans::new();
                held.set(sectors.clone(), WIPED);
                let erasing = under_way.iter().flatten().filter(|of| of.erases && of.by_device);
                for of in erasing {
                    let Work::Write { parts, .. } = &of.work else { continue };
                    for (range, content) in parts {
                        let start = range.start.max(sectors.start);
                        held.set(start..range.end.min(sectors.end).max(start), *content);
                    }
                }
                for (range, content) in held.iter() {
                    disk.put(range.clone(), *content, page);
                }
                if certain {
                    disk.settle(sectors, page);
                }
            }
            Deed::Certain { page, sectors } => disk.settle(sectors, page),
            Deed::Flushed { page } => disk.flush(page, || true),
            Deed::Lost => {
                disk.lose(draws);
                *lost = true;
            }
        }
    }

    /// The data of the bio called `cookie`, which is about to be submitted, is `stamp`.
    pub fn name(&mut self, cookie: u64, stamp: Stamp) {
        self.stamps.insert(cookie, stamp);
    }

    /// The bio called `cookie` has ended, or was not taken.
    pub fn forget(&mut self, cookie: u64) {
        self.stamps.remove(&cookie);
    }

    /// What reads found since the last call.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        core::mem::take(&mut self.samples)
    }

    /// What reads of the disk of `queue` find.
    #[must_use]
    pub fn live(&self, queue: QueueId) -> &Image {
        &self.disks[queue.index()].live
    }

    /// Sectors of the disk of `queue` with data that is not durable.
    #[must_use]
    pub fn cached_sectors(&self, queue: QueueId) -> u64 {
        self.disks[queue.index()].cache.iter().map(|(range, _)| range.end - range.start).sum()
    }

    /// What would be on the disk of `queue` if the power went now, as `draws` has it (V4, V5).
    #[must_use]
    pub fn survivors(&self, queue: QueueId, draws: &mut Prng) -> Image {
        let disk = &self.disks[queue.index()];
        let mut image = disk.survivors(draws);
        let others = self.under_way.iter().flatten().filter(|one| !one.by_device);
        for under_way in others.filter(|one| one.queue == queue) {
            let Work::Write { parts, .. } = &under_way.work else { continue };
            for (range, content) in parts {
                for blocks in blocks_of(range.clone(), disk.block_sectors) {
                    if draws.below(2) == 0 {
                        image.set(blocks, *content);
                    }
                }
            }
        }
        image
    }

    fn slot(&self, hctx: HctxId, tag: DriverTag) -> usize {
        hctx.index() * self.depth + tag.index()
    }

    /// The model has taken a request; `by_device`: it decides what becomes of data (V7).
    fn begin(&mut self, issue: &Issue<'_>, by_device: bool) {
        let rq = issue.request();
        let disk = &self.disks[issue.queue.index()];
        let work = match rq.op {
            Op::Read => Work::Read(affected(issue).collect()),
            Op::Flush => Work::Flush { up_to: disk.done },
            Op::Write | Op::WriteZeroes | Op::Discard | Op::SecureErase => Work::Write {
                parts: affected(issue).map(|(piece, at)| self.placed(&piece, at)).collect(),
                durable: disk.fua && rq.op == Op::Write && rq.flags.contains(Flags::FUA),
                optional: rq.op == Op::Discard,
            },
            Op::DriverIn | Op::DriverOut => Work::Nothing,
        };
        let slot = self.slot(issue.hctx, issue.tag);
        self.under_way[slot] = Some(UnderWay {
            queue: issue.queue,
            work,
            by_device: by_device && issue.effect() == DataEffect::Whole,
            erases: matches!(rq.op, Op::WriteZeroes | Op::Discard | Op::SecureErase),
            came: Spans::new(),
        });
    }

    /// The data of `piece`, to lie at `at`.
    fn placed(&self, piece: &Piece, at: u64) -> (Range<u64>, Content) {
        let stamp = self.stamps.get(&piece.cookie);
        let stamp = *stamp.expect("the data of a bio is named before it is submitted");
        let shift = piece.sector.wrapping_sub(at).cast_signed();
        (at..at.saturating_add(u64::from(piece.sectors)), Content { stamp, shift })
    }

    /// The model is done with a request.
    fn end(&mut self, hctx: HctxId, tag: DriverTag, outcome: Outcome) {
        let slot = self.slot(hctx, tag);
        let under_way = self.under_way[slot].take();
        let under_way = under_way.expect("D1: a model ends what it took, once");
        let UnderWay { queue, work, by_device, came, .. } = under_way;
        let (disk, draws) = (&mut self.disks[queue.index()], &mut self.draws);
        let well = outcome == Outcome::Done(Status::Ok);
        match work {
            Work::Read(pieces) => {
                let mut left = match outcome {
                    Outcome::Partial { sectors, .. } => sectors,
                    _ if well => u32::MAX,
                    _ => 0,
                };
                // Pieces that came over whole: the others fail.
                let whole = pieces.iter().take_while(|(piece, _)| {
                    let rest = left.checked_sub(piece.sectors);
                    left = rest.unwrap_or(left);
                    rest.is_some()
                });
                let first = pieces.first().map_or(0, |(_, at)| *at);
                let read = |(piece, at): &(Piece, u64)| {
                    if by_device {
                        sample_of(queue, piece, at - first, &came)
                    } else {
                        disk.read(queue, piece, *at)
                    }
                };
                self.samples.extend(whole.map(read));
            }
            _ if by_device => {} // V7
            Work::Write { optional: true, .. } if draws.below(IGNORED_ONE_IN) == 0 => {} // V6
            Work::Write { parts, durable, .. } => {
                disk.done += 1;
                for (range, content) in parts {
                    if well {
                        disk.write(range, content, durable, draws);
                    } else {
                        disk.some_of(range, draws, |disk, blocks, draws| {
                            disk.write(blocks, content, durable, draws); // V4
                        });
                    }
                }
            }
            Work::Flush { up_to } if well => disk.flush(up_to, || true),
            Work::Flush { up_to } => disk.flush(up_to, || draws.below(2) == 0), // V4
            Work::Nothing => {}
        }
    }
}

/// What came for `piece`, which is that of a request from its sector `from` on.
fn sample_of(queue: QueueId, piece: &Piece, from: u64, came: &Spans<Option<Content>>) -> Sample {
    let to_own = |at: u64| at - from + piece.sector;
    let came = came.pieces(from..from + u64::from(piece.sectors));
    let found = came.filter_map(|(at, held)| Some((to_own(at.start)..to_own(at.end), (*held)?)));
    Sample {
        queue,
        cookie: piece.cookie,
        range: piece.sector..piece.sector + u64::from(piece.sectors),
        found: found.collect(),
    }
}

/// The parts of bios that a request does anything to, and where on the medium.
fn affected(issue: &Issue<'_>) -> impl Iterator<Item = (Piece, u64)> {
    let first = issue.request().sector;
    let (mut left, moved_to) = match issue.effect() {
        DataEffect::Whole => (u64::MAX, None),
        DataEffect::First(sectors) => (u64::from(sectors), None),
        DataEffect::Nowhere => (0, None),
        DataEffect::At(sector) => (u64::MAX, Some(sector)),
    };
    issue.pieces().map_while(move |piece| {
        let sectors = left.min(u64::from(piece.sectors));
        left -= sectors;
        let sectors = u32::try_from(sectors).expect("no more than the piece has");
        let at = moved_to.map_or(piece.sector, |to| to.saturating_add(piece.sector - first));
        (sectors > 0).then_some((Piece { sectors, ..piece }, at))
    })
}

/// The layer.
#[derive(Clone, Debug)]
pub struct Medium<D> {
    /// The model.
    pub below: D,
    /// What it holds.
    pub media: Media,
}

impl<D: Keeper> Medium<D> {
    /// What is below has done what it has done.
    pub fn keep_up(&mut self, now: Instant) {
        self.below.keep_up(now);
        self.take_deeds();
    }

    fn take_deeds(&mut self) {
        while let Some(deed) = self.below.next_deed() {
            self.media.done(deed);
        }
    }
}

impl<D: Keeper> Driver for Medium<D> {
    fn take_budget(&mut self, queue: QueueId) -> Option<Budget> {
        self.below.take_budget(queue)
    }

    fn return_budget(&mut self, queue: QueueId, budget: Budget) {
        self.below.return_budget(queue, budget);
    }

    fn prepare(&mut self, issue: &Issue<'_>) {
        self.below.prepare(issue);
    }

    fn unprepare(&mut self, issue: &Issue<'_>) {
        self.below.unprepare(issue);
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = self.below.queue_rq(issue);
        if answer == Accept::Queued {
            self.take_deeds(); // all of them of others
            self.media.begin(issue, self.below.keeps_data());
        }
        answer
    }

    fn commit(&mut self, queue: QueueId, hctx: HctxId, now: Instant) {
        self.below.commit(queue, hctx, now);
    }

    fn timed_out(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        tag: DriverTag,
        request: &Request,
        now: Instant,
    ) -> TimedOut {
        let answer = self.below.timed_out(queue, hctx, tag, request, now);
        if let TimedOut::Ended(outcome) = answer {
            self.media.end(hctx, tag, outcome);
        }
        answer
    }

    fn finish(&mut self, queue: QueueId, hctx: HctxId, tag: DriverTag, request: &Request) {
        self.below.finish(queue, hctx, tag, request);
    }
}

impl<D: Keeper> Device for Medium<D> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let finished = self.below.next_finished(now)?;
        self.take_deeds();
        self.media.end(finished.hctx, finished.tag, finished.outcome);
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.below.poll_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECTORS: u64 = 24;
    const BLOCK: u64 = 4;

    fn disk() -> Disk {
        let limits = Limits {
            write_cache: true,
            logical_block_sectors: u32::try_from(BLOCK).unwrap(),
            ..Limits::new(SECTORS)
        };
        Disk::new(&limits)
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// These blocks; durable at once or not.
        Write(Range<u64>, bool),
        Flush,
        /// A flush that covers only what was done so many writes ago.
        OldFlush(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let blocks = (0..SECTORS / BLOCK, 1..4_u64)
            .prop_map(|(at, count)| at * BLOCK..((at + count) * BLOCK).min(SECTORS));
        prop_oneof![
            6 => (blocks, prop::bool::weighted(0.2)).prop_map(|(at, fua)| Step::Write(at, fua)),
            1 => Just(Step::Flush),
            1 => (0..4_u64).prop_map(Step::OldFlush),
        ]
    }

    fn index(at: u64) -> usize {
        usize::try_from(at).unwrap()
    }

    proptest! {
        /// Beside every version of every sector, and the oldest that may be left.
        #[test]
        fn what_is_flushed_stays_and_what_is_not_may_go(
            steps in proptest::collection::vec(step(), 1..60),
            seed in any::<u64>(),
        ) {
            let draws = &mut Prng::new(seed);
            let mut disk = disk();
            let mut versions = vec![vec![(0, Content::default())]; index(SECTORS)];
            let mut oldest = vec![0; index(SECTORS)];
            for step in steps {
                match step {
                    Step::Write(range, durable) => {
                        disk.done += 1;
                        let content = Content::of(Stamp(disk.done));
                        disk.write(range.clone(), content, durable, draws);
                        for at in range {
                            let at = index(at);
                            versions[at].push((disk.done, content));
                            if durable {
                                oldest[at] = versions[at].len() - 1;
                            }
                        }
                    }
                    Step::Flush | Step::OldFlush(_) => {
                        let ago = if let Step::OldFlush(ago) = step { ago } else { 0 };
                        let up_to = disk.done.saturating_sub(ago);
                        disk.flush(up_to, || true);
                        for (versions, oldest) in versions.iter().zip(&mut oldest) {
                            let flushed = versions.partition_point(|(done, _)| *done <= up_to);
                            *oldest = (*oldest).max(flushed - 1);
                        }
                    }
                }
                let left = disk.survivors(draws);
                for at in 0..SECTORS {
                    let all = &versions[index(at)];
                    let live = disk.live.pieces(at..at + 1).next().map(|(_, held)| *held);
                    prop_assert_eq!(live, all.last().map(|(_, content)| *content));
                    let held = left.pieces(at..at + 1).next().map(|(_, held)| *held);
                    let mut may = all[oldest[index(at)]..].iter().map(|(_, content)| Some(*content));
                    prop_assert!(may.any(|may| may == held), "sector {} holds {:?}", at, held);
                    let first = at - at % BLOCK;
                    let of_block = left.pieces(first..first + 1).next().map(|(_, held)| *held);
                    prop_assert_eq!(held, of_block, "half a block");
                }
            }
        }
    }

    #[test]
    fn without_power_a_cached_block_is_there_or_not_and_older_ones_may_outlast_newer() {
        let draws = &mut Prng::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut disk = disk();
            for number in 1..=2 {
                disk.done = number;
                disk.write(0..2 * BLOCK, Content::of(Stamp(number)), false, draws);
            }
            let left = disk.survivors(draws);
            let stamp_at = |at| left.pieces(at..at + 1).next().map(|(_, held)| held.stamp.0);
            seen.insert((stamp_at(0), stamp_at(BLOCK)));
        }
        assert_eq!(seen.len(), 9, "each of two blocks in each of three versions: {seen:?}");
    }

    #[test]
    fn long_ranges_are_drawn_by_many_blocks_at_once() {
        for (range, most) in [(4..8, 1), (2..9, 3), (0..4096, 256), (0..1 << 20, 256)] {
            let pieces: Vec<_> = blocks_of(range.clone(), 4).collect();
            assert!(pieces.len() <= most, "{range:?}: {}", pieces.len());
            assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
            assert!(pieces.iter().skip(1).all(|piece| piece.start.is_multiple_of(4)));
            assert_eq!(pieces[0].start..pieces[pieces.len() - 1].end, range);
        }
    }
}
