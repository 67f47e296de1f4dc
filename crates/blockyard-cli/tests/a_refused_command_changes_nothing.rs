//! Commands that resize and remove exports: a refused one changes nothing, they work on the file
//! that is open, and they hide no export that stays.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;
mod operator;

use core::sync::atomic::{AtomicBool, Ordering};
use nbd::{Client, READ};
use operator::{Running, start, text};
use serde_json::json;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// Creates a file of `mib` MiB whose last sector is all `byte`.
fn marked(mib: u64, byte: u8) -> std::path::PathBuf {
    let path = nbd::file(mib * MIB);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[byte; 512], mib * MIB - 512).unwrap();
    path
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn resize(export: &str, size_bytes: u64, force: bool) -> Vec<u8> {
    let line = json!({
        "command": "resize", "export": export, "size_bytes": size_bytes, "force": force
    });
    format!("{line}\n").into_bytes()
}

/// Asserts that the export `name` has `bytes` and that its `client` is still there.
fn is_as_before(running: &Running, name: &str, client: &mut Client, bytes: u64) {
    assert_eq!(client.read(bytes - 512, 512), [7; 512], "no session has ended");
    let new = Client::connect_to(&running.socket, name).unwrap();
    assert_eq!(new.bytes, bytes);
}

/// The file was cut to the size that was then refused: 12 of 16 MiB were gone, and so was the
/// export. Now everything is checked first ([change-is-whole]).
#[test]
fn a_size_that_a_rule_or_a_model_forbids_leaves_file_export_and_clients() {
    let rules = nbd::path("rules.toml");
    let rule = "[[rule]]\nname = \"far\"\nsectors = \"16384..16392\"\nerror = \"io\"\n"; // at 8 MiB
    fs::write(&rules, rule).unwrap();
    let ruled = marked(16, 7);
    let modelled = marked(16, 7);
    for (path, option, size) in [
        (&ruled, ["--fault", text(&rules)], 4 * MIB),
        (&modelled, ["--as", "sd-hs"], 1 << 40),
        (&modelled, ["--rate", "unlimited"], 1 << 63), // no export has as many bytes
    ] {
        let running = start(&[&[text(path)], &option[..]].concat());
        let mut client = running.client();
        let mut caller = running.caller();
        for force in [false, true] {
            caller.say(&resize("", size, force));
            let why = caller.error();
            assert!(!why.contains("removed"), "{why}");
            assert_eq!(len(path), 16 * MIB, "{why}");
            is_as_before(&running, "", &mut client, 16 * MIB);
        }
        drop(client);
        running.end();
    }
    for path in [rules, ruled, modelled] {
        fs::remove_file(path).unwrap();
    }
}

/// The last flush of a resize fails, so the data may not be where it should be. The export stays,
/// with its size ([change-is-whole]).
#[test]
fn a_resize_whose_flush_fails_leaves_size_and_data() {
    let rules = nbd::path("rules.toml");
    fs::write(&rules, "[[rule]]\nname = \"bad\"\nop = [\"flush\"]\nerror = \"io\"\n").unwrap();
    let file = nbd::file(MIB);
    for source in ["memory:1m", text(&file)] {
        let running = start(&[source, "--fault", "none"]);
        assert_eq!(running.client().write(MIB - 512, &[7; 512]), 0);
        running.does(&["fault", "", text(&rules)]);
        for size in ["2m", "8k"] {
            let why = running.refuses(&["resize", "", size, "--force"]);
            assert_eq!(why, "blockyard: error: the last flush failed\n");
            is_as_before(&running, "", &mut running.client(), MIB);
        }
        running.does(&["fault", "", "none"]);
        running.does(&["resize", "", "2m", "--force"]);
        assert_eq!(running.client().read(MIB - 512, 512), [7; 512]);
        running.end();
    }
    assert_eq!(len(&file), 2 * MIB);
    fs::remove_file(rules).unwrap();
    fs::remove_file(file).unwrap();
}

/// A resize would make the file long again, with zeroes in place of what was lost
/// ([end-is-no-zeroes]).
#[test]
fn a_file_that_was_truncated_is_not_made_long_again() {
    let path = marked(2, 7);
    let running = start(&[text(&path)]);
    fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    for size in ["1m", "2m", "4m"] {
        let why = running.refuses(&["resize", "", size]);
        assert!(why.contains("its file was truncated"), "{why}");
        assert_eq!(len(&path), 4096);
    }
    assert_eq!(running.client().call(READ, 4096, 512), nbd::EIO);
    running.end();
    fs::remove_file(path).unwrap();
}

