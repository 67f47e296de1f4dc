//! `serve` as a shell meets it: bad input, signals, death and a second life.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

use core::time::Duration;
use nbd::{Client, FLUSH};
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.arg("serve").args(args).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn socket() -> PathBuf {
    let name = nbd::path("c").file_name().unwrap().to_owned();
    std::env::temp_dir().join(name).with_extension("sock")
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a server and waits until it answers.
fn start(disk: &str, socket: &Path, more: &[&str]) -> Child {
    let address = format!("unix:{}", text(socket));
    let mut server = command(&[&[disk, "--nbd", &address], more].concat()).spawn().unwrap();
    let start = Instant::now();
    while Client::connect(socket).is_err() {
        assert!(server.try_wait().unwrap().is_none(), "it runs");
        assert!(start.elapsed() < Duration::from_secs(20), "it answers");
        std::thread::sleep(Duration::from_millis(5));
    }
    server
}

fn signal(server: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &server.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn end(server: Child) -> Output {
    let start = Instant::now();
    let output = server.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "it ends");
    output
}

/// Asserts that it does not start, and says why in one line.
fn fails(args: &[&str], message: &str) {
    let output = command(args).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
    assert_eq!(errors, format!("blockyard: error: {message}\n"), "{args:?}");
}

#[test]
fn what_cannot_be_served_is_one_line_and_exit_code_2() {
    let empty = nbd::file(0);
    let folder = std::env::temp_dir();
    let free = format!("unix:{}", text(&socket()));
    let missing = "/nowhere/disk.img";
    fails(&[missing, "--nbd", &free], "/nowhere/disk.img: No such file or directory");
    let words = format!("{}: neither a file nor a block device", text(&folder));
    fails(&[text(&folder), "--readonly", "--nbd", &free], &words);
    let words = format!("{}: it has no bytes to serve", text(&empty));
    fails(&[text(&empty), "--nbd", &free], &words);
    let words = format!("unix:{}: there is something that is no socket", text(&empty));
    fails(&["memory:1m", "--nbd", &format!("unix:{}", text(&empty))], &words);
    fails(
        &["memory:1m", "--nbd", &free, "--depth", "2", "--lanes", "3"],
        "a depth of 2 cannot be shared by 3 lanes",
    );
    fails(
        &["--export", "a=memory:1m", "--export", "a=null:1m", "--nbd", &free],
        "export \"a\": there is another of this name",
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = format!("{address}: Address already in use");
    fails(&["memory:1m", "--nbd", &address], &words);
    fs::remove_file(empty).unwrap();

    // What clap and the profiles say has lines of its own.
    for (args, words) in [
        (&["memory:1m", "--nbd", &free, "--design", "mq-deadlin"][..], "mq-deadline"),
        (&["memory:1x", "--nbd", &free], "is no size"),
        (&["memory:1m", "--nbd", "nowhere"], "unix:PATH or HOST:PORT"),
        (&["memory:1m"], "--nbd"),
        (&["--nbd", &free], "DISK"),
        (&["memory:1m", "--nbd", &free, "--depth", "0"], "0 is not in 1.."),
    ] {
        let output = command(args).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(words), "{args:?}: {errors}");
    }
}

#[test]
fn a_socket_of_the_dead_is_replaced_and_one_of_the_living_is_not() {
    let socket = socket();
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists(), "it was left behind");
    let server = start("memory:1m", &socket, &[]);
    let words = format!("unix:{}: another server answers there", text(&socket));
    fails(&["memory:1m", "--nbd", &format!("unix:{}", text(&socket))], &words);
    assert_eq!(Client::connect(&socket).unwrap().read(0, 3), [0; 3], "the first one serves still");
    signal(&server, "-TERM");
    assert_eq!(end(server).status.code(), Some(0));
    assert!(!socket.exists());
}

#[test]
fn a_signal_lets_it_end_what_was_begun() {
    let (socket, path) = (socket(), nbd::file(1 << 20));
    for name in ["-TERM", "-INT"] {
        let server = start(text(&path), &socket, &["--design", "mq-deadline", "--lanes", "2"]);
        let mut client = Client::connect(&socket).unwrap();
        assert_eq!(client.write(12_345, &[7; 20_000]), 0);
        signal(&server, name);
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "the session ends");
        let output = end(server);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read(&path).unwrap()[12_344..12_347], [0, 7, 7]);
        fs::write(&path, vec![0; 1 << 20]).unwrap();
    }
    fs::remove_file(path).unwrap();
}

/// Killed while it writes, again and again: what was flushed is there.
#[test]
fn nothing_that_was_flushed_is_lost_when_it_is_killed() {
    let (socket, path) = (socket(), nbd::file(1 << 20));
    let mut flushed = [0_u8; 64];
    for life in 1..=5_u8 {
        let mut server = start(text(&path), &socket, &["--design", "mq-deadline"]);
        let mut client = Client::connect(&socket).unwrap();
        for (at, byte) in flushed.iter().enumerate() {
            let found = client.read(at as u64 * 5000, 5000);
            // Written and not flushed: the byte of the life before, or of the one before that.
            let ok = found.iter().all(|found| found == byte || *found == life - 1);
            assert!(ok, "life {life}, place {at}");
        }
        for at in 0..32 {
            assert_eq!(client.write(at * 5000, &[life; 5000]), 0);
        }
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        flushed[..32].fill(life);
        for at in 32..64 {
            client.ask(nbd::WRITE, at * 5000, 5000).unwrap();
            std::io::Write::write_all(&mut client.stream, &[life; 5000]).unwrap();
        }
        signal(&server, "-KILL");
        assert!(!server.wait().unwrap().success());
        let on_disk = fs::read(&path).unwrap();
        assert!(on_disk[..32 * 5000].iter().all(|byte| *byte == life), "flushed in life {life}");
        for (at, byte) in flushed.iter_mut().enumerate().skip(32) {
            *byte = on_disk[at * 5000];
        }
    }
    fs::remove_file(path).unwrap();
    fs::remove_file(socket).unwrap();
}
