//! The buffered I/O of a task: its calls through the page cache, page by page.
//!
//! ```text
//! read:  request pages, wait, copy ─► ... ─► return
//! write: a partial page: request it, wait ─► copy ─► ... ─► return, or sync the range (O_DSYNC)
//!        in a mapping: as a read of each page, and copy
//! sync:  write back, wait ─► flush: the end of its bio ends the call; or no flush, and return
//!                         └─► on a file system, wait for the commit of the file's changes
//! ```

mod clocks;
mod disk_sync;
mod meeting;
mod pre_read;
mod repeating;
mod sync;

use crate::page_cache::{
    Advice, Dirt, Dirtier, FileId, PageCache, PageState, ReadAhead, Run, Start, State, Transfer,
    Trigger, Window,
};
use crate::placement::Placement;
use blockyard::bio::{self, Bio, Flags, IoPrio};
use blockyard::status::Status;
use blockyard::time::Instant;
use blockyard::unit::QueueId;
use blockyard_devices::profile::{PAGE_BYTES, Reach};
use blockyard_fio::job::{FadviseHint, Fallocate, Job, Op, RangeSync, SyncMode};
use blockyard_fio::measure::call_time::CallPart;
use blockyard_fio::workload::SyncCall;
use blockyard_trace::observe::TaskId;
use clocks::Clocks;
use disk_sync::{DiskStep, DiskSync};
use meeting::Meeting;
pub(super) use meeting::pages_of;
use pre_read::PreRead;
pub(crate) use repeating::may_repeat;
use std::collections::{BTreeSet, VecDeque};
use sync::{Sync, SyncStep};

/// The maximum number of bios that one reader may have in flight. Two windows need far fewer,
/// unless other readers have read single pages within them, or the reader leaves many windows
/// behind.
pub const READER_BIOS_MAX: u32 = 64;

/// The maximum number of pages that one sync may have under writeback. Linux has no such bound, but
/// tags bound their requests; these are 16 MiB.
pub const SYNC_PAGES_MAX: u32 = 4096;

/// The next step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferedStep {
    /// Request pages.
    RequestPages,
    /// Copy from the current page.
    CopyPage,
    /// Sleep until the transfer of this page has ended.
    AwaitPage(FileId, u64, Transfer),
    /// Sleep until one of the task's own bios has ended, to submit another one of this direction.
    AwaitRoom(Transfer),
    /// Write dirty pages back.
    WriteBack,
    /// Flush the disk. The end of the flush ends the call.
    Flush,
    /// Ask for the commit of the file's changes.
    Commit,
    /// Sleep until it has ended.
    AwaitCommit,
    /// Look at the number of dirty pages, after a pause.
    Look,
    /// Return from the call.
    Return(Status),
}

/// The attempts to read a page that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    Nothing,
    Window,
    Alone,
}

/// The current call.
#[derive(Clone, Debug)]
struct Call {
    slot: u32,
    /// Whether it copies to the cache.
    writes: bool,
    /// The flush of the sync that follows the copies (`O_SYNC`), and whether it syncs data only.
    durable: Option<(Bio, bool)>,
    /// The sync under way. Few calls have one, so that it is not part of each.
    sync: Option<Box<Sync>>,
    stream: usize,
    begin_bytes: u64,
    at_bytes: u64,
    end_bytes: u64,
    prio: IoPrio,
    /// The attempts for the current page.
    tried: Tried,
    /// The error of the current page.
    failed: Option<Status>,
}

/// A file that the task has open.
#[derive(Clone, Debug)]
struct Stream {
    file: FileId,
    ahead: ReadAhead,
    /// The number of errors of its writeback that are known to the task.
    errors_seen: u64,
}

