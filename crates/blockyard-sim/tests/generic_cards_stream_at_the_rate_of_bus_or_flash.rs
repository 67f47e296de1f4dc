//! The generic eMMC devices and SD cards. Each has the rate of its bus mode from the standard, frames
//! included, or the rate of its flash from its profile. A stream of reads reaches the slower of the two minus
//! the host's time between transfers; a stream of writes reaches the rate of the flash.

use blockyard_sim::answer::Figures;
use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::Simulation;

/// Each device with its sequential read and write rates in MB/s.
const CARDS: [(&str, u64, u64); 9] = [
    ("sd-default", 12, 4),
    ("sd-hs", 24, 10),
    ("sd-sdr50", 49, 20),
    ("sd-ddr50", 48, 20),
    ("sd-sdr104", 95, 60),
    ("emmc-hs", 50, 20),
    ("emmc-ddr52", 97, 40),
    ("emmc-hs200", 193, 90),
    ("emmc-hs400", 300, 150),
];

/// Measures the MB/s of `rw` on `device`, with 512 KiB at a time.
fn rate(device: &str, rw: &str) -> u64 {
    let args = ["--name=x", "--direct=1", "--bs=512k", "--size=1g", "--time_based", "--runtime=1s"];
    let jobs = parse_args(args.into_iter().chain([rw]), &NoSource).unwrap();
    let device = Device::lookup(device).unwrap();
    let design = Design::lookup("mmc-blkmq").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    Figures::of(&report, 1).bytes_per_s / 1_000_000
}

#[test]
fn generic_cards_stream_at_the_rate_of_bus_or_flash() {
    for (device, read, written) in CARDS {
        let reads = rate(device, "--rw=read");
        assert!((read * 84 / 100..=read + 1).contains(&reads), "{device} reads {reads} of {read}");
        let writes = rate(device, "--rw=write");
        let about = written * 94 / 100..=written * 108 / 100 + 1;
        assert!(about.contains(&writes), "{device} writes {writes} for {written}");
    }
}
