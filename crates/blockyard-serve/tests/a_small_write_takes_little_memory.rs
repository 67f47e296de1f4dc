//! A write that waits for a slow disk holds memory for its own payload, not for the whole input
//! buffer.

mod nbd;

use blockyard::layer::delay::Extra;
use blockyard::time::Duration;
use blockyard_serve::{DiskConfig, Layers};
use nbd::{Running, WRITE, header, memory};
use std::io::Write;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn many_small_writes_take_little_memory() {
    const WRITES: u64 = 250;
    let delay = Some(Extra::fixed(Duration::from_secs(2)));
    let layers = Layers { delay, ..Layers::default() };
    let disk = DiskConfig { layers, depth: 1024, ..memory(1 << 20) };
    let running = Running::start(disk, |_| ());
    let mut clients: Vec<_> = (0..3).map(|_| running.client()).collect();
    let before = resident_kib();
    for cookie in 0..WRITES {
        for client in &mut clients {
            client.stream.write_all(&header(WRITE, cookie, cookie * 512, 512)).unwrap();
            client.stream.write_all(&[7; 512]).unwrap();
        }
        std::thread::sleep(core::time::Duration::from_millis(1)); // so that each arrives alone
    }
    let grown = resident_kib() - before;
    for client in &mut clients {
        (0..WRITES).for_each(|_| assert_eq!(client.reply().unwrap().1, 0));
        assert_eq!(client.read(0, 512), [7; 512]);
    }
    // A page of payload for each write, and its bookkeeping.
    assert!(grown < 32 << 10, "{grown} KiB for {} writes", 3 * WRITES);
    running.stop();
}
