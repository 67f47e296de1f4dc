//! A task that reads through the page cache: the call it is in, page by page.

use crate::job::{FadviseHint, Job};
use crate::page_cache::{Advice, FileId, PageCache, PageState, ReadAhead, Run, Trigger, Window};
use crate::placement::Placement;
use crate::profile::{PAGE_BYTES, Reach};
use blockyard::bio::{Bio, IoPrio};
use blockyard::status::Status;
use blockyard::unit::{QueueId, SECTOR_BYTES};
use std::collections::VecDeque;

/// Most bios that one reader has under way: two windows are far less, unless others have read
/// here and there among their pages, or the reader leaves window after window behind.
pub const READER_BIOS_MAX: u32 = 64;

/// What a reader does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// Have pages read.
    Ask,
    /// Copy from the page that is due.
    Copy,
    /// Sleep until this page has been read.
    AwaitPage(FileId, u64),
    /// Sleep until a bio of its own has ended.
    AwaitRoom,
    /// The call returns.
    Return(Status),
}

/// What was done about a page that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    Nothing,
    Window,
    Alone,
}

/// A call under way.
#[derive(Clone, Debug)]
struct Call {
    slot: u32,
    stream: usize,
    at_bytes: u64,
    end_bytes: u64,
    prio: IoPrio,
    /// About the page that is due.
    tried: Tried,
    /// How reading it failed.
    failed: Option<Status>,
}

/// A file as this reader has it open.
#[derive(Clone, Debug)]
struct Stream {
    file: FileId,
    ahead: ReadAhead,
}

/// The reading side of a task.
#[derive(Clone, Debug)]
pub struct Reader {
    advice: Advice,
    /// Whether it drops what is in the cache of its files before its first call.
    drops: bool,
    placements: Vec<Placement>,
    /// As many as files, once they are open.
    streams: Vec<Stream>,
    call: Option<Call>,
    /// Claimed, and not submitted yet.
    runs: VecDeque<Run>,
    under_way: u32,
}

