//! `serve` from start to exit: bad input, signals, `kill -9` and restarts.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

#[path = "../../blockyard-serve/tests/certificates/mod.rs"]
mod certificates;

use certificates::Certificates;
use core::time::Duration;
use nbd::{Client, FLUSH, signal, socket};
use std::fs;
use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blockyard"));
    command.arg("serve").args(args).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a server and waits until it answers.
fn start(disk: &str, socket: &Path, more: &[&str]) -> Child {
    let address = format!("unix:{}", text(socket));
    nbd::answers(command(&[&[disk, "--nbd", &address], more].concat()).spawn().unwrap(), socket)
}

fn end(server: Child) -> Output {
    let start = Instant::now();
    let output = server.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "the server should exit within 20 s");
    output
}

/// Asserts that the server does not start and prints `message` as one line.
fn fails(args: &[&str], message: &str) {
    let output = command(args).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
    assert_eq!(errors, format!("blockyard: error: {message}\n"), "{args:?}");
}

#[test]
fn a_server_that_cannot_start_prints_one_line_and_exits_with_2() {
    let empty = nbd::file(0);
    let folder = std::env::temp_dir();
    let free = format!("unix:{}", text(&socket()));
    let missing = "/nowhere/disk.img";
    fails(&[missing, "--nbd", &free], "/nowhere/disk.img: No such file or directory");
    let words = format!("{}: neither a file nor a block device", text(&folder));
    fails(&[text(&folder), "--readonly", "--nbd", &free], &words);
    let words = format!("{}: it is empty", text(&empty));
    fails(&[text(&empty), "--nbd", &free], &words);
    let words = format!("unix:{}: there is something that is no socket", text(&empty));
    fails(&["memory:1m", "--nbd", &format!("unix:{}", text(&empty))], &words);
    fails(
        &["memory:1m", "--nbd", &free, "--as", "lpfc", "--design", "hsq"],
        "`hsq` only works on eMMC and SD devices; `lpfc` is a SCSI host",
    );
    fails(
        &["--export", "a=memory:1m", "--export", "a=null:1m", "--nbd", &free],
        "export \"a\": another export has the same name",
    );
    fails(&["memory:1m"], "missing --nbd ADDRESS (where to listen): unix:PATH, HOST:PORT or stdio");
    let twice = ["memory:1m", "--nbd", "stdio", "--nbd", "stdio"];
    fails(&twice, "standard input has one client, not several");
    let words = format!("{}: there is no certificate in it", text(&empty));
    let tls = ["--tls-cert", text(&empty), "--tls-key", text(&empty)];
    fails(&[&["memory:1m", "--nbd", &free], &tls[..]].concat(), &words);
    let tls = ["--tls-cert", missing, "--tls-key", text(&empty)];
    let words = "/nowhere/disk.img: No such file or directory";
    fails(&[&["memory:1m", "--nbd", &free], &tls[..]].concat(), words);
    let certificates = Certificates::new();
    let files = ["server-cert.pem", "server-key.pem", "client-key.pem", "ca-cert.pem"];
    let [chain, key, other_key, ca] = files.map(|name| text(&certificates.file(name)).to_owned());
    let words = format!("{other_key}: not the key of {chain}");
    let tls = ["--tls-cert", &chain, "--tls-key", &other_key];
    fails(&[&["memory:1m", "--nbd", &free], &tls[..]].concat(), &words);
    let words = format!("{chain}: there is no private key in it");
    let tls = ["--tls-cert", &chain, "--tls-key", &chain];
    fails(&[&["memory:1m", "--nbd", &free], &tls[..]].concat(), &words);
    let tls = ["--tls-cert", &chain, "--tls-key", &key, "--tls-client-ca", &ca, "--tls", "offer"];
    let words = "--tls offer lets clients in without the certificate that --tls-client-ca asks for: use --tls require";
    fails(&[&["memory:1m", "--nbd", &free], &tls[..]].concat(), words);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = format!("{address}: Address already in use");
    fails(&["memory:1m", "--nbd", &free, "--metrics", &address], &words);
    fails(&["memory:1m", "--nbd", &address], &words);
    fs::remove_file(empty).unwrap();

    let config = nbd::path("config");
    fs::write(&config, "lanes = 1\n[[disk]]\nsorce = \"null:1k\"\n").unwrap();
    let words = "3: unknown key `sorce` in `[disk]`: did you mean `source`?";
    fails(&["--config", text(&config)], &format!("{}:{words}", text(&config)));
    fs::remove_file(&config).unwrap();

    // Messages of clap and of the profiles have several lines.
    for (args, words) in [
        (&["memory:1m", "--nbd", &free, "--design", "mq-deadlin"][..], "mq-deadline"),
        (&["memory:1x", "--nbd", &free], "is not a size"),
        (&["memory:1m", "--nbd", "nowhere"], "unix:PATH, HOST:PORT or stdio"),
        (&["--nbd", &free], "DISK"),
        (&["memory:1m", "--nbd", &free, "--depth", "0"], "0 is not in 1.."),
        (&["memory:1m", "--nbd", &free, "--max-connections", "0"], "at least 1"),
    ] {
        let output = command(args).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
        assert!(errors.contains(words), "{args:?}: {errors}");
    }
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let socket = socket();
    drop(UnixListener::bind(&socket).unwrap());
    assert!(socket.exists(), "the dead server should leave its socket behind");
    let server = start("memory:1m", &socket, &[]);
    let words = format!("unix:{}: another server answers there", text(&socket));
    fails(&["memory:1m", "--nbd", &format!("unix:{}", text(&socket))], &words);
    assert_eq!(
        Client::connect(&socket).unwrap().read(0, 3),
        [0; 3],
        "the first server should still serve"
    );
    signal(&server, "-TERM");
    assert_eq!(end(server).status.code(), Some(0));
    assert!(!socket.exists());
}

