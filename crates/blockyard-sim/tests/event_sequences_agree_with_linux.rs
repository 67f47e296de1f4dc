//! What null_blk did under Linux, and what we do for the same job.

use blockyard::bio::Op;
use blockyard::trace::{Action, Event, Sink};
use blockyard_sim::job::{NoSource, parse_bytes};
use blockyard_sim::observe::Observer;
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Conditions, Simulation};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Recorder(Vec<String>);

impl Sink for Recorder {
    fn event(&mut self, event: &Event<'_>) {
        let Some(letter) = event.action.letter() else { return };
        let kind = match event.op {
            Op::Read => "R",
            Op::Write => "W",
            Op::Discard => "D",
            Op::Flush => "F",
            _ => "?",
        };
        let range = format!("{}+{}", event.sector, event.sectors);
        self.0.push(match event.action {
            Action::Plug => "P".to_owned(),
            Action::Unplug { requests, .. } => format!("U {requests}"),
            Action::Split => {
                format!("X {kind} {range} / {}", event.sector + u64::from(event.sectors))
            }
            _ => format!("{letter} {kind} {range}"),
        });
    }
}
impl Observer for Recorder {}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/null_blk")
}

fn simplify(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    if words[1] == "N" {
        words.remove(1);
        return words.join(" ");
    }
    words[1] = match words[1].trim_end_matches(['S', 'M']) {
        "FW" => "F",
        "WF" => "W",
        k => k,
    };
    words.join(" ")
}

fn simulate(name: &str, scheduler: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(format!("{name}.fio"))).unwrap();
    let mut params: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        for prefix in ["; null_blk: ", "; queue: "] {
            if let Some(rest) = line.strip_prefix(prefix) {
                params.extend(rest.split(' ').map(|pair| {
                    let (k, v) = pair.split_once('=').unwrap();
                    (k.to_owned(), v.to_owned())
                }));
            }
        }
    }
    let param =
        |key: &str| params.iter().find(|(k, _)| k == key).map(|(_, v)| v.parse::<u64>().unwrap());
    let mut max = param("max_sectors").unwrap_or(255);
    if let Some(kb) = param("max_sectors_kb") {
        max = max.min(kb * 2);
    }
    let completion = ["none", "softirq", "timer"][param("irqmode").unwrap() as usize];
    let device = format!(
        "base = \"null\"\n[limits]\nmax-sectors = {max}\nmax-discard-sectors = {}\n[null]\ncompletion = \"{completion}\"\n\
         completion-time = \"{}ns\"\nsubmit-queues = {}\ndepth = {}\n[cpu]\ncpus = 4\n",
        if param("discard") == Some(1) { 255 } else { 0 },
        param("completion_nsec").unwrap(),
        param("submit_queues").unwrap(),
        param("hw_queue_depth").unwrap(),
    );
    let device = Device::parse("null_blk", &device).unwrap();
    let mut design = format!("base = \"mq-{scheduler}\"\n").replace("mq-mq-", "mq-");
    if let Some(depth) = param("nr_requests") {
        design += &format!(
            "[queue]
sched-depth = {depth}
[queue.deadline]
"
        );
        for (key, name, unit) in [
            ("read_expire", "read-expire", "ms"),
            ("write_expire", "write-expire", "ms"),
            ("writes_starved", "writes-starved", ""),
            ("fifo_batch", "fifo-batch", ""),
            ("front_merges", "front-merges", "?"),
        ] {
            if let Some(v) = param(&format!("iosched/{key}")) {
                let value = match unit {
                    "ms" => format!("\"{v}ms\""),
                    "?" => (v == 1).to_string(),
                    _ => v.to_string(),
                };
                design += &format!(
                    "{name} = {value}
"
                );
            }
        }
    }
    let design = Design::parse("today", &design).unwrap();
    let jobs = parse_bytes(name, text.as_bytes(), &NoSource).unwrap();
    let mut recorder = Recorder::default();
    let mut simulation =
        Simulation::observed(&jobs, &device, &design, Conditions::new(1), &mut recorder).unwrap();
    while simulation.advance(1000).unwrap() {}
    drop(simulation);
    recorder.0
}

#[test]
fn all() {
    let mut names: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| !n.ends_with(".fio"))
        .collect();
    names.sort();
    let mut bad = 0;
    for name in names {
        let (job, scheduler) = name.rsplit_once('.').unwrap();
        let text = fs::read_to_string(folder().join(&name)).unwrap();
        let theirs: Vec<String> = text.lines().map(simplify).collect();
        let ours = std::panic::catch_unwind(|| simulate(job, scheduler)).unwrap_or_default();
        if let Ok(dir) = std::env::var("OUT") {
            fs::write(format!("{dir}/{name}.ours"), ours.join("\n") + "\n").unwrap();
            fs::write(format!("{dir}/{name}.theirs"), theirs.join("\n") + "\n").unwrap();
        }
        let count = |list: &[String], l: char| list.iter().filter(|e| e.starts_with(l)).count();
        let counts = |list: &[String]| {
            "QXMFGPUIDCS"
                .chars()
                .map(|l| format!("{l}{}", count(list, l)))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let only = |list: &[String], l: char| -> Vec<String> {
            list.iter().filter(|e| e.starts_with(l)).cloned().collect()
        };
        let same_d = only(&ours, 'D') == only(&theirs, 'D');
        let same = ours == theirs;
        if !same_d || counts(&ours) != counts(&theirs) {
            bad += 1;
            println!(
                "{name}: D {same_d}\n   ours   {}\n   theirs {}",
                counts(&ours),
                counts(&theirs)
            );
        } else {
            println!("{name}: ok, whole sequence {same}");
        }
    }
    println!("{bad} differ");
}
