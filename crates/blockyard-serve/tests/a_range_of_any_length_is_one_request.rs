//! With extended headers TRIM, WRITE_ZEROES, CACHE and BLOCK_STATUS take 64-bit lengths. A bio of the core has at
//! most 2 TiB.

mod extended;
mod nbd;

use blockyard_serve::Source;
use extended::{CACHE, Extended, HOLE};
use nbd::{Running, TRIM, ZEROES, disk};

const TIB: u64 = 1 << 40;
/// Offsets at, before and after every point where the server may split a range.
const PLACES: [u64; 6] = [5, TIB - 100, TIB, 2 * TIB - 1, 2 * TIB, 3 * TIB - 600];

fn lengths_are_taken(source: Source, keeps: bool) {
    let running = Running::start(disk(source), |_| {});
    let mut writer = running.client();
    let mut client = Extended::connect(&running.socket);
    for kind in [TRIM, ZEROES] {
        for place in PLACES.into_iter().chain([3 * TIB + 100]) {
            assert_eq!(writer.write(place, &[7; 300]), 0);
        }
        assert_eq!(client.call(kind, 0, 3 * TIB), 0, "command {kind}");
        for place in PLACES {
            assert_eq!(writer.read(place, 300), [0; 300], "command {kind} at {place}");
        }
        let kept = if keeps { [7; 300] } else { [0; 300] };
        assert_eq!(
            writer.read(3 * TIB + 100, 300),
            kept,
            "bytes after the range should be unchanged"
        );
    }
    assert_eq!(client.call(CACHE, 0, 3 * TIB), 0);
    let told = client.status(0, 4 * TIB);
    assert_eq!(told.iter().map(|(len, _)| len).sum::<u64>(), 4 * TIB);
    assert!(told[0].0 >= 3 * TIB && told[0].1 & HOLE != 0, "{told:?}");
    assert_eq!(client.call(TRIM, 1, 4 * TIB), 22, "the range ends beyond the disk");
    assert_eq!(client.call(ZEROES, 1, u64::MAX), 28, "the range ends beyond the disk");
    writer.bye();
    drop(client);
    running.stop();
}

#[test]
fn a_null_disk_takes_a_range_of_any_length() {
    lengths_are_taken(Source::Null { bytes: 4 * TIB }, false);
}

#[test]
fn a_file_takes_a_range_of_any_length() {
    for buffered in [true, false] {
        let path = nbd::file(4 * TIB);
        lengths_are_taken(Source::File { path: path.clone(), buffered }, true);
        std::fs::remove_file(path).unwrap();
    }
}
