//! The page cache: the pages in the cache, those being read or written back, and the waiting tasks.
//!
//! ```text
//! a read ─► page there? ─► copied to the caller, page by page
//!                 │ no, or marked
//!                 ▼
//!            read_ahead ─► a window ─► its absent pages: a bio for each run of them
//!
//! a write ─► a part of an absent page? ─ no ─► copied from the caller ─► dirty ─► under writeback
//!                 │ yes                            ▲                      (dirt)
//!                 └─► the page is read alone ──────┘
//! ```
//!
//! # Rules
//!
//! - **[page-read-once]** A page is present from the moment it is claimed, and exactly one bio
//!   reads it.
//! - **[page-written-once]** At most one bio at a time writes a page back, and a page is dirty from
//!   a write to it until such a bio begins.
//!
//! All pages of a bio become ready when the bio ends. If the bio fails, they are absent again. A
//! task that waits for one of these pages then reads that page alone, and fails if the second read
//! fails.
//!
//! All readers of a file share its pages and wait for each other's reads. Each reader has its own
//! stream for read-ahead. Memory is never short. A page leaves the cache only when a job, or a pass
//! of one, drops the pages of its files (fio's `invalidate`), behind their writeback, or if an
//! uncached call has brought it there: such a page is transient, and leaves when it is on the disk,
//! or when it has been read. A task that ends does not wait for pages that are still being read
//! ahead; if the task is the last one, the run ends without them.
//!
//! Mapping, and the effects of other programs on a real cache, are not modelled.

mod by_place;
mod dirt;
mod extents;
mod file_system;
mod folios;
mod jiffies;
mod levels;
mod limits;
mod pace;
mod pages;
mod read_ahead;
mod turns;

pub use dirt::Dirt;
pub use extents::Extents;
pub(crate) use file_system::{Commit, FileSystem, Journal, Start, State, Tid, place_of_journal};
pub(crate) use jiffies::timer_end;
pub(crate) use limits::DirtyLimits;
pub(crate) use pace::{Dirtier, Level, Pace, Verdict};
pub use pages::{FilePages, PageState};
pub use read_ahead::{Advice, Pages, ReadAhead, Trigger, Window};

use crate::placement::Placement;
use blockyard::bio::{Bio, Flags};
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{QueueId, SECTOR_BYTES};
use blockyard_devices::profile::PAGE_BYTES;
use blockyard_trace::observe::TaskId;
use by_place::ByPlace;
use core::ops::Range;
use file_system::{Data, Inode};
use levels::Levels;
use turns::{InodeId, Turns};

/// A file whose pages may be in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(usize);

/// A place on a disk: a page of the file that begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    base_bytes: u64,
    page: u64,
}

impl Place {
    /// The start of a disk.
    pub(crate) const START: Self = Self { base_bytes: 0, page: 0 };
}

/// The direction in which a bio moves pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// From the disk to the cache.
    Read,
    /// From the cache to the disk.
    WriteBack,
}

/// The pages of one bio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The file.
    pub file: FileId,
    /// Its pages.
    pub pages: Range<u64>,
    /// The direction.
    pub transfer: Transfer,
}

/// A run with a bio in flight.
#[derive(Clone, Debug)]
struct InFlight {
    run: Run,
    /// The length of the file when the bio was submitted, bytes.
    len_bytes: u64,
}

/// A task that waits for the end of the transfer of a page.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    file: FileId,
    page: u64,
    transfer: Transfer,
    task: TaskId,
}

#[derive(Clone, Debug)]
struct File {
    placement: Placement,
    pages: FilePages,
    dirt: Dirt,
    /// What the flusher writes in turns: the file, or its raw disk.
    turns_as: InodeId,
    /// Its inode, if there is a file system.
    inode: Option<Inode>,
}

impl File {
    /// Drops those of `range`, whose writeback has ended, that are transient. As in Linux (7.3,
    /// `folio_end_dropbehind`), one that is dirty again leaves after its next writeback.
    fn drop_transient(&mut self, range: Range<u64>) {
        let Self { pages, dirt, .. } = self;
        let leave = pages.transient_in(range).filter(|page| !dirt.is_unwritten(*page));
        for page in leave.collect::<Vec<_>>() {
            pages.drop_page(page);
        }
    }
}

