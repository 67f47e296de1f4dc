//! Metadata contexts: what BLOCK_STATUS can be asked for. A context is known by its place in the list
//! of its export, which is also its number on the wire.

/// The one context the protocol defines: what is a hole, and what reads as zeroes.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// State of an extent in [`BASE_ALLOCATION`]: nothing is allocated for it.
pub const STATE_HOLE: u32 = 1 << 0;
/// State of an extent in [`BASE_ALLOCATION`]: it reads as zeroes.
pub const STATE_ZERO: u32 = 1 << 1;
/// Most contexts of an export.
pub const CONTEXTS_MAX: usize = 32;

/// A context of an export, by its place in [`Export::contexts`](super::Export::contexts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetaContext(pub u8);

/// Some of the contexts of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ContextSet(u32);

// Each place in the list has its bit.
const _: () = assert!(CONTEXTS_MAX <= u32::BITS as usize);

impl ContextSet {
    /// None of them.
    pub const EMPTY: Self = Self(0);

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether `context` is one of them.
    #[must_use]
    pub fn contains(self, context: MetaContext) -> bool {
        self.0.checked_shr(u32::from(context.0)).is_some_and(|bits| bits & 1 == 1)
    }

    /// Each of them, from the first in the list of the export.
    pub fn iter(self) -> impl Iterator<Item = MetaContext> {
        (0u8..32).map(MetaContext).filter(move |context| self.contains(*context))
    }

    pub(crate) fn insert(&mut self, context: MetaContext) {
        self.0 |= 1 << context.0;
    }

    pub(crate) fn remove(&mut self, context: MetaContext) {
        self.0 &= !(1 << context.0);
    }
}
