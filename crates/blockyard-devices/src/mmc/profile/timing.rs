//! The figures of a card: the times of its operations.
//!
//! All spans are virtual nanoseconds, and all sizes bytes, unless a name says otherwise. Where a
//! published measurement fixes a figure, its field says which one; the measurements are those of an
//! SD card on 4 lanes at 50 MHz (*Ux500*), and of an eMMC device in HS400 (*HS400*), both before
//! the changes that were published with them. A measurement shows card and host together, so the
//! card's share is the rest once the host's share is known.

use super::fault::CardFaults;
use crate::reader::spread::Spread;
use blockyard::time::Duration;
use blockyard_mmc::mode::{NCR_MAX, NCR_MIN};

/// Bytes of a KiB, the unit in which a copy is priced.
const KIB_BYTES: u64 = 1024;

/// All figures of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardTiming {
    /// NCR: clocks between a command and its response, 2 to 64. Standard: at 200 MHz a status takes
    /// 0.49 to 0.80 us.
    pub(crate) ncr_clocks: u32,
    /// Reading.
    pub read: ReadTiming,
    /// Writing.
    pub write: WriteTiming,
    /// Allocation units; `None`: the location of a write does not matter.
    pub units: Option<UnitTiming>,
    /// Pauses for work of the card's own.
    pub stall: Option<Stall>,
    /// Erasing.
    pub erase: EraseTiming,
    /// Work that a card defers.
    pub background: Option<BackgroundTiming>,
    /// Settings and modes.
    pub control: ControlTiming,
    /// The faults of the card: none in a profile, those of a fault file in a run.
    pub faults: CardFaults,
}

/// The times of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTiming {
    /// From the end of the response to the first block. Ux500: 460 us with the host's fixed part,
    /// and at most 142 us, the time of a chunk of 128 KiB beyond that of its bytes. HS400: 144.5 us
    /// with the host's part and 12 us of wire.
    pub access: Duration,
    /// Reading ahead; `None`: the card does not. Ux500: `None`, as reading at random costs the
    /// same.
    pub ahead: Option<AheadTiming>,
    /// Between two blocks, beyond the two clocks of the standard: the card's rate if the bus is
    /// faster. Ux500: 41.93 us/KiB, of which 41.76 are framed data and clocks, so 83 ns per block.
    pub gap: Duration,
    /// Accesses that run at a time for tasks in the command queue, at least 1. Not published.
    pub parallel: u8,
    /// The spread of [`Self::access`]; `None`: it is always the same.
    pub spread: Option<Spread>,
}

/// The read-ahead of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadTiming {
    /// Fetching a KiB. HS400: 65.5 us for 4 KiB, if the card is the bottleneck of sequential reads
    /// there.
    pub per_kib: Duration,
    /// The distance to which it fetches ahead, at least a sector. A read that begins at most this
    /// far back is still in the stream. Not published.
    pub window_bytes: u64,
    /// The card's own work for each command of a stream, before its data: neither is sent nor
    /// fetched meanwhile. HS400: 65.5 us for 4 KiB, whatever the host does, although such a card
    /// reads 300 MB/s in large commands.
    pub command: Duration,
    /// Streams that the card follows, at least 1. Not published.
    pub streams: u8,
}