/// The buffered I/O of a task.
#[derive(Clone, Debug)]
pub struct Buffered {
    advice: Advice,
    /// Whether files are mapped: each page that an I/O touches is a fault.
    mapped: bool,
    /// Whether the task drops its files from the cache before its first call.
    drops: bool,
    /// Whether it is yet to write back what is dirty on their disks.
    writes_before_drop: bool,
    /// The passes that ended before the files were opened last.
    passes_before: u64,
    /// How often the I/Os of each file began anew, as far as that is known.
    begun_anew: Vec<u64>,
    /// The open files whose pages are to be dropped, as their I/Os begin anew.
    drops_open: Vec<FileId>,
    /// The steps of `sync_file_range`.
    range_sync: RangeSync,
    /// Whether its writes sync their data only (`O_DSYNC`).
    is_dsync: bool,
    /// Whether the pages that its calls bring into the cache leave it again.
    is_uncached: bool,
    placements: Vec<Placement>,
    /// One entry for each file, once the files are open.
    streams: Vec<Stream>,
    call: Option<Call>,
    /// A sync of whole disks, between calls.
    disk_sync: Option<DiskSync>,
    /// Runs that were claimed and not submitted.
    runs: VecDeque<Run>,
    /// The bios of reads in flight.
    reading: u32,
    /// The pages under writeback by bios of this task.
    writing: u32,
    /// The queue whose plug the call holds between two pieces of work.
    pub(crate) plugged: Option<QueueId>,
    /// The pages that the task has dirtied and not accounted for.
    pub(crate) dirtier: Dirtier,
    /// The disk whose number of dirty pages the task is to look at.
    pub(crate) looks: Option<QueueId>,
    /// The end of a pause that is to begin.
    pub(crate) pause: Option<Instant>,
    /// The times of its writes and syncs.
    pub(crate) clocks: Clocks,
    /// Whether the job names its files, which without a file system are devices.
    names_devices: bool,
    /// The reads before the job begins, while they are not done.
    pre_read: Option<PreRead>,
    /// What a direct job knows of the pages of its files.
    pub(super) meeting: Option<Meeting>,
}

impl Buffered {
    /// Returns the buffered I/O of an instance of `job`, with files at `placements`.
    pub(super) fn new(job: &Job, placements: Vec<Placement>) -> Self {
        let advice = match job.fadvise_hint {
            FadviseHint::None => Advice::Normal,
            FadviseHint::Sequential => Advice::Sequential,
            FadviseHint::Random => Advice::Random,
            FadviseHint::Pattern if job.pattern.random => Advice::Random,
            FadviseHint::Pattern => Advice::Sequential,
        };
        Self {
            advice,
            mapped: job.is_mapped(),
            // As in fio, a job that fills the cache drops nothing.
            drops: job.invalidate && !job.pre_read,
            writes_before_drop: job.invalidate && !job.pre_read,
            passes_before: 0,
            begun_anew: Vec::new(),
            drops_open: Vec::new(),
            range_sync: job.sync_file_range,
            is_dsync: job.sync == SyncMode::Dsync,
            is_uncached: job.uncached,
            placements,
            streams: Vec::new(),
            call: None,
            disk_sync: None,
            runs: VecDeque::new(),
            reading: 0,
            writing: 0,
            plugged: None,
            dirtier: Dirtier::default(),
            looks: None,
            pause: None,
            clocks: Clocks::default(),
            names_devices: !job.filenames.is_empty(),
            pre_read: None,
            meeting: None,
        }
    }

    /// Opens the files, unless they are open. Returns whether they were.
    pub fn open(&mut self, cache: &mut PageCache) -> bool {
        self.drops_open.drain(..).for_each(|file| cache.drop_pages(file));
        let were_open = self.placements.is_empty();
        for placement in self.placements.drain(..) {
            let file = cache.open(placement);
            if self.drops {
                cache.drop_pages(file);
            }
            let errors_seen = cache.dirt(file).errors().0;
            // What a job advises, it does when it begins.
            let advice = if self.pre_read.is_some() { Advice::Normal } else { self.advice };
            self.streams.push(Stream { file, ahead: ReadAhead::new(advice), errors_seen });
        }
        were_open
    }

