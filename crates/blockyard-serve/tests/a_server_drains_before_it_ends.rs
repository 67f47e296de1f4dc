//! Before it exits, a server executes and answers every request that it has taken. It refuses later
//! requests.

mod extended;
mod nbd;

use blockyard_serve::{Address, Config, Server, Source};
use core::time::Duration;
use extended::Extended;
use nbd::{EIO, ESHUTDOWN, READ, Running, TRIM, WRITE, disk, file, header};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

#[test]
fn requests_in_flight_are_answered() {
    let path = file(32 << 20);
    let source = Source::File { path: path.clone(), buffered: false };
    let running = Running::start(disk(source), |_| ());
    let mut client = running.client();
    // The last request is incomplete, so the server never takes it.
    for cookie in 0..32_u64 {
        client.stream.write_all(&header(WRITE, cookie, cookie << 20, 1 << 18)).unwrap();
        client.stream.write_all(&vec![1 + cookie.to_be_bytes()[7]; 1 << 18]).unwrap();
    }
    client.stream.write_all(&header(WRITE, 99, 0, 1 << 18)).unwrap();
    client.stream.write_all(&[9; 1000]).unwrap();
    let (first, error) = client.reply().unwrap();
    assert_eq!(error, 0);
    running.server.stopper().stop();
    let mut done = vec![first];
    while let Ok((cookie, error)) = client.reply() {
        assert!(error == 0 || error == ESHUTDOWN, "{cookie}: {error}");
        if error == 0 {
            done.push(cookie);
        }
    }
    running.server.join().unwrap();
    let on_disk = std::fs::read(&path).unwrap();
    for cookie in done {
        let from = usize::try_from(cookie << 20).unwrap();
        let expected = 1 + cookie.to_be_bytes()[7];
        assert!(on_disk[from..from + (1 << 18)].iter().all(|byte| *byte == expected), "{cookie}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn an_idle_session_ends_with_the_server() {
    let running = Running::start(nbd::memory(1 << 20), |config| config.lanes = 3);
    let mut clients: Vec<_> = (0..6).map(|_| running.client()).collect();
    running.server.stopper().stop();
    for client in &mut clients {
        // This may or may not arrive before the end. Neither case may hang.
        let _ = client.ask(READ, 0, 1);
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest);
    }
    running.server.join().unwrap();
}

/// A client that does not read its reply delays neither the server's final flush nor its exit.
#[test]
fn a_client_that_does_not_read_does_not_delay_exit() {
    let running = Running::start(nbd::memory(8 << 20), |config| {
        config.patience = Duration::from_millis(300);
    });
    let mut client = running.client();
    client.ask(READ, 0, 8 << 20).unwrap();
    assert_eq!(client.reply().unwrap(), (1, 0));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        running.stop();
        tell.send(()).unwrap();
    });
    told.recv_timeout(Duration::from_secs(20)).unwrap();
    drop(client);
}

/// Ranges of exabytes were worked on until the drain's time was over, whether or not somebody
/// waited for them, and the last flush did not happen ([last-flush-in-time],
/// [abandoned-range-stops]).
#[test]
fn a_range_of_exabytes_does_not_use_up_the_time_of_the_last_flush() {
    const BYTES: u64 = 1 << 62;
    let running = Running::start(disk(Source::Null { bytes: BYTES }), |config| {
        config.patience = Duration::from_secs(1);
    });
    let mut waits = Extended::connect(&running.socket);
    let mut left = Extended::connect(&running.socket);
    left.ask_for(TRIM, 0, BYTES);
    drop(left);
    waits.ask_for(TRIM, 0, BYTES);
    let mut other = running.client();
    assert_eq!(other.read(0, 3), [0; 3], "the lane has taken the ranges");
    let (tell, told) = std::sync::mpsc::channel();
    let stopper = running.server.stopper();
    stopper.stop();
    std::thread::spawn(move || tell.send(running.server.join()).unwrap());
    assert_eq!(waits.answer(), Err(EIO), "the rest of the range is left undone");
    let ended = told.recv_timeout(Duration::from_secs(20)).expect("the server should end");
    ended.expect("the last flush should succeed");
}

