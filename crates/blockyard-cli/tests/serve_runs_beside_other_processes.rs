//! `serve` beside a service manager, a parent, a command and other users of its socket.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, READ, signal, socket};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
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
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
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
    let (socket, done) = (socket(), nbd::path("done"));
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
    let (socket, pidfile) = (socket(), nbd::path("pid"));
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

#[test]
fn a_service_manager_hears_when_clients_can_connect_and_when_the_server_ends() {
    let (socket, manager) = (nbd::socket(), nbd::socket());
    let heard = UnixDatagram::bind(&manager).unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let address = format!("unix:{}", socket.display());
    let mut server = command(&["--nbd", &address]).env("NOTIFY_SOCKET", &manager).spawn().unwrap();
    let mut message = [0; 64];
    let mut next = || {
        let len = heard.recv(&mut message).unwrap();
        String::from_utf8(message[..len].to_vec()).unwrap()
    };
    assert_eq!(next().trim(), "READY=1");
    Client::connect(&socket).unwrap().bye();
    signal(&server, "-TERM");
    assert_eq!(next().trim(), "STOPPING=1");
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
