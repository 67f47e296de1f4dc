//! Reads and writes beyond the end of a truncated file fail. The log has one line for the disk, and
//! a metric counts them. Reads used to return zeroes silently. Writes used to make the file long
//! again, so later reads did.

mod nbd;

use blockyard_serve::{Address, Event, Harm, Source};
use nbd::{EIO, FLUSH, READ, Running, TRIM, ZEROES, disk, file};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

const BYTES: u64 = 1 << 20;
/// A length within a sector, so direct I/O ends at a partial block.
const CUT: u64 = (256 << 10) + 100;

fn failures(running: &Running) -> u64 {
    let Some(Address::Tcp(address)) = running.server.metrics_address() else {
        panic!("the server has metrics")
    };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let name = "blockyard_damage_failures_total{device=\"(default)\"} ";
    let value = answer.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_else(|| panic!("no {name} in {answer}")).parse().unwrap()
}

/// Checks [end-is-no-zeroes].
#[test]
fn reads_beyond_the_end_fail_and_are_reported_once() {
    for buffered in [true, false] {
        let path = file(BYTES);
        std::fs::write(&path, vec![7; usize::try_from(BYTES).unwrap()]).unwrap();
        let (events, happened) = mpsc::sync_channel(16);
        let running =
            Running::start(disk(Source::File { path: path.clone(), buffered }), |config| {
                config.events = Some(events);
                config.metrics = Some("127.0.0.1:0".to_owned());
            });
        let mut client = running.client();
        assert_eq!(failures(&running), 0);
        File::options().write(true).open(&path).unwrap().set_len(CUT).unwrap();
        assert_eq!(client.read(0, 4096), [7; 4096], "the bytes before the end should be unchanged");
        assert_eq!(client.call(READ, BYTES / 2, 4096), EIO, "beyond the end, buffered {buffered}");
        assert_eq!(client.call(READ, 256 << 10, 4096), EIO, "across the end, buffered {buffered}");
        assert_eq!(
            client.call(READ, 128 << 10, 512 << 10),
            EIO,
            "across the end, buffered {buffered}"
        );
        assert_eq!(failures(&running), 3);
        assert_eq!(client.write(0, &[8; 4096]), 0, "the session should continue");
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        client.bye();
        running.stop();
        let disks = happened.try_iter().filter_map(|event| match event {
            Event::Disk(event) => Some(event),
            Event::Client(_) => None,
        });
        let disks: Vec<_> = disks.collect();
        assert_eq!(disks.len(), 1, "{disks:?}");
        assert_eq!(disks[0].harm, Harm::CutShort { disk_bytes: BYTES, file_bytes: CUT });
        std::fs::remove_file(path).unwrap();
    }
}

/// Checks [end-is-no-zeroes].
#[test]
fn writes_beyond_the_end_fail_and_leave_the_file_short() {
    for buffered in [true, false] {
        let path = file(BYTES);
        let source = Source::File { path: path.clone(), buffered };
        let running = Running::start(disk(source), |config| {
            config.metrics = Some("127.0.0.1:0".to_owned());
        });
        let mut client = running.client();
        let handle = File::options().write(true).open(&path).unwrap();
        handle.set_len(CUT).unwrap();
        let beyond = BYTES / 2;
        assert_eq!(client.write(beyond, &[8; 4096]), EIO, "beyond the end, buffered {buffered}");
        assert_eq!(client.write(CUT - 100, &[8; 4096]), EIO, "across the end, buffered {buffered}");
        assert_eq!(client.call(ZEROES, beyond, 4096), EIO, "zeroes, buffered {buffered}");
        assert_eq!(client.call(TRIM, beyond, 4096), 0, "a discard is only advice");
        assert_eq!(client.write(0, &[8; 4096]), 0, "before the end, buffered {buffered}");
        assert_eq!(handle.metadata().unwrap().len(), CUT, "buffered {buffered}");
        assert_eq!(client.call(READ, BYTES - 4096, 4096), EIO, "what was lost is no zeroes");
        assert_eq!(failures(&running), 4);
        handle.set_len(BYTES).unwrap();
        assert_eq!(client.write(beyond, &[8; 4096]), 0, "the file has its length again");
        assert_eq!(client.read(beyond, 4096), [8; 4096]);
        client.bye();
        running.stop();
        std::fs::remove_file(path).unwrap();
    }
}
