//! [`Medium`]: a layer that gives a device data to keep and to lose.
//!
//! The layer stands directly above a model, which knows nothing of data. A request changes the data
//! when the model completes it.
//!
//! # Rules
//!
//! - **[completed-write-is-read]** Reads find the data of a write as soon as the write has
//!   completed. The write is durable at once if there is no volatile cache or if it had
//!   [`Flags::FUA`]; otherwise its data is in the cache.
//! - **[flush-empties-cache]** A completed flush has made durable all data that was in the cache
//!   when the device accepted the flush.
//! - **[block-is-never-torn]** A request that fails, or that is in flight when the power fails, may
//!   have changed any of its logical blocks. Each block is changed as a whole.
//! - **[power-loss-keeps-durable-data]** After a loss of power, each block holds its durable data
//!   or any newer version in the cache.
//!
//! The cache may make data durable at any time and in any order. A discard may have no effect.
//! Random draws decide these cases. A [`DataEffect`] is carried out as given, even if no sound
//! device would do so.
//!
//! A device that keeps its own data ([`ReportsData`]) reports what it does, and its reports replace
//! the rules above: the data that it loses is lost for good. It knows nothing of requests with an
//! unusual [`DataEffect`]; the rules apply to those.

use super::event::{DataEvent, Place, ReportsData};
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
use blockyard::unit::{DriverTag, HctxId, QueueId};
use core::ops::Range;
use std::collections::BTreeMap;

/// The largest number of versions of a sector in a cache. One more makes the oldest version
/// durable.
const VERSIONS_MAX: usize = 8;
/// One in this many cached writes makes some of its blocks durable at once.
const EARLY_ONE_IN: u64 = 8;
/// One in this many discards has no effect.
const IGNORED_ONE_IN: u64 = 4;
/// The largest number of draws over one range. A longer range is drawn in pieces of several logical
/// blocks.
const DRAWS_MAX: u64 = 256;

/// The data that a read found in a part of its range when it completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The bio's queue.
    pub queue: QueueId,
    /// The bio's cookie.
    pub cookie: u64,
    /// The part of the bio's range.
    pub range: Range<u64>,
    /// The content of its sectors, in order.
    pub found: Vec<(Range<u64>, Content)>,
}

/// A version of some sectors that is not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cached {
    /// The number of its write, counted in order of completion.
    done: u64,
    content: Content,
}

/// One disk.
#[derive(Clone, Debug)]
struct Disk {
    block_sectors: u64,
    volatile: bool,
    fua: bool,
    /// The data that reads find.
    live: Image,
    /// The data that certainly survives a loss of power.
    durable: Image,
    /// Versions newer than the durable data, the oldest first.
    cache: Spans<Vec<Cached>>,
    /// Number of completed writes.
    done: u64,
}

/// A request in the model.
#[derive(Clone, Debug)]
struct InFlight {
    queue: QueueId,
    work: Work,
    /// Whether the device decides the effect of the request on data.
    by_device: bool,
    /// Whether the request erases data.
    erases: bool,
    /// The data that the device sent for it, by sector of the request.
    sent: Spans<Option<Content>>,
}

#[derive(Clone, Debug)]
enum Work {
    /// Parts of bios, with the sector to read each from.
    Read(Vec<(Piece, u64)>),
    /// Ranges to write, and whether they become durable at once.
    Write { parts: Vec<(Range<u64>, Content)>, durable: bool, optional: bool },
    /// All writes up to this number become durable.
    Flush { up_to: u64 },
    /// No effect on data.
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

