//! WRITE_ZEROES with and without its flags, also on file systems whose `fallocate` cannot zero.

mod nbd;

use blockyard_serve::Source;
use nbd::{Running, ZEROES, disk, header, memory, not_checked};
use std::io::Write;

const NO_HOLE: u8 = 1 << 1;
const FAST_ZERO: u8 = 1 << 4;
const ENOTSUP: u32 = 95;

fn zeroes(flags: u8, cookie: u64, offset: u64, len: u32) -> [u8; 28] {
    let mut header = header(ZEROES, cookie, offset, len);
    header[5] = flags;
    header
}

/// tmpfs can punch holes, but can zero a range without a hole only by writing.
#[test]
fn zeroes_need_not_be_whole_blocks() {
    const BYTES: usize = 64 << 10;
    let name = nbd::path("zeroes").file_name().unwrap().to_owned();
    let path = std::path::Path::new("/dev/shm").join(name);
    if std::fs::write(&path, [7; BYTES]).is_err() {
        not_checked("zeroes on a file system without them: there is no /dev/shm");
        return;
    }
    for buffered in [true, false] {
        let source = Source::File { path: path.clone(), buffered };
        let running = Running::start(disk(source), |_| ());
        let mut client = running.client();
        for (offset, len) in
            [(4096, 8192), (5, 10), (4000, 200), (8191, 1), (100, 50_001), (0, 4097)]
        {
            assert_eq!(client.write(0, &[7; BYTES]), 0);
            client.stream.write_all(&zeroes(NO_HOLE, 1, offset, len)).unwrap();
            assert_eq!(client.reply().unwrap(), (1, 0), "{len} at {offset}, buffered: {buffered}");
            let start = usize::try_from(offset).unwrap();
            let end = usize::try_from(len).unwrap();
            let mut expected = vec![7; BYTES];
            expected[start..start + end].fill(0);
            assert!(client.read(0, BYTES) == expected, "{len} at {offset}, buffered: {buffered}");
        }
        client.bye();
        running.stop();
    }
    std::fs::remove_file(path).unwrap();
}

/// Two adjacent requests arrive together, one with FAST_ZERO. Only that one is refused.
#[test]
fn only_the_request_with_fast_zero_is_refused() {
    let running = Running::start(memory(64 << 10), |_| ());
    let mut client = running.client();
    assert_eq!(client.write(0, &[7; 64 << 10]), 0);
    let both = [zeroes(NO_HOLE | FAST_ZERO, 1, 0, 4096), zeroes(NO_HOLE, 2, 4096, 4096)];
    client.stream.write_all(&both.concat()).unwrap();
    let mut replies = [client.reply().unwrap(), client.reply().unwrap()];
    replies.sort_unstable();
    assert_eq!(replies, [(1, ENOTSUP), (2, 0)]);
    assert_eq!(client.read(4090, 12), [7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0]);
    client.bye();
    running.stop();
}