/// The page cache of a machine.
#[derive(Clone, Debug, Default)]
pub struct PageCache {
    files: Vec<File>,
    by_place: ByPlace,
    /// Runs with a bio in flight, by the number in the bio's cookie; `None` is a free number.
    runs: Vec<Option<InFlight>>,
    free: Vec<u32>,
    waiters: Vec<Waiter>,
    levels: Levels,
    turns: Turns,
    /// The file system; `None`: files are parts of raw disks.
    file_system: Option<FileSystem>,
}

impl PageCache {
    /// Returns the file at `placement`.
    pub fn open(&mut self, placement: Placement) -> FileId {
        self.find(placement).unwrap_or_else(|| {
            let file = FileId(self.files.len());
            let turns_as = match &self.file_system {
                Some(_) => self.turns.add(placement.queue, Some(file)),
                None => self.turns.raw(placement.queue),
            };
            self.files.push(File {
                placement,
                pages: FilePages::default(),
                dirt: Dirt::default(),
                turns_as,
                inode: None,
            });
            self.by_place.insert(placement, file);
            file
        })
    }

    /// Returns the file at `placement`, if it has been open.
    pub(crate) fn find(&self, placement: Placement) -> Option<FileId> {
        self.by_place.find(placement)
    }

    /// Puts `file_system` on the disks. Files that are open stay parts of raw disks.
    pub(crate) fn put(&mut self, file_system: FileSystem) {
        self.file_system = Some(file_system);
    }

    /// Returns the file system, if there is one.
    pub(crate) const fn file_system(&mut self) -> Option<&mut FileSystem> {
        self.file_system.as_mut()
    }

    /// Whether there is a file system.
    pub(crate) const fn has_file_system(&self) -> bool {
        self.file_system.is_some()
    }

    /// Makes `file` one of the file system, if there is one, that begins as `start` at `now`. A
    /// file without length that another job has made before it gets its data.
    pub(crate) fn begin_file(&mut self, file: FileId, start: Start, now: Instant) {
        let Some(file_system) = &mut self.file_system else { return };
        let File { placement, inode, .. } = &mut self.files[file.0];
        let number = u32::try_from(file.0).expect("files should fit in 32 bits");
        if let Some(inode) = inode {
            if start == Start::Written {
                inode.lay_out(placement.len_bytes);
            }
        } else {
            let mut new = Inode::new(number, start, placement.len_bytes);
            if start != Start::Written {
                file_system.created(&mut new, placement.queue, now);
            }
            *inode = Some(new);
        }
    }

    /// Whether `page` is part of a file, but has no data on the disk: it is not read.
    pub(crate) fn is_hole(&self, file: FileId, page: u64) -> bool {
        self.files[file.0].inode.as_ref().is_some_and(|inode| !inode.has_data(page))
    }

    /// Returns the part of `pages` of `file` from the first one with data on the disk to behind the
    /// last one; an empty one if none has data.
    pub(crate) fn data_in(&self, file: FileId, pages: Range<u64>) -> Range<u64> {
        let inode = self.files[file.0].inode.as_ref();
        inode.map_or(pages.clone(), |inode| inode.data_in(pages))
    }

    /// Returns the transaction that a sync of `file` needs, if it is not committed, and its state.
    /// The sync is `fdatasync` if it is `data_only`.
    pub(crate) fn uncommitted(&self, file: FileId, data_only: bool) -> Option<(Tid, State)> {
        let File { inode, placement, .. } = &self.files[file.0];
        let file_system = self.file_system.as_ref().filter(|fs| fs.has_journals())?;
        let tid = inode.as_ref()?.needs(data_only);
        let state = file_system.state(placement.queue, tid);
        (state != State::Committed).then_some((tid, state))
    }

    /// Returns the state of transaction `tid` of the disk of `file`, and the error of its journal.
    pub(crate) fn commit_state(&self, file: FileId, tid: Tid) -> (State, Option<Status>) {
        let disk = self.placement(file).queue;
        let file_system = self.file_system.as_ref();
        file_system.map_or((State::Committed, None), |fs| (fs.state(disk, tid), fs.error(disk)))
    }