/// The range of a client whose connection is broken goes on only as far as its present part.
#[test]
fn a_range_ends_with_its_client() {
    let running = Running::start(disk(Source::Null { bytes: 1 << 62 }), |_| ());
    let mut client = Extended::connect(&running.socket);
    client.ask_for(TRIM, 0, 1 << 62);
    client.ask_status(0, 1);
    let start = Instant::now();
    // A socket that is closed with unread bytes is broken for its peer.
    while client.arrived_bytes() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "the status should be answered");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(client);
    let gauge = running.server.gauge();
    while gauge.read().is_none_or(|traffic| traffic.in_flight > 0) {
        assert!(start.elapsed() < Duration::from_secs(20), "the ranges should end");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.stop();
}

#[test]
fn a_server_that_never_sleeps_serves_and_exits() {
    let path = file(1 << 20);
    let source = Source::File { path: path.clone(), buffered: true };
    let running = Running::start(disk(source), |config| config.polls = true);
    let mut client = running.client();
    assert_eq!(client.write(100, &[3; 5000]), 0);
    assert_eq!(client.read(99, 3), [0, 3, 3]);
    client.bye();
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// A TCP client that went on sending was once reset before it had read its last replies.
#[test]
fn a_tcp_client_that_goes_on_sending_gets_its_last_reply() {
    gets_every_reply(100, Duration::from_millis(1));
}

/// The replies of a client that reads slowly were once lost after a second.
#[test]
fn a_slow_tcp_client_that_goes_on_sending_gets_its_last_reply() {
    gets_every_reply(40, Duration::from_millis(60));
}

/// A client goes on sending reads while the server ends, which begins once the server has taken
/// `count` of them. The client waits before it reads each reply, so the replies queue up: there are
/// some on their way when the server ends the session.
fn gets_every_reply(count: u64, pause: Duration) {
    const BYTES: u32 = 1 << 16;
    let any_port = Address::Tcp("127.0.0.1:0".to_owned());
    let server = Server::start(&Config::new(vec![nbd::memory(1 << 20)], vec![any_port])).unwrap();
    let [Address::Tcp(address)] = server.addresses() else { panic!("one TCP address") };
    let mut stream = TcpStream::connect(address).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    stream.write_all(&[0, 0, 0, 3]).unwrap();
    let mut client = nbd::Client::enter(stream).unwrap();
    let stopper = server.stopper();
    let gauge = server.gauge();
    let mut sending = client.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let mut sent = 0_u64;
        while sending.write_all(&header(READ, sent, 0, BYTES)).is_ok() {
            sent += 1;
            if sent == count {
                let start = Instant::now();
                while gauge.read().is_none_or(|traffic| traffic.reads < count) {
                    assert!(
                        start.elapsed() < Duration::from_secs(20),
                        "the server takes {count} reads"
                    );
                    std::thread::sleep(Duration::from_millis(1));
                }
                stopper.stop();
                std::thread::sleep(pause); // the server takes few of the requests that follow
            }
        }
        sent
    });
    let mut next = 0;
    let end = loop {
        match client.reply() {
            Ok((cookie, error)) => {
                assert_eq!(cookie, next, "replies of a disk in memory come in order");
                next += 1;
                match error {
                    0 => client.stream.read_exact(&mut vec![0; BYTES as usize]).unwrap(),
                    error => assert_eq!(error, ESHUTDOWN),
                }
            }
            Err(error) => break error.kind(),
        }
        std::thread::sleep(pause);
    };
    assert_eq!(end, ErrorKind::UnexpectedEof, "the connection is not reset");
    assert!(next >= count, "{next} replies to the requests taken before the end");
    drop(client);
    server.join().unwrap();
    sender.join().unwrap();
}
