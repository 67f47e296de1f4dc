//! A [`Card`]: what a host knows once it has [identified](super::identify) one.
//!
//! The registers stay with it, so that nothing is lost; what the request path asks is answered here,
//! the same way for both standards. How long things may take is in [`time`], how ranges are erased
//! in [`erase`].

use super::command::{Addressing, Rca};
use super::host::HostCapabilities;
use super::mode::Mode;
use super::register::cid::Cid;
use super::register::csd::{Csd, Layout};
pub use super::register::ext_csd::partition::Partition;
use super::register::ext_csd::{ExtCsd, Hpi};
use super::register::scr::Scr;
use super::register::ssr::Ssr;
use alloc::boxed::Box;
use blockyard::limits::Limits;

pub mod erase;
pub(crate) mod erase_time;
pub mod time;

#[cfg(test)]
pub(crate) mod tests;

/// A card that is selected and ready.
#[derive(Clone, Debug)]
pub struct Card {
    /// Which standard it follows, with the registers that only that standard has.
    pub kind: CardKind,
    /// Its address.
    pub rca: Rca,
    /// Who made it.
    pub cid: Cid,
    /// Its CSD.
    pub csd: Csd,
    /// What its addresses count.
    pub addressing: Addressing,
    /// Size of its user area in sectors of 512 bytes.
    pub sectors: u64,
    /// How the bus to it is driven.
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
    },
}

/// How much a reliable write can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReliableWrite {
    /// There is none.
    None,
    /// One sector, or exactly so many.
    OneOr(u8),
    /// Any number of sectors.
    Any,
}

impl Card {
    /// EXT_CSD, where there is one.
    #[must_use]
    pub fn ext_csd(&self) -> Option<&ExtCsd> {
        match &self.kind {
            CardKind::Mmc { ext_csd } => ext_csd.as_deref(),
            CardKind::Sd { .. } => None,
        }
    }

    /// SSR, where there is one.
    #[must_use]
    pub const fn ssr(&self) -> Option<&Ssr> {
        match &self.kind {
            CardKind::Sd { ssr, .. } => Some(ssr),
            CardKind::Mmc { .. } => None,
        }
    }

    /// Whether it is an SD card of more than 32 GB.
    pub(super) const fn is_sdxc(&self) -> bool {
        matches!(self.csd.layout, Layout::Sd2 | Layout::Sd3) && self.sectors > 32 << 21
    }

    /// Whether transfers can be announced with CMD23: it depends on the host, too.
    #[must_use]
    pub fn set_block_count(&self, host: &HostCapabilities) -> bool {
        let card = match (&self.kind, self.csd.layout) {
            (CardKind::Sd { scr, .. }, _) => scr.set_block_count,
            // JESD84: since 3.1.
            (CardKind::Mmc { .. }, Layout::Mmc { spec_version }) => spec_version >= 3,
            (CardKind::Mmc { .. }, _) => false,
        };
        card && host.set_block_count
    }

    /// Sectors of 512 bytes in one of its own, which is transferred as a whole: 1, or 8 (eMMC of 4 KiB
    /// sectors that does not emulate 512 bytes).
    #[must_use]
    pub fn data_sector_sectors(&self) -> u32 {
        self.ext_csd().map_or(1, ExtCsd::data_sector_sectors)
    }