/// The times of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTiming {
    /// Bytes that the card programs at once, a power of two of at least 512. Ux500: 8 KiB, as a
    /// write of 4 KiB takes longer than one of 8 KiB. Generic: 4 to 16 KiB.
    pub page_bytes: u32,
    /// Programming a page. Pages are programmed one at a time; dies that work in parallel make
    /// this shorter. Ux500: 143.05 us/KiB, less the host's mapping, less the wire's share if the
    /// data of a page does not arrive while another page is programmed.
    pub program: Duration,
    /// The additional time of a page that is written in part, for reading the rest of it. Ux500: a
    /// write of 4 KiB takes 873 us longer than its bytes alone would, including half a page that is
    /// programmed in vain.
    pub partial: Duration,
    /// The buffer, at least a page. It takes data at the speed of the wire until it is full, and
    /// empties page by page. With one page, data arrives only while nothing is programmed. Ux500:
    /// one page, if the host's fixed part of a write equals that of a read, at least 318 us. With
    /// more room nothing would hide the first page's 336 us on the wire, and the sum of both
    /// exceeds the 510 us.
    pub buffer_bytes: u64,
    /// Whether busy ends as soon as the data is in the buffer, with or without a cache; otherwise
    /// busy ends when the data is programmed. With eMMC's cache on, busy always ends early. Without
    /// a cache, a card that ends busy early keeps the data that it took, even if the power is cut.
    pub early: bool,
    /// Busy after the last page of each write, while the card updates its own tables in the memory,
    /// which programs nothing meanwhile. Ux500: 510 us with the host's fixed part.
    pub finish: Duration,
    /// The same after a write that continues one of the card's sequences. `None`: as
    /// [`Self::finish`], and the memory programs meanwhile.
    pub follow: Option<Duration>,
    /// Which writes share a page. It matters only for writes whose busy ends early. Ux500:
    /// [`Gather::Command`].
    pub gather: Gather,
    /// Sequences of writes that the card follows, at least 1.
    pub sequences: u8,
    /// The card's own work for each command that writes, before it programs. A packed command is
    /// one.
    pub command: Duration,
    /// The additional time of programming where a write continues none of these sequences: mapping
    /// tables, and garbage collection on average.
    pub jump: Duration,
    /// The spread of programming a page; `None`: it always takes the same time.
    pub spread: Option<Spread>,
    /// Pages that the card programs together, on planes or dies, at least 1. Only the data of one
    /// command fills them, and a packed command is one: with 2, 5 pages take as long as 6, and a
    /// part of a page takes twice its share. [`Self::program`] is a page's share of the time. Not
    /// published.
    pub parallel: u8,
    /// The additional programming, in percent of a page, where only CMD12 tells the card the end of
    /// a write: it has prepared for more, and closes its last page with what that has. At most 100.
    /// Not published.
    pub open_end: u8,
    /// The command that flushes the cache. What the cache holds is programmed before it, and
    /// [`Self::finish`] updates the card's tables, both only if a write came since the last flush.
    pub flush: Duration,
}

/// The writes that share a page of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gather {
    /// A page holds data of one command only.
    Command,
    /// Each sequence of writes fills pages of its own. The page of a sequence that the card no
    /// longer follows is programmed as it is.
    Sequence,
    /// All writes fill the same page, wherever they are, as their places are in the card's tables.
    Any,
}

/// Allocation units: a write that does not continue at the end of an open unit costs a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitTiming {
    /// A unit, a whole number of pages. Ux500: 512 KiB.
    pub bytes: u64,
    /// Units that are open at a time, at least 1. Generic: 4 to 8. Not published for Ux500.
    pub open: u8,
    /// Copying a KiB. Ux500: 0.196 ms.
    pub copy_per_kib: Duration,
}

impl UnitTiming {
    /// Returns the time of a copy of `bytes` bytes, rounded up.
    #[must_use]
    pub fn copy(&self, bytes: u64) -> Duration {
        per(self.copy_per_kib, bytes, KIB_BYTES)
    }
}

/// Pauses that a card makes while it programs (garbage collection).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// One page in this many pauses on average; at least 1. A part of a page pauses as often as its
    /// share of the page.
    pub one_in_pages: u32,
    /// The length of a pause. Generic: 10 to 500 ms.
    pub length: Duration,
    /// The spread of lengths; `None`: all are the same.
    pub spread: Option<Spread>,
}

/// The times of erases. A range takes the time of all groups that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EraseTiming {
    /// Sectors of a group, at least 1. eMMC's own group is in EXT_CSD (224).
    pub(crate) group_sectors: u32,
    /// Erasing a group, or on SD the part of one.
    pub erase: Duration,
    /// Trimming within a group. eMMC: limited by TRIM_MULT.
    pub trim: Duration,
    /// Discarding within a group. SD: at most 250 ms in all.
    pub discard: Duration,
    /// A sanitize, in all.
    pub(crate) sanitize: Duration,
}

/// Work that a card defers (BKOPS).
///
/// Every programmed byte adds to the work. Each given number of bytes raises the level by one: 1
/// wanted, 2 impacted, 3 critical. From level 2 on each status carries the exception bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundTiming {
    /// Programmed bytes per level, at least 1. Not published.
    pub level_bytes: u64,
    /// Doing the work of a KiB, on request or, if the device may, while it is idle. Not published.
    pub per_kib: Duration,
}

