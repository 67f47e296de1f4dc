//! `remove --force` and `resize --force` with requests that never end by themselves: they end with
//! an error, in bounded time ([removal-is-bounded]).

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;
mod operator;

use core::time::Duration;
use nbd::{Client, EIO, READ, WRITE};
use operator::{Running, start, text};
use std::fs;
use std::io::Write;
use std::time::Instant;

/// What a lane may take: `--drain-timeout`, and time for a busy machine. Without a bound it took 62
/// s.
const BOUND: Duration = Duration::from_secs(30);

const HELD: [&str; 4] = ["delay", "rate", "late", "lost"];

fn set_rule(running: &Running, then: &str) {
    let rules = nbd::path("rules.toml");
    fs::write(&rules, format!("[[rule]]\nname = \"held\"\n{then}\n")).unwrap();
    running.does(&["fault", "", text(&rules)]);
    fs::remove_file(&rules).unwrap();
}

/// Starts a server whose default export holds every request from now on, and has data.
fn holding(source: &str, how: &str) -> Running {
    let options = ["--delay", "0us", "--rate", "unlimited", "--fault", "none"];
    let timeout = ["--drain-timeout", "4s", "--export", "other=memory:1m"];
    let running = start(&[&[source], &options[..], &timeout[..]].concat());
    assert_eq!(running.client().write(0, &[7; 4096]), 0);
    match how {
        "delay" => drop(running.does(&["delay", "", "3600s"])),
        "rate" => drop(running.does(&["rate", "", "1"])),
        "late" => set_rule(&running, "delay = \"3600s\""),
        _ => set_rule(&running, "lost = true"),
    }
    running
}

/// Sends a read and a write, and waits until the server has them.
fn ask(running: &Running) -> Client {
    let mut client = running.client();
    client.ask(READ, 8192, 512).unwrap();
    client.ask(WRITE, 8192, 512).unwrap();
    client.stream.write_all(&[9; 512]).unwrap();
    while running.list()["exports"][0]["in_flight"] != 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    client
}

/// Checks [let-go-ends-held]: each of the two requests gets an answer.
fn all_fail(client: &mut Client, how: &str) {
    for _ in 0..2 {
        assert_eq!(client.reply().unwrap().1, EIO, "{how}");
    }
    assert!(client.reply().is_err(), "the session ends");
}

/// The memory disk was lost, and all commands waited for a minute.
#[test]
fn a_resized_export_keeps_its_data_and_other_exports_do_not_wait() {
    let file = nbd::file(1 << 20);
    for how in HELD {
        let source = if how == "late" { text(&file) } else { "memory:1m" };
        let running = holding(source, how);
        let mut client = ask(&running);
        let start = Instant::now();
        std::thread::scope(|scope| {
            let resize = scope.spawn(|| running.does(&["resize", "", "2m", "--force"]));
            // Changes of other exports do not wait for the resize.
            running.does(&["add", "third", "memory:1m"]);
            running.does(&["resize", "other", "2m"]);
            running.does(&["remove", "third"]);
            let is_finished = resize.is_finished();
            let got = start.elapsed();
            let least = Duration::from_secs(2);
            assert!(!is_finished || got >= least, "requests get 2 s to end by themselves");
            all_fail(&mut client, how);
            resize.join().unwrap();
        });
        assert!(start.elapsed() < BOUND, "{how}: {:?}", start.elapsed());
        running.does(match how {
            "delay" => &["delay", "", "0us"],
            "rate" => &["rate", "", "unlimited"],
            _ => &["fault", "", "none"],
        });
        let mut client = running.client();
        assert_eq!((client.bytes, client.read(0, 4096)), (2 << 20, vec![7; 4096]), "{how}");
        drop(client);
        running.end();
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn an_export_whose_requests_never_end_is_removed() {
    for how in HELD {
        let running = holding("memory:1m", how);
        let mut client = ask(&running);
        let start = Instant::now();
        running.does(&["remove", "", "--force"]);
        all_fail(&mut client, how);
        assert!(start.elapsed() < BOUND, "{how}: {:?}", start.elapsed());
        running.end();
    }
}

/// The layers hold the last flush itself, so it is repeated without them.
#[test]
fn a_last_flush_that_never_ends_is_repeated() {
    let file = nbd::file(1 << 20);
    for how in HELD {
        let running = holding(text(&file), how);
        let start = Instant::now();
        running.does(&["resize", "", "2m"]);
        running.does(&["remove", ""]);
        assert!(start.elapsed() < 2 * BOUND, "{how}: {:?}", start.elapsed());
        running.end();
    }
    fs::remove_file(file).unwrap();
}
