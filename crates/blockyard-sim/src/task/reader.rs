//! The reader of a task that reads through the page cache. It tracks the current call page by page.

use crate::page_cache::{Advice, FileId, PageCache, PageState, ReadAhead, Run, Trigger, Window};
use crate::placement::Placement;
use blockyard::bio::{Bio, IoPrio};
use blockyard::status::Status;
use blockyard::unit::{QueueId, SECTOR_BYTES};
use blockyard_devices::profile::{PAGE_BYTES, Reach};
use blockyard_fio::job::{FadviseHint, Job};
use std::collections::VecDeque;

/// The maximum number of bios that one reader may have in flight. Two windows need far fewer,
/// unless other readers have read single pages within them, or the reader leaves many windows
/// behind.
pub const READER_BIOS_MAX: u32 = 64;

/// The next step of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// Request pages.
    RequestPages,
    /// Copy from the current page.
    CopyPage,
    /// Sleep until this page has been read.
    AwaitPage(FileId, u64),
    /// Sleep until one of the reader's own bios has ended.
    AwaitRoom,
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
    stream: usize,
    at_bytes: u64,
    end_bytes: u64,
    prio: IoPrio,
    /// The attempts for the current page.
    tried: Tried,
    /// The error of the current page.
    failed: Option<Status>,
}

/// A file that this reader has open.
#[derive(Clone, Debug)]
struct Stream {
    file: FileId,
    ahead: ReadAhead,
}

/// The reader of a task.
#[derive(Clone, Debug)]
pub struct Reader {
    advice: Advice,
    /// Whether the reader drops its files from the cache before its first call.
    drops: bool,
    placements: Vec<Placement>,
    /// One entry for each file, once the files are open.
    streams: Vec<Stream>,
    call: Option<Call>,
    /// Runs that were claimed and not submitted.
    runs: VecDeque<Run>,
    in_flight: u32,
}

