//! Writes replies to options.

use super::super::export::{BlockSizes, Export};
use super::super::number::{REPLY_MAGIC, info, rep};
use alloc::vec::Vec;

/// The replies to one option.
pub(super) struct Answer<'a> {
    pub(super) option: u32,
    pub(super) out: &'a mut Vec<u8>,
}

impl Answer<'_> {
    /// Writes the final reply of success.
    pub(super) fn ack(&mut self) {
        self.reply(rep::ACK, &[]);
    }

    /// Writes the final reply of failure, with a reason for people.
    pub(super) fn error(&mut self, error: u32, why: &str) {
        debug_assert!(error >= rep::ERR, "an error has the highest bit");
        self.reply(error, &[why.as_bytes()]);
    }

    pub(super) fn server(&mut self, export: &Export) {
        let name_len = length(export.name.len()).to_be_bytes();
        let pieces = [&name_len, export.name.as_bytes(), export.description.as_bytes()];
        self.reply(rep::SERVER, &pieces);
    }

    /// Writes a context. In a list, `id` has no meaning.
    pub(super) fn context(&mut self, id: u32, name: &str) {
        self.reply(rep::META_CONTEXT, &[&id.to_be_bytes(), name.as_bytes()]);
    }

    pub(super) fn info_export(&mut self, size_bytes: u64, flags: u16) {
        let size = size_bytes.to_be_bytes();
        let flags = flags.to_be_bytes();
        self.reply(rep::INFO, &[&info::EXPORT.to_be_bytes(), &size, &flags]);
    }

    pub(super) fn info_blocks(&mut self, blocks: BlockSizes) {
        let sizes = [blocks.minimum, blocks.preferred, blocks.maximum].map(u32::to_be_bytes);
        self.info(info::BLOCK_SIZE, sizes.as_flattened());
    }

    /// Writes other information about an export.
    pub(super) fn info(&mut self, kind: u16, bytes: &[u8]) {
        self.reply(rep::INFO, &[&kind.to_be_bytes(), bytes]);
    }

    fn reply(&mut self, kind: u32, pieces: &[&[u8]]) {
        let len_bytes = pieces.iter().map(|piece| piece.len()).sum();
        self.out.extend_from_slice(&REPLY_MAGIC.to_be_bytes());
        self.out.extend_from_slice(&self.option.to_be_bytes());
        self.out.extend_from_slice(&kind.to_be_bytes());
        self.out.extend_from_slice(&length(len_bytes).to_be_bytes());
        for piece in pieces {
            self.out.extend_from_slice(piece);
        }
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("length of a reply, whose strings have at most 4096 bytes")
}
