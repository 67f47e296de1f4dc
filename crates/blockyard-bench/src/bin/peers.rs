//! Compares NBD servers in turns under the same load from one client.
//!
//! `cargo run --release -p blockyard-bench --bin peers -- compare` (or `bench/peers.sh`, which builds
//! `blockyard` too) prints two tables: processor time of the server for each I/O with server and client
//! on one processor, rates on one and two, and latencies on two; and the ratios of these figures to those of the bare
//! loop (latencies: nbdkit) in the same turn. Each is the median, the minimum and the maximum of the turns.
//! All disks are 1 GiB in memory and written once before, but those of the bare loop, which has 256 MiB for each
//! connection: it meets fewer misses of the TLB. `file` compares our server on a file with fio. `load` runs
//! the client alone, and `bare` the bare loop alone.

use blockyard_bench::nbd::load::Load;
use blockyard_bench::nbd::peer::{DISK_BYTES, Programs};
use blockyard_bench::nbd::shape::{Direction, Shape};
use blockyard_bench::nbd::{bare, file, scale, table};
use clap::{Parser, ValueEnum};
use core::time::Duration;
use std::io;
use std::path::PathBuf;

#[derive(Parser)]
#[command(about = "NBD servers beside each other, in turns")]
enum Command {
    /// Measure all servers under all loads
    Compare {
        /// Measurements of each server
        #[arg(long, default_value_t = 5)]
        turns: usize,
        /// Length of one measurement, in milliseconds
        #[arg(long, default_value_t = 2000)]
        ms: u64,
        /// Measure only our server, the bare loop and nbdkit's memory plugin
        #[arg(long)]
        short: bool,
        /// Path of `blockyard`; by default the one beside this program
        #[arg(long)]
        blockyard: Option<PathBuf>,
    },
    /// Measure our server as its disks, its idle and its busy connections grow
    Scale {
        /// Measurements of each size
        #[arg(long, default_value_t = 5)]
        turns: usize,
        /// Length of one measurement, in milliseconds
        #[arg(long, default_value_t = 2000)]
        ms: u64,
    },
    /// Compare our server on a file with fio's io_uring engine on the file: rates of random 4 KiB reads at depth 32
    File {
        /// A file of 1 GiB, which is only read; where there is none, one is made and deleted afterwards
        path: String,
        /// Measurements of each
        #[arg(long, default_value_t = 5)]
        turns: usize,
        /// Length of one measurement, in milliseconds
        #[arg(long, default_value_t = 2000)]
        ms: u64,
    },
    /// Run one load; print I/Os and, in nanoseconds, wall time, the server's time, p50 and p99
    Load {
        direction: Way,
        socket: PathBuf,
        /// The exports that connections open in turn; may be repeated
        #[arg(long, default_value = "")]
        export: Vec<String>,
        #[arg(long, default_value_t = 4096)]
        bytes: usize,
        #[arg(long, default_value_t = 16)]
        depth: usize,
        #[arg(long, default_value_t = 1)]
        connections: usize,
        /// Further connections, which send nothing
        #[arg(long, default_value_t = 0)]
        idle: usize,
        #[arg(long, default_value_t = 2000)]
        ms: u64,
        /// The process whose time is measured
        #[arg(long)]
        server: u32,
    },
    /// Serve memory with the bare loop
    Bare { socket: PathBuf },
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    Read,
    Write,
}

fn main() -> io::Result<()> {
    let bare = std::env::current_exe()?;
    let beside = bare.with_file_name("blockyard");
    let programs = |blockyard| Programs { blockyard, bare };
    match Command::parse() {
        Command::Compare { turns, ms, short, blockyard } => {
            let (time, programs) =
                (Duration::from_millis(ms), programs(blockyard.unwrap_or(beside)));
            table::compare(&table::Options { turns, time, programs, short })
        }
        Command::Scale { turns, ms } => {
            scale::measure(turns, Duration::from_millis(ms), &programs(beside))
        }
        Command::File { path, turns, ms } => {
            file::compare(path, turns, Duration::from_millis(ms), &programs(beside))
        }
        Command::Load {
            direction,
            socket,
            export,
            bytes,
            depth,
            connections,
            idle,
            ms,
            server,
        } => {
            let direction = match direction {
                Way::Read => Direction::Read,
                Way::Write => Direction::Write,
            };
            let shape = Shape { direction, bytes, depth };
            let load = Load { shape, connections, idle, time: Duration::from_millis(ms) };
            println!("{}", load.run(&socket, &export, server)?);
            Ok(())
        }
        Command::Bare { socket } => bare::serve(&socket, DISK_BYTES / 4), // for each connection
    }
}
