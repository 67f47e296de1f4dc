//! `serve` beside a service manager, a parent, a command and other users of its socket.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, READ, signal, socket};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Instant;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.args(["serve", "memory:1m"]).args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(socket: &Path, more: &[&str]) -> Child {
    let address = format!("unix:{}", socket.display());
    nbd::answers(command(&[&["--nbd", &address], more].concat()).spawn().unwrap(), socket)
}

fn end(mut server: Child) {
    signal(&server, "-TERM");
    assert!(server.wait().unwrap().success(), "the server drains");
}

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command(args).output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (status.code(), stdout, stderr)
}

#[test]
fn a_command_finds_the_server_and_the_server_ends_with_its_exit_code() {
    let (code, out, log) =
        run(&["--run", "echo \"$uri $unixsocket\"; test -S \"$unixsocket\"; exit 7"]);
    assert_eq!(code, Some(7), "{log}");
    let (uri, path) = out.trim().split_once(' ').expect("the address and the path of the socket");
    assert_eq!(uri, format!("nbd+unix:///?socket={path}"));
    assert!(!Path::new(path).parent().unwrap().exists(), "the private folder is removed");
    let (code, out, log) = run(&["--nbd", "127.0.0.1:0", "--run", "echo $uri $port"]);
    assert_eq!(code, Some(0), "{log}");
    let (uri, port) = out.trim().split_once(' ').expect("the address and the port");
    assert_eq!(uri, format!("nbd://127.0.0.1:{port}"));
    let (code, _, log) = run(&["--run", "kill -9 $$"]);
    assert_eq!(code, Some(128 + 9), "{log}");
}

/// The end of the command is not a second signal: requests in flight are still answered.
#[test]
fn a_command_that_ends_during_a_drain_cuts_nothing_short() {
    let socket = socket();
    let done = nbd::path("done");
    let script = format!("while ! test -e {}; do sleep 0.1; done; exit 3", done.display());
    let server = start(&socket, &["--delay", "3s", "--run", &script]);
    let mut client = Client::connect(&socket).unwrap();
    client.ask(READ, 0, 512).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    signal(&server, "-TERM");
    // Signals and requests within half a second count as one.
    std::thread::sleep(Duration::from_millis(700));
    fs::write(&done, "").unwrap();
    assert_eq!(client.reply().unwrap().1, 0, "it came before the signal");
    drop(client);
    let Output { status, stderr, .. } = server.wait_with_output().unwrap();
    let log = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(3), "{log}");
    assert!(log.contains(", after a signal to end\n"), "{log}");
    fs::remove_file(done).unwrap();
}

#[test]
fn a_socket_has_its_mode_and_group() {
    let socket = socket();
    let server = start(&socket, &["--socket-mode", "0620", "--socket-group", "1"]);
    let file = fs::metadata(&socket).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o620);
    // Only root may give a file to a group that it is not in.
    let group = if is_root() { 1 } else { file.gid() };
    assert_eq!(file.gid(), group);
    end(server);
    let (code, _, log) = run(&["--nbd", "unix:/tmp/x", "--socket-mode", "0999"]);
    assert_eq!(code, Some(2));
    assert!(log.contains("expected an octal mode"), "{log}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn a_pidfile_exists_while_clients_can_connect() {
    let socket = socket();
    let pidfile = nbd::path("pid");
    let server = start(&socket, &["--pidfile", pidfile.to_str().unwrap()]);
    while !pidfile.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(fs::read_to_string(&pidfile).unwrap(), format!("{}\n", server.id()));
    end(server);
    assert!(!pidfile.exists());
    let (code, _, log) = run(&["--nbd", "127.0.0.1:0", "--pidfile", "/no/such/folder/pid"]);
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("--pidfile: "), "{log}");
}

fn next_message(socket: &UnixDatagram) -> String {
    let mut message = [0; 64];
    let len = socket.recv(&mut message).unwrap();
    String::from_utf8(message[..len].to_vec()).unwrap()
}

#[test]
fn a_service_manager_hears_when_clients_can_connect_and_when_the_server_ends() {
    let socket = nbd::socket();
    let manager = nbd::socket();
    let heard = UnixDatagram::bind(&manager).unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let address = format!("unix:{}", socket.display());
    let mut server = command(&["--nbd", &address]).env("NOTIFY_SOCKET", &manager).spawn().unwrap();
    assert_eq!(next_message(&heard).trim(), "READY=1");
    Client::connect(&socket).unwrap().bye();
    signal(&server, "-TERM");
    assert_eq!(next_message(&heard).trim(), "STOPPING=1");
    assert!(server.wait().unwrap().success());
    fs::remove_file(manager).unwrap();
}

