//! [`History`]: a sequential model of one disk that says which data may be found on it.
//!
//! The model knows only bios, as their submitter sees them: when each was submitted, and when and
//! how it ended. Time is a counter of these events. A bio is *before* another bio if it ended
//! before the other was submitted; otherwise the two are concurrent, and either order is legal.
//!
//! # Rules
//!
//! - **[read-finds-latest-write]** A read finds data of a write that was submitted before the read
//!   ended. No other successful write may lie between the two: after that write and before the
//!   read.
//! - **[durable-write-survives]** After a loss of power, a sector holds data of a write that is not
//!   before a durable one. A write is *durable* when it has succeeded, and the device has no
//!   volatile cache, or the write had [`Flags::FUA`], or a flush submitted after its end has
//!   succeeded. A write with [`Flags::PREFLUSH`] counts as such a flush.
//! - **[data-at-its-own-sector]** Data is found at the sector for which it was written.
//! - **[lost-write-fails-flush]** When a device loses power during a run, all earlier writes that
//!   are not durable are *lost*: older data may be found in their place. A flush that succeeds
//!   makes even lost writes durable, so the device must fail the first flush. Writes that had ended
//!   when a flush reported the loss by failing never become durable.
//!
//! A failed write may be found or not, but it certainly overwrites nothing. Where data of a discard
//! may be found, anything may be found.
//!
//! Versions that neither a later read nor a reader after a loss of power can find are forgotten.
//! Memory is bounded by the written sectors, plus the versions that no flush has made durable.

use super::image::{Content, Image, Stamp};
use super::medium::Sample;
use super::spans::Spans;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::status::Status;
use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// The number of an event; 0 is before all events.
type Tick = u64;

/// The end of a bio in flight.
const IN_FLIGHT: Tick = Tick::MAX;

/// A bio that changes data. It is kept while its data may be found.
#[derive(Clone, Copy, Debug)]
struct Write {
    submitted: Tick,
    ended: Tick,
    /// Whether the bio succeeded.
    succeeded: bool,
    /// Whether the bio is durable as soon as it has succeeded.
    through: bool,
    discards: bool,
    /// Whether its data may be lost, and whether a flush has reported the loss
    /// ([lost-write-fails-flush]).
    loss: WriteLoss,
    /// Number of sectors whose versions include it.
    sectors: u64,
}

/// Whether a loss of power during the run may have taken a write ([lost-write-fails-flush]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteLoss {
    None,
    /// The write may be lost, and no flush has failed since it ended.
    Unreported,
    /// A flush has reported the loss by failing.
    Reported,
}

/// The state before all writes.
const NEVER: Write = Write {
    submitted: 0,
    ended: 0,
    succeeded: true,
    through: true,
    discards: false,
    loss: WriteLoss::None,
    sectors: u64::MAX,
};

/// The writes whose data a sector may hold, now or after a loss of power, in order of submission.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Versions(Vec<Stamp>);

impl Default for Versions {
    fn default() -> Self {
        Self(vec![Stamp::NEVER])
    }
}

/// A read in flight.
#[derive(Clone, Debug)]
struct Read {
    submitted: Tick,
    found: Vec<(Range<u64>, Content)>,
}

/// Wrong data in some sectors, or no data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The sectors.
    pub sectors: Range<u64>,
    /// The data found; `None`: a successful read brought no data.
    pub found: Option<Content>,
    /// The writes whose data would have been right.
    pub right: Vec<Stamp>,
}

impl Wrong {
    /// Number of sectors.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors.end - self.sectors.start
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.sectors;
        write!(f, "sectors {start}..{end}: found ")?;
        match self.found {
            None => f.write_str("no data at all")?,
            Some(Content { stamp, shift: 0 }) => write!(f, "{stamp}")?,
            Some(Content { stamp, shift }) => {
                write!(f, "{stamp} from sector {} on", start.wrapping_add_signed(shift))?;
            }
        }
        let right: Vec<_> = self.right.iter().map(Stamp::to_string).collect();
        write!(f, "; right: {}", right.join(", or "))
    }
}

