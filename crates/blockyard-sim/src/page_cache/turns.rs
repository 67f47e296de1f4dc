//! The order in which the flusher of a disk writes its inodes: in rounds, those first that have
//! been dirty for longest, and each in turns of one chunk. An inode is a file of a file system, or
//! a raw disk, whatever the parts of it that jobs use.
//!
//! ```text
//! dirty ─ old enough as a round begins ─► round ─ its turn ─┬─► clean
//!   ▲                                       ▲               ├─ chunk used up ─► next ─┐
//!   │                                       └─ the next round begins ─────────────────┘
//!   └───────────────────────────────────────────────────────┴─ its end reached
//! ```
//!
//! Linux 6.12 (`queue_io`, `requeue_inode`): `dirty` is its list `b_dirty`, `round` is `b_io`, and
//! `next` is `b_more_io`. A round that stops, as there are few enough pages, goes on at the next
//! look, whatever the age of its inodes.

use super::{FileId, Place};
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;
use std::collections::{BTreeSet, VecDeque};

/// An inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InodeId(usize);

#[derive(Clone, Debug)]
struct Inode {
    disk: QueueId,
    /// The file, unless it is a raw disk.
    file: Option<FileId>,
    /// The number of its dirty pages.
    dirty: u64,
    /// When it was last without dirty pages.
    since: Instant,
    /// Where its next turn begins.
    at: Place,
    /// Whether it is in a round, or in the next one.
    is_queued: bool,
}

/// The inodes of one disk.
#[derive(Clone, Debug, Default)]
struct OfDisk {
    raw: Option<InodeId>,
    /// Those that are dirty and in no round, by the time since when.
    dirty: BTreeSet<(Instant, InodeId)>,
    /// Those of the round, and those that go on in the next one.
    round: VecDeque<InodeId>,
    next: VecDeque<InodeId>,
    /// Whether the round has written something, or the next one may.
    has_progress: bool,
}

/// The inodes of all disks.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    inodes: Vec<Inode>,
    disks: Vec<OfDisk>,
}

impl Turns {
    fn disk(&mut self, disk: QueueId) -> &mut OfDisk {
        if disk.index() >= self.disks.len() {
            self.disks.resize(disk.index() + 1, OfDisk::default());
        }
        &mut self.disks[disk.index()]
    }

    /// Returns the inode of a new `file` of `disk`.
    pub(super) fn add(&mut self, disk: QueueId, file: Option<FileId>) -> InodeId {
        let id = InodeId(self.inodes.len());
        debug_assert!(file.is_some() || self.disk(disk).raw.is_none(), "two inodes of {disk:?}");
        self.inodes.push(Inode {
            disk,
            file,
            dirty: 0,
            since: Instant::ZERO,
            at: Place::START,
            is_queued: false,
        });
        id
    }

    /// Returns the inode of a raw disk.
    pub(super) fn raw(&mut self, disk: QueueId) -> InodeId {
        if let Some(id) = self.disk(disk).raw {
            return id;
        }
        let id = self.add(disk, None);
        self.disk(disk).raw = Some(id);
        id
    }

    /// Notes that a page of `id` became dirty at `now`.
    pub(super) fn dirtied(&mut self, id: InodeId, now: Instant) {
        let inode = &mut self.inodes[id.0];
        inode.dirty += 1;
        if inode.dirty > 1 {
            return;
        }
        inode.since = now;
        if !inode.is_queued {
            let disk = inode.disk;
            self.disk(disk).dirty.insert((now, id));
        }
    }

    /// Notes that the writeback of so many pages of `id` begins.
    pub(super) fn begun(&mut self, id: InodeId, pages: u64) {
        let inode = &mut self.inodes[id.0];
        debug_assert!(inode.dirty >= pages, "{pages} pages of {inode:?}");
        inode.dirty -= pages;
        if inode.dirty == 0 && !inode.is_queued {
            let Inode { disk, since, .. } = *inode;
            self.disk(disk).dirty.remove(&(since, id));
        }
    }

    /// Takes inodes without dirty pages from the start of the round, or of the next one.
    fn drop_clean(&mut self, disk: QueueId) {
        self.disk(disk);
        let Self { inodes, disks } = self;
        let OfDisk { round, next, .. } = &mut disks[disk.index()];
        for queue in [round, next] {
            while let Some(id) = queue.front().filter(|id| inodes[id.0].dirty == 0) {
                inodes[id.0].is_queued = false;
                queue.pop_front();
            }
        }
    }

