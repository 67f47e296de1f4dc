//! The known state of the card's volatile cache ([reset-loss-fails-flush]).

use blockyard::status::Status;
use blockyard::time::Instant;

/// The known state of the card's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cache {
    /// The cache may hold data that is not on the medium.
    dirty: bool,
    /// The last instant at which data was lost: the card was reset while the cache was dirty, or a
    /// write that had been reported turned out to be lost.
    lost: Option<Instant>,
    /// The cache is off: the card has none, or it did not come back on after a reset.
    pub(super) is_off: bool,
}

impl Cache {
    /// Returns an empty cache, which is on or off.
    pub(super) const fn empty(is_on: bool) -> Self {
        Self { dirty: false, lost: None, is_off: !is_on }
    }

    /// Notes the start of a write whose data may stay in the cache.
    pub(super) const fn note_write(&mut self) {
        self.dirty = !self.is_off;
    }

    /// Notes the start of a write whose transfer stays open: the card may hold a part of a page.
    pub(super) const fn note_open_write(&mut self) {
        self.dirty = true;
    }

    /// Notes that the transfer of such writes is closed.
    pub(super) const fn note_closed(&mut self) {
        self.dirty = self.dirty && !self.is_off;
    }

    /// Notes a reset of the card. Returns whether data may have been lost.
    pub(super) fn note_reset(&mut self, now: Instant) -> bool {
        if self.dirty {
            self.note_loss(now);
        }
        core::mem::replace(&mut self.dirty, false)
    }

    /// Notes that a write that had been reported is lost.
    pub(super) fn note_loss(&mut self, now: Instant) {
        debug_assert!(
            self.lost.is_none_or(|lost| lost <= now),
            "a loss at {now:?} before the last"
        );
        self.lost = Some(now);
    }

    /// Returns whether data was lost at `asked` or later.
    pub(super) fn lost_since(&self, asked: Instant) -> bool {
        self.lost.is_some_and(|lost| asked <= lost)
    }

    /// Returns the status with which a flush ends that the card has ended with `status`.
    /// `covers_loss`: the flush covers everything that was lost.
    pub(super) fn note_flush(&mut self, status: Status, covers_loss: bool) -> Status {
        self.dirty &= status != Status::Ok;
        let hides_loss = self.lost.is_some() && status == Status::Ok;
        self.lost = self.lost.filter(|_| !covers_loss);
        if hides_loss { Status::IoError } else { status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_counts_for_what_was_asked_until_then_and_is_told_once() {
        let at = Instant::from_ns;
        let mut cache = Cache::empty(true);
        assert!(!cache.note_reset(at(5)) && !cache.lost_since(at(0)), "nothing was in the cache");
        cache.note_write();
        assert!(cache.note_reset(at(10)));
        assert_eq!([9, 10, 11].map(|asked| cache.lost_since(at(asked))), [true, true, false]);
        assert!(!cache.note_reset(at(20)), "the first reset has emptied the cache");
        assert!(!cache.lost_since(at(11)));
        assert_eq!(cache.note_flush(Status::Ok, false), Status::IoError);
        assert_eq!(cache.note_flush(Status::Timeout, true), Status::Timeout);
        assert_eq!(cache.note_flush(Status::Ok, true), Status::Ok, "the loss was covered");
    }
}
