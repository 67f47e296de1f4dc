//! The journal of a disk: its transactions, and the size of each commit.
//!
//! A change belongs to the running transaction. At most one other transaction is being committed. A
//! sync that finds its transaction running asks for its commit, so syncs at the same time share
//! one.

use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::SECTOR_BYTES;
use blockyard_devices::profile::{self, CommitSizes, FileSystemRules};
use blockyard_trace::observe::TaskId;
use core::ops::Range;
use std::collections::BTreeSet;

/// The number of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tid(u64);

impl Tid {
    /// No transaction. It counts as committed.
    pub(super) const NONE: Self = Self(0);
}

/// The changes of an inode when pages of it have been written back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Whether reserved blocks have their data now.
    pub(super) converts: bool,
    /// Whether new blocks belong to the file.
    pub(super) allocates: bool,
    /// Whether the file is longer.
    pub(super) grows: bool,
    /// Whether direct I/O wrote the pages.
    pub(super) is_direct: bool,
    /// The extents of the file afterwards: runs of written pages, and the reserved runs between
    /// them.
    pub(super) extents: u64,
    /// The same before.
    pub(super) extents_before: u64,
}

impl Written {
    /// Whether anything differs that the data needs.
    pub(super) const fn needs_commit(&self) -> bool {
        self.converts || self.allocates || self.grows
    }
}

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is on the disk.
    Committed,
    /// The flush of its commit will come.
    Open,
    /// The flush of its commit has been submitted.
    Flushing,
}

/// The changes of a transaction.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// When the first one came.
    since: Option<Instant>,
    creates: bool,
    allocates: bool,
    /// Whether direct writes made a file longer.
    grows_directly: bool,
    inodes: BTreeSet<u32>,
    converted: BTreeSet<u32>,
    /// Runs of pages that were written back for the first time, and the extents of their files.
    runs: u64,
    extents: u64,
    /// Whether the extents of a file do not fit its inode any more.
    outgrows_inode: bool,
}

/// The writes of a commit, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Whether the superblock of the journal is written first.
    pub(crate) superblock: bool,
    /// What is written before the end.
    pub(crate) body: u64,
    /// The longest bio of the body.
    pub(crate) bio: u64,
    /// The last write, with a flush before it and FUA.
    pub(crate) end: u64,
}

/// The journal of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    rules: FileSystemRules,
    sizes: CommitSizes,
    /// Its place on the disk.
    sectors: Range<u64>,
    /// The place of the next write, from the start.
    head: u64,
    running: Changes,
    /// The number of the running transaction.
    tid: u64,
    /// The transaction that is being committed, and whether its flush was submitted.
    committing: Option<(Tid, bool)>,
    /// The last transaction for which a sync has asked.
    asked: Tid,
    waiters: Vec<(Tid, TaskId)>,
    /// An alarm that nobody has set.
    alarm: Option<Instant>,
    /// The error that stopped the journal.
    error: Option<Status>,
}

impl Journal {
    pub(super) fn new(profile: &profile::FileSystem, sectors: Range<u64>) -> Self {
        Self {
            rules: profile.rules,
            sizes: profile.commit,
            sectors,
            head: 0,
            running: Changes::default(),
            tid: 1,
            committing: None,
            asked: Tid::NONE,
            waiters: Vec::new(),
            alarm: None,
            error: None,
        }
    }

    /// Returns the running transaction, which has a change of an inode at `now`.
    fn running(&mut self, now: Instant, inode: u32) -> &mut Changes {
        if self.running.since.is_none() {
            self.running.since = Some(now);
            self.alarm = Some(now + self.rules.commit_interval);
        }
        self.running.inodes.insert(inode);
        &mut self.running
    }

    /// Adds a change of an inode. Returns its transaction.
    pub(super) fn change(&mut self, now: Instant, inode: u32) -> Tid {
        self.running(now, inode);
        Tid(self.tid)
    }

    /// Adds the creation of a file. Returns its transaction.
    pub(super) fn create(&mut self, now: Instant, inode: u32, has_blocks: bool) -> Tid {
        let changes = self.running(now, inode);
        changes.creates = true;
        changes.allocates |= has_blocks;
        Tid(self.tid)
    }

    /// Adds the changes of an inode whose pages were written back. Returns its transaction.
    pub(super) fn write_back(&mut self, now: Instant, inode: u32, written: Written) -> Tid {
        let [leaves, before] =
            [written.extents, written.extents_before].map(|extents| self.sizes.leaves(extents, 1));
        let changes = self.running(now, inode);
        changes.allocates |= written.allocates;
        changes.grows_directly |= written.grows && written.is_direct;
        if written.converts {
            changes.converted.insert(inode);
        }
        changes.runs += u64::from(written.converts || written.allocates);
        changes.extents = changes.extents.max(written.extents);
        changes.outgrows_inode |= leaves > before;
        Tid(self.tid)
    }