    /// Whether the flusher of `disk` writes at a look at `now`: an inode has been dirty for `age`,
    /// or a round has stopped.
    pub(super) fn is_due(&mut self, disk: QueueId, age: Duration, now: Instant) -> bool {
        self.drop_clean(disk);
        let OfDisk { dirty, round, next, .. } = self.disk(disk);
        let oldest = dirty.first().map(|(since, _)| *since);
        !round.is_empty() || !next.is_empty() || oldest.is_some_and(|since| since + age <= now)
    }

    /// Notes that the flusher of `disk` begins to write.
    pub(super) fn begin(&mut self, disk: QueueId) {
        self.disk(disk).has_progress = true;
    }

    /// Begins the next turn on `disk`. A new round has the inodes that have been dirty for `age` at
    /// `now`. Returns whether there is a turn: none if a whole round has found no page that it
    /// could write.
    pub(super) fn begin_turn(&mut self, disk: QueueId, age: Duration, now: Instant) -> bool {
        self.drop_clean(disk);
        let Self { inodes, disks } = self;
        let of_disk = &mut disks[disk.index()];
        if of_disk.round.is_empty() && core::mem::take(&mut of_disk.has_progress) {
            of_disk.round.append(&mut of_disk.next);
            while let Some((_, id)) = of_disk.dirty.first().filter(|(at, _)| *at + age <= now) {
                inodes[id.0].is_queued = true;
                of_disk.round.push_back(*id);
                of_disk.dirty.pop_first();
            }
        }
        !of_disk.round.is_empty()
    }

    /// Returns the inode whose turn it is: its file, if it is one, and the place where it goes on.
    pub(super) fn current(&self, disk: QueueId) -> Option<(Option<FileId>, Place)> {
        let id = self.disks.get(disk.index())?.round.front()?;
        let Inode { file, at, .. } = self.inodes[id.0];
        Some((file, at))
    }

    /// Notes that the turn has written pages, and goes on at `next`.
    pub(super) fn go_on(&mut self, disk: QueueId, next: Place) {
        let Self { inodes, disks } = self;
        let of_disk = &mut disks[disk.index()];
        let id = of_disk.round.front().expect("a turn that goes on has begun");
        debug_assert_eq!(inodes[id.0].disk, disk, "the inode of {id:?}");
        inodes[id.0].at = next;
        of_disk.has_progress = true;
    }

