//! An operator adds, removes and resizes the exports of a running server.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;
mod operator;

use core::sync::atomic::{AtomicBool, Ordering};
use nbd::{Client, EIO, ENOSPC, ESHUTDOWN, READ};
use operator::{Running, start, text};
use serde_json::json;
use std::fs;
use std::io::{ErrorKind, Read};

const EPERM: u32 = 1;

/// The names of the exports in the list.
fn names(running: &Running) -> Vec<String> {
    let list = running.list();
    let names = list["exports"].as_array().unwrap().iter();
    names.map(|export| export["name"].as_str().unwrap().to_owned()).collect()
}

fn client(running: &Running, name: &str) -> Client {
    Client::connect_to(&running.socket, name).unwrap()
}

fn error(words: &str) -> String {
    format!("blockyard: error: {words}\n")
}

/// Checks [change-is-whole].
#[test]
fn an_added_export_is_served_and_a_removed_one_is_closed() {
    let path = nbd::file(1 << 20);
    let running = start(&["memory:1m", "--lanes", "2"]);
    let mut default = running.client();
    let add = ["add", "extra", text(&path)];
    assert_eq!(running.does(&add), "export \"extra\" is there\n");
    assert_eq!(running.refuses(&add), error("there is already an export \"extra\""));
    let same = format!("{}: another disk, program or mount writes to it", text(&path));
    assert_eq!(running.refuses(&["add", "twice", text(&path)]), error(&same));
    assert_eq!(names(&running), ["", "extra"]);

    // A client in each lane.
    let mut clients = [client(&running, "extra"), client(&running, "extra")];
    assert_eq!(clients[0].write(4096, &[7; 8192]), 0);
    assert_eq!(clients[1].read(4096, 8192), [7; 8192]);
    let used = running.refuses(&["remove", "extra"]);
    assert_eq!(used, error("export \"extra\" has 2 clients"));
    assert_eq!(clients[1].read(4096, 2), [7; 2], "the clients stay");
    let gone = "export \"extra\" is gone, and its disk is closed\n";
    assert_eq!(running.does(&["remove", "extra", "--force"]), gone);
    for client in &mut clients {
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "the session ends");
    }
    assert!(Client::connect_to(&running.socket, "extra").is_err());
    assert_eq!(running.refuses(&["remove", "extra"]), error("there is no export \"extra\""));
    assert_eq!(fs::read(&path).unwrap()[4096..12_288], [7; 8192]);
    assert_eq!(default.read(0, 2), [0; 2], "clients of other exports are not touched");

    // The file is closed, so it can be served again, under any options of a disk.
    let keys = ["readonly", "depth=4", "design=mq-deadline"];
    running.does(&[&["add", "again", text(&path)], &keys[..]].concat());
    let mut again = client(&running, "again");
    assert_eq!(again.read(4096, 8192), [7; 8192]);
    assert_eq!(again.write(0, &[1; 512]), EPERM);
    assert_eq!(names(&running), ["", "again"]);
    drop((default, again));
    let log = running.end();
    assert!(log.contains("an operator removed its export\n"), "{log}");
    fs::remove_file(path).unwrap();
}

#[test]
fn requests_in_flight_at_a_removed_export_are_answered() {
    let running = start(&["memory:1m"]);
    running.does(&["add", "slow", "memory:1m", "delay=1s"]);
    let mut slow = client(&running, "slow");
    for _ in 0..8 {
        slow.ask(READ, 0, 512).unwrap();
    }
    std::thread::sleep(core::time::Duration::from_millis(200));
    running.does(&["remove", "slow", "--force"]);
    for _ in 0..8 {
        assert_eq!(slow.reply().unwrap().1, 0, "it came before the command");
        slow.stream.read_exact(&mut [0; 512]).unwrap();
    }
    assert_eq!(slow.stream.read(&mut [0]).unwrap(), 0, "the session ends");
    // The number of the export is used again.
    for round in 0..20 {
        let name = format!("n{round}");
        running.does(&["add", &name, "memory:1m"]);
        assert_eq!(client(&running, &name).write(0, &[1; 512]), 0);
        running.does(&["remove", &name, "--force"]);
    }
    assert_eq!(names(&running), [""]);
    running.end();
}

