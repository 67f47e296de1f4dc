//! `serve` under bad conditions: a log that nobody reads, peers that say nothing, options that cannot be.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, signal, socket};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.arg("serve").args(args).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A server of a disk in memory at `socket`, once it answers.
fn start(socket: &Path, more: &[&str], change: impl FnOnce(&mut Command)) -> Child {
    let address = format!("unix:{}", socket.to_str().unwrap());
    let mut command = command(&[&["memory:1m", "--nbd", &address], more].concat());
    change(&mut command);
    nbd::answers(command.spawn().unwrap(), socket)
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

/// What the server at `address` answers to a question for its health.
fn health(address: &str) -> String {
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    answer
}

/// Peers were once answered one after the other: each silent one took two seconds.
#[test]
fn silent_peers_do_not_delay_the_answer_about_health() {
    let socket = socket();
    let mut server = start(&socket, &["--metrics", "127.0.0.1:0"], |_| {});
    let log = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut addresses = log.filter_map(|line| {
        let (_, rest) = line.split_once("metrics at http://")?;
        Some(rest.strip_suffix("/metrics")?.to_owned())
    });
    let address = addresses.next().unwrap();
    for silent in [10, 100] {
        let peers: Vec<_> = (0..silent).map(|_| TcpStream::connect(&address).unwrap()).collect();
        for _ in 0..10 {
            let start = Instant::now();
            assert!(health(&address).starts_with("HTTP/1.1 200 OK\r\n"), "beside {silent}");
            assert!(start.elapsed() < Duration::from_secs(1), "beside {silent}");
        }
        drop(peers);
    }
    let _held = TcpStream::connect(&address).unwrap();
    signal(&server, "-TERM");
    let status = ends_within(&mut server, Duration::from_secs(5));
    assert_eq!(status.and_then(|status| status.code()), Some(0), "it ends beside a silent peer");
}

/// SIGHUP and SIGUSR1 once ended the server without draining.
#[test]
fn sighup_and_sigusr1_do_not_end_the_server() {
    let socket = socket();
    let mut server = start(&socket, &[], |_| ());
    let mut client = Client::connect(&socket).unwrap();
    for name in ["-HUP", "-USR1", "-HUP", "-USR1"] {
        signal(&server, name);
        assert_eq!(client.read(0, 10), [0; 10]);
    }
    let log = BufReader::new(server.stderr.take().unwrap());
    let lines = log.lines().map(Result::unwrap).filter(|line| line.contains("SIG"));
    let lines: Vec<_> = lines.take(2).collect();
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with("SIGHUP: nothing to reload, as the server has no TLS")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("SIGUSR1: read ") && line.contains("1 client")),
        "{lines:?}"
    );
    client.bye();
    signal(&server, "-TERM");
    assert!(ends_within(&mut server, Duration::from_secs(10)).unwrap().success());
}

/// The log once called a client that had hung up "an unknown address".
#[test]
fn a_client_that_hung_up_keeps_its_name() {
    let mut server = command(&["memory:1m", "--nbd", "127.0.0.1:0"]).spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let serving = lines.next().unwrap();
    let address = serving.rsplit(' ').next().unwrap();
    for _ in 0..10 {
        let client = TcpStream::connect(address).unwrap();
        let name = client.local_addr().unwrap().to_string();
        client.peek(&mut [0]).unwrap();
        drop(client); // with the greeting unread, which resets the connection
        let gone = lines.next().unwrap();
        assert!(gone.contains(&format!("client {name}: gone before it chose an export")), "{gone}");
    }
    signal(&server, "-TERM");
    assert!(ends_within(&mut server, Duration::from_secs(10)).unwrap().success());
}

/// Clients that come and go once filled the log at their own rate.
#[test]
fn a_flood_of_clients_is_a_few_lines_of_json_and_a_count() {
    let socket = socket();
    let log_options = ["--log-format", "json", "--log-level", "note"];
    let mut server = start(&socket, &log_options, |_| ());
    let log = BufReader::new(server.stderr.take().unwrap());
    let reader = std::thread::spawn(move || log.lines().map(Result::unwrap).collect::<Vec<_>>());
    let clients = 1000;
    for _ in 0..clients {
        Client::connect(&socket).unwrap().bye();
    }
    signal(&server, "-TERM");
    assert!(ends_within(&mut server, Duration::from_secs(10)).unwrap().success());
    let lines = reader.join().unwrap();
    let lines: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert!(lines.iter().all(|line| line["time_ms"].is_u64() && line["level"] == "note"));
    let about_clients = lines.iter().filter(|line| line["client"].is_string()).count();
    let count_in = |line: &Value| {
        let words = line["message"].as_str().unwrap().to_owned();
        let (count, _) = words.split_once(" lines about clients were suppressed")?;
        count.parse::<usize>().ok()
    };
    let suppressed: usize = lines.iter().filter_map(count_in).sum();
    assert!((200..1000).contains(&about_clients), "{about_clients}");
    assert!(suppressed > 1000 && about_clients + suppressed <= 2 * clients + 2, "{suppressed}");
}

/// A level leaves out the lines of lower levels.
#[test]
fn a_log_of_warnings_has_no_notes() {
    let socket = socket();
    let options = ["--log-level", "warning", "--max-connections", "1"];
    let mut server = start(&socket, &options, |_| ());
    // The client that found the server ready may still be there.
    let kept = loop {
        match Client::connect(&socket) {
            Ok(client) => break client,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(Client::connect(&socket).is_err(), "a second client is cut off");
    kept.bye();
    signal(&server, "-TERM");
    assert!(ends_within(&mut server, Duration::from_secs(10)).unwrap().success());
    let mut log = String::new();
    server.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.lines().count() >= 1, "the client that was cut off has a line");
    assert!(log.lines().all(|line| line.starts_with("blockyard: warning: client ")), "{log}");
}
