//! Our server as its load grows: processor time for each I/O with more disks, idle connections or
//! busy connections.

use super::load::Load;
use super::peer::{Peer, Programs, Server};
use super::shape::{Direction, Shape};
use crate::turns::Turns;
use core::time::Duration;
use std::io;

/// A size: disks, and connections of a depth.
#[derive(Clone, Copy)]
struct Size {
    what: &'static str,
    amount: usize,
    disks: usize,
    busy: usize,
    depth: usize,
    idle: usize,
}

const ONE: Size = Size { what: "", amount: 1, disks: 1, busy: 1, depth: 16, idle: 0 };

/// Each group begins with the size that the others are compared with.
fn sizes() -> impl Iterator<Item = Size> {
    let disks = [1, 16, 256].map(|disks| Size {
        what: "disks, 16 connections of depth 16 over them",
        amount: disks,
        disks,
        busy: 16,
        ..ONE
    });
    let idle = [0, 1000, 10_000].map(|idle| Size {
        what: "idle connections along with one of depth 16",
        amount: idle,
        idle,
        ..ONE
    });
    let busy = [1, 32, 1024].map(|busy| Size {
        what: "connections of depth 1",
        amount: busy,
        busy,
        depth: 1,
        ..ONE
    });
    disks.into_iter().chain(idle).chain(busy)
}

/// Measures each size in turns, on one processor, and prints a table in Markdown: the median, the
/// minimum and the maximum.
///
/// # Errors
///
/// Returns an error if a measurement fails.
pub fn measure(turns: usize, time: Duration, programs: &Programs) -> io::Result<()> {
    let mut found: Vec<Turns> = sizes().map(|_| Turns::default()).collect();
    for turn in 0..turns {
        for (size, found) in sizes().zip(&mut found) {
            eprintln!("turn {} of {turns}: {} {}", turn + 1, size.amount, size.what);
            let server = Server::start(Peer::Disks(size.disks), programs, "0")?;
            let shape = Shape { direction: Direction::Read, bytes: 4096, depth: size.depth };
            let load = Load { shape, connections: size.busy, idle: size.idle, time };
            let exports: Vec<_> = (0..size.disks).map(Peer::disk).collect();
            let measured = load.run_apart(programs, "0", &exports, &server)?;
            found.push(measured.server_us_per_io());
        }
    }
    println!("| what grows | | read of 4 KiB (us/IO) |\n|---|--:|--:|");
    for (size, figures) in sizes().zip(&found) {
        println!("| {} | {} | {} |", size.what, size.amount, figures);
    }
    Ok(())
}
