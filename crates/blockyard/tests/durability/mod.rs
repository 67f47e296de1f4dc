//! A device's volatile cache and durable image, and what its users were promised of them.
//!
//! Nothing here knows how the core works: a [`Ledger`] is told what a submitter and a device see
//! (submitted, sent, done, ended) and panics where a promise is broken. A power cut at any instant
//! leaves [the durable image](Piece::durable), so a promise must hold of it from the instant it is
//! made.
//!
//! # The promises
//!
//! - **P1.** When a flush ends well, every write that ended well before it was submitted is durable.
//! - **P2.** When a write with FUA ends well, it is durable.
//! - **P3.** When data of a write with preflush is sent, every write that ended well before that
//!   write was submitted is durable.
//!
//! The device is the worst there may be: a flush makes durable what was done before it was sent,
//! and nothing else ever becomes durable, but for a write past the cache.

use blockyard::bio::{Bio, Flags, Op};
use blockyard::status::Status;

/// A piece of a write: the bio's cookie, and the sector at which the piece begins.
pub(crate) type PieceId = (u64, u64);

/// A piece that the device has written.
#[derive(Clone, Copy, Debug)]
struct Piece {
    id: PieceId,
    done_at: u64,
    durable: bool,
}

/// A write that has ended well.
#[derive(Clone, Copy, Debug)]
struct Ended {
    cookie: u64,
    at: u64,
}

/// What was written, what is durable, and what is owed to whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Counts what happened; the only time here.
    clock: u64,
    pieces: Vec<Piece>,
    ended: Vec<Ended>,
    /// Bios that were submitted and have not ended, and when they were.
    submitted: Vec<(u64, u64)>,
}

/// Whether the volatile cache holds what `op` does.
fn is_write(op: Op) -> bool {
    matches!(op, Op::Write | Op::Discard | Op::WriteZeroes | Op::SecureErase)
}

impl Ledger {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The queue took the bio called `cookie`.
    pub(crate) fn submitted(&mut self, cookie: u64) {
        let at = self.tick();
        self.submitted.push((cookie, at));
    }

    /// Data of `bio` goes to the device (P3).
    pub(crate) fn data_sent(&mut self, bio: &Bio) {
        if is_write(bio.op) && bio.flags.contains(Flags::PREFLUSH) {
            self.all_durable_before(bio.cookie, "P3");
        }
    }

    /// The device has written the piece called `id`; `fua`: past its cache.
    pub(crate) fn written(&mut self, id: PieceId, fua: bool) {
        let done_at = self.tick();
        self.pieces.push(Piece { id, done_at, durable: fua });
    }

    /// A flush goes to the device. Keep what this returns for [`Self::flushed`].
    pub(crate) fn flush_sent(&mut self) -> u64 {
        self.tick()
    }

    /// The flush that was sent at `sent_at` has done its work.
    pub(crate) fn flushed(&mut self, sent_at: u64) {
        for piece in self.pieces.iter_mut().filter(|piece| piece.done_at < sent_at) {
            piece.durable = true;
        }
    }

    /// `bio` has ended (P1, P2).
    pub(crate) fn ended(&mut self, bio: &Bio, status: Status) {
        if status == Status::Ok {
            if bio.op == Op::Flush {
                self.all_durable_before(bio.cookie, "P1");
            } else if is_write(bio.op) {
                if bio.flags.contains(Flags::FUA) {
                    assert!(self.is_durable(bio.cookie), "P2: {bio:?} ended and is not durable");
                }
                let at = self.tick();
                self.ended.push(Ended { cookie: bio.cookie, at });
            }
        }
        self.submitted.retain(|(cookie, _)| *cookie != bio.cookie);
    }

    /// Whether all of the write called `cookie` would survive a power cut now.
    pub(crate) fn is_durable(&self, cookie: u64) -> bool {
        self.pieces.iter().filter(|piece| piece.id.0 == cookie).all(|piece| piece.durable)
    }

    /// Writes that ended well and would not survive a power cut now, in the order they ended.
    fn lost_by_a_cut(&self) -> impl Iterator<Item = &Ended> {
        self.ended.iter().filter(|ended| !self.is_durable(ended.cookie))
    }

    /// How many [writes would be lost](Self::lost_by_a_cut); and of these, how many a flush that
    /// was sent at `flush_sent_at` will save.
    #[allow(dead_code, reason = "one of the tests that share this file looks at it")]
    pub(crate) fn at_risk(&self, flush_sent_at: Option<u64>) -> (usize, usize) {
        let covered = |ended: &&Ended| flush_sent_at.is_some_and(|sent| ended.at < sent);
        (self.lost_by_a_cut().count(), self.lost_by_a_cut().filter(covered).count())
    }

    /// How many of the [writes that would be lost](Self::lost_by_a_cut) ended before the bio called
    /// `cookie` was submitted.
    pub(crate) fn owed_to(&self, cookie: u64) -> usize {
        let submitted = self.submitted.iter().find(|(other, _)| *other == cookie);
        let (_, at) = submitted.expect("it was submitted and has not ended");
        self.lost_by_a_cut().take_while(|ended| ended.at < *at).count()
    }

    fn all_durable_before(&self, cookie: u64, promise: &str) {
        assert_eq!(self.owed_to(cookie), 0, "{promise}: writes are owed to bio {cookie}: {self:?}");
    }
}