    /// Returns the alarm that is to be set, if there is one: the running transaction is old then.
    pub(crate) const fn take_alarm(&mut self) -> Option<Instant> {
        self.alarm.take()
    }

    pub(super) fn state(&self, tid: Tid) -> State {
        match self.committing {
            _ if tid.0 == self.tid => State::Open,
            Some((committing, is_flushed)) if committing == tid => {
                if is_flushed {
                    State::Flushing
                } else {
                    State::Open
                }
            }
            _ => State::Committed,
        }
    }

    /// Returns the error that stopped the journal, if there was one.
    pub(crate) const fn error(&self) -> Option<Status> {
        self.error
    }

    /// Asks for the commit of a transaction. `task` waits for it.
    pub(crate) fn ask(&mut self, tid: Tid, task: TaskId) {
        debug_assert!(self.state(tid) != State::Committed, "{tid:?} is committed");
        self.asked = self.asked.max(tid);
        self.waiters.push((tid, task));
    }

    /// Begins the commit of the running transaction, if one asked for it or it is old.
    pub(crate) fn begin_commit(&mut self, now: Instant) -> Option<Commit> {
        let since = self.running.since?;
        let is_asked = self.asked >= Tid(self.tid);
        if self.committing.is_some() || !is_asked && now < since + self.rules.commit_interval {
            return None;
        }
        let units = self.units();
        self.running = Changes::default();
        self.committing = Some((Tid(self.tid), false));
        self.tid += 1;
        let sectors = self.sizes.unit_bytes / u64::from(SECTOR_BYTES);
        let bio = self.sizes.write_bytes / u64::from(SECTOR_BYTES);
        Some(match self.rules.journal {
            profile::Journal::Ordered => {
                // The journal was empty: its superblock says where it begins now.
                let superblock = self.head == 0;
                Commit { superblock, body: units * sectors, bio, end: sectors }
            }
            // The last bio of the record ends it: of 70 sectors in bios of 64, that of 6.
            _ => {
                let body = (units * sectors - 1) / bio * bio;
                Commit { superblock: false, body, bio, end: units * sectors - body }
            }
        })
    }

    /// Returns the units that the running transaction writes.
    ///
    /// For ext4, a file whose preallocated blocks were written has 2: the descriptor and a block of
    /// inodes. A file with a new block has 4: also a block bitmap and a group descriptor.
    fn units(&self) -> u64 {
        let CommitSizes { head, create, inode, inodes, convert, allocate, direct_growth, .. } =
            self.sizes;
        let Changes {
            creates,
            allocates,
            grows_directly,
            inodes: changed,
            converted,
            runs,
            extents,
            ..
        } = &self.running;
        let outgrows_inode = self.running.outgrows_inode;
        let tables: BTreeSet<u32> = changed.iter().map(|number| number / inodes).collect();
        let [tables, converted] =
            [tables.len(), converted.len()].map(|count| u64::try_from(count).unwrap_or(u64::MAX));
        u64::from(head)
            + u64::from(create) * u64::from(*creates)
            + u64::from(allocate) * u64::from(*allocates)
            + u64::from(direct_growth) * u64::from(*grows_directly)
            + u64::from(inode) * tables
            + u64::from(convert) * converted
            + self.sizes.leaves(*extents, *runs)
            // The first leaf is near the inode, with a block bitmap of its own; recorded.
            + u64::from(outgrows_inode)
    }

    /// Returns the sector of the superblock, and moves the place of writes behind it.
    pub(crate) fn superblock(&mut self) -> u64 {
        self.head = self.sizes.unit_bytes / u64::from(SECTOR_BYTES);
        self.sectors.start
    }

    /// Returns the sector of the next write of so many sectors. Behind the end of the journal it
    /// begins again, after the superblock.
    pub(crate) fn next_place(&mut self, sectors: u64) -> u64 {
        let len = self.sectors.end - self.sectors.start;
        debug_assert!(sectors < len, "{sectors} sectors in a journal of {len}");
        if self.head + sectors > len {
            self.head = self.sizes.unit_bytes / u64::from(SECTOR_BYTES);
        }
        self.sectors.start + self.head
    }

    /// Notes that the write at the next place was submitted.
    pub(crate) const fn take_place(&mut self, sectors: u64) {
        self.head += sectors;
    }

