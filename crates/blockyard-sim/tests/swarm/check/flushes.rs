//! Checks the flush rules of [`flush`](blockyard::flush).
//!
//! The time stamp of a flush request says when the flush began; the driver may receive it later.
//! Data of a sequence is *in flight* from the first time the driver accepts it until it completes.
//!
//! - [one-flush-at-a-time]: A flush of a hardware queue begins after the previous flush has ended.
//!   The driver owns it once.
//! - [flush-waits-for-data]: A flush begins only while no data of a sequence is in flight, unless
//!   it serves a bio that was submitted at least [`HOLD_MAX`] ago.
//! - [flush-held-bounded]: A flush begins at most [`HOLD_MAX`] and one timer interval after it was
//!   requested and the previous flush had ended.
//! - [steps-from-flags]: Data goes to the device as FUA if its bio asks for FUA and the device
//!   supports it. Data never carries a preflush.
//!
//! A failed flush fails the writes whose data was done when it began;
//! [`ends`](super::ends) checks that.

use super::ends::Ends;
use super::sequence::{is_native_fua, is_sequenced, needs_flush, needs_postflush};
use crate::draw::Plan;
use crate::flaw::{Flaw, Striker};
use crate::recorder::Seen;
use blockyard::bio::{Bio, Flags, Op};
use blockyard::flush::HOLD_MAX;
use blockyard::limits::Limits;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{HctxId, QueueId};
use std::collections::BTreeMap;

const GRAIN: Duration = Duration::from_secs(1);

