//! `serve` under bad conditions: an unread log, silent peers, unexpected signals, clients that hang
//! up.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, READ, signal, socket};
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

/// Starts a server of a memory disk at `socket`, and waits until the server answers.
fn start(socket: &Path, more: &[&str], change: impl FnOnce(&mut Command)) -> Child {
    let address = format!("unix:{}", socket.to_str().unwrap());
    let mut command = command(&[&["memory:1m", "--nbd", &address], more].concat());
    change(&mut command);
    nbd::answers(command.spawn().unwrap(), socket)
}

/// Waits for the server to exit. Kills it after `time` and returns `None`.
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

/// A server once did not exit, because its main thread was blocked writing a log line.
#[test]
fn an_unread_log_delays_neither_clients_nor_exit() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let stderr = writer.try_clone().unwrap();
    // Fills the pipe; the write fails when the reader is dropped.
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
    assert_eq!(
        status.and_then(|status| status.code()),
        Some(0),
        "the server should drain and exit"
    );
    drop(reader);
    assert_eq!(filler.join().unwrap().kind(), std::io::ErrorKind::BrokenPipe);
}

/// Returns the response of the server at `address` to `GET /healthz`.
fn health(address: &str) -> String {
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    answer
}

/// The server once answered one peer at a time, so each silent peer cost two seconds.
#[test]
fn silent_peers_do_not_delay_health_checks() {
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
            assert!(
                health(&address).starts_with("HTTP/1.1 200 OK\r\n"),
                "with {silent} silent peers"
            );
            assert!(start.elapsed() < Duration::from_secs(1), "with {silent} silent peers");
        }
        drop(peers);
    }
    let _held = TcpStream::connect(&address).unwrap();
    signal(&server, "-TERM");
    let status = ends_within(&mut server, Duration::from_secs(5));
    assert_eq!(
        status.and_then(|status| status.code()),
        Some(0),
        "the server should exit despite a silent peer"
    );
}

/// Sixteen peers that asked for a long answer and did not read it once made health checks fail.
#[test]
fn peers_that_do_not_read_do_not_fail_health_checks() {
    let socket = socket();
    // The metrics of 100 exports are some 5 MB: more than the buffers of a connection hold.
    let exports: Vec<_> = (0..100).map(|number| format!("--export=e{number}=null:1m")).collect();
    let mut options: Vec<_> = exports.iter().map(String::as_str).collect();
    options.extend(["--metrics", "127.0.0.1:0"]);
    let mut server = start(&socket, &options, |_| {});
    let log = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut addresses = log.filter_map(|line| {
        let (_, rest) = line.split_once("metrics at http://")?;
        Some(rest.strip_suffix("/metrics")?.to_owned())
    });
    let address = addresses.next().unwrap();
    let peers = (0..40).map(|_| {
        let mut peer = TcpStream::connect(&address).unwrap();
        peer.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        peer
    });
    let peers: Vec<_> = peers.collect();
    for _ in 0..10 {
        assert!(health(&address).starts_with("HTTP/1.1 200 OK\r\n"));
    }
    drop(peers);
    signal(&server, "-TERM");
    assert!(ends_within(&mut server, Duration::from_secs(20)).is_some_and(|it| it.success()));
}

/// Returns the next line that has `word`.
fn next_with(word: &str, lines: &mut impl Iterator<Item = String>) -> String {
    lines.find(|line| line.contains(word)).expect("a line before the log ends")
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
    let mut lines = log.lines().map(Result::unwrap).filter(|line| line.contains("SIG"));
    let reload = next_with("SIGHUP", &mut lines);
    assert!(reload.ends_with("nothing to reload, as the server has no TLS"), "{reload}");
    // The client that waited for the server's start may still be leaving.
    let mut load = next_with("SIGUSR1", &mut lines);
    for _ in 0..100 {
        if load.ends_with("; 1 client, 0 in flight") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        signal(&server, "-USR1");
        load = next_with("SIGUSR1", &mut lines);
    }
    assert!(load.contains("SIGUSR1: read ") && load.contains("; 1 client,"), "{load}");
    client.bye();
    signal(&server, "-TERM");
    assert!(ends_within(&mut server, Duration::from_secs(10)).unwrap().success());
}

/// The log once named a client that had hung up as "an unknown address".
#[test]
fn the_log_names_a_client_that_hung_up() {
    let mut server = command(&["memory:1m", "--nbd", "127.0.0.1:0"]).spawn().unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut lines = lines.filter(|line| !line.contains("I/O by threads"));
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

/// An operator sees a typing error. The name once was in no line.
#[test]
fn the_log_has_the_name_of_an_export_that_there_is_not() {
    let socket = nbd::path("unknown-name");
    let address = format!("unix:{}", socket.display());
    let export = ["--export", "disk=memory:1m", "--nbd", &address];
    let mut server = command(&export).spawn().unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut lines = lines.filter(|line| !line.contains("I/O by threads"));
    lines.next().unwrap();
    const EXPORT_NAME: u32 = 1;
    const ABORT: u32 = 2;
    const GO: u32 = 7;
    let go = [&4_u32.to_be_bytes()[..], b"di\nk\0\0"].concat();
    for (options, words) in [
        (
            vec![(GO, &go[..]), (ABORT, b"")],
            "it was done with asking; there is no export \"di\\nk\"",
        ),
        (
            vec![(EXPORT_NAME, b"dsik")],
            "EXPORT_NAME cannot be refused; there is no export \"dsik\"",
        ),
    ] {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        for (option, data) in options {
            let len = u32::try_from(data.len()).unwrap();
            let head = [&b"IHAVEOPT"[..], &option.to_be_bytes(), &len.to_be_bytes(), data];
            stream.write_all(&head.concat()).unwrap();
        }
        let gone = lines.next().unwrap();
        let all = format!("gone before it chose an export: {words} for it");
        assert!(gone.ends_with(&all), "{gone}");
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

/// Reads a byte.
fn reads(client: &mut Client) -> std::io::Result<()> {
    client.ask(READ, 0, 1)?;
    client.reply()?;
    client.stream.read_exact(&mut [0])
}

/// A session whose buffers found no address space ended the server
/// ([session-fails-without-memory]).
#[test]
fn a_session_without_memory_ends_alone() {
    let socket = socket();
    // Each lane has an arena of the allocator, with room of its own.
    let server = start(&socket, &["--lanes", "1"], |_| ());
    let mut first = Client::connect(&socket).unwrap();
    reads(&mut first).unwrap();
    let pid = server.id().to_string();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let size_kib: u64 = size.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    let limit = format!("--as={}", (size_kib << 10) + (4 << 20));
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap();
    assert!(set.success());
    let mut others = Vec::new();
    while let Ok(mut client) = Client::connect(&socket)
        && reads(&mut client).is_ok()
    {
        others.push(client);
        assert!(others.len() < 1000, "the address space should be used up");
    }
    std::thread::sleep(Duration::from_secs(1)); // until the log takes lines about clients again
    // More come, and each ends alone.
    for _ in 0..200 {
        drop(Client::connect(&socket).and_then(|mut client| reads(&mut client)));
    }
    reads(&mut first).expect("a session with memory should go on");
    drop(others);
    let start = Instant::now();
    while Client::connect(&socket).and_then(|mut client| reads(&mut client)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(20), "there is memory again");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(first);
    signal(&server, "-TERM");
    let output = server.wait_with_output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(log.contains("there is no memory for its session"), "{log}");
}
