//! 4 KiB random reads of a file in the page cache: by a disk, by `tokio::fs`, and by an io_uring
//! without anything around it. `cargo run --release --bin compare FILE [READS]` prints reads per
//! second, and processor time for each read.
//!
//! Sixteen reads are in flight, or two where two threads block. The file should be at least 64 MiB
//! long.

use blockyard_std::{Disk, Options};
use io_uring::{IoUring, opcode, types};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

const BLOCK: usize = 4096;
const DEPTH: u64 = 16;
const THREADS: u64 = 2;

/// Offsets of blocks, the same in every run.
struct Offsets {
    state: u64,
    blocks: u64,
}

impl Offsets {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % self.blocks * BLOCK as u64
    }
}

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or_else(|| io::Error::other("usage: compare FILE [READS]"))?;
    let reads =
        words.next().map_or(Ok(200_000), |reads| reads.parse()).map_err(io::Error::other)?;
    for way in [by_calls, by_futures, by_tokio, by_hand] {
        let wall = Instant::now();
        let processor = clock_gettime(ClockId::ProcessCPUTime);
        let name = way(Path::new(&path), reads)?;
        let used = clock_gettime(ClockId::ProcessCPUTime) - processor;
        let us = (used.tv_sec * 1_000_000 + used.tv_nsec / 1000) * 100
            / i64::try_from(reads).unwrap_or(1);
        let rate = u128::from(reads) * 1_000_000 / wall.elapsed().as_micros().max(1);
        println!(
            "{name:<40}{rate:>10} reads/s {:>4}.{:02} us of processor time",
            us / 100,
            us % 100
        );
    }
    Ok(())
}

fn offsets(path: &Path, seed: u64) -> io::Result<Offsets> {
    Ok(Offsets { state: seed, blocks: path.metadata()?.len() / BLOCK as u64 })
}

fn disk(path: &Path) -> io::Result<Disk> {
    Ok(Options::new().read_only().buffered().file(path)?)
}

/// Two threads that block.
fn by_calls(path: &Path, reads: u64) -> io::Result<&'static str> {
    let disk = disk(path)?;
    std::thread::scope(|scope| {
        let disk = &disk;
        let threads = (1..=THREADS).map(|seed| {
            scope.spawn(move || {
                let mut offsets = offsets(path, seed)?;
                let mut memory = [0; BLOCK];
                (0..reads / THREADS)
                    .try_for_each(|_| Ok(disk.read_at(&mut memory, offsets.next())?))
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
    .map(|()| "blockyard-std, two threads that block")
}

/// Futures in batches.
fn by_futures(path: &Path, reads: u64) -> io::Result<&'static str> {
    let disk = disk(path)?;
    let mut offsets = offsets(path, 1)?;
    let mut buffers: Vec<_> = (0..DEPTH).map(|_| vec![0; BLOCK]).collect();
    for _ in 0..reads / DEPTH {
        let mut batch = disk.batch();
        let ios: Vec<_> =
            buffers.drain(..).map(|buffer| batch.read(buffer, offsets.next())).collect();
        batch.submit();
        for io in ios {
            let (result, buffer) = io.wait();
            result?;
            buffers.push(buffer);
        }
    }
    Ok("blockyard-std, futures in batches of 16")
}

/// Sixteen tasks, each with a file of its own: tokio moves each operation to a thread that blocks.
fn by_tokio(path: &Path, reads: u64) -> io::Result<&'static str> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    runtime.block_on(async {
        let tasks = (1..=DEPTH).map(|seed| {
            let offsets = offsets(path, seed);
            let path = path.to_owned();
            tokio::spawn(async move {
                let mut file = tokio::fs::File::open(path).await?;
                let mut offsets = offsets?;
                let mut memory = [0; BLOCK];
                for _ in 0..reads / DEPTH {
                    file.seek(SeekFrom::Start(offsets.next())).await?;
                    file.read_exact(&mut memory).await?;
                }
                io::Result::Ok(())
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.map_err(io::Error::other)??;
        }
        Ok("tokio::fs, sixteen tasks")
    })
}

/// One thread and a ring, in rounds of sixteen.
fn by_hand(path: &Path, reads: u64) -> io::Result<&'static str> {
    let file = File::open(path)?;
    let mut offsets = offsets(path, 1)?;
    let mut ring: IoUring =
        IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(16)?;
    let mut buffers: Vec<_> = (0..DEPTH).map(|_| vec![0; BLOCK]).collect();
    for _ in 0..reads / DEPTH {
        for buffer in &mut buffers {
            let len = u32::try_from(buffer.len()).expect("the length of a block");
            let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), buffer.as_mut_ptr(), len)
                .offset(offsets.next())
                .build();
            // SAFETY: file and buffers live until all reads of the round have ended, and are not
            // used meanwhile.
            unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)?;
        }
        ring.submit_and_wait(buffers.len())?;
        for done in ring.completion() {
            if usize::try_from(done.result()) != Ok(BLOCK) {
                return Err(io::Error::other("a short read"));
            }
        }
    }
    Ok("io_uring by hand, rounds of sixteen")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_reads_the_file() {
        let path = std::env::temp_dir().join(format!("blockyard-compare-{}", std::process::id()));
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let names = [by_calls, by_futures, by_tokio, by_hand].map(|way| way(&path, 64).unwrap());
        assert!(by_hand(&path.join("none"), 1).is_err());
        std::fs::remove_file(path).unwrap();
        assert!(names[0].contains("block") && names[3].contains("hand"));
    }
}
