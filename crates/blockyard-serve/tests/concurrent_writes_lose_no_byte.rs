//! Several clients write neighbouring ranges of any alignment at once. No byte is lost to a
//! concurrent write to the same sector or block.

mod nbd;

use blockyard::driver::Busy;
use blockyard::policy::Policies;
use blockyard::time::Instant;
use blockyard::trace;
use blockyard_serve::{
    Address, Config, DiskConfig, OpenError, Server, Source, StartError, StoreError, Tell, Watcher,
};
use nbd::{Random, Running, TRIM, WRITE, ZEROES, disk, file, memory};
use std::io::Write;
use std::sync::{Arc, Barrier, Mutex};

/// The size of a client's stripe, which is not a multiple of a sector.
const STRIPE_BYTES: u64 = 777;
const CLIENTS: u64 = 4;
const BYTES: u64 = 1 << 20;

/// Writes, zeroes and reads the stripes of client `own` at random, and compares them with a model.
fn write_and_compare(running: &Running, own: u64, rounds: u32, start: &Barrier) {
    let mut client = running.client();
    let mut model = vec![0_u8; usize::try_from(client.bytes).unwrap()];
    let mut random = Random(own);
    start.wait();
    for round in 0..rounds {
        let stripes = client.bytes / STRIPE_BYTES / CLIENTS;
        let first = (random.below(stripes) * CLIENTS + own) * STRIPE_BYTES;
        let from = first + random.below(STRIPE_BYTES);
        let len = 1 + random.below(first + STRIPE_BYTES - from);
        let range = usize::try_from(from).unwrap()..usize::try_from(from + len).unwrap();
        match random.below(8) {
            0 => {
                assert_eq!(client.call(ZEROES, from, u32::try_from(len).unwrap()), 0);
                model[range].fill(0);
            }
            1..=5 => {
                let byte = u8::try_from(1 + random.below(255)).unwrap();
                model[range.clone()].fill(byte);
                assert_eq!(client.write(from, &model[range]), 0);
            }
            _ => assert_eq!(client.read(from, range.len()), model[range], "round {round}"),
        }
    }
    let all = client.read(0, model.len());
    for stripe in (own..client.bytes / STRIPE_BYTES).step_by(usize::try_from(CLIENTS).unwrap()) {
        let from = usize::try_from(stripe * STRIPE_BYTES).unwrap();
        let range = from..from + usize::try_from(STRIPE_BYTES).unwrap();
        assert_eq!(all[range.clone()], model[range], "stripe {stripe} of {own}");
    }
    client.bye();
}

fn check(disk: DiskConfig, lanes: usize, rounds: u32) {
    let running = Running::start(disk, |config| config.lanes = lanes);
    let start = Arc::new(Barrier::new(usize::try_from(CLIENTS).unwrap()));
    std::thread::scope(|scope| {
        for own in 0..CLIENTS {
            let running = &running;
            let start = &start;
            scope.spawn(move || write_and_compare(running, own, rounds, start));
        }
    });
    running.stop();
}

/// Checks [kernel-writes-alone].
#[test]
fn memory_keeps_every_byte() {
    check(memory(BYTES + 77), 1, 2000);
    check(DiskConfig { policies: Policies::mq_deadline(), ..memory(BYTES + 77) }, 2, 2000);
}

#[test]
fn the_page_cache_keeps_every_byte() {
    let path = file(BYTES + 77);
    let source = Source::File { path: path.clone(), buffered: true };
    check(DiskConfig { policies: Policies::mq_deadline(), ..disk(source) }, 2, 1000);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), BYTES + 77, "the file must not grow");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn direct_io_keeps_every_byte() {
    // On so small a disk clients often write to the same block.
    let path = file(16 << 10);
    let source = Source::File { path: path.to_owned(), buffered: false };
    check(DiskConfig { policies: Policies::mq_deadline(), depth: 16, ..disk(source) }, 2, 500);
    std::fs::remove_file(path).unwrap();
}

/// The disk's refusals. The reason says whether the conflicting write is in the same lane or in
/// another.
#[derive(Debug, Default)]
struct Refusals(Arc<Mutex<Vec<Busy>>>);