    /// Applies a completed write ([completed-write-is-read]).
    fn write(&mut self, range: Range<u64>, content: Content, durable: bool, draws: &mut Prng) {
        self.live.set(range.clone(), content);
        if durable || !self.volatile {
            self.cache.set(range.clone(), Vec::new());
            self.durable.set(range, content);
            return;
        }
        let done = self.done;
        let image = &mut self.durable;
        self.cache.update(range.clone(), |range, versions| {
            if versions.len() == VERSIONS_MAX {
                image.set(range, versions.remove(0).content);
            }
            debug_assert!(versions.len() < VERSIONS_MAX, "at most {VERSIONS_MAX} versions");
            debug_assert!(versions.last().is_none_or(|last| last.done <= done), "oldest first");
            versions.push(Cached { done, content });
        });
        if draws.below(EARLY_ONE_IN) == 0 {
            self.some_of(range, draws, |disk, range, _| {
                disk.cache.set(range.clone(), Vec::new());
                disk.durable.set(range, content);
            });
        }
    }

    /// Calls `then` for each logical block of `range` with probability one half.
    fn some_of(
        &mut self,
        range: Range<u64>,
        draws: &mut Prng,
        mut then: impl FnMut(&mut Self, Range<u64>, &mut Prng),
    ) {
        for blocks in blocks_of(range, self.block_sectors) {
            if one_of_two(draws) {
                then(self, blocks, draws);
            }
        }
    }

    /// Makes the writes up to number `up_to` durable, in each range for which `all_of` returns true
    /// ([flush-empties-cache]).
    fn flush(&mut self, up_to: u64, mut all_of: impl FnMut() -> bool) {
        let durable = &mut self.durable;
        let mut rest = Spans::new();
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

    /// Stores `content`, which a device that keeps its own data holds in page number `page`.
    fn put(&mut self, range: Range<u64>, content: Content, page: u64) {
        self.live.set(range.clone(), content);
        let image = &mut self.durable;
        self.cache.update(range, |range, versions| {
            if versions.len() == VERSIONS_MAX {
                image.set(range, versions.remove(0).content);
            }
            debug_assert!(versions.last().is_none_or(|last| last.done <= page), "oldest first");
            versions.push(Cached { done: page, content });
        });
    }

    /// Makes the pages up to `page` in `range` durable.
    fn make_durable(&mut self, range: Range<u64>, page: u64) {
        let image = &mut self.durable;
        self.cache.update(range, |range, versions| {
            let kept = versions.partition_point(|version| version.done <= page);
            if let Some(newest) = versions.drain(..kept).next_back() {
                image.set(range, newest.content);
            }
        });
    }

    /// Loses power ([power-loss-keeps-durable-data]).
    fn lose(&mut self, draws: &mut Prng) {
        self.durable = self.survivors(draws);
        self.live = self.durable.clone();
        self.cache = Spans::new();
    }

    fn read(&self, queue: QueueId, piece: &Piece, from: u64) -> Sample {
        let sectors = u64::from(piece.sectors);
        let found = self.live.pieces(from..from.saturating_add(sectors));
        Sample {
            queue,
            cookie: piece.cookie,
            range: piece.sector..piece.sector + sectors,
            found: found.map(|(at, held)| (to_own(at, from, piece), *held)).collect(),
        }
    }

    /// Returns the data left after a loss of power, without the requests in flight
    /// ([power-loss-keeps-durable-data]).
    fn survivors(&self, draws: &mut Prng) -> Image {
        let mut image = self.durable.clone();
        for (range, versions) in self.cache.iter() {
            for blocks in blocks_of(range, self.block_sectors) {
                let choices = versions.len() as u64 + 1;
                let newest = usize::try_from(draws.below(choices))
                    .expect("a cache should hold few versions of a sector");
                if let Some(version) = newest.checked_sub(1) {
                    image.set(blocks, versions[version].content);
                }
            }
        }
        image
    }
}

/// Draws one of two equally likely answers.
fn one_of_two(draws: &mut Prng) -> bool {
    draws.below(2) == 0
}

/// Cuts `range` at logical blocks into single blocks, or into larger pieces if there are many
/// blocks.
fn blocks_of(range: Range<u64>, block_sectors: u64) -> impl Iterator<Item = Range<u64>> {
    let blocks = (range.end - range.start) / block_sectors;
    let step = blocks.div_ceil(DRAWS_MAX).max(1) * block_sectors;
    debug_assert!(step > 0, "a logical block has a sector");
    let mut at = range.start;
    core::iter::from_fn(move || {
        let end = (at - at % block_sectors).saturating_add(step).min(range.end);
        let piece = (at < range.end).then_some(at..end);
        at = end;
        piece
    })
}

/// The data of a host's disks, and the effects of the requests in flight.
#[derive(Clone, Debug)]
pub struct Media {
    disks: Vec<Disk>,
    depth: usize,
    /// Requests in flight, by hardware queue and tag.
    in_flight: Vec<Option<InFlight>>,
    /// Stamps of the bios in flight, by cookie.
    stamps: BTreeMap<u64, Stamp>,
    samples: Vec<Sample>,
    /// Whether the device has lost data since the last call of [`Self::take_loss`].
    lost: bool,
    draws: Prng,
}

/// The content of erased sectors outside of every erase request.
const WIPED: Content = Content::of(Stamp(u64::MAX));

impl Media {
    /// Returns the data of disks with `limits`, in order of their queues, on a host with `tags`.
    /// The disks were never written. `draws` decides what the rules leave open.
    #[must_use]
    pub fn new<'a>(
        limits: impl IntoIterator<Item = &'a Limits>,
        tags: &TagSetConfig,
        draws: Prng,
    ) -> Self {
        let depth = usize::from(tags.depth);
        assert!(depth > 0, "a host has a tag");
        Self {
            disks: limits.into_iter().map(Disk::new).collect(),
            depth,
            in_flight: vec![None; usize::from(tags.hctxs) * depth],
            stamps: BTreeMap::new(),
            samples: Vec::new(),
            lost: false,
            draws,
        }
    }

