//! Clients that use up the descriptors of a server leave some to its operator.
//!
//! 1006 sessions from one address, under a limit of 1024 descriptors, once left `ctl`, `/healthz`
//! and `/metrics` without an answer, and the log said nothing.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, signal, socket};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

const SERVER: &str = env!("CARGO_BIN_EXE_blockyard");

/// A server, and the lines of its log.
struct Running {
    server: Child,
    log: Receiver<String>,
    seen: Vec<String>,
}

/// Starts a server after `limits`, which are commands of a shell.
fn start(limits: &str, socket: &Path, more: &[&str]) -> Running {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits} && exec \"$@\""), "sh", SERVER, "serve", "memory:1m"]);
    shell.args(["--nbd", &format!("unix:{}", socket.to_str().unwrap())]).args(more);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = nbd::answers(shell.spawn().unwrap(), socket);
    let lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let (tell, log) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    Running { server, log, seen: Vec::new() }
}

impl Running {
    /// Waits for a line of the log that has `words`, and returns the first one.
    fn line(&mut self, words: &str) -> String {
        loop {
            if let Some(line) = self.seen.iter().find(|line| line.contains(words)) {
                return line.clone();
            }
            let line = self.log.recv_timeout(Duration::from_secs(20));
            self.seen
                .push(line.unwrap_or_else(|_| panic!("no line with {words:?}: {:?}", self.seen)));
        }
    }

    fn end(mut self) {
        signal(&self.server, "-TERM");
        assert!(self.server.wait().unwrap().success());
    }
}

/// Returns the answer of the server at `address` to a request for `path`.
fn get(address: &str, path: &str) -> String {
    let mut peer = TcpStream::connect(address).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(peer, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("an answer within 20 s");
    answer
}

fn ctl(control: &Path, args: &[&str]) -> Output {
    let path = control.to_str().unwrap();
    Command::new(SERVER).args(["ctl", path, "--timeout", "20s"]).args(args).output().unwrap()
}

#[test]
fn sessions_without_end_leave_the_operator_its_descriptors() {
    const LIMIT: usize = 256;
    let [socket, control] = [socket(), socket()];
    let options = ["--metrics", "127.0.0.1:0", "--control", control.to_str().unwrap()];
    let mut running = start(&format!("ulimit -n {LIMIT}"), &socket, &options);
    let metrics = running.line("metrics at http://");
    let (_, metrics) = metrics.split_once("http://").unwrap();
    let metrics = metrics.strip_suffix("/metrics").unwrap();
    let said = running.line("--max-connections is ");
    assert!(said.contains("the limit of open files is 256"), "{said}");
    let most =
        said.split("--max-connections is ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let most: usize = most.parse().unwrap();
    assert!((LIMIT / 2..LIMIT - 20).contains(&most), "{said}");

    // Each session has chosen the export, so none of them can be cut off for another.
    let sessions: Vec<_> = (0..LIMIT).map_while(|_| Client::connect(&socket).ok()).collect();
    assert_eq!(sessions.len(), most, "{said}");
    assert!(running.line("cut off, as there are too many").contains("warning"));
    // Peers that only connect want descriptors too.
    let _strangers: Vec<_> =
        (0..50).map(|_| std::os::unix::net::UnixStream::connect(&socket)).collect();
    let _silent: Vec<_> = (0..50).map(|_| TcpStream::connect(metrics).unwrap()).collect();
    for _ in 0..3 {
        assert!(get(metrics, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
        let connections = format!("\nblockyard_connections {most}\n");
        assert!(get(metrics, "/metrics").contains(&connections));
        let listed = ctl(&control, &["list"]);
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    }
    // A file needs a descriptor.
    let file = nbd::file(1 << 20);
    let added = ctl(&control, &["add", "more", file.to_str().unwrap()]);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    drop(sessions);
    running.server = nbd::answers(running.server, &socket);
    running.end();
}

/// An operator who adds more exports than there are descriptors can still remove them.
#[test]
fn exports_without_end_leave_the_operator_its_descriptors() {
    let [socket, control] = [socket(), socket()];
    let running = start("ulimit -n 96", &socket, &["--control", control.to_str().unwrap()]);
    let file = nbd::file(1 << 20);
    let added = (0..96).map(|number| {
        let export = format!("e{number}");
        (export.clone(), ctl(&control, &["add", &export, file.to_str().unwrap(), "readonly"]))
    });
    let added: Vec<_> = added.take_while(|(_, output)| output.status.success()).collect();
    let (last, _) = added.last().expect("room for some exports");
    assert!(added.len() < 96);
    let refused = ctl(&control, &["add", "more", file.to_str().unwrap(), "readonly"]);
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("the limit of open files"), "{words}");
    let removed = ctl(&control, &["remove", last]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    running.end();
}

/// The server takes as many descriptors as it may have. A command that it runs has the limit that
/// the server was started with, because some programs slow down or fail under a high one.
#[test]
fn the_limit_is_raised_for_the_server_and_not_for_its_command() {
    let socket = socket();
    let told = nbd::path("limits");
    let command = format!("(ulimit -Sn; ulimit -Hn) >{}; exec sleep 10", told.to_str().unwrap());
    let limits = "ulimit -Sn 100 && ulimit -Hn 512";
    let mut running = start(limits, &socket, &["--run", &command]);
    let clients: Vec<_> = (0..200).map_while(|_| Client::connect(&socket).ok()).collect();
    assert_eq!(clients.len(), 200);
    let limits = format!("/proc/{}/limits", running.server.id());
    let limits = std::fs::read_to_string(limits).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["512", "512"]);
    let mut text = String::new();
    let start = Instant::now();
    while text.lines().count() < 2 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
        text = std::fs::read_to_string(&told).unwrap_or_default();
    }
    assert_eq!(text, "100\n512\n");
    drop(clients);
    signal(&running.server, "-TERM"); // the command gets it too
    assert_eq!(running.server.wait().unwrap().code(), Some(128 + 15));
}
