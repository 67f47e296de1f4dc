//! A served loop device passes clients' writes to its backing file.
//!
//! A loop device requires root and kernel support. Without these the test prints a line and passes.

mod extended;
mod loop_device;
mod nbd;

use blockyard_serve::Source;
use extended::Extended;
use loop_device::Loop;
use nbd::{FLUSH, READ, Running, TRIM, ZEROES, disk, header};
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const BYTES: u64 = 8 << 20;
const EINVAL: u32 = 22;
const ENOTSUP: u32 = 95;

/// TRIM had no effect on devices that discard but cannot zero.
#[test]
fn trim_frees_space_on_a_device_that_cannot_zero() {
    let name = format!("blockyard-trim-{}", std::process::id());
    let file = Path::new("/dev/shm").join(name);
    for buffered in [false, true] {
        if fs::write(&file, vec![9; usize::try_from(BYTES).unwrap()]).is_err() {
            nbd::not_checked("TRIM without zeroing, as there is no /dev/shm");
            return;
        }
        let Some(device) = Loop::over(&file) else { break };
        if !device.stops_zeroing() {
            nbd::not_checked("TRIM without zeroing, as loop devices over tmpfs zero here");
            break;
        }
        fn room(file: &std::path::Path) -> u64 {
            fs::metadata(file).unwrap().blocks() * 512
        }
        assert_eq!(room(&file), BYTES);
        let source = Source::File { path: device.path.clone(), buffered };
        let running = Running::start(disk(source), |_| ());
        let mut client = running.client();
        assert_eq!(client.call(TRIM, 2 << 20, 3 << 20), 0);
        assert_eq!(room(&file), BYTES - (3 << 20), "TRIM should free space, buffered {buffered}");
        // Many TRIMs at once, with a write among them.
        let asked: Vec<_> =
            (0..16).map(|at| client.ask(TRIM, (5 << 20) + at * 65536, 65536).unwrap()).collect();
        let mut ended: Vec<_> = asked.iter().map(|_| client.reply().unwrap()).collect();
        ended.sort_unstable();
        assert_eq!(ended, asked.iter().map(|cookie| (*cookie, 0)).collect::<Vec<_>>());
        assert_eq!(room(&file), BYTES - (4 << 20));
        assert_eq!(client.write(2 << 20, &[1; 4096]), 0);
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        assert_eq!(
            client.read((2 << 20) - 512, 5120),
            [&[9; 512][..], &[1; 4096], &[0; 512]].concat()
        );
        client.bye();
        running.stop();
    }
    fs::remove_file(file).unwrap();
}

