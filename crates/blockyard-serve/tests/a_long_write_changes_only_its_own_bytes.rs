//! Long payload is received in place: whatever happens to the connection or the request, no other byte
//! changes.

mod extended;
mod nbd;

use extended::{Extended, HOLE};
use nbd::{ENOSPC, READ, Running, WRITE, disk, file, memory};
use std::io::Write;

const LEN: usize = 1 << 20;
/// Not aligned to any block.
const AT: usize = 77_777;
const BEFORE: u8 = 3;
const AFTER: u8 = 9;

/// A server of `config`, 3 MiB, filled with [`BEFORE`].
fn filled(config: blockyard_serve::DiskConfig) -> Running {
    let running = Running::start(config, |_| {});
    let mut client = running.client();
    assert_eq!(client.write(0, &vec![BEFORE; 3 * LEN]), 0);
    client.bye();
    running
}

/// All of the disk, in parts that are sent from where they are.
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
    // Nothing is answered: the server closes when it has seen the end.
    assert!(client.reply().is_err());
    let bytes = all(&running);
    let written = bytes.iter().filter(|byte| **byte == AFTER).count();
    assert!(written <= sent);
    assert!(bytes[AT..AT + written].iter().all(|byte| *byte == AFTER), "from its beginning on");
    let untouched = bytes[..AT].iter().chain(&bytes[AT + written..]);
    assert!(untouched.clone().all(|byte| *byte == BEFORE));
    running.stop();
    written
}

/// Checks [payload-received-in-place].
#[test]
fn a_write_cut_off_in_memory_changes_its_own_bytes_only() {
    assert!(a_cut_write(memory(3 * LEN as u64)) > 0, "what came is in place");
}

#[test]
fn a_write_cut_off_in_a_file_changes_its_own_bytes_only() {
    let path = file(3 * LEN as u64);
    let source = blockyard_serve::Source::File { path: path.clone(), buffered: false };
    assert_eq!(a_cut_write(disk(source)), 0, "it was never given to the disk");
    std::fs::remove_file(path).unwrap();
}

/// A disk that nobody has written to yet has holes; what a write brought that was cut off is none.
#[test]
fn a_write_cut_off_in_a_hole_changes_its_own_bytes_only() {
    let running = Running::start(memory(3 * LEN as u64), |_| {});
    let mut client = running.client();
    client.ask(WRITE, AT as u64, u32::try_from(LEN).unwrap()).unwrap();
    client.stream.write_all(&vec![AFTER; 300_001]).unwrap();
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(client.reply().is_err());
    let bytes = all(&running);
    assert!(bytes.contains(&AFTER), "some of it is in place");
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

/// Long and short writes in one stream, cut anywhere by the socket, with reads between.
#[test]
fn writes_cut_anywhere_by_the_socket_change_only_their_own_bytes() {
    let running = filled(memory(3 * LEN as u64));
    let mut client = running.client();
    let mut model = vec![BEFORE; 3 * LEN];
    let mut random = nbd::Random(5);
    for round in 0..60_u8 {
        let mut stream = Vec::new();
        // Apart from each other, as answered in any order.
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