    /// Bytes of the volatile write cache; 0: none. SD's cache is not used here.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        self.ext_csd().map_or(0, ExtCsd::cache_bytes)
    }

    /// Whether the cache is on, so that what a write ends is not durable yet.
    #[must_use]
    pub fn cache_on(&self) -> bool {
        self.ext_csd().is_some_and(|ext_csd| ext_csd.cache_on() && ext_csd.cache_bytes() > 0)
    }

    /// Requests that card and host's engine queue together, 1 to 32; 0: there is no command queue on
    /// one of the two. SD's queue is not used here.
    #[must_use]
    pub fn queue_depth(&self, host: &HostCapabilities) -> u8 {
        self.ext_csd().map_or(0, ExtCsd::queue_depth).min(host.queue_engine_tasks())
    }

    /// Most writes, and most reads, in one packed command; 0: none. A header of one sector describes
    /// 63 at most. A card that does not tell which of them failed has none, nor has one whose own sectors
    /// are larger: so would be its headers.
    #[must_use]
    pub fn max_packed(&self, host: &HostCapabilities) -> (u8, u8) {
        let packs = |ext_csd: &&ExtCsd| {
            let has_short_header = ext_csd.data_sector_sectors() == 1;
            has_short_header && self.set_block_count(host) && ext_csd.packed_events_on()
        };
        let Some(ext_csd) = self.ext_csd().filter(packs) else { return (0, 0) };
        (ext_csd.max_packed_writes().min(63), ext_csd.max_packed_reads().min(63))
    }

    /// What a reliable write can have; it needs CMD23.
    #[must_use]
    pub fn reliable_write(&self, host: &HostCapabilities) -> ReliableWrite {
        match self.ext_csd().filter(|_| self.set_block_count(host)) {
            None => ReliableWrite::None,
            Some(ext_csd) => match ext_csd.reliable_write_sectors() {
                None => ReliableWrite::Any,
                Some(0) => ReliableWrite::None,
                Some(sectors) => ReliableWrite::OneOr(sectors),
            },
        }
    }

    /// How the card is interrupted, if it can be and this is on.
    #[must_use]
    pub fn hpi(&self) -> Option<Hpi> {
        self.ext_csd().filter(|ext_csd| ext_csd.hpi_on()).and_then(ExtCsd::hpi)
    }

    /// Whether the host can start background operations.
    #[must_use]
    pub fn bkops(&self) -> bool {
        self.ext_csd().is_some_and(ExtCsd::bkops)
    }

    /// Whether the host can start background operations, and has promised to when they are urgent.
    #[must_use]
    pub fn bkops_by_host(&self) -> bool {
        self.bkops() && self.ext_csd().is_some_and(ExtCsd::bkops_by_host)
    }

    /// Size of a partition in sectors; 0: there is none. An SD card has a user area only.
    #[must_use]
    pub fn partition_sectors(&self, partition: Partition) -> u64 {
        match partition {
            Partition::User => self.sectors,
            other => self.ext_csd().map_or(0, |ext_csd| ext_csd.partition_sectors(other)),
        }
    }

    /// The limits of its user area as a block device behind `host`; `None` where it has no sector.
    ///
    /// There are none of other [partitions](Partition): the [request path](super::block) never switches
    /// (PARTITION_CONFIG), so what is meant for one of them would land in the user area.
    ///
    /// A request is one transfer, so it is held to what the host transfers at once and to the 16
    /// bits of CMD23. Discards are limited by nothing but their type, in whole preferred erase units.
    #[must_use]
    pub fn limits(&self, host: &HostCapabilities) -> Option<Limits> {
        if self.sectors == 0 {
            return None;
        }
        let logical_block_sectors = self.data_sector_sectors();
        let max_blocks = u32::from(host.max_blocks);
        let unit = self.preferred_erase_sectors();
        let erasable = u32::MAX / unit * unit;
        let max_if = |able: bool| if able { erasable } else { 0 };
        let write_cache = self.cache_on();
        Some(Limits {
            logical_block_sectors,
            max_sectors: (max_blocks / logical_block_sectors * logical_block_sectors)
                .max(logical_block_sectors),
            max_segments: host.max_segments,
            max_discard_sectors: max_if(self.discard_by().is_some()),
            max_write_zeroes_sectors: max_if(self.zero_by().is_some()),
            write_cache,
            fua: write_cache && self.reliable_write(host) == ReliableWrite::Any,
            ..Limits::new(self.sectors)
        })
    }
}