    /// Closes the files for the first I/O of a pass, before which so many `passes` have ended, if
    /// their pages are then dropped: fio opens files anew for each pass. A direct job, whose I/Os
    /// may be in flight, keeps its files open and drops their pages.
    pub(super) fn close_after_pass(&mut self, passes: u64, cache: &PageCache) {
        let is_same_pass = core::mem::replace(&mut self.passes_before, passes) == passes;
        if is_same_pass || !self.drops {
            return;
        }
        self.writes_before_drop = true;
        if self.is_direct() {
            self.drops_open = self.streams.iter().map(|stream| stream.file).collect();
            return;
        }
        let files = self.streams.drain(..).map(|stream| stream.file);
        self.placements.extend(files.map(|file| cache.placement(file)));
    }

    /// Notes that the I/Os of file number `file` began anew so many `times` before the next one. As
    /// fio does (strace of fio 3.33), the task drops the pages of the file, and does not open it
    /// anew. A direct job drops nothing then, only before a pass (`loop_cache_invalidate`).
    pub(super) fn drop_anew(&mut self, file: u16, times: u64) {
        let at = usize::from(file);
        if times == 0 || !self.drops || self.is_direct() {
            return;
        }
        if at >= self.begun_anew.len() {
            self.begun_anew.resize(at + 1, 0);
        }
        let is_open = self.streams.get(at);
        if core::mem::replace(&mut self.begun_anew[at], times) < times
            && let Some(stream) = is_open
        {
            self.drops_open.push(stream.file);
            self.writes_before_drop = true;
        }
    }

    /// Begins to write back what is dirty on the disks of the files that are to be opened or that
    /// begin anew, if their pages are then dropped. Returns whether there is something to write or
    /// to wait for. As in Linux, pages that are dirtied meanwhile stay dirty. Those of a file
    /// system's files are written, and nobody waits.
    pub(crate) fn begin_to_drop(&mut self, cache: &PageCache) -> bool {
        if !core::mem::take(&mut self.writes_before_drop) {
            return false;
        }
        let anew = self.drops_open.iter().map(|file| cache.placement(*file));
        let placements = anew.chain(self.placements.iter().copied());
        self.disk_sync = if cache.has_file_system() {
            DiskSync::of_files(placements, cache)
        } else {
            DiskSync::of(&distinct(placements.map(|place| place.queue)), cache)
        };
        self.disk_sync.is_some()
    }

    /// Returns the disks of the open files.
    pub(crate) fn open_disks(&self, cache: &PageCache) -> Vec<QueueId> {
        distinct(self.streams.iter().map(|stream| cache.placement(stream.file).queue))
    }

    /// Begins to write back what is dirty on `disks`, which nobody else has open. Returns whether
    /// there is something to wait for.
    pub(crate) fn begin_to_close(&mut self, disks: &[QueueId], cache: &PageCache) -> bool {
        debug_assert!(self.call.is_none(), "a task that closes its files must not be in a call");
        self.disk_sync = DiskSync::of(disks, cache);
        self.disk_sync.is_some()
    }

    /// Whether a call or a sync of disks is in progress.
    #[must_use]
    pub(crate) const fn in_call(&self) -> bool {
        self.call.is_some() || self.disk_sync.is_some()
    }

    /// Begins a call that does `bio` on `len_bytes` at `offset_bytes` of file number `file`, as the
    /// I/O of `slot`. A sync has its own call.
    pub(super) fn begin(
        &mut self,
        slot: u32,
        file: u16,
        offset_bytes: u64,
        len_bytes: u32,
        (bio, sync): (Bio, Option<SyncCall>),
        cache: &PageCache,
    ) {
        debug_assert!(self.call.is_none(), "a task must be in only one call at a time");
        let stream = usize::from(file);
        let dirt = cache.dirt(self.streams[stream].file);
        // A store to a mapping is no call that `O_SYNC` or `O_DSYNC` could reach.
        let is_durable = bio.flags.contains(Flags::FUA) && !self.mapped;
        self.call = Some(Call {
            slot,
            writes: bio.op == bio::Op::Write,
            durable: is_durable.then(|| (flush_behind(&bio), self.is_dsync)),
            sync: sync.map(|call| {
                let flush = flush_behind(&bio);
                Box::new(sync_of(self.sync_call(call), self.range_sync, dirt, flush))
            }),
            stream,
            begin_bytes: offset_bytes,
            at_bytes: offset_bytes,
            end_bytes: offset_bytes + u64::from(len_bytes),
            prio: bio.prio,
            tried: Tried::Nothing,
            failed: None,
        });
    }

