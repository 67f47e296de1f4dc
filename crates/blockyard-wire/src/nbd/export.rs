//! Exports: the disks a server has to give, as values that its runtime describes once.

use super::context::CONTEXTS_MAX;
use super::flags::ExportFlags;
use super::number::{PAYLOAD_BYTES_DEFAULT, STRING_BYTES_MAX};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Most exports of a server.
pub const EXPORTS_MAX: usize = 1024;
/// Largest minimum block, in bytes.
const MINIMUM_BLOCK_MAX: u32 = 1 << 16;
/// Smallest preferred block, in bytes.
const PREFERRED_BLOCK_MIN: u32 = 512;
/// Largest export, in bytes: clients count them in signed numbers.
const SIZE_BYTES_MAX: u64 = i64::MAX as u64;

/// Which of the [`Exports`] of a server, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportIndex(pub usize);

/// Block sizes of an export, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockSizes {
    /// What offsets and lengths must be multiples of: a power of two up to 65,536.
    pub minimum: u32,
    /// What they better are multiples of: a power of two, at least the minimum and 512.
    pub preferred: u32,
    /// Most data of one request, at least the preferred block.
    pub maximum: u32,
}

impl BlockSizes {
    /// What clients take for granted that do not ask: any byte, rather 4 KiB, and 32 MiB at most.
    pub const DEFAULT: Self = Self { minimum: 1, preferred: 4096, maximum: PAYLOAD_BYTES_DEFAULT };
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Export {
    /// What clients ask for; the empty name is the default export.
    pub name: String,
    /// For people; may be empty.
    pub description: String,
    /// Size in bytes, a multiple of the minimum block.
    pub size_bytes: u64,
    /// Block sizes.
    pub blocks: BlockSizes,
    /// What it can do.
    pub flags: ExportFlags,
    /// Metadata contexts BLOCK_STATUS can be asked for, such as
    /// [`BASE_ALLOCATION`](super::BASE_ALLOCATION).
    pub contexts: Vec<String>,
}

/// The disks of a server: checked, so that whatever is told of them is legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports(Vec<Export>);

/// Why [`Exports::new`] refused; the name is that of the export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportError {
    /// More than [`EXPORTS_MAX`] of them.
    TooMany,
    /// Two have this name.
    NameTwice(String),
    /// Name, description or context has a NUL or more than 4096 bytes.
    Text(String),
    /// A context does not have the form `namespace:leaf`, is there twice, or there are too many.
    Contexts(String),
    /// The block sizes are not as [`BlockSizes`] says.
    BlockSizes(String),
    /// The size is no multiple of the minimum block, or beyond 2^63 - 1.
    Size(String),
    /// `FAST_ZERO` without `WRITE_ZEROES`.
    FastZero(String),
}

impl Exports {
    /// Checks each export.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn new(exports: Vec<Export>) -> Result<Self, ExportError> {
        if exports.len() > EXPORTS_MAX {
            return Err(ExportError::TooMany);
        }
        for (index, export) in exports.iter().enumerate() {
            check(export)?;
            if exports[..index].iter().any(|before| before.name == export.name) {
                return Err(ExportError::NameTwice(export.name.clone()));
            }
        }
        Ok(Self(exports))
    }

    /// All of them, in the order given.
    #[must_use]
    pub fn as_slice(&self) -> &[Export] {
        &self.0
    }

    /// The export of this name. A walk over all of them.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<(ExportIndex, &Export)> {
        let index = self.0.iter().position(|export| export.name.as_bytes() == name)?;
        Some((ExportIndex(index), &self.0[index]))
    }
}

fn check(export: &Export) -> Result<(), ExportError> {
    let name = || export.name.clone();
    let mut texts = [&export.name, &export.description].into_iter().chain(&export.contexts);
    if texts.any(|text| !is_string(text.as_bytes())) {
        return Err(ExportError::Text(name()));
    }
    if !contexts_are_legal(&export.contexts) {
        return Err(ExportError::Contexts(name()));
    }
    if !blocks_are_legal(export.blocks) {
        return Err(ExportError::BlockSizes(name()));
    }
    let blocks = export.size_bytes.is_multiple_of(u64::from(export.blocks.minimum));
    if export.size_bytes > SIZE_BYTES_MAX || !blocks {
        return Err(ExportError::Size(name()));
    }
    let fast = export.flags.contains(ExportFlags::FAST_ZERO);
    if fast && !export.flags.contains(ExportFlags::WRITE_ZEROES) {
        return Err(ExportError::FastZero(name()));
    }
    Ok(())
}

/// Whether the protocol allows it as a string.
pub(crate) fn is_string(bytes: &[u8]) -> bool {
    bytes.len() <= STRING_BYTES_MAX && !bytes.contains(&0) && core::str::from_utf8(bytes).is_ok()
}

fn contexts_are_legal(contexts: &[String]) -> bool {
    let formed = |name: &String| {
        name.split_once(':').is_some_and(|(space, leaf)| !space.is_empty() && !leaf.is_empty())
    };
    let once = |index: usize| !contexts[..index].contains(&contexts[index]);
    contexts.len() <= CONTEXTS_MAX && contexts.iter().all(formed) && (0..contexts.len()).all(once)
}

fn blocks_are_legal(blocks: BlockSizes) -> bool {
    let BlockSizes { minimum, preferred, maximum } = blocks;
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
            Self::NameTwice(name) => (name, "there is another of this name"),
            Self::Text(name) => (name, "a text has a NUL or more than 4096 bytes"),
            Self::Contexts(name) => {
                (name, "a context is not NAMESPACE:LEAF, is there twice, or too many")
            }
            Self::BlockSizes(name) => (name, "the block sizes are not legal"),
            Self::Size(name) => {
                (name, "the size is no multiple of the minimum block, or too large")
            }
            Self::FastZero(name) => (name, "FAST_ZERO needs WRITE_ZEROES"),
        };
        write!(f, "export {name:?}: {what}")
    }
}

impl core::error::Error for ExportError {}
