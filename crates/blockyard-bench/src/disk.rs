//! A disk of `blockyard-std` in memory under two threads, each with 4 KiB random reads.

use crate::Sectors;
use blockyard::policy::Policies;
use blockyard_std::{Disk, Options};
use core::error::Error;
use std::thread;

/// The number of threads.
const THREADS: u64 = 2;
/// The number of reads in a batch.
const DEPTH: usize = 16;
const DISK_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: usize = 4096;

/// Reads `ios` blocks with blocking calls.
///
/// # Errors
///
/// Returns an error if the disk does not start or a read fails.
pub fn read_blocking(policies: Policies, ios: u64) -> Result<(), Box<dyn Error>> {
    by_threads(policies, |disk, sectors| {
        let mut memory = [0; BLOCK_BYTES];
        for _ in 0..ios / THREADS {
            disk.read_at(&mut memory, offset(sectors)).expect("a read of memory");
        }
    })
}

/// Reads `ios` blocks with futures, a batch after the other.
///
/// # Errors
///
/// As [`read_blocking`].
pub fn read_batches(policies: Policies, ios: u64) -> Result<(), Box<dyn Error>> {
    by_threads(policies, |disk, sectors| {
        let mut buffers: Vec<_> = (0..DEPTH).map(|_| vec![0; BLOCK_BYTES]).collect();
        for _ in 0..ios / THREADS / DEPTH as u64 {
            let mut batch = disk.batch();
            let reads = buffers.drain(..).map(|buffer| batch.read(buffer, offset(sectors)));
            let reads: Vec<_> = reads.collect();
            batch.submit();
            buffers.extend(reads.into_iter().map(|read| {
                let (result, buffer) = read.wait();
                result.expect("a read of memory");
                buffer
            }));
        }
    })
}

fn offset(sectors: &mut Sectors) -> u64 {
    sectors.draw() * 512 % DISK_BYTES
}

fn by_threads(
    policies: Policies,
    reads: impl Fn(&Disk, &mut Sectors) + Sync,
) -> Result<(), Box<dyn Error>> {
    let disk = Options::new().policies(policies).memory(DISK_BYTES)?;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| reads(&disk, &mut Sectors::default()));
        }
    });
    Ok(disk.shutdown()?.ok()?)
}
