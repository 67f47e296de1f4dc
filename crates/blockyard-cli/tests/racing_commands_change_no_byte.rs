//! Random requests to every kind of disk match a model of its bytes, while an operator commands the
//! server.
//!
//! Each session has bytes of its own, so its model is exact. It sends batches of requests to
//! disjoint ranges, and batches follow each other, so ranges overlap over time. In the end a new
//! server has the bytes that the model has.
//!
//! `BLOCKYARD_MODEL_SEED` and `BLOCKYARD_MODEL_BATCHES` (of each session, 120 by default) make
//! longer runs of other requests.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

#[path = "../../blockyard-serve/tests/loop_device/mod.rs"]
mod loop_device;
mod operator;

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use loop_device::Loop;
use nbd::{Client, FLUSH, READ, Random, TRIM, WRITE, ZEROES};
use operator::{Running, blockyard, start, text};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const SESSIONS: u64 = 3;
/// The bytes of a session are no whole blocks, except where clients need these.
const SESSION_BYTES: u64 = 100_003;
const BATCH: u64 = 8;
const ENOTSUP: u32 = 95;
const FUA: u16 = 1;
const NO_HOLE: u16 = 1 << 1;
const FAST_ZERO: u16 = 1 << 4;
const FLAGS_OF_ZEROES: [u16; 4] = [0, NO_HOLE, FAST_ZERO, NO_HOLE | FAST_ZERO];

/// The options that choose an engine of the server, for each engine.
const ENGINES: [&[&str]; 2] = [&[], &["--io", "threads"]];
/// Layers that do nothing until an operator changes them.
const LAYERS: [&str; 6] = ["--rate", "unlimited", "--delay", "0us", "--fault", "none"];

/// The model of a session's bytes.
struct Model {
    /// The offset of the first byte on the disk.
    start: u64,
    bytes: Vec<u8>,
    /// Bytes that were trimmed: each reads as before or as zero, and then stays so.
    is_trimmed: Vec<bool>,
    /// Whether such a byte may be anything until it is written again. NBD promises nothing of
    /// trimmed bytes, and Linux drops the page cache of a block device before it looks whether the
    /// device can punch a hole: after a `discard_max_bytes` of 0 in sysfs, bytes read as zero, or
    /// as they were at the last flush (findings/linux-drops-writes-before-refusing-a-hole.sh).
    trims_to_anything: bool,
    /// The minimum block of the disk.
    block: u64,
}

/// A request that was sent.
struct Sent {
    cookie: u64,
    kind: u16,
    /// The range within the session's bytes.
    range: Range<usize>,
    data: Vec<u8>,
    flags: u16,
}

impl Model {
    fn new(session: u64, block: u64, trims_to_anything: bool) -> Self {
        let len = SESSION_BYTES / block * block;
        let bytes = vec![0; usize::try_from(len).unwrap()];
        let is_trimmed = vec![false; bytes.len()];
        Self { start: session * len, is_trimmed, trims_to_anything, bytes, block }
    }

    /// Returns a random range. It consists of whole blocks if `is_whole` is set.
    fn range(&self, random: &mut Random, is_whole: bool) -> Range<usize> {
        let len = self.bytes.len() as u64;
        let most = [self.block, 5000, 40_000][usize::try_from(random.below(3)).unwrap()];
        let from = random.below(len);
        let to = (from + 1 + random.below(most)).min(len);
        let unit = if is_whole { self.block } else { 1 };
        let [from, to] = [from / unit * unit, to.next_multiple_of(unit)];
        usize::try_from(from).unwrap()..usize::try_from(to).unwrap()
    }

    /// Takes note of a request that has ended with `error`; `found` is the data of a read.
    fn ended(&mut self, sent: &Sent, error: u32, found: &[u8]) {
        let Sent { kind, ref range, ref data, flags, .. } = *sent;
        if kind == ZEROES && flags & FAST_ZERO != 0 && error == ENOTSUP {
            return; // refused, and nothing has changed
        }
        assert_eq!(error, 0, "request {kind} with flags {flags} to {range:?}");
        match kind {
            READ => {
                for (at, found) in range.clone().zip(found) {
                    let kept = self.bytes[at];
                    let is_trimmed = self.is_trimmed[at];
                    if is_trimmed && self.trims_to_anything {
                        continue;
                    }
                    let is_legal = *found == kept || (is_trimmed && *found == 0);
                    assert!(
                        is_legal,
                        "byte {at} of the session, at {} of the disk, is {found} and not {kept} (trimmed: {is_trimmed}), \
                         in a read of {range:?}",
                        self.start + at as u64
                    );
                    self.put(at, *found);
                }
            }
            WRITE => range.clone().zip(data).for_each(|(at, byte)| self.put(at, *byte)),
            ZEROES => range.clone().for_each(|at| self.put(at, 0)),
            TRIM => {
                let block = usize::try_from(self.block).unwrap();
                let end = range.end / block * block;
                let whole = range.start.next_multiple_of(block).min(end)..end;
                self.is_trimmed[whole].fill(true);
            }
            _ => assert_eq!(kind, FLUSH),
        }
    }