/// FAST_ZERO on a device that cannot zero was refused, but Linux had dropped what the page cache
/// held of the range: writes that were answered and not flushed. Of a part of a page, the cache
/// then held zeroes.
#[test]
fn a_refused_fast_zero_changes_nothing() {
    const SENT: [(u64, u32); 4] =
        [(0, 1 << 20), (1 << 20, 4096), (512, 512), ((3 << 20) - 512, 8192)];
    let name = format!("blockyard-fast-{}", std::process::id());
    let file = Path::new("/dev/shm").join(name);
    for buffered in [true, false] {
        if fs::write(&file, vec![9; usize::try_from(BYTES).unwrap()]).is_err() {
            nbd::not_checked("FAST_ZERO without zeroing, as there is no /dev/shm");
            return;
        }
        let Some(device) = Loop::over(&file) else { break };
        if !device.stops_zeroing() {
            nbd::not_checked("FAST_ZERO without zeroing, as loop devices over tmpfs zero here");
            break;
        }
        let source = Source::File { path: device.path.clone(), buffered };
        let running = Running::start(disk(source), |_| ());
        let mut client = running.client();
        let data: Vec<u8> = (0..BYTES).map(|at| u8::try_from(at / 512 % 251).unwrap()).collect();
        assert_eq!(client.write(0, &data), 0);
        for (cookie, (offset, len)) in (1..).zip(SENT) {
            let mut fast = header(ZEROES, cookie, offset, len);
            fast[5] = 1 << 4;
            client.stream.write_all(&fast).unwrap();
            assert_eq!(client.reply().unwrap(), (cookie, ENOTSUP), "{len} at {offset}");
            let now = client.read(0, data.len());
            assert!(now == data, "{len} at {offset} changed data, buffered {buffered}");
        }
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        client.bye();
        running.stop();
        drop(device);
        assert!(fs::read(&file).unwrap() == data, "the file, buffered {buffered}");
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn a_block_device_keeps_what_is_written_and_reports_only_data() {
    let file = nbd::file(BYTES);
    for buffered in [false, true] {
        fs::write(&file, vec![9; usize::try_from(BYTES).unwrap()]).unwrap();
        let Some(device) = Loop::over(&file) else { break };
        let source = Source::File { path: device.path.clone(), buffered };
        let running = Running::start(disk(source), |config| config.lanes = 2);
        let mut client = running.client();
        assert_eq!(client.bytes, BYTES);
        assert_eq!(client.write(512, &[1; 1024]), 0);
        assert_eq!(client.write(1 << 20, &vec![2; 1 << 20]), 0);
        assert_eq!(client.call(TRIM, 2 << 20, 1 << 20), 0);
        assert_eq!(client.call(ZEROES, 3 << 20, 1 << 20), 0);
        // Reads and writes have whole blocks. Zeroes and TRIM need not.
        assert_eq!(client.call(READ, 3 << 20, 100), EINVAL);
        for (offset, len) in [((5 << 20) + 100, 200), ((6 << 20) - 7, 5000)] {
            assert_eq!(client.call(ZEROES, offset, len), 0, "{len} at {offset}");
            let [from, to] = [offset, offset + u64::from(len)]
                .map(|at| usize::try_from(at - (5 << 20)).unwrap());
            let mut expected = vec![9; 2 << 20];
            expected[from..to].fill(0);
            assert!(client.read(5 << 20, 2 << 20) == expected, "{len} at {offset}, {buffered}");
            assert_eq!(client.write(5 << 20, &vec![9; 2 << 20]), 0);
        }
        assert_eq!(client.call(TRIM, (7 << 20) + 1, 511), 0, "no block lies within");
        assert_eq!(client.call(TRIM, (7 << 20) + 1, 1023), 0);
        let ends = [client.read(7 << 20, 512), client.read((7 << 20) + 1024, 512)];
        assert_eq!(ends, [[9; 512], [9; 512]].map(Vec::from));
        // NO_HOLE and FAST_ZERO: the server does not know whether zeroing would be fast.
        let mut both = header(ZEROES, 1, 4 << 20, 1 << 20);
        both[5] = 1 << 1 | 1 << 4;
        client.stream.write_all(&both).unwrap();
        assert_eq!(client.reply().unwrap(), (1, ENOTSUP));
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        assert_eq!(client.read(0, 2048)[510..1538], [&[9; 2][..], &[1; 1024], &[9; 2]].concat());
        assert_eq!(client.read(3 << 20, 1 << 20), vec![0; 1 << 20]);
        client.bye();

        let mut client = Extended::connect(&running.socket);
        let told = client.status(0, BYTES);
        assert!(
            told.iter().all(|(_, state)| *state == 0),
            "a block device should report no holes: {told:?}"
        );
        assert_eq!(told.iter().map(|(len, _)| len).sum::<u64>(), BYTES);
        drop(client);
        running.stop();
        drop(device);
        let kept = fs::read(&file).unwrap();
        fn of(at: usize, kept: &[u8]) -> &[u8] {
            &kept[at << 20..(at + 1) << 20]
        }
        assert_eq!(kept[..2048], [&[9; 512][..], &[1; 1024], &[9; 512]].concat());
        assert!(
            of(1, &kept).iter().all(|byte| *byte == 2)
                && of(3, &kept).iter().all(|byte| *byte == 0)
        );
        assert!(of(4, &kept).iter().all(|byte| *byte == 9), "the other bytes should be unchanged");
    }
    fs::remove_file(file).unwrap();
}
