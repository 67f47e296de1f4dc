//! A server without free descriptors cannot accept a client. The client waits, and the server
//! sleeps meanwhile.

mod nbd;

use blockyard_serve::Address;
use nbd::{Running, memory};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

const INSIDE: &str = "BLOCKYARD_FEW_DESCRIPTORS";

/// Returns the processor time in a process's `stat` file, in hundredths of a second.
fn processor_time(stat: &File) -> u64 {
    let mut bytes = [0; 1024];
    let len = stat.read_at(&mut bytes, 0).unwrap();
    let fields =
        str::from_utf8(&bytes[..len]).unwrap().rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_client_that_cannot_be_accepted_costs_little_time() {
    if std::env::var_os(INSIDE).is_none() {
        let this = std::env::current_exe().unwrap();
        let run = Command::new("sh")
            .args(["-c", "ulimit -n 64 && exec \"$0\""])
            .arg(this)
            .env(INSIDE, "1")
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        return;
    }
    let running =
        Running::start(memory(4096), |config| config.metrics = Some("127.0.0.1:0".to_owned()));
    let Some(Address::Tcp(address)) = running.server.metrics_address() else {
        panic!("the server has metrics")
    };
    let stat = File::open("/proc/self/stat").unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let scraper = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let client = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    connect(&scraper, &address).unwrap();
    connect(&client, &SocketAddrUnix::new(&running.socket).unwrap()).unwrap();
    let start = Instant::now();
    let before = processor_time(&stat);
    std::thread::sleep(Duration::from_secs(1));
    let used = processor_time(&stat) - before;
    assert!(used < 15, "{used} of {:?} hundredths", start.elapsed().as_millis() / 10);
    drop((all, scraper, client));
    running.client().bye();
    running.stop();
}