impl Reader {
    /// Returns a reader of the files of a `job` instance, at `placements`.
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
            in_flight: 0,
        }
    }

    /// Opens the files, unless they are open.
    pub fn open(&mut self, cache: &mut PageCache) {
        for placement in self.placements.drain(..) {
            let file = cache.open(placement);
            if self.drops {
                cache.drop_pages(file);
            }
            self.streams.push(Stream { file, ahead: ReadAhead::new(self.advice) });
        }
    }

    /// Whether a call is in progress.
    #[must_use]
    pub(crate) const fn in_call(&self) -> bool {
        self.call.is_some()
    }

    /// Begins a call that reads `len_bytes` at `offset_bytes` of file number `file`, as the I/O of
    /// `slot`.
    pub(super) fn begin(
        &mut self,
        slot: u32,
        file: u16,
        offset_bytes: u64,
        len_bytes: u32,
        prio: IoPrio,
    ) {
        debug_assert!(self.call.is_none(), "a reader must be in only one call at a time");
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

    /// Returns the next step of the call.
    ///
    /// # Panics
    ///
    /// If there is no call.
    #[must_use]
    pub fn next(&self, cache: &PageCache) -> ReadStep {
        if !self.runs.is_empty() {
            // Claimed runs go first: other readers wait for their pages.
            let full = self.in_flight >= READER_BIOS_MAX;
            return if full { ReadStep::AwaitRoom } else { ReadStep::RequestPages };
        }
        let call = self.call.as_ref().expect("a reader with a next step should be in a call");
        if call.at_bytes == call.end_bytes {
            return ReadStep::Return(Status::Ok);
        }
        let file = self.streams[call.stream].file;
        let page = call.at_bytes / PAGE_BYTES;
        let pages = cache.pages(file);
        match (pages.state(page), call.failed) {
            (PageState::Absent, Some(status)) if call.tried == Tried::Alone => {
                ReadStep::Return(status)
            }
            (PageState::Absent, _) => ReadStep::RequestPages,
            // The page is here, and its mark asks for the next window before the copy.
            _ if pages.is_marked(page) => ReadStep::RequestPages,
            (PageState::Reading, _) => ReadStep::AwaitPage(file, page),
            (PageState::Ready, _) => ReadStep::CopyPage,
        }
    }

    /// Claims a window of pages if the current page is absent, and another one if it is marked.
    /// Does nothing while claimed runs are not submitted.
    pub(crate) fn request_pages(&mut self, cache: &mut PageCache, reach: Reach) {
        let Some(call) = self.call.as_mut().filter(|_| self.runs.is_empty()) else { return };
        let stream = &mut self.streams[call.stream];
        let file = stream.file;
        let page = call.at_bytes / PAGE_BYTES;
        let wanted = call.end_bytes.div_ceil(PAGE_BYTES) - page;
        // A page that is absent asks for a window once. If the window leaves the page out, or its
        // bio has failed, the page is read alone.
        if cache.pages(file).state(page) == PageState::Absent && call.tried == Tried::Nothing {
            call.tried = Tried::Window;
            let window = stream.ahead.window(Trigger::Miss, page, wanted, reach, cache.pages(file));
            claim_window(cache, file, window, &mut self.runs);
        }
        if cache.take_mark(file, page) {
            let window =
                stream.ahead.window(Trigger::Marker, page, wanted, reach, cache.pages(file));
            claim_window(cache, file, window, &mut self.runs);
        }
        if cache.pages(file).state(page) == PageState::Absent {
            call.tried = Tried::Alone;
            call.failed = None;
            let alone = Window { pages: page..page + 1, marker: None };
            cache.claim(file, alone, |run| self.runs.push_front(run));
        }
    }

    /// Returns the next bio to submit, without a cookie, and its queue.
    #[must_use]
    pub fn next_bio(&self, cache: &PageCache) -> Option<(QueueId, Bio)> {
        let run = self.runs.front().filter(|_| self.in_flight < READER_BIOS_MAX)?;
        let Placement { queue, base_bytes, len_bytes } = cache.placement(run.file);
        let begin = run.pages.start * PAGE_BYTES;
        debug_assert!(begin < len_bytes, "a run must begin within its file");
        // The last page of a file may end after the file does.
        let len = (run.pages.end * PAGE_BYTES).min(len_bytes) - begin;
        let sectors = u32::try_from(len / u64::from(SECTOR_BYTES)).expect("a run should fit a bio");
        let segments = u16::try_from(run.pages.end - run.pages.start).unwrap_or(u16::MAX);
        let prio = self.call.as_ref().map_or_else(IoPrio::default, |call| call.prio);
        let bio = Bio::read((base_bytes + begin) / u64::from(SECTOR_BYTES), sectors, 0);
        Some((queue, Bio { segments, prio, ..bio }))
    }

    /// Notes that the bio of [`Self::next_bio`] was submitted.
    ///
    /// # Panics
    ///
    /// If there was no such bio.
    pub fn submitted(&mut self) -> Run {
        debug_assert!(self.in_flight < READER_BIOS_MAX, "a reader must wait for room");
        self.in_flight += 1;
        self.runs.pop_front().expect("a submitted bio should come from `next_bio`")
    }

    /// Notes that a bio of this reader has ended.
    pub(crate) const fn bio_ended(&mut self) {
        debug_assert!(self.in_flight > 0, "a bio that ends must be in flight");
        self.in_flight -= 1;
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

    /// Copies from the current page. Returns the number of bytes.
    pub(crate) fn copy_page(&mut self) -> u64 {
        let Some(call) = &mut self.call else { return 0 };
        let page = call.at_bytes / PAGE_BYTES;
        // A call for bytes 1000 to 9000 copies 3096, 4096 and 808 bytes.
        let end = call.end_bytes.min((page + 1) * PAGE_BYTES);
        let bytes = end - call.at_bytes;
        debug_assert!(bytes > 0, "a call that has copied everything must return");
        call.at_bytes = end;
        call.tried = Tried::Nothing;
        call.failed = None;
        self.streams[call.stream].ahead.has_read(page);
        bytes
    }

    /// Ends the call. Returns the slot of its I/O.
    pub(super) fn end_call(&mut self) -> Option<u32> {
        self.call.take().map(|call| call.slot)
    }
}

/// Claims the absent pages of a window, and appends their runs.
fn claim_window(
    cache: &mut PageCache,
    file: FileId,
    window: Option<Window>,
    runs: &mut VecDeque<Run>,
) {
    if let Some(window) = window {
        cache.claim(file, window, |run| runs.push_back(run));
    }
}
