//! [`History`]: a sequential model of one disk, that says what may be found on it.
//!
//! It knows bios as their submitter sees them, and nothing else: when each was submitted, when and
//! how it ended. Time is a counter of these events. One bio is *before* another if it ended before
//! the other was submitted; else they are concurrent, and any order of both is right.
//!
//! # Rules
//!
//! - **Y1.** A read finds data of a write that was submitted before the read ended, and that is not
//!   before another write that ended well before the read was submitted.
//! - **Y2.** A write is *durable* when it has ended well, and the device had no volatile cache, or
//!   the write asked for it ([`Flags::FUA`]), or a flush that it was before has ended well. What
//!   asks for a flush before its own data ([`Flags::PREFLUSH`]) is a flush, too.
//! - **Y3.** After a loss of power a sector holds data of a write that is not before a durable one.
//! - **Y4.** A write that failed may be found or not, as one that ended well; nothing is overwritten
//!   by it for certain.
//! - **Y5.** Where data of a discard may be found, anything may.
//! - **Y6.** Data is found where it was meant to be.
//! - **Y7.** When a device loses power under way, writes submitted before that are *lost* if they were
//!   not durable: data of those before them may be found, too. A flush makes durable what was lost, so
//!   it must not end well; what had ended when one that failed told of it is never durable.
//!
//! What can be found no longer, by a read to come or after a loss of power, is forgotten; so memory
//! is bounded by what is written, but for versions that no flush has made durable.

use super::image::{Content, Image, Stamp};
use super::medium::Sample;
use super::spans::Spans;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::status::Status;
use core::fmt;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// A number of an event: 0 is before all of them.
type Tick = u64;

/// Ended at no time yet.
const UNDER_WAY: Tick = Tick::MAX;

/// A bio that changes data, while its data may be found.
#[derive(Clone, Copy, Debug)]
struct Write {
    submitted: Tick,
    ended: Tick,
    /// It ended well.
    done: bool,
    /// Durable as soon as it has ended well (Y2).
    through: bool,
    discards: bool,
    /// It may be lost, and whether that was told (Y7).
    lost: bool,
    told: bool,
    /// In the versions of how many sectors it is.
    sectors: u64,
}

/// As it were before all others.
const NEVER: Write = Write {
    submitted: 0,
    ended: 0,
    done: true,
    through: true,
    discards: false,
    lost: false,
    told: false,
    sectors: u64::MAX,
};

/// Whose data a sector may hold, now or after a loss of power, in the order of submission.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Versions(Vec<Stamp>);

impl Default for Versions {
    fn default() -> Self {
        Self(vec![Stamp::NEVER])
    }
}

/// A read under way.
#[derive(Clone, Debug)]
struct Read {
    submitted: Tick,
    found: Vec<(Range<u64>, Content)>,
}

/// Something was found that may not be there, or nothing was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// In these sectors.
    pub sectors: Range<u64>,
    /// What was found; `None`: a read that ended well brought no data.
    pub found: Option<Content>,
    /// Whose data would have been right.
    pub right: Vec<Stamp>,
}

impl Wrong {
    /// How many sectors hold it.
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

/// What a loss of power took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Sectors whose last write had ended well, and no longer hold it nor anything newer; by right
    /// (Y3), as no flush had made it durable.
    pub by_right: u64,
    /// The others.
    pub wrong: Vec<Wrong>,
}

/// How a device treats what is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// What has ended well is durable.
    WriteThrough,
    /// It is durable when a flush has ended well (Y2).
    Volatile,
}

/// The model.
#[derive(Clone, Debug)]
pub struct History {
    cache: Cache,
    now: Tick,
    writes: BTreeMap<Stamp, Write>,
    versions: Spans<Versions>,
    /// Bios under way, by cookie: reads, writes, and when flushes were submitted.
    reads: BTreeMap<u64, Read>,
    writing: BTreeMap<u64, Stamp>,
    flushing: BTreeMap<u64, Tick>,
    /// When the reads under way were submitted.
    reading_since: BTreeSet<Tick>,
    /// Writes that ended before this are durable (Y2).
    flushed: Tick,
}

impl History {
    /// A disk that nobody has written to.
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