    /// Returns the first page behind the bio that writes dirty `page` of `file` back. As of a block
    /// device in Linux, each page of a raw disk has a bio of its own, and those of neighbours
    /// merge.
    pub(crate) fn end_of_bio(&self, file: FileId, page: u64) -> u64 {
        let File { dirt, inode, .. } = &self.files[file.0];
        let Some((fs, inode)) = self.file_system.as_ref().zip(inode.as_ref()) else {
            return page + 1;
        };
        let most = page + fs.write_max_pages();
        dirt.end_of_idle(page).min(inode.end_of_kind(page)).min(most)
    }

    /// Whether a sync plugs its bios.
    pub(crate) fn plugs(&self) -> bool {
        self.file_system.as_ref().is_none_or(FileSystem::plugs)
    }

    /// Notes that a call has written to `file` up to byte `end_bytes`.
    pub(crate) fn wrote(&mut self, file: FileId, end_bytes: u64, now: Instant) {
        let File { placement, inode, .. } = &mut self.files[file.0];
        if let Some((fs, inode)) = self.file_system.as_mut().zip(inode.as_mut()) {
            fs.wrote(inode, placement.queue, end_bytes, now);
        }
    }

    /// Tells the file system that data of `file` is on the disk.
    fn reached_disk(&mut self, file: FileId, data: &Data, now: Instant) {
        let File { placement, inode, .. } = &mut self.files[file.0];
        if let Some((fs, inode)) = self.file_system.as_mut().zip(inode.as_mut()) {
            fs.written(inode, placement.queue, data, now);
        }
    }

    /// Returns the placement of `file`.
    #[must_use]
    pub(crate) fn placement(&self, file: FileId) -> Placement {
        self.files[file.0].placement
    }

    /// Returns the pages of `file`.
    #[must_use]
    pub fn pages(&self, file: FileId) -> &FilePages {
        &self.files[file.0].pages
    }

    /// Returns the dirty pages of `file` and those under writeback.
    #[must_use]
    pub fn dirt(&self, file: FileId) -> &Dirt {
        &self.files[file.0].dirt
    }

    /// Returns the range of dirty pages around `page` of `file`, to which writes change nothing; an
    /// empty one if there is none, or if some may be transient.
    pub(crate) fn dirty_around(&self, file: FileId, page: u64) -> Range<u64> {
        let File { pages, dirt, .. } = &self.files[file.0];
        if pages.had_transient() {
            return 0..0;
        }
        let range = dirt.dirty().extent_of(page).unwrap_or(0..0);
        debug_assert!(range.clone().all(|page| pages.state(page) == PageState::Ready), "{range:?}");
        range
    }

    /// Returns the first byte after `page` that belongs to `file`: the last page may be short.
    #[must_use]
    pub(crate) fn page_end(&self, file: FileId, page: u64) -> u64 {
        ((page + 1) * PAGE_BYTES).min(self.placement(file).len_bytes)
    }

    /// Notes that a call, which may be uncached, has written to `page` at `now`. It is in the cache
    /// and dirty from then on. Returns whether it was clean.
    pub(crate) fn written(
        &mut self,
        file: FileId,
        page: u64,
        is_uncached: bool,
        now: Instant,
    ) -> bool {
        let File { pages, dirt, placement, turns_as, .. } = &mut self.files[file.0];
        let (was_transient, is_transient) = pages.fill(page, is_uncached);
        let had_no_dirt = dirt.is_clean();
        let was_clean = dirt.written(page);
        if was_clean {
            self.levels.dirtied(placement.queue);
            self.turns.dirtied(*turns_as, now);
        }
        // Of a thousand dirty pages of a file, only the first one makes it an unwritten one.
        if had_no_dirt {
            self.by_place.note(*placement, file, true);
        }
        match (was_transient && !was_clean, is_transient) {
            (false, true) => self.levels.transient_dirtied(placement.queue),
            (true, false) => self.levels.transient_left(placement.queue, 1),
            _ => {}
        }
        was_clean
    }

