//! Slow, numerous or silent clients do not affect other clients.

mod extended;
mod nbd;

use blockyard_serve::{Address, ClientEvent, Config, Event, Happened, Server};
use extended::Extended;
use nbd::{Client, READ, Running, WRITE, header, memory};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One client requests far more than it reads, and another client is still answered.
///
/// Checks [unread-replies-hold-one-client] and [quick-send-never-waits].
#[test]
fn a_slow_reader_waits_alone() {
    let path = nbd::file(64 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    for disk in [memory(64 << 20), nbd::disk(file)] {
        // The pool exceeds the slow client's limit of 64 MiB a little.
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
        // The slow client is still served.
        let (_, error) = slow.reply().unwrap();
        assert_eq!(error, 0);
        let mut data = vec![0; 1 << 20];
        slow.stream.read_exact(&mut data).unwrap();
        drop(slow);
        running.stop();
    }
    std::fs::remove_file(path).unwrap();
}

/// A client sends more requests at once than a connection may have in flight. All are answered.
#[test]
fn every_request_of_a_flood_is_answered() {
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

/// The lane has memory for one large request at a time. Several clients get it in turn.
///
/// Checks [turn-finishes-a-request].
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

/// Starts a server of a file of 64 MiB, with a pool of 4 MiB in its only lane.
fn with_little_memory(patience: Duration) -> (Running, std::path::PathBuf) {
    let path = nbd::file(64 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let running = Running::start(nbd::disk(file), |config| {
        (config.lane_bytes_max, config.patience) = (4 << 20, patience);
    });
    (running, path)
}

/// Clients that hold all of a lane's memory, in replies that they do not read or WRITEs that they
/// do not finish, are cut off when another client waits for memory, and not before.
///
/// Checks [idle-holder-cut-off] and [own-memory-for-each-client].
#[test]
fn a_client_that_keeps_memory_from_others_is_cut_off() {
    let patience = Duration::from_millis(500);
    for does_write in [false, true] {
        let (running, path) = with_little_memory(patience);
        let mut stalled: Vec<_> = (0..4).map(|_| running.client()).collect();
        for client in &mut stalled {
            client.stream.set_write_timeout(Some(patience / 5)).unwrap();
            if does_write {
                client.stream.write_all(&header(WRITE, 1, 0, 2 << 20)).unwrap();
                // The server may stop reading before the end.
                let _ = client.stream.write_all(&[9; (2 << 20) - 1]);
            } else {
                client.ask(READ, 0, 2 << 20).unwrap();
            }
        }
        let mut other = running.client();
        other.stream.set_read_timeout(Some(20 * patience)).unwrap();
        for round in 0..20 {
            assert_eq!(other.write(4 << 20, &[round; 5000]), 0);
            assert_eq!(other.read(4 << 20, 5000), [round; 5000]);
        }
        for at in 0..3 {
            assert_eq!(other.read(at << 20, 3 << 20).len(), 3 << 20);
        }
        other.bye();
        let is_cut_off = |mut client: Client| {
            let mut rest = Vec::new();
            client.stream.set_read_timeout(Some(patience)).unwrap();
            let ended = client.stream.read_to_end(&mut rest);
            rest.len() < 2 << 20
                && !matches!(ended, Err(error) if error.kind() == ErrorKind::WouldBlock)
        };
        let cut_off = stalled.into_iter().map(is_cut_off).filter(|is| *is).count();
        assert!(cut_off >= 2, "{cut_off} clients were cut off");
        running.stop();
        std::fs::remove_file(path).unwrap();
    }
}

/// A client gets the turn beside a long reply, whose end gives the lane's reserve back, and then
/// falls silent. It is cut off, and another client writes.
///
/// Checks [idle-holder-cut-off].
#[test]
fn a_client_that_keeps_the_turn_from_others_is_cut_off() {
    let patience = Duration::from_millis(500);
    let path = nbd::file(8 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let running = Running::start(nbd::disk(file), |config| {
        (config.lane_bytes_max, config.patience) = (64 << 10, patience);
    });
    let mut silent = running.client();
    let requests = [header(READ, 1, 0, 128 << 10), header(WRITE, 2, 0, 1 << 20)].concat();
    silent.stream.write_all(&[&requests[..], &[7; 60_000]].concat()).unwrap();
    assert_eq!(silent.reply().unwrap(), (1, 0));
    silent.stream.read_exact(&mut vec![0; 128 << 10]).unwrap();
    let mut other = running.client();
    other.stream.set_read_timeout(Some(20 * patience)).unwrap();
    other.stream.set_write_timeout(Some(20 * patience)).unwrap();
    assert_eq!(other.write(4 << 20, &[9; 1 << 20]), 0);
    let ended = silent.stream.read(&mut [0]);
    assert!(!matches!(ended, Err(error) if error.kind() == ErrorKind::WouldBlock), "it is cut off");
    other.bye();
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// A slow reader and a slow writer hold memory for many times the lane's patience while others
/// wait. Neither is cut off.
///
/// Checks [idle-holder-cut-off].
#[test]
fn a_client_that_moves_bytes_is_never_cut_off() {
    let patience = Duration::from_millis(300);
    let (running, path) = with_little_memory(patience);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut other = running.client();
                while !is_done.load(Ordering::Relaxed) {
                    assert_eq!(other.read(16 << 20, 4 << 20).len(), 4 << 20);
                }
            });
        }
        let reader = scope.spawn(|| {
            let mut client = running.client();
            client.ask(READ, 0, 3 << 20).unwrap();
            assert_eq!(client.reply().unwrap(), (1, 0));
            (0..24).try_for_each(|_| {
                std::thread::sleep(patience / 3);
                client.stream.read_exact(&mut [0; 128 << 10])
            })
        });
        let writer = scope.spawn(|| {
            let mut client = running.client();
            client.stream.write_all(&header(WRITE, 7, 8 << 20, 3 << 20)).unwrap();
            for _ in 0..24 {
                std::thread::sleep(patience / 3);
                client.stream.write_all(&[7; 128 << 10])?;
            }
            client.reply()
        });
        let read = reader.join();
        let written = writer.join();
        is_done.store(true, Ordering::Relaxed);
        read.unwrap().expect("the reader should not be cut off");
        assert_eq!(written.unwrap().expect("the writer should not be cut off"), (7, 0));
    });
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// The header of a long WRITE holds no memory: other clients do not wait for its payload.
#[test]
fn headers_of_long_writes_hold_no_memory() {
    let path = nbd::file(64 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let running = Running::start(nbd::disk(file), |_| ());
    let mut announced: Vec<_> = (0..64).map(|_| running.client()).collect();
    for client in &mut announced {
        client.stream.write_all(&header(WRITE, 1, 0, 32 << 20)).unwrap();
    }
    let mut other = running.client();
    other.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for length in [512, 8 << 20, 32 << 20] {
        assert_eq!(other.read(0, length).len(), length);
    }
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// Clients that leave 64 MiB of replies each unread leave other clients their share.
///
/// Checks [share-leaves-as-much-free].
#[test]
fn slow_readers_leave_others_a_share() {
    let path = nbd::file(64 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let running = Running::start(nbd::disk(file), |_| ());
    let mut slow: Vec<_> = (0..5).map(|_| running.client()).collect();
    for client in &mut slow {
        for at in 0..64 {
            client.ask(READ, at << 20, 1 << 20).unwrap();
        }
    }
    let mut fast = running.client();
    fast.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    for at in 0..50 {
        assert_eq!(fast.read(at << 20, 1 << 20).len(), 1 << 20);
    }
    assert_eq!(fast.read(0, 32 << 20).len(), 32 << 20);
    drop(slow);
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// Returns a file of a thousand runs.
fn file_of_many_runs() -> std::path::PathBuf {
    let path = nbd::file(8 << 20);
    let sparse = std::fs::File::options().write(true).open(&path).unwrap();
    sparse.set_len(0).unwrap();
    sparse.set_len(8 << 20).unwrap();
    (0..500).for_each(|at| sparse.write_all_at(&[1; 4096], at * 8192).unwrap());
    path
}

/// A client that reads no answer to its requests for status once had all of them written: a
/// megabyte that no limit counted.
///
/// Checks [unread-status-is-short].
#[test]
fn statuses_that_nobody_reads_are_not_written() {
    let path = file_of_many_runs();
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let (events, told) = std::sync::mpsc::sync_channel(64);
    let running = Running::start(nbd::disk(file), |config| config.events = Some(events));
    let mut asking = Extended::connect(&running.socket);
    (0..128).for_each(|_| asking.ask_status(0, 8 << 20));
    // No limit of the server says when it stops: nothing more arrives for a while.
    let mut arrived = (asking.arrived_bytes(), 0);
    while arrived.0 != arrived.1 || arrived.0 == 0 {
        std::thread::sleep(Duration::from_millis(300));
        arrived = (asking.arrived_bytes(), arrived.0);
    }
    assert_eq!(asking.answer().unwrap().len(), 8 + 500 * 16);
    drop(asking);
    let mut ends = told.iter().filter_map(|event| match event {
        Event::Client(ClientEvent { happened: Happened::Gone { requests, .. }, .. }) => {
            Some(requests)
        }
        _ => None,
    });
    let written = ends.next().unwrap() * 8000;
    assert!(written > arrived.0 && written < arrived.0 + (120 << 10), "{written} of {arrived:?}");
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// One client requests the status of a file with a thousand runs a hundred times and then sends
/// nothing more. Each request is answered, and another client's read does not wait for them.
#[test]
fn a_status_of_many_runs_delays_no_other_client() {
    let path = file_of_many_runs();
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    let running = Running::start(nbd::disk(file), |_| ());
    let mut other = running.client();
    let mut asking = Extended::connect(&running.socket);
    (0..100).for_each(|_| asking.ask_status(0, 8 << 20));
    asking.shut_down();
    assert_eq!(other.read(0, 10), [1; 10]);
    let arrived = asking.arrived_bytes();
    assert!(arrived < 20 * 500 * 16, "{arrived} bytes of answers were written before the read");
    for _ in 0..100 {
        let extents = asking.answer().unwrap();
        assert_eq!(extents.len(), 8 + 500 * 16);
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

/// Clients that choose no export fill all connections repeatedly. A client that chooses an export
/// still gets in.
#[test]
fn silent_clients_make_room_for_others() {
    let running = Running::start(memory(1 << 20), |config| {
        (config.connections_max, config.lanes) = (64, 2);
    });
    let mut served = running.client();
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.extend((0..200).map(|_| UnixStream::connect(&running.socket).unwrap()));
        running.client().bye();
    }
    // The newest silent clients are still connected, and the oldest are not.
    fn asks(client: &mut UnixStream) -> std::io::Result<()> {
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut greeting = [0; 18];
        client.read_exact(&mut greeting).and_then(|()| {
            client.write_all(&[0, 0, 0, 3])?;
            client.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0")?;
            client.read_exact(&mut [0; 10])
        })
    }
    assert!(asks(silent.last_mut().unwrap()).is_ok());
    assert!(asks(&mut silent[0]).is_err());
    assert_eq!(served.read(0, 10), [0; 10]);
    running.stop();
}

/// A flood from one address once pushed out every client that was slow to choose an export.
#[test]
fn silent_clients_of_one_address_leave_those_of_others_alone() {
    let path = nbd::socket();
    let addresses = vec![Address::Unix(path.clone()), Address::Tcp("127.0.0.1:0".to_owned())];
    let mut config = Config::new(vec![memory(1 << 20)], addresses);
    (config.connections_max, config.lanes) = (256, 2);
    let server = Server::start(&config).unwrap();
    let address = server.addresses().iter().find_map(|address| match address {
        Address::Tcp(address) => Some(address.clone()),
        _ => None,
    });
    let address = address.expect("the TCP address with its port");
    let slow = nbd::greeted(UnixStream::connect(&path).unwrap()).unwrap();
    let flood: Vec<_> = (0..400).map(|_| TcpStream::connect(&address).unwrap()).collect();
    // A client after the flood is served when the server has dealt with the flood.
    Client::connect(&path).unwrap().bye();
    let mut slow = Client::enter(slow).expect("a slow client of another origin");
    assert_eq!(slow.read(0, 10), [0; 10]);
    drop(flood);
    server.stopper().stop();
    server.join().unwrap();
}

#[test]
fn connections_do_not_exceed_their_limit() {
    let running = Running::start(memory(1 << 20), |config| config.connections_max = 2);
    let one = running.client();
    let two = running.client();
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