impl BackgroundTiming {
    /// Returns the time of the work of `bytes` bytes, rounded up.
    #[must_use]
    pub fn work(&self, bytes: u64) -> Duration {
        per(self.per_kib, bytes, KIB_BYTES)
    }

    /// Returns the bytes whose work is done in `span`, rounded down; `u64::MAX` if work takes no
    /// time.
    #[must_use]
    pub(crate) fn done_in(&self, span: Duration) -> u64 {
        let bytes = u128::from(span.as_ns()) * u128::from(KIB_BYTES);
        let done = bytes.checked_div(u128::from(self.per_kib.as_ns())).unwrap_or(u128::MAX);
        u64::try_from(done).unwrap_or(u64::MAX)
    }
}

/// Settings and modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlTiming {
    /// CMD6 of eMMC, and leaving or entering sleep. Generic: 1 to 10 ms.
    pub switch: Duration,
    /// CMD6 that changes the partition. eMMC: limited by EXT_CSD 199.
    pub partition: Duration,
    /// From an interrupt (HPI) to the end of busy. Generic: below 50 ms.
    pub interrupt: Duration,
}

/// A figure outside the limits of every card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTiming {
    /// The table of a profile that has the figure, such as `card.write`.
    pub table: &'static str,
    /// The key of the figure.
    pub key: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
}

impl core::fmt::Display for BadTiming {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.rule)
    }
}

impl core::error::Error for BadTiming {}

impl CardTiming {
    /// Returns a card that takes only the time of the wire, never fails, and buffers `buffer_bytes`
    /// in pages of 4 KiB. Other cards are built on it.
    #[cfg(test)]
    pub(crate) fn instant(buffer_bytes: u64) -> Self {
        let zero = Duration::ZERO;
        Self {
            ncr_clocks: NCR_MIN,
            read: ReadTiming { access: zero, ahead: None, gap: zero, parallel: 1, spread: None },
            write: WriteTiming {
                page_bytes: 4096,
                program: zero,
                partial: zero,
                buffer_bytes,
                early: false,
                finish: zero,
                follow: None,
                gather: Gather::Command,
                sequences: 1,
                command: zero,
                jump: zero,
                spread: None,
                parallel: 1,
                open_end: 0,
                flush: zero,
            },
            units: None,
            stall: None,
            erase: EraseTiming {
                group_sectors: 1024,
                erase: zero,
                trim: zero,
                discard: zero,
                sanitize: zero,
            },
            background: None,
            control: ControlTiming { switch: zero, partition: zero, interrupt: zero },
            faults: CardFaults::default(),
        }
    }

    /// Returns the same card without spreads and stalls, whose times never differ.
    #[must_use]
    pub(crate) const fn without_chance(mut self) -> Self {
        (self.read.spread, self.write.spread, self.stall) = (None, None, None);
        self
    }

    /// Checks that the figures agree with each other.
    ///
    /// # Errors
    ///
    /// The first figure outside the limits that the fields state.
    pub fn check(&self) -> Result<(), BadTiming> {
        let Self { read, write, faults, .. } = self;
        let ncr = (NCR_MIN..=NCR_MAX).contains(&self.ncr_clocks);
        ensure(ncr, ("card", "ncr-clocks"), "NCR is 2 to 64 clocks")?;
        ensure(
            read.ahead.is_none_or(|ahead| ahead.window_bytes >= 512),
            ("card.ahead", "window"),
            "a card that reads ahead does so by at least a sector",
        )?;
        let streams = read.ahead.is_none_or(|ahead| ahead.streams > 0);
        ensure(streams, ("card.ahead", "streams"), "a card that reads ahead follows a stream")?;
        let sequences = write.sequences > 0;
        ensure(sequences, ("card.write", "sequences"), "a card follows at least one sequence")?;
        let planes = write.parallel > 0;
        ensure(planes, ("card.write", "parallel"), "at least one page is programmed at a time")?;
        let accesses = read.parallel > 0;
        ensure(accesses, ("card.read", "parallel"), "at least one access runs at a time")?;
        ensure(
            write.page_bytes.is_power_of_two() && write.page_bytes >= 512,
            ("card.write", "page"),
            "a page is a power of two of at least 512 bytes",
        )?;
        let holds_page = write.buffer_bytes >= u64::from(write.page_bytes);
        ensure(holds_page, ("card.write", "buffer"), "the buffer holds at least a page")?;
        let group = self.erase.group_sectors > 0;
        ensure(group, ("card.erase", "group"), "an erase group has at least one sector")?;
        if let Some(units) = &self.units {
            ensure(
                units.bytes > 0 && units.bytes.is_multiple_of(u64::from(write.page_bytes)),
                ("card.units", "size"),
                "an allocation unit is a whole number of pages",
            )?;
            let open = units.open > 0;
            ensure(open, ("card.units", "open"), "at least one unit is open at a time")?;
        }
        if let Some(stall) = &self.stall {
            let comes = stall.one_in_pages > 0;
            ensure(comes, ("card.stall", "one-in-pages"), "a stall comes once in at least 1 page")?;
        }
        if let Some(background) = &self.background {
            let has_bytes = background.level_bytes > 0;
            let rule = "a level of background work has bytes";
            ensure(has_bytes, ("card.background", "level"), rule)?;
        }
        let faults = [
            ("command-lost-one-in", faults.command_lost_one_in),
            ("response-crc-one-in", faults.response_crc_one_in),
            ("no-data-one-in", faults.no_data_one_in),
            ("read-crc-one-in", faults.read_crc_one_in),
            ("write-crc-one-in", faults.write_crc_one_in),
            ("program-one-in", faults.program_one_in),
        ];
        faults.iter().try_for_each(|&(key, one_in)| {
            ensure(one_in != Some(0), ("card", key), "a fault comes once in at least 1")
        })
    }
}