/// `resize` opened the path again when the lock was gone, so it cut whatever had this name then,
/// even a file that another server had locked. Now it works on the file that is open
/// ([path-opened-once]).
#[test]
fn a_renamed_file_is_resized_and_its_successor_is_not() {
    let path = marked(2, 7);
    let moved = nbd::path("moved");
    let running = start(&[text(&path)]);
    fs::rename(&path, &moved).unwrap();
    fs::rename(marked(2, 9), &path).unwrap();
    let other = start(&[text(&path)]);
    for (size, bytes) in [("4m", 4 * MIB), ("1000001", 1_000_001), ("1m", MIB)] {
        running.does(&["resize", "", size]);
        assert_eq!((len(&moved), len(&path)), (bytes, 2 * MIB));
        let mut client = running.client();
        assert_eq!((client.bytes, client.write(4096, &[8; 512])), (bytes, 0));
        assert_eq!(client.read(4096, 512), [8; 512]);
        drop(client);
        running.until_no_client();
        // Its lock was never gone.
        let why = running.refuses(&["add", "twice", text(&moved)]);
        assert!(why.contains("another disk, program or mount writes to it"), "{why}");
    }
    let mut client = other.client();
    assert_eq!(client.read(2 * MIB - 512, 512), [9; 512]);
    drop(client);
    running.end();
    other.end();
    fs::remove_file(path).unwrap();
    fs::remove_file(moved).unwrap();
}

/// A refused command took the export off the list until it had counted the clients: 59 of 100
/// clients that came meanwhile heard that there is no such export. Now the disk itself counts its
/// clients ([gate-decides-once]).
#[test]
fn no_client_misses_an_export_that_a_command_fails_to_remove() {
    let running = start(&["memory:1m", "--lanes", "2"]);
    let keeper = running.client();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut caller = running.caller();
            while !is_over.load(Ordering::Relaxed) {
                caller.say(b"{\"command\":\"remove\",\"export\":\"\"}\n");
                assert!(caller.error().contains("client"));
                caller.say(&resize("", 2 * MIB, false));
                assert!(caller.error().contains("client"));
            }
        });
        let missed = (0..200).filter(|_| Client::connect(&running.socket).is_err()).count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(missed, 0, "of 200 clients heard that there is no export");
    });
    drop(keeper);
    running.end();
}

fn comes(running: &Running, name: &str) -> bool {
    // Its session may end by the next resize, but not before it knows the size.
    let client = Client::connect_to(&running.socket, name);
    client.is_ok_and(|client| client.bytes == MIB || client.bytes == 2 * MIB)
}

/// Clients that choose an export while it is resized wait for its new size ([gate-decides-once]).
#[test]
fn no_client_misses_an_export_while_it_is_resized() {
    let file = nbd::file(MIB);
    let running = start(&["memory:1m", "--export", &format!("file={}", text(&file))]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut caller = running.caller();
            for round in 0.. {
                let name = ["", "file"][round / 2 % 2];
                caller.say(&resize(name, (1 + round as u64 % 2) * MIB, true));
                let answer = caller.answer().unwrap();
                assert!(answer["ok"].is_object(), "{answer}");
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let missed = (0..400).filter(|n| !comes(&running, ["", "file"][n % 2])).count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(missed, 0, "of 400 clients heard that there is no export");
    });
    running.end();
    fs::remove_file(file).unwrap();
}

/// What an operator has set stays, rather than what the server was started with.
#[test]
fn a_resized_export_keeps_rate_and_delay() {
    let running = start(&["memory:1m", "--rate", "1", "--delay", "3600s"]);
    running.does(&["rate", "", "unlimited"]);
    running.does(&["delay", "", "0us"]);
    running.does(&["resize", "", "2m"]);
    // At the rate and the delay of the start, this would not end.
    assert_eq!(running.client().call(READ, 0, 512), 0);
    running.does(&["delay", "", "300ms"]);
    running.does(&["resize", "", "1m", "--force"]);
    let start = std::time::Instant::now();
    assert_eq!(running.client().call(READ, 0, 512), 0);
    assert!(start.elapsed() >= core::time::Duration::from_millis(300));
    running.end();
}
