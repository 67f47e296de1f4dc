//! What of a card the request path needs.

use super::card::erase::EraseWay;
use super::card::time::{INTERRUPT, SD_READ, SD_WRITE, SWITCH};
use super::card::{Card, ReliableWrite};
use super::command::{Addressing, Direction, Rca};
use super::host::HostCapabilities;
use super::register::cid::Cid;
use super::register::ext_csd::Hpi;
use blockyard::time::Duration;

/// What of a card the request path needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which card it is. `None`: that is not known, nor noticed when it is another.
    pub cid: Option<Cid>,
    /// Its address.
    pub rca: Rca,
    /// What its addresses count.
    pub addressing: Addressing,
    /// Sectors of 512 bytes in one of its own, which are transferred whole: 1, or 8.
    pub unit_sectors: u32,
    /// Whether it knows CMD23.
    pub set_block_count: bool,
    /// Whether its volatile cache is on.
    pub cache_on: bool,
    /// Requests that its command queue holds, with what the controller's engine holds; 0: it has none.
    pub queue_depth: u8,
    /// What a reliable write can have. Where any, writes past the cache are such.
    pub reliable_write: ReliableWrite,
    /// How ranges are given up, if they can be.
    pub discard: Option<EraseWay>,
    /// How ranges are made to read as zeroes, if they can be.
    pub write_zeroes: Option<EraseWay>,
    /// How ranges are erased for good, if they can be: the one, then the other.
    pub secure_erase: Option<[EraseWay; 2]>,
    /// Whether all that was given up can be erased for good.
    pub sanitize: bool,
    /// Most writes in one packed command; 0: none can be packed.
    pub packed_writes: u8,
    /// Most reads in one packed command; 0: none can be packed.
    pub packed_reads: u8,
    /// Whether the host is to start background operations that are urgent.
    pub bkops: bool,
    /// How the card is interrupted, if it can be.
    pub hpi: Option<Hpi>,
    /// How long it may take before a block that is read, in nanoseconds as all of these.
    pub read_limit: Duration,
    /// How long it may be busy with a block that is written.
    pub write_limit: Duration,
    /// How long it may be busy with a switch.
    pub switch_limit: Duration,
    /// How long it may take to leave what was interrupted.
    pub interrupt_limit: Duration,
}

impl Target {
    /// That of `card` behind `host`.
    #[must_use]
    pub fn of(card: &Card, host: &HostCapabilities) -> Self {
        let way = |by| card.erase_way(by);
        Self {
            cid: Some(card.cid),
            unit_sectors: card.data_sector_sectors(),
            set_block_count: card.set_block_count(host),
            cache_on: card.cache_on(),
            queue_depth: card.queue_depth(host),
            reliable_write: card.reliable_write(host),
            discard: card.discard_by().and_then(way),
            write_zeroes: card.zero_by().and_then(way),
            secure_erase: card
                .secure_erase_by()
                .and_then(|[mark, erase]| Some([way(mark)?, way(erase)?])),
            sanitize: card.sanitize(),
            packed_writes: card.max_packed(host).0,
            packed_reads: card.max_packed(host).1,
            bkops: card.bkops_by_host(),
            hpi: card.hpi(),
            read_limit: card.read_limit(),
            write_limit: card.write_limit(),
            switch_limit: card.switch_limit(),
            interrupt_limit: card.interrupt_limit(),
            ..Self::plain(card.rca, card.addressing)
        }
    }

    /// A card that reads and writes, and nothing else.
    #[must_use]
    pub const fn plain(rca: Rca, addressing: Addressing) -> Self {
        Self {
            cid: None,
            rca,
            addressing,
            unit_sectors: 1,
            set_block_count: false,
            cache_on: false,
            queue_depth: 0,
            reliable_write: ReliableWrite::None,
            discard: None,
            write_zeroes: None,
            secure_erase: None,
            sanitize: false,
            packed_writes: 0,
            packed_reads: 0,
            bkops: false,
            hpi: None,
            read_limit: SD_READ,
            write_limit: SD_WRITE,
            switch_limit: SWITCH,
            interrupt_limit: INTERRUPT,
        }
    }

    /// How long it may keep the host waiting in a transfer.
    pub(crate) const fn transfer_limit(&self, direction: Direction) -> Duration {
        match direction {
            Direction::Read => self.read_limit,
            Direction::Write => self.write_limit,
        }
    }

    /// Whether requests that were taken for this can go on with `back`, which came back from a reset: it
    /// is the same card, and what they were promised holds (E6).
    pub(crate) fn is_still(&self, back: &Self) -> bool {
        let promises = |of: &Self| {
            let ranges = |way: Option<EraseWay>| way.map(|way| way.ranges());
            let erases = [of.discard, of.write_zeroes].map(ranges);
            let secure = of.secure_erase.map(|ways| ways.map(|way| way.ranges()));
            let transfers = (of.addressing, of.set_block_count, of.reliable_write, of.queue_depth);
            (of.cid, of.unit_sectors, transfers, erases, secure)
        };
        // Nobody would flush a cache that was off.
        promises(self) == promises(back) && (self.cache_on || !back.cache_on)
    }
}