/// The file names several disks, each with its own options.
#[test]
fn a_configuration_file_names_the_disks() {
    let socket = socket();
    let config = nbd::path("config");
    let path = nbd::file(1 << 20);
    let said = format!(
        "nbd = \"unix:{}\"\nlanes = 2\n[[disk]]\nsource = \"{}\"\ndesign = \"mq-deadline\"\ndepth = 4\n\
         [[disk]]\nname = \"scratch\"\nsource = \"memory:3m\"\nreadonly = true\n",
        text(&socket),
        text(&path)
    );
    fs::write(&config, said).unwrap();
    let server = nbd::answers(command(&["--config", text(&config)]).spawn().unwrap(), &socket);
    let mut client = Client::connect(&socket).unwrap();
    assert_eq!(client.bytes, 1 << 20);
    assert_eq!(client.write(5, &[7; 3]), 0);
    client.bye();
    let mut stream = nbd::greeted(UnixStream::connect(&socket).unwrap()).unwrap();
    std::io::Write::write_all(&mut stream, b"IHAVEOPT\0\0\0\x01\0\0\0\x07scratch").unwrap();
    let mut export = [0; 10];
    stream.read_exact(&mut export).unwrap();
    assert_eq!(export[..8], (3_u64 << 20).to_be_bytes());
    assert_eq!(export[9] & 2, 2, "read-only");
    drop(stream);
    signal(&server, "-TERM");
    assert_eq!(end(server).status.code(), Some(0));
    assert_eq!(fs::read(&path).unwrap()[4..7], [0, 7, 7]);
    fs::remove_file(path).unwrap();
    fs::remove_file(config).unwrap();
}

