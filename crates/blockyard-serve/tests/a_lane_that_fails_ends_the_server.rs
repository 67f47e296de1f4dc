//! A lane whose io_uring or epoll fails ends the server: the clients of all lanes are disconnected
//! and the error comes back.
#![expect(unsafe_code, reason = "a test replaces a descriptor that the lane owns")]

mod nbd;

use core::time::Duration;
use nbd::{Client, READ, Running};
use std::fs;
use std::io::{ErrorKind, Read};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::mpsc;

/// Returns the number of a descriptor of an io_uring or epoll of this process: the lanes have no
/// others.
fn ring() -> i32 {
    let entries = fs::read_dir("/proc/self/fd").unwrap().map(Result::unwrap);
    let is_ring = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|target| {
            ["anon_inode:[io_uring]", "anon_inode:[eventpoll]"].map(Some).contains(&target.to_str())
        })
    };
    let entry = entries.into_iter().find(is_ring).expect("the ring of a lane");
    entry.file_name().to_str().unwrap().parse().unwrap()
}

/// Clients once hung at a lane that had failed, while the other lane went on.
#[test]
fn all_clients_are_disconnected_and_the_error_is_returned() {
    let (failures, failed) = mpsc::channel();
    let running = Running::start(nbd::memory(1 << 20), |config| {
        config.lanes = 2;
        config.failures = Some(failures);
    });
    let mut clients: Vec<_> = (0..4).map(|_| running.client()).collect();
    let nothing = fs::File::open("/dev/null").unwrap();
    // SAFETY: the descriptor is open, and is not closed here: `ManuallyDrop`.
    let mut ring = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(ring()) });
    rustix::io::dup2(&nothing, &mut ring).unwrap();
    // Wakes both lanes. A session that has ended refuses it.
    for client in &mut clients {
        let _ = client.ask(READ, 0, 1);
    }
    for client in &mut clients {
        let mut rest = Vec::new();
        client.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let end = client.stream.read_to_end(&mut rest).map_err(|error| error.kind());
        assert_ne!(end, Err(ErrorKind::WouldBlock), "a client hangs");
        assert!(rest.len() <= 17, "at most the reply to the read");
    }
    let error = running.server.join().expect_err("the error of the lane");
    assert_ne!(error.raw_os_error(), None, "{error}");
    let told: Vec<_> = failed.iter().collect();
    assert!(matches!(&told[..], [why] if error.to_string().starts_with(why)), "{told:?}, {error}");
    assert!(Client::connect(&running.socket).is_err(), "nobody listens any more");
}