#[test]
fn a_server_ends_with_its_parent_if_it_is_asked_to() {
    let socket = socket();
    let address = format!("unix:{}", socket.display());
    // The shell starts the server, waits for a signal, and dies without a word to the server.
    let script = "\"$0\" serve memory:1m --nbd \"$1\" --exit-with-parent & wait";
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_blockyard"), &address]);
    let mut shell = nbd::answers(shell.stderr(Stdio::null()).spawn().unwrap(), &socket);
    std::thread::sleep(Duration::from_millis(200));
    shell.kill().unwrap();
    shell.wait().unwrap();
    let begun = Instant::now();
    while socket.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server outlives its parent");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn uri(folder: &Path, disks: &[&str], address: &str) -> String {
    let mut server = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    server.arg("serve").args(disks).args(["--nbd", address, "--run", "echo \"$uri\""]);
    let output = server.current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// `$uri` once had the path as it is, and no export.
#[test]
fn the_uri_of_a_command_is_encoded_and_names_the_export() {
    let folder = nbd::path("a b");
    fs::create_dir(&folder).unwrap();
    // A short path from the working folder: that of a socket has at most 107 bytes.
    let named = ["--export", "a b/\u{fc}&?=memory:1m", "--export", "other=memory:1m"];
    let words = "nbd+unix:///a%20b/%C3%BC%26%3F?socket=x%20%25.sock\n";
    assert_eq!(uri(&folder, &named, "unix:x %.sock"), words);
    let tcp = uri(&folder, &named, "127.0.0.1:0");
    assert!(tcp.starts_with("nbd://127.0.0.1:") && tcp.ends_with("/a%20b/%C3%BC%26%3F\n"), "{tcp}");
    let default = uri(&folder, &["memory:1m", "--export", "other=memory:1m"], "unix:x.sock");
    assert_eq!(default, "nbd+unix:///?socket=x.sock\n");
    fs::remove_dir_all(folder).unwrap();
}

/// The server once exited with 0 after a signal, before its command had ended.
#[test]
fn the_exit_code_is_that_of_the_command_after_a_signal_too() {
    let cleans_up = "trap 'sleep 1; exit 5' INT; touch \"$0\"; while :; do sleep 0.1; done";
    // A shell cannot be told from the single command that it runs, so the second one has no trap.
    for (script, name, to_group, code) in [
        (cleans_up, "-INT", true, 5),
        ("touch \"$0\"; sleep 100", "-INT", true, 128 + 2),
        ("touch \"$0\"; exec sleep 100", "-TERM", false, 128 + 15),
    ] {
        let begun = nbd::path("begun");
        let script = script.replace("\"$0\"", begun.to_str().unwrap());
        let server = command(&["--run", &script]).process_group(0).spawn().unwrap();
        while !begun.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        let to = if to_group { format!("-{}", server.id()) } else { server.id().to_string() };
        assert!(Command::new("kill").args([name, "--", &to]).status().unwrap().success());
        let Output { status, stderr, .. } = server.wait_with_output().unwrap();
        let log = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(code), "{script}: {log}");
        fs::remove_file(begun).unwrap();
    }
}

/// A failed last flush once took the place of the exit code.
#[test]
fn the_exit_code_is_that_of_the_command_if_the_last_flush_fails() {
    let rules = nbd::path("rules");
    fs::write(&rules, "[[rule]]\nname = \"x\"\nop = \"flush\"\nerror = \"io\"\n").unwrap();
    for code in [0, 3] {
        let script = format!("exit {code}");
        let (found, _, log) = run(&["--fault", rules.to_str().unwrap(), "--run", &script]);
        assert_eq!(found, Some(code), "{log}");
        assert!(log.contains("blockyard: error: "), "{log}");
    }
    fs::remove_file(rules).unwrap();
}

/// Runs `script` in a shell that is the leader of a group, with a server's command line in `$0` and
/// `$@`. Returns a channel that closes when the server has ended.
fn orphaned(script: &str, more: &[&str]) -> (PathBuf, mpsc::Receiver<()>) {
    let socket = socket();
    let address = format!("unix:{}", socket.display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_blockyard"), "serve", "memory:1m"]);
    shell.args(["--nbd", &address]).args(more).process_group(0);
    let (open, closed) = mpsc::channel();
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let shell = shell.spawn().unwrap();
    std::thread::spawn(move || {
        // The server has the other end of the pipe too.
        let output = shell.wait_with_output().unwrap();
        assert!(output.status.success());
        drop(open);
    });
    (socket, closed)
}

/// A server whose parent had ended before it looked once outlived it: in 18 of 20 runs.
#[test]
fn a_server_whose_parent_has_ended_already_does_not_stay() {
    let limit = Duration::from_secs(30);
    for _ in 0..20 {
        let (socket, ended) = orphaned("\"$0\" \"$@\" --exit-with-parent & exit", &[]);
        let end = ended.recv_timeout(limit);
        assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected), "the server stays");
        assert!(!socket.exists());
    }
    // The parent is alive, but it is not the process with this number.
    let script = "\"$0\" \"$@\" --exit-with-parent=1 & wait; exit 0";
    let (_, ended) = orphaned(script, &[]);
    assert_eq!(ended.recv_timeout(limit), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_server_with_the_number_of_its_parent_starts_and_ends_with_it() {
    let goes_on = nbd::path("go");
    let script = format!(
        "\"$0\" \"$@\" --exit-with-parent=$$ & while ! test -e {}; do sleep 0.1; done",
        goes_on.display()
    );
    let (socket, ended) = orphaned(&script, &[]);
    while Client::connect(&socket).is_err() {
        assert_eq!(ended.try_recv(), Err(mpsc::TryRecvError::Empty), "it starts");
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::write(&goes_on, "").unwrap();
    let end = ended.recv_timeout(Duration::from_secs(30));
    assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
    assert!(!socket.exists());
    fs::remove_file(goes_on).unwrap();
}

/// The server once ended with the thread that had started it.
#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let socket = socket();
    let path = socket.clone();
    let starter = std::thread::spawn(move || start(&path, &["--exit-with-parent"]));
    let mut server = starter.join().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.try_wait().unwrap().is_none(), "the server stays");
    Client::connect(&socket).unwrap().bye();
    end(server);
}
