//! The comparison: measures every server under every load in turns, and prints two tables with the spread: the figures,
//! and their ratios to those of another server in the same turn.
#![allow(clippy::float_arithmetic, reason = "this is a report")]

use super::client::Client;
use super::load::{Load, Measured};
use super::peer::{Peer, Programs, Server};
use super::shape::{Direction, Shape};
use crate::turns::Turns;
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

impl Figure {
    /// Its value, in its unit.
    fn of(self, measured: &Measured) -> f64 {
        match self {
            Self::ServerTime => measured.server_us_per_io(),
            Self::Rate => measured.thousand_iops(),
            Self::Tail => measured.p99_ms(),
        }
    }

    const fn quantity(self) -> &'static str {
        match self {
            Self::ServerTime => "time",
            Self::Rate => "rate",
            Self::Tail => "p99",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::ServerTime => "us/IO",
            Self::Rate => "k/s",
            Self::Tail => "p99, ms",
        }
    }

    /// The server that the others are compared with: the bare loop, or nbdkit for the tail, whose floor is not known.
    const fn reference(self) -> Peer {
        match self {
            Self::ServerTime | Self::Rate => Peer::Bare,
            Self::Tail => Peer::NbdkitMemory,
        }
    }
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
    column("read, depth 16", Direction::Read, 4, 16),
    column("read, depth 64", Direction::Read, 4, 64),
    column("write, depth 16", Direction::Write, 4, 16),
    column("read 1 MiB, depth 8", Direction::Read, 1024, 8),
    column("write 1 MiB, depth 8", Direction::Write, 1024, 8),
    Column { figure: Figure::Rate, ..column("read, depth 1", Direction::Read, 4, 1) },
    Column {
        cpus: ["0", "1"],
        figure: Figure::Rate,
        ..column("read, depth 1, a CPU each", Direction::Read, 4, 1)
    },
    Column {
        connections: 4,
        cpus: ["0,1", "0,1"],
        figure: Figure::Rate,
        ..column("read, 4 x depth 16, two CPUs", Direction::Read, 4, 16)
    },
    Column {
        connections: 64,
        cpus: ["0,1", "0,1"],
        figure: Figure::Tail,
        ..column("read, 64 x depth 1, two CPUs", Direction::Read, 4, 1)
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

/// The figures of a server: one for each column. They are empty if the server is not installed.
type Figures = [Turns; COLUMNS.len()];

/// Measures, and prints two tables in Markdown: the figures, and their ratios to those of the bare loop, or of nbdkit for tails.
///
/// # Errors
///
/// Returns an error if a measurement fails. Servers that are not installed are named and have no row.
pub fn compare(options: &Options) -> io::Result<()> {
    let short =
        [Peer::Blockyard("none"), Peer::Blockyard("mq-deadline"), Peer::Bare, Peer::NbdkitMemory];
    let peers = if options.short { &short[..] } else { &Peer::ALL[..] };
    let mut found: Vec<(Peer, Figures)> =
        peers.iter().map(|&peer| (peer, Figures::default())).collect();
    for turn in 0..options.turns {
        for (peer, figures) in &mut found {
            eprintln!("turn {} of {}: {}", turn + 1, options.turns, peer.name());
            match measure(*peer, options, figures) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    eprintln!("  not installed");
                }
                done => done.map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", peer.name()))
                })?,
            }
        }
    }
    found.retain(|(_, figures)| !figures[0].is_empty());
    let names = COLUMNS.map(|column| format!("{} ({})", column.name, column.figure.unit()));
    print(&names, &found);
    println!();
    let names = COLUMNS.map(|column| {
        format!(
            "{}: {} of {}",
            column.name,
            column.figure.quantity(),
            column.figure.reference().name()
        )
    });
    print(&names, &ratios(&found));
    Ok(())
}

/// The ratios of each figure to that of the column's reference in the same turn.
fn ratios(found: &[(Peer, Figures)]) -> Vec<(Peer, Figures)> {
    let ratio = |figures: &Figures, at: usize| {
        let reference = COLUMNS[at].figure.reference();
        let reference = found.iter().find(|(peer, _)| *peer == reference);
        reference.map_or_else(Turns::default, |(_, other)| figures[at].relative_to(&other[at]))
    };
    found
        .iter()
        .map(|(peer, figures): &(Peer, Figures)| {
            (*peer, core::array::from_fn(|at| ratio(figures, at)))
        })
        .collect()
}

fn print(names: &[String], rows: &[(Peer, Figures)]) {
    println!("| server | {} |\n|---|{}", names.join(" | "), "--:|".repeat(names.len()));
    for (peer, figures) in rows {
        let cells: Vec<_> = figures.iter().map(ToString::to_string).collect();
        println!("| {} | {} |", peer.name(), cells.join(" | "));
    }
}

fn measure(peer: Peer, options: &Options, found: &mut Figures) -> io::Result<()> {
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
        figures.push(column.figure.of(&measured));
    }
    Ok(())
}