    fn put(&mut self, at: usize, byte: u8) {
        self.bytes[at] = byte;
        self.is_trimmed[at] = false;
    }

    fn request(&self, random: &mut Random, cookie: u64) -> Sent {
        let [kind, flags] = match random.below(16) {
            0..=4 => [READ, 0],
            5..=8 => [WRITE, 0],
            9 => [WRITE, FUA],
            10..=12 => [ZEROES, FLAGS_OF_ZEROES[usize::try_from(cookie % 4).unwrap()]],
            13..=14 => [TRIM, 0],
            _ => [FLUSH, 0],
        };
        let range = match kind {
            FLUSH => 0..0,
            _ => self.range(random, kind == READ || kind == WRITE),
        };
        let byte = random.below(256);
        let data = match kind {
            WRITE => range.clone().map(|at| (at as u64 * 7 + byte).to_le_bytes()[0]).collect(),
            _ => Vec::new(),
        };
        Sent { cookie, kind, range, data, flags }
    }

    /// Sends a batch of requests to disjoint ranges, and takes the replies in any order.
    fn batch(&mut self, client: &mut Client, random: &mut Random) {
        let mut batch: Vec<Sent> = Vec::new();
        for _ in 0..=random.below(BATCH) {
            let sent = self.request(random, client.next);
            let is_disjoint = batch.iter().all(|other| {
                other.range.end <= sent.range.start || sent.range.end <= other.range.start
            });
            if !is_disjoint {
                continue;
            }
            client.next += 1;
            let len = u32::try_from(sent.range.len()).unwrap();
            let offset = if sent.kind == FLUSH { 0 } else { self.start + sent.range.start as u64 };
            let mut bytes = nbd::header(sent.kind, sent.cookie, offset, len).to_vec();
            bytes[4..6].copy_from_slice(&sent.flags.to_be_bytes());
            bytes.extend(&sent.data);
            client.stream.write_all(&bytes).unwrap();
            batch.push(sent);
        }
        while !batch.is_empty() {
            let (cookie, error) = client.reply().unwrap();
            let at = batch.iter().position(|sent| sent.cookie == cookie).expect("one reply each");
            let sent = batch.swap_remove(at);
            let has_data = sent.kind == READ && error == 0;
            let mut found = vec![0; if has_data { sent.range.len() } else { 0 }];
            client.stream.read_exact(&mut found).unwrap();
            self.ended(&sent, error, &found);
        }
    }

    /// Compares all bytes.
    fn compare(&mut self, client: &mut Client) {
        let all =
            Sent { cookie: 0, kind: READ, range: 0..self.bytes.len(), data: vec![], flags: 0 };
        let found = client.read(self.start, self.bytes.len());
        self.ended(&all, 0, &found);
    }
}