    /// Returns the call that a sync of the job makes: of a mapping it is `msync` of all of it,
    /// which syncs the data.
    const fn sync_call(&self, call: SyncCall) -> SyncCall {
        if self.mapped { SyncCall::Data } else { call }
    }

    /// Returns the next step of the call.
    ///
    /// # Panics
    ///
    /// If there is no call.
    #[must_use]
    pub fn next(&self, cache: &PageCache) -> BufferedStep {
        if !self.runs.is_empty() {
            // Claimed runs go first: other readers wait for their pages.
            let full = self.reading >= READER_BIOS_MAX;
            let room = BufferedStep::AwaitRoom(Transfer::Read);
            return if full { room } else { BufferedStep::RequestPages };
        }
        if self.looks.is_some() {
            return BufferedStep::Look;
        }
        if let Some(disk_sync) = &self.disk_sync {
            return self.next_of_disk(disk_sync, cache);
        }
        let call = self.call.as_ref().expect("a task with a next step should be in a call");
        if let Some(sync) = &call.sync {
            return self.next_of_sync(sync, &self.streams[call.stream], cache);
        }
        if call.at_bytes == call.end_bytes {
            return BufferedStep::Return(Status::Ok);
        }
        let file = self.streams[call.stream].file;
        let page = call.at_bytes / PAGE_BYTES;
        let pages = cache.pages(file);
        match (pages.state(page), call.failed) {
            // A page of a mapping must be there before it is written to.
            (PageState::Absent, _)
                if !self.mapped && call.fills_page(cache.page_end(file, page)) =>
            {
                BufferedStep::CopyPage
            }
            // A page without data on the disk is zero.
            (PageState::Absent, _) if call.writes && cache.is_hole(file, page) => {
                BufferedStep::CopyPage
            }
            (PageState::Absent, Some(status)) if call.tried == Tried::Alone => {
                BufferedStep::Return(status)
            }
            (PageState::Absent, _) => BufferedStep::RequestPages,
            // The page is here, and its mark asks for the next window before the copy.
            _ if self.reads_ahead(call) && pages.is_marked(page) => BufferedStep::RequestPages,
            (PageState::Reading, _) => BufferedStep::AwaitPage(file, page, Transfer::Read),
            (PageState::Ready, _) => BufferedStep::CopyPage,
        }
    }

    fn next_of_disk(&self, disk_sync: &DiskSync, cache: &PageCache) -> BufferedStep {
        match disk_sync.next(cache, 1) {
            DiskStep::Write(_) if self.writing >= SYNC_PAGES_MAX => {
                BufferedStep::AwaitRoom(Transfer::WriteBack)
            }
            DiskStep::Write(_) => BufferedStep::WriteBack,
            DiskStep::Await(file, page) => BufferedStep::AwaitPage(file, page, Transfer::WriteBack),
            DiskStep::Done => BufferedStep::Return(Status::Ok),
        }
    }

    fn next_of_sync(&self, sync: &Sync, stream: &Stream, cache: &PageCache) -> BufferedStep {
        match sync.next(cache.dirt(stream.file), stream.errors_seen) {
            SyncStep::Write(_) if self.writing >= SYNC_PAGES_MAX => {
                BufferedStep::AwaitRoom(Transfer::WriteBack)
            }
            SyncStep::Write(_) => BufferedStep::WriteBack,
            SyncStep::Await(page) => {
                BufferedStep::AwaitPage(stream.file, page, Transfer::WriteBack)
            }
            SyncStep::Flush => self.next_of_commit(sync, stream.file, cache),
            SyncStep::Done => BufferedStep::Return(Status::Ok),
            SyncStep::Fail(status) => BufferedStep::Return(status),
        }
    }