    /// Whether the device has lost power since the last call. [`Self::survivors`] does not count.
    pub(crate) const fn take_loss(&mut self) -> bool {
        core::mem::replace(&mut self.lost, false)
    }

    /// Applies a report of the device, which has one disk and one hardware queue.
    fn apply(&mut self, event: DataEvent<Place>) {
        let Self { disks, in_flight, samples: _, lost, draws, .. } = self;
        debug_assert!(disks.len() == 1, "a device that keeps its own data has one disk");
        let disk = &mut disks[0];
        match event {
            DataEvent::Received { place, sectors, page } => {
                disk.done = page;
                let Some(of) = in_flight[place.tag.index()].as_ref().filter(|of| of.by_device)
                else {
                    return;
                };
                let Work::Write { parts, .. } = &of.work else {
                    unreachable!("a event received data for a request that is not a write")
                };
                // The place of the data in the host's memory, in sectors of its request.
                let Some((range, _)) = parts.first() else { return };
                let first = range.start + u64::from(place.from);
                for (range, content) in parts {
                    let start = range.start.max(first);
                    let end = range.end;
                    let end = end.min(first + (sectors.end - sectors.start));
                    if !(start..end).is_empty() {
                        let at = sectors.start + (start - first);
                        let shift = content.shift + start.wrapping_sub(at).cast_signed();
                        let content = Content { shift, ..*content };
                        disk.put(at..at + (end - start), content, page);
                    }
                }
            }
            DataEvent::Sent { place, sectors } => {
                let Some(of) = in_flight[place.tag.index()].as_mut() else { return };
                let held: Vec<_> = disk.live.pieces(sectors.clone()).collect();
                for (at, content) in held {
                    let from = u64::from(place.from) + (at.start - sectors.start);
                    of.sent.set(from..from + (at.end - at.start), Some(*content));
                }
            }
            DataEvent::Erased { sectors, certain } => {
                let page = disk.done;
                let mut held = Spans::new();
                held.set(sectors.clone(), WIPED);
                let erasing = in_flight.iter().flatten().filter(|of| of.erases && of.by_device);
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
                    disk.make_durable(sectors, page);
                }
            }
            DataEvent::Certain { page, sectors } => disk.make_durable(sectors, page),
            DataEvent::Flushed { page } => disk.flush(page, || true),
            DataEvent::Lost => {
                disk.lose(draws);
                *lost = true;
            }
        }
    }

    /// Gives the bio with `cookie`, which is about to be submitted, the data `stamp`.
    pub fn name(&mut self, cookie: u64, stamp: Stamp) {
        self.stamps.insert(cookie, stamp);
    }

    /// Forgets the bio with `cookie`, which has ended or was refused.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.stamps.remove(&cookie);
    }

    /// Returns the data that reads found since the last call.
    pub(crate) fn take_samples(&mut self) -> Vec<Sample> {
        core::mem::take(&mut self.samples)
    }

    /// The data that reads of the disk of `queue` find.
    #[must_use]
    pub fn live(&self, queue: QueueId) -> &Image {
        &self.disks[queue.index()].live
    }

    /// Number of sectors of the disk of `queue` whose data is not durable.
    #[must_use]
    pub(crate) fn cached_sectors(&self, queue: QueueId) -> u64 {
        self.disks[queue.index()].cache.iter().map(|(range, _)| range.end - range.start).sum()
    }

    /// Returns the data that a loss of power would leave now on the disk of `queue`, by `draws`
    /// ([power-loss-keeps-durable-data], [block-is-never-torn]).
    #[must_use]
    pub(crate) fn survivors(&self, queue: QueueId, draws: &mut Prng) -> Image {
        let disk = &self.disks[queue.index()];
        let mut image = disk.survivors(draws);
        let others = self.in_flight.iter().flatten().filter(|one| !one.by_device);
        for in_flight in others.filter(|one| one.queue == queue) {
            let Work::Write { parts, .. } = &in_flight.work else { continue };
            for (range, content) in parts {
                for blocks in blocks_of(range.clone(), disk.block_sectors) {
                    if one_of_two(draws) {
                        image.set(blocks, *content);
                    }
                }
            }
        }
        image
    }

    fn slot(&self, hctx: HctxId, tag: DriverTag) -> usize {
        debug_assert!(tag.index() < self.depth, "{tag:?} of a host with {} tags", self.depth);
        hctx.index() * self.depth + tag.index()
    }

    /// Records that the model has accepted a request. `by_device` says that the device keeps its
    /// own data.
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
        debug_assert!(self.in_flight[slot].is_none(), "{:?} is in flight", issue.tag);
        self.in_flight[slot] = Some(InFlight {
            queue: issue.queue,
            work,
            by_device: by_device && issue.effect() == DataEffect::Whole,
            erases: matches!(rq.op, Op::WriteZeroes | Op::Discard | Op::SecureErase),
            sent: Spans::new(),
        });
    }

    /// Returns the range at `at` for `piece`, with its content.
    fn placed(&self, piece: &Piece, at: u64) -> (Range<u64>, Content) {
        let stamp = self.stamps.get(&piece.cookie);
        let stamp = *stamp.expect("a bio with data should be named before it is submitted");
        let shift = piece.sector.wrapping_sub(at).cast_signed();
        (at..at.saturating_add(u64::from(piece.sectors)), Content { stamp, shift })
    }

    /// Applies a request that the model has completed.
    fn end(&mut self, hctx: HctxId, tag: DriverTag, outcome: Outcome) {
        let slot = self.slot(hctx, tag);
        let in_flight = self.in_flight[slot].take();
        let in_flight = in_flight.expect("a model should end each accepted request once");
        let InFlight { queue, work, by_device, sent, .. } = in_flight;
        let disk = &mut self.disks[queue.index()];
        let draws = &mut self.draws;
        let well = outcome == Outcome::Done(Status::Ok);
        match work {
            Work::Read(pieces) => {
                let mut left = match outcome {
                    Outcome::Partial { sectors, .. } => sectors,
                    _ if well => u32::MAX,
                    _ => 0,
                };
                // After a partial success, the pieces that were transferred whole.
                let whole = pieces.iter().take_while(|(piece, _)| {
                    let rest = left.checked_sub(piece.sectors);
                    left = rest.unwrap_or(left);
                    rest.is_some()
                });
                let read = |(piece, at): &(Piece, u64)| {
                    if by_device {
                        sample_of(queue, piece, at - pieces[0].1, &sent)
                    } else {
                        disk.read(queue, piece, *at)
                    }
                };
                self.samples.extend(whole.map(read));
            }
            _ if by_device => {} // its data events have changed the data
            Work::Write { optional: true, .. } if draws.below(IGNORED_ONE_IN) == 0 => {}
            Work::Write { parts, durable, .. } => {
                disk.done += 1;
                for (range, content) in parts {
                    if well {
                        disk.write(range, content, durable, draws);
                    } else {
                        disk.some_of(range, draws, |disk, blocks, draws| {
                            disk.write(blocks, content, durable, draws); // [block-is-never-torn]
                        });
                    }
                }
            }
            Work::Flush { up_to } if well => disk.flush(up_to, || true),
            Work::Flush { up_to } => disk.flush(up_to, || one_of_two(draws)),
            Work::Nothing => {}
        }
    }
}