    /// `bio` was taken. What it may change becomes `stamp`, which is greater than all before.
    pub fn submitted(&mut self, bio: &Bio, stamp: Stamp) {
        self.now += 1;
        let asks_for_flush = bio.flags.contains(Flags::PREFLUSH) && !bio.op.is_read();
        if bio.op == Op::Flush || asks_for_flush {
            self.flushing.insert(bio.cookie, self.now);
        }
        match bio.op {
            Op::Read => {
                self.reads.insert(bio.cookie, Read { submitted: self.now, found: Vec::new() });
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
            ended: UNDER_WAY,
            done: false,
            through: self.cache == Cache::WriteThrough || bio.flags.contains(Flags::FUA),
            discards: bio.op == Op::Discard,
            lost: false,
            told: false,
            sectors: u64::from(bio.sectors),
        };
        let last = self.writes.insert(stamp, write);
        assert!(last.is_none() && stamp != Stamp::NEVER, "{stamp} is not new");
        self.writing.insert(bio.cookie, stamp);
        self.versions.update(bio.sector..bio.end_sector(), |_, versions| versions.0.push(stamp));
        self.forget(bio.sector..bio.end_sector());
    }

    /// What a read found when the device was done with it. Of what was found for the same sectors
    /// more than once, as after a requeue, the last counts.
    pub fn found(&mut self, sample: Sample) {
        let Some(read) = self.reads.get_mut(&sample.cookie) else { return };
        let again = |(range, _): &(Range<u64>, Content)| {
            range.start < sample.range.end && range.end > sample.range.start
        };
        read.found.retain(|found| !again(found));
        read.found.extend(sample.found);
    }

    /// `bio` has ended with `status`: what its submitter is to complain of.
    pub fn ended(&mut self, bio: &Bio, status: Status) -> Vec<Wrong> {
        self.now += 1;
        let done = status == Status::Ok;
        match self.flushing.remove(&bio.cookie) {
            Some(submitted) if done => self.flushed = self.flushed.max(submitted),
            // Forced data may have a flush behind it.
            None if done || !bio.flags.contains(Flags::FUA) => {}
            _ => self.tell_loss(),
        }
        if let Some(stamp) = self.writing.remove(&bio.cookie) {
            let write = self.writes.get_mut(&stamp).expect("it is under way");
            (write.ended, write.done) = (self.now, done);
            self.forget(bio.sector..bio.end_sector());
        }
        let Some(read) = self.reads.remove(&bio.cookie) else { return Vec::new() };
        self.reading_since.remove(&read.submitted);
        if done { self.check_read(bio, read) } else { Vec::new() }
    }

    /// Y1.
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

    /// Holds what a read of the whole disk would find now against Y1.
    #[must_use]
    pub fn check_live(&self, image: &Image) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        for (range, content) in image.pieces(0..u64::MAX) {
            self.check(range, *content, |write| self.hides_now(write), &mut wrong);
        }
        wrong
    }

    /// Holds what is left after a loss of power against Y3. The history goes on as if there had been
    /// none.
    #[must_use]
    pub fn check_survivors(&self, image: &Image) -> Loss {
        let mut loss = Loss::default();
        let mut gone = Vec::new();
        for (range, content) in image.pieces(0..u64::MAX) {
            self.check(range.clone(), *content, |write| self.is_durable(write), &mut loss.wrong);
            self.check(range, *content, |write| self.hides_now(write), &mut gone);
        }
        let sectors = |all: &[Wrong]| all.iter().map(Wrong::sectors).sum::<u64>();
        // What is wrong after a loss of power would be wrong without: what is durable has ended well.
        loss.by_right = sectors(&gone) - sectors(&loss.wrong);
        loss
    }

    /// Y2.
    fn is_durable(&self, write: &Write) -> bool {
        write.done && (write.through || write.ended < self.flushed && !write.told)
    }

    /// Y1, for a read from now on.
    fn hides_now(&self, write: &Write) -> bool {
        write.done && (!write.lost || self.is_durable(write)) // Y7
    }

