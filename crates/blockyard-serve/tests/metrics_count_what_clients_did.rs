//! The metrics count the clients' requests in Prometheus' format, and bad HTTP requests are
//! refused.

mod nbd;

use blockyard::bio::Op;
use blockyard::layer::fault::{Action, FaultRule, Turns, When};
use blockyard::policy::Policies;
use blockyard::status::Status;
use blockyard_serve::{Address, DiskConfig, Layers, Source, Weight};
use nbd::{Client, FLUSH, READ, Running, TRIM, disk, file, memory};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn start(lanes: usize, disk: DiskConfig) -> Running {
    start_as(Policies::mq_deadline(), lanes, disk)
}

fn start_as(policies: Policies, lanes: usize, disk: DiskConfig) -> Running {
    Running::start(DiskConfig { policies, ..disk }, |config| {
        config.metrics = Some("127.0.0.1:0".to_owned());
        config.lanes = lanes;
        let second = DiskConfig { name: "a \"b\"".to_owned(), ..memory(4096) };
        config.disks.push(second);
    })
}

fn ask(running: &Running, question: &[u8]) -> String {
    let Some(Address::Tcp(address)) = running.server.metrics_address() else {
        panic!("the server has metrics")
    };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(question).unwrap();
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer)); // a reset is an answer too
    String::from_utf8(answer).unwrap()
}

fn metrics(running: &Running) -> String {
    let answer = ask(running, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", text.len())), "{head}");
    text.to_owned()
}

/// Returns the samples by name and labels. Asserts that none is repeated and that its TYPE line
/// comes first.
fn samples(text: &str) -> BTreeMap<&str, f64> {
    assert!(text.ends_with('\n'));
    let mut samples = BTreeMap::new();
    let mut families = Vec::new();
    for line in text.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(!families.contains(&name), "{line}");
            families.push(name);
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let family = name.split('{').next().unwrap();
            let last = families.last().unwrap();
            let of_histogram = ["_bucket", "_sum", "_count"].map(|end| format!("{last}{end}"));
            assert!(family == *last || of_histogram.iter().any(|name| name == family), "{line}");
            assert!(samples.insert(name, value.parse().unwrap()).is_none(), "{line}");
        }
    }
    samples
}

/// A client has its bytes and weight where the disk is shared by weights, and nowhere else.
#[test]
fn clients_of_a_shared_disk_have_bytes_and_weights() {
    let path = file(1 << 20);
    let on_file = disk(Source::File { path: path.clone(), buffered: true });
    let weights = vec![("unix".parse().unwrap(), Weight::try_from(300).unwrap())];
    let running = start_as(Policies::mq_bfq(), 1, DiskConfig { weights, ..on_file });
    let mut client = running.client();
    assert_eq!(client.write(0, &[1; 8192]), 0);
    assert_eq!(client.read(512, 512), [1; 512]);
    assert_eq!(client.call(TRIM, 0, 4096), 0);
    let mut other = Client::connect_to(&running.socket, "a \"b\"").unwrap();
    assert_eq!(other.read(0, 512), [0; 512]);
    let text = metrics(&running);
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("blockyard_client_")).collect();
    let [bytes, weight] = &lines[..] else { panic!("{lines:?}") };
    let start = "blockyard_client_bytes_total{device=\"(default)\",client=\"";
    assert!(bytes.starts_with(start) && bytes.ends_with("\"} 8704"), "{bytes}");
    assert!(weight.ends_with("\"} 300"), "{weight}");
    samples(&text);
    running.stop();
    std::fs::remove_file(path).unwrap();
}