/// Returns the own sectors of `piece` that are `at` on the medium or in the request, where the
/// piece begins at `from`.
const fn to_own(at: Range<u64>, from: u64, piece: &Piece) -> Range<u64> {
    at.start - from + piece.sector..at.end - from + piece.sector
}

/// Returns the data sent for `piece`, which begins at sector `from` of its request.
fn sample_of(queue: QueueId, piece: &Piece, from: u64, sent: &Spans<Option<Content>>) -> Sample {
    let sent = sent.pieces(from..from + u64::from(piece.sectors));
    let found = sent.filter_map(|(at, held)| Some((to_own(at, from, piece), (*held)?)));
    Sample {
        queue,
        cookie: piece.cookie,
        range: piece.sector..piece.sector + u64::from(piece.sectors),
        found: found.collect(),
    }
}

/// Returns the parts of bios that a request reads or changes, each with its sector on the medium.
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
        let sectors = u32::try_from(sectors).expect("a part should be no longer than its piece");
        let at = moved_to.map_or(piece.sector, |to| to.saturating_add(piece.sector - first));
        (sectors > 0).then_some((Piece { sectors, ..piece }, at))
    })
}

/// A layer that keeps the data of the model below.
#[derive(Clone, Debug)]
pub struct Medium<D> {
    /// The model below.
    pub below: D,
    /// Its data.
    pub media: Media,
}

impl<D: ReportsData> Medium<D> {
    /// Advances the model to `now` and applies its reports.
    pub(crate) fn advance_data(&mut self, now: Instant) {
        self.below.advance_data(now);
        self.take_data_events();
    }

    fn take_data_events(&mut self) {
        while let Some(event) = self.below.next_data_event() {
            self.media.apply(event);
        }
    }
}

impl<D: ReportsData> Driver for Medium<D> {
    blockyard::pass_on!(below: take_budget, return_budget, prepare, unprepare, commit, finish);

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let answer = self.below.queue_rq(issue);
        if answer == Accept::Queued {
            self.take_data_events(); // they belong to earlier requests
            self.media.begin(issue, self.below.keeps_data());
        }
        answer
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
}

impl<D: ReportsData> Device for Medium<D> {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let finished = self.below.next_finished(now)?;
        self.take_data_events();
        self.media.end(finished.hctx, finished.tag, finished.outcome);
        Some(finished)
    }

    blockyard::pass_on!(below: poll_at);
}

#[cfg(test)]
mod tests;
