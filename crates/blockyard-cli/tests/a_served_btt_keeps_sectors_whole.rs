//! `serve --btt` keeps sectors whole. If the server is killed during many writes, every
//! acknowledged write survives, no sector is torn, and `btt check` finds no damage.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, FLUSH};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn blockyard(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str]) -> Output {
    blockyard(args).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns a path short enough for a socket.
fn socket() -> PathBuf {
    let name = nbd::path("t").file_name().unwrap().to_owned();
    std::env::temp_dir().join(name).with_extension("sock")
}

/// Creates a file with an empty BTT.
fn created(name: &str, sector: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    let size = ["--size", "32m", "--sector-size", sector];
    let out = run(&[&["btt", "create", text(&path)], &size[..]].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    path
}

fn start(path: &Path, socket: &Path, survives: &str) -> Child {
    start_with(path, socket, &["--survives", survives])
}

fn start_with(path: &Path, socket: &Path, options: &[&str]) -> Child {
    let address = format!("unix:{}", text(socket));
    let args = [&["serve", text(path), "--btt", "--lanes", "2"][..], options].concat();
    let server = blockyard(&[&args[..], &["--nbd", &address]].concat()).spawn().unwrap();
    nbd::answers(server, socket)
}

fn kill(mut server: Child) {
    server.kill().unwrap();
    server.wait().unwrap();
}

fn check(path: &Path) {
    let out = run(&["btt", "check", text(path)]);
    let words = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{words}");
}

/// Returns a sector filled with the number of its write.
fn sector(mark: u64, bytes: usize) -> Vec<u8> {
    mark.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

fn mark(sector: &[u8]) -> u64 {
    let mark = u64::from_le_bytes(sector[..8].try_into().unwrap());
    assert_eq!(sector, self::sector(mark, sector.len()), "the sector is torn");
    mark
}

#[test]
fn sectors_of_every_size_are_read_as_written() {
    for (size, data) in [("512", 512_u32), ("520", 512), ("4096", 4096), ("4104", 4096)] {
        let bytes_of = data as usize;
        for survives in ["process", "power"] {
            let path = created(&format!("sizes-{size}-{survives}.btt"), size);
            let socket = socket();
            let server = start(&path, &socket, survives);
            let mut client = Client::connect(&socket).unwrap();
            for n in 0..20_u64 {
                let bytes: Vec<u8> = (0..8).flat_map(|at| sector(n << 8 | at, bytes_of)).collect();
                assert_eq!(client.write(n * 5 * u64::from(data), &bytes), 0);
            }
            assert_eq!(client.call(nbd::TRIM, 2 * u64::from(data), 2 * data), 0);
            assert_eq!(client.call(FLUSH, 0, 0), 0);
            kill(server);
            let server = start(&path, &socket, survives);
            let mut client = Client::connect(&socket).unwrap();
            let all = client.read(0, 103 * bytes_of);
            for (at, found) in all.chunks_exact(bytes_of).enumerate() {
                let n = (at as u64 / 5).min(19);
                let expected = if matches!(at, 2 | 3) { 0 } else { n << 8 | (at as u64 - n * 5) };
                assert_eq!(mark(found), expected, "sector {at} of {size}");
            }
            kill(server);
            check(&path);
            std::fs::remove_file(path).unwrap();
            std::fs::remove_file(socket).unwrap();
        }
    }
}

#[test]
fn a_server_that_is_killed_leaves_every_sector_whole() {
    const SECTORS: usize = 64;
    let path = created("killed.btt", "4096");
    let socket = socket();
    let mut least = vec![0; 3 * SECTORS];
    for life in 1..=12_u64 {
        let server = start(&path, &socket, "process");
        std::thread::scope(|scope| {
            let writers: Vec<_> = least
                .chunks_exact_mut(SECTORS)
                .zip(0..)
                .map(|(answered, writer)| {
                    let socket = &socket;
                    scope.spawn(move || {
                        let mut client = Client::connect(socket).unwrap();
                        for step in 1_u32.. {
                            let lba = step as usize * 7 % SECTORS;
                            let mark = life << 32 | u64::from(step);
                            let at = ((writer * SECTORS + lba) * 4096) as u64;
                            let bytes = sector(mark, 4096);
                            let written = client.ask(nbd::WRITE, at, 4096).is_ok()
                                && std::io::Write::write_all(&mut client.stream, &bytes).is_ok();
                            if !written || client.reply().is_err() {
                                return;
                            }
                            answered[lba] = mark;
                        }
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(60));
            kill(server);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
        check(&path);
        let server = start(&path, &socket, "process");
        let mut client = Client::connect(&socket).unwrap();
        let all = client.read(0, 3 * SECTORS * 4096);
        for (at, found) in all.chunks_exact(4096).enumerate() {
            let found = mark(found);
            assert!(
                found >= least[at],
                "sector {at}: {found:x}, but {:x} was acknowledged",
                least[at]
            );
        }
        kill(server);
    }
    std::fs::remove_file(&socket).unwrap();
    assert!(least.iter().all(|&mark| mark > 0), "every sector should have an acknowledged write");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn sync_means_survives_power() {
    let path = created("sync.btt", "512");
    let socket = socket();
    for options in [&["--sync"][..], &["--sync", "--survives", "power"]] {
        let server = start_with(&path, &socket, options);
        assert_eq!(Client::connect(&socket).unwrap().write(512, &[7; 512]), 0);
        kill(server);
        check(&path);
    }
    std::fs::remove_file(&socket).unwrap();
    for survives in ["process", "pmem"] {
        let args = ["serve", text(&path), "--btt", "--sync", "--survives", survives];
        let out = run(&[&args[..], &["--nbd", "127.0.0.1:0"]].concat());
        let words = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words}");
        assert!(words.contains("--sync means --survives power"), "{words}");
    }
    std::fs::remove_file(path).unwrap();
}

/// The kernel does not know this file as persistent memory. The server says so and serves the file.
#[test]
fn survives_pmem_warns_about_other_memory() {
    let path = created("pmem.btt", "512");
    let socket = socket();
    let mut server = start_with(&path, &socket, &["--survives", "pmem"]);
    assert_eq!(Client::connect(&socket).unwrap().write(512, &[7; 512]), 0);
    let mut words = server.stderr.take().unwrap();
    kill(server);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut words, &mut said).unwrap();
    assert!(said.contains("does not map this file as persistent memory (MAP_SYNC)"), "{said}");
    std::fs::remove_file(&socket).unwrap();
    check(&path);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_without_a_btt_is_refused_in_one_line() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("none.btt");
    std::fs::write(&path, vec![0; 17 << 20]).unwrap();
    let out = run(&["serve", text(&path), "--btt", "--nbd", "127.0.0.1:0"]);
    let words = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{words}");
    let expected = format!("blockyard: error: {}: no BTT: ", text(&path));
    assert!(words.starts_with(&expected) && words.lines().count() == 1, "{words}");
    std::fs::remove_file(path).unwrap();
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The help of `--survives process` promised that flushed writes survive a loss of power. Cuts left
/// sectors with the contents of others, and tables that `serve` refused. docs/BTT.md says the same
/// as the help.
#[test]
fn the_help_promises_no_more_than_a_loss_of_power_leaves() {
    let out = run(&["help", "serve"]);
    let help = String::from_utf8(out.stdout).unwrap();
    let help = words(&help);
    let promise = "process: The end of this server; a loss of power may damage any sector and the table, flushed or not";
    assert!(help.contains(promise), "{help}");
    let warning = "helps only until the next write: a loss of power may then leave sectors that are torn or have the contents of others, even flushed ones, and a table that this command refuses";
    assert!(help.contains(warning), "{help}");
    let doc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/BTT.md");
    let doc = words(&std::fs::read_to_string(doc).unwrap());
    assert!(doc.contains("The last row promises nothing about a loss of power"), "{doc}");
}
