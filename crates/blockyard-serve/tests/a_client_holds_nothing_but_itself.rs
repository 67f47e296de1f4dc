//! Clients that are slow, many, or say nothing: others do not notice.

mod nbd;

use nbd::{Client, READ, Running, WRITE, header, memory};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One client asks for far more than it reads: another one is answered.
///
/// Checks [unread-replies-hold-one-client] and [quick-send-never-waits].
#[test]
fn a_slow_reader_waits_alone() {
    let path = nbd::file(64 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    for disk in [memory(64 << 20), nbd::disk(file)] {
        // Room for the slow one's limit of 64 MiB, and a little.
        let running = Running::start(disk, |config| config.lane_bytes_max = 80 << 20);
        let mut slow = running.client();
        slow.stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        for _ in 0..1000 {
            if slow.ask(READ, 0, 1 << 20).is_err() {
                break;
            }
        }
        let mut other = running.client();
        for round in 0..50 {
            assert_eq!(other.write(round * 5000, &[9; 5000]), 0);
            assert_eq!(other.read(round * 5000, 5000), [9; 5000]);
        }
        other.bye();
        // It is not forgotten either.
        let (_, error) = slow.reply().unwrap();
        assert_eq!(error, 0);
        let mut data = vec![0; 1 << 20];
        slow.stream.read_exact(&mut data).unwrap();
        drop(slow);
        running.stop();
    }
    std::fs::remove_file(path).unwrap();
}

/// More requests at once than a connection may have: those beyond wait, and all are answered.
#[test]
fn a_flood_is_answered_to_its_end() {
    let running = Running::start(memory(1 << 20), |_| ());
    let mut client = running.client();
    let all: Vec<u8> = (0..5000).flat_map(|cookie| header(READ, cookie, cookie, 1)).collect();
    let mut writer = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&all).unwrap());
    for cookie in 0..5000 {
        assert_eq!(client.reply().unwrap(), (cookie, 0));
        client.stream.read_exact(&mut [0]).unwrap();
    }
    sender.join().unwrap();
    client.bye();
    running.stop();
}

/// Memory for one large request at a time: several clients get theirs, one after the other.
///
/// Checks [lane-memory-bounded].
#[test]
fn a_request_that_finds_no_memory_waits_for_it() {
    let path = nbd::file(8 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let running = Running::start(nbd::disk(file), |config| config.lane_bytes_max = 1 << 20);
    std::thread::scope(|scope| {
        for own in 1..=8_u8 {
            let running = &running;
            scope.spawn(move || {
                let mut client = running.client();
                for _ in 0..10 {
                    let from = u64::from(own - 1) << 20;
                    assert_eq!(client.write(from, &vec![own; 1 << 20]), 0);
                    assert!(client.read(from, 1 << 20) == vec![own; 1 << 20]);
                }
                client.bye();
            });
        }
    });
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// Clients that leave all of a lane's memory lying, in replies that they do not read or writes that they
/// do not finish, are cut off when others wait for it.
///
/// Checks [lane-memory-bounded].
#[test]
fn a_client_that_keeps_memory_from_others_is_cut_off() {
    let path = nbd::file(8 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let patience = Duration::from_millis(500);
    let running = Running::start(nbd::disk(file), |config| {
        (config.lane_bytes_max, config.patience) = (4 << 20, patience);
    });
    for does_write in [false, true] {
        let mut stalled: Vec<_> = (0..2).map(|_| running.client()).collect();
        for client in &mut stalled {
            if does_write {
                client.stream.write_all(&header(WRITE, 1, 0, 2 << 20)).unwrap();
                client.stream.write_all(&[9; 1000]).unwrap();
            } else {
                client.ask(READ, 0, 2 << 20).unwrap();
            }
        }
        std::thread::sleep(2 * patience);
        let mut other = running.client();
        other.stream.set_read_timeout(Some(20 * patience)).unwrap();
        for round in 0..20 {
            assert_eq!(other.write(4 << 20, &[round; 5000]), 0);
            assert_eq!(other.read(4 << 20, 5000), [round; 5000]);
        }
        // Nobody was in need before.
        std::thread::sleep(2 * patience);
        assert_eq!(other.read(4 << 20, 5000), [19; 5000]);
        other.bye();
        for mut client in stalled {
            let mut rest = Vec::new();
            drop(client.stream.read_to_end(&mut rest)); // in order or not
            assert!(rest.len() < 2 << 20, "it was cut off");
        }
    }
    running.stop();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_client_that_chooses_no_export_in_time_is_cut_off() {
    let deadline = Duration::from_millis(200);
    let running = Running::start(memory(1 << 20), |config| config.handshake_deadline = deadline);
    let mut served = running.client();
    let mut silent = UnixStream::connect(&running.socket).unwrap();
    silent.read_exact(&mut [0; 18]).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    std::thread::sleep(2 * deadline);
    assert_eq!(served.read(0, 10), [0; 10], "no deadline after the handshake");
    running.stop();
}

#[test]
fn there_are_no_more_connections_than_allowed() {
    let running = Running::start(memory(1 << 20), |config| config.connections_max = 2);
    let (one, two) = (running.client(), running.client());
    assert!(Client::connect(&running.socket).is_err());
    one.bye();
    let refused = || Client::connect(&running.socket).is_ok();
    until("there is room for one again", refused);
    two.bye();
    running.stop();
}

#[test]
fn two_hundred_clients_are_served_at_once() {
    let running = Running::start(memory(1 << 20), |config| config.lanes = 2);
    let mut clients: Vec<_> = (0..200).map(|_| running.client()).collect();
    for (own, client) in clients.iter_mut().enumerate() {
        let own = own as u64;
        client.stream.write_all(&header(WRITE, 1, own * 5000, 5000)).unwrap();
        client.stream.write_all(&[own.to_be_bytes()[7]; 5000]).unwrap();
    }
    for client in &mut clients {
        assert_eq!(client.reply().unwrap(), (1, 0));
    }
    for (own, client) in clients.iter_mut().rev().enumerate() {
        let other = 199 - own as u64;
        assert_eq!(client.read(other * 5000, 5000), [other.to_be_bytes()[7]; 5000]);
    }
    running.stop();
}
