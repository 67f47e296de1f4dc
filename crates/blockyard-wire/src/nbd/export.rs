//! Exports: the disks of a server, which the runtime describes once.

use super::context::CONTEXTS_MAX;
use super::flags::ExportFlags;
use super::number::{PAYLOAD_BYTES_DEFAULT, STRING_BYTES_MAX};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The maximum number of exports of a server.
pub const EXPORTS_MAX: usize = 1024;
/// The largest minimum block, in bytes.
const MINIMUM_BLOCK_MAX: u32 = 1 << 16;
/// The smallest preferred block, in bytes.
const PREFERRED_BLOCK_MIN: u32 = 512;
/// The largest export, in bytes: clients use signed numbers.
const SIZE_BYTES_MAX: u64 = i64::MAX as u64;

/// The number of an export in the [`Exports`] of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportIndex(pub usize);

/// The block sizes of an export, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockSizes {
    /// Offsets and lengths must be multiples of this: a power of two up to 65,536. Those of TRIM
    /// need not be, and with `partial_zeroes` those of WRITE_ZEROES need not be.
    pub minimum: u32,
    /// Offsets and lengths should be multiples of this: a power of two, at least the minimum and
    /// 512.
    pub preferred: u32,
    /// The most data that one request may carry. At least the preferred block.
    pub maximum: u32,
    /// Whether WRITE_ZEROES may have parts of minimum blocks. The server then keeps the rest of
    /// such a block.
    pub partial_zeroes: bool,
}

impl BlockSizes {
    /// The sizes that clients assume by default: a minimum of 1 byte, preferably 4 KiB, and at most
    /// 32 MiB.
    pub const DEFAULT: Self =
        Self { minimum: 1, preferred: 4096, maximum: PAYLOAD_BYTES_DEFAULT, partial_zeroes: false };
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A disk that a server exports.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Export {
    /// The name by which clients choose the export. The empty name is the default export.
    pub name: String,
    /// A description for people, or empty.
    pub description: String,
    /// The size in bytes, a multiple of the minimum block.
    pub size_bytes: u64,
    /// The block sizes.
    pub blocks: BlockSizes,
    /// The capabilities.
    pub flags: ExportFlags,
    /// The metadata contexts that BLOCK_STATUS can report, such as
    /// [`BASE_ALLOCATION`](super::BASE_ALLOCATION).
    pub contexts: Vec<String>,
}

/// The exports of a server, checked so that everything sent about them is legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports(Vec<(ExportIndex, Export)>);

/// The reason why [`Exports::new`] failed. The string is the name of the export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportError {
    /// There are more than [`EXPORTS_MAX`] exports.
    TooMany,
    /// Two exports have this name.
    NameTwice(String),
    /// The name, the description or a context has a NUL or more than 4096 bytes.
    Text(String),
    /// A context does not have the form `namespace:leaf` or is repeated, or there are too many.
    Contexts(String),
    /// The block sizes are not as [`BlockSizes`] requires.
    BlockSizes(String),
    /// The size is not a multiple of the minimum block, or exceeds 2^63 - 1.
    Size(String),
    /// `FAST_ZERO` is set without `WRITE_ZEROES`.
    FastZero(String),
}

impl Exports {
    /// Checks every export and numbers them from 0, in the given order.
    ///
    /// # Errors
    ///
    /// Returns the first error found.
    pub fn new(exports: Vec<Export>) -> Result<Self, ExportError> {
        Self::numbered((0..).map(ExportIndex).zip(exports).collect())
    }

    /// Checks every export. Each has its own number, so that a server can add and remove exports
    /// while it runs.
    ///
    /// # Errors
    ///
    /// Returns the first error found.
    ///
    /// # Panics
    ///
    /// Panics if two exports have the same number.
    pub fn numbered(exports: Vec<(ExportIndex, Export)>) -> Result<Self, ExportError> {
        if exports.len() > EXPORTS_MAX {
            return Err(ExportError::TooMany);
        }
        for (at, (index, export)) in exports.iter().enumerate() {
            check(export)?;
            let mut before = exports[..at].iter();
            assert!(before.all(|(other, _)| other != index), "each export has its own number");
            if exports[..at].iter().any(|(_, before)| before.name == export.name) {
                return Err(ExportError::NameTwice(export.name.clone()));
            }
        }
        Ok(Self(exports))
    }