/// Returns an error that names the figure unless its rule `holds`.
const fn ensure(
    holds: bool,
    (table, key): (&'static str, &'static str),
    rule: &'static str,
) -> Result<(), BadTiming> {
    if holds { Ok(()) } else { Err(BadTiming { table, key, rule }) }
}

/// Returns the time of `amount` at `unit_time` for each `unit`, rounded up. Saturates.
fn per(unit_time: Duration, amount: u64, unit: u64) -> Duration {
    debug_assert!(unit > 0, "a price for no bytes");
    let ns = (u128::from(unit_time.as_ns()) * u128::from(amount)).div_ceil(u128::from(unit));
    Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_costs_its_bytes_rounded_up() {
        let units = UnitTiming { bytes: 1 << 19, open: 1, copy_per_kib: Duration::from_us(196) };
        // 508 KiB * 196 us; half a KiB; a byte: 196,000 / 1024 = 191.4 ns.
        assert_eq!(units.copy(508 * 1024), Duration::from_us(99_568));
        assert_eq!(units.copy(512), Duration::from_us(98));
        assert_eq!(units.copy(1), Duration::from_ns(192));
    }

    #[test]
    fn background_work_is_done_at_its_rate_and_at_once_where_it_takes_no_time() {
        let slow = BackgroundTiming { level_bytes: 1, per_kib: Duration::from_us(10) };
        let free = BackgroundTiming { per_kib: Duration::ZERO, ..slow };
        assert_eq!(slow.done_in(Duration::from_us(25)), 2560);
        assert_eq!(slow.work(2560), Duration::from_us(25));
        assert_eq!(free.done_in(Duration::ZERO), u64::MAX);
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let good = CardTiming::instant(8192);
        assert_eq!(good.check(), Ok(()));
        type Spoil = fn(&mut CardTiming);
        let spoil: [(Spoil, &str); 10] = [
            (|t| t.ncr_clocks = 65, "NCR"),
            (|t| t.read.parallel = 0, "access"),
            (|t| t.write.sequences = 0, "sequence"),
            (|t| t.write.parallel = 0, "at least one page"),
            (|t| t.write.page_bytes = 5000, "page"),
            (|t| t.write.page_bytes = 16384, "buffer"),
            (|t| t.erase.group_sectors = 0, "erase group"),
            (
                |t| {
                    t.units =
                        Some(UnitTiming { bytes: 6000, open: 1, copy_per_kib: Duration::ZERO });
                },
                "allocation unit",
            ),
            (
                |t| {
                    let length = Duration::from_ns(1);
                    t.stall = Some(Stall { one_in_pages: 0, length, spread: None });
                },
                "stall",
            ),
            (|t| t.faults.write_crc_one_in = Some(0), "fault"),
        ];
        for (spoil, word) in spoil {
            let mut timing = good;
            spoil(&mut timing);
            let error = timing.check().unwrap_err();
            assert!(error.rule.contains(word), "{error}");
        }
    }
}
