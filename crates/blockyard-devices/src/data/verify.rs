//! [`Verifier`]: checks the media of a simulation against the history of each disk.

use super::history::{Cache, History, Wrong};
use super::image::Stamp;
use super::medium::Media;
use blockyard::bio::{Bio, Op};
use blockyard::prng::Prng;
use blockyard::request::Ended;
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;
use core::fmt;

/// The default number of violations that are kept in full. The others are only counted.
pub(crate) const VIOLATIONS_KEPT: usize = 16;

/// The checks of a simulation besides the data of reads and the data at the end of the run: the
/// data that a loss of power would leave. The run goes on as if the power had not failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// Times after the start of the run.
    pub power_cuts: Vec<Duration>,
    /// An interval, not zero.
    pub power_cut_every: Option<Duration>,
    /// The largest number of violations that are kept in full. The others are only counted.
    pub violations_kept: usize,
}

impl Default for Verify {
    /// Checks the data of reads and the data at the end of the run, without power cuts.
    fn default() -> Self {
        Self { power_cuts: Vec::new(), power_cut_every: None, violations_kept: VIOLATIONS_KEPT }
    }
}

impl Verify {
    /// Whether there are power cuts.
    #[must_use]
    pub const fn cuts_power(&self) -> bool {
        !self.power_cuts.is_empty() || self.power_cut_every.is_some()
    }
}

/// The result of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Successful reads; all of their sectors were checked.
    pub reads: u64,
    /// Sectors of these reads.
    pub read_sectors: u64,
    /// Successful bios that change data.
    pub writes: u64,
    /// Successful flush bios.
    pub flushes: u64,
    /// Sectors with data in the volatile cache at the end.
    pub cached_sectors: u64,
    /// The power cuts.
    pub power_cuts: Vec<PowerCut>,
    /// The first violations found.
    pub violations: Vec<Violation>,
    /// Number of violations.
    pub violation_count: u64,
}

/// The effect of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// The instant of the cut.
    pub at: Instant,
    /// Sectors with successful writes that are lost legally, as no flush had followed.
    pub lost_by_right: u64,
    /// Sectors with wrong data.
    pub lost_by_wrong: u64,
    /// Sectors of pages in memory that had not been written back, as no sync had returned since; a
    /// caller without a page cache has none.
    pub lost_from_memory: Option<u64>,
}

/// The check that found wrong data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A read found it.
    Read(Bio),
    /// The data was on the disk at the end of the run.
    AtEnd,
    /// The data was on the disk after a power cut.
    AfterPowerCut,
}

/// Wrong data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The disk.
    pub disk: QueueId,
    /// The instant at which the data was found.
    pub at: Instant,
    /// The check that found it.
    pub found: Found,
    /// The data.
    pub wrong: Wrong,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { disk: QueueId(disk), at, found, wrong } = self;
        write!(f, "disk {disk}, ")?;
        match found {
            Found::Read(bio) => {
                write!(f, "read of {}..{} that ended at {at} s", bio.sector, bio.end_sector())?;
            }
            Found::AtEnd => f.write_str("at the end of the run")?,
            Found::AfterPowerCut => write!(f, "after a loss of power at {at} s")?,
        }
        write!(f, ": {wrong}")
    }
}

/// Whether a bio with `op` changes data.
#[must_use]
pub(crate) const fn changes_data(op: Op) -> bool {
    matches!(op, Op::Write | Op::WriteZeroes | Op::Discard | Op::SecureErase)
}

/// The histories of the disks, and the results so far.
#[derive(Clone, Debug)]
pub struct Verifier {
    histories: Vec<History>,
    /// The greatest stamp so far.
    last: Stamp,
    draws: Prng,
    /// The largest number of violations to keep.
    kept: usize,
    verified: Verified,
}

impl Verifier {
    /// Number of power cuts so far.
    #[must_use]
    pub const fn power_cuts(&self) -> usize {
        self.verified.power_cuts.len()
    }

    /// Returns a verifier for `disks` that were never written. `draws` decides what power cuts
    /// take.
    #[must_use]
    pub fn new(disks: u16, cache: Cache, draws: Prng) -> Self {
        let histories = (0..disks).map(|_| History::new(cache)).collect();
        let last = Stamp::NEVER;
        let verified = Verified::default();
        Self { histories, last, draws, kept: VIOLATIONS_KEPT, verified }
    }

