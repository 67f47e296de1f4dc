//! The bios of a transfer. Each bio covers whole blocks; a transfer too long for one bio gets
//! several in turn.

use crate::parts::job::{SECTOR, Transfer};
use blockyard::bio::{Bio, Flags, Op};

/// The length of the longest bio, in sectors: a power of two, as is every such limit.
pub const BIO_SECTORS_MAX: u32 = 1 << 31;

/// Returns a bio over the blocks of `transfer`, or over as many of its first blocks as fit into
/// `most` sectors.
#[inline]
pub fn first_bio<P>(op: Op, transfer: &Transfer<P>, block_bytes: u64, most: u32) -> Bio {
    let offset = transfer.offset;
    let len = transfer.len;
    let block = block_bytes.max(SECTOR);
    let start = offset / block * block / SECTOR;
    let bio = Bio::new(op, start, sectors_from(start, transfer, block_bytes, most), 0);
    // The data of a partial block does not adjoin its neighbours' in memory. A fast transfer that
    // fails must not fail others.
    let is_whole = (offset | len).is_multiple_of(block);
    if is_whole && !transfer.fast { bio } else { bio.with_flags(Flags::NO_MERGE) }
}

/// Returns whether `bio` is the last one of `transfer`.
#[inline]
pub fn is_last<P>(bio: &Bio, transfer: &Transfer<P>) -> bool {
    (bio.sector + u64::from(bio.sectors)) * SECTOR >= transfer.offset + transfer.len
}

/// Returns the bio that follows `bio`, which has ended, or `None` if `bio` was the last one of
/// `transfer`.
pub fn next_bio<P>(bio: &Bio, transfer: &Transfer<P>, block_bytes: u64, most: u32) -> Option<Bio> {
    if is_last(bio, transfer) {
        return None;
    }
    let sector = bio.sector + u64::from(bio.sectors);
    Some(Bio { sector, sectors: sectors_from(sector, transfer, block_bytes, most), ..*bio })
}

/// Returns the length in sectors of the bio of `transfer` that starts at `sector`. It does not
/// cross a multiple of `most`, so the bios of a range do not cut pages in two.
#[inline]
fn sectors_from<P>(sector: u64, transfer: &Transfer<P>, block_bytes: u64, most: u32) -> u32 {
    let end = (transfer.offset + transfer.len).next_multiple_of(block_bytes.max(SECTOR));
    let most = u64::from(most) - (sector & (u64::from(most) - 1));
    u32::try_from(most.min(end / SECTOR - sector)).expect("a length of at most 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bio_covers_every_byte_with_whole_blocks() {
        assert_eq!(covers(4096, 4096, 1), (8, 8, false));
        assert_eq!(covers(511, 2, 1), (0, 2, true));
        assert_eq!(covers(512, 512, 4096), (0, 8, true));
        assert_eq!(covers(4095, 4098, 4096), (0, 24, true));
    }

    fn covers(offset: u64, len: u64, block: u64) -> (u64, u32, bool) {
        let bio = first_bio(Op::Write, &Transfer::new(offset, len), block, BIO_SECTORS_MAX);
        (bio.sector, bio.sectors, bio.flags.contains(Flags::NO_MERGE))
    }

    #[test]
    fn bios_of_a_long_range_follow_each_other_to_its_end() {
        for most in [BIO_SECTORS_MAX, 8192] {
            let bytes = u64::from(most) * SECTOR;
            let long = (4097, 3 * bytes + SECTOR);
            for (offset, len) in [(512, bytes), long, (bytes, 2 * bytes), (0, 1 << 62)] {
                covers_to_the_end(&Transfer::new(offset, len), most);
            }
        }
    }

    fn covers_to_the_end(transfer: &Transfer, most: u32) {
        let Transfer { offset, len, .. } = *transfer;
        let mut bio = first_bio(Op::Discard, transfer, 4096, most);
        assert_eq!(bio.sector, offset / 4096 * 8);
        for _ in 0..3 {
            let Some(next) = next_bio(&bio, transfer, 4096, most) else { break };
            assert_eq!(next.sector, bio.sector + u64::from(bio.sectors));
            assert!(next.sectors.is_multiple_of(8) && bio.sectors <= most);
            assert!(next.sector.is_multiple_of(most.into()), "{next:?}");
            bio = next;
        }
        let end = (bio.sector + u64::from(bio.sectors)) * SECTOR;
        let is_end = next_bio(&bio, transfer, 4096, most).is_none();
        assert_eq!(is_end, end == (offset + len).next_multiple_of(4096));
    }
}