    /// Ends the turn: its chunk is used up, or the end of the inode is reached. After that, the
    /// next turn of the inode begins at its start. If a younger inode is dirty, the age of this one
    /// begins `now`, as in Linux (`redirty_tail`): one that is overwritten all the time is then
    /// written every 30 s, and not at each look.
    pub(super) fn end_turn(&mut self, disk: QueueId, is_used_up: bool, now: Instant) {
        let Self { inodes, disks } = self;
        let of_disk = &mut disks[disk.index()];
        let id = of_disk.round.pop_front().expect("a turn that ends has begun");
        let inode = &mut inodes[id.0];
        debug_assert!(inode.is_queued, "{id:?} has a turn and is in no round");
        inode.is_queued = is_used_up && inode.dirty > 0;
        if inode.is_queued {
            of_disk.next.push_back(id);
            return;
        }
        // What is before its place may be written in the next round.
        of_disk.has_progress |= inode.at != Place::START;
        inode.at = Place::START;
        if inode.dirty > 0 {
            if of_disk.dirty.last().is_some_and(|(since, _)| *since > inode.since) {
                inode.since = now;
            }
            of_disk.dirty.insert((inode.since, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: QueueId = QueueId(0);
    const AGE: Duration = Duration::from_ms(30_000);

    fn second(second: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(1000 * second)
    }

    /// Returns the file whose turn begins.
    fn turn(turns: &mut Turns, age: Duration, now: Instant) -> Option<FileId> {
        turns.begin_turn(DISK, age, now).then(|| turns.current(DISK).unwrap().0.unwrap())
    }

    /// Two files are dirty since 0 and 28 s. At 30 s the first one is old, and at 58 s both are,
    /// the older one first.
    #[test]
    fn files_have_an_age_each() {
        let mut turns = Turns::default();
        let ids = [0, 1].map(|file| turns.add(DISK, Some(FileId(file))));
        turns.dirtied(ids[1], second(28));
        assert!(!turns.is_due(DISK, AGE, second(57)) && turns.is_due(DISK, AGE, second(58)));
        turns.begun(ids[1], 1);
        assert!(!turns.is_due(DISK, AGE, second(58)), "nothing is dirty");
        turns.dirtied(ids[0], second(0));
        turns.dirtied(ids[1], second(28));
        turns.begin(DISK);
        assert_eq!(turn(&mut turns, AGE, second(30)), Some(FileId(0)));
        turns.begun(ids[0], 1);
        turns.go_on(DISK, Place { base_bytes: 0, page: 1 });
        turns.end_turn(DISK, false, second(30));
        assert_eq!(turn(&mut turns, AGE, second(30)), None);
        turns.dirtied(ids[0], second(31));
        turns.begin(DISK);
        assert_eq!(turn(&mut turns, AGE, second(61)), Some(FileId(1)));
        turns.end_turn(DISK, false, second(61));
        assert_eq!(turn(&mut turns, AGE, second(61)), Some(FileId(0)));
    }

    /// Three files have 3 pages each, and a chunk has 2: each has a turn before the first has its
    /// second one, which goes on at page 2. When writing stops behind it, the rest is due at once.
    #[test]
    fn a_file_whose_chunk_is_used_up_waits_for_the_others() {
        let mut turns = Turns::default();
        let ids = [0, 1, 2].map(|file| turns.add(DISK, Some(FileId(file))));
        for id in ids {
            (0..3).for_each(|_| turns.dirtied(id, Instant::ZERO));
        }
        turns.begin(DISK);
        for (file, id) in ids.into_iter().enumerate() {
            assert_eq!(turn(&mut turns, Duration::ZERO, second(1)), Some(FileId(file)));
            turns.begun(id, 2);
            turns.go_on(DISK, Place { base_bytes: 0, page: 2 });
            turns.end_turn(DISK, true, second(1));
        }
        assert_eq!(turn(&mut turns, Duration::ZERO, second(1)), Some(FileId(0)));
        assert_eq!(turns.current(DISK).unwrap().1, Place { base_bytes: 0, page: 2 });
        turns.begun(ids[0], 1);
        turns.end_turn(DISK, false, second(1));
        assert!(turns.is_due(DISK, AGE, second(2)));
        // A sync has written the second file meanwhile.
        turns.begun(ids[1], 1);
        turns.begin(DISK);
        assert_eq!(turn(&mut turns, AGE, second(2)), Some(FileId(2)));
        turns.begun(ids[2], 1);
        turns.end_turn(DISK, false, second(2));
        assert!(!turns.is_due(DISK, AGE, second(60)));
    }

    /// A file is overwritten all the time, and is written at 30 s. With a younger file it is due
    /// again at 60 s, and alone at once, as Linux leaves its age.
    #[test]
    fn a_file_that_stays_dirty_ages_anew_beside_a_younger_one() {
        for has_younger in [true, false] {
            let mut turns = Turns::default();
            let ids = [0, 1].map(|file| turns.add(DISK, Some(FileId(file))));
            turns.dirtied(ids[0], Instant::ZERO);
            if has_younger {
                turns.dirtied(ids[1], second(20));
            }
            turns.begin(DISK);
            assert_eq!(turn(&mut turns, AGE, second(30)), Some(FileId(0)));
            turns.begun(ids[0], 1);
            turns.dirtied(ids[0], second(30));
            turns.inodes[ids[0].0].since = Instant::ZERO;
            turns.end_turn(DISK, false, second(30));
            assert_eq!(turns.is_due(DISK, AGE, second(31)), !has_younger);
            turns.begun(ids[1], u64::from(has_younger));
            assert!(turns.is_due(DISK, AGE, second(60)));
        }
    }

    /// The dirty pages of a file are under writeback, too, so a round finds nothing. A turn that
    /// began in the middle says nothing about what is before it: one more round follows.
    #[test]
    fn a_round_that_writes_nothing_is_the_last() {
        let mut turns = Turns::default();
        let id = turns.raw(DISK);
        assert_eq!(turns.raw(DISK), id);
        turns.dirtied(id, Instant::ZERO);
        turns.begin(DISK);
        let mut rounds = 0;
        while turns.begin_turn(DISK, Duration::ZERO, Instant::ZERO) {
            if rounds == 0 {
                turns.go_on(DISK, Place { base_bytes: 0, page: 9 });
            }
            turns.end_turn(DISK, rounds == 0, Instant::ZERO);
            rounds += 1;
        }
        assert_eq!(rounds, 3);
    }
}