    /// Sets the number of violations to keep in full.
    #[must_use]
    pub const fn keeping(mut self, violations: usize) -> Self {
        debug_assert!(self.verified.violation_count == 0, "the limit is set before any check");
        self.kept = violations;
        self
    }

    /// Call this before `bio` is submitted, and then [`Self::submitted`] or [`Self::refused`].
    pub fn submitting(&mut self, media: &mut Media, bio: &Bio) {
        self.take_loss(media);
        if changes_data(bio.op) {
            media.name(bio.cookie, Stamp(self.last.0 + 1));
        }
    }

    /// Records that `bio` was refused.
    pub fn refused(&self, media: &mut Media, bio: &Bio) {
        media.forget(bio.cookie);
    }

    /// Records that `bio` was accepted.
    pub fn submitted(&mut self, queue: QueueId, bio: &Bio) {
        debug_assert!(self.last.0 < u64::MAX - 1, "the last stamp marks erased sectors");
        self.last.0 += u64::from(changes_data(bio.op));
        self.histories[queue.index()].submitted(bio, self.last);
    }

    /// Records that a bio of `queue` has ended.
    pub fn ended(&mut self, media: &mut Media, queue: QueueId, ended: &Ended, now: Instant) {
        self.take_loss(media);
        self.take_samples(media);
        let bio = ended.bio;
        media.forget(bio.cookie);
        if ended.status == blockyard::status::Status::Ok {
            let verified = &mut self.verified;
            verified.writes += u64::from(changes_data(bio.op));
            verified.flushes += u64::from(bio.op == Op::Flush);
            verified.reads += u64::from(bio.op == Op::Read);
            verified.read_sectors += if bio.op == Op::Read { u64::from(bio.sectors) } else { 0 };
        }
        let wrong = self.histories[queue.index()].ended(&bio, ended.status);
        self.verified.complain(self.kept, queue, Found::Read(bio), now, wrong);
    }

    fn take_samples(&mut self, media: &mut Media) {
        for sample in media.take_samples() {
            self.histories[sample.queue.index()].found(sample);
        }
    }

    /// Passes a loss of power on to the histories: the device loses data on all of its disks.
    fn take_loss(&mut self, media: &mut Media) {
        if media.take_loss() {
            self.histories.iter_mut().for_each(History::lost_power);
        }
    }

    /// Checks the data that a loss of power at `now` would leave. `in_memory` sectors of dirty
    /// pages are lost, too.
    pub fn power_cut(&mut self, media: &mut Media, in_memory: Option<u64>, now: Instant) {
        self.take_loss(media);
        let mut cut =
            PowerCut { at: now, lost_by_right: 0, lost_by_wrong: 0, lost_from_memory: in_memory };
        for at in 0..self.histories.len() {
            let disk = disk(at);
            let left = media.survivors(disk, &mut self.draws);
            let loss = self.histories[at].check_survivors(&left);
            cut.lost_by_right += loss.by_right;
            cut.lost_by_wrong += loss.wrong.iter().map(Wrong::sectors).sum::<u64>();
            self.verified.complain(self.kept, disk, Found::AfterPowerCut, now, loss.wrong);
        }
        self.verified.power_cuts.push(cut);
    }

    /// Returns the result at the end of the run, including a check of the media.
    #[must_use]
    pub fn finish(&self, media: &Media, now: Instant) -> Verified {
        let mut verified = self.verified.clone();
        debug_assert!(verified.violations.len() as u64 <= verified.violation_count);
        for (at, history) in self.histories.iter().enumerate() {
            let disk = disk(at);
            verified.cached_sectors += media.cached_sectors(disk);
            let wrong = history.check_live(media.live(disk));
            verified.complain(self.kept, disk, Found::AtEnd, now, wrong);
        }
        verified
    }
}

impl Verified {
    /// Adds violations, of which at most `kept_max` are kept.
    fn complain(
        &mut self,
        kept_max: usize,
        disk: QueueId,
        found: Found,
        at: Instant,
        wrong: Vec<Wrong>,
    ) {
        self.violation_count += wrong.len() as u64;
        debug_assert!(self.violations.len() <= kept_max, "at most {kept_max} violations are kept");
        let room = kept_max - self.violations.len();
        let kept = wrong.into_iter().take(room);
        self.violations.extend(kept.map(|wrong| Violation { disk, at, found, wrong }));
    }
}

fn disk(at: usize) -> QueueId {
    QueueId(u16::try_from(at).expect("the number of a disk should be that of its queue"))
}
