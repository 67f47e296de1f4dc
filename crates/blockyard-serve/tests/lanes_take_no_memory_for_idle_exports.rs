//! A lane's queue of a disk has about 200 KiB. Each of 8 lanes had one for each export, whether or
//! not it had a client there.

mod nbd;

use blockyard_serve::DiskConfig;
use nbd::{Client, Running, memory};

const LANES: usize = 8;
const EXPORTS: usize = 100;

/// Returns the memory of this process that is not shared with files, in bytes.
fn used() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn an_export_takes_memory_in_the_lanes_that_have_clients_of_it() {
    fn start(exports: usize) -> Running {
        Running::start(memory(1 << 20), |config| {
            config.lanes = LANES;
            let more = (1..exports).map(|number| DiskConfig {
                name: number.to_string(),
                depth: 128,
                ..memory(1 << 20)
            });
            config.disks.extend(more);
        })
    }
    start(1).stop();
    let before = used();
    let running = start(EXPORTS);
    let bytes = used().saturating_sub(before) / EXPORTS as u64;
    assert!(bytes < 50 << 10, "an idle export takes {bytes} bytes");
    for name in 1..EXPORTS {
        let mut client = Client::connect_to(&running.socket, &name.to_string()).unwrap();
        assert_eq!(client.read(0, 2), [0; 2]);
    }
    running.stop();
}