    /// Notes that an uncached write has claimed `page`, of which it writes a part.
    pub(crate) fn make_transient(&mut self, file: FileId, page: u64) {
        self.files[file.0].pages.make_transient(page);
    }

    /// Returns the files of `disk` with dirty pages or pages under writeback, in the order of the
    /// disk.
    pub(crate) fn unwritten_files(&self, disk: QueueId) -> Vec<FileId> {
        self.by_place.unwritten(disk, 0).map(|(_, file)| file).collect()
    }

    /// Returns the numbers of dirty pages of all disks.
    pub(crate) const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Whether a flusher of `disk` that runs at `now` writes pages back, whatever their age.
    pub(crate) fn is_over_background(
        &mut self,
        disk: QueueId,
        limits: DirtyLimits,
        now: Instant,
    ) -> bool {
        self.levels.is_over_background(disk, limits, now)
    }

    /// Returns the level of dirty pages of `disk` at `now`.
    pub(crate) fn level(&mut self, disk: QueueId, limits: DirtyLimits, now: Instant) -> Level {
        self.levels.level(disk, limits, now)
    }

    /// Returns the bio of `run`, without a cookie.
    pub(crate) fn bio_of(&self, run: &Run) -> Bio {
        let base_bytes = self.placement(run.file).base_bytes;
        let begin = run.pages.start * PAGE_BYTES;
        // The last page of a file may end after the file does.
        let len = self.page_end(run.file, run.pages.end - 1) - begin;
        let sectors = u32::try_from(len / u64::from(SECTOR_BYTES)).expect("a run should fit a bio");
        let segments = u16::try_from(run.pages.end - run.pages.start).unwrap_or(u16::MAX);
        let sector = (base_bytes + begin) / u64::from(SECTOR_BYTES);
        let bio = match run.transfer {
            Transfer::Read => Bio::read(sector, sectors, 0),
            Transfer::WriteBack => Bio::write(sector, sectors, 0).with_flags(Flags::WRITEBACK),
        };
        Bio { segments, ..bio }
    }

    /// Whether the flusher of `disk` writes at a look at `now`, as pages are older than `age`.
    pub(crate) fn is_due(&mut self, disk: QueueId, age: Duration, now: Instant) -> bool {
        self.turns.is_due(disk, age, now)
    }

    /// Notes that the flusher of `disk` begins to write.
    pub(crate) fn begin_turns(&mut self, disk: QueueId) {
        self.turns.begin(disk);
    }

    /// Begins the next turn of the flusher of `disk`, with inodes that are dirty for `age` at
    /// `now`. Returns whether there is one.
    pub(crate) fn begin_turn(&mut self, disk: QueueId, age: Duration, now: Instant) -> bool {
        self.turns.begin_turn(disk, age, now)
    }

    /// Notes that the turn goes on at `next`.
    pub(crate) fn go_on(&mut self, disk: QueueId, next: Place) {
        self.turns.go_on(disk, next);
    }

    /// Ends the turn: its chunk is used up, or nothing is left.
    pub(crate) fn end_turn(&mut self, disk: QueueId, is_used_up: bool, now: Instant) {
        self.turns.end_turn(disk, is_used_up, now);
    }

    /// Returns the pages of the next bio of the turn, at most `most` of them, and where the turn
    /// then goes on: the next ones of its inode that are dirty and not under writeback.
    pub(crate) fn next_of_turn(
        &self,
        disk: QueueId,
        most: u64,
    ) -> Option<(FileId, Range<u64>, Place)> {
        let (file, mut at) = self.turns.current(disk)?;
        if let Some(file) = file {
            let page = self.dirt(file).first_idle_from(at.page)?;
            let end = self.end_of_bio(file, page).min(page + most);
            return Some((file, page..end, Place { page: end, ..at }));
        }
        loop {
            if let Some((file, page)) = self.dirty_at(disk, at) {
                let end = self.end_of_bio(file, page).min(page + most);
                return Some((file, page..end, Place { page: end, ..at }));
            }
            let base_bytes = self.next_dirty_file(disk, at.base_bytes + 1)?;
            at = Place { base_bytes, page: 0 };
        }
    }

