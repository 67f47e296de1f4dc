//! Metadata contexts, whose status BLOCK_STATUS reports. A context is identified by its position in
//! the list of its export, which is also its number on the wire.

/// The only context that the protocol defines: holes, and ranges that read as zeroes.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The state of an extent in [`BASE_ALLOCATION`] for which no space is allocated.
pub const STATE_HOLE: u32 = 1 << 0;
/// The state of an extent in [`BASE_ALLOCATION`] that reads as zeroes.
pub const STATE_ZERO: u32 = 1 << 1;
/// The maximum number of contexts of an export.
pub const CONTEXTS_MAX: usize = 32;

/// A context of an export, by its position in [`Export::contexts`](super::Export::contexts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetaContext(pub u8);

/// A set of contexts of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ContextSet(u32);

// Each position has a bit of the set.
const _: () = assert!(CONTEXTS_MAX <= u32::BITS as usize);

impl ContextSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of contexts.
    #[must_use]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether the set contains `context`.
    #[must_use]
    pub fn contains(self, context: MetaContext) -> bool {
        self.0.checked_shr(u32::from(context.0)).is_some_and(|bits| bits & 1 == 1)
    }

    /// Returns the contexts in the order of the export's list.
    pub fn iter(self) -> impl Iterator<Item = MetaContext> {
        (0..).take(CONTEXTS_MAX).map(MetaContext).filter(move |context| self.contains(*context))
    }

    pub(crate) fn insert(&mut self, context: MetaContext) {
        debug_assert!(usize::from(context.0) < CONTEXTS_MAX, "context of a checked export");
        self.0 |= 1 << context.0;
    }

    pub(crate) fn remove(&mut self, context: MetaContext) {
        self.0 &= !(1 << context.0);
    }
}
