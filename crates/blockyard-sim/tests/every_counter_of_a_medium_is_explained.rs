//! Each counter that a drive prints has an entry in the page of its family in docs/devices.

use blockyard_devices::counters::{Counter, counters};
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
        let device = Device::lookup(name).unwrap();
        let design = Design::lookup("mq-none").unwrap();
        let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
        let printed: Vec<_> =
            report.family.drive.unwrap().disks[0].medium.iter().map(|(name, _)| *name).collect();
        let explained = counters().filter(|(of, _)| *of == medium).map(|(_, of)| of.name);
        assert_eq!(printed, explained.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn the_lists_of_the_documents_are_those_of_the_code() {
    for (medium, page) in [
        ("flash", include_str!("../../../docs/devices/flash.md")),
        ("crosspoint", include_str!("../../../docs/devices/crosspoint.md")),
        ("platters", include_str!("../../../docs/devices/disk.md")),
        ("volume", include_str!("../../../docs/devices/volume.md")),
    ] {
        let (_, section) = page.split_once("\n## Counters\n").unwrap();
        let list = &section[section.find("\n- ").unwrap()..];
        // Lines of a page may break anywhere.
        let shown = list.split_whitespace().collect::<Vec<_>>().join(" ");
        let of_code = counters().filter(|(of, _)| *of == medium).map(|(_, of)| {
            let Counter { name, meaning, reading } = of;
            format!("- `{name}` ({}): {meaning}. {reading}", of.unit())
        });
        assert_eq!(shown, of_code.collect::<Vec<_>>().join(" "), "{medium}");
    }
}