impl Watcher for Refusals {
    fn lane(&self, _lane: u32, _now: Instant) -> Tell {
        let all = Arc::clone(&self.0);
        Box::new(move |_disk, event| {
            if let trace::Action::Refuse(busy) = event.action {
                all.lock().unwrap().push(busy);
            }
        })
    }
}

/// Several clients write parts of one block at once. The end of the conflicting write wakes a write
/// that waits; it does not depend on the retry timer.
///
/// Checks [edge-has-one-writer].
#[test]
fn a_write_that_waits_for_its_block_is_woken() {
    let path = file(4096);
    for lanes in [1, 2] {
        let refusals = Arc::default();
        let source = Source::File { path: path.to_owned(), buffered: false };
        let running = Running::start(disk(source), |config| {
            config.lanes = lanes;
            config.watcher = Some(Arc::new(Refusals(Arc::clone(&refusals))));
        });
        let mut clients = [(); 4].map(|()| running.client());
        for _ in 0..50 {
            let cookies = [0, 1, 2, 3].map(|at: usize| {
                let cookie = clients[at].ask(WRITE, at as u64 * 100, 100).unwrap();
                clients[at].stream.write_all(&[1; 100]).unwrap();
                cookie
            });
            for (client, cookie) in clients.iter_mut().zip(cookies) {
                assert_eq!(client.reply().unwrap(), (cookie, 0));
            }
        }
        clients.into_iter().for_each(nbd::Client::bye);
        running.stop();
        let refusals = refusals.lock().unwrap();
        assert!(refusals.iter().all(|busy| *busy == Busy::Device), "{lanes} lanes: {refusals:?}");
        assert!(!refusals.is_empty(), "{lanes} lanes: no write had to wait");
    }
    std::fs::remove_file(path).unwrap();
}

/// Sends the largest write and read, and a write beyond the end.
#[test]
fn a_write_of_32_mebibytes_is_kept_whole() {
    let path = file(40 << 20);
    for disk in [memory(40 << 20), disk(Source::File { path: path.to_owned(), buffered: false })] {
        let running = Running::start(disk, |_| ());
        let mut client = running.client();
        let data: Vec<u8> = {
            let byte = |at: u32| at.to_be_bytes()[3] ^ (at >> 12).to_be_bytes()[3];
            (0..32 << 20).map(byte).collect()
        };
        assert_eq!(client.write(1000, &data), 0);
        assert!(client.read(1000, data.len()) == data, "the read should return the written data");
        assert_eq!(
            client.write((40 << 20) - 5, &[1; 6]),
            nbd::ENOSPC,
            "a write beyond the end should be refused"
        );
        assert_eq!(client.call(TRIM, 0, 1 << 20), 0);
        assert_eq!(client.read((1 << 20) + 1000, 9)[..], data[1 << 20..(1 << 20) + 9]);
        client.bye();
        running.stop();
    }
    std::fs::remove_file(path).unwrap();
}

/// Only one export of one server may write a file, because partial-block writes are ordered within
/// an export.
#[test]
fn a_served_file_has_no_other_writer() {
    let path = nbd::file(1 << 20);
    fn disk(name: &str, read_only: bool, path: &std::path::Path) -> DiskConfig {
        let source = Source::File { path: path.to_owned(), buffered: false };
        DiskConfig { name: name.to_owned(), read_only, ..nbd::disk(source) }
    }
    fn server(disks: Vec<DiskConfig>) -> Result<Server, StartError> {
        Server::start(&Config::new(disks, vec![Address::Unix(nbd::socket())]))
    }
    let twice = vec![disk("", false, &path), disk("again", false, &path)];
    assert!(matches!(server(twice), Err(StartError::Open(OpenError::Store(StoreError::Busy(_))))));
    let running = Running::start(disk("", false, &path), |config| {
        config.disks.push(disk("to look at", true, &path));
    });
    assert!(matches!(
        server(vec![disk("", false, &path)]),
        Err(StartError::Open(OpenError::Store(StoreError::Busy(_))))
    ));
    running.stop();
    Running::start(disk("", false, &path), |_| ()).stop();
    std::fs::remove_file(path).unwrap();
}
