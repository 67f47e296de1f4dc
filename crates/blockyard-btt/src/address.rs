//! The two address spaces inside an arena. The third address space, external LBAs, belongs to the
//! device: a plain `u64` that counts sectors through all arenas.

/// The number of a sector within its arena: an index into the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PremapAba(pub u32);

/// The number of a block in an arena's data area: a map entry holds one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostmapAba(pub u32);

impl core::fmt::Display for PremapAba {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl core::fmt::Display for PostmapAba {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}
