//! An operator and a hostile peer at the control socket of a running server.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;
mod operator;

use core::time::Duration;
use nbd::{Client, EIO, ENOSPC, FLUSH, READ, signal};
use operator::{Running, blockyard, rules_from_now, start, text};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use std::path::PathBuf;
use std::time::Instant;

#[test]
fn the_list_shows_exports_and_clients_with_their_rates() {
    let path = nbd::file(1 << 20);
    let of_file = format!("disk={}", text(&path));
    let running = start(&["memory:64m", "--export", &of_file, "--lanes", "2"]);
    let mut clients = [running.client(), running.client()];
    let choosing = UnixStream::connect(&running.socket).unwrap();
    let until = Instant::now() + Duration::from_millis(1500);
    let list = std::thread::scope(|threads| {
        threads.spawn(|| {
            while Instant::now() < until {
                for client in &mut clients {
                    assert_eq!(client.write(4096, &[1; 8192]), 0);
                    client.read(0, 512);
                }
            }
        });
        std::thread::sleep(Duration::from_millis(200));
        running.list()
    });
    let [default, disk] = &list["exports"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!((&default["name"], &default["kind"]), (&json!(""), &json!("memory")));
    assert_eq!((&disk["name"], &disk["kind"]), (&json!("disk"), &json!("file")));
    assert_eq!(default["size_bytes"], 64 << 20);
    assert_eq!((&default["clients"], &disk["clients"]), (&json!(2), &json!(0)));
    assert_eq!(disk["rates"]["read_bytes_per_s"], 0);
    let rates = ["reads_per_s", "writes_per_s", "read_bytes_per_s", "written_bytes_per_s"];
    let [reads, writes, read_bytes, written_bytes] =
        rates.map(|name| default["rates"][name].as_u64().unwrap());
    assert!(reads > 10, "{list}");
    // Up to a request that one of the looks has cut, and what a division leaves.
    assert!(read_bytes.abs_diff(reads * 512) < 1024, "{list}");
    assert!(written_bytes.abs_diff(writes * 8192) < 16_384, "{list}");
    let [one, two, three] = &list["clients"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!((&one["export"], &three["export"]), (&json!(""), &Value::Null));
    assert_eq!((&one["tls"], &two["requests"].as_u64().is_some()), (&Value::Null, &true));
    assert!(one["peer"].as_str().unwrap().starts_with("process "), "{list}");
    assert!(one["requests_per_s"].as_u64().unwrap() > 20, "{list}");
    assert!(one["id"].as_u64() < two["id"].as_u64(), "{list}");

    let table = running.does(&["list"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let words = ["export", "(default)", "memory", "64 MiB", "disk", "file", "1 MiB", "client"];
    assert!(words.iter().all(|word| table.contains(word)), "{table}");
    drop((clients, choosing));
    running.end();
    fs::remove_file(path).unwrap();
}

/// Returns the cells of the last row of `table` that begins with `id`.
fn last_row<'a>(table: &'a str, id: &str) -> Vec<&'a str> {
    let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.rfind(|row| row.first() == Some(&id)).unwrap()
}

/// Returns how many clients of `list` have `weight`.
fn clients_of_weight(list: &Value, weight: u32) -> usize {
    list["clients"].as_array().unwrap().iter().filter(|client| client["weight"] == weight).count()
}

#[test]
fn clients_get_weights_from_the_operator_and_by_place() {
    let path = nbd::file(1 << 20);
    let disk = text(&path).to_owned();
    let of_memory = "memory=memory:1m";
    let running = start(&[&disk, "--design", "bfq", "--export", of_memory]);
    let mut clients = [running.client(), running.client()];
    let other = Client::connect_to(&running.socket, "memory").unwrap();
    let table = running.does(&["list"]);
    assert!(!table.contains("weight"), "{table}");
    let list = running.list();
    let ids: Vec<_> =
        list["clients"].as_array().unwrap().iter().map(|it| it["id"].to_string()).collect();
    let words = format!("client {} has the weight 300, for its next requests\n", ids[0]);
    assert_eq!(running.does(&["weight", &ids[0], "300"]), words);
    let until = Instant::now() + Duration::from_millis(1500);
    let table = std::thread::scope(|threads| {
        threads.spawn(|| {
            while Instant::now() < until {
                clients.iter_mut().for_each(|client| assert_eq!(client.read(0, 512), [0; 512]));
            }
        });
        std::thread::sleep(Duration::from_millis(200));
        running.does(&["list"])
    });
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let [_, "(default)", _, share, "%", "300"] = last_row(&table, &ids[0])[..] else {
        panic!("{table}")
    };
    assert!((30..=70).contains(&share.parse::<u32>().unwrap()), "{table}");
    assert_eq!(last_row(&table, &ids[1]).last(), Some(&"-"), "{table}");

    let words = "the disk ends each request before the next begins, so that none waits";
    assert_eq!(running.refuses(&["weight", &ids[2], "300"]), error(words));
    assert_eq!(running.refuses(&["weight", "777", "3"]), error("no client has the number 777"));
    assert!(running.refuses(&["weight", &ids[0], "1001"]).contains("a weight is 1 to 1000"));
    assert!(running.refuses(&["weight", &ids[0], "0"]).contains("a weight is 1 to 1000"));
    let mut caller = running.caller();
    caller.say(b"{\"command\":\"weight\",\"client\":1,\"weight\":0}\n");
    assert_eq!(caller.answer().unwrap()["error"], "weight 0: a weight is 1 to 1000");
    drop((clients, other, caller));
    running.end();

    let of_place = start(&[&disk, "--design", "bfq", "--weight", "10.0.0.0/8=7,unix=250"]);
    let mut clients: Vec<_> = (0..16).map(|_| of_place.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.read(0, 2), [0; 2]));
    assert_eq!(clients_of_weight(&of_place.list(), 250), 15, "the sixteenth client finds no group");
    clients.remove(0).bye();
    let id = of_place.list()["clients"].as_array().unwrap().last().unwrap()["id"].to_string();
    of_place.does(&["weight", &id, "250"]);
    assert_eq!(clients_of_weight(&of_place.list(), 250), 15, "it has that of the first one");
    drop(clients);
    let words = "served without its weight 250: 15 clients of the export have weights, the most";
    assert_eq!(of_place.end().matches(words).count(), 1);
    fs::remove_file(path).unwrap();
}

#[test]
fn one_client_is_disconnected_and_the_others_are_not() {
    let running = start(&["memory:1m"]);
    let mut one = running.client();
    let mut two = running.client();
    let list = running.list();
    let ids: Vec<_> = list["clients"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    let id = ids[0].to_string();
    assert_eq!(running.does(&["disconnect", &id]), format!("client {id} is disconnected\n"));
    assert_eq!(one.stream.read(&mut [0]).unwrap(), 0, "the session ends");
    assert_eq!(two.read(0, 3), [0; 3]);
    let words = format!("blockyard: error: no client has the number {id}\n");
    assert_eq!(running.refuses(&["disconnect", &id]), words);
    let list = running.list();
    assert_eq!(list["clients"].as_array().unwrap().len(), 1);
    assert_eq!(&list["clients"][0]["id"], ids[1]);
    drop(two);
    let log = running.end();
    assert!(log.contains("after 0 requests: an operator disconnected it\n"), "{log}");
}

#[test]
fn a_drain_answers_what_is_in_flight_and_ends_the_server() {
    let running = start(&["memory:1m", "--delay", "2s"]);
    let mut client = running.client();
    for _ in 0..8 {
        client.ask(READ, 0, 512).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(running.does(&["drain"]), "the server drains and ends; 8 requests were in flight\n");
    for _ in 0..8 {
        assert_eq!(client.reply().unwrap().1, 0, "it came before the command");
        client.stream.read_exact(&mut [0; 512]).unwrap();
    }
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "the session ends");
    let log = running.ended();
    assert!(log.contains("draining, for at most 30 s, after a command to drain\n"), "{log}");
    assert!(!log.contains("signal"), "{log}");
}

fn time_of(client: &mut Client, reads: u32) -> Duration {
    let start = Instant::now();
    (0..reads).for_each(|_| assert_eq!(client.read(0, 512).len(), 512));
    start.elapsed()
}

#[test]
fn rate_and_delay_change_while_clients_are_served() {
    let running = start(&["memory:1m", "--rate", "unlimited", "--delay", "0us"]);
    let mut client = running.client();
    let ms = Duration::from_millis;
    // Far below what 20 requests per second or 100 ms for each would take.
    let quick = ms(4000);
    assert!(time_of(&mut client, 100) < quick);
    let changed = "export \"\" is changed, for waiting and later requests\n";
    assert_eq!(running.does(&["rate", "", "20iops"]), changed);
    assert!(time_of(&mut client, 21) >= ms(1000));
    let list = running.does(&["list"]);
    assert!(list.contains("(default): at most 20 requests/s; no delay\n"), "{list}");
    assert_eq!(running.does(&["rate", "", "unlimited"]), changed);
    assert!(time_of(&mut client, 100) < quick);
    assert_eq!(running.does(&["delay", "", "100ms-110ms"]), changed);
    assert!(time_of(&mut client, 5) >= ms(500));
    let list = running.list();
    let delay = json!({ "min_ns": 100_000_000, "max_ns": 110_000_000 });
    assert_eq!(
        (&list["exports"][0]["delay"], &list["exports"][0]["faults"]),
        (&delay, &Value::Null)
    );
    assert_eq!(running.does(&["delay", "", "0us"]), changed);
    assert!(time_of(&mut client, 50) < quick);
    let words = "blockyard: error: there is no export \"other\"\n";
    assert_eq!(running.refuses(&["rate", "other", "1m"]), words);
    let mut caller = running.caller();
    caller.say(b"{\"command\":\"delay\",\"export\":\"\",\"min_us\":2,\"max_us\":1}\n");
    assert_eq!(caller.error(), "the shortest delay is longer than the longest");
    drop(client);
    running.end();

    let running = start(&["memory:1m", "--delay", "0us"]);
    let words = "unknown command `stop`: one of list, disconnect, weight, rate, delay, fault, add, remove, \
                  resize, drain";
    assert_eq!(running.refuses(&["stop"]), format!("blockyard: error: {words}\n"));
    let words = "blockyard: error: export \"\" was started without --rate\n";
    assert_eq!(running.refuses(&["rate", "", "1m"]), words);
    running.end();
}

/// Writes a fault file with a rule for each `(name, lines)`.
fn rules(rules: &[(&str, &str)]) -> PathBuf {
    let path = nbd::path("toml");
    let rule = |(name, lines): &_| format!("[[rule]]\nname = \"{name}\"\n{lines}\n");
    fs::write(&path, rules.iter().map(rule).collect::<String>()).unwrap();
    path
}

fn error(words: &str) -> String {
    format!("blockyard: error: {words}\n")
}

#[test]
fn fault_rules_change_while_clients_are_served() {
    let running = start(&["memory:1m", "--fault", "none"]);
    let mut client = running.client();
    assert_eq!(client.call(FLUSH, 0, 0), 0);
    let file = rules(&[
        ("cut", "op = \"read\"\nnth = 2\nerror = \"medium\""),
        ("full", "op = \"flush\"\nerror = \"no-space\""),
    ]);
    assert_eq!(running.does(&["fault", "", text(&file)]), rules_from_now("cut, full"));
    assert!(running.does(&["list"]).contains("(default): fault rules cut, full\n"));
    assert_eq!(client.read(0, 3), [0; 3]);
    assert_eq!(client.call(READ, 0, 512), EIO);
    assert_eq!(client.read(0, 3), [0; 3]);
    assert_eq!(client.call(FLUSH, 0, 0), ENOSPC);
    let refused = rules(&[("far", "sectors = \"2048..2049\"\nerror = \"io\"")]);
    let words =
        "fault rule \"far\" cannot strike export \"\": its sectors are beyond the end of the disk";
    assert_eq!(running.refuses(&["fault", "", text(&refused)]), error(words));
    let misspelt = rules(&[("x", "lots = true")]);
    let words = running.refuses(&["fault", "", text(&misspelt)]);
    assert!(words.starts_with("blockyard: error: rules:3: unknown key `lots`"), "{words}");
    assert_eq!(client.call(FLUSH, 0, 0), ENOSPC, "a refused command changes nothing");
    assert_eq!(running.does(&["fault", "", "none"]), rules_from_now("none"));
    assert_eq!(client.call(FLUSH, 0, 0), 0);
    drop(client);
    running.end();

    let running = start(&["memory:1m", "--delay", "0us"]);
    let words = "export \"\" was started without --fault";
    assert_eq!(running.refuses(&["fault", "", "none"]), error(words));
    running.end();
    [file, refused, misspelt].iter().for_each(|path| fs::remove_file(path).unwrap());
}

fn read_until(client: &mut Client, status: u32) {
    let start = Instant::now();
    while client.call(READ, 0, 512) != status {
        if status != 0 {
            client.stream.read_exact(&mut [0; 512]).unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(20), "no read ends with {status}");
        std::thread::sleep(Duration::from_millis(10));
    }
    if status == 0 {
        client.stream.read_exact(&mut [0; 512]).unwrap();
    }
}

#[test]
fn fault_rules_fire_at_their_times_from_the_start_or_the_command() {
    let later = rules(&[("later", "op = \"read\"\nfrom = \"1s\"\nerror = \"io\"")]);
    let running = start(&["memory:1m", "--fault", text(&later)]);
    let mut client = running.client();
    read_until(&mut client, EIO);
    std::thread::sleep(Duration::from_millis(2100));
    let at_first = rules(&[("at first", "op = \"read\"\nfor = \"2s\"\nerror = \"io\"")]);
    running.does(&["fault", "", text(&at_first)]);
    read_until(&mut client, EIO);
    read_until(&mut client, 0);
    let log = running.end();
    assert!(log.contains("at first"), "{log}");
    [later, at_first].iter().for_each(|path| fs::remove_file(path).unwrap());
}

fn help(words: &[&str]) -> String {
    let output = blockyard(&[&["ctl"], words, &["--help"]].concat()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_help_of_ctl_fits_a_terminal() {
    let all = help(&[]);
    let commands = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<_> =
        commands.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(
        names[..10],
        [
            "list",
            "disconnect",
            "weight",
            "rate",
            "delay",
            "fault",
            "add",
            "remove",
            "resize",
            "drain"
        ]
    );
    for text in names[..10].iter().map(|name| help(&["x", name])).chain([all.clone()]) {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn the_list_tells_the_health_of_a_btt() {
    let path = nbd::path("btt");
    let created = blockyard(&["btt", "create", text(&path), "--size", "32m"]).output().unwrap();
    assert!(created.status.success(), "{created:?}");
    let running = start(&[text(&path), "--btt"]);
    let mut client = running.client();
    assert_eq!(client.write(0, &[1; 4096]), 0);
    let export = &running.list()["exports"][0];
    assert_eq!((&export["kind"], &export["damage"]), (&json!("btt"), &Value::Null));
    let well = json!({
        "arenas": 1, "read_only_arenas": 0, "free_blocks": 256, "broken": false, "unfinished_writes": 0
    });
    assert_eq!(export["btt"], well);
    let words = "(default): BTT with 1 arena, 256 free blocks\n";
    assert!(running.does(&["list"]).contains(words));
    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    for _ in 0..3 {
        assert_eq!(client.call(READ, 1 << 20, 4096), EIO);
    }
    let export = &running.list()["exports"][0];
    assert_eq!(export["failed_requests"], 3);
    let damage = export["damage"].as_str().unwrap();
    assert!(damage.starts_with("its file failed"), "{damage}");
    assert!(running.does(&["list"]).contains("requests fail (3 so far)\n"));
    drop(client);
    // Its last flush fails, so it ends with an error.
    signal(&running.server, "-TERM");
    assert_eq!(running.server.wait_with_output().unwrap().status.code(), Some(1));
    fs::remove_file(path).unwrap();
}

#[test]
fn hostile_input_is_answered_by_an_error_and_harms_nobody() {
    let running = start(&["memory:1m"]);
    let mut client = running.client();
    let mut caller = running.caller();
    caller.say(b"{\"command\":\"stop\"}\n");
    let known = "unknown variant `stop`, expected one of `list`, `disconnect`, ";
    assert!(caller.error().starts_with(known));
    for garbage in [&b"\n"[..], b"\xff\xfe\n", b"[[[[\n", b"{\"command\":\"list\",\"x\":0}\n"] {
        caller.say(garbage);
        assert!(!caller.error().is_empty());
    }
    caller.say(&[b"{\"x\":", &*b"[".repeat(60_000), b"\n"].concat());
    assert!(caller.error().contains("recursion"));
    // Two lines at once, in three pieces.
    caller.say(b"{\"command\":\"disconnect\",\"client\":999}\n{\"comm");
    assert_eq!(caller.error(), "no client has the number 999");
    caller.say(b"and\":\"disconnect\",\"client\":998}");
    caller.say(b"\n");
    assert_eq!(caller.error(), "no client has the number 998");

    let mut endless = running.caller();
    endless.say(&vec![b'a'; (64 << 10) + 1]);
    assert_eq!(endless.error(), "a line has at most 65536 bytes");
    assert_eq!(endless.answer(), None, "the connection ends");
    let mut half = running.caller();
    half.say(b"{\"command\":");
    half.0.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(half.error(), "the last line has no end");
    assert_eq!(half.answer(), None);

    // Silent peers make room, the oldest first. The server may count a peer as busy for a moment
    // after the peer has read its answer. A list takes a second, in which the server measures
    // rates.
    running.list();
    let mut silent: Vec<_> = (0..4).map(|_| running.caller()).collect();
    assert_eq!(running.list()["exports"].as_array().unwrap().len(), 1);
    assert_eq!(caller.answer(), None, "it was the oldest");
    assert_eq!(silent[0].answer(), None);
    silent[3].say(b"{}\n");
    assert!(silent[3].error().contains("missing field `command`"));
    assert_eq!(client.read(0, 3), [0; 3]);
    drop(client);
    running.end();
}

#[test]
fn the_socket_is_private_and_replaces_only_that_of_a_dead_server() {
    let running = start(&["memory:1m"]);
    let mode = fs::metadata(&running.control).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let args = ["serve", "null:1m", "--nbd", "127.0.0.1:0", "--control", text(&running.control)];
    let output = blockyard(&args).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let words = format!("unix:{}: another server answers there", text(&running.control));
    assert_eq!(errors, format!("blockyard: error: {words}\n"));
    assert_eq!(
        running.list()["exports"].as_array().unwrap().len(),
        1,
        "the first one serves still"
    );
    let control = running.control.clone();
    running.end();

    let absent = blockyard(&["ctl", text(&control), "list"]).output().unwrap();
    assert_eq!(absent.status.code(), Some(1));
    let errors = String::from_utf8(absent.stderr).unwrap();
    assert_eq!(
        errors,
        error(&format!("{}: No such file or directory (os error 2)", text(&control)))
    );
    drop(UnixListener::bind(&control).unwrap());
    let dead = blockyard(&["ctl", text(&control), "list"]).output().unwrap();
    let errors = String::from_utf8(dead.stderr).unwrap();
    assert_eq!(errors, error(&format!("{}: no server listens there", text(&control))));
    let socket = nbd::socket();
    let address = format!("unix:{}", text(&socket));
    let args = ["serve", "null:1m", "--nbd", &address, "--control", text(&control)];
    let server = nbd::answers(blockyard(&args).spawn().unwrap(), &socket);
    let running = Running { server, socket, control };
    assert_eq!(running.list()["exports"][0]["kind"], "null");
    running.end();
}

/// The fifth command at a time once ended with "Broken pipe".
#[test]
fn many_operators_wait_for_each_other() {
    let running = start(&["memory:1m"]);
    // Each takes a second, and four are served at a time.
    let operators: Vec<_> = (0..12)
        .map(|_| blockyard(&["ctl", text(&running.control), "list"]).spawn().unwrap())
        .collect();
    for operator in operators {
        let output = operator.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    running.end();
}

/// `ctl` once waited without a limit for a server that accepts no connection.
#[test]
fn a_command_to_a_server_that_hangs_ends_in_time() {
    let path = nbd::socket();
    let address = SocketAddrUnix::new(&path).unwrap();
    let hanging = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&hanging, &address).unwrap();
    listen(&hanging, 0).unwrap();
    // The first connection stays in the queue of the socket, which has room for no other.
    for _ in 0..2 {
        let ctl = ["ctl", text(&path), "--timeout", "200ms", "list"];
        let output = blockyard(&ctl).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains("the server does not answer within 0.2 s (--timeout)"), "{words}");
    }
    fs::remove_file(path).unwrap();
}
/// A rule that gives requests back for another try, without a limit, held the lane of the disk for
/// ever: no command reached it ([turn-is-bounded], [undone-waits-a-turn]).
#[test]
fn a_rule_that_gives_every_request_back_holds_no_lane() {
    let running = start(&[
        "memory:1m",
        "--export",
        "other=memory:1m",
        "--fault",
        "none",
        "--drain-timeout",
        "2s",
    ]);
    let file = rules(&[("again", "requeue = true")]);
    let mut client = running.client();
    let mut other = Client::connect_to(&running.socket, "other").unwrap();
    for _ in 0..2 {
        running.does(&["fault", "", text(&file)]);
        client.ask(READ, 0, 512).unwrap();
        (0..20).for_each(|_| assert_eq!(other.read(0, 3), [0; 3], "others are served"));
        running.does(&["fault", "", "none"]);
        assert_eq!(client.reply().unwrap().1, 0);
        client.stream.read_exact(&mut [0; 512]).unwrap();
    }
    running.does(&["fault", "", text(&file)]);
    client.ask(READ, 0, 512).unwrap();
    drop(other);
    signal(&running.server, "-TERM");
    let output = running.server.wait_with_output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("requests in flight did not end in time"), "{log}");
    fs::remove_file(file).unwrap();
}

fn waits_until(running: &Running, client: &mut Client, changes: &[&[&str]]) {
    client.ask(READ, 0, 512).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    changes.iter().for_each(|change| drop(running.does(change)));
    assert_eq!(client.reply().unwrap().1, 0);
    client.stream.read_exact(&mut [0; 512]).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "the request ends after the change");
}

/// A read under 1 B/s, or a delay of hours, waited on when the operator had lifted the limit.
#[test]
fn a_changed_rate_or_delay_applies_to_requests_that_wait() {
    let running = start(&["memory:1m", "--rate", "1", "--delay", "0us"]);
    let mut client = running.client();
    waits_until(&running, &mut client, &[&["rate", "", "unlimited"]]);
    running.does(&["delay", "", "1000s"]);
    waits_until(&running, &mut client, &[&["delay", "", "2000s"], &["delay", "", "1ms"]]);
    drop(client);
    running.end();
}
