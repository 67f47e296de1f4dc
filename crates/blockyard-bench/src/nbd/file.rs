//! Our server on a file beside fio's `io_uring` engine on the file itself, both by direct I/O.

use super::load::Load;
use super::peer::{DISK_BYTES, Peer, Programs, Server};
use super::shape::{Direction, Shape};
use crate::turns::Turns;
use crate::{DEPTH, fio};
use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The processors of the server and of its client, as a list for `taskset`. fio may use all.
const CPUS: &str = "0,1";

/// Measures random 4 KiB reads in turns, and prints a table in Markdown: the median, the minimum
/// and the maximum.
///
/// # Errors
///
/// Returns an error if the file cannot be made or a measurement fails.
pub fn compare(path: String, turns: usize, time: Duration, programs: &Programs) -> io::Result<()> {
    let path: &'static str = path.leak();
    let made = !Path::new(path).exists();
    let ready = if made { make(path) } else { look_at(path) };
    let measured = ready.and_then(|()| measure(path, turns, time, programs));
    let removed = if made { fs::remove_file(path) } else { Ok(()) };
    let [direct, served] = measured?;
    removed?;
    println!("| random 4 KiB reads of a file, depth {} | k/s | of fio's |\n|---|--:|--:|", DEPTH);
    println!("| fio's io_uring on the file | {direct:.1} | |");
    println!("| blockyard none | {served:.1} | {} |", served.relative_to(&direct));
    Ok(())
}

/// Refuses a file of another length: fio and our client would read from different ranges.
fn look_at(path: &str) -> io::Result<()> {
    if fs::metadata(path)?.len() == DISK_BYTES as u64 {
        return Ok(());
    }
    Err(io::Error::other(format!("{path} exists and is no file of {DISK_BYTES} bytes")))
}

/// Makes a file without holes.
fn make(path: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    let piece = vec![1; 1 << 20];
    (0..DISK_BYTES / piece.len()).try_for_each(|_| file.write_all(&piece))?;
    file.sync_all()
}

/// The rates of fio and of our server in thousand reads per second.
fn measure(
    path: &'static str,
    turns: usize,
    time: Duration,
    programs: &Programs,
) -> io::Result<[Turns; 2]> {
    let [mut direct, mut served] = [Turns::default(), Turns::default()];
    let shape = Shape { direction: Direction::Read, bytes: 4096, depth: DEPTH.into() };
    let load = Load { shape, connections: 1, idle: 0, time };
    let peer = Peer::BlockyardFile(path);
    for turn in 0..turns {
        eprintln!("turn {} of {turns}: {}", turn + 1, peer.name());
        direct.push(fio::random_reads("io_uring", path, time)?);
        let server = Server::start(peer, programs, CPUS)?;
        let measured = load.run_apart(programs, CPUS, &[peer.export().to_owned()], &server)?;
        served.push(measured.thousand_iops());
    }
    Ok([direct, served])
}
