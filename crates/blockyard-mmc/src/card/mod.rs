//! A [`Card`]: what a host knows of a card that it has [identified](super::identify).
//!
//! The card keeps its registers. Its methods answer the questions of the request path in the same
//! way for both standards. [`time`] has the time limits, [`erase`] the ways to erase ranges.

use super::command::{Addressing, Rca};
use super::host::HostCapabilities;
use super::mode::Mode;
use super::register::cid::Cid;
use super::register::csd::{Csd, Layout};
pub use super::register::ext_csd::partition::Partition;
use super::register::ext_csd::{ExtCsd, Hpi};
use super::register::extension::Performance;
use super::register::scr::Scr;
use super::register::ssr::Ssr;
use alloc::boxed::Box;
use blockyard::limits::Limits;

pub mod erase;
pub(crate) mod erase_time;
pub mod time;

#[cfg(test)]
pub(crate) mod tests;

/// A card that is selected and ready, as it was when it was identified. After a reset, the card may
/// have another address: the request path then goes by what
/// [`HostController::reset`](super::controller::HostController::reset) returns, and this value is
/// out of date.
#[derive(Clone, Debug)]
pub struct Card {
    /// The standard that the card follows, with the registers that only that standard has.
    pub kind: CardKind,
    /// The card's address.
    pub rca: Rca,
    /// The card's identity.
    pub cid: Cid,
    /// The card's CSD.
    pub csd: Csd,
    /// The unit of addresses.
    pub addressing: Addressing,
    /// The size of the user area in sectors of 512 bytes.
    pub sectors: u64,
    /// The mode of the bus.
    pub mode: Mode,
}

/// The standard that a card follows.
#[derive(Clone, Debug)]
pub enum CardKind {
    /// eMMC.
    Mmc {
        /// Its EXT_CSD as last read, which devices before 4.0 do not have.
        ext_csd: Option<Box<ExtCsd>>,
    },
    /// SD.
    Sd {
        /// Its SCR.
        scr: Scr,
        /// Its SSR.
        ssr: Ssr,
        /// Its performance enhancement register as last read, if it has one.
        performance: Option<Performance>,
    },
}

/// The lengths that a reliable write can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReliableWrite {
    /// The card has no reliable write.
    None,
    /// One sector, or exactly this many (at least one) from a multiple of this number on.
    OneOr(u8),
    /// Any number of sectors.
    Any,
}

impl Card {
    /// Returns EXT_CSD, if the card has one.
    #[must_use]
    pub fn ext_csd(&self) -> Option<&ExtCsd> {
        match &self.kind {
            CardKind::Mmc { ext_csd } => ext_csd.as_deref(),
            CardKind::Sd { .. } => None,
        }
    }

    /// Returns SSR, if the card has one.
    #[must_use]
    pub const fn ssr(&self) -> Option<&Ssr> {
        match &self.kind {
            CardKind::Sd { ssr, .. } => Some(ssr),
            CardKind::Mmc { .. } => None,
        }
    }

    /// Returns the performance enhancement register of an SD card that has one.
    #[must_use]
    pub const fn performance(&self) -> Option<&Performance> {
        match &self.kind {
            CardKind::Sd { performance, .. } => performance.as_ref(),
            CardKind::Mmc { .. } => None,
        }
    }

    /// Returns whether the card is an SD card of more than 32 GB.
    pub(super) const fn is_sdxc(&self) -> bool {
        matches!(self.csd.layout, Layout::Sd2 | Layout::Sd3) && self.sectors > 32 << 21
    }

    /// Returns whether transfers between `host` and the card can be announced with CMD23.
    #[must_use]
    pub fn set_block_count(&self, host: &HostCapabilities) -> bool {
        let card = match &self.kind {
            CardKind::Sd { scr, .. } => scr.set_block_count,
            // JESD84: since 3.1.
            CardKind::Mmc { .. } => matches!(self.csd.layout, Layout::Mmc { spec_version: 3.. }),
        };
        card && host.set_block_count
    }

    /// Returns the number of 512-byte sectors in one of the card's own sectors, which is
    /// transferred as a whole: 1, or 8 (eMMC with 4 KiB sectors that does not emulate 512 bytes).
    #[must_use]
    pub(crate) fn data_sector_sectors(&self) -> u32 {
        self.ext_csd().map_or(1, ExtCsd::data_sector_sectors)
    }