/// The effect of a loss of power.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Sectors that no longer hold their last successful write nor anything newer, legally: no
    /// flush had made it durable ([durable-write-survives]).
    pub(crate) by_right: u64,
    /// All other sectors that hold wrong data.
    pub wrong: Vec<Wrong>,
}

/// The cache of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// A successful write is durable.
    WriteThrough,
    /// A write is durable after a successful flush ([durable-write-survives]).
    Volatile,
}

/// A sequential model of one disk.
#[derive(Clone, Debug)]
pub struct History {
    cache: Cache,
    now: Tick,
    writes: BTreeMap<Stamp, Write>,
    versions: Spans<Versions>,
    /// Bios in flight, by cookie: reads, writes, and the submission of flushes.
    reads: BTreeMap<u64, Read>,
    writing: BTreeMap<u64, Stamp>,
    flushing: BTreeMap<u64, Tick>,
    /// Submission of each read in flight.
    reading_since: BTreeSet<Tick>,
    /// Successful writes that ended before this are durable.
    flushed: Tick,
}

impl History {
    /// Returns the history of a disk without writes.
    #[must_use]
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            now: 0,
            writes: BTreeMap::new(),
            versions: Spans::new(),
            reads: BTreeMap::new(),
            writing: BTreeMap::new(),
            flushing: BTreeMap::new(),
            reading_since: BTreeSet::new(),
            flushed: 0,
        }
    }

    /// Records that `bio` was submitted. Its data, if any, is `stamp`, which is greater than all
    /// earlier stamps.
    pub fn submitted(&mut self, bio: &Bio, stamp: Stamp) {
        self.now += 1;
        let asks_for_flush = bio.flags.contains(Flags::PREFLUSH) && !bio.op.is_read();
        if bio.op == Op::Flush || asks_for_flush {
            self.flushing.insert(bio.cookie, self.now);
        }
        match bio.op {
            Op::Read => {
                let read = Read { submitted: self.now, found: Vec::new() };
                let other = self.reads.insert(bio.cookie, read);
                debug_assert!(other.is_none(), "cookie {} is in flight", bio.cookie);
                self.reading_since.insert(self.now);
            }
            Op::Write | Op::WriteZeroes | Op::Discard | Op::SecureErase => {
                self.write_begins(bio, stamp);
            }
            Op::Flush | Op::DriverIn | Op::DriverOut => {}
        }
    }

    fn write_begins(&mut self, bio: &Bio, stamp: Stamp) {
        let write = Write {
            submitted: self.now,
            ended: IN_FLIGHT,
            succeeded: false,
            through: self.cache == Cache::WriteThrough || bio.flags.contains(Flags::FUA),
            discards: bio.op == Op::Discard,
            loss: WriteLoss::None,
            sectors: u64::from(bio.sectors),
        };
        let last = self.writes.insert(stamp, write);
        assert!(last.is_none() && stamp != Stamp::NEVER, "the stamp of {stamp} is not new");
        let other = self.writing.insert(bio.cookie, stamp);
        debug_assert!(other.is_none(), "cookie {} is in flight", bio.cookie);
        self.versions.update(bio.sector..bio.end_sector(), |_, versions| versions.0.push(stamp));
    }

    /// Notes the data that a read found when the device completed it. The last sample of a sector
    /// counts, as a requeued request may find the same sectors again.
    pub fn found(&mut self, sample: Sample) {
        let Some(read) = self.reads.get_mut(&sample.cookie) else { return };
        read.found.retain(|(range, _)| {
            range.start >= sample.range.end || range.end <= sample.range.start
        });
        read.found.extend(sample.found);
    }

    /// Records that `bio` has ended with `status`. Returns the wrong data that its submitter got.
    pub fn ended(&mut self, bio: &Bio, status: Status) -> Vec<Wrong> {
        self.now += 1;
        debug_assert!(self.flushed < self.now && self.now < IN_FLIGHT, "the clock of events");
        let succeeded = status == Status::Ok;
        match self.flushing.remove(&bio.cookie) {
            Some(submitted) if succeeded => self.flushed = self.flushed.max(submitted),
            // A FUA write may be followed by a postflush.
            None if succeeded || !bio.flags.contains(Flags::FUA) => {}
            _ => self.report_loss(),
        }
        if let Some(stamp) = self.writing.remove(&bio.cookie) {
            let write = self.writes.get_mut(&stamp).expect("a write in flight should be known");
            (write.ended, write.succeeded) = (self.now, succeeded);
            self.forget(bio.sector..bio.end_sector());
        }
        let Some(read) = self.reads.remove(&bio.cookie) else { return Vec::new() };
        let known = self.reading_since.remove(&read.submitted);
        debug_assert!(known, "a read in flight holds back the forgetting of versions");
        if succeeded { self.check_read(bio, read) } else { Vec::new() }
    }

    /// Checks the data of a successful read ([read-finds-latest-write]).
    fn check_read(&self, bio: &Bio, read: Read) -> Vec<Wrong> {
        let hides = |write: &Write| write.ended < read.submitted && self.hides_now(write);
        let mut wrong = Vec::new();
        let mut came = Spans::new();
        for (range, content) in read.found {
            came.set(range.clone(), true);
            self.check(range, content, hides, &mut wrong);
        }
        let missing = came.pieces(bio.sector..bio.end_sector()).filter(|(_, came)| !**came);
        wrong.extend(missing.map(|(sectors, _)| Wrong {
            right: self.right_at(sectors.start, hides),
            sectors,
            found: None,
        }));
        wrong
    }

    /// Checks the data that a read of the whole disk would find now ([read-finds-latest-write]).
    #[must_use]
    pub(crate) fn check_live(&self, image: &Image) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (range, content) in image.pieces(0..u64::MAX) {
            self.check(range, *content, |write| self.hides_now(write), &mut wrong);
        }
        wrong
    }

    /// Checks the data left by a loss of power ([durable-write-survives]). The history goes on as
    /// if there had been no loss.
    #[must_use]
    pub(crate) fn check_survivors(&self, image: &Image) -> Loss {
        let mut loss = Loss::default();
        let mut lost = Vec::new();
        for (range, content) in image.pieces(0..u64::MAX) {
            self.check(range.clone(), *content, |write| self.is_durable(write), &mut loss.wrong);
            self.check(range, *content, |write| self.hides_now(write), &mut lost);
        }
        // Every check against durable writes is weaker than one against all successful ones.
        debug_assert!(loss.wrong.len() <= lost.len(), "durable writes are successful writes");
        // Data that is wrong after a loss of power is wrong without one: durable writes have ended.
        let [all, of_durable] =
            [&lost, &loss.wrong].map(|wrong| wrong.iter().map(Wrong::sectors).sum::<u64>());
        loss.by_right = all - of_durable;
        loss
    }

    /// Whether `write` is durable ([durable-write-survives]).
    fn is_durable(&self, write: &Write) -> bool {
        debug_assert!(!write.succeeded || write.ended != IN_FLIGHT, "only an ended write succeeds");
        let flushed = write.ended < self.flushed && write.loss != WriteLoss::Reported;
        write.succeeded && (write.through || flushed)
    }

    /// Whether a later read cannot find data of writes before `write` ([read-finds-latest-write]).
    fn hides_now(&self, write: &Write) -> bool {
        write.succeeded && (write.loss == WriteLoss::None || self.is_durable(write))
    }

    /// Records that the device has lost power during the run ([lost-write-fails-flush]).
    pub(crate) fn lost_power(&mut self) {
        let mut writes = core::mem::take(&mut self.writes);
        for write in writes.values_mut() {
            if write.loss == WriteLoss::None && !write.through && !self.is_durable(write) {
                write.loss = WriteLoss::Unreported;
            }
        }
        self.writes = writes;
    }

    /// Records that a flush has failed, so that the submitter knows of the loss
    /// ([lost-write-fails-flush]).
    fn report_loss(&mut self) {
        let mut writes = core::mem::take(&mut self.writes);
        for write in writes.values_mut() {
            let ended = write.ended != IN_FLIGHT;
            if write.loss == WriteLoss::Unreported && ended && !self.is_durable(write) {
                write.loss = WriteLoss::Reported;
            }
        }
        self.writes = writes;
    }

    fn write(&self, stamp: Stamp) -> &Write {
        if stamp == Stamp::NEVER { &NEVER } else { &self.writes[&stamp] }
    }

    /// Returns the writes of `versions` that may be found if `hides` says which writes hide all
    /// earlier ones.
    fn right<'a>(
        &'a self,
        versions: &'a Versions,
        hides: impl Fn(&Write) -> bool,
    ) -> impl Iterator<Item = Stamp> + 'a {
        debug_assert!(!versions.0.is_empty(), "a sector has at least one version");
        let hiding = versions.0.iter().map(|stamp| self.write(*stamp)).filter(|one| hides(one));
        let horizon = hiding.map(|write| write.submitted).max().unwrap_or(0);
        versions.0.iter().copied().filter(move |stamp| self.write(*stamp).ended >= horizon)
    }

    fn right_at(&self, sector: u64, hides: impl Fn(&Write) -> bool) -> Vec<Stamp> {
        let versions = self.versions.pieces(sector..sector + 1).map(|(_, versions)| versions);
        versions.flat_map(|versions| self.right(versions, &hides)).collect()
    }

    /// Checks that `content` may be found in all of `range`.
    fn check(
        &self,
        range: Range<u64>,
        content: Content,
        hides: impl Fn(&Write) -> bool,
        wrong: &mut Vec<Wrong>,
    ) {
        for (sectors, versions) in self.versions.pieces(range) {
            let fits = |stamp: Stamp| {
                self.write(stamp).discards // a discard allows any content
                    || content == Content::of(stamp) // [data-at-its-own-sector]
            };
            if !self.right(versions, &hides).any(fits) {
                let right = self.right(versions, &hides).collect();
                wrong.push(Wrong { sectors, found: Some(content), right });
            }
        }
    }

    /// Forgets the versions in `range` that can no longer be found.
    fn forget(&mut self, range: Range<u64>) {
        let oldest_read = self.reading_since.first().copied().unwrap_or(IN_FLIGHT);
        let mut versions = core::mem::take(&mut self.versions);
        versions.update(range, |sectors, versions| {
            let hides = |write: &Write| write.ended < oldest_read && self.is_durable(write);
            let mut right: Vec<_> = self.right(versions, hides).collect();
            core::mem::swap(&mut right, &mut versions.0);
            let forgotten = right.iter().filter(|stamp| !versions.0.contains(stamp));
            for stamp in forgotten.filter(|stamp| **stamp != Stamp::NEVER) {
                let write = self.writes.get_mut(stamp).expect("a version should have its write");
                write.sectors -= sectors.end - sectors.start;
                if write.sectors == 0 {
                    self.writes.remove(stamp);
                }
            }
        });
        self.versions = versions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::unit::QueueId;
    use proptest::prelude::*;

    const SECTORS: u64 = 12;

    #[derive(Clone, Debug)]
    enum Step {
        Submit(Op, Range<u64>, Flags),
        /// A bio in flight ends, with or without success.
        End(prop::sample::Index, bool),
        LosePower,
    }

    fn step() -> impl Strategy<Value = Step> {
        let ops = [Op::Read, Op::Write, Op::Write, Op::Write, Op::Flush, Op::Discard];
        let range = (0..SECTORS, 1..6_u64).prop_map(|(at, len)| at..(at + len).min(SECTORS));
        let flags = prop::sample::select(vec![Flags::NONE, Flags::FUA, Flags::PREFLUSH]);
        let submit = (prop::sample::select(ops.to_vec()), range, flags)
            .prop_map(|(op, range, flags)| Step::Submit(op, range, flags));
        let end = (any::<prop::sample::Index>(), prop::bool::weighted(0.8))
            .prop_map(|(which, well)| Step::End(which, well));
        prop_oneof![8 => submit, 8 => end, 1 => Just(Step::LosePower)]
    }

    /// A bio in the slow model, which never forgets one.
    #[derive(Clone, Debug)]
    struct Known {
        bio: Bio,
        submitted: u64,
        ended: Option<(u64, bool)>,
        /// Whether it was lost, and a flush has said so.
        lost: bool,
        reported: bool,
    }

    impl Known {
        fn done(&self) -> Option<u64> {
            self.ended.filter(|(_, well)| *well).map(|(at, _)| at)
        }

        fn writes(&self, sector: u64) -> bool {
            matches!(self.bio.op, Op::Write | Op::Discard)
                && (self.bio.sector..self.bio.end_sector()).contains(&sector)
        }

        fn flushes(&self) -> bool {
            self.bio.op == Op::Flush
                || self.bio.op != Op::Read && self.bio.flags.contains(Flags::PREFLUSH)
        }

        fn is_before(&self, other: &Self) -> bool {
            self.ended.is_some_and(|(at, _)| at < other.submitted)
        }
    }

    /// The rules applied literally to all bios of the past ([read-finds-latest-write],
    /// [durable-write-survives], [lost-write-fails-flush]).
    #[derive(Debug, Default)]
    struct Slow {
        write_through: bool,
        bios: Vec<Known>,
        now: u64,
    }

    impl Slow {
        /// Returns the writes that are not before a write that hides them.
        fn right(&self, sector: u64, hides: impl Fn(&Known) -> bool) -> Vec<Stamp> {
            let writes: Vec<_> = self.bios.iter().filter(|known| known.writes(sector)).collect();
            let hiding: Vec<_> = writes.iter().filter(|write| hides(write)).collect();
            let never = hiding.is_empty().then_some(Stamp::NEVER);
            let others = writes
                .iter()
                .filter(|one| !hiding.iter().any(|other| one.is_before(other)))
                .map(|one| Stamp(one.bio.cookie));
            never.into_iter().chain(others).collect()
        }

        fn is_durable(&self, write: &Known) -> bool {
            let flushed =
                |flush: &Known| flush.flushes() && flush.done().is_some() && write.is_before(flush);
            let through = self.is_through(write);
            let flushed = !write.reported && self.bios.iter().any(flushed);
            write.done().is_some() && (through || flushed)
        }

        fn is_through(&self, write: &Known) -> bool {
            self.write_through || write.bio.flags.contains(Flags::FUA)
        }

        /// Whether a later read cannot find older data.
        fn hides(&self, write: &Known) -> bool {
            write.done().is_some() && (!write.lost || self.is_durable(write))
        }

        /// Marks the bios that `which` selects.
        fn mark(&mut self, which: impl Fn(&Self, &Known) -> bool, mark: impl Fn(&mut Known)) {
            let marked: Vec<_> = self.bios.iter().map(|known| which(self, known)).collect();
            let marked = self.bios.iter_mut().zip(marked).filter(|(_, marked)| *marked);
            marked.for_each(|(known, _)| mark(known));
        }

        fn lose_power(&mut self) {
            let losing =
                |slow: &Self, known: &Known| !slow.is_through(known) && !slow.is_durable(known);
            self.mark(losing, |known| known.lost = true);
        }

        fn report_loss(&mut self) {
            let hit = |slow: &Self, known: &Known| {
                known.lost && known.ended.is_some() && !slow.is_durable(known)
            };
            self.mark(hit, |known| known.reported = true);
        }
    }

    proptest! {
        #[test]
        fn the_history_agrees_with_its_rules(
            write_through in prop::bool::weighted(0.2),
            steps in proptest::collection::vec(step(), 1..80),
        ) {
            let cache = if write_through { Cache::WriteThrough } else { Cache::Volatile };
            let mut history = History::new(cache);
            let mut slow = Slow { write_through, ..Slow::default() };
            for step in steps {
                let in_flight: Vec<_> =
                    (0..slow.bios.len()).filter(|at| slow.bios[*at].ended.is_none()).collect();
                if matches!(step, Step::End(..)) && in_flight.is_empty() {
                    continue;
                }
                slow.now += u64::from(!matches!(step, Step::LosePower));
                match step {
                    Step::Submit(op, range, flags) => {
                        let cookie = slow.bios.len() as u64 + 1;
                        let range = if op == Op::Flush { 0..0 } else { range };
                        let sectors = u32::try_from(range.end - range.start).unwrap();
                        let bio = Bio::new(op, range.start, sectors, cookie).with_flags(flags);
                        history.submitted(&bio, Stamp(cookie));
                        let (submitted, ended) = (slow.now, None);
                        slow.bios.push(Known { bio, submitted, ended, lost: false, reported: false });
                    }
                    Step::End(which, well) => {
                        let at = in_flight[which.index(in_flight.len())];
                        let bio = slow.bios[at].bio;
                        let status = if well { Status::Ok } else { Status::IoError };
                        let _ = history.ended(&bio, status);
                        let flushes = bio.op == Op::Flush || bio.flags.contains(Flags::FUA)
                            || bio.op != Op::Read && bio.flags.contains(Flags::PREFLUSH);
                        if flushes && !well {
                            slow.report_loss();
                        }
                        slow.bios[at].ended = Some((slow.now, well));
                    }
                    Step::LosePower => {
                        history.lost_power();
                        slow.lose_power();
                    }
                }
                let reads = slow.bios.iter().filter(|known| {
                    known.bio.op == Op::Read && known.ended.is_none()
                });
                let since: Vec<_> = reads.map(|read| read.submitted).chain([u64::MAX]).collect();
                for sector in 0..SECTORS {
                    for since in &since {
                        let right = slow.right(sector, |known| {
                            known.done().is_some_and(|at| at < *since) && slow.hides(known)
                        });
                        let said = history.right_at(sector, |write| {
                            write.ended < *since && history.hides_now(write)
                        });
                        prop_assert_eq!(said, right, "sector {}, read since {}", sector, since);
                    }
                    let right = slow.right(sector, |known| slow.is_durable(known));
                    let said = history.right_at(sector, |write| history.is_durable(write));
                    prop_assert_eq!(said, right, "sector {} without power", sector);
                }
            }
        }
    }

    #[test]
    fn versions_that_nobody_can_find_are_forgotten() {
        let mut history = History::new(Cache::WriteThrough);
        for number in 1..10_000 {
            let bio = Bio::write(number % 7 * 8, 8, number);
            history.submitted(&bio, Stamp(number));
            assert!(history.ended(&bio, Status::Ok).is_empty());
        }
        assert_eq!((history.writes.len(), history.versions.len()), (7, 7));
    }

    fn read_finds(history: &mut History, found: &[(Range<u64>, Content)]) -> Vec<String> {
        let bio = Bio::read(0, 8, 99);
        history.submitted(&bio, Stamp::NEVER);
        for (range, content) in found {
            let found = vec![(range.clone(), *content)];
            history.found(Sample { queue: QueueId(0), cookie: 99, range: range.clone(), found });
        }
        history.ended(&bio, Status::Ok).iter().map(Wrong::to_string).collect()
    }

    // [read-finds-latest-write], [data-at-its-own-sector]
    #[test]
    fn wrong_data_is_described_in_words() {
        let mut history = History::new(Cache::WriteThrough);
        let bio = Bio::write(0, 8, 1);
        history.submitted(&bio, Stamp(1));
        let _ = history.ended(&bio, Status::Ok);
        let right = Content::of(Stamp(1));
        assert_eq!(read_finds(&mut history, &[(0..8, right)]), [""; 0]);
        let old = read_finds(&mut history, &[(0..4, right), (4..8, Content::default())]);
        let words = "sectors 4..8: found nothing, as before the first write; right: write 1";
        assert_eq!(old, [words]);
        let shifted = Content { shift: 100, ..right };
        let astray = read_finds(&mut history, &[(0..8, shifted)]);
        assert_eq!(astray, ["sectors 0..8: found write 1 from sector 100 on; right: write 1"]);
        let none = read_finds(&mut history, &[(2..8, right)]);
        assert_eq!(none, ["sectors 0..2: found no data at all; right: write 1"]);
    }

    fn words(sectors: &str) -> String {
        format!("sectors {sectors}: found nothing, as before the first write; right: write 1")
    }

    #[test]
    fn the_last_data_of_each_sector_counts_for_a_read() {
        let mut history = History::new(Cache::WriteThrough);
        let bio = Bio::write(0, 8, 1);
        history.submitted(&bio, Stamp(1));
        let _ = history.ended(&bio, Status::Ok);
        let right = Content::of(Stamp(1));
        let old = Content::default();
        // A request that was tried again found all of its sectors again.
        assert_eq!(read_finds(&mut history, &[(0..8, old), (0..8, right)]), [""; 0]);
        assert_eq!(read_finds(&mut history, &[(0..8, right), (0..8, old)]), [words("0..8")]);
        // Its neighbour did not.
        assert_eq!(read_finds(&mut history, &[(0..4, old), (4..8, right)]), [words("0..4")]);
        assert_eq!(read_finds(&mut history, &[(4..8, old), (0..4, right)]), [words("4..8")]);
    }

    /// A write before `lost_power`, and then a flush for each of `flushes`, with its success;
    /// returns the sectors that may hold the old data, in a running system and after a second loss
    /// of power.
    fn old_data_after(flags: Flags, flushes: &[bool]) -> (bool, bool) {
        let mut history = History::new(Cache::Volatile);
        let write = Bio::write(0, 8, 1).with_flags(flags);
        history.submitted(&write, Stamp(1));
        let _ = history.ended(&write, Status::Ok);
        history.lost_power();
        for (well, cookie) in flushes.iter().zip(2..) {
            let flush = Bio::new(Op::Flush, 0, 0, cookie);
            history.submitted(&flush, Stamp::NEVER);
            let _ = history.ended(&flush, if *well { Status::Ok } else { Status::IoError });
        }
        let image = Image::new();
        (history.check_live(&image).is_empty(), history.check_survivors(&image).wrong.is_empty())
    }

    // [lost-write-fails-flush]
    #[test]
    fn a_lost_write_becomes_durable_by_a_flush_unless_one_has_failed() {
        assert_eq!(old_data_after(Flags::NONE, &[]), (true, true), "lost, and nobody asked");
        assert_eq!(old_data_after(Flags::FUA, &[]), (false, false), "durable before the loss");
        assert_eq!(old_data_after(Flags::NONE, &[true]), (false, false), "the flush promised it");
        assert_eq!(old_data_after(Flags::NONE, &[false]), (true, true), "reported");
        assert_eq!(old_data_after(Flags::NONE, &[false, true]), (true, true), "reported before");
        let promised = old_data_after(Flags::NONE, &[true, false]);
        assert_eq!(promised, (false, false), "a later failure takes no promise back");
    }

    #[test]
    fn a_discard_excuses_anything_until_the_next_write() {
        let mut history = History::new(Cache::WriteThrough);
        let discard = Bio::new(Op::Discard, 0, 8, 1);
        history.submitted(&discard, Stamp(1));
        let _ = history.ended(&discard, Status::Ok);
        assert_eq!(read_finds(&mut history, &[(0..8, Content::of(Stamp(77)))]), [""; 0]);
        let write = Bio::write(0, 8, 2);
        history.submitted(&write, Stamp(2));
        let _ = history.ended(&write, Status::Ok);
        let words = "sectors 0..8: found write 77; right: write 2";
        assert_eq!(read_finds(&mut history, &[(0..8, Content::of(Stamp(77)))]), [words]);
    }

    #[test]
    fn a_missing_first_or_last_sector_is_found() {
        for sector in [0, u64::MAX - 1] {
            let mut history = History::new(Cache::WriteThrough);
            let write = Bio::write(sector, 1, 1);
            history.submitted(&write, Stamp(1));
            let _ = history.ended(&write, Status::Ok);
            let image = Image::new();
            let found = [history.check_live(&image), history.check_survivors(&image).wrong];
            assert_eq!(found.map(|wrong| wrong.iter().map(Wrong::sectors).sum::<u64>()), [1, 1]);
        }
    }

    // [durable-write-survives]
    #[test]
    fn a_loss_of_power_may_take_writes_that_were_not_flushed() {
        let mut history = History::new(Cache::Volatile);
        let mut image = Image::new();
        for (number, flags) in [(1, Flags::NONE), (2, Flags::FUA)] {
            let bio = Bio::write(number * 8, 8, number).with_flags(flags);
            history.submitted(&bio, Stamp(number));
            let _ = history.ended(&bio, Status::Ok);
        }
        let loss = history.check_survivors(&image);
        assert_eq!((loss.by_right, loss.wrong.len()), (8, 1), "the second write is durable");
        assert_eq!(loss.wrong[0].sectors, 16..24);
        image.set(16..24, Content::of(Stamp(2)));
        let loss = history.check_survivors(&image);
        assert_eq!(loss, Loss { by_right: 8, wrong: Vec::new() });
    }
}
