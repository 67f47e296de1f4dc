//! The generic eMMC devices and SD cards. Each has the rate of its bus mode from the standard,
//! frames included, or the rate of its flash from its profile. A stream of reads reaches the slower
//! of the two minus the host's time between transfers; a stream of writes reaches the rate of the
//! flash. Their times spread as those of cards that were measured.

use blockyard_answer::Figures;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// Each device with its sequential read and write rates in MB/s.
const CARDS: [(&str, u64, u64); 16] = [
    ("sd-default", 12, 4),
    ("sd-hs", 24, 10),
    ("sd-sdr50", 49, 20),
    ("sd-ddr50", 48, 20),
    ("sd-sdr104", 95, 60),
    ("emmc-hs", 50, 20),
    ("emmc-ddr52", 97, 40),
    ("emmc-hs200", 128, 90),
    ("emmc-hs400", 204, 120),
    ("sd-noname", 24, 10),
    ("sd-a1", 95, 25),
    ("sd-a2", 95, 40),
    ("sd-endurance", 95, 35),
    ("emmc-45", 128, 50),
    ("emmc-51-small", 170, 56),
    ("emmc-51-large", 300, 150),
];

/// Measures the MB/s of `rw` on `device`, with 512 KiB at a time.
fn rate(device: &str, rw: &str) -> u64 {
    let args = ["--name=x", "--direct=1", "--bs=512k", "--size=1g", "--time_based", "--runtime=1s"];
    let jobs = parse_args(args.into_iter().chain([rw]), &NoSource).unwrap();
    let steady = format!("base = \"{device}\"\n[card]\ndeterministic = true");
    let device = Device::parse("steady", &steady).unwrap();
    let design = Design::lookup("mmc-blkmq-4.16").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    Figures::of(&report, 1).bytes_per_s / 1_000_000
}

#[test]
fn generic_cards_stream_at_the_rate_of_bus_or_flash() {
    for (device, read, written) in CARDS {
        let reads = rate(device, "--rw=read");
        // A host whose processors sleep after 1.5 ms wakes two or three of them for 512 KiB: at 300
        // MB/s that is 1.75 ms, and 0.28 to 0.42 ms more.
        assert!((read * 79 / 100..=read + 1).contains(&reads), "{device} reads {reads} of {read}");
        let writes = rate(device, "--rw=write");
        let about = written * 94 / 100..=written * 108 / 100 + 1;
        assert!(about.contains(&writes), "{device} writes {writes} for {written}");
    }
}

/// The percentiles of [`writes_of_a_mib`], in thousandths.
const PERCENTILES: [u32; 6] = [10_000, 50_000, 90_000, 95_000, 99_000, 99_500];

/// Returns the percentiles of the latency of 4096 sequential writes of 1 MiB, in ms.
fn writes_of_a_mib(device: &Device) -> [u64; 6] {
    let args = ["--name=x", "--direct=1", "--rw=write", "--bs=1m", "--size=4g"];
    let jobs = parse_args(args, &NoSource).unwrap();
    let design = Design::lookup("mmc-blkmq-4.16").unwrap();
    let report = Simulation::new(&jobs, device, &design, 1).unwrap().finish().unwrap();
    let written = report.jobs[0].stats.ops.write.as_ref().unwrap();
    PERCENTILES.map(|at| written.clat_ns.percentile(at) / 1_000_000)
}

/// The percentiles of two cards that were published in armbian/build#10613. The spreads were fitted
/// to them.
#[test]
fn writes_spread_as_those_of_measured_cards() {
    let emmc = Device::lookup("emmc-51-small").unwrap();
    let sd = "base = \"sd-sdr104\"\n[card.write]\nprogram = \"440us\"";
    let sd = Device::parse("measured", sd).unwrap();
    for (device, published) in [(emmc, [18, 19, 20, 22, 28, 28]), (sd, [13, 29, 43, 82, 95, 106])] {
        let ours = writes_of_a_mib(&device);
        let near = |(ours, published): (&u64, &u64)| ours.abs_diff(*published) * 5 <= *published;
        let all = ours.iter().zip(&published).all(near);
        assert!(all, "{}: {ours:?} ms for {published:?}, at {PERCENTILES:?}", device.name);
    }
}