    /// Returns the first such page of the files that begin where `at` does.
    fn dirty_at(&self, disk: QueueId, at: Place) -> Option<(FileId, u64)> {
        let from = self.by_place.unwritten(disk, at.base_bytes);
        let mut there = from.take_while(|(base_bytes, _)| *base_bytes == at.base_bytes);
        there.find_map(|(_, file)| Some((file, self.dirt(file).first_idle_from(at.page)?)))
    }

    /// Returns where the next file of `disk` with dirty pages begins, from `from_bytes` on.
    fn next_dirty_file(&self, disk: QueueId, from_bytes: u64) -> Option<u64> {
        let mut behind = self.by_place.unwritten(disk, from_bytes);
        behind.find(|(_, file)| self.dirt(*file).is_dirty()).map(|(base_bytes, _)| base_bytes)
    }

    /// Clears the mark of a page. Returns whether the page had one.
    pub(crate) fn take_mark(&mut self, file: FileId, page: u64) -> bool {
        self.files[file.0].pages.take_mark(page)
    }

    /// Claims the absent pages of `window` up to the end of the file ([page-read-once]). Passes to
    /// `each` the runs that need a bio. Pages without data on the disk are zero, and ready at once.
    /// Those of a read that `is_uncached` are transient.
    pub(crate) fn claim(
        &mut self,
        file: FileId,
        window: Window,
        is_uncached: bool,
        mut each: impl FnMut(Run),
    ) {
        let File { placement, pages, inode, .. } = &mut self.files[file.0];
        let end = window.pages.end.min(placement.len_bytes.div_ceil(PAGE_BYTES));
        let mut zero = Vec::new();
        let window = Window { pages: window.pages.start..end, ..window };
        let claimed = |pages: Range<u64>| {
            let mut at = pages.start;
            while at < pages.end {
                // Pages 0 to 8, of which 4 to 6 have data: three parts.
                let kind = inode.as_ref().map(|inode| (inode.has_data(at), inode.end_of_kind(at)));
                let (has_data, end) = kind.unwrap_or((true, pages.end));
                let part = at..end.min(pages.end);
                at = part.end;
                if has_data {
                    each(Run { file, pages: part, transfer: Transfer::Read });
                } else {
                    zero.push(part);
                }
            }
        };
        if is_uncached {
            pages.claim_transient(&window, claimed);
        } else {
            pages.claim(window.pages, window.marker, claimed);
        }
        zero.into_iter().for_each(|part| pages.finish(part, true));
    }

    /// Notes that a call has read `range` of `file`. Transient folios leave then, whoever reads
    /// them (`filemap_end_dropbehind_read`), unless their data is not on the disk.
    pub(crate) fn has_read(&mut self, file: FileId, range: Range<u64>) {
        let File { pages, dirt, .. } = &mut self.files[file.0];
        debug_assert!(range.start < range.end, "a read of {range:?}");
        if pages.had_transient() {
            pages.drop_read(range, |page| dirt.is_unwritten(page));
        }
    }

    /// Returns the number of the run that is submitted next, for [`Self::ended`].
    #[must_use]
    pub(crate) fn next_number(&self) -> u32 {
        match self.free.last() {
            Some(number) => *number,
            None => u32::try_from(self.runs.len()).expect("runs should fit in 32 bits"),
        }
    }

    /// Notes that the bio of `run` was submitted, with the number of `next_number`.
    pub fn submitted(&mut self, run: Run) {
        debug_assert!(run.pages.start < run.pages.end, "a run must have a page");
        if run.transfer == Transfer::WriteBack {
            let File { dirt, placement, pages, turns_as, .. } = &mut self.files[run.file.0];
            run.pages.clone().for_each(|page| dirt.begin(page));
            let count = run.pages.end - run.pages.start;
            self.levels.begun(placement.queue, count);
            self.turns.begun(*turns_as, count);
            let transient = pages.transient_in(run.pages.clone()).count();
            let transient = u64::try_from(transient).unwrap_or(u64::MAX);
            self.levels.transient_left(placement.queue, transient);
        }
        let inode = self.files[run.file.0].inode.as_ref();
        let moving = Some(InFlight { len_bytes: inode.map_or(0, Inode::len_bytes), run });
        match self.free.pop() {
            Some(number) => self.runs[number as usize] = moving,
            None => self.runs.push(moving),
        }
    }