    /// Notes that the last write of the commit was submitted, and with it the flush.
    pub(crate) fn flush_submitted(&mut self) {
        let (_, is_flushed) = self.committing.as_mut().expect("a commit that ends has begun");
        *is_flushed = true;
    }

    /// Ends the commit with `status`. Returns the tasks that waited for it. After an error, every
    /// sync fails.
    pub(crate) fn end_commit(&mut self, status: Status) -> Vec<TaskId> {
        let (tid, _) = self.committing.take().expect("a commit that ends has begun");
        if status != Status::Ok {
            self.error = Some(status);
        }
        let ended = self.waiters.extract_if(.., |(of, _)| *of <= tid);
        ended.map(|(_, task)| task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Data, FileSystem, Inode, Start, place_of_journal};
    use super::*;
    use blockyard::unit::QueueId;
    use blockyard_devices::profile::PAGE_BYTES;

    const DISK: QueueId = QueueId(0);
    const NEW: Start = Start::Created { has_blocks: true, has_length: true };
    const GROWING: Start = Start::Created { has_blocks: false, has_length: false };

    fn on(name: &str) -> FileSystem {
        let profile = profile::FileSystem::lookup(name).unwrap();
        FileSystem::new(&profile, 1, 1 << 30)
    }

    /// Returns a file of 64 pages whose creation is committed.
    fn created(fs: &mut FileSystem, number: u32, start: Start) -> Inode {
        let mut inode = Inode::new(number, start, 64 * PAGE_BYTES);
        fs.created(&mut inode, DISK, Instant::ZERO);
        commit(fs, inode.needs(true));
        inode
    }

    /// Commits the running transaction, which must be `tid`. Returns its sectors, without the
    /// superblock.
    fn commit(fs: &mut FileSystem, tid: Tid) -> (u64, u64) {
        let journal = fs.journal(DISK);
        journal.ask(tid, TaskId(0));
        let Commit { superblock, body, end, .. } = journal.begin_commit(Instant::ZERO).unwrap();
        if superblock {
            journal.superblock();
        }
        journal.flush_submitted();
        assert_eq!(journal.state(tid), State::Flushing);
        assert_eq!(journal.end_commit(Status::Ok), [TaskId(0)]);
        assert_eq!(journal.state(tid), State::Committed);
        (body, end)
    }

    /// Writes `pages` of `inode` back.
    fn write_back(fs: &mut FileSystem, inode: &mut Inode, pages: Range<u64>) {
        let data = Data { pages, len_bytes: inode.len_bytes(), is_direct: false };
        fs.written(inode, DISK, &data, Instant::ZERO);
    }

    /// Writes `pages` of `inode`, and syncs its data. Returns the sectors of the commit, if there
    /// is one.
    fn sync(fs: &mut FileSystem, inode: &mut Inode, pages: Range<u64>) -> Option<(u64, u64)> {
        fs.wrote(inode, DISK, pages.end * PAGE_BYTES, Instant::ZERO);
        write_back(fs, inode, pages);
        let tid = inode.needs(true);
        (fs.state(DISK, tid) != State::Committed).then(|| commit(fs, tid))
    }

    /// Of ext4, the descriptor and the inode are 2 blocks of 8 sectors, a bitmap and a group
    /// descriptor 2 more, and the commit block is one. A written page needs no commit. Of XFS, the
    /// head, the inode and the conversion are 3 sectors in one write; a record of a growing file
    /// has 3, too, and 2 if only the length grew.
    #[test]
    fn a_commit_has_the_blocks_that_changed() {
        let mut ext4 = on("ext4");
        let mut file = created(&mut ext4, 0, NEW);
        assert_eq!(sync(&mut ext4, &mut file, 0..1), Some((16, 8)));
        assert_eq!(sync(&mut ext4, &mut file, 0..1), None);
        let mut growing = created(&mut ext4, 1, GROWING);
        assert_eq!(sync(&mut ext4, &mut growing, 0..2), Some((32, 8)));
        let mut xfs = on("xfs");
        let mut file = created(&mut xfs, 0, NEW);
        assert_eq!(sync(&mut xfs, &mut file, 0..1), Some((0, 3)));
        let mut growing = created(&mut xfs, 1, GROWING);
        xfs.wrote(&mut growing, DISK, 1000, Instant::ZERO);
        write_back(&mut xfs, &mut growing, 0..1);
        assert_eq!(commit(&mut xfs, growing.needs(true)), (0, 3));
        assert_eq!(sync(&mut xfs, &mut growing, 0..1), Some((0, 2)), "1000 to 4096 bytes");
    }

    /// A bio of a file of 512 bytes is in flight while a call makes it 1024 bytes long. The second
    /// bio of the page brings the length, and a sync of the data needs its commit.
    #[test]
    fn the_length_on_the_disk_is_that_of_the_submission() {
        for name in ["ext4", "xfs"] {
            let mut fs = on(name);
            let mut file = created(&mut fs, 0, GROWING);
            fs.wrote(&mut file, DISK, 512, Instant::ZERO);
            let first = Data { pages: 0..1, len_bytes: file.len_bytes(), is_direct: false };
            fs.wrote(&mut file, DISK, 1024, Instant::ZERO);
            fs.written(&mut file, DISK, &first, Instant::ZERO);
            commit(&mut fs, file.needs(true));
            write_back(&mut fs, &mut file, 0..1);
            assert_eq!(fs.state(DISK, file.needs(true)), State::Open, "{name}");
        }
    }

    /// As recorded: of ext4, the descriptor, the inode, a bitmap, a group descriptor and the block
    /// of orphans are 5 blocks of 8 sectors. A record of XFS has 4 sectors.
    #[test]
    fn direct_writes_that_make_a_file_longer_change_more() {
        for (name, sectors) in [("ext4", (40, 8)), ("xfs", (0, 4))] {
            let mut fs = on(name);
            let mut file = created(&mut fs, 0, GROWING);
            fs.wrote(&mut file, DISK, PAGE_BYTES, Instant::ZERO);
            let data = Data { pages: 0..1, len_bytes: PAGE_BYTES, is_direct: true };
            fs.written(&mut file, DISK, &data, Instant::ZERO);
            assert_eq!(commit(&mut fs, file.needs(true)), sectors, "{name}");
        }
    }

    /// The first of a new file is 7 blocks: a descriptor, 3 for the creation, an inode, a bitmap
    /// and a group descriptor. With pages 1, 3 and 5 a file has three written and three reserved
    /// runs, for which its inode has no room: it has a leaf, and the leaf's bitmap.
    #[test]
    fn a_new_file_and_one_in_many_pieces_have_more_blocks() {
        let mut ext4 = on("ext4");
        let mut file = Inode::new(0, NEW, 64 * PAGE_BYTES);
        ext4.created(&mut file, DISK, Instant::ZERO);
        for page in [1, 3] {
            write_back(&mut ext4, &mut file, page..page + 1);
        }
        assert_eq!(commit(&mut ext4, file.needs(true)), (56, 8));
        assert_eq!(sync(&mut ext4, &mut file, 5..6), Some((32, 8)));
        assert_eq!(sync(&mut ext4, &mut file, 7..8), Some((24, 8)), "a leaf");
    }

    /// A change of the time alone belongs to a sync of all, once for each tick of 4 ms, and is
    /// committed after 5 s without a sync.
    #[test]
    fn a_change_of_the_time_is_committed_late() {
        let mut ext4 = on("ext4");
        let mut file = created(&mut ext4, 0, NEW);
        sync(&mut ext4, &mut file, 0..1);
        let at = Instant::ZERO + blockyard::time::Duration::from_ms(3);
        ext4.wrote(&mut file, DISK, PAGE_BYTES, at);
        assert_eq!(ext4.state(DISK, file.needs(false)), State::Committed, "the same tick");
        let at = Instant::ZERO + blockyard::time::Duration::from_ms(4);
        ext4.wrote(&mut file, DISK, PAGE_BYTES, at);
        assert_eq!(ext4.state(DISK, file.needs(true)), State::Committed);
        assert_eq!(ext4.state(DISK, file.needs(false)), State::Open);
        let [early, due] =
            [5003, 5004].map(|ms| Instant::ZERO + blockyard::time::Duration::from_ms(ms));
        let journal = ext4.journal(DISK);
        assert_eq!(journal.begin_commit(early), None);
        assert!(journal.begin_commit(due).is_some());
    }

    /// A journal of 64 MiB, 131,072 sectors, on 1 GiB begins at 512 MiB. Behind its last block
    /// comes its second: the first is the superblock.
    #[test]
    fn places_begin_again_behind_the_superblock() {
        let rules = profile::FileSystem::lookup("ext4").unwrap().rules;
        assert_eq!(place_of_journal(&rules, 1 << 30), 512 << 20..576 << 20);
        let mut ext4 = on("ext4");
        let journal = ext4.journal(DISK);
        assert_eq!(journal.superblock(), 1 << 20);
        journal.take_place(131_072 - 8 - 8);
        assert_eq!(journal.next_place(8), (1 << 20) + 131_064);
        journal.take_place(8);
        assert_eq!(journal.next_place(8), (1 << 20) + 8);
    }
}
