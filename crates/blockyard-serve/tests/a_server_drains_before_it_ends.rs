//! Before it exits, a server executes and answers every request that it has taken. It refuses later requests.

mod nbd;

use blockyard_serve::Source;
use core::time::Duration;
use nbd::{ESHUTDOWN, READ, Running, WRITE, disk, file, header};
use std::io::{Read, Write};

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