/// Flushes of one hardware queue.
#[derive(Debug, Default)]
struct Site {
    /// The start of the flush in flight, and whether the driver owns it.
    under_way: Option<(Instant, bool)>,
    /// The end of the last flush.
    ended: Instant,
    /// Data in flight, by cookie and sector: its start, and whether it is the whole bio.
    data: BTreeMap<(u64, u64), (Instant, bool)>,
    /// Bios that have waited for a postflush since this instant. No flush has begun for them.
    written: Vec<(Instant, u64)>,
    /// Bios that the flush in flight serves. Their data was done when it began
    /// ([flush-waits-for-data]).
    covered: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Flushes {
    limits: Vec<Limits>,
    sites: BTreeMap<(QueueId, HctxId), Site>,
    /// The submission of each bio that needs flushes, by queue and cookie.
    open: BTreeMap<(QueueId, u64), Instant>,
    /// Flushes that the driver accepted.
    pub(crate) commands: u64,
    /// Bios that needed a flush.
    pub(crate) bios: u64,
}

impl Flushes {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            limits: plan.queues.iter().map(|queue| queue.limits.clone()).collect(),
            sites: BTreeMap::new(),
            open: BTreeMap::new(),
            commands: 0,
            bios: 0,
        }
    }

    pub(super) fn entered(&mut self, queue: QueueId, bio: &Bio, now: Instant) {
        if needs_flush(bio, &self.limits[queue.index()]) {
            self.open.insert((queue, bio.cookie), now);
            self.bios += 1;
        }
    }

    pub(super) fn ended(&mut self, queue: QueueId, cookie: u64) {
        self.open.remove(&(queue, cookie));
    }

    /// The driver accepted a request.
    pub(super) fn taken(&mut self, seen: &Seen, ends: &Ends, now: Instant, striker: &mut Striker) {
        if seen.op == Op::Flush {
            let late =
                if striker.strikes(Flaw::LateFlush) { HOLD_MAX + HOLD_MAX } else { Duration::ZERO };
            self.flush_taken(seen, seen.scheduled + late);
            if striker.strikes(Flaw::FlushTwice) {
                self.flush_taken(seen, seen.scheduled);
            }
            return;
        }
        let limits = &self.limits[seen.queue.index()];
        let site = self.sites.entry((seen.queue, seen.hctx)).or_default();
        for piece in &seen.pieces {
            let bio = ends.bio(piece.cookie);
            let fua = seen.flags.contains(Flags::FUA);
            assert_eq!(
                fua,
                is_native_fua(bio, limits),
                "[steps-from-flags] FUA of {seen:?} for {bio:?}"
            );
            assert!(!seen.flags.contains(Flags::PREFLUSH), "[steps-from-flags] {seen:?}");
            if is_sequenced(bio, limits) {
                assert_eq!(seen.pieces.len(), 1, "[merged-sides-agree] {bio:?} in {seen:?}");
                let whole = piece.sectors == bio.sectors;
                site.data.entry((piece.cookie, piece.sector)).or_insert((now, whole));
            }
        }
    }

    fn flush_taken(&mut self, seen: &Seen, began: Instant) {
        let at = (seen.queue, seen.hctx);
        let site = self.sites.entry(at).or_default();
        match site.under_way {
            None => self.flush_began(at, began),
            Some((before, with_driver)) => {
                let same = !with_driver && before == began;
                assert!(
                    same,
                    "[one-flush-at-a-time] a flush began at {began}, while the one of {before} was in flight"
                );
            }
        }
        let site = self.sites.entry(at).or_default();
        site.under_way = Some((began, true));
        self.commands += 1;
    }

    fn flush_began(&mut self, at: (QueueId, HctxId), began: Instant) {
        let site = self.sites.entry(at).or_default();
        assert!(
            began >= site.ended,
            "[one-flush-at-a-time] began at {began}, the one before ended {}",
            site.ended
        );
        let under_way = site.data.iter().find(|(_, (since, _))| *since < began);
        if let Some(((cookie, sector), (since, _))) = under_way {
            let data = &site.data;
            fn may_wait(cookie: u64, data: &BTreeMap<(u64, u64), (Instant, bool)>) -> bool {
                let of_it = (cookie, 0)..=(cookie, u64::MAX);
                !data.range(of_it).any(|(_, (_, whole))| *whole)
            }
            let open = self.open.range((at.0, 0)..=(at.0, u64::MAX));
            let mut waits = open.filter(|((_, cookie), _)| may_wait(*cookie, data));
            let patient = waits.any(|(_, submitted)| *submitted + HOLD_MAX <= began);
            assert!(
                patient,
                "[flush-waits-for-data] a flush of {at:?} began at {began}: bio {cookie} from {sector} on is in flight \
                 since {since}"
            );
        }
        let is_for = |(since, _): &mut (Instant, u64)| *since <= began;
        let covered: Vec<_> = site.written.extract_if(.., is_for).collect();
        if let Some((first, _)) = covered.iter().min() {
            let due = (*first).max(site.ended) + HOLD_MAX + GRAIN;
            assert!(
                began <= due,
                "[flush-held-bounded] a flush of {at:?} began at {began}, due {due}"
            );
        }
        site.covered = covered.into_iter().map(|(_, cookie)| cookie).collect();
    }

    /// A request ended with `status`, or the driver failed it when it was offered.
    pub(super) fn done(&mut self, seen: &Seen, status: Status, ends: &mut Ends, now: Instant) {
        if seen.op == Op::Flush {
            self.flush_done(seen, status, ends, now);
            return;
        }
        let site = self.sites.entry((seen.queue, seen.hctx)).or_default();
        let limits = &self.limits[seen.queue.index()];
        for piece in &seen.pieces {
            site.data.remove(&(piece.cookie, piece.sector));
            if status == Status::Ok && needs_postflush(ends.bio(piece.cookie), limits) {
                site.written.push((now, piece.cookie));
            }
        }
    }

    fn flush_done(&mut self, seen: &Seen, status: Status, ends: &mut Ends, now: Instant) {
        let at = (seen.queue, seen.hctx);
        if self.sites.entry(at).or_default().under_way.is_none() {
            self.flush_began(at, seen.scheduled); // failed when it was offered
        }
        let site = self.sites.entry(at).or_default();
        site.under_way = None;
        site.ended = now;
        for cookie in site.covered.drain(..).filter(|_| status != Status::Ok) {
            ends.part_failed(cookie, status);
        }
    }

    /// The driver gave a request back.
    pub(super) fn back(&mut self, seen: &Seen) {
        let site = self.sites.entry((seen.queue, seen.hctx)).or_default();
        if let (Op::Flush, Some((_, with_driver))) = (seen.op, &mut site.under_way) {
            *with_driver = false;
        }
    }
}