/// A server of several lanes refused every disk with layers, at its start and by `ctl add`.
#[test]
fn a_disk_with_layers_or_little_depth_is_served_beside_others_whatever_the_lanes() {
    let path = nbd::file(1 << 20);
    for lanes in ["auto", "1", "3"] {
        let running = start(&["memory:1m", "--lanes", lanes, "--as", "sd-hs", "--delay", "1us"]);
        running.does(&["add", "rated", "memory:1m", "rate=unlimited"]);
        running.does(&["add", "shallow", text(&path), "depth=2"]);
        for name in ["", "rated", "shallow"] {
            let mut clients = [(); 4].map(|()| client(&running, name));
            for (byte, client) in (1..).zip(&mut clients) {
                assert_eq!(client.write(u64::from(byte) * 4096, &[byte; 4096]), 0, "{name:?}");
            }
            for byte in 1..=4 {
                assert_eq!(clients[0].read(u64::from(byte) * 4096, 4096), [byte; 4096]);
            }
            let list = running.list();
            let mut exports = list["exports"].as_array().unwrap().iter();
            let export = exports.find(|export| export["name"] == name).unwrap();
            assert_eq!(export["clients"], 4, "{name:?}");
        }
        running.does(&["rate", "rated", "1g"]);
        running.does(&["delay", "", "2us"]);
        for name in ["rated", "shallow"] {
            running.does(&["remove", name, "--force"]);
        }
        running.end();
    }
    fs::remove_file(path).unwrap();
}

/// Clients are on their way to the lane of a disk while an operator removes the disk: each is
/// served or hung up on.
#[test]
fn clients_come_while_the_disk_of_another_lane_is_removed() {
    let path = nbd::file(1 << 20);
    let running = start(&["memory:1m", "--lanes", "4"]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(mut client) = Client::connect_to(&running.socket, "x") else { continue };
                    // An error of the socket is a session that ended; a session that hangs would
                    // time out.
                    match client.ask(READ, 0, 512).and_then(|_| client.reply()) {
                        Ok((_, error)) => assert!([0, ESHUTDOWN].contains(&error), "{error}"),
                        Err(error) => assert_ne!(error.kind(), ErrorKind::WouldBlock, "{error}"),
                    }
                }
            });
        }
        for _ in 0..20 {
            // The file is locked, so it can be added again only if it was closed.
            running.does(&["add", "x", text(&path), "rate=unlimited"]);
            running.does(&["resize", "x", "1m", "--force"]);
            running.does(&["remove", "x", "--force"]);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(running.client().read(0, 2), [0; 2]);
    running.end();
    fs::remove_file(path).unwrap();
}

/// Checks [removed-disk-is-flushed].
#[test]
fn a_removal_says_that_its_last_flush_failed() {
    let rules = nbd::path("rules.toml");
    fs::write(&rules, "[[rule]]\nname = \"lost\"\nop = [\"flush\"]\nerror = \"io\"\n").unwrap();
    let running = start(&["memory:1m"]);
    running.does(&["add", "bad", "memory:1m", &format!("fault={}", text(&rules))]);
    assert_eq!(client(&running, "bad").write(0, &[1; 512]), 0);
    let words = error("export \"bad\" was removed, but the last flush failed");
    assert_eq!(running.refuses(&["remove", "bad", "--force"]), words);
    assert_eq!(names(&running), [""]);
    running.does(&["add", "bad", "memory:1m"]);
    running.end();
    fs::remove_file(rules).unwrap();
}

#[test]
fn an_export_is_resized_and_keeps_its_data() {
    let path = nbd::file(1 << 20);
    let running = start(&["memory:1m", "--export", &format!("file={}", text(&path))]);
    for name in ["", "file"] {
        let mut old = client(&running, name);
        assert_eq!(old.write(4096, &[9; 4096]), 0);
        let words = format!("export {name:?} has 1 client");
        assert_eq!(running.refuses(&["resize", name, "2m"]), error(&words));
        assert_eq!(old.read(4096, 2), [9; 2]);
        let words = format!("export {name:?} has 2097152 bytes, for clients from now on\n");
        assert_eq!(running.does(&["resize", name, "2m", "--force"]), words);
        assert_eq!(old.stream.read(&mut [0]).unwrap(), 0, "the session ends");
        let mut new = client(&running, name);
        assert_eq!((new.bytes, new.read(4096, 4096)), (2 << 20, vec![9; 4096]));
        assert_eq!(new.write((2 << 20) - 512, &[8; 512]), 0);
        assert_eq!(new.read(1 << 20, 512), [0; 512], "new room reads as zeroes");
        drop(new);
        running.does(&["resize", name, "8k", "--force"]);
        let mut new = client(&running, name);
        assert_eq!((new.bytes, new.read(4096, 4096)), (8192, vec![9; 4096]));
        assert_eq!(new.call(READ, 8192, 512), 22, "EINVAL");
        assert_eq!(new.write(8192, &[1; 512]), ENOSPC);
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 8192);
    assert_eq!(names(&running), ["", "file"], "the exports keep their order");

    let mut caller = running.caller();
    caller.say(b"{\"command\":\"resize\",\"export\":\"file\",\"size_bytes\":0}\n");
    assert_eq!(caller.error(), "a disk has at least one byte");
    // The file system refuses: the export is as before.
    let huge = running.refuses(&["resize", "file", "4194304t", "--force"]);
    assert!(huge.contains(text(&path)), "{huge}");
    let mut file = client(&running, "file");
    assert_eq!((file.bytes, file.read(4096, 2)), (8192, vec![9; 2]));
    drop(file);
    running.end();
    fs::remove_file(path).unwrap();
}

