//! Accounts of every bio, kept outside the core: where its sectors are, and how they ended.

use crate::durability::Ledger;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::limits::Limits;
use blockyard::request::{Ended, Piece};
use blockyard::status::Status;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    WithDevice,
    Done,
}

/// A bio that was accepted and has not ended.
#[derive(Debug)]
struct Account {
    bio: Bio,
    /// The parts that the driver has seen, by first sector, each with the sector after it.
    parts: BTreeMap<u64, (u64, Part)>,
    failures: Vec<Status>,
}

/// The bios of one disk.
#[derive(Debug)]
pub(super) struct Accounts {
    limits: Limits,
    open: BTreeMap<u64, Account>,
    /// The statuses of failed flushes. Each may have ended any bio that needed the flush.
    flush_failures: Vec<Status>,
    ledger: Ledger,
}

impl Accounts {
    pub(super) fn new(limits: Limits) -> Self {
        let open = BTreeMap::new();
        let flush_failures = Vec::new();
        let ledger = Ledger::default();
        Self { limits, open, flush_failures, ledger }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns whether a bio waits or will wait for a flush. [`Ledger`] records these bios.
    fn needs_flush(&self, bio: &Bio) -> bool {
        let before = bio.op == Op::Flush || bio.flags.contains(Flags::PREFLUSH);
        let writes = !bio.op.is_read() && !bio.op.is_passthrough();
        let native = self.limits.fua && bio.op == Op::Write;
        let after = bio.flags.contains(Flags::FUA) && !native;
        self.limits.write_cache && writes && (before || after)
    }

    /// Returns whether the piece's bio is part of a flush sequence.
    pub(super) fn is_sequenced(&self, piece: &Piece) -> bool {
        self.needs_flush(&self.bio(piece))
    }

    /// Returns whether the device must write `bio` past its cache.
    pub(super) fn has_native_fua(&self, bio: &Bio) -> bool {
        let asked = bio.op == Op::Write && bio.flags.contains(Flags::FUA);
        asked && self.limits.write_cache && self.limits.fua
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the bio of which `piece` is a part.
    pub(super) fn bio(&self, piece: &Piece) -> Bio {
        self.open.get(&piece.cookie).expect("a piece's bio should be submitted and not ended").bio
    }

    fn account(&mut self, piece: &Piece) -> &mut Account {
        self.open.get_mut(&piece.cookie).expect("a piece's bio should be submitted and not ended")
    }

    pub(super) fn taken(&mut self, bio: Bio) {
        let account = Account { bio, parts: BTreeMap::new(), failures: Vec::new() };
        assert!(self.open.insert(bio.cookie, account).is_none(), "a cookie should be used once");
        self.ledger.submitted(bio.cookie);
    }

    /// The queue refused `bio` and kept nothing of it.
    pub(super) fn not_taken(&mut self, bio: &Bio) {
        let account =
            self.open.remove(&bio.cookie).expect("a refused bio should have been offered");
        assert!(account.parts.is_empty() && account.failures.is_empty(), "{bio:?} was refused");
        self.ledger.forget(bio.cookie);
    }

    /// The device was given `piece`, which it must not own already.
    pub(super) fn sent(&mut self, piece: &Piece) {
        let bio = self.bio(piece);
        let end = piece.sector + u64::from(piece.sectors);
        assert!(piece.sector >= bio.sector && end <= bio.end_sector(), "{piece:?} of {bio:?}");
        assert_eq!(u64::from(piece.offset_sectors), piece.sector - bio.sector, "{piece:?}");
        let account = self.account(piece);
        for (start, (other_end, part)) in &account.parts {
            let apart = end <= *start || *other_end <= piece.sector;
            assert!(apart && *start != piece.sector, "{piece:?} of {bio:?} is {part:?} already");
        }
        account.parts.insert(piece.sector, (end, Part::WithDevice));
        self.ledger.data_sent(&bio);
    }

    pub(super) fn done(&mut self, piece: &Piece) {
        let bio = self.bio(piece);
        let part = self
            .account(piece)
            .parts
            .get_mut(&piece.sector)
            .expect("an ended piece should have been sent");
        part.1 = Part::Done;
        let past_cache = !self.limits.write_cache || self.has_native_fua(&bio);
        self.ledger.done(&bio, past_cache);
    }

    pub(super) fn failed(&mut self, piece: &Piece, status: Status) {
        self.account(piece).failures.push(status);
        self.back(piece);
    }

    /// The device requeued `piece` without executing it.
    pub(super) fn back(&mut self, piece: &Piece) {
        self.account(piece).parts.remove(&piece.sector);
    }

    pub(super) fn flush_sent(&mut self) -> u64 {
        self.ledger.flush_sent()
    }

    /// The flush that was sent at `sent_at` has ended.
    pub(super) fn flush_ended(&mut self, sent_at: u64, status: Status) {
        if status == Status::Ok {
            self.ledger.flushed(sent_at);
        } else {
            self.flush_failures.push(status);
        }
    }

    pub(super) fn flush_refused(&mut self, status: Status) {
        self.flush_failures.push(status);
    }

    /// The queue reports the end of a bio.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let account = self.open.remove(&ended.bio.cookie);
        let Account { bio, parts, failures, .. } =
            account.expect("an ended bio should be accepted and not ended");
        let [accepted, ended_bio] = [&bio, &ended.bio].map(|bio| (bio.op, bio.sector, bio.sectors));
        assert_eq!(accepted, ended_bio);
        let with_device = |(_, part): &(u64, Part)| *part == Part::WithDevice;
        assert!(!parts.values().any(with_device), "{bio:?} ended with {parts:?}");
        if ended.status == Status::Ok {
            assert_eq!(failures, [], "{bio:?} ended well");
            let mut at = bio.sector;
            for (start, (end, _)) in parts {
                assert_eq!(start, at, "a hole in {bio:?}");
                at = end;
            }
            assert!(at == bio.end_sector() || bio.op == Op::Flush, "{bio:?} ended at {at}");
        } else {
            let by_flush = self.needs_flush(&bio) && self.flush_failures.contains(&ended.status);
            let as_said = failures.contains(&ended.status) || by_flush;
            assert!(as_said, "{ended:?}, but {failures:?}");
        }
        self.ledger.ended(&bio, ended.status);
    }
}
