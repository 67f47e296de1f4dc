//! Long payloads are received in place. Whatever happens to the connection or the request, no other
//! byte changes.

mod extended;
mod nbd;

use extended::{Extended, HOLE};
use nbd::{ENOSPC, READ, Running, WRITE, disk, file, memory};
use std::io::Write;

const LEN: usize = 1 << 20;
/// An offset that is not aligned to a block.
const AT: usize = 77_777;
const BEFORE: u8 = 3;
const AFTER: u8 = 9;

/// Starts a server of a 3 MiB disk filled with [`BEFORE`].
fn filled(config: blockyard_serve::DiskConfig) -> Running {
    let running = Running::start(config, |_| {});
    let mut client = running.client();
    assert_eq!(client.write(0, &vec![BEFORE; 3 * LEN]), 0);
    client.bye();
    running
}

/// Reads the whole disk; the server sends the data from its place in memory.
fn all(running: &Running) -> Vec<u8> {
    let mut client = running.client();
    let all = client.read(0, 3 * LEN);
    client.bye();
    all
}

fn a_cut_write(config: blockyard_serve::DiskConfig) -> usize {
    let running = filled(config);
    let sent = 300_001;
    let mut client = running.client();
    client.ask(WRITE, AT as u64, u32::try_from(LEN).unwrap()).unwrap();
    client.stream.write_all(&vec![AFTER; sent]).unwrap();
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    // The server sends no reply. It closes the connection after the end of the stream.
    assert!(client.reply().is_err());
    let bytes = all(&running);
    let written = bytes.iter().filter(|byte| **byte == AFTER).count();
    assert!(written <= sent);
    assert!(
        bytes[AT..AT + written].iter().all(|byte| *byte == AFTER),
        "the written bytes should be contiguous from the start"
    );
    let untouched = bytes[..AT].iter().chain(&bytes[AT + written..]);
    assert!(untouched.clone().all(|byte| *byte == BEFORE));
    running.stop();
    written
}

/// Checks [payload-received-in-place].
#[test]
fn a_write_to_memory_that_is_cut_off_changes_only_its_own_bytes() {
    assert!(a_cut_write(memory(3 * LEN as u64)) > 0, "the received bytes should be in place");
}

#[test]
fn a_write_to_a_file_that_is_cut_off_changes_nothing() {
    let path = file(3 * LEN as u64);
    let source = blockyard_serve::Source::File { path: path.clone(), buffered: false };
    assert_eq!(a_cut_write(disk(source)), 0, "a cut write should not reach the file");
    std::fs::remove_file(path).unwrap();
}

/// A new disk is one hole. Bytes that a cut write stored must not be reported as a hole.
#[test]
fn a_write_to_a_hole_that_is_cut_off_changes_only_its_own_bytes() {
    let running = Running::start(memory(3 * LEN as u64), |_| {});
    let mut client = running.client();
    client.ask(WRITE, AT as u64, u32::try_from(LEN).unwrap()).unwrap();
    client.stream.write_all(&vec![AFTER; 300_001]).unwrap();
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(client.reply().is_err());
    let bytes = all(&running);
    assert!(bytes.contains(&AFTER), "some received bytes should be in place");
    let mut client = Extended::connect(&running.socket);
    let mut from = 0;
    for (len, state) in client.status(0, 3 * LEN as u64) {
        let range = usize::try_from(from).unwrap()..usize::try_from(from + len).unwrap();
        assert!(
            state & HOLE == 0 || bytes[range.clone()].iter().all(|byte| *byte == 0),
            "{range:?}"
        );
        from += len;
    }
    assert_eq!(from, 3 * LEN as u64);
    drop(client);
    running.stop();
}

#[test]
fn a_refused_write_changes_no_byte() {
    let running = filled(memory(3 * LEN as u64));
    let mut client = running.client();
    assert_eq!(client.write((2 * LEN + 1) as u64, &vec![AFTER; LEN]), ENOSPC);
    assert_eq!(client.call(READ, 0, 0), 0, "the session goes on");
    client.bye();
    assert!(all(&running).iter().all(|byte| *byte == BEFORE));
    running.stop();
}

/// The socket cuts a stream of long and short writes with reads among them at arbitrary bytes.
#[test]
fn writes_cut_anywhere_by_the_socket_change_only_their_own_bytes() {
    let running = filled(memory(3 * LEN as u64));
    let mut client = running.client();
    let mut model = vec![BEFORE; 3 * LEN];
    let mut random = nbd::Random(5);
    for round in 0..60_u8 {
        let mut stream = Vec::new();
        // The writes do not overlap, because they may complete in any order.
        let lens =
            [65_536, 4096, 65_537, 300_000, 1, 200_000, 70_000].map(|len| len + random.below(9));
        let mut offset = random.below(1000);
        for (at, len) in (0_u8..).zip(lens) {
            let byte = round.wrapping_mul(7).wrapping_add(at);
            let len = usize::try_from(len).unwrap();
            let place = usize::try_from(offset).unwrap();
            stream.extend(nbd::header(WRITE, u64::from(at), offset, u32::try_from(len).unwrap()));
            stream.resize(stream.len() + len, byte);
            model[place..place + len].fill(byte);
            offset += len as u64;
        }
        let cut = usize::try_from(random.below(stream.len() as u64)).unwrap();
        client.stream.write_all(&stream[..cut]).unwrap();
        client.stream.write_all(&stream[cut..]).unwrap();
        for _ in lens {
            assert_eq!(client.reply().unwrap().1, 0);
        }
        assert!(client.read(0, 3 * LEN) == model, "round {round}");
    }
    client.bye();
    running.stop();
}
