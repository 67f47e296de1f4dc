//! The header of a pool of libpmemblk: 8192 bytes before its BTT.
//!
//! The facts come from pools that libpmemblk 1.12 made. A header has the signature, version 1 of
//! the format, the features that libpmemblk sets, the UUIDs of the pool, of this part, of the parts
//! before and after it, and of the first part, the time and the machine of its creation, and a
//! checksum like that of an info block over its first half. The sector size follows the header of
//! the first part, and after it the offset of the data. The parts form a ring; a pool in one file
//! is a ring of one part.

use blockyard_btt::Uuid;
use blockyard_btt::info_block::{InfoBytes, checksum};
use blockyard_btt::layout::INFO_BYTES;

/// Bytes of the header and the descriptor after it.
pub const POOL_BYTES: usize = 8192;

const SIGNATURE: &[u8; 8] = b"PMEMBLK\0";
/// The words after the signature: major version 1, and the features of libpmemblk 1.12: it checks
/// for bad blocks, the checksum covers the first half, and there is room for a count of unsafe
/// shutdowns.
const VERSION_AND_FEATURES: [u32; 4] = [1, 1, 6, 0];
/// The feature of a pool of which only the first part has a header, in the second word of features.
const SINGLE_HEADER: u32 = 1;
/// The alignments of C types on x86-64 in libpmemblk's form, then 64 bits, little-endian, x86-64.
const MACHINE: [u8; 16] =
    [0x10, 0x73, 0x77, 0x37, 0xf7, 0x07, 0, 0, 0x02, 0x01, 0, 0, 0, 0, 0x3e, 0];
const CHECKED_BYTES: usize = 2048;
pub(crate) const HEADER_BYTES: usize = 4096;
/// The place of the address of the data after the header of the first part.
const DATA_ADDRESS_AT: usize = 32;

const _: () = assert!(HEADER_BYTES as u64 == INFO_BYTES && POOL_BYTES == 2 * HEADER_BYTES);
const _: () = assert!(CHECKED_BYTES * 2 == HEADER_BYTES, "the checksum covers the first half");

/// The contents of a pool's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The UUID of the pool, which is the parent UUID of its BTT.
    pub uuid: Uuid,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// The whole pool was zero when it was created.
    pub blank: bool,
}

impl Pool {
    /// Returns the header of a pool in one file, with part UUID `part`, created at `seconds` since
    /// 1970.
    #[must_use]
    pub fn to_bytes(&self, part: Uuid, seconds: u64) -> Vec<u8> {
        self.of_part(&[part], 0, false, seconds)
    }

