//! What a BTT lies in: where its first arena begins, and the habits of those who look there.

use super::address::{PostmapAba, PremapAba};
use super::flog::FlogEntry;
use super::info_block::{Uuid, Version};
use super::layout::SECTOR_BYTES_MAX;
use super::map_entry::{MapEntry, SectorState};

/// What a BTT lies in. Linux and libpmemblk look for one in one place only, by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// A namespace without label: version 1.1, behind 4096 bytes that may hold a partition table.
    Namespace,
    /// A namespace with a v1.2 label of class "BTT2": version 2.0, from the first byte.
    LabelledNamespace,
    /// A pool of libpmemblk: version 1.1, behind its header of 8192 bytes.
    Pool,
}

/// How block numbers are written into the log: readers demand their own way (see
/// [`logged_new`](Dialect::logged_new)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// As Linux does: plain numbers; ndctl refuses others.
    Plain,
    /// As libpmemblk does: whole map entries; it loses blocks of others when it recovers.
    Flagged,
}

impl Container {
    /// All there are.
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

    /// The version it is looked for with.
    #[must_use]
    pub const fn version(self) -> Version {
        match self {
            Self::LabelledNamespace => Version::V2,
            Self::Namespace | Self::Pool => Version::V1,
        }
    }

    /// How its log is written.
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Pool => Dialect::Flagged,
            Self::Namespace | Self::LabelledNamespace => Dialect::Plain,
        }
    }

    /// Whether a BTT with this parent UUID is one of a container with UUID `own`: a namespace takes nil,
    /// a pool only its own.
    #[must_use]
    pub fn accepts_parent(self, parent: Uuid, own: Uuid) -> bool {
        parent == own || parent == Uuid::NIL && self != Self::Pool
    }

    /// Bytes of the block that a sector of `external` bytes gets, as whoever looks there makes them: rounded
    /// up to 64 in a namespace, and to 256 but at least 512 in a pool. `None` if such sectors are not for
    /// there: Linux knows seven sizes, from 512 to 4224.
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
    /// How a log says that a sector gets `block`.
    #[must_use]
    pub const fn logged_new(self, block: PostmapAba) -> u32 {
        match self {
            Self::Plain => block.0,
            Self::Flagged => MapEntry::normal(block).0,
        }
    }

    /// How a log says which block `entry`, that of sector `lba`, had. Linux keeps the error bit.
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

    /// The first entry of lane `lane`, whose free block is `free`. libpmemblk sets one state bit only.
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
    fn blocks_are_rounded_as_those_who_look_there_do() {
        let linux = [(512, 512), (520, 576), (528, 576), (4096, 4096), (4104, 4160), (4160, 4160)];
        for (external, internal) in linux {
            assert_eq!(Container::Namespace.internal_lbasize(external), Some(internal));
        }
        for (external, internal) in [(64, 512), (512, 512), (520, 768), (1000, 1024), (4096, 4096)]
        {
            assert_eq!(Container::Pool.internal_lbasize(external), Some(internal));
        }
        assert_eq!(Container::Namespace.internal_lbasize(1000), None);
        assert_eq!(Container::Pool.internal_lbasize(0), None);
    }

    #[test]
    fn a_log_is_written_as_its_readers_want_it() {
        let lba = PremapAba(5);
        let old =
            |entry| [Dialect::Plain, Dialect::Flagged].map(|d| d.logged_old(MapEntry(entry), lba));
        assert_eq!(old(0), [5, 0xc000_0005]);
        assert_eq!(old(0xc000_0009), [9, 0xc000_0009]);
        assert_eq!(old(0x8000_0009), [9, 0x8000_0009]);
        assert_eq!(old(0x4000_0009), [0x4000_0009, 0x4000_0009]);
        assert_eq!(Dialect::Flagged.first_entry(3, PostmapAba(700)).old_map, 0x8000_02bc);
        assert_eq!(Dialect::Plain.first_entry(3, PostmapAba(700)).old_map, 700);
    }

    #[test]
    fn a_pool_takes_its_own_only() {
        let (own, other) = (Uuid([1; 16]), Uuid([2; 16]));
        assert!(Container::Pool.accepts_parent(own, own));
        assert!(!Container::Pool.accepts_parent(Uuid::NIL, own));
        assert!(Container::Namespace.accepts_parent(Uuid::NIL, own));
        assert!(!Container::Namespace.accepts_parent(other, own));
        assert!(!Container::Namespace.accepts_parent(other, Uuid::NIL));
    }
}
