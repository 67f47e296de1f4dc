//! An elevator may hold a request back until an instant while nothing else happens ([idling-bounded]). Then the disk's own
//! thread, or the caller that waits, must run the queue at that instant.

mod common;

#[path = "../../blockyard/examples/anticipatory/elevator.rs"]
mod anticipatory;

use anticipatory::{Anticipatory, WAIT};
use blockyard::elevator::Elevator;
use blockyard::elevator::checked::Checked;
use blockyard::request_queue::QueueConfig;
use blockyard::tag::TagSetConfig;
use blockyard_std::{Disk, Options};
use common::Scratch;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Far more than the wait of 2 ms; a disk that never runs its queue takes for ever.
const PATIENCE: Duration = Duration::from_secs(60);

fn make(config: &QueueConfig, tags: &TagSetConfig) -> Box<dyn Elevator + Send> {
    Box::new(Checked::new(Box::<Anticipatory>::default(), config.requests(tags)))
}

/// After each read, the elevator waits for another one, and the write is held back until the wait has ended.
fn read_and_write(disk: Disk) {
    let (done, is_done) = mpsc::channel();
    let caller = thread::spawn(move || {
        for number in 1..=5 {
            let mut bytes = [0; 4096];
            disk.read_at(&mut bytes, 0).unwrap();
            disk.write_at(&[number; 4096], 0).unwrap();
            disk.read_at(&mut bytes, 0).unwrap();
            assert_eq!(bytes, [number; 4096]);
        }
        disk.shutdown().unwrap().ok().unwrap();
        done.send(()).unwrap();
    });
    let ended = is_done.recv_timeout(PATIENCE);
    assert!(ended.is_ok(), "a write waits although the wait of {WAIT:?} has ended");
    caller.join().unwrap();
}

#[test]
fn a_disk_in_memory_runs_its_queue_when_the_wait_ends() {
    read_and_write(Options::new().elevator(make).memory(1 << 20).unwrap());
}

#[test]
fn a_file_runs_its_queue_when_the_wait_ends() {
    let scratch = Scratch::new("idles", 1 << 20);
    read_and_write(Options::new().elevator(make).file(&scratch.0).unwrap());
}
