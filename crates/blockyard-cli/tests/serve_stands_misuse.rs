//! `serve` under bad conditions: a log that nobody reads, peers that say nothing, options that cannot be.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, socket};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.arg("serve").args(args).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A server of a disk in memory at `socket`, once it answers.
fn start(socket: &Path, more: &[&str], change: impl FnOnce(&mut Command)) -> Child {
    let address = format!("unix:{}", socket.to_str().unwrap());
    let mut command = command(&[&["memory:1m", "--nbd", &address], more].concat());
    change(&mut command);
    nbd::answers(command.spawn().unwrap(), socket)
}

fn signal(server: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &server.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits until the server ends, within `time`; kills it otherwise.
fn ends_within(server: &mut Child, time: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < time {
        if let Some(status) = server.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    server.kill().unwrap();
    server.wait().unwrap();
    None
}

/// A server once did not end, because its main thread waited for a log line to be taken.
#[test]
fn a_log_that_nobody_reads_delays_neither_clients_nor_the_end() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let stderr = writer.try_clone().unwrap();
    // Fills the pipe, and ends when its reader is dropped.
    let filler = std::thread::spawn(move || writer.write_all(&[b'x'; 1 << 22]).unwrap_err());
    std::thread::sleep(Duration::from_millis(100));
    let socket = socket();
    let mut server = start(&socket, &["--drain-timeout", "10s"], |command| {
        command.stderr(stderr);
    });
    for _ in 0..1500 {
        Client::connect(&socket).unwrap().bye();
    }
    let mut client = Client::connect(&socket).unwrap();
    assert_eq!(client.write(5, &[7; 3]), 0);
    signal(&server, "-TERM");
    let status = ends_within(&mut server, Duration::from_secs(5));
    assert_eq!(status.and_then(|status| status.code()), Some(0), "it drains and ends");
    drop(reader);
    assert_eq!(filler.join().unwrap().kind(), std::io::ErrorKind::BrokenPipe);
}
