//! The two address spaces inside an arena. The third, external LBAs, is the device's own: a plain `u64`
//! that counts sectors through all arenas.

/// A sector of an arena, as those outside count them: an index into its map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PremapAba(pub u32);

/// A block of an arena's data area: what a map entry names.
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