impl Reader {
    /// A reader of the files of an instance of `job`, which lie at `placements`.
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
            drops: job.invalidate,
            placements,
            streams: Vec::new(),
            call: None,
            runs: VecDeque::new(),
            under_way: 0,
        }
    }

    /// Opens its files, where that has not been done.
    pub fn open(&mut self, cache: &mut PageCache) {
        for placement in self.placements.drain(..) {
            let file = cache.open(placement);
            if self.drops {
                cache.drop_pages(file);
            }
            self.streams.push(Stream { file, ahead: ReadAhead::new(self.advice) });
        }
    }

    /// Whether a call is under way.
    #[must_use]
    pub const fn in_call(&self) -> bool {
        self.call.is_some()
    }

    /// A call to read `len_bytes` at `offset_bytes` of file number `file` begins, as the I/O of
    /// `slot`.
    pub(super) fn begin(
        &mut self,
        slot: u32,
        file: u16,
        offset_bytes: u64,
        len_bytes: u32,
        prio: IoPrio,
    ) {
        self.call = Some(Call {
            slot,
            stream: file.into(),
            at_bytes: offset_bytes,
            end_bytes: offset_bytes + u64::from(len_bytes),
            prio,
            tried: Tried::Nothing,
            failed: None,
        });
    }

    /// What the call does next.
    ///
    /// # Panics
    ///
    /// If there is none under way.
    #[must_use]
    pub fn next(&self, cache: &PageCache) -> ReadStep {
        if !self.runs.is_empty() {
            let full = self.under_way >= READER_BIOS_MAX;
            return if full { ReadStep::AwaitRoom } else { ReadStep::Ask };
        }
        let call = self.call.as_ref().expect("a call is under way");
        if call.at_bytes == call.end_bytes {
            return ReadStep::Return(Status::Ok);
        }
        let (file, page) = (self.streams[call.stream].file, call.at_bytes / PAGE_BYTES);
        let pages = cache.pages(file);
        match (pages.state(page), call.failed) {
            (PageState::Absent, Some(status)) if call.tried == Tried::Alone => {
                ReadStep::Return(status)
            }
            (PageState::Absent, _) => ReadStep::Ask,
            _ if pages.is_marked(page) => ReadStep::Ask,
            (PageState::Reading, _) => ReadStep::AwaitPage(file, page),
            (PageState::Ready, _) => ReadStep::Copy,
        }
    }

    /// Claims what is to be read because of the page that is due: a window where it is absent, and
    /// one where it is marked. Nothing while something claimed has not been submitted.
    pub fn ask(&mut self, cache: &mut PageCache, reach: Reach) {
        let Some(call) = self.call.as_mut().filter(|_| self.runs.is_empty()) else { return };
        let Stream { file, ahead } = &mut self.streams[call.stream];
        let (file, page) = (*file, call.at_bytes / PAGE_BYTES);
        let wanted = call.end_bytes.div_ceil(PAGE_BYTES) - page;
        let runs = &mut self.runs;
        let mut window = |cache: &mut PageCache, trigger| {
            let window = ahead.window(trigger, page, wanted, reach, cache.pages(file));
            if let Some(window) = window {
                cache.claim(file, window, |run| runs.push_back(run));
            }
        };
        if cache.pages(file).state(page) == PageState::Absent && call.tried == Tried::Nothing {
            call.tried = Tried::Window;
            window(cache, Trigger::Miss);
        }
        if cache.take_mark(file, page) {
            window(cache, Trigger::Marker);
        }
        if cache.pages(file).state(page) == PageState::Absent {
            (call.tried, call.failed) = (Tried::Alone, None);
            let alone = Window { pages: page..page + 1, marker: None };
            cache.claim(file, alone, |run| runs.push_front(run));
        }
    }

    /// The next bio that is to be submitted and may be, without a cookie, and for which queue.
    #[must_use]
    pub fn next_bio(&self, cache: &PageCache) -> Option<(QueueId, Bio)> {
        let run = self.runs.front().filter(|_| self.under_way < READER_BIOS_MAX)?;
        let Placement { queue, base_bytes, len_bytes } = cache.placement(run.file);
        let begin = run.pages.start * PAGE_BYTES;
        let len = (run.pages.end * PAGE_BYTES).min(len_bytes) - begin;
        let sectors = u32::try_from(len / u64::from(SECTOR_BYTES)).expect("windows are limited");
        let segments = u16::try_from(run.pages.end - run.pages.start).unwrap_or(u16::MAX);
        let prio = self.call.as_ref().map_or_else(IoPrio::default, |call| call.prio);
        let bio = Bio::read((base_bytes + begin) / u64::from(SECTOR_BYTES), sectors, 0);
        Some((queue, Bio { segments, prio, ..bio }))
    }

    /// What [`Self::next_bio`] offered is submitted.
    ///
    /// # Panics
    ///
    /// If it offered none.
    pub fn submitted(&mut self) -> Run {
        self.under_way += 1;
        self.runs.pop_front().expect("a bio was offered")
    }

    /// A bio of this reader has ended.
    pub const fn bio_ended(&mut self) {
        self.under_way -= 1;
    }

    /// The page that it waited for could not be read.
    pub fn page_failed(&mut self, status: Status) {
        if let Some(call) = &mut self.call {
            call.failed = Some(status);
            if call.tried == Tried::Nothing {
                call.tried = Tried::Window; // somebody else's
            }
        }
    }

    /// Copies what the call wants of the page that is due: how many bytes.
    pub fn copy(&mut self) -> u64 {
        let Some(call) = &mut self.call else { return 0 };
        let page = call.at_bytes / PAGE_BYTES;
        let end = call.end_bytes.min((page + 1) * PAGE_BYTES);
        let bytes = end - call.at_bytes;
        call.at_bytes = end;
        (call.tried, call.failed) = (Tried::Nothing, None);
        self.streams[call.stream].ahead.has_read(page);
        bytes
    }

    /// The call returns: the slot of its I/O.
    pub(super) fn returns(&mut self) -> Option<u32> {
        self.call.take().map(|call| call.slot)
    }
}
