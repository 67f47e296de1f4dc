//! Each counter that a drive prints has a row in the table of docs/DEVICES.md.

use blockyard_devices::counters::{COUNTERS, Counter};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// [every-counter-is-explained]
#[test]
fn each_medium_has_the_counters_that_are_explained() {
    for (name, medium) in [
        ("nvme-tlc", "flash"),
        ("nvme-3dxpoint", "crosspoint"),
        ("hdd-7200", "platters"),
        ("cloud-gp3", "volume"),
    ] {
        let options = "--name=x --direct=1 --rw=randread --bs=4k --size=64k --filename=drive";
        let jobs = parse_args(options.split_whitespace(), &NoSource).unwrap();
        let (device, design) = (Device::lookup(name).unwrap(), Design::lookup("mq-none").unwrap());
        let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
        let printed: Vec<_> = report.drive.unwrap().medium.iter().map(|(name, _)| *name).collect();
        let explained = COUNTERS.iter().filter(|of| of.medium == medium).map(|of| of.name);
        assert_eq!(printed, explained.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn the_table_of_the_documents_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/DEVICES.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("\n## Counters of media\n").unwrap();
    let rows: Vec<_> = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let of_code = COUNTERS.iter().map(|of| {
        let Counter { medium, name, meaning, reading } = of;
        format!("| `{medium}` | `{name}` | {} | {meaning} | {reading} |", of.unit())
    });
    assert_eq!(rows, of_code.collect::<Vec<_>>());
}
