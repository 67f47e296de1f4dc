//! Reading ahead: the card fetches the sectors that follow a read while the host is away.
//!
//! A read in the window around the end of a stream continues the stream and needs no access: its
//! data comes from the buffer, or as the card fetches it. The card fetches at one rate for all
//! streams, and no further ahead than the window. In the long run it sends no more than it fetches.
//! It fetches sectors of the window again when the host reads them again: a card keeps streams, not
//! a copy. Sectors that a read leaves out are fetched, too, unless an access takes less time.

use crate::mmc::profile::AheadTiming;
use blockyard::time::{Duration, Instant};
use blockyard::unit::SECTOR_BYTES;

/// A place where the card reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    number: u64,
    /// The sector after the last one that was asked for.
    next: u64,
}

impl Stream {
    /// Returns the time to fetch the sectors that a read at `sector` leaves out.
    fn left_out(&self, timing: &AheadTiming, sector: u64) -> Duration {
        timing.fetch(sector.saturating_sub(self.next))
    }
}

/// The places where the card reads ahead, the most recently read at the back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Streams {
    followed: Vec<Stream>,
    /// When every sector that was read has been fetched.
    due: Instant,
    /// The number of streams ever begun.
    begun: u64,
}

impl AheadTiming {
    /// Returns the time to fetch `sectors`.
    pub(super) fn fetch(&self, sectors: u64) -> Duration {
        Duration::from_ns((self.per_kib.as_ns() * sectors).div_ceil(2))
    }

    fn window_sectors(&self) -> u64 {
        self.window_bytes / u64::from(SECTOR_BYTES)
    }
}

impl Streams {
    /// When every sector that was read has been fetched.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Begins a stream after a read elsewhere, whose last sector before `next` is fetched by `now`.
    /// Returns its number.
    pub(super) fn begin(&mut self, timing: &AheadTiming, next: u64, now: Instant) -> u64 {
        if self.followed.len() == usize::from(timing.streams) {
            self.followed.remove(0);
        }
        self.begun += 1;
        self.followed.push(Stream { number: self.begun, next });
        self.due = self.due.max(now);
        self.begun
    }

    /// Moves the end of a stream that has begun, if the card still follows it.
    pub(super) fn move_on(&mut self, number: u64, next: u64, now: Instant) {
        if let Some(stream) = self.followed.iter_mut().find(|stream| stream.number == number) {
            stream.next = stream.next.max(next);
            self.due = self.due.max(now);
        }
    }

    /// Continues the stream that has `sector`, if there is one, at `now` with a read of `sectors`.
    /// Returns its number, and the card's work before the data. `access` is the time of an access.
    pub(super) fn join(
        &mut self,
        timing: &AheadTiming,
        access: Duration,
        sector: u64,
        sectors: u32,
        now: Instant,
    ) -> Option<(u64, Duration)> {
        let window = timing.window_sectors();
        debug_assert!(window > 0, "a card that does not read ahead has a stream");
        let found = self.followed.iter().rposition(|stream| {
            stream.next.abs_diff(sector) <= window && stream.left_out(timing, sector) <= access
        })?;
        let mut stream = self.followed.remove(found);
        let work = timing.command + stream.left_out(timing, sector);
        // The card has fetched no more than fits into the window.
        let window_ns = timing.fetch(window).as_ns();
        let earliest = Instant::from_ns(now.as_ns().saturating_sub(window_ns));
        self.due = self.due.max(earliest) + work;
        stream.next = stream.next.max(sector + u64::from(sectors));
        self.followed.push(stream);
        Some((stream.number, work))
    }

    /// Goes on with a stream at `now`, in a transfer that was left open, up to `next`: as
    /// [`Self::join`], without a command.
    pub(super) fn go_on(&mut self, timing: &AheadTiming, number: u64, next: u64, now: Instant) {
        let window_ns = timing.fetch(timing.window_sectors()).as_ns();
        let earliest = Instant::from_ns(now.as_ns().saturating_sub(window_ns));
        self.due = self.due.max(earliest);
        self.move_on(number, next, earliest);
    }

    /// Sends `sectors` of a stream. Returns when the first and the last of them are fetched; `None`
    /// if the card no longer follows the stream.
    pub(super) fn send(
        &mut self,
        timing: &AheadTiming,
        number: u64,
        sectors: u32,
    ) -> Option<(Instant, Instant)> {
        debug_assert!(sectors > 0, "a read without sectors");
        self.followed.iter().find(|stream| stream.number == number)?;
        let first = self.due + timing.fetch(1);
        self.due = self.due + timing.fetch(u64::from(sectors));
        Some((first, self.due))
    }

    /// Forgets all streams.
    pub(super) fn forget(&mut self) {
        self.followed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 us for each sector, a window of 8 sectors, 10 us for each command, two streams.
    const AHEAD: AheadTiming = AheadTiming {
        per_kib: Duration::from_us(2),
        window_bytes: 8 * 512,
        command: Duration::from_us(10),
        streams: 2,
    };

    fn us(us: u64) -> Instant {
        Instant::from_ns(us * 1000)
    }

    fn join(streams: &mut Streams, sector: u64, now: u64) -> Option<u64> {
        streams
            .join(&AHEAD, Duration::from_us(8), sector, 4, us(now))
            .map(|(_, work)| work.as_ns() / 1000)
    }

    #[test]
    fn a_stream_costs_its_commands_and_its_bytes_less_what_was_fetched_meanwhile() {
        let mut streams = Streams::default();
        let number = streams.begin(&AHEAD, 100, us(0));
        assert_eq!(join(&mut streams, 100, 0), Some(10));
        assert_eq!(streams.send(&AHEAD, number, 4), Some((us(11), us(14))));
        // At once: the command and the bytes. After a long pause: the window is there, so only what
        // is beyond it.
        assert_eq!(join(&mut streams, 104, 14), Some(10));
        assert_eq!(streams.send(&AHEAD, number, 4), Some((us(25), us(28))));
        assert_eq!(join(&mut streams, 108, 1000), Some(10));
        assert_eq!(streams.send(&AHEAD, number, 4), Some((us(1003), us(1006))));
    }

    #[test]
    fn a_read_in_the_window_on_either_side_continues_its_stream() {
        let mut streams = Streams::default();
        let _ = streams.begin(&AHEAD, 100, us(0));
        assert_eq!(join(&mut streams, 92, 0), Some(10));
        // The sectors that are left out are fetched: 8 of them.
        assert_eq!(join(&mut streams, 108, 0), Some(18));
        assert_eq!(join(&mut streams, 112, 0), Some(10));
        assert_eq!(join(&mut streams, 125, 0), None);
        assert_eq!(streams.join(&AHEAD, Duration::from_us(1), 118, 4, us(0)), None);
        assert_eq!(join(&mut streams, 107, 0), None);
    }

    #[test]
    fn the_stream_that_was_read_least_recently_makes_room() {
        let mut streams = Streams::default();
        let first = streams.begin(&AHEAD, 100, us(0));
        let second = streams.begin(&AHEAD, 1000, us(0));
        assert_eq!(join(&mut streams, 100, 0), Some(10));
        let _ = streams.begin(&AHEAD, 5000, us(0));
        assert_eq!(join(&mut streams, 1000, 0), None);
        assert_eq!(streams.send(&AHEAD, second, 1), None);
        streams.move_on(first, 200, us(0));
        assert_eq!(join(&mut streams, 200, 0), Some(10));
        streams.forget();
        assert_eq!(join(&mut streams, 204, 0), None);
    }
}
