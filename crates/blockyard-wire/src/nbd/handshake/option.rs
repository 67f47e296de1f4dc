//! Parses the data of options. Data that are not valid to the last byte give `None`.

use super::super::export::is_string;
use super::super::number::info;
use super::super::read::Reader;

/// The data of INFO and GO.
pub(super) struct InfoRequest<'a> {
    pub(super) name: &'a [u8],
    /// The requested information. Unknown requests are ignored.
    pub(super) wants_name: bool,
    pub(super) wants_description: bool,
    pub(super) wants_blocks: bool,
}

impl<'a> InfoRequest<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Option<Self> {
        let mut rest = Reader(data);
        let name = rest.counted().filter(|name| is_string(name))?;
        let mut request =
            Self { name, wants_name: false, wants_description: false, wants_blocks: false };
        for _ in 0..rest.u16()? {
            match rest.u16()? {
                info::NAME => request.wants_name = true,
                info::DESCRIPTION => request.wants_description = true,
                info::BLOCK_SIZE => request.wants_blocks = true,
                _ => {}
            }
        }
        rest.0.is_empty().then_some(request)
    }
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
pub(super) struct ContextRequest<'a> {
    pub(super) name: &'a [u8],
    pub(super) queries: Queries<'a>,
}

/// Queries that were checked to be complete.
#[derive(Clone, Copy)]
pub(super) struct Queries<'a> {
    pub(super) count: u32,
    bytes: &'a [u8],
}

impl<'a> ContextRequest<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Option<Self> {
        let mut rest = Reader(data);
        let name = rest.counted().filter(|name| is_string(name))?;
        let count = rest.u32()?;
        let bytes = rest.0;
        // Each query has at least four bytes, so the loop ends with the data, whatever the count.
        for _ in 0..count {
            rest.counted().filter(|query| is_string(query))?;
        }
        rest.0.is_empty().then_some(Self { name, queries: Queries { count, bytes } })
    }
}

impl<'a> Queries<'a> {
    pub(super) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = Reader(self.bytes);
        core::iter::from_fn(move || rest.counted())
    }
}