    /// Returns the next step of a sync whose data is written. On a file system it waits for the
    /// commit of the file's changes, and flushes only if no flush of a commit came after its data.
    fn next_of_commit(&self, sync: &Sync, file: FileId, cache: &PageCache) -> BufferedStep {
        let Some((tid, is_flushed)) = sync.commit else {
            let is_open = cache.uncommitted(file, sync.data_only).is_some();
            return if is_open { BufferedStep::Commit } else { BufferedStep::Flush };
        };
        match cache.commit_state(file, tid) {
            (State::Open | State::Flushing, _) => BufferedStep::AwaitCommit,
            (State::Committed, Some(status)) => BufferedStep::Return(status),
            (State::Committed, None) if is_flushed => BufferedStep::Return(Status::Ok),
            (State::Committed, None) => BufferedStep::Flush,
        }
    }

    /// Asks for the commit of the file's changes, for which `task` waits. Returns the disk.
    pub(crate) fn ask_for_commit(&mut self, cache: &mut PageCache, task: TaskId) -> QueueId {
        let call = self.call.as_mut().expect("a task that commits should be in a call");
        let file = self.streams[call.stream].file;
        let disk = cache.placement(file).queue;
        let sync = call.sync.as_mut().expect("a task that commits should sync");
        let open = cache.uncommitted(file, sync.data_only);
        if let (Some((tid, state)), Some(fs)) = (open, cache.file_system()) {
            fs.journal(disk).ask(tid, task);
            sync.commit = Some((tid, state == State::Open));
        }
        disk
    }

    /// Whether `call` reads absent pages with their read-ahead: a fault is one for reading first.
    const fn reads_ahead(&self, call: &Call) -> bool {
        self.mapped || !call.writes
    }

    /// Returns the number of pages that `call` still needs. Linux 6.12 (`do_sync_mmap_readahead`):
    /// a fault needs one, and as many as read-ahead reaches if the mapping is read in order.
    fn wanted(&self, call: &Call, reach: Reach) -> u64 {
        match self.advice {
            Advice::Sequential if self.mapped => (reach.usual * 2).max(1),
            Advice::Normal | Advice::Random if self.mapped => 1,
            _ => call.end_bytes.div_ceil(PAGE_BYTES) - call.at_bytes / PAGE_BYTES,
        }
    }

    /// Claims a window of pages if the current page is absent, and another one if it is marked. A
    /// write claims its page alone, unless it is a fault. Does nothing while claimed runs are not
    /// submitted.
    pub(crate) fn request_pages(&mut self, cache: &mut PageCache, reach: Reach) {
        let Some(call) = self.call.as_ref().filter(|_| self.runs.is_empty()) else { return };
        let wanted = self.wanted(call, reach);
        let reads_ahead = self.reads_ahead(call);
        let Some(call) = &mut self.call else { return };
        // The reads of `pre_read` are ordinary ones.
        let is_uncached = self.is_uncached && !call.writes && self.pre_read.is_none();
        let stream = &mut self.streams[call.stream];
        let file = stream.file;
        let page = call.at_bytes / PAGE_BYTES;
        // A page that is absent asks for a window once. If the window leaves the page out, or its
        // bio has failed, the page is read alone.
        let is_absent = cache.pages(file).state(page) == PageState::Absent;
        if is_absent && call.tried == Tried::Nothing && reads_ahead {
            call.tried = Tried::Window;
            let window = stream.ahead.window(Trigger::Miss, page, wanted, reach, cache.pages(file));
            claim_window(cache, file, window, is_uncached, &mut self.runs);
        }
        if reads_ahead && cache.take_mark(file, page) {
            let window =
                stream.ahead.window(Trigger::Marker, page, wanted, reach, cache.pages(file));
            claim_window(cache, file, window, is_uncached, &mut self.runs);
        }
        if cache.pages(file).state(page) == PageState::Absent {
            call.tried = Tried::Alone;
            call.failed = None;
            let alone = Window::of(page..page + 1);
            cache.claim(file, alone, is_uncached, |run| self.runs.push_front(run));
            if call.writes {
                self.clocks.read_page(call.slot);
            }
            if call.writes && self.is_uncached {
                cache.make_transient(file, page);
            }
        }
    }