#[test]
fn a_resized_export_keeps_what_an_operator_has_set() {
    let rules = nbd::path("rules.toml");
    fs::write(&rules, "[[rule]]\nname = \"bad\"\nop = [\"read\"]\nerror = \"io\"\n").unwrap();
    let running = start(&["memory:1m", "--fault", "none"]);
    running.does(&["fault", "", text(&rules)]);
    assert_eq!(client(&running, "").call(READ, 0, 512), EIO);
    running.does(&["resize", "", "2m", "--force"]);
    assert_eq!(client(&running, "").call(READ, 0, 512), EIO, "the rule is still there");
    running.does(&["fault", "", "none"]);
    running.does(&["resize", "", "1m", "--force"]);
    assert_eq!(client(&running, "").read(0, 512), [0; 512], "the rule is gone");
    running.end();
    fs::remove_file(rules).unwrap();
}

#[test]
fn what_cannot_be_added_or_resized_is_refused_by_name() {
    let path = nbd::file(1 << 20);
    let image = nbd::path("btt");
    let created =
        operator::blockyard(&["btt", "create", text(&image), "--size", "32m"]).output().unwrap();
    assert!(created.status.success(), "{created:?}");
    let running = start(&[text(&path), "--readonly"]);
    let words = running.refuses(&["add", "x", "/nowhere/at-all"]);
    assert_eq!(words, error("/nowhere/at-all: No such file or directory"));
    let words = running.refuses(&["add", "x", "memory:1m", "dept=3"]);
    assert!(words.contains("unknown key `dept`") && words.contains("did you mean `depth`?"));
    let words = running.refuses(&["add", "x", "memory:1m", "depth=0"]);
    assert!(words.contains("invalid value '0' for '--depth <N>'"), "{words}");
    let words = running.refuses(&["add", "x", "memory:1m", "allow-certificate=me"]);
    assert!(words.contains("--tls-client-ca"), "{words}");
    let long = "x".repeat(5000);
    assert!(running.refuses(&["add", &long, "memory:1m"]).contains("more than 4096 bytes"));
    let mut caller = running.caller();
    for disk in [json!({}), json!({"source": {"a": 1}}), json!({"source": null})] {
        caller.say(format!("{}\n", json!({"command": "add", "disk": disk})).as_bytes());
        assert!(!caller.error().is_empty());
    }
    // A key cannot begin another table.
    let disk = json!({"source": "memory:1m", "readonly = true\n[[disk]]\nname": "y"});
    caller.say(format!("{}\n", json!({"command": "add", "disk": disk})).as_bytes());
    assert!(caller.error().contains("unknown key"));
    assert_eq!(names(&running), [""]);

    let words = error("a read-only file keeps its size");
    assert_eq!(running.refuses(&["resize", "", "2m"]), words);
    running.does(&["add", "btt", text(&image), "btt"]);
    let words = error("a disk of kind btt keeps its size");
    assert_eq!(running.refuses(&["resize", "btt", "64m"]), words);
    let mut btt = client(&running, "btt");
    assert_eq!(btt.write(0, &[5; 4096]), 0);
    drop(btt);
    running.does(&["remove", "btt", "--force"]);
    running.does(&["add", "btt", text(&image), "btt"]);
    assert_eq!(client(&running, "btt").read(0, 4096), [5; 4096]);
    running.end();
    fs::remove_file(path).unwrap();
    fs::remove_file(image).unwrap();
}