    /// Returns the bytes of the volatile write cache of an eMMC device; 0 if there is none. An SD
    /// card does not state its size.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        self.ext_csd().map_or(0, ExtCsd::cache_bytes)
    }

    /// Returns whether the cache is on, so that a write that has ended is not durable yet.
    #[must_use]
    pub fn cache_on(&self) -> bool {
        let of_mmc = self.ext_csd();
        of_mmc.is_some_and(|ext_csd| ext_csd.cache_on() && ext_csd.cache_bytes() != 0)
            || self.performance().is_some_and(|performance| performance.cache_on)
    }

    /// Returns the number of requests that card and host's engine both hold, 1 to 32; 0 if one of
    /// the two has no command queue. An SD card has none while its cache is off.
    #[must_use]
    pub fn queue_depth(&self, host: &HostCapabilities) -> u8 {
        let of_card = match &self.kind {
            CardKind::Mmc { ext_csd } => ext_csd.as_deref().map_or(0, ExtCsd::queue_depth),
            CardKind::Sd { performance, .. } => {
                performance.filter(|found| found.cache_on).map_or(0, |found| found.queue_depth)
            }
        };
        of_card.min(host.queue_engine_tasks())
    }

    /// Returns the largest number of writes, and of reads, in one packed command; 0 if there are
    /// none. A header of one sector describes at most 63. A card that does not report which request
    /// failed packs none, nor does a card whose own sectors are larger than 512 bytes, as its
    /// headers would be larger, too.
    #[must_use]
    pub fn max_packed(&self, host: &HostCapabilities) -> (u8, u8) {
        let Some(ext_csd) = self.ext_csd().filter(|ext_csd| {
            let has_short_header = ext_csd.data_sector_sectors() == 1;
            has_short_header && self.set_block_count(host) && ext_csd.packed_events_on()
        }) else {
            return (0, 0);
        };
        (ext_csd.max_packed_writes().min(63), ext_csd.max_packed_reads().min(63))
    }

    /// Returns the lengths that a reliable write can have; it needs CMD23. A task of a command
    /// queue transfers its whole request, and so does a sector of 4 KiB: there only a reliable
    /// write of any length counts.
    #[must_use]
    pub fn reliable_write(&self, host: &HostCapabilities) -> ReliableWrite {
        match self.ext_csd().filter(|_| self.set_block_count(host)) {
            None => ReliableWrite::None,
            Some(ext_csd) => match ext_csd.reliable_write_sectors() {
                None => ReliableWrite::Any,
                Some(0) => ReliableWrite::None,
                Some(_) if self.queue_depth(host) > 0 || self.data_sector_sectors() > 1 => {
                    ReliableWrite::None
                }
                Some(sectors) => ReliableWrite::OneOr(sectors),
            },
        }
    }

    /// Returns how the card is interrupted (HPI), if it can be and this is turned on.
    #[must_use]
    pub fn hpi(&self) -> Option<Hpi> {
        self.ext_csd().filter(|ext_csd| ext_csd.hpi_on()).and_then(ExtCsd::hpi)
    }

    /// Returns whether the host can start background operations.
    #[must_use]
    pub fn bkops(&self) -> bool {
        self.ext_csd().is_some_and(ExtCsd::bkops)
    }

    /// Returns whether the host can start background operations, and has promised to when they are
    /// urgent.
    #[must_use]
    pub(crate) fn bkops_by_host(&self) -> bool {
        self.bkops() && self.ext_csd().is_some_and(ExtCsd::bkops_by_host)
    }

    /// Returns the size of a partition in sectors; 0 if there is none. An SD card has a user area
    /// only.
    #[must_use]
    pub fn partition_sectors(&self, partition: Partition) -> u64 {
        match partition {
            Partition::User => self.sectors,
            other => self.ext_csd().map_or(0, |ext_csd| ext_csd.partition_sectors(other)),
        }
    }

    /// Returns the limits of the user area as a block device behind `host`; `None` if it has no
    /// sector.
    ///
    /// Other [partitions](Partition) have no limits: the [request path](super::block) never
    /// switches partitions (PARTITION_CONFIG), so requests for one of them would land in the user
    /// area.
    ///
    /// A request is one transfer, so it is limited by the largest transfer of the host and by the
    /// 16 bits of CMD23. Discards are limited only by their type, in whole preferred erase units.
    ///
    /// A card with reliable writes has a write cache here even if it has none: only then do writes
    /// that must be durable (FUA) arrive as such, and become reliable writes. A flush of such a
    /// card sends nothing.
    #[must_use]
    pub fn limits(&self, host: &HostCapabilities) -> Option<Limits> {
        if self.sectors == 0 {
            return None;
        }
        let logical_block_sectors = self.data_sector_sectors();
        debug_assert!(matches!(logical_block_sectors, 1 | 8), "EXT_CSD::parse refuses others");
        let max_blocks = u32::from(host.max_blocks);
        debug_assert!(max_blocks > 0 && host.max_segments > 0, "a host that transfers nothing");
        let unit = self.preferred_erase_sectors();
        let erasable = u32::MAX / unit * unit;
        let fua = self.reliable_write(host) != ReliableWrite::None;
        Some(Limits {
            logical_block_sectors,
            max_sectors: (max_blocks / logical_block_sectors * logical_block_sectors)
                .max(logical_block_sectors),
            max_segments: host.max_segments,
            max_discard_sectors: if self.discard_by().is_some() { erasable } else { 0 },
            max_write_zeroes_sectors: if self.zero_by().is_some() { erasable } else { 0 },
            write_cache: self.cache_on() || fua,
            fua,
            ..Limits::new(self.sectors)
        })
    }
}