    /// Returns the next bio of pages to submit, without a cookie, and its queue.
    #[must_use]
    pub(crate) fn next_bio(&self, cache: &PageCache) -> Option<(QueueId, Bio)> {
        let run = self.next_run(cache)?;
        let prio = self.call.as_ref().map_or_else(IoPrio::default, |call| call.prio);
        let bio = Bio { prio, ..cache.bio_of(&run) };
        // Somebody waits for the writeback of a thorough sync.
        let sync = self.call.as_ref().and_then(|call| call.sync.as_ref());
        let is_awaited = match &self.disk_sync {
            Some(disk_sync) => disk_sync.is_awaited,
            None => sync.is_some_and(|sync| sync.is_thorough),
        };
        let is_sync = run.transfer == Transfer::WriteBack && is_awaited;
        let flags = if is_sync { bio.flags | Flags::SYNC } else { bio.flags };
        Some((cache.placement(run.file).queue, Bio { flags, ..bio }))
    }

    /// Returns the pages of the next bio.
    fn next_run(&self, cache: &PageCache) -> Option<Run> {
        if let Some(run) = self.runs.front() {
            return (self.reading < READER_BIOS_MAX).then(|| run.clone());
        }
        if let Some(disk_sync) = &self.disk_sync {
            let room = u64::from(SYNC_PAGES_MAX.saturating_sub(self.writing));
            return match disk_sync.next(cache, room) {
                DiskStep::Write(run) if self.writing < SYNC_PAGES_MAX => Some(run),
                _ => None,
            };
        }
        let Call { stream, sync: Some(sync), .. } = self.call.as_ref()? else { return None };
        let stream = &self.streams[*stream];
        match sync.next(cache.dirt(stream.file), stream.errors_seen) {
            SyncStep::Write(page) if self.writing < SYNC_PAGES_MAX => {
                let room = u64::from(SYNC_PAGES_MAX - self.writing);
                let end = sync.end_of_tagged(page).min(cache.end_of_bio(stream.file, page));
                let pages = page..end.min(page + room);
                Some(Run { file: stream.file, pages, transfer: Transfer::WriteBack })
            }
            _ => None,
        }
    }

    /// Notes that the bio of `next_bio` was submitted.
    ///
    /// # Panics
    ///
    /// If there was no such bio.
    pub fn submitted(&mut self, cache: &PageCache) -> Run {
        let run = self.next_run(cache).expect("a submitted bio should come from `next_bio`");
        *self.in_flight(&run) += weight(&run);
        match run.transfer {
            Transfer::Read => drop(self.runs.pop_front()),
            Transfer::WriteBack => match &mut self.disk_sync {
                Some(disk_sync) => disk_sync.wrote(&run),
                None => {
                    let sync = self.call.as_mut().and_then(|call| call.sync.as_mut());
                    sync.expect("a sync should write back").wrote(run.pages.end);
                }
            },
        }
        run
    }

    /// Returns the flush of the sync, and the queue and slot of the call.
    ///
    /// # Panics
    ///
    /// If the call does not sync.
    #[must_use]
    pub(crate) fn flush(&self, cache: &PageCache) -> (QueueId, Bio, u32) {
        let call = self.call.as_ref().expect("a task that flushes should be in a call");
        let sync = call.sync.as_ref().expect("a task that flushes should sync");
        let Placement { queue, .. } = cache.placement(self.streams[call.stream].file);
        (queue, sync.flush(), call.slot)
    }

