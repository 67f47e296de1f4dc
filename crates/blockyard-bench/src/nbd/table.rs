//! The comparison: measures every server under every load in turns, and prints a table with the spread.

use super::client::Client;
use super::load::Load;
use super::peer::{Peer, Programs, Server};
use super::shape::{Direction, Shape};
use core::time::Duration;
use std::io::{self, ErrorKind};

/// The quantity of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    /// Processor time of the server for each I/O.
    ServerTime,
    /// I/Os per second.
    Rate,
    /// The 99th percentile of latencies.
    Tail,
}

/// A column: a load, and the processors of server and client.
struct Column {
    name: &'static str,
    shape: Shape,
    connections: usize,
    /// Processors of the server and of the client, as lists for `taskset`.
    cpus: [&'static str; 2],
    figure: Figure,
}

const fn column(name: &'static str, direction: Direction, kib: usize, depth: usize) -> Column {
    let shape = Shape { direction, bytes: kib << 10, depth };
    Column { name, shape, connections: 1, cpus: ["0", "0"], figure: Figure::ServerTime }
}

/// Server and client are on one processor, and requests are of 4 KiB, unless the name says otherwise.
const COLUMNS: [Column; 9] = [
    column("read, depth 16 (us/IO)", Direction::Read, 4, 16),
    column("read, depth 64 (us/IO)", Direction::Read, 4, 64),
    column("write, depth 16 (us/IO)", Direction::Write, 4, 16),
    column("read 1 MiB, depth 8 (us/IO)", Direction::Read, 1024, 8),
    column("write 1 MiB, depth 8 (us/IO)", Direction::Write, 1024, 8),
    Column { figure: Figure::Rate, ..column("read, depth 1 (k/s)", Direction::Read, 4, 1) },
    Column {
        cpus: ["0", "1"],
        figure: Figure::Rate,
        ..column("read, depth 1, a CPU each (k/s)", Direction::Read, 4, 1)
    },
    Column {
        connections: 4,
        cpus: ["0,1", "0,1"],
        figure: Figure::Rate,
        ..column("read, 4 x depth 16, two CPUs (k/s)", Direction::Read, 4, 16)
    },
    Column {
        connections: 64,
        cpus: ["0,1", "0,1"],
        figure: Figure::Tail,
        ..column("read, 64 x depth 1, two CPUs (p99, ms)", Direction::Read, 4, 1)
    },
];

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each server is started and measured.
    pub turns: usize,
    /// The length of one measurement, without its ramp.
    pub time: Duration,
    /// The paths of our programs.
    pub programs: Programs,
    /// Whether to compare only our server, the bare loop and nbdkit's memory plugin.
    pub short: bool,
}

/// Measures, and prints a table in Markdown: the median, the minimum and the maximum of the turns.
///
/// # Errors
///
/// Returns an error if a measurement fails. Servers that are not installed are named and have no row.
pub fn compare(options: &Options) -> io::Result<()> {
    let short =
        [Peer::Blockyard("none"), Peer::Blockyard("mq-deadline"), Peer::Bare, Peer::NbdkitMemory];
    let peers = if options.short { &short[..] } else { &Peer::ALL[..] };
    let mut found: Vec<[Vec<u64>; COLUMNS.len()]> =
        peers.iter().map(|_| Default::default()).collect();
    for turn in 0..options.turns {
        for (peer, found) in peers.iter().zip(&mut found) {
            eprintln!("turn {} of {}: {}", turn + 1, options.turns, peer.name());
            match measure(*peer, options, found) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    eprintln!("  not installed");
                }
                done => done.map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", peer.name()))
                })?,
            }
        }
    }
    print!("| server |");
    COLUMNS.iter().for_each(|column| print!(" {} |", column.name));
    println!("\n|---|{}", "--:|".repeat(COLUMNS.len()));
    for (peer, found) in peers.iter().zip(&mut found) {
        if found[0].is_empty() {
            continue;
        }
        print!("| {} |", peer.name());
        found.iter_mut().for_each(|figures| print!(" {} |", cell(figures)));
        println!();
    }
    Ok(())
}

fn measure(peer: Peer, options: &Options, found: &mut [Vec<u64>; COLUMNS.len()]) -> io::Result<()> {
    for (column, figures) in COLUMNS.iter().zip(found) {
        let server = Server::start(peer, &options.programs, column.cpus[0])?;
        // The bare loop gives each connection new memory without holes.
        if peer.keeps_data() && peer != Peer::Bare {
            Client::connect(&server.socket(), peer.export())?.fill()?;
        }
        let Column { shape, connections, cpus: [_, cpus], .. } = *column;
        let load = Load { shape, connections, idle: 0, time: options.time };
        let exports = [peer.export().to_owned()];
        let measured = load.run_apart(&options.programs, cpus, &exports, &server)?;
        figures.push(match column.figure {
            Figure::ServerTime => measured.server_ns_per_io() / 10,
            Figure::Rate => measured.iops() / 10,
            Figure::Tail => measured.p99_ns / 10_000,
        });
    }
    Ok(())
}

/// Formats values in hundredths as `median (minimum-maximum)`.
pub(super) fn cell(figures: &mut [u64]) -> String {
    figures.sort_unstable();
    let text = |hundredths: u64| format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let median = figures.get(figures.len() / 2).map_or_else(String::new, |&figure| text(figure));
    match *figures {
        [least, .., most] => format!("{median} ({}-{})", text(least), text(most)),
        _ => median,
    }
}
