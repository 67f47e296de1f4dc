//! The file of the next I/O of a job with several.

use crate::job::{FileService, Job};

use super::distribution::Sampler;
use super::prng::Prng;

/// As in fio, a skewed choice falls on one of so many places for each file.
const PLACES_PER_FILE: u64 = 1024;

/// The turns of the files of a job instance, as fio gives them.
///
/// A file opens when its turn first comes in a pass. If too many are open, its turn passes. A file that has no further I/O
/// leaves the round, so that another one may open.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    service: FileService,
    open_max: usize,
    files: Vec<State>,
    open: usize,
    done: usize,
    /// The file whose turn is next in a round.
    next: usize,
    current: usize,
    /// The I/Os that the current file still has in this turn.
    ios_left: u32,
    /// Where a skewed choice falls.
    skew: Option<Sampler>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open,
    Done,
}

/// A file whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) file: usize,
    /// The file begins anew.
    pub(super) opens: bool,
}

impl Turns {
    pub(super) fn new(job: &Job, files: usize, draws: &mut Prng) -> Self {
        debug_assert!(files > 0, "a job has a file");
        let places = files as u64 * PLACES_PER_FILE;
        let skew = match &job.file_service {
            FileService::Skewed(law) => Some(Sampler::unscattered(law, places, draws)),
            _ => None,
        };
        let open_max = usize::from(job.open_files);
        Self {
            service: job.file_service.clone(),
            open_max: if open_max == 0 { files } else { open_max },
            files: vec![State::Closed; files],
            open: 0,
            done: 0,
            next: 0,
            current: 0,
            ios_left: 0,
            skew,
        }
    }

    /// Whether a file without a further I/O begins anew rather than leave the round.
    pub(super) const fn is_skewed(&self) -> bool {
        self.skew.is_some()
    }

    /// Whether no file has a further I/O in this pass.
    pub(super) fn are_over(&self) -> bool {
        self.done == self.files.len()
    }

    /// Returns the file of the next I/O; `None` if all are done.
    #[inline]
    pub(super) fn choose(&mut self, draws: &mut Prng) -> Option<Turn> {
        debug_assert!(self.current < self.files.len(), "a turn of a file");
        if self.files[self.current] == State::Open {
            if self.files.len() == 1 || matches!(self.service, FileService::Sequential) {
                return Some(Turn { file: self.current, opens: false });
            }
            if self.ios_left > 0 {
                self.ios_left -= 1;
                return Some(Turn { file: self.current, opens: false });
            }
        }
        if self.are_over() { None } else { Some(self.choose_another(draws)) }
    }

    fn choose_another(&mut self, draws: &mut Prng) -> Turn {
        debug_assert!(self.open + self.done <= self.files.len(), "a file is open or done");
        loop {
            let file = self.candidate(draws);
            let opens = match self.files[file] {
                State::Done => continue,
                State::Closed if self.open >= self.open_max => continue,
                State::Closed => true,
                State::Open => false,
            };
            if opens {
                self.files[file] = State::Open;
                self.open += 1;
            }
            self.current = file;
            self.ios_left = match self.service {
                FileService::RoundRobin(ios) | FileService::Random(ios) => ios - 1,
                FileService::Sequential | FileService::Skewed(_) => 0,
            };
            return Turn { file, opens };
        }
    }

    fn candidate(&mut self, draws: &mut Prng) -> usize {
        debug_assert!(self.next < self.files.len(), "a round has a next file");
        let count = self.files.len();
        let drawn = match (&self.skew, &self.service) {
            (Some(skew), _) => skew.draw(draws) / PLACES_PER_FILE,
            (None, FileService::Random(_)) => draws.below(count as u64),
            (None, _) => {
                let file = self.next;
                self.next = (file + 1) % count;
                return file;
            }
        };
        usize::try_from(drawn).map_or(count - 1, |file| file.min(count - 1))
    }

    /// Notes that `file` has no further I/O in this pass.
    pub(super) fn finish(&mut self, file: usize) {
        debug_assert!(self.files[file] == State::Open, "only an open file ends");
        self.open -= 1;
        if self.is_skewed() {
            self.files[file] = State::Closed;
        } else {
            self.files[file] = State::Done;
            self.done += 1;
        }
    }

    /// Begins a pass: all files are closed. The round goes on where it was.
    pub(super) fn start_pass(&mut self) {
        debug_assert!(self.open + self.done <= self.files.len(), "a file is open or done");
        self.files.fill(State::Closed);
        self.open = 0;
        self.done = 0;
    }
}
