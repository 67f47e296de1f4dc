//! The client of the comparison, run against the bare loop.

use blockyard_bench::nbd::bare;
use blockyard_bench::nbd::client::{Client, wait_for};
use blockyard_bench::nbd::load::{Load, Measured};
use blockyard_bench::nbd::shape::{Direction, Shape};
use core::time::Duration;
use std::path::PathBuf;
use std::thread;

const DISK_BYTES: usize = 4 << 20;

fn serve(name: &str) -> PathBuf {
    let socket = std::env::temp_dir().join(format!("blockyard-{name}-{}", std::process::id()));
    drop(std::fs::remove_file(&socket));
    let listen = socket.clone();
    thread::spawn(move || bare::serve(&listen, DISK_BYTES));
    wait_for(&socket).unwrap();
    socket
}

#[test]
fn every_shape_is_answered_and_its_figures_are_of_its_own_time() {
    let socket = serve("shapes");
    for (direction, bytes, depth, connections) in [
        (Direction::Read, 4096, 16, 1),
        (Direction::Write, 4096, 64, 2),
        (Direction::Read, 1 << 20, 3, 1),
        (Direction::Write, 1 << 20, 3, 1),
    ] {
        let shape = Shape { direction, bytes, depth };
        let time = Duration::from_millis(50);
        let load = Load { shape, connections, idle: 2, time };
        let measured = load.run(&socket, &[String::new()], std::process::id()).unwrap();
        assert!(measured.ios > 0, "{measured:?}");
        assert!(measured.wall_ns >= 50_000_000, "{measured:?}");
        assert!(measured.server_ns > 0 && measured.p50_ns > 0, "{measured:?}");
        assert!(measured.p50_ns <= measured.p99_ns, "{measured:?}");
        assert_eq!(measured.to_string().parse(), Ok(measured));
    }
    std::fs::remove_file(socket).unwrap();
}

#[test]
fn a_disk_is_filled_to_its_end_and_a_refusal_is_an_error() {
    let socket = serve("fill");
    Client::connect(&socket, "").unwrap().fill().unwrap();
    assert!(Client::connect(&socket, "another").is_err());
    std::fs::remove_file(socket).unwrap();
}

#[test]
fn a_line_that_is_not_five_numbers_is_refused() {
    assert!("1 2 3 4".parse::<Measured>().is_err());
    assert!("1 2 3 4 x".parse::<Measured>().is_err());
}
