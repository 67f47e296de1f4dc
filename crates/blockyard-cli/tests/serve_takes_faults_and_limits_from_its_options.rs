//! Options of `serve` and `ctl` as an operator writes them: fault rules without a file, times of
//! zero, certificates.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

#[path = "../../blockyard-serve/tests/certificates/mod.rs"]
mod certificates;
mod operator;

use certificates::Certificates;
use core::time::Duration;
use nbd::{Client, EIO, ENOSPC, FLUSH, READ, signal};
use operator::{blockyard, rules_from_now, start, text};
use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// Asserts that the server does not start, and returns its words.
fn refused(args: &[&str]) -> String {
    let args = [&["serve", "memory:1m", "--nbd", "127.0.0.1:0"], args].concat();
    let output = blockyard(&args).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Writes `text` to the command's standard input.
fn told(command: &mut Command, text: &str) -> Child {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child
}

#[test]
fn fault_rules_come_from_the_command_line() {
    let running = start(&["memory:1m", "--fault", "op = \"fsync\", nth = 1, error = \"no-space\""]);
    let mut client = running.client();
    assert_eq!([client.call(FLUSH, 0, 0), client.call(FLUSH, 0, 0)], [ENOSPC, 0]);
    let two = "{op = [\"read\"], error = \"io\"}, {name = \"slow\", delay = \"1ms\"}";
    assert_eq!(running.does(&["fault", "", two]), rules_from_now("rule 1, slow"));
    assert_eq!(client.call(READ, 0, 512), EIO);
    let mut ctl = blockyard(&["ctl", text(&running.control), "fault", "", "-"]);
    let ctl = told(&mut ctl, "[[rule]]\nop = \"fsync\"\nerror = \"io\"\n");
    let output = ctl.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), rules_from_now("rule 1"));
    assert_eq!(client.call(FLUSH, 0, 0), EIO);
    let words = running.refuses(&["fault", "", "op = \"raed\", error = \"io\""]);
    assert!(words.contains("unknown value `raed` for `op`: did you mean `read`?"), "{words}");
    assert_eq!(running.does(&["fault", "", "none"]), rules_from_now("none"));
    drop(client);
    running.end();
}

#[test]
fn fault_rules_come_from_standard_input() {
    let socket = nbd::socket();
    let address = format!("unix:{}", text(&socket));
    let mut server = blockyard(&["serve", "memory:1m", "--nbd", &address, "--fault", "-"]);
    let server = told(&mut server, "[[rule]]\nop = \"flush\"\nnth = 1\nerror = \"io\"\n");
    let server = nbd::answers(server, &socket);
    let mut client = Client::connect(&socket).unwrap();
    assert_eq!([client.call(FLUSH, 0, 0), client.call(FLUSH, 0, 0)], [EIO, 0]);
    client.bye();
    signal(&server, "-TERM");
    let output = server.wait_with_output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    assert!(log.contains("rule 1"), "{log}");

    let words = refused(&["--fault", "-", "--nbd", "stdio"]);
    assert!(words.contains("--fault - and --nbd stdio both take standard input"), "{words}");
    let running = start(&["memory:1m"]);
    let words = running.refuses(&["add", "x", "memory:1m", "fault=-"]);
    assert!(words.contains("gets no rules from standard input"), "{words}");
    running.does(&["add", "x", "memory:1m", "fault=op = \"read\", error = \"io\""]);
    let mut client = Client::connect_to(&running.socket, "x").unwrap();
    assert_eq!(client.call(READ, 0, 512), EIO);
    drop(client);
    running.end();
}

#[test]
fn the_help_of_faults_names_the_operations() {
    for args in [&["help", "serve"][..], &["ctl", "x", "fault", "--help"], &["help", "run"]] {
        let help = String::from_utf8(blockyard(args).output().unwrap().stdout).unwrap();
        // Lines end anywhere.
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let operations = "read, write, flush (or fsync), discard (or trim), write-zeroes";
        assert!(help.replace("# ", "").contains(operations), "{args:?}: {help}");
    }
}

/// A handshake timeout of zero once let nobody in.
#[test]
fn a_limit_of_zero_is_refused() {
    for (option, zero) in [
        ("--handshake-timeout", "0s"),
        ("--handshake-timeout", "0ms"),
        ("--max-connections", "0"),
        ("--max-clients", "0"),
        ("--lanes", "0"),
        ("--depth", "0"),
        ("--rate", "0"),
        ("--rate", "0iops"),
    ] {
        let words = refused(&[option, zero]);
        assert!(words.contains(&format!("'{zero}' for '{option} ")), "{words}");
    }
}

