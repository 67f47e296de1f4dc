//! A device's volatile cache, and the promises about durable data.
//!
//! This module is independent of the core's code. A [`Ledger`] records the events that a submitter
//! and a device see (submitted, sent, written, flushed, ended) and panics if a promise is broken. A
//! power cut loses the writes in the cache. No write becomes less durable, so a promise that holds
//! when it is made holds at every later cut.
//!
//! # The promises
//!
//! - When a flush succeeds, every write that succeeded before the flush was submitted is durable.
//! - When a write with FUA succeeds, it is durable.
//! - When the data of a write with preflush is sent, every write that succeeded before that write
//!   was submitted is durable.
//!
//! The device is the worst possible one. A flush makes only those writes durable that were written
//! before it was sent, and otherwise only a write that bypasses the cache becomes durable.

use blockyard::bio::{Bio, Flags, Op};
use blockyard::status::Status;

/// A piece of a write that would not survive a power cut.
#[derive(Clone, Copy, Debug)]
struct Volatile {
    cookie: u64,
    written_at: u64,
}

/// A write that has succeeded, or a bio that was submitted.
#[derive(Clone, Copy, Debug)]
struct Mark {
    cookie: u64,
    at: u64,
}

/// The cache's contents and the open promises.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// The number of events, which serves as the time.
    clock: u64,
    cache: Vec<Volatile>,
    /// Writes that have succeeded and are not durable, in this order.
    ended: Vec<Mark>,
    /// Bios that were submitted and have not ended.
    submitted: Vec<Mark>,
}

/// Returns whether the effect of `op` goes to the volatile cache.
fn is_write(op: Op) -> bool {
    matches!(op, Op::Write | Op::Discard | Op::WriteZeroes | Op::SecureErase)
}

impl Ledger {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The queue accepted the bio called `cookie`.
    pub(crate) fn submitted(&mut self, cookie: u64) {
        let at = self.tick();
        self.submitted.push(Mark { cookie, at });
    }

    /// The queue refused the bio called `cookie`, or has ended it.
    pub(crate) fn forget(&mut self, cookie: u64) {
        self.submitted.retain(|submitted| submitted.cookie != cookie);
    }

    /// Data of `bio` is sent to the device.
    pub(crate) fn data_sent(&mut self, bio: &Bio) {
        if is_write(bio.op) && bio.flags.contains(Flags::PREFLUSH) {
            self.nothing_is_owed_to(bio.cookie, "P3");
        }
    }

    /// The device has written a piece of `bio`, with `fua` past its cache.
    pub(crate) fn done(&mut self, bio: &Bio, fua: bool) {
        if is_write(bio.op) && !fua {
            let written_at = self.tick();
            self.cache.push(Volatile { cookie: bio.cookie, written_at });
        }
    }

    /// A flush is sent to the device. Returns the instant, for [`Self::flushed`].
    pub(crate) fn flush_sent(&mut self) -> u64 {
        self.tick()
    }

    /// The flush that was sent at `sent_at` has completed.
    pub(crate) fn flushed(&mut self, sent_at: u64) {
        let Self { cache, ended, .. } = self;
        cache.retain(|piece| piece.written_at > sent_at);
        ended.retain(|write| cache.iter().any(|piece| piece.cookie == write.cookie));
    }

    /// `bio` has ended.
    pub(crate) fn ended(&mut self, bio: &Bio, status: Status) {
        if status == Status::Ok && bio.op == Op::Flush {
            self.nothing_is_owed_to(bio.cookie, "P1");
        }
        if status == Status::Ok && is_write(bio.op) && !self.is_durable(bio.cookie) {
            assert!(!bio.flags.contains(Flags::FUA), "{bio:?} ended with FUA and is not durable");
            let at = self.tick();
            self.ended.push(Mark { cookie: bio.cookie, at });
        }
        self.forget(bio.cookie);
    }

    /// Returns whether all written pieces of the bio called `cookie` would survive a power cut now.
    fn is_durable(&self, cookie: u64) -> bool {
        self.cache.iter().all(|piece| piece.cookie != cookie)
    }

    /// Returns how many successful writes a power cut would lose, and how many of these the flush
    /// that was sent at `flush_sent_at` will save.
    #[allow(dead_code, reason = "only one of the tests that share this file uses it")]
    pub(crate) fn at_risk(&self, flush_sent_at: Option<u64>) -> (usize, usize) {
        let saved = |write: &&Mark| {
            let mut pieces = self.cache.iter().filter(|piece| piece.cookie == write.cookie);
            flush_sent_at.is_some_and(|sent| pieces.all(|piece| piece.written_at < sent))
        };
        (self.ended.len(), self.ended.iter().filter(saved).count())
    }

    /// Returns the number of writes that succeeded before the bio called `cookie` was submitted and
    /// that a power cut would lose.
    pub(crate) fn owed_to(&self, cookie: u64) -> usize {
        let submitted = self.submitted.iter().find(|submitted| submitted.cookie == cookie);
        let since = submitted.expect("the bio should be submitted and not ended").at;
        self.ended.iter().filter(|write| write.at < since).count()
    }

    fn nothing_is_owed_to(&self, cookie: u64, promise: &str) {
        assert_eq!(self.owed_to(cookie), 0, "{promise}: writes are owed to bio {cookie}: {self:?}");
    }
}
