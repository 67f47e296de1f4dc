//! With extended headers TRIM, WRITE_ZEROES, CACHE and BLOCK_STATUS take 64-bit lengths. A bio of
//! the core has at most 2 TiB.

mod extended;
mod nbd;

use blockyard::time::Instant;
use blockyard::trace::Action;
use blockyard_serve::{Source, Tell, Watcher};
use extended::{CACHE, Extended, HOLE};
use nbd::{Running, TRIM, ZEROES, disk};
use std::sync::{Arc, Mutex};

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

/// The sectors of each request that the disk was given and that it has ended, in this order.
#[derive(Debug, Default)]
struct Requests(Arc<Mutex<Vec<(Action, u32)>>>);

impl Watcher for Requests {
    fn lane(&self, _lane: u32, _now: Instant) -> Tell {
        let all = Arc::clone(&self.0);
        Box::new(move |_disk, event| {
            if matches!(event.action, Action::Issue | Action::Complete(_)) {
                all.lock().unwrap().push((event.action, event.sectors));
            }
        })
    }
}

/// A file system locks a file while it frees a range of it. A long range is freed in parts, so that
/// others get their turns.
#[test]
fn a_long_range_of_a_file_is_freed_part_by_part() {
    let path = nbd::file(1 << 30);
    let source = Source::File { path: path.clone(), buffered: true };
    let requests = Arc::default();
    let running = Running::start(disk(source), |config| {
        config.watcher = Some(Arc::new(Requests(Arc::clone(&requests))));
    });
    let mut client = running.client();
    assert_eq!(client.call(TRIM, 4096, (1 << 30) - 4096), 0);
    client.bye();
    running.stop();
    let requests = requests.lock().unwrap();
    let freed = requests.iter().filter(|(_, sectors)| *sectors > 0).collect::<Vec<_>>();
    let (turns, rest) = freed.as_chunks::<2>();
    assert!(rest.is_empty() && turns.len() == 4, "256 MiB at a time: {freed:?}");
    for [(given, sectors), (ended, of)] in turns {
        assert!(*given == Action::Issue && *ended != Action::Issue, "one part after the other");
        assert!(sectors == of && *sectors <= 1 << 19, "{sectors} sectors");
    }
    std::fs::remove_file(path).unwrap();
}