    /// Notes that the bio of `run`, of this task, has ended.
    pub(crate) fn bio_ended(&mut self, run: &Run, cache: &PageCache) {
        if let Some(disk_sync) = &mut self.disk_sync {
            disk_sync.bio_ended(cache);
        }
        let in_flight = self.in_flight(run);
        debug_assert!(*in_flight >= weight(run), "a bio that ends must be in flight");
        *in_flight -= weight(run);
    }

    /// Returns the counter of bios like that of `run`. Reads and writeback each have a bound: a
    /// read does not wait for pages that an earlier call has left under writeback.
    const fn in_flight(&mut self, run: &Run) -> &mut u32 {
        match run.transfer {
            Transfer::Read => &mut self.reading,
            Transfer::WriteBack => &mut self.writing,
        }
    }

    /// Notes that the page that the call waits for could not be read.
    pub(crate) fn fail_page(&mut self, status: Status) {
        if let Some(call) = &mut self.call {
            call.failed = Some(status);
            if call.tried == Tried::Nothing {
                call.tried = Tried::Window; // another reader's bio failed
            }
        }
    }

    /// Copies from or to the current page at `now`. Returns the number of bytes, and the file if
    /// one more of its pages is dirty.
    pub(crate) fn copy_page(
        &mut self,
        cache: &mut PageCache,
        now: Instant,
    ) -> (u64, Option<FileId>) {
        let Some(call) = &mut self.call else { return (0, None) };
        let stream = &mut self.streams[call.stream];
        let page = call.at_bytes / PAGE_BYTES;
        // A call for bytes 1000 to 9000 copies 3096, 4096 and 808 bytes.
        let end = call.end_bytes.min((page + 1) * PAGE_BYTES);
        let bytes = end - call.at_bytes;
        debug_assert!(bytes > 0, "a call that has copied everything must return");
        let is_dirtied = call.writes && cache.written(stream.file, page, self.is_uncached, now);
        if call.writes {
            cache.wrote(stream.file, end, now);
        }
        if self.mapped || !call.writes {
            stream.ahead.has_read(page);
        }
        call.copied(end, cache.dirt(stream.file));
        if !call.writes && end == call.end_bytes {
            let pages = call.begin_bytes / PAGE_BYTES..end.div_ceil(PAGE_BYTES);
            cache.has_read(stream.file, pages);
        }
        (bytes, is_dirtied.then_some(stream.file))
    }

    /// Returns the disk whose flusher an uncached write wakes, which has copied everything. A write
    /// that syncs wakes none (`generic_write_sync` of Linux 7.3).
    pub(crate) fn kicks(&self, cache: &PageCache) -> Option<QueueId> {
        let call = self.call.as_ref().filter(|_| self.is_uncached)?;
        let is_copied = call.writes && call.sync.is_none() && call.at_bytes == call.end_bytes;
        is_copied.then(|| cache.placement(self.streams[call.stream].file).queue)
    }

    /// Gives the time of the call from `now` on to `part`.
    pub(crate) fn turn_clock(&mut self, part: CallPart, now: Instant) {
        if let Some(call) = &self.call {
            self.clocks.turn(call.slot, part, now);
        }
    }

    /// Ends the call, or the sync of disks. Returns the slot of the call's I/O.
    pub(crate) fn end_call(&mut self, cache: &PageCache) -> Option<u32> {
        if self.disk_sync.take().is_some() {
            return None;
        }
        let Call { slot, stream, sync, .. } = self.call.take()?;
        if self.pre_read.is_some() {
            return None;
        }
        // A sync has reported the errors so far, or there were none.
        if sync.is_some_and(|sync| sync.reports) {
            let stream = &mut self.streams[stream];
            stream.errors_seen = cache.dirt(stream.file).errors().0;
        }
        Some(slot)
    }
}

