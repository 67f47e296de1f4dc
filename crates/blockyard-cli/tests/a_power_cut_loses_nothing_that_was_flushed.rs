//! The power is cut below the file of a server, anywhere: nothing that was flushed or written with
//! FUA is lost, and no sector is torn. With a BTT and `--sync` nothing that was answered is lost,
//! and no sector of the BTT is torn.
//!
//! The server runs on a file system of this test, which records every write. Afterwards each cut
//! draws one of the states that the disk may have had: of the writes since it was last
//! synchronised, any sectors of 512 bytes in any order. A server is then started on what one of the
//! cuts has left, and so on.
//!
//! `BLOCKYARD_CUTS` is the number of cuts for each kind of disk, rounded up to two or more whole
//! lives. `BLOCKYARD_CUTS_SEED` draws another load and other cuts. Threads and the kernel decide
//! the rest, so a seed does not repeat a run.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;
mod power;

use blockyard_btt::Container;
use power::cuts::Life;
use power::fuse::{Disk, Ways};
use power::history::{Record, Shared};
use power::load::Load;
use power::medium::Behaviour;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// Cuts in each life of a disk.
const CUTS: usize = 500;
const FILE: Load = Load { unit_bytes: 512, units: 512, longest: 24, requests: 600 };
const BTT: Load = Load { unit_bytes: 4096, units: 96, longest: 4, requests: 400 };

/// A kind of disk, and the faults of the medium below it that must be found.
struct Kind {
    name: &'static str,
    load: Load,
    options: &'static [&'static str],
    faults: &'static [Behaviour],
}

/// The number that an environment variable has, or `default`.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{variable} should be a number: {value}"))
    })
}

/// A server that does not outlive its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(path: &Path, socket: &Path, options: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.arg("serve").arg(path).args(["--lanes", "2"]).args(options);
    command.arg(format!("--nbd=unix:{}", socket.display())).stderr(Stdio::null());
    Server(nbd::answers(command.spawn().expect("start of the server"), socket))
}

impl Kind {
    /// Cuts the power `BLOCKYARD_CUTS` times. Returns how the server wrote to the file, if such a
    /// disk is possible here.
    fn cut(&self, mut base: Vec<u8>) -> Option<Ways> {
        let cuts = number("BLOCKYARD_CUTS", 2000);
        let seed = number("BLOCKYARD_CUTS_SEED", 1);
        let lives = cuts.div_ceil(CUTS as u64).max(2);
        let mut all = Ways::default();
        let mut records = 0;
        let mut below = 0;
        let start = Instant::now();
        for number in 0..lives {
            let seed = seed + number;
            let (life, ways) = self.live(base, number, seed)?;
            base = life
                .cut(CUTS, seed, Behaviour::HONEST)
                .unwrap_or_else(|error| panic!("{}, life {number}: {error}", self.name));
            for fault in self.faults {
                let found = life.cut(CUTS, seed, *fault).map(|_| ());
                let error = found.expect_err("a fault of the disk should be found");
                if number == 0 {
                    println!("{}: {fault:?} is found: {error}", self.name);
                }
            }
            let is_below = |r: &&Record| !matches!(r, Record::Sent(_) | Record::Answered(_));
            below += life.history.records.iter().filter(is_below).count();
            records += life.history.records.len();
            all = all + ways;
        }
        let name = self.name;
        let took = start.elapsed();
        let cuts = lives * CUTS as u64;
        println!("{name}: {cuts} cuts in {lives} lives, {took:.1?}");
        println!("{name}: {records} records, {below} of them below the file; writes: {all:?}");
        Some(all)
    }

    /// Runs the load against a server on a recorded disk with `base`, if such a disk is possible
    /// here.
    fn live(&self, base: Vec<u8>, number: u64, seed: u64) -> Option<(Life, Ways)> {
        let history = Arc::new(Shared::default());
        let path = nbd::file(0);
        let socket = nbd::socket();
        // One page cache brings whole pages to the disk, when it wants or has to; the other one
        // each single store.
        let keeps_writes = number.is_multiple_of(2);
        let disk = match Disk::mount(&path, base.clone(), keeps_writes, seed, &history) {
            Ok(disk) => disk,
            Err(error) => {
                let what = format!("power cuts below a file need root and /dev/fuse: {error}");
                assert!(std::env::var_os("CI").is_none(), "CI has to have them: {what}");
                nbd::not_checked(&what);
                return None;
            }
        };
        let mut server = start(&path, &socket, self.options);
        self.load.run(&socket, &history, number, seed);
        let pid = server.0.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("kill").success());
        assert!(server.0.wait().expect("end of the server").success(), "it ends in order");
        let ways = disk.unmount();
        std::fs::remove_file(path).expect("removal of the mount point");
        let Load { units, unit_bytes, .. } = self.load;
        let unit_bytes = usize::try_from(unit_bytes).expect("bytes of a unit");
        let btt = self.options.contains(&"--btt").then_some(Container::Namespace);
        Some((Life { number, history: history.take(), base, units, unit_bytes, btt }, ways))
    }
}

fn zeroes(load: Load) -> Vec<u8> {
    vec![0; usize::try_from(load.units * load.unit_bytes).expect("bytes of a small disk")]
}

fn is_buffered(ways: &Ways) {
    assert!(ways.direct == 0 && ways.from_cache > 0 && ways.through_cache > 0, "{ways:?}");
}

#[test]
fn a_file_keeps_what_was_flushed() {
    let faults = &[Behaviour::LIAR, Behaviour::TEARING];
    let kind = Kind { name: "file", load: FILE, options: &["--buffered"], faults };
    kind.cut(zeroes(FILE)).inspect(is_buffered);
}

/// The kernel does not synchronise the file after a direct write.
#[test]
fn a_direct_file_keeps_what_was_flushed() {
    let faults = &[Behaviour::LIAR, Behaviour::TEARING];
    let kind = Kind { name: "direct file", load: FILE, options: &[], faults };
    if let Some(ways) = kind.cut(zeroes(FILE)) {
        assert!(ways.direct > 0 && ways.from_cache + ways.through_cache == 0, "{ways:?}");
    }
}

#[test]
fn a_synchronised_btt_keeps_what_was_answered() {
    let path: PathBuf = nbd::path("btt");
    let mut create = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    create.args(["btt", "create", "--size=17m", "--sector-size=4096"]).arg(&path);
    assert!(create.output().expect("creation of a BTT").status.success());
    let base = std::fs::read(&path).expect("bytes of a new BTT");
    std::fs::remove_file(path).expect("removal of the BTT");
    let faults = &[Behaviour::LIAR];
    let kind = Kind { name: "BTT", load: BTT, options: &["--btt", "--sync"], faults };
    kind.cut(base).inspect(is_buffered);
}