#[test]
fn counts_match_what_clients_did() {
    let path = file(1 << 20);
    let running = start(2, disk(Source::File { path: path.clone(), buffered: true }));
    let before = metrics(&running);
    assert_eq!(samples(&before)["node_disk_reads_completed_total{device=\"(default)\"}"], 0.0);
    let mut one = running.client();
    let mut two = running.client();
    for at in 0..7 {
        assert_eq!(one.call(READ, at * 8192, 4096), 0);
        drain(&mut one, 4096);
    }
    for at in 0..5 {
        assert_eq!(two.write(at * 16_384, &[1; 8192]), 0);
    }
    assert_eq!(two.call(TRIM, 0, 65_536), 0);
    assert_eq!(one.call(FLUSH, 0, 0), 0);

    let text = metrics(&running);
    let found = samples(&text);
    fn of(name: &str, found: &BTreeMap<&str, f64>) -> f64 {
        found[&*format!("{name}{{device=\"(default)\"}}")]
    }
    assert_eq!(of("node_disk_reads_completed_total", &found), 7.0);
    assert_eq!(of("node_disk_read_bytes_total", &found), 7.0 * 4096.0);
    assert_eq!(of("node_disk_writes_completed_total", &found), 5.0);
    assert_eq!(of("node_disk_written_bytes_total", &found), 5.0 * 8192.0);
    assert_eq!(of("node_disk_discards_completed_total", &found), 1.0);
    assert_eq!(of("node_disk_discarded_bytes_total", &found), 65_536.0);
    assert_eq!(of("node_disk_io_now", &found), 0.0);
    assert!(of("node_disk_read_time_seconds_total", &found) > 0.0);
    // An I/O on a file ends in a later turn than it begins. Clients of other lanes add no turns.
    assert!((1.0..100.0).contains(&of("blockyard_answer_turns_max", &found)));
    assert_eq!(found["blockyard_answer_turns_max{device=\"a \\\"b\\\"\"}"], 0.0);
    assert_eq!(found["blockyard_connections"], 2.0);
    assert_eq!(found["node_disk_reads_completed_total{device=\"a \\\"b\\\"\"}"], 0.0);

    let labels = "device=\"(default)\",stage=\"total\",op=\"read\"";
    fn duration(end: &str, found: &BTreeMap<&str, f64>) -> f64 {
        found[&*format!("blockyard_request_duration_seconds_{end}")]
    }
    assert_eq!(duration(&format!("count{{{labels}}}"), &found), 7.0);
    assert_eq!(duration(&format!("bucket{{{labels},le=\"+Inf\"}}"), &found), 7.0);
    let buckets: Vec<_> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix(&format!("blockyard_request_duration_seconds_bucket{{{labels},le=\""))
        })
        .map(|rest| rest.split_once("\"} ").unwrap())
        .map(|(end, count)| (end.parse::<f64>().unwrap(), count.parse::<u64>().unwrap()))
        .collect();
    assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
    check_by_promtool(&text);
    drop((one, two));
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// Each fault rule of a disk has its own line. Without rules there are no such lines.
#[test]
fn faults_are_counted_by_rule() {
    let rule = FaultRule {
        name: "third".to_owned(),
        when: When { ops: vec![Op::Write], turns: Turns::Between(3, 3), ..When::default() },
        then: Action::Error(Status::Medium),
    };
    let layers = Layers { faults: Some(vec![rule]), ..Layers::default() };
    let running = start(1, DiskConfig { layers, ..memory(1 << 20) });
    let mut client = running.client();
    let errors = [0, 1, 2, 3].map(|at| client.write(at * 4096, &[1; 4096]));
    assert_eq!(errors, [0, 0, nbd::EIO, 0]);
    let text = metrics(&running);
    let found = samples(&text);
    fn of(name: &str, found: &BTreeMap<&str, f64>) -> f64 {
        found[&*format!("blockyard_fault_{name}_total{{device=\"(default)\",rule=\"third\"}}")]
    }
    assert_eq!((of("matched", &found), of("fired", &found)), (4.0, 1.0));
    check_by_promtool(&text);
    client.bye();
    running.stop();
    let running = start(1, memory(1 << 20));
    assert!(!metrics(&running).contains("blockyard_fault"));
    running.stop();
}

fn drain(client: &mut nbd::Client, bytes: usize) {
    client.stream.read_exact(&mut vec![0; bytes]).unwrap();
}

/// Runs Prometheus' own checker, if it is installed.
fn check_by_promtool(text: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else {
        assert!(std::env::var_os("CI").is_none(), "CI requires promtool");
        eprintln!("skipped: promtool is not installed");
        return;
    };
    tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = tool.wait_with_output().unwrap();
    // Exit code 3 is about style; the names are node_exporter's.
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{errors}");
}

#[test]
fn health_is_reported_and_bad_requests_are_refused() {
    let running = start(1, memory(4096));
    assert!(ask(&running, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok\n"));
    let head = ask(&running, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(ask(&running, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask(&running, b"PUT /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask(&running, b"\x16\x03\x01\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let endless = [&b"GET /metrics HTTP/1.1\r\nA: "[..], &[b'a'; 12_000]].concat();
    ask(&running, &endless);

    // The server does not wait long for a silent peer.
    let Some(Address::Tcp(address)) = running.server.metrics_address() else {
        panic!("the server has metrics")
    };
    let _silent = TcpStream::connect(address).unwrap();
    let start = Instant::now();
    assert!(ask(&running, b"GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"));
    assert!(start.elapsed() < Duration::from_secs(10));
    running.stop();
}