    /// Notes that the bio of run `number` has ended with `status` at `now`: its pages are ready, or
    /// absent again, and data that was written back may be a change for the file system. Passes to
    /// `wake` each task that waited for one of its pages, in the order of their waits. Returns the
    /// run.
    ///
    /// # Panics
    ///
    /// Panics if no such run is in flight.
    pub fn ended(
        &mut self,
        number: u32,
        (status, now): (Status, Instant),
        mut wake: impl FnMut(TaskId),
    ) -> Run {
        let moving = self.runs[number as usize].take();
        let InFlight { run, len_bytes } = moving.expect("a run that ends should be in flight");
        let Run { file, pages, transfer } = run;
        self.free.push(number);
        let of_run = &mut self.files[file.0];
        match transfer {
            Transfer::Read => of_run.pages.finish(pages.clone(), status == Status::Ok),
            Transfer::WriteBack => {
                of_run.dirt.end(pages.clone(), status);
                of_run.drop_transient(pages.clone());
                if of_run.dirt.is_clean() {
                    self.by_place.note(of_run.placement, file, false);
                }
                self.levels.ended(of_run.placement.queue, pages.end - pages.start);
                if status == Status::Ok {
                    let data = Data { pages: pages.clone(), len_bytes, is_direct: false };
                    self.reached_disk(file, &data, now);
                }
            }
        }
        self.waiters.retain(|waiter| {
            let waits =
                waiter.file == file && waiter.transfer == transfer && pages.contains(&waiter.page);
            if waits {
                wake(waiter.task);
            }
            !waits
        });
        Run { file, pages, transfer }
    }

    /// Returns the number of bios in flight.
    #[must_use]
    pub(crate) fn under_way(&self) -> usize {
        debug_assert!(self.free.len() <= self.runs.len(), "free numbers are used numbers");
        self.runs.len() - self.free.len()
    }

    /// Notes that `task` waits for the end of the transfer of a page.
    pub fn wait(&mut self, file: FileId, page: u64, transfer: Transfer, task: TaskId) {
        let is_moving = match transfer {
            Transfer::Read => self.pages(file).state(page) == PageState::Reading,
            Transfer::WriteBack => self.dirt(file).under_writeback().contains(page),
        };
        debug_assert!(is_moving, "no bio moves page {page}: {transfer:?}");
        self.waiters.push(Waiter { file, page, transfer, task });
    }

    /// Notes that a direct write to the bytes from `begin` to `end` of `file` begins at `now`. As
    /// in Linux (`filemap_invalidate_pages`), it drops their pages, whose data is on the disk.
    pub(crate) fn begin_direct(&mut self, file: FileId, (begin, end): (u64, u64), now: Instant) {
        self.drop_range(file, begin / PAGE_BYTES..end.div_ceil(PAGE_BYTES));
        self.wrote(file, end, now);
    }

    /// Notes that a direct write to the bytes from `begin` to `end` of `file` has ended at `now`.
    /// It drops the pages that were read meanwhile, whose data may be old.
    pub(crate) fn end_direct(&mut self, file: FileId, (begin, end): (u64, u64), now: Instant) {
        let pages = begin / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
        self.drop_range(file, pages.clone());
        self.reached_disk(file, &Data { pages, len_bytes: end, is_direct: true }, now);
    }

    /// Whether a write that ends at byte `end` makes `file` longer.
    pub(crate) fn grows(&self, file: FileId, end: u64) -> bool {
        self.files[file.0].inode.as_ref().is_some_and(|inode| inode.grows(end))
    }

    /// Whether a write to `pages` of `file` changes nothing that its data needs: all of them have
    /// data on the disk, and no change of the file waits for a commit.
    pub(crate) fn is_overwrite(&self, file: FileId, mut pages: Range<u64>) -> bool {
        pages.all(|page| !self.is_hole(file, page)) && self.uncommitted(file, true).is_none()
    }