/// With `--nbd stdio` the server has one client and exits after it.
#[test]
fn standard_input_serves_one_client() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = command(&["memory:1m", "--nbd", "stdio"])
        .stdin(std::os::fd::OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    let mut client = Client::enter(nbd::greeted(ours).unwrap()).unwrap();
    assert_eq!(client.write(5, &[7; 3]), 0);
    assert_eq!(client.read(4, 3), [0, 7, 7]);
    client.bye();
    let output = end(server);
    assert_eq!(output.status.code(), Some(0));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains(": serving export \"\", without TLS\n"), "{log}");
    assert!(log.contains(": gone from export \"\" after 2 requests: it disconnected\n"), "{log}");
    let refused = command(&["memory:1m", "--nbd", "stdio"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let words = "blockyard: error: standard input is no socket with a client\n";
    assert_eq!(String::from_utf8(refused.stderr).unwrap(), words);
}

#[test]
fn a_signal_drains_and_ends_the_server() {
    let socket = socket();
    let path = nbd::file(1 << 20);
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

/// `timeout` signals a server twice: directly and through its process group. Requests in flight are
/// still answered.
#[test]
fn two_signals_at_once_still_drain() {
    let socket = socket();
    let server = start("memory:1m", &socket, &["--delay", "300ms"]);
    let mut client = Client::connect(&socket).unwrap();
    let read = client.ask(nbd::READ, 0, 512).unwrap();
    // This read is refused at once, so the read before it has arrived.
    let beyond = client.ask(nbd::READ, 1 << 30, 512).unwrap();
    let (refused, error) = client.reply().unwrap();
    assert!(refused == beyond && error != 0);
    signal(&server, "-TERM");
    signal(&server, "-INT");
    assert_eq!(client.reply().unwrap(), (read, 0));
    assert_eq!(end(server).status.code(), Some(0));
}

/// A drain timeout of zero is valid and acts like a second signal.
#[test]
fn a_drain_timeout_of_zero_is_valid() {
    let socket = socket();
    let server = start("memory:1m", &socket, &["--drain-timeout", "0s"]);
    signal(&server, "-TERM");
    let output = end(server);
    let errors = String::from_utf8(output.stderr).unwrap();
    let is_late = errors.ends_with("blockyard: error: requests in flight did not end in time\n");
    assert_eq!(output.status.code(), Some(i32::from(is_late)), "{errors}");
    drop(fs::remove_file(socket)); // the server may have had no time to remove it
}

/// The server prints a line for each rule when it exits, like `run`.
#[test]
fn faults_are_counted_at_the_end() {
    let socket = socket();
    let rules = nbd::path("rules");
    let said =
        "[[rule]]\nname = \"second\"\nop = [\"write\"]\nfirst = 2\nlast = 2\nerror = \"io\"\n";
    fs::write(&rules, said).unwrap();
    let server = start("memory:1m", &socket, &["--faults", text(&rules), "--seed", "7"]);
    let mut client = Client::connect(&socket).unwrap();
    assert_eq!([0, 0, 0].map(|at| client.write(at, &[1; 512])), [0, nbd::EIO, 0]);
    client.bye();
    signal(&server, "-TERM");
    let log = String::from_utf8(end(server).stderr).unwrap();
    let words = "blockyard: note: faults, of requests offered to the device:\n\
                 rule    matched  fired\nsecond        3      1\n";
    assert!(log.ends_with(words), "{log}");
    assert!(log.contains("note: the seed of the faults is 7\n"), "{log}");
    assert!(!log.contains("MiB/s") && !log.contains('\x1b'), "rates are for terminals: {log}");
    fs::remove_file(rules).unwrap();
}

/// On a terminal the last line shows rates, below the messages. `script` provides the terminal.
#[test]
fn a_terminal_shows_rates() {
    let has = Command::new("script").arg("--version").output().is_ok();
    assert!(has || std::env::var_os("CI").is_none(), "CI requires script");
    if !has {
        eprintln!("skipped: script is not installed");
        return;
    }
    let socket = socket();
    let serve = format!(
        "timeout -s TERM 8 {} serve memory:1m --nbd unix:{}",
        env!("CARGO_BIN_EXE_blockyard"),
        text(&socket)
    );
    let mut command = Command::new("script");
    command.args(["-qec", &serve, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
    command.env("TERM", "xterm"); // a terminal without a name has no such line
    let server = nbd::answers(command.spawn().unwrap(), &socket);
    let mut client = Client::connect(&socket).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        client.read(0, 4096);
        std::thread::sleep(Duration::from_millis(1));
    }
    let shown = String::from_utf8(end(server).stdout).unwrap();
    // The first line may predate the first read.
    let has_rate = |line: &&str| line.contains("1 client, ") && !line.starts_with("read 0/s");
    let mut lines = shown.split(['\r', '\n']).map(|line| line.trim_start_matches("\x1b[2K"));
    let line = lines.find(has_rate).expect(&shown);
    let words: Vec<_> = line.split(' ').collect();
    assert_eq!((words[0], words[3]), ("read", "MiB/s;"), "{line}");
    let rate: f64 = words[1].strip_suffix("/s,").unwrap().parse().expect(line);
    assert!(rate > 0.0 && line.contains("; write 0/s, 0.00 MiB/s; "), "{line}");
    // Each message has its own line, and the last line of rates is erased.
    assert!(shown.contains("\r\x1b[2Kblockyard: note: draining"), "{shown}");
    let last = shown.rsplit("\r\x1b[2K").next().unwrap();
    assert!(!last.contains("MiB/s"), "{shown}");
}

/// The server is killed repeatedly while it writes. Every flushed write survives.
#[test]
fn flushed_writes_survive_a_killed_server() {
    let socket = socket();
    let path = nbd::file(1 << 20);
    let mut flushed = [0_u8; 64];
    for life in 1..=5_u8 {
        let mut server = start(text(&path), &socket, &["--design", "mq-deadline"]);
        let mut client = Client::connect(&socket).unwrap();
        for (at, byte) in flushed.iter().enumerate() {
            let found = client.read(at as u64 * 5000, 5000);
            // A write that was not flushed leaves the byte of the last life or of an earlier one.
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
