//! A lane of the server under a load that is the same in every run: 4 KiB random reads of a disk in
//! memory.

use crate::Sectors;
use crate::nbd::client::Client;
use crate::nbd::shape::{Direction, Shape};
use blockyard::bio::Op;
use blockyard::policy::Policies;
use blockyard_serve::lane_alone::{self, Ask, Rounds};
use blockyard_serve::{Admission, DiskConfig, IoEngine, Layers, Source};
use core::error::Error;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The number of requests in a round.
const DEPTH: usize = 16;
const DISK_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: usize = 4096;

/// Serves the client at standard input with a lane in this thread, until the client leaves.
///
/// # Errors
///
/// Returns an error if there is no io_uring, or the lane fails.
pub fn serve_standard_input(policies: Policies) -> Result<(), Box<dyn Error>> {
    let client = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(lane_alone::serve(&disk(policies), IoEngine::Uring, client)?)
}

fn disk(policies: Policies) -> DiskConfig {
    DiskConfig {
        name: String::new(),
        source: Source::Memory { bytes: DISK_BYTES, huge_pages: false },
        read_only: false,
        policies,
        depth: 32,
        depth_bytes: 64 << 20,
        layers: Layers::default(),
        admission: Admission::default(),
        weights: Vec::new(),
    }
}

/// Reads `ios` blocks of the disk at the other end of `socket`.
///
/// # Errors
///
/// Returns an error if the connection breaks, or the server refuses.
pub fn read(socket: UnixStream, ios: u64) -> io::Result<()> {
    let shape = Shape { direction: Direction::Read, bytes: BLOCK_BYTES, depth: DEPTH };
    Client::enter(socket, "")?.rounds(shape, ios)
}

/// Reads `ios` blocks through a lane in this thread, whose client has no socket.
///
/// # Errors
///
/// Returns an error if there is no io_uring, or the lane fails.
pub fn read_in_memory(policies: Policies, ios: u64) -> Result<(), Box<dyn Error>> {
    let mut sectors = Sectors::default();
    let mut left = ios;
    let client = Rounds {
        disk: 0,
        memory_bytes: DEPTH * BLOCK_BYTES,
        next: Box::new(move |_, round| {
            for slot in 0..usize::try_from(left).unwrap_or(DEPTH).min(DEPTH) {
                let offset = sectors.draw() * 512 % DISK_BYTES;
                let len = BLOCK_BYTES as u64;
                let at = slot * BLOCK_BYTES;
                round.push(Ask { op: Op::Read, offset, len, at, fua: false });
            }
            left -= round.len() as u64;
        }),
        ended: None,
    };
    Ok(lane_alone::serve_memory(&disk(policies), IoEngine::Uring, client)?)
}
