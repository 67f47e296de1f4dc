//! Ten thousand sessions are cut off at any point, send garbage, or end properly. Other clients are
//! not affected, and nothing leaks. The test is alone in its file because it counts resources of
//! the process.

mod nbd;

use nbd::{Client, READ, Random, Running, WRITE, header, memory};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The number of sessions for each of the two disks.
const SESSIONS: u32 = 5000;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the resident memory of this process, in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a session that is cut off in the handshake, in a header or in a payload, or leaves replies
/// unread.
fn cut_session(running: &Running, random: &mut Random) {
    if random.below(4) == 0 {
        let mut stream = UnixStream::connect(&running.socket).unwrap();
        let hello = [&[0, 0, 0, 3][..], b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0"].concat();
        let cut = usize::try_from(random.below(hello.len() as u64)).unwrap();
        // The server may have closed the connection already, here and below.
        let _ = stream.write_all(&hello[..cut]);
        return;
    }
    let Ok(mut client) = Client::connect(&running.socket) else { return };
    let mut bytes = Vec::new();
    for cookie in 0..random.below(40) {
        let len = u32::try_from(random.below(200_000)).unwrap();
        if random.below(2) == 0 {
            bytes.extend(header(READ, cookie, random.below(1 << 19), len));
        } else {
            bytes.extend(header(WRITE, cookie, random.below(1 << 19), len));
            bytes.resize(bytes.len() + len as usize, 7);
        }
    }
    let cut = usize::try_from(random.below(bytes.len() as u64 + 1)).unwrap();
    client.stream.set_write_timeout(Some(Duration::from_millis(2))).unwrap();
    let _ = client.stream.write_all(&bytes[..cut]);
}

/// Sends random bytes instead of the handshake, after its first words, or instead of requests. Some
/// of the latter start like a request.
fn garbage_session(running: &Running, random: &mut Random) {
    let mut bytes: Vec<u8> =
        (0..random.below(3000)).map(|_| random.below(256).to_be_bytes()[7]).collect();
    let stream = match random.below(3) {
        0 => UnixStream::connect(&running.socket).ok(),
        1 => UnixStream::connect(&running.socket).and_then(nbd::greeted).ok(),
        _ => {
            if random.below(2) == 0 {
                let begin = header(u16::try_from(random.below(10)).unwrap(), 1, 0, 0);
                bytes.splice(0..0, begin[..8].iter().copied());
            }
            Client::connect(&running.socket).ok().map(|client| client.stream)
        }
    };
    if let Some(mut stream) = stream {
        stream.set_write_timeout(Some(Duration::from_millis(2))).unwrap();
        let _ = stream.write_all(&bytes);
    }
}

/// The offset from which only valid sessions write, one at a time.
const OWN: u64 = 800_000;

/// Runs a session that reads back its writes and disconnects properly.
fn valid_session(running: &Running, random: &mut Random) {
    let mut client = running.client();
    for _ in 0..=random.below(5) {
        let len = usize::try_from(1 + random.below(20_000)).unwrap();
        let at = OWN + random.below(100_000);
        let bytes = vec![random.below(256).to_be_bytes()[7]; len];
        assert_eq!(client.write(at, &bytes), 0);
        assert_eq!(client.read(at, len), bytes);
    }
    client.bye();
}

/// Checks [door-number-kept-until-quiet] and [kernel-memory-stays].
#[test]
fn cut_connections_leak_nothing_and_disturb_nobody() {
    let path = nbd::file(1 << 20);
    let file = blockyard_serve::Source::File { path: path.clone(), buffered: true };
    for disk in [memory(1 << 20), nbd::disk(file)] {
        let running = Running::start(disk, |config| {
            config.lanes = 2;
            config.lane_bytes_max = 8 << 20; // with so little memory a leak is noticed soon
        });
        let before = descriptors();
        let mut steady = running.client();
        let mut random = Random(1);
        let mut resident = 0;
        for session in 0..SESSIONS {
            match random.below(4) {
                0 => garbage_session(&running, &mut random),
                1 => valid_session(&running, &mut random),
                _ => cut_session(&running, &mut random),
            }
            if session % 16 == 0 {
                let byte = session.to_be_bytes()[2];
                assert_eq!(steady.write(1_000_000, &[byte; 100]), 0);
                assert_eq!(steady.read(1_000_000, 100), [byte; 100]);
            }
            if session == SESSIONS / 2 {
                resident = resident_kib();
            }
        }
        steady.bye();
        until("descriptors are closed", || descriptors() <= before);
        assert!(
            resident_kib() < resident + (64 << 10),
            "{} KiB, then {}",
            resident,
            resident_kib()
        );
        running.stop();
    }
    std::fs::remove_file(path).unwrap();
}
