//! Traces show when an MMC host unmaps a request's memory: under full overlap while another
//! transfer is on the bus, and after step four of the multiqueue series of 2017 while the bus is
//! idle.

mod folder;
mod traced;

use std::fs;

use blockyard_sim::simulate::Report;
use folder::Folder;
use serde_json::Value;
use traced::CASES;

/// A slice of the trace, with its start and end in ns.
#[derive(Debug)]
struct Slice {
    from: u64,
    until: u64,
    /// The slot of the request's memory.
    slot: Option<u64>,
    name: String,
}

impl Slice {
    fn lies_in(&self, other: &Self) -> bool {
        other.from <= self.from && self.until <= other.until
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.from < other.until && other.from < self.until
    }
}

#[expect(clippy::float_arithmetic, reason = "serde_json reads a number with a point as a float")]
#[expect(clippy::cast_possible_truncation, reason = "a test runs for less than a second")]
#[expect(clippy::cast_sign_loss, reason = "no time is negative")]
fn ns(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

/// A trace of an MMC host and the report of its run.
struct Traced {
    report: Report,
    events: Vec<Value>,
}

fn named<'a>(events: &'a [Value], what: &str, name: &str) -> Vec<&'a Value> {
    let is = |event: &&Value| {
        event["name"] == what && event["args"]["name"].as_str().unwrap().ends_with(name)
    };
    events.iter().filter(is).collect::<Vec<_>>()
}

impl Traced {
    fn of(test: &str, case: &str) -> Self {
        let folder = Folder::new(test);
        let case = CASES.iter().find(|known| known.name == case).unwrap();
        let report = case.run(&folder.0, true, false);
        let text = fs::read_to_string(case.perfetto(&folder.0)).unwrap();
        let trace: Value = serde_json::from_str(&text).unwrap();
        Self { report, events: trace["traceEvents"].as_array().unwrap().clone() }
    }

    /// Returns the slices of `process` on tracks whose name ends in `track`.
    fn slices(&self, process: &str, track: &str) -> Vec<Slice> {
        let pid = &named(&self.events, "process_name", process)[0]["pid"];
        let of_process =
            named(&self.events, "thread_name", track).into_iter().filter(|at| at["pid"] == *pid);
        let tids: Vec<_> = of_process.map(|event| &event["tid"]).collect();
        let slices = self.events.iter().filter(|event| {
            event["ph"] == "X" && event["pid"] == *pid && tids.contains(&&event["tid"])
        });
        let slice = |event: &Value| {
            let from = ns(&event["ts"]);
            Slice {
                from,
                until: from + ns(&event["dur"]),
                slot: event["args"]["slot"].as_u64(),
                name: event["name"].as_str().unwrap().to_owned(),
            }
        };
        slices.map(slice).collect()
    }

    fn transactions(&self) -> Vec<Slice> {
        self.slices("bus", "transactions")
    }

    /// Returns the slices called `name` that processors spent in the driver.
    fn acts(&self, name: &str) -> Vec<Slice> {
        let all = self.slices("processors", "");
        all.into_iter().filter(|slice| slice.name == name && slice.slot.is_some()).collect()
    }
}

#[test]
fn full_overlap_unmaps_during_another_transfer() {
    let traced = Traced::of("overlap", "mmc-overlap");
    let unmaps = traced.acts("unmap");
    let bus = traced.transactions();
    let beside =
        |unmap: &&Slice| bus.iter().any(|other| unmap.lies_in(other) && other.slot != unmap.slot);
    let inside = unmaps.iter().filter(beside).count();
    // No transfer follows the last one.
    assert!(inside > 10 && inside + 1 >= unmaps.len(), "{inside} of {}", unmaps.len());

    let counted = traced.report.family.mmc.as_ref().unwrap().unmap;
    assert!(counted.inside.as_ns() > 10 * counted.outside.as_ns(), "{counted:?}");
}

#[test]
fn step_four_unmaps_while_the_bus_is_idle() {
    let traced = Traced::of("step-four", "mmc-step-four");
    let unmaps = traced.acts("unmap");
    let bus = traced.transactions();
    assert!(unmaps.len() > 10);
    for unmap in &unmaps {
        let beside = bus.iter().find(|other| unmap.overlaps(other));
        assert!(beside.is_none(), "{unmap:?} beside {beside:?}");
    }
    // Step four did not move mapping.
    let maps = traced.acts("map");
    let beside = |map: &&Slice| bus.iter().any(|other| map.lies_in(other));
    assert!(maps.iter().filter(beside).count() + 2 >= maps.len());

    let report = traced.report.family.mmc.as_ref().unwrap();
    assert_eq!(report.unmap.inside.as_ns(), 0);
    assert!(report.unmap.outside > report.map.outside, "{report:?}");
}

#[test]
fn cmd13_follows_each_write_except_under_the_host_software_queue() {
    for (case, asked) in [("mmc-status", 1), ("mmc-hsq", 0)] {
        let traced = Traced::of("asked", case);
        let report = traced.report.family.mmc.as_ref().unwrap();
        let writes = report.commands[24] + report.commands[25];
        assert!(writes > 500, "{case}: {writes}");
        assert_eq!(report.commands[13], asked * writes, "{case}");
    }
}

#[test]
fn busy_time_lies_in_the_transaction_only_if_the_controller_waits() {
    for (case, waits) in [("mmc-status", true), ("mmc-hsq", true), ("mmc-polled", false)] {
        let traced = Traced::of("busy", case);
        let bus = traced.transactions();
        let busy = traced.slices("bus", "card busy");
        let report = traced.report.family.mmc.as_ref().unwrap();
        assert_eq!(busy.len() as u64, report.commands[24] + report.commands[25], "{case}");
        let with_memory: Vec<_> = bus.iter().filter(|slice| slice.slot.is_some()).collect();
        let is_where_it_belongs = busy.iter().all(|busy| {
            with_memory.iter().any(|other| match waits {
                true => busy.lies_in(other),
                false => other.until == busy.from,
            })
        });
        assert!(is_where_it_belongs, "{case}");
    }
}

#[test]
fn transactions_match_the_report() {
    for case in ["mmc-overlap", "mmc-step-four", "mmc-status", "mmc-polled", "mmc-hsq"] {
        let traced = Traced::of("counted", case);
        let report = traced.report.family.mmc.as_ref().unwrap();
        let bus = traced.transactions();
        let time: u64 = bus.iter().map(|slice| slice.until - slice.from).sum();
        assert_eq!(time, report.bus_busy.as_ns(), "{case}");
        let words = bus.iter().flat_map(|slice| slice.name.split(' '));
        for (number, counted) in report.commands.iter().enumerate() {
            let name = format!("CMD{number}");
            let there = words.clone().filter(|word| **word == name).count();
            assert_eq!(there as u64, *counted, "{case}: {name}");
        }
    }
}