#[test]
fn a_disk_added_to_a_server_with_client_certificates_may_ask_for_one() {
    let certificates = Certificates::new();
    let [chain, key, ca] = ["server-cert.pem", "server-key.pem", "ca-cert.pem"]
        .map(|name| text(&certificates.file(name)).to_owned());
    let socket = nbd::socket();
    let control = nbd::socket();
    let address = format!("unix:{}", text(&socket));
    let args = ["serve", "memory:1m", "--nbd", &address, "--control", text(&control)];
    let tls = ["--tls-cert", &chain, "--tls-key", &key, "--tls-client-ca", &ca];
    let server = blockyard(&[&args[..], &tls].concat()).spawn().unwrap();
    let running = operator::Running { server, socket, control };
    while !running.control.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.does(&["add", "x", "memory:1m", "allow-certificate=client"]);
    let exports = running.list()["exports"].as_array().unwrap().len();
    assert_eq!(exports, 2);
    let log = running.end();
    assert!(!log.contains("expired"), "{log}");
    // A server without an authority of clients still refuses it.
    let words = refused(&["--allow-certificate", "client"]);
    assert!(words.contains("--allow-certificate needs a server with --tls-client-ca"), "{words}");
    let words =
        refused(&["--allow-certificate", "client", "--tls-cert", &chain, "--tls-key", &key]);
    assert!(words.contains("--allow-certificate needs a server with --tls-client-ca"), "{words}");
}

fn write_untimely(key: &str, begin: i32, end: i32, path: &str) {
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(begin, 1, 1);
    params.not_after = rcgen::date_time_ymd(end, 1, 1);
    let own = rcgen::KeyPair::from_pem(&fs::read_to_string(key).unwrap()).unwrap();
    fs::write(path, params.self_signed(&own).unwrap().pem()).unwrap();
}

/// An expired certificate was once loaded without a word.
#[test]
fn a_certificate_outside_its_time_has_a_warning() {
    let certificates = Certificates::new();
    let [chain, key, ca] = ["server-cert.pem", "server-key.pem", "ca-cert.pem"]
        .map(|name| text(&certificates.file(name)).to_owned());
    let valid = fs::read(&chain).unwrap();
    write_untimely(&key, 2001, 2002, &chain);
    let expired_ca = text(&certificates.file("expired-ca.pem")).to_owned();
    write_untimely(&key, 2001, 2003, &expired_ca);
    let mut authorities = fs::read(&ca).unwrap();
    authorities.extend(fs::read(&expired_ca).unwrap());
    fs::write(&expired_ca, authorities).unwrap();
    let socket = nbd::socket();
    let control = nbd::socket();
    let address = format!("unix:{}", text(&socket));
    let args = ["serve", "memory:1m", "--nbd", &address, "--control", text(&control)];
    let tls = ["--tls-cert", &chain, "--tls-key", &key, "--tls-client-ca", &expired_ca];
    let server = blockyard(&[&args[..], &tls].concat()).spawn().unwrap();
    let running = operator::Running { server, socket, control };
    while !running.control.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.list();
    write_untimely(&key, 4000, 4001, &chain);
    signal(&running.server, "-HUP");
    std::thread::sleep(Duration::from_millis(500));
    fs::write(&chain, valid).unwrap();
    fs::write(&expired_ca, fs::read(&ca).unwrap()).unwrap();
    signal(&running.server, "-HUP");
    std::thread::sleep(Duration::from_millis(500));
    let log = running.end();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("warning: ")).collect();
    let [chain_expired, ca_expired, early, ca_again] = &warnings[..] else { panic!("{log}") };
    let expired = format!("{chain}: certificate 1 expired ");
    assert!(chain_expired.contains(&expired) && chain_expired.ends_with(" days ago"), "{log}");
    for line in [ca_expired, ca_again] {
        assert!(line.contains(&format!("{expired_ca}: certificate 2 expired ")), "{log}");
    }
    assert!(early.contains("certificate 1 will not be valid before "), "{log}");
}

/// Each second with a late completion once had a line.
#[test]
fn some_late_completions_are_no_line_of_the_log() {
    let running = start(&["memory:64m", "--as", "sd-hs"]);
    let mut client = running.client();
    for at in 0..4 {
        client.ask(READ, at << 20, 4096).unwrap();
        signal(&running.server, "-STOP");
        std::thread::sleep(Duration::from_millis(200));
        signal(&running.server, "-CONT");
        assert_eq!(client.reply().unwrap().1, 0);
        std::io::Read::read_exact(&mut client.stream, &mut [0; 4096]).unwrap();
        std::thread::sleep(Duration::from_millis(1100));
    }
    drop(client);
    let log = running.end();
    assert!(!log.contains("too slow for the model"), "{log}");
    assert!(log.contains("of 4 completions of the model "), "{log}");
}
