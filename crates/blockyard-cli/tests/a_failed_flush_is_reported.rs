//! A flush that fails means that writes which were answered may be lost. An operator learns of it
//! in four ways.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;
mod operator;

use nbd::{EIO, FLUSH};
use operator::{Running, start, text};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn ask(free: &str, path: &str) -> String {
    let mut peer = TcpStream::connect(free).unwrap();
    write!(peer, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    answer
}

fn check(running: &Running, free: &str, failed: bool) {
    let health = ask(free, "/healthz");
    let (status, body) = match failed {
        true => ("HTTP/1.1 503 ", "\r\n\r\ndegraded: the last flush of export \"\" failed\n"),
        false => ("HTTP/1.1 200 ", "\r\n\r\nok\n"),
    };
    assert!(health.starts_with(status) && health.ends_with(body), "{health}");
    let metrics = ask(free, "/metrics");
    for (name, failed) in [("(default)", u8::from(failed)), ("good", 0)] {
        let sample = format!("\nblockyard_flush_failed{{device=\"{name}\"}} {failed}\n");
        assert!(metrics.contains(&sample), "{metrics}");
    }
    let list = running.list();
    let exports = list["exports"].as_array().unwrap();
    let told: Vec<_> = exports.iter().map(|export| &export["flush_failed"]).collect();
    assert_eq!(told, [&json!(failed), &json!(false)]);
    let line = "(default): the last flush failed: writes that were answered may be lost\n";
    assert_eq!(running.does(&["list"]).contains(line), failed);
}

/// Only a counter of errors rose when a flush failed.
#[test]
fn a_failed_flush_is_in_the_log_the_list_the_health_and_the_metrics() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let disks = ["memory:1m", "--export", "good=memory:1m", "--fault", "none", "--metrics", &free];
    let running = start(&disks);
    let file = nbd::path("toml");
    std::fs::write(&file, "[[rule]]\nname = \"x\"\nop = \"flush\"\nerror = \"io\"\n").unwrap();
    let mut client = running.client();
    assert_eq!(client.call(FLUSH, 0, 0), 0);
    check(&running, &free, false);
    running.does(&["fault", "", text(&file)]);
    (0..3).for_each(|_| assert_eq!(client.call(FLUSH, 0, 0), EIO));
    check(&running, &free, true);
    running.does(&["fault", "", "none"]);
    (0..3).for_each(|_| assert_eq!(client.call(FLUSH, 0, 0), 0));
    check(&running, &free, false);
    drop(client);
    let log = running.end();
    let words = "disk \"\": a flush failed: writes since the last flush may be lost";
    assert_eq!(log.matches(words).count(), 1, "a line for each change: {log}");
    assert_eq!(log.matches("disk \"\": a flush succeeded again\n").count(), 1, "{log}");
    std::fs::remove_file(file).unwrap();
}

/// A disk that was to get another size took the place of the old one, and nobody knew of its lost
/// writes.
#[test]
fn a_resize_forgets_no_failed_flush() {
    let file = nbd::path("toml");
    std::fs::write(&file, "[[rule]]\nname = \"x\"\nop = \"flush\"\nerror = \"io\"\n").unwrap();
    let running = start(&["memory:1m", "--fault", text(&file)]);
    let mut client = running.client();
    assert_eq!(client.call(FLUSH, 0, 0), EIO);
    drop(client);
    let refusal = running.refuses(&["resize", "", "2m", "--force"]);
    assert!(refusal.contains("the last flush failed"), "{refusal}");
    assert_eq!(running.list()["exports"][0]["flush_failed"], json!(true));
    running.does(&["fault", "", "none"]); // the server ends with a flush
    running.end();
    std::fs::remove_file(file).unwrap();
}
