//! Clients of a disk under BFQ get shares of it as their weights are.

mod nbd;

use blockyard::layer::rate::Rates;
use blockyard::policy::{BfqTunables, ElevatorKind, Policies};
use blockyard::time::Duration;
use blockyard_serve::{Address, Config, DiskConfig, Layers, Place, Server, Source, Weight};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, Ordering};
use nbd::{Client, READ, Running, WRITE, disk, file, greeted, memory};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;

const DISK_BYTES: u64 = 64 << 20;
const REQUEST_BYTES: u32 = 4096;

/// BFQ with slots that are short beside the test, and without raised weights.
fn bfq() -> Policies {
    let bfq = BfqTunables {
        timeout_sync: Duration::from_ms(8),
        low_latency: false,
        ..BfqTunables::default()
    };
    Policies { elevator: ElevatorKind::Bfq(bfq), ..Policies::NONE }
}

/// A disk that does 5000 requests in a second.
fn slow_disk(weights: Vec<(Place, Weight)>) -> DiskConfig {
    let rates =
        Rates { bytes_per_s: None, requests_per_s: Some(5000), burst: Duration::from_us(200) };
    let layers = Layers { rates: Some(rates), ..Layers::default() };
    let path = file(DISK_BYTES);
    let source = Source::File { path, buffered: false };
    DiskConfig { policies: bfq(), depth: 4, layers, weights, ..disk(source) }
}

/// Sends `count` requests without waiting for replies.
fn send(stream: impl Write, kind: u16, count: u32, first: u64) {
    let mut client = Client { stream, bytes: DISK_BYTES, next: 1 };
    for number in 0..u64::from(count) {
        // No request continues another one, so that none are merged.
        let offset = first + number * 2 * u64::from(REQUEST_BYTES);
        client.stream.write_all(&nbd::header(kind, number, offset, REQUEST_BYTES)).unwrap();
        if kind == WRITE {
            client.stream.write_all(&[7; REQUEST_BYTES as usize]).unwrap();
        }
    }
}

/// Receives the replies to `count` requests, and counts them in `done`.
fn receive(mut stream: impl Read, kind: u16, count: u32, done: &AtomicU32) {
    let bytes = 16 + if kind == READ { REQUEST_BYTES as usize } else { 0 };
    let mut reply = vec![0; bytes];
    for _ in 0..count {
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply[..8], &[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0], "a reply without error");
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns how many requests of the second client have ended when `count` of the first have.
/// Both keep requests waiting all that time.
fn ended_of_second(running: &Running, kind: u16, count: u32) -> u32 {
    let Address::Tcp(address) = &running.server.addresses()[1] else { panic!("a TCP address") };
    let mut first = TcpStream::connect(address).unwrap();
    first.read_exact(&mut [0; 18]).unwrap();
    first.write_all(&[0, 0, 0, 3]).unwrap();
    let first = Client::enter(first).unwrap().stream;
    let second = greeted(UnixStream::connect(&running.socket).unwrap()).unwrap();
    let second = Client::enter(second).unwrap().stream;
    let done = [AtomicU32::new(0), AtomicU32::new(0)];
    thread::scope(|threads| {
        let [of_first, of_second] = &done;
        let all = count * 2;
        let to_first = first.try_clone().unwrap();
        threads.spawn(move || send(to_first, kind, count, 0));
        let first_ended = threads.spawn(move || receive(first, kind, count, of_first));
        let to_second = second.try_clone().unwrap();
        threads.spawn(move || send(to_second, kind, all, DISK_BYTES / 2));
        threads.spawn(move || receive(second, kind, all, of_second));
        first_ended.join().unwrap();
        of_second.load(Ordering::Relaxed)
    })
}

fn shared(weights: &[(&str, u32)]) -> Running {
    let weights = weights
        .iter()
        .map(|(place, weight)| (place.parse().unwrap(), Weight::try_from(*weight).unwrap()));
    Running::start(slow_disk(weights.collect()), |config| {
        config.addresses.push(Address::Tcp("127.0.0.1:0".to_owned()));
    })
}

/// Runs up to five times, until `count` requests of the first client and so many of the second, as
/// `expected` says, take the same time. On a busy machine a client's thread waits 30 ms for a
/// processor now and then, which are 150 requests; a wrong share is wrong each time.
fn assert_shares(weights: &[(&str, u32)], kind: u16, count: u32, expected: RangeInclusive<u32>) {
    let mut seen = Vec::new();
    let is_shared = (0..5).any(|_| {
        let running = shared(weights);
        let ended = ended_of_second(&running, kind, count);
        running.stop();
        seen.push(ended);
        expected.contains(&ended)
    });
    assert!(is_shared, "{seen:?}, expected {expected:?} for {count}");
}

/// With weights 300 and 100, the second client gets a request for three of the first: 400 of 1200.
/// A slot is 40 requests of 200 us, so the end of the first may come some slots early or late.
#[test]
fn reads_and_writes_are_shared_by_weight() {
    for kind in [READ, WRITE] {
        assert_shares(&[("127.0.0.0/8", 300), ("unix", 100)], kind, 1200, 320..=480);
    }
}

#[test]
fn clients_without_weights_have_equal_shares() {
    for kind in [READ, WRITE] {
        assert_shares(&[], kind, 600, 480..=720);
    }
}

/// A client without a weight counts as one of 40.
#[test]
fn a_weight_is_set_beside_those_of_clients_without_one() {
    assert_shares(&[("unix", 20)], READ, 1200, 500..=700);
}

/// Returns why a server of `disk` does not start.
fn refusal(disk: DiskConfig) -> String {
    let config = Config::new(vec![disk], vec![Address::Unix(nbd::socket())]);
    Server::start(&config).expect_err("the disk should be refused").to_string()
}

#[test]
fn a_disk_that_nothing_shares_has_no_weights() {
    let weights: Vec<(Place, Weight)> =
        vec![("unix".parse().unwrap(), Weight::try_from(300).unwrap())];
    let of_none = DiskConfig { policies: Policies::NONE, ..slow_disk(weights.clone()) };
    let words = "no weights: only the scheduler of --design bfq shares a disk by weights";
    assert!(refusal(of_none).contains(words));
    let in_memory = DiskConfig { policies: bfq(), weights, ..memory(DISK_BYTES) };
    let words = "no weights: the disk ends each request before the next begins";
    assert!(refusal(in_memory).contains(words));
}