    fn drop_range(&mut self, file: FileId, range: Range<u64>) {
        let File { pages, dirt, .. } = &mut self.files[file.0];
        pages.drop_ready_in(range, |page| dirt.is_unwritten(page));
    }

    /// Drops the pages of `file`, except those being read and those whose data is not on the disk.
    pub(crate) fn drop_pages(&mut self, file: FileId) {
        let File { pages, dirt, .. } = &mut self.files[file.0];
        let is_clean = dirt.is_clean();
        pages.drop_ready(|page| !is_clean && dirt.is_unwritten(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(base_bytes: u64) -> Placement {
        Placement { queue: QueueId(0), base_bytes, len_bytes: 100 * PAGE_BYTES - 1 }
    }

    /// Claims `pages`. Returns the pages to read, which form one run.
    fn claim(cache: &mut PageCache, file: FileId, pages: Range<u64>) -> Range<u64> {
        let mut runs = Vec::new();
        cache.claim(file, Window::of(pages), false, |run| runs.push(run.pages));
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }

    #[test]
    fn the_same_file_is_the_same_cache() {
        let mut cache = PageCache::default();
        let first = cache.open(placement(0));
        let other = cache.open(placement(1 << 20));
        assert_eq!((cache.open(placement(0)), first == other), (first, false));
        assert_eq!(claim(&mut cache, first, 0..4), 0..4);
        assert_eq!(claim(&mut cache, first, 2..6), 4..6);
        assert_eq!(claim(&mut cache, other, 2..6), 2..6);
        assert_eq!(claim(&mut cache, first, 98..120), 98..100, "the file ends there");
    }

    // [page-read-once]
    #[test]
    fn tasks_that_wait_for_a_page_are_woken_by_the_bio_that_reads_it() {
        let mut cache = PageCache::default();
        let file = cache.open(placement(0));
        claim(&mut cache, file, 0..8);
        fn submit(cache: &mut PageCache, pages: Range<u64>, file: FileId) -> u32 {
            let number = cache.next_number();
            cache.submitted(Run { file, pages, transfer: Transfer::Read });
            number
        }
        let first = submit(&mut cache, 0..4, file);
        let second = submit(&mut cache, 4..8, file);
        for (page, task) in [(3, 7), (4, 8), (0, 9)] {
            cache.wait(file, page, Transfer::Read, TaskId(task));
        }
        let mut woken = Vec::new();
        cache.ended(first, (Status::Ok, Instant::ZERO), |task| woken.push(task.0));
        assert_eq!(woken, [7, 9]);
        cache.ended(second, (Status::Medium, Instant::ZERO), |task| woken.push(task.0));
        assert_eq!(woken, [7, 9, 8]);
        let states = [3, 4].map(|page| cache.pages(file).state(page));
        assert_eq!(states, [PageState::Ready, PageState::Absent]);
        claim(&mut cache, file, 8..9);
        assert_eq!(submit(&mut cache, 8..9, file), second, "numbers are used again");
    }

    // [page-written-once]
    #[test]
    fn a_page_that_is_not_on_the_disk_is_not_dropped() {
        let mut cache = PageCache::default();
        let file = cache.open(placement(0));
        assert!((0..3).all(|page| cache.written(file, page, false, Instant::ZERO)));
        for page in [0, 1] {
            cache.submitted(Run { file, pages: page..page + 1, transfer: Transfer::WriteBack });
        }
        cache.wait(file, 1, Transfer::WriteBack, TaskId(5));
        let mut woken = Vec::new();
        let ended = cache.ended(1, (Status::Ok, Instant::ZERO), |task| woken.push(task.0));
        assert_eq!(ended, Run { file, pages: 1..2, transfer: Transfer::WriteBack });
        assert_eq!(woken, [5]);
        // Page 0 is under writeback, page 1 is clean, and page 2 is dirty.
        cache.drop_pages(file);
        let states = [0, 1, 2].map(|page| cache.pages(file).state(page));
        assert_eq!(states, [PageState::Ready, PageState::Absent, PageState::Ready]);
        assert_eq!(cache.page_end(file, 99), 100 * PAGE_BYTES - 1, "the file ends there");
    }
}