    /// Returns the header of the part with number `nth` among those with a header.
    pub(crate) fn of_part(
        &self,
        parts: &[Uuid],
        nth: usize,
        single_header: bool,
        seconds: u64,
    ) -> Vec<u8> {
        let mut bytes = vec![0; POOL_BYTES];
        put(&mut bytes, 0, SIGNATURE);
        let mut words = VERSION_AND_FEATURES;
        words[2] |= if single_header { SINGLE_HEADER } else { 0 };
        for (n, word) in words.iter().enumerate() {
            put(&mut bytes, 8 + n * 4, &word.to_le_bytes());
        }
        put(&mut bytes, 24, &self.uuid.0);
        for (n, uuid) in links(parts, nth).iter().enumerate() {
            put(&mut bytes, 40 + n * 16, &uuid.0);
        }
        put(&mut bytes, 120, &seconds.to_le_bytes());
        put(&mut bytes, 128, &MACHINE);
        put(&mut bytes, HEADER_BYTES, &self.sector_bytes.to_le_bytes());
        put(&mut bytes, HEADER_BYTES + 4, &u32::from(self.blank).to_le_bytes());
        // libpmemblk keeps addresses of its mapping here. `pmempool info` takes the distance
        // between the one at 8, which stays 0, and the one at 32 for the offset of the data.
        put(&mut bytes, HEADER_BYTES + DATA_ADDRESS_AT, &(POOL_BYTES as u64).to_le_bytes());
        let sum = header_checksum(&bytes);
        bytes[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses the first [`POOL_BYTES`] of a file. Returns `None` if the file is not a pool.
    ///
    /// # Errors
    ///
    /// The file is a pool with a damaged header, or of a later format.
    pub fn parse(bytes: &[u8]) -> Option<Result<Self, &'static str>> {
        if bytes.len() < POOL_BYTES || bytes[..8] != *SIGNATURE {
            return None;
        }
        let sum = &bytes[HEADER_BYTES - 8..HEADER_BYTES];
        if header_checksum(bytes).to_le_bytes() != *sum {
            return Some(Err("the header of the pool has a wrong checksum"));
        }
        let [version, _, incompatible, read_only] = VERSION_AND_FEATURES;
        if word(bytes, 8) != version {
            return Some(Err("the pool has another version of the format"));
        }
        // Other bits of the second word of features forbid any use, and those of the third one
        // writing.
        if word(bytes, 16) & !(incompatible | SINGLE_HEADER) != 0 || word(bytes, 20) != read_only {
            return Some(Err("the pool has features that are not supported"));
        }
        let sector_bytes = word(bytes, HEADER_BYTES);
        let blank = word(bytes, HEADER_BYTES + 4) == 1;
        Some(Ok(Self { uuid: uuid_at(bytes, 24), sector_bytes, blank }))
    }
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Returns the UUIDs in the header of a part: its own, of the parts before and after it, and twice
/// of the first one, in the place of copies of the pool.
fn links(parts: &[Uuid], nth: usize) -> [Uuid; 5] {
    debug_assert!(nth < parts.len(), "a part with a header");
    let count = parts.len();
    let before = parts[(nth + count - 1) % count];
    let after = parts[(nth + 1) % count];
    [parts[nth], before, after, parts[0], parts[0]]
}

/// Checks that `headers` are those of all parts of one pool, in their order.
///
/// # Errors
///
/// A header is damaged, or belongs elsewhere.
pub(crate) fn check_ring(headers: &[Vec<u8>], single_header: bool) -> Result<(), &'static str> {
    let parts: Vec<Uuid> = headers.iter().map(|header| uuid_at(header, 40)).collect();
    for header in headers {
        if header_checksum(header).to_le_bytes() != header[HEADER_BYTES - 8..HEADER_BYTES] {
            return Err("the header of a part of the pool has a wrong checksum");
        }
        // Signature, version, features and the UUID of the pool.
        if header[..40] != headers[0][..40] {
            return Err("the parts of the set belong to different pools");
        }
    }
    for (nth, header) in headers.iter().enumerate() {
        if (header[16] & 1 == 1) != single_header {
            return Err("the pool and its set differ in the option SINGLEHDR");
        }
        if links(&parts, nth) != [40, 56, 72, 88, 104].map(|at| uuid_at(header, at)) {
            return Err(
                "the file is not the whole pool, or the parts of the set are in another order",
            );
        }
    }
    Ok(())
}

fn uuid_at(bytes: &[u8], at: usize) -> Uuid {
    Uuid(bytes[at..at + 16].try_into().expect("sixteen bytes"))
}

/// Returns the checksum of a header: that of an info block with zeroes after the first half.
fn header_checksum(bytes: &[u8]) -> u64 {
    let mut checked: InfoBytes = [0; HEADER_BYTES];
    checked[..CHECKED_BYTES].copy_from_slice(&bytes[..CHECKED_BYTES]);
    checksum(&checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 144 bytes and the checksum of a pool that libpmemblk 1.12 made. All bytes between
    /// them are zero.
    const MADE_BY_LIBPMEMBLK: &[u8; 144] = b"PMEMBLK\0\x01\0\0\0\x01\0\0\0\x06\0\0\0\0\0\0\0\
        \xc3\xd9\xd5\xfa\x01\xcd\xc8\x40\xa5\xe9\x96\x72\x79\xff\x52\x24\
        \x62\x0a\xc1\x9d\x6c\x67\x53\x43\xb5\x7e\xc9\x02\xf8\xec\x8d\x27\
        \x62\x0a\xc1\x9d\x6c\x67\x53\x43\xb5\x7e\xc9\x02\xf8\xec\x8d\x27\
        \x62\x0a\xc1\x9d\x6c\x67\x53\x43\xb5\x7e\xc9\x02\xf8\xec\x8d\x27\
        \x62\x0a\xc1\x9d\x6c\x67\x53\x43\xb5\x7e\xc9\x02\xf8\xec\x8d\x27\
        \x62\x0a\xc1\x9d\x6c\x67\x53\x43\xb5\x7e\xc9\x02\xf8\xec\x8d\x27\
        \xec\x5b\x02\x6b\0\0\0\0\x10\x73\x77\x37\xf7\x07\0\0\x02\x01\0\0\0\0\x3e\0";
    const ITS_CHECKSUM: u64 = 0xeb78_0ce8_fbec_54d8;

    #[test]
    fn a_header_equals_that_of_libpmemblk() {
        let pool = Pool { uuid: uuid_at(MADE_BY_LIBPMEMBLK, 24), sector_bytes: 512, blank: true };
        let bytes = pool.to_bytes(uuid_at(MADE_BY_LIBPMEMBLK, 40), 0x6b02_5bec);
        assert_eq!(bytes[..144], MADE_BY_LIBPMEMBLK[..]);
        assert!(bytes[144..4088].iter().all(|&byte| byte == 0));
        assert_eq!(bytes[4088..4096], ITS_CHECKSUM.to_le_bytes());
        assert_eq!(bytes[4096..4104], [0, 2, 0, 0, 1, 0, 0, 0]);
        // In a pool of libpmemblk, the address of the data is greater by 8192 than the address of
        // the pool.
        assert_eq!(
            (&bytes[4104..4112], &bytes[4128..4136]),
            (&[0; 8][..], &[0, 32, 0, 0, 0, 0, 0, 0][..])
        );
        assert_eq!(Pool::parse(&bytes), Some(Ok(pool)));
    }

    #[test]
    fn a_damaged_header_is_distinguished_from_a_missing_one() {
        let pool = Pool { uuid: Uuid([3; 16]), sector_bytes: 4096, blank: false };
        let mut bytes = pool.to_bytes(Uuid([4; 16]), 0);
        bytes[100] ^= 1;
        assert!(matches!(Pool::parse(&bytes), Some(Err(_))));
        bytes[0] = 0;
        assert_eq!(Pool::parse(&bytes), None);
        assert_eq!(Pool::parse(&bytes[..100]), None);
    }
}
