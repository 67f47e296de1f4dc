//! [`Verifier`]: the media of a simulation held against a history of each disk.

use super::history::{Cache, History, Wrong};
use super::image::Stamp;
use super::medium::Media;
use blockyard::bio::{Bio, Op};
use blockyard::prng::Prng;
use blockyard::request::Ended;
use blockyard::time::{Duration, Instant};
use blockyard::unit::QueueId;
use core::fmt;

/// Most violations that are kept in full, unless told otherwise; of the others only their number.
pub const VIOLATIONS_KEPT: usize = 16;

/// What is to be verified of a simulation beside what reads find, and what is there at the end: what
/// would be left if the power went. The run goes on as if it had not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// So long after the begin.
    pub power_cuts: Vec<Duration>,
    /// Again and again, with so much time in between; not zero.
    pub power_cut_every: Option<Duration>,
    /// Most violations that are kept in full; of the others only their number.
    pub violations_kept: usize,
}

impl Default for Verify {
    /// What reads find, and what is there at the end.
    fn default() -> Self {
        Self { power_cuts: Vec::new(), power_cut_every: None, violations_kept: VIOLATIONS_KEPT }
    }
}

impl Verify {
    /// Whether the power is ever cut.
    #[must_use]
    pub const fn cuts_power(&self) -> bool {
        !self.power_cuts.is_empty() || self.power_cut_every.is_some()
    }
}

/// What was verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Reads that ended well, each sector of which was checked.
    pub reads: u64,
    /// Sectors of those.
    pub read_sectors: u64,
    /// Bios that changed data and ended well.
    pub writes: u64,
    /// Bios that were nothing but a flush, and ended well.
    pub flushes: u64,
    /// Sectors whose data was in the volatile cache at the end.
    pub cached_sectors: u64,
    /// What each loss of power took.
    pub power_cuts: Vec<PowerCut>,
    /// What is not as it ought to be, the first ones found.
    pub violations: Vec<Violation>,
    /// How many there were.
    pub violation_count: u64,
}

/// What a loss of power took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// When.
    pub at: Instant,
    /// Sectors of writes that had ended well, which are lost by right: no flush had followed.
    pub lost_by_right: u64,
    /// Sectors that hold what they may not.
    pub lost_by_wrong: u64,
}

/// Where something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// By this read.
    Read(Bio),
    /// On the disk when all had ended.
    AtEnd,
    /// On the disk after a loss of power.
    AfterPowerCut,
}

/// Something that is not as it ought to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// On this disk.
    pub disk: QueueId,
    /// When it was found.
    pub at: Instant,
    /// By whom.
    pub found: Found,
    /// What.
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
            Found::AtEnd => f.write_str("when all had ended")?,
            Found::AfterPowerCut => write!(f, "after a loss of power at {at} s")?,
        }
        write!(f, ": {wrong}")
    }
}

/// Whether a bio leaves data of its own.
#[must_use]
pub const fn changes_data(op: Op) -> bool {
    matches!(op, Op::Write | Op::WriteZeroes | Op::Discard | Op::SecureErase)
}

/// The histories of the disks, and what they have said.
#[derive(Clone, Debug)]
pub struct Verifier {
    histories: Vec<History>,
    /// The greatest stamp so far.
    last: Stamp,
    draws: Prng,
    /// Most violations that are kept.
    kept: usize,
    verified: Verified,
}

impl Verifier {
    /// Losses of power looked at so far.
    #[must_use]
    pub const fn power_cuts(&self) -> usize {
        self.verified.power_cuts.len()
    }

    /// For `disks` that nobody has written to; what a loss of power takes is drawn from `draws`.
    #[must_use]
    pub fn new(disks: u16, cache: Cache, draws: Prng) -> Self {
        let histories = (0..disks).map(|_| History::new(cache)).collect();
        let (last, verified) = (Stamp::NEVER, Verified::default());
        Self { histories, last, draws, kept: VIOLATIONS_KEPT, verified }
    }

    /// The same; it keeps so many violations in full.
    #[must_use]
    pub const fn keeping(mut self, violations: usize) -> Self {
        self.kept = violations;
        self
    }

    /// `bio` is about to be submitted: then say [`Self::submitted`], or [`Self::refused`].
    pub fn submitting(&mut self, media: &mut Media, bio: &Bio) {
        self.take_loss(media);
        if changes_data(bio.op) {
            media.name(bio.cookie, Stamp(self.last.0 + 1));
        }
    }

    /// It was not taken.
    pub fn refused(&self, media: &mut Media, bio: &Bio) {
        media.forget(bio.cookie);
    }

    /// It was taken.
    pub fn submitted(&mut self, queue: QueueId, bio: &Bio) {
        self.last.0 += u64::from(changes_data(bio.op));
        self.histories[queue.index()].submitted(bio, self.last);
    }

    /// A bio of `queue` has ended.
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

    /// A device that loses what is not certain has lost it on all of its disks.
    fn take_loss(&mut self, media: &mut Media) {
        if media.take_loss() {
            self.histories.iter_mut().for_each(History::lost_power);
        }
    }

    /// What would be left if the power went now?
    pub fn power_cut(&mut self, media: &mut Media, now: Instant) {
        self.take_loss(media);
        let mut cut = PowerCut { at: now, lost_by_right: 0, lost_by_wrong: 0 };
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

    /// All has ended: what was verified, with what is on the media.
    #[must_use]
    pub fn finish(&self, media: &Media, now: Instant) -> Verified {
        let mut verified = self.verified.clone();
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
    /// Something is wrong; at most `most` violations are kept.
    fn complain(
        &mut self,
        most: usize,
        disk: QueueId,
        found: Found,
        at: Instant,
        wrong: Vec<Wrong>,
    ) {
        self.violation_count += wrong.len() as u64;
        let room = most - self.violations.len();
        let kept = wrong.into_iter().take(room);
        self.violations.extend(kept.map(|wrong| Violation { disk, at, found, wrong }));
    }
}

fn disk(at: usize) -> QueueId {
    QueueId(u16::try_from(at).expect("as many disks as queues"))
}
