//! Signals and limits of the system: none ends a server without a drain.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, ENOSPC, FLUSH, READ, signal, socket};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Starts a server of `disk` at `socket` in a shell that has run `first`, and waits until the
/// server answers.
fn start(first: &str, disk: &str, socket: &Path, more: &[&str]) -> Child {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("{first} exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_blockyard")]);
    let address = format!("unix:{}", socket.display());
    shell.args(["serve", disk, "--nbd", &address]).args(more);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    nbd::answers(shell.spawn().unwrap(), socket)
}

/// Waits for the end of the server; its exit code and its log.
fn ended(mut server: Child) -> (Option<i32>, String) {
    let begun = Instant::now();
    while server.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            server.kill().unwrap();
            panic!("the server does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = server.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Each of these signals once ended the server at once, without a drain and without a line in its
/// log.
#[test]
fn a_signal_that_means_nothing_is_a_line_in_the_log() {
    let socket = socket();
    let server = start("", "memory:1m", &socket, &[]);
    let mut client = Client::connect(&socket).unwrap();
    let names = ["USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR", "STKFLT", "34", "50", "64"];
    for name in names.iter().chain(&names) {
        signal(&server, &format!("-{name}"));
        assert_eq!(client.read(0, 3), [0; 3], "after {name}");
        std::thread::sleep(Duration::from_millis(20));
    }
    client.bye();
    signal(&server, "-TERM");
    let (code, log) = ended(server);
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<_> = log.lines().filter(|line| line.contains(": ignored; ")).collect();
    assert_eq!(lines.len(), names.len(), "one line for each signal: {log}");
    for name in ["SIGUSR2:", "SIGALRM:", "SIGIO:", "signal 50:"] {
        assert!(lines.iter().any(|line| line.contains(name)), "{name} {log}");
    }
}

/// SIGQUIT and SIGXCPU once ended the server at once.
#[test]
fn sigquit_and_the_limit_of_processor_time_drain_the_server() {
    for (name, words) in
        [("-QUIT", "a signal to end"), ("-XCPU", "SIGXCPU: the limit of processor")]
    {
        let socket = socket();
        let server = start("", "memory:1m", &socket, &["--delay", "500ms"]);
        let mut client = Client::connect(&socket).unwrap();
        let read = client.ask(READ, 0, 512).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        signal(&server, name);
        assert_eq!(client.reply().unwrap(), (read, 0), "it came before the signal");
        let (code, log) = ended(server);
        assert_eq!(code, Some(0), "{name}: {log}");
        assert!(log.contains(words), "{log}");
    }
}

/// A write beyond the limit on the size of files once killed the server by SIGXFSZ.
#[test]
fn a_write_beyond_the_limit_on_files_fails_alone() {
    let socket = socket();
    let path = nbd::file(1 << 20);
    let control = nbd::socket();
    for more in [&[][..], &["--buffered"]] {
        let control = ["--control", control.to_str().unwrap()];
        // 512 KiB, of which dash and bash count different units.
        let more = [more, &control].concat();
        // 300 KiB in dash, 600 KiB in bash.
        let server = start("ulimit -f 600;", path.to_str().unwrap(), &socket, &more);
        let mut client = Client::connect(&socket).unwrap();
        assert_eq!(client.write(0, &[1; 4096]), 0);
        assert_eq!(client.write(900 << 10, &[2; 4096]), ENOSPC);
        assert_eq!(client.write(4096, &[3; 4096]), 0, "the server goes on");
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        client.bye();
        let mut resize = Command::new(env!("CARGO_BIN_EXE_blockyard"));
        let resize = resize.args(["ctl", control[1], "resize", "", "2m"]).output().unwrap();
        let errors = String::from_utf8(resize.stderr).unwrap();
        assert!(errors.contains("File too large"), "{errors}");
        signal(&server, "-TERM");
        let (code, log) = ended(server);
        assert_eq!(code, Some(0), "{log}");
        let lines = log.lines().filter(|line| line.contains("warning: SIGXFSZ: a write beyond"));
        assert_eq!(lines.count(), 1, "one line, not one for each write: {log}");
    }
    fs::remove_file(path).unwrap();
}

/// A table that is written by system calls was once reported as a failed file.
#[test]
fn a_btt_beyond_the_limit_on_files_is_full_and_not_broken() {
    let socket = socket();
    let path = nbd::path("btt");
    let image = path.to_str().unwrap();
    let mut create = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    let create = create.args(["btt", "create", image, "--size", "32m"]).output().unwrap();
    assert!(create.status.success(), "{create:?}");
    let server = start("ulimit -f 600;", image, &socket, &["--btt", "--sync"]);
    let mut client = Client::connect(&socket).unwrap();
    // Its map and log are at the end of the file.
    assert_eq!(client.write(0, &[1; 4096]), ENOSPC);
    assert_eq!(client.read(0, 512), [0; 512]);
    client.bye();
    signal(&server, "-TERM");
    let (code, log) = ended(server);
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("its file failed"), "{log}");
    fs::remove_file(path).unwrap();
}

/// A trace beyond the limit on the size of files once killed the server, and a full disk was
/// reported only at its end.
#[test]
fn a_trace_that_cannot_be_written_ends_alone() {
    let socket = socket();
    let limited = nbd::path("trace");
    for (first, file, words) in [
        ("ulimit -f 64;", limited.to_str().unwrap(), "File too large"),
        ("", "/dev/full", "No space left on device"),
    ] {
        let mut server = start(first, "memory:1m", &socket, &["--trace", file]);
        let log = nbd_lines(&mut server);
        let mut client = Client::connect(&socket).unwrap();
        let warned = loop {
            // An event has about 100 bytes, and the trace is written in pieces of 256 KiB.
            for _ in 0..1000 {
                client.read(0, 512);
            }
            let mut lines = log.try_iter();
            if let Some(line) = lines.find(|line| line.contains("the traces end here")) {
                break line;
            }
        };
        assert!(warned.contains("warning: ") && warned.contains(words), "{warned}");
        assert_eq!(client.read(0, 512).len(), 512, "the server goes on");
        client.bye();
        signal(&server, "-TERM");
        let (code, _) = ended(server);
        assert_eq!(code, Some(1), "the trace is incomplete");
    }
    fs::remove_file(limited).unwrap();
}

/// Takes the lines of the log as they come.
fn nbd_lines(server: &mut Child) -> std::sync::mpsc::Receiver<String> {
    use std::io::{BufRead, BufReader};
    let log = BufReader::new(server.stderr.take().unwrap());
    let (tell, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        log.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    lines
}

/// A service manager that did not read its socket once kept the server from hearing SIGTERM.
#[test]
fn a_service_manager_that_does_not_listen_delays_nothing() {
    let socket = nbd::socket();
    let manager = nbd::socket();
    let _deaf = UnixDatagram::bind(&manager).unwrap();
    let filler = UnixDatagram::unbound().unwrap();
    filler.set_nonblocking(true).unwrap();
    while filler.send_to(b"X=1", &manager).is_ok() {}
    let first = format!("export NOTIFY_SOCKET={};", manager.display());
    let server = start(&first, "memory:1m", &socket, &[]);
    Client::connect(&socket).unwrap().bye();
    signal(&server, "-TERM");
    let (code, log) = ended(server);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("NOTIFY_SOCKET: the service manager does not read its socket"), "{log}");
    fs::remove_file(manager).unwrap();
}