impl BufferedStep {
    /// Returns the owner of the time of a call that sleeps before this step.
    pub(crate) const fn sleep(self) -> CallPart {
        match self {
            Self::RequestPages
            | Self::AwaitPage(_, _, Transfer::Read)
            | Self::AwaitRoom(Transfer::Read) => CallPart::PageRead,
            Self::WriteBack
            | Self::AwaitPage(_, _, Transfer::WriteBack)
            | Self::AwaitRoom(Transfer::WriteBack) => CallPart::Writeback,
            Self::Flush => CallPart::Flush,
            Self::Commit | Self::AwaitCommit => CallPart::Journal,
            Self::CopyPage | Self::Look | Self::Return(_) => CallPart::InMemory,
        }
    }
}

impl Call {
    /// Whether the call writes all of the current page, which ends at `page_end`.
    const fn fills_page(&self, page_end: u64) -> bool {
        self.writes && self.at_bytes.is_multiple_of(PAGE_BYTES) && self.end_bytes >= page_end
    }

    /// Notes that the bytes up to `end_bytes` are copied. Behind the last of them a sync of the
    /// call's range may follow.
    fn copied(&mut self, end_bytes: u64, dirt: &Dirt) {
        if let Some((flush, data_only)) = self.durable.filter(|_| end_bytes == self.end_bytes) {
            let pages = self.begin_bytes / PAGE_BYTES..end_bytes.div_ceil(PAGE_BYTES);
            self.sync = Some(Box::new(Sync::of(pages, dirt, flush).of_data(data_only)));
        }
        self.at_bytes = end_bytes;
        self.tried = Tried::Nothing;
        self.failed = None;
    }
}

/// Returns each disk once.
fn distinct(disks: impl Iterator<Item = QueueId>) -> Vec<QueueId> {
    disks.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the flush of a sync that belongs to `bio`.
fn flush_behind(bio: &Bio) -> Bio {
    let flags = bio.flags.without(Flags::FUA);
    Bio { op: bio::Op::Flush, sector: 0, sectors: 0, segments: 1, flags, ..*bio }
}

/// Returns the sync that `call` begins, of a file with `dirt`. If it flushes, `flush` is its end.
fn sync_of(call: SyncCall, range: RangeSync, dirt: &Dirt, flush: Bio) -> Sync {
    match call {
        SyncCall::All => Sync::of(0..u64::MAX, dirt, flush),
        SyncCall::Data => Sync::of(0..u64::MAX, dirt, flush).of_data(true),
        SyncCall::Range { offset_bytes, len_bytes } => {
            let first = offset_bytes / PAGE_BYTES;
            let end = (offset_bytes + len_bytes).div_ceil(PAGE_BYTES);
            // Without bytes there is no page, wherever they would be.
            Sync::of_range(first..if len_bytes > 0 { end } else { first }, dirt, range)
        }
    }
}

/// Whether the files of `job` have their data before it begins.
pub(crate) fn has_data(job: &Job) -> bool {
    job.overwrite || job.is_mapped() || job.pattern.mix.ops().contains(&Op::Read)
}

/// Returns the files of `job` before it begins: fio writes those of a job that reads, of one with
/// `overwrite=1`, and of one that maps them, since a mapping does not make a file longer.
pub(crate) fn start_of_files(job: &Job) -> Start {
    if has_data(job) {
        return Start::Written;
    }
    Start::Created {
        has_blocks: matches!(job.fallocate, Fallocate::Whole | Fallocate::Keep),
        has_length: matches!(job.fallocate, Fallocate::Whole | Fallocate::Truncate),
    }
}

/// Returns the part of its bound that the bio of `run` takes.
fn weight(run: &Run) -> u32 {
    match run.transfer {
        Transfer::Read => 1,
        Transfer::WriteBack => u32::try_from(run.pages.end - run.pages.start).unwrap_or(u32::MAX),
    }
}

/// Claims the absent pages of a window, and appends their runs.
fn claim_window(
    cache: &mut PageCache,
    file: FileId,
    window: Option<Window>,
    is_uncached: bool,
    runs: &mut VecDeque<Run>,
) {
    if let Some(window) = window {
        cache.claim(file, window, is_uncached, |run| runs.push_back(run));
    }
}