    /// Returns the exports that `keep` selects by their number: those that one client may use.
    #[must_use]
    pub fn only(&self, keep: impl Fn(ExportIndex) -> bool) -> Self {
        Self(self.0.iter().filter(|(index, _)| keep(*index)).cloned().collect())
    }

    /// Returns all exports, in the given order.
    pub fn iter(&self) -> impl Iterator<Item = &Export> {
        self.0.iter().map(|(_, export)| export)
    }

    /// Finds the export with this name, by a linear search.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<(ExportIndex, &Export)> {
        let (index, export) = self.0.iter().find(|(_, it)| it.name.as_bytes() == name)?;
        Some((*index, export))
    }
}

fn check(export: &Export) -> Result<(), ExportError> {
    let mut texts = [&export.name, &export.description].into_iter().chain(&export.contexts);
    if texts.any(|text| !is_string(text.as_bytes())) {
        return Err(ExportError::Text(export.name.clone()));
    }
    if !contexts_are_legal(&export.contexts) {
        return Err(ExportError::Contexts(export.name.clone()));
    }
    if !blocks_are_legal(export.blocks) {
        return Err(ExportError::BlockSizes(export.name.clone()));
    }
    let blocks = export.size_bytes.is_multiple_of(u64::from(export.blocks.minimum));
    if export.size_bytes > SIZE_BYTES_MAX || !blocks {
        return Err(ExportError::Size(export.name.clone()));
    }
    let fast = export.flags.contains(ExportFlags::FAST_ZERO);
    if fast && !export.flags.contains(ExportFlags::WRITE_ZEROES) {
        return Err(ExportError::FastZero(export.name.clone()));
    }
    Ok(())
}

/// Returns whether the protocol permits `bytes` as a string.
pub(crate) fn is_string(bytes: &[u8]) -> bool {
    bytes.len() <= STRING_BYTES_MAX && !bytes.contains(&0) && core::str::from_utf8(bytes).is_ok()
}

fn contexts_are_legal(contexts: &[String]) -> bool {
    contexts.len() <= CONTEXTS_MAX
        && contexts.iter().all(|name: &String| {
            name.split_once(':').is_some_and(|(space, leaf)| !space.is_empty() && !leaf.is_empty())
        })
        && contexts.iter().enumerate().all(|(at, name)| !contexts[..at].contains(name))
}

fn blocks_are_legal(blocks: BlockSizes) -> bool {
    let BlockSizes { minimum, preferred, maximum, partial_zeroes: _ } = blocks;
    minimum.is_power_of_two()
        && minimum <= MINIMUM_BLOCK_MAX
        && preferred.is_power_of_two()
        && preferred >= minimum.max(PREFERRED_BLOCK_MIN)
        && maximum >= preferred
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, what) = match self {
            Self::TooMany => return write!(f, "there are more than {EXPORTS_MAX} exports"),
            Self::NameTwice(name) => (name, "another export has the same name"),
            Self::Text(name) => (name, "a text has a NUL or more than 4096 bytes"),
            Self::Contexts(name) => {
                (name, "a context is not NAMESPACE:LEAF or is repeated, or there are too many")
            }
            Self::BlockSizes(name) => (name, "the block sizes are invalid"),
            Self::Size(name) => {
                (name, "the size is not a multiple of the minimum block, or is too large")
            }
            Self::FastZero(name) => (name, "FAST_ZERO needs WRITE_ZEROES"),
        };
        write!(f, "export {name:?}: {what}")
    }
}

impl core::error::Error for ExportError {}