    /// The device has lost power, and goes on (Y7).
    pub fn lost_power(&mut self) {
        let mut writes = core::mem::take(&mut self.writes);
        for write in writes.values_mut() {
            write.lost |= !write.through && !self.is_durable(write);
        }
        self.writes = writes;
    }

    /// A flush has failed: whoever asks knows of what was lost (Y7).
    fn tell_loss(&mut self) {
        for write in self.writes.values_mut().filter(|write| write.lost) {
            write.told |= write.ended != UNDER_WAY;
        }
    }

    fn write(&self, stamp: Stamp) -> &Write {
        if stamp == Stamp::NEVER { &NEVER } else { &self.writes[&stamp] }
    }

    /// What of `versions` may be found, where all before a write that `hides` may not.
    fn right<'a>(
        &'a self,
        versions: &'a Versions,
        hides: impl Fn(&Write) -> bool,
    ) -> impl Iterator<Item = Stamp> + 'a {
        let hiding = versions.0.iter().map(|stamp| self.write(*stamp)).filter(|one| hides(one));
        let horizon = hiding.map(|write| write.submitted).max().unwrap_or(0);
        versions.0.iter().copied().filter(move |stamp| self.write(*stamp).ended >= horizon)
    }

    fn right_at(&self, sector: u64, hides: impl Fn(&Write) -> bool) -> Vec<Stamp> {
        let versions = self.versions.pieces(sector..sector + 1).map(|(_, versions)| versions);
        versions.flat_map(|versions| self.right(versions, &hides)).collect()
    }

    /// `content` was found in all of `range`.
    fn check(
        &self,
        range: Range<u64>,
        content: Content,
        hides: impl Fn(&Write) -> bool,
        wrong: &mut Vec<Wrong>,
    ) {
        for (sectors, versions) in self.versions.pieces(range) {
            let fits = |stamp: Stamp| {
                self.write(stamp).discards // Y5
                    || content == Content::of(stamp) // Y6
            };
            if !self.right(versions, &hides).any(fits) {
                let right = self.right(versions, &hides).collect();
                wrong.push(Wrong { sectors, found: Some(content), right });
            }
        }
    }

    /// Forgets what in `range` neither a read may find any more, nor who looks after a loss of power.
    fn forget(&mut self, range: Range<u64>) {
        let oldest_read = self.reading_since.first().copied().unwrap_or(UNDER_WAY);
        let mut versions = core::mem::take(&mut self.versions);
        versions.update(range, |sectors, versions| {
            let hides = |write: &Write| write.ended < oldest_read && self.is_durable(write);
            let mut right: Vec<_> = self.right(versions, hides).collect();
            core::mem::swap(&mut right, &mut versions.0);
            let gone = right.iter().filter(|stamp| !versions.0.contains(stamp));
            for stamp in gone.filter(|stamp| **stamp != Stamp::NEVER) {
                let write = self.writes.get_mut(stamp).expect("it is among the versions");
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
        /// One of those under way ends, well or not.
        End(prop::sample::Index, bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        let ops = [Op::Read, Op::Write, Op::Write, Op::Write, Op::Flush, Op::Discard];
        let range = (0..SECTORS, 1..6_u64).prop_map(|(at, len)| at..(at + len).min(SECTORS));
        let flags = prop::sample::select(vec![Flags::NONE, Flags::FUA, Flags::PREFLUSH]);
        let submit = (prop::sample::select(ops.to_vec()), range, flags)
            .prop_map(|(op, range, flags)| Step::Submit(op, range, flags));
        let end = (any::<prop::sample::Index>(), prop::bool::weighted(0.8))
            .prop_map(|(which, well)| Step::End(which, well));
        prop_oneof![submit, end]
    }

    /// A bio as the slow model keeps it, for ever.
    #[derive(Clone, Debug)]
    struct Known {
        bio: Bio,
        submitted: u64,
        ended: Option<(u64, bool)>,
    }

    impl Known {
        fn done(&self) -> Option<u64> {
            self.ended.filter(|(_, well)| *well).map(|(at, _)| at)
        }

        fn writes(&self, sector: u64) -> bool {
            matches!(self.bio.op, Op::Write | Op::Discard)
                && (self.bio.sector..self.bio.end_sector()).contains(&sector)
        }

        fn is_before(&self, other: &Self) -> bool {
            self.ended.is_some_and(|(at, _)| at < other.submitted)
        }
    }

    /// Every rule as it is written, over all that ever happened.
    #[derive(Debug, Default)]
    struct Slow {
        bios: Vec<Known>,
        now: u64,
    }

    impl Slow {
        /// What is not before one of those that hide it.
        fn right(&self, sector: u64, hides: impl Fn(&Known) -> bool) -> Vec<Stamp> {
            let writes = || self.bios.iter().filter(|known| known.writes(sector));
            let hidden = |one: &Known| writes().any(|other| hides(other) && one.is_before(other));
            let never = (!writes().any(&hides)).then_some(Stamp::NEVER);
            let others = writes().filter(|one| !hidden(one)).map(|one| Stamp(one.bio.cookie));
            never.into_iter().chain(others).collect()
        }

        fn is_durable(&self, write: &Known) -> bool {
            let flushes = |known: &Known| {
                known.bio.op == Op::Flush
                    || known.bio.op != Op::Read && known.bio.flags.contains(Flags::PREFLUSH)
            };
            let flushed =
                |flush: &Known| flushes(flush) && flush.done().is_some() && write.is_before(flush);
            let fua = write.bio.flags.contains(Flags::FUA);
            write.done().is_some() && (fua || self.bios.iter().any(flushed))
        }
    }

    proptest! {
        #[test]
        fn it_says_what_the_rules_say(steps in proptest::collection::vec(step(), 1..80)) {
            let mut history = History::new(Cache::Volatile);
            let mut slow = Slow::default();
            for step in steps {
                let under_way: Vec<_> =
                    (0..slow.bios.len()).filter(|at| slow.bios[*at].ended.is_none()).collect();
                if matches!(step, Step::End(..)) && under_way.is_empty() {
                    continue;
                }
                slow.now += 1;
                match step {
                    Step::Submit(op, range, flags) => {
                        let cookie = slow.bios.len() as u64 + 1;
                        let range = if op == Op::Flush { 0..0 } else { range };
                        let sectors = u32::try_from(range.end - range.start).unwrap();
                        let bio = Bio::new(op, range.start, sectors, cookie).with_flags(flags);
                        history.submitted(&bio, Stamp(cookie));
                        slow.bios.push(Known { bio, submitted: slow.now, ended: None });
                    }
                    Step::End(which, well) => {
                        let known = &mut slow.bios[under_way[which.index(under_way.len())]];
                        let status = if well { Status::Ok } else { Status::IoError };
                        let _ = history.ended(&known.bio, status);
                        known.ended = Some((slow.now, well));
                    }
                }
                let reads = slow.bios.iter().filter(|known| {
                    known.bio.op == Op::Read && known.ended.is_none()
                });
                let since: Vec<_> = reads.map(|read| read.submitted).chain([u64::MAX]).collect();
                for sector in 0..SECTORS {
                    for since in &since {
                        let right = slow.right(sector, |known| {
                            known.done().is_some_and(|at| at < *since)
                        });
                        let said = history.right_at(sector, |write| {
                            write.done && write.ended < *since
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
    fn what_can_be_found_no_longer_is_forgotten() {
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

    #[test]
    fn what_is_wrong_is_said_in_words() {
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
    fn a_loss_of_power_takes_by_right_what_nobody_flushed() {
        let mut history = History::new(Cache::Volatile);
        let mut image = Image::new();
        for (number, flags) in [(1, Flags::NONE), (2, Flags::FUA)] {
            let bio = Bio::write(number * 8, 8, number).with_flags(flags);
            history.submitted(&bio, Stamp(number));
            let _ = history.ended(&bio, Status::Ok);
        }
        let loss = history.check_survivors(&image);
        assert_eq!((loss.by_right, loss.wrong.len()), (8, 1), "the second was to be durable");
        assert_eq!(loss.wrong[0].sectors, 16..24);
        image.set(16..24, Content::of(Stamp(2)));
        let loss = history.check_survivors(&image);
        assert_eq!(loss, Loss { by_right: 8, wrong: Vec::new() });
    }
}
