//! `serve --trace --blktrace` leaves complete traces after SIGTERM: every request of every client
//! once, for each lane and disk. After a second signal the traces also hold the requests that did
//! not complete.
//!
//! Without blkparse (Debian's package `blktrace`) its part is skipped, except in CI (`CI` is set),
//! where blkparse is required.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::Client;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

const LANES: usize = 2;
const DISKS: usize = 2;

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = nbd::path("traces");
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the files stay in the temporary directory.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn serve(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.arg("serve").args(args).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn terminate(server: Child) -> Output {
    nbd::signal(&server, "-TERM");
    server.wait_with_output().unwrap()
}

/// Asserts that a signalled server fails with `words` before its requests are done: after a second
/// signal, or after its drain timeout. The second signal comes later, because signals sent together
/// count as one.
fn cut_short(mut server: Child, has_second: bool, words: &str) {
    let mut log = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    nbd::signal(&server, "-TERM");
    while !line.contains("draining") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "the log should say that the server drains");
    }
    if has_second {
        std::thread::sleep(Duration::from_millis(600));
        nbd::signal(&server, "-TERM");
    }
    let start = Instant::now();
    while server.try_wait().unwrap().is_none() {
        let hangs = start.elapsed() > Duration::from_secs(20);
        if hangs {
            server.kill().unwrap();
        }
        assert!(!hangs, "the server should exit within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.wait().unwrap().code(), Some(1));
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(rest.contains(words), "{rest}");
}

/// The path of a socket. It is not in the target folder, whose path may be longer than an address
/// of a socket (107 bytes).
fn short(name: &str) -> PathBuf {
    std::env::temp_dir().join(nbd::path(name).with_extension("sock").file_name().unwrap())
}

/// Connects a client to the export called `export`.
fn enter(socket: &Path, export: &str) -> Client {
    let start = Instant::now();
    let stream = loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut stream = nbd::greeted(stream).unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0").unwrap();
    stream.write_all(&[u8::try_from(export.len()).unwrap()]).unwrap();
    stream.write_all(export.as_bytes()).unwrap();
    let mut answer = [0; 10];
    stream.read_exact(&mut answer).unwrap();
    Client { stream, bytes: u64::from_be_bytes(answer[..8].try_into().unwrap()), next: 1 }
}

/// The numbers of reads and writes by disk.
const DONE: [(usize, usize); DISKS] = [(300, 200), (70, 30)];

/// Serves two disks, a file and memory, in two lanes to two clients each. Under a scheduler, one
/// lane serves the file.
fn trace(folder: &Folder) {
    let socket = short("tr");
    let address = format!("unix:{}", socket.display());
    let disk = nbd::file(1 << 20);
    let file = format!("file={}", disk.display());
    let server = serve(&[
        "--export",
        &file,
        "--export",
        "memory=memory:1m",
        "--nbd",
        &address,
        "--lanes",
        "2",
        "--design",
        "mq-deadline",
        "--trace",
        &folder.file("trace.json"),
        "--blktrace",
        &folder.file("trace"),
    ]);
    // A client goes to the lane with fewer clients, so all must connect before any leaves.
    let clients = ["file", "memory"].map(|export| [(); LANES].map(|()| enter(&socket, export)));
    for (mut clients, (reads, writes)) in clients.into_iter().zip(DONE) {
        for at in 0..reads {
            clients[at % LANES].read(at as u64 * 512, 512);
        }
        for at in 0..writes {
            assert_eq!(clients[at % LANES].write(at as u64 * 4096, &[1; 4096]), 0);
        }
    }
    let output = terminate(server);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_file(disk).unwrap();
}

#[test]
fn perfetto_json_has_a_span_for_each_request() {
    let folder = Folder::new();
    trace(&folder);
    let text = fs::read_to_string(folder.file("trace.json")).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let mut open = BTreeMap::new();
    let mut ops = BTreeMap::new();
    let mut of_lanes = [0; LANES];
    for event in events {
        let id = (event["id"].as_u64(), event["pid"].as_u64());
        match event["ph"].as_str().unwrap() {
            "b" => assert!(open.insert(id, event["name"].clone()).is_none(), "{event}"),
            "e" => assert_eq!(open.remove(&id).as_ref(), Some(&event["name"]), "{event}"),
            _ => {}
        }
        if let Some(op) = event["args"]["op"].as_str() {
            let id = event["id"].as_u64().unwrap();
            let disk = id >> 32 & 0xffff;
            of_lanes[usize::try_from(id >> 48).unwrap()] += usize::from(op != "flush");
            *ops.entry((disk, op.to_owned())).or_insert(0) += 1;
        }
    }
    assert!(open.is_empty(), "spans without end: {open:?}");
    for (disk, (reads, writes)) in (0..).zip(DONE) {
        assert_eq!(ops[&(disk, "read".to_owned())], reads);
        assert_eq!(ops[&(disk, "write".to_owned())], writes);
    }
    // The file's clients moved to its lane, so those of memory came to the other one.
    let of_disks = DONE.map(|(reads, writes)| reads + writes);
    assert_eq!(of_lanes, of_disks);
    let done: usize = of_disks.iter().sum();
    for process in ["mq-deadline, lane 0: requests", "mq-deadline, lane 1: device slots"] {
        assert!(events.iter().any(|event| {
            event["name"] == "process_name" && event["args"]["name"].as_str() == Some(process)
        }));
    }
    assert!(!text.contains("processors"), "a server's trace should have no processors");
    // Every command has a device slot, and no two share one at a time.
    let slots = events.iter().filter(|event| event["ph"] == "X");
    let flushes = ops.iter().filter(|((_, op), _)| op == "flush").map(|(_, count)| count);
    assert_eq!(slots.count(), done + flushes.sum::<usize>());
}

/// Returns blkparse's output for the files in `folder`, if blkparse is installed.
fn blkparse(folder: &Folder) -> Option<String> {
    let has = Command::new("blkparse").arg("-V").output().is_ok();
    assert!(has || std::env::var_os("CI").is_none(), "CI requires blkparse");
    if !has {
        eprintln!("skipped: blkparse is not installed");
        return None;
    }
    let output = Command::new("blkparse").args(["-i", "trace"]).current_dir(&folder.0).output();
    let Output { status, stdout, stderr } = output.unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let text = String::from_utf8(stdout).unwrap();
    assert!(text.contains("Skips: 0 forward"), "{text}");
    Some(text)
}

#[test]
fn blkparse_completes_as_many_requests_as_clients_did() {
    let folder = Folder::new();
    trace(&folder);
    let Some(text) = blkparse(&folder) else { return };
    let mut count = BTreeMap::new();
    let mut lanes = [false; LANES];
    for line in text.lines().filter(|line| line.trim_start().starts_with("8,")) {
        let words: Vec<_> = line.split_whitespace().collect();
        lanes[words[1].parse::<usize>().unwrap()] = true;
        // A flush has no sectors. Linux records its completion as `WS`, which is no write.
        if !line.contains(" + ") {
            continue;
        }
        // Only the direction: R or W.
        *count
            .entry((words[0].to_owned(), words[5].to_owned(), words[6][..1].to_owned()))
            .or_insert(0) += 1;
    }
    assert_eq!(lanes, [true; LANES], "each lane should have a file");
    for (disk, (reads, writes)) in ["8,0", "8,16"].into_iter().zip(DONE) {
        for action in ["Q", "D", "C"] {
            let done =
                ["R", "W"].map(|op| count[&(disk.to_owned(), action.to_owned(), op.to_owned())]);
            assert_eq!(done, [reads, writes], "{disk} {action}");
        }
    }
}

#[test]
fn a_recorded_trace_can_be_replayed() {
    let folder = Folder::new();
    trace(&folder);
    let args = ["replay", &folder.file("trace"), "--design", "mq-none", "--disk", "0"];
    let output = Command::new(env!("CARGO_BIN_EXE_blockyard")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Reads that never complete are in flight when the server is stopped. The server used to exit at
/// once and lose all buffered events.
#[test]
fn traces_are_complete_when_a_server_stops_at_once() {
    const ENDED: u64 = 20;
    const STUCK: u64 = 5;
    for (has_second, drain, words) in [
        (true, "60s", "stopped before all requests were done"),
        (false, "100ms", "requests in flight did not end in time"),
    ] {
        let folder = Folder::new();
        let rules = folder.file("rules.toml");
        let socket = short("cut");
        let rule = "[[rule]]\nname = \"stuck\"\nop = [\"read\"]\nfirst = 21\nlost = true\n";
        fs::write(&rules, rule).unwrap();
        let address = format!("unix:{}", socket.display());
        let json = folder.file("trace.json");
        let blktrace = folder.file("trace");
        let traces = ["--trace", &json, "--blktrace", &blktrace];
        let args = ["memory:1m", "--nbd", &address, "--fault", &rules, "--drain-timeout", drain];
        let server = serve(&[&args[..], &traces].concat());
        let mut client = enter(&socket, "");
        for at in 0..ENDED {
            client.read(at * 512, 512);
        }
        for at in ENDED..ENDED + STUCK {
            client.ask(nbd::READ, at * 4096, 512).unwrap();
        }
        // The reply shows that the reads before it have arrived.
        assert_eq!(client.write(0, &[1; 512]), 0);
        cut_short(server, has_second, words);

        let trace: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
        let spans = trace["traceEvents"].as_array().unwrap().iter();
        let in_driver = spans.filter(|event| event["name"] == "in driver");
        let ends = ["b", "e"]
            .map(|kind| in_driver.clone().filter(|event| event["ph"] == kind).count() as u64);
        assert_eq!(ends, [ENDED + STUCK + 1, ENDED + 1], "{words}");
        if let Some(text) = blkparse(&folder) {
            let counted = ["D", "C"].map(|letter| {
                let words = text.lines().map(|line| line.split_whitespace().nth(5));
                words.filter(|word| *word == Some(letter)).count() as u64
            });
            assert_eq!(counted, [ENDED + STUCK + 1, ENDED + 1], "{words}");
        }
    }
}

/// The server exits although no process reads the pipe that its trace goes to.
#[test]
fn a_blocked_trace_does_not_delay_a_second_signal() {
    let folder = Folder::new();
    let pipe = folder.file("pipe");
    let socket = short("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let address = format!("unix:{}", socket.display());
    let server = serve(&["memory:1m", "--nbd", &address, "--trace", &pipe]);
    let unread = fs::File::open(&pipe).unwrap();
    let mut client = enter(&socket, "");
    for _ in 0..1000 {
        client.read(0, 512); // the events exceed the pipe's capacity
    }
    cut_short(server, true, "stopped before all requests were done");
    drop(unread);
}

#[test]
fn an_unwritable_trace_is_reported_at_start() {
    for option in ["--trace", "--blktrace"] {
        let server = serve(&["memory:1m", "--nbd", "127.0.0.1:0", option, "/nowhere/trace"]);
        let output = server.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.starts_with("blockyard: error: /nowhere/trace"), "{errors}");
    }
}
