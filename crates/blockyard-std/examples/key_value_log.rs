//! A log of keys and values on a disk: `cargo run --example key_value_log FILE [KEY [VALUE]]`.
//!
//! Each record is a block: a checksum, its number, and the lengths and bytes of key and value. The
//! block is written with FUA, so a value that was put is still there after a loss of power. Opening
//! reads the log from its start, many blocks at once, up to the first one that is not the next
//! record.

use blockyard_std::{Disk, Error};
use std::collections::BTreeMap;

/// The size of a record, in bytes.
const BLOCK: usize = 512;
/// The bytes before the key: checksum, number, length of the key, length of the value.
const HEAD: usize = 20;
/// The number of records that opening reads at once.
const READAHEAD: u64 = 64;

struct Log {
    disk: Disk,
    /// The records so far.
    records: u64,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Log {
    /// Opens the log on `disk`, which keeps what earlier logs have put.
    fn open(disk: Disk) -> Result<Self, Error> {
        let mut log = Self { disk, records: 0, values: BTreeMap::new() };
        let end = log.disk.size_bytes() / BLOCK as u64;
        while log.records < end {
            let numbers = log.records..end.min(log.records + READAHEAD);
            let mut batch = log.disk.batch();
            let reads: Vec<_> =
                numbers.map(|number| batch.read(vec![0; BLOCK], number * BLOCK as u64)).collect();
            batch.submit();
            for read in reads {
                let (result, block) = read.wait();
                result?;
                let Some((key, value)) = parse(&block, log.records) else { return Ok(log) };
                log.values.insert(key.to_vec(), value.to_vec());
                log.records += 1;
            }
        }
        Ok(log)
    }

    /// Returns the value of `key`.
    fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.values.get(key).map(Vec::as_slice)
    }

    /// Sets the value of `key`, durably. Fails if the log is full.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let block = record(self.records, key, value);
        self.disk.with_fua().write_at(&block, self.records * BLOCK as u64)?;
        self.records += 1;
        self.values.insert(key.to_vec(), value.to_vec());
        Ok(())
    }
}

/// Returns the record with this number.
fn record(number: u64, key: &[u8], value: &[u8]) -> [u8; BLOCK] {
    assert!(HEAD + key.len() + value.len() <= BLOCK, "a record is one block");
    let mut block = [0; BLOCK];
    block[4..12].copy_from_slice(&number.to_le_bytes());
    block[12..16].copy_from_slice(&len_bytes(key));
    block[16..20].copy_from_slice(&len_bytes(value));
    block[HEAD..HEAD + key.len()].copy_from_slice(key);
    block[HEAD + key.len()..HEAD + key.len() + value.len()].copy_from_slice(value);
    let sum = checksum(&block[4..]);
    block[..4].copy_from_slice(&sum.to_le_bytes());
    block
}

fn len_bytes(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("length within a block").to_le_bytes()
}

/// Returns key and value of a block, if it is the record with this number.
fn parse(block: &[u8], number: u64) -> Option<(&[u8], &[u8])> {
    if word(block, 0)? != checksum(&block[4..]) || block[4..12] != number.to_le_bytes() {
        return None;
    }
    let key_len = word(block, 12)? as usize;
    let value_len = word(block, 16)? as usize;
    let (key, rest) = block[HEAD..].split_at_checked(key_len)?;
    Some((key, rest.get(..value_len)?))
}

fn word(block: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(block.get(at..at + 4)?.try_into().ok()?))
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0x811C_9DC5, |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let path = words.first().ok_or("usage: key_value_log FILE [KEY [VALUE]]")?;
    let mut log = Log::open(Disk::file(path)?)?;
    match words.get(1).zip(words.get(2)) {
        Some((key, value)) => log.put(key.as_bytes(), value.as_bytes())?,
        None => {
            for key in words.get(1).map_or_else(
                || log.values.keys().cloned().collect(),
                |key| vec![key.clone().into_bytes()],
            ) {
                let value = log.get(&key).ok_or("no such key")?;
                println!("{} {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(value));
            }
        }
    }
    Ok(log.disk.shutdown()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_there_for_the_next_log() {
        let path = std::env::temp_dir().join(format!("blockyard-log-{}", std::process::id()));
        std::fs::File::create(&path).unwrap().set_len(200 * BLOCK as u64).unwrap();
        let mut log = Log::open(Disk::file(&path).unwrap()).unwrap();
        for number in 0..100_u32 {
            log.put(format!("key {}", number % 7).as_bytes(), &number.to_le_bytes()).unwrap();
        }
        let report = log.disk.shutdown().unwrap();
        assert_eq!((report.ok(), report.stats.writes.ended), (Ok(()), 100));
        // A record that a loss of power has torn is not part of the log.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[99 * BLOCK + 30] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let mut log = Log::open(Disk::file(&path).unwrap()).unwrap();
        assert_eq!((log.records, log.values.len()), (99, 7));
        assert_eq!(log.get(b"key 0"), Some(&98_u32.to_le_bytes()[..]));
        assert_eq!(log.get(b"key 1"), Some(&92_u32.to_le_bytes()[..]), "number 99 is lost");
        for _ in 99..200 {
            log.put(b"full", b"").unwrap();
        }
        assert_eq!(log.put(b"more", b""), Err(Error::OutOfRange));
        std::fs::remove_file(path).unwrap();
    }
}
