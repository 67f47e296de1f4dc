//! The properties of a card that the request path needs.

use super::card::erase::EraseWay;
use super::card::time::{INTERRUPT, SD_READ, SD_WRITE, SWITCH};
use super::card::{Card, ReliableWrite};
use super::command::{Addressing, Direction, Rca};
use super::host::HostCapabilities;
use super::register::cid::Cid;
use super::register::ext_csd::Hpi;
use super::register::extension::ExtensionPlace;
use blockyard::time::Duration;

/// The properties of a card that the request path needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The identity of the card. `None` if it is not known; then nobody notices another card.
    pub cid: Option<Cid>,
    /// The card's address.
    pub rca: Rca,
    /// The unit of addresses.
    pub addressing: Addressing,
    /// Sectors of 512 bytes in one of the card's own sectors, which are transferred whole: 1, or 8.
    pub unit_sectors: u32,
    /// Whether the card takes CMD23.
    pub set_block_count: bool,
    /// Whether the card's volatile cache is on.
    pub cache_on: bool,
    /// The place of an SD card's performance enhancement register, which has the settings of its
    /// cache and its queue. eMMC has them in EXT_CSD.
    pub performance: Option<ExtensionPlace>,
    /// The number of requests that the card's command queue and the controller's engine both hold;
    /// 0 if there is no queue.
    pub queue_depth: u8,
    /// What a reliable write can cover. A write past the cache is one reliable write, or several.
    pub reliable_write: ReliableWrite,
    /// How ranges are discarded, if the card can.
    pub discard: Option<EraseWay>,
    /// How ranges are made to read as zeroes, if the card can.
    pub write_zeroes: Option<EraseWay>,
    /// How ranges are erased with every copy of them, if the card can: the first way, then the
    /// second.
    pub secure_erase: Option<[EraseWay; 2]>,
    /// Whether everything that was discarded can be erased with every copy of it.
    pub sanitize: bool,
    /// The largest number of writes in one packed command; 0 if the card packs none.
    pub packed_writes: u8,
    /// The largest number of reads in one packed command; 0 if the card packs none.
    pub packed_reads: u8,
    /// Whether the host is to start urgent background operations.
    pub bkops: bool,
    /// How the card is interrupted (HPI), if it can be.
    pub hpi: Option<Hpi>,
    /// The longest time before a block that is read, in nanoseconds like the limits below.
    pub read_limit: Duration,
    /// The longest busy time after a block that is written.
    pub write_limit: Duration,
    /// The longest busy time after a switch.
    pub switch_limit: Duration,
    /// The longest time that the card may take to stop after an interrupt (HPI).
    pub interrupt_limit: Duration,
}

impl Target {
    /// The properties of `card` behind `host`.
    #[must_use]
    pub fn of(card: &Card, host: &HostCapabilities) -> Self {
        Self {
            cid: Some(card.cid),
            unit_sectors: card.data_sector_sectors(),
            set_block_count: card.set_block_count(host),
            cache_on: card.cache_on(),
            performance: card.performance().map(|performance| performance.place),
            queue_depth: card.queue_depth(host),
            reliable_write: card.reliable_write(host),
            discard: card.discard_by().and_then(|by| card.erase_way(by)),
            write_zeroes: card.zero_by().and_then(|by| card.erase_way(by)),
            secure_erase: card
                .secure_erase_by()
                .and_then(|[mark, erase]| Some([card.erase_way(mark)?, card.erase_way(erase)?])),
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

    /// A card that reads and writes, and does nothing else.
    #[must_use]
    pub const fn plain(rca: Rca, addressing: Addressing) -> Self {
        Self {
            cid: None,
            rca,
            addressing,
            unit_sectors: 1,
            set_block_count: false,
            cache_on: false,
            performance: None,
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

    /// Returns how long the card may keep the host waiting in a transfer.
    pub(crate) const fn transfer_limit(&self, direction: Direction) -> Duration {
        match direction {
            Direction::Read => self.read_limit,
            Direction::Write => self.write_limit,
        }
    }

    /// Returns whether requests that were accepted for this card can continue with `back`, which
    /// came back from a reset: `back` is the same card, and what the requests were promised holds.
    /// The command queue is promised if it is the way of requests to the card (`queued`).
    pub(crate) fn is_still(&self, back: &Self, queued: bool) -> bool {
        debug_assert!(matches!(self.unit_sectors, 1 | 8), "sectors of the card's own");
        // A cache that was off would never be flushed.
        let flushes = self.cache_on || !back.cache_on;
        let queues = !queued || self.queue_depth == back.queue_depth;
        self.promises() == back.promises() && flushes && queues
    }

    /// Returns whether `back` is this card without the command queue that it had: after the reset
    /// its extension registers could not be read, or its cache not turned on.
    pub(crate) fn lost_queue(&self, back: &Self) -> bool {
        self.cid == back.cid && self.queue_depth > 0 && back.queue_depth == 0
    }

    /// The identity of the card, and all that requests were promised of it.
    fn promises(&self) -> impl PartialEq {
        let erases = [self.discard, self.write_zeroes]
            .map(|way: Option<EraseWay>| way.map(|way| way.ranges()));
        let secure = self.secure_erase.map(|ways| ways.map(|way| way.ranges()));
        let transfers = (self.addressing, self.set_block_count, self.reliable_write);
        (self.cid, self.unit_sectors, transfers, erases, secure)
    }
}
