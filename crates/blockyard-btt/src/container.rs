//! Containers of a BTT: the position of the first arena, and the expectations of each container's
//! readers.

use super::address::{PostmapAba, PremapAba};
use super::flog::FlogEntry;
use super::info_block::{Uuid, Version};
use super::layout::SECTOR_BYTES_MAX;
use super::map_entry::{MapEntry, SectorState};

/// The container of a BTT. It determines the only place where Linux and libpmemblk look for the
/// BTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// A namespace without a label: version 1.1, after 4096 bytes that may hold a partition table.
    Namespace,
    /// A namespace with a v1.2 label of class "BTT2": version 2.0, from the first byte.
    LabelledNamespace,
    /// A pool of libpmemblk: version 1.1, after the pool header of 8192 bytes.
    Pool,
}

/// How block numbers are written into the log. Each reader requires its own form (see
/// [`logged_new`](Dialect::logged_new)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Linux's form: plain numbers. ndctl refuses any other form.
    Plain,
    /// libpmemblk's form: whole map entries. Given the other form, it loses blocks in recovery.
    Flagged,
}

impl Container {
    /// All kinds of containers.
    pub const ALL: [Self; 3] = [Self::Namespace, Self::LabelledNamespace, Self::Pool];

    /// Bytes before the first arena.
    #[must_use]
    pub const fn first_arena(self) -> u64 {
        match self {
            Self::Namespace => 4096,
            Self::LabelledNamespace => 0,
            Self::Pool => 8192,
        }
    }

    /// The version of the format that readers of this container look for.
    #[must_use]
    pub const fn version(self) -> Version {
        match self {
            Self::LabelledNamespace => Version::V2,
            Self::Namespace | Self::Pool => Version::V1,
        }
    }

    /// The form of block numbers in its log.
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Pool => Dialect::Flagged,
            Self::Namespace | Self::LabelledNamespace => Dialect::Plain,
        }
    }

    /// Whether a container with UUID `own` accepts a BTT with parent UUID `parent`. A namespace
    /// also accepts the nil UUID; a pool accepts only its own.
    #[must_use]
    pub(crate) fn accepts_parent(self, parent: Uuid, own: Uuid) -> bool {
        parent == own || parent == Uuid::NIL && self != Self::Pool
    }

    /// Returns the bytes of the block for a sector of `external` bytes, rounded as the readers of
    /// this container do: up to a multiple of 64 in a namespace, and of 256, but at least 512, in a
    /// pool. Returns `None` for a sector size that the container does not support: Linux knows
    /// seven, from 512 to 4224.
    #[must_use]
    pub fn internal_lbasize(self, external: u32) -> Option<u32> {
        match self {
            Self::Pool if (1..=SECTOR_BYTES_MAX).contains(&external) => {
                Some(external.max(512).next_multiple_of(256))
            }
            Self::Pool => None,
            Self::Namespace | Self::LabelledNamespace => {
                let known = [512, 520, 528, 4096, 4104, 4160, 4224].contains(&external);
                known.then(|| external.next_multiple_of(64))
            }
        }
    }
}

impl Dialect {
    /// Returns the log's form of the sector's new block `block`.
    #[must_use]
    pub const fn logged_new(self, block: PostmapAba) -> u32 {
        match self {
            Self::Plain => block.0,
            Self::Flagged => MapEntry::normal(block).0,
        }
    }

    /// Returns the log's form of the old block in `entry`, the map entry of `lba`. Linux keeps the
    /// error bit.
    #[must_use]
    pub const fn logged_old(self, entry: MapEntry, lba: PremapAba) -> u32 {
        match self {
            Self::Plain => match entry.state() {
                SectorState::Error => entry.0,
                _ => entry.block(lba).0,
            },
            Self::Flagged => entry.explicit(lba).0,
        }
    }

    /// Returns the first entry of `lane`, whose free block is `free`. libpmemblk sets only one
    /// state bit.
    #[must_use]
    pub const fn first_entry(self, lane: u32, free: PostmapAba) -> FlogEntry {
        match self {
            Self::Plain => FlogEntry::first(lane, free.0),
            Self::Flagged => FlogEntry::first(lane, MapEntry(0).zeroed(PremapAba(free.0)).0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_rounded_as_the_container_requires() {
        let linux = [(512, 512), (520, 576), (528, 576), (4096, 4096), (4104, 4160), (4160, 4160)];
        for (external, internal) in linux {
            assert_eq!(Container::Namespace.internal_lbasize(external), Some(internal));
        }
        for (external, internal) in
            [(1, 512), (64, 512), (512, 512), (520, 768), (1000, 1024), (4096, 4096)]
        {
            assert_eq!(Container::Pool.internal_lbasize(external), Some(internal));
        }
        assert_eq!(Container::Namespace.internal_lbasize(1000), None);
        assert_eq!(Container::Pool.internal_lbasize(0), None);
        assert_eq!(Container::Pool.internal_lbasize(5000), Some(5120));
        assert_eq!(Container::Pool.internal_lbasize((1 << 20) + 1), None);
    }

    #[test]
    fn a_log_is_written_in_the_form_its_readers_require() {
        let lba = PremapAba(5);
        assert_eq!(logged_old(0, lba), [5, 0xc000_0005]);
        assert_eq!(logged_old(0xc000_0009, lba), [9, 0xc000_0009]);
        assert_eq!(logged_old(0x8000_0009, lba), [9, 0x8000_0009]);
        assert_eq!(logged_old(0x4000_0009, lba), [0x4000_0009, 0x4000_0009]);
        assert_eq!(Dialect::Flagged.first_entry(3, PostmapAba(700)).old_map, 0x8000_02bc);
        assert_eq!(Dialect::Plain.first_entry(3, PostmapAba(700)).old_map, 700);
    }

    fn logged_old(entry: u32, lba: PremapAba) -> [u32; 2] {
        [Dialect::Plain, Dialect::Flagged].map(|d| d.logged_old(MapEntry(entry), lba))
    }

    #[test]
    fn a_pool_accepts_only_its_own_btt() {
        let own = Uuid([1; 16]);
        let other = Uuid([2; 16]);
        assert!(Container::Pool.accepts_parent(own, own));
        assert!(!Container::Pool.accepts_parent(Uuid::NIL, own));
        assert!(Container::Namespace.accepts_parent(Uuid::NIL, own));
        assert!(!Container::Namespace.accepts_parent(other, own));
        assert!(!Container::Namespace.accepts_parent(other, Uuid::NIL));
    }
}