/// One command of an operator, some of which are refused. `rules` is the path of harmless fault
/// rules.
fn command(running: &Running, random: &mut Random, has_layers: bool, rules: &Path) {
    let layers = [
        ["rate", "", "100g"],
        ["rate", "", "unlimited"],
        ["delay", "", "50us-300us"],
        ["delay", "", "0us"],
        ["fault", "", text(rules)],
        ["fault", "", "none"],
    ];
    match random.below(12) {
        0 => assert!(running.list()["exports"].as_array().unwrap().len() >= 2),
        nth @ 1..=6 => {
            let words = layers[usize::try_from(nth - 1).unwrap()];
            assert_eq!(running.ctl(&words).status.success(), has_layers, "{words:?}");
        }
        7 => {
            running.does(&["add", "extra", "memory:1m"]);
            let mut client = Client::connect_to(&running.socket, "extra").unwrap();
            assert_eq!(client.write(0, &[9; 4096]), 0);
            running.does(&["remove", "extra", "--force"]);
            assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "its session has ended");
        }
        8 => {
            let mut client = Client::connect_to(&running.socket, "spare").unwrap();
            let list = running.list();
            let clients = list["clients"].as_array().unwrap();
            let own = clients.iter().find(|one| one["export"] == "spare").expect("the client");
            running.does(&["disconnect", &own["id"].to_string()]);
            assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "its session has ended");
        }
        9 => drop(running.refuses(&["remove", ""])),
        10 => drop(running.refuses(&["resize", "", "64m"])),
        _ => {
            let mut client = Client::connect_to(&running.socket, "spare").unwrap();
            running.does(&[
                "resize",
                "spare",
                if random.below(2) == 0 { "1m" } else { "2m" },
                "--force",
            ]);
            assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "its session has ended");
        }
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// Serves a disk with `words`, whose requests have multiples of `block`, on every engine. If
/// `is_kept`, it has its bytes again when it is served again.
fn check(words: &[&str], block: u64, is_kept: bool) {
    let seed = setting("BLOCKYARD_MODEL_SEED", 33);
    let batches = setting("BLOCKYARD_MODEL_BATCHES", 120);
    let rules = nbd::path("rules.toml");
    let slow =
        "[[rule]]\nname = \"slow\"\nop = [\"read\", \"write\"]\nevery = 9\ndelay = \"200us\"\n";
    fs::write(&rules, slow).unwrap();
    let has_layers = words.contains(&LAYERS[0]);
    let is_cached_device = words[0].starts_with("/dev/") && words.contains(&"--buffered");
    let blank = (0..SESSIONS).map(|session| Model::new(session, block, is_cached_device));
    let mut models: Vec<_> = blank.clone().collect();
    for (nth, engine) in (0..).zip(ENGINES) {
        eprintln!(
            "BLOCKYARD_MODEL_SEED={seed} BLOCKYARD_MODEL_BATCHES={batches} {words:?} {engine:?}"
        );
        let words = [words, engine].concat();
        if !is_kept {
            models = blank.clone().collect();
        }
        let running = start(&words);
        running.does(&["add", "spare", "memory:1m"]);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let running = &running;
            let is_over = &is_over;
            let rules = &rules;
            let sessions: Vec<_> = (0..)
                .zip(&mut models)
                .map(|(session, model)| {
                    scope.spawn(move || {
                        let mut client = running.client();
                        let mut random = Random(seed * 1000 + nth * 10 + session);
                        model.compare(&mut client);
                        (0..batches).for_each(|_| model.batch(&mut client, &mut random));
                        model.compare(&mut client);
                        client.bye();
                    })
                })
                .collect();
            let operator = scope.spawn(move || {
                // The default export always has a client, so it is neither removed nor resized.
                let _client = running.client();
                let mut random = Random(seed * 1000 + nth * 10 + 9);
                while !is_over.load(Ordering::Relaxed) {
                    command(running, &mut random, has_layers, rules);
                }
            });
            let ended: Vec<_> = sessions.into_iter().map(|session| session.join()).collect();
            is_over.store(true, Ordering::Relaxed); // before a panic, or the operator would not end
            assert!(
                ended.iter().all(Result::is_ok),
                "seed {seed}: a session differs from its model"
            );
            operator.join().expect("the operator's commands");
        });
        running.end();
        if is_kept {
            let running = start(&words);
            let mut client = running.client();
            models.iter_mut().for_each(|model| model.compare(&mut client));
            client.bye();
            running.end();
        }
    }
    fs::remove_file(rules).unwrap();
}

/// Checks a disk whose file `make` makes, with and without layers. Without layers it has two lanes.
fn check_file(make: impl Fn() -> PathBuf, options: &[&str], block: u64) {
    for more in [&["--lanes", "2", "--design", "mq-deadline"][..], &LAYERS] {
        let path = make();
        check(&[&[text(&path)], options, more].concat(), block, true);
        fs::remove_file(path).unwrap();
    }
}

fn table(sector_bytes: &str) -> PathBuf {
    let path = nbd::path("table");
    let size = ["--size", "32m", "--sector-size", sector_bytes];
    let made = blockyard(&[&["btt", "create", text(&path)][..], &size].concat()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    path
}

#[test]
fn memory_matches_its_model() {
    check(&["memory:1m", "--lanes", "2"], 1, false);
    check(&[&["memory:1m"], &LAYERS[..]].concat(), 1, false);
}

#[test]
fn a_direct_file_matches_its_model() {
    check_file(|| nbd::file(1 << 20), &[], 1);
}

#[test]
fn a_cached_file_matches_its_model() {
    check_file(|| nbd::file((1 << 20) + 77), &["--buffered"], 1);
}

#[test]
fn a_block_device_matches_its_model() {
    for options in [&[][..], &["--buffered"], &LAYERS] {
        let file = nbd::file(1 << 20);
        if let Some(device) = Loop::over(&file) {
            check(&[&[text(&device.path)], options].concat(), 512, true);
        }
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_table_with_sectors_of_512_matches_its_model() {
    check_file(|| table("512"), &["--btt"], 512);
    check_file(|| table("512"), &["--btt", "--sync"], 512);
}

#[test]
fn a_table_with_sectors_of_4096_matches_its_model() {
    check_file(|| table("4096"), &["--btt"], 4096);
    check_file(|| table("4096"), &["--btt", "--sync"], 4096);
}
