//! The figures of an MMC host against what device and job say: each request's memory is made ready
//! once, at its price; the parts of the time from one transfer to the next are all of it; and an idle
//! bus waits for as many threads as a design puts between two transfers.

use blockyard::time::Duration;
use blockyard::trace::Action;
use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Report, Simulation};
use blockyard_sim::why::HostFigures;

/// `job` on an eMMC whose host takes 500 ns to map a KiB, and 300 ns to unmap it.
fn run(job: &str, design: &str) -> (Report, HostFigures) {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=1g --time_based";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let device = Device::lookup("emmc-hs400-sprd").unwrap();
    let design = Design::lookup(design).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let figures = HostFigures::of(&report).unwrap();
    (report, figures)
}

const WRITES: &str = "--rw=randwrite --bs=4k --numjobs=20 --runtime=100ms";
const READS: &str = "--rw=read --bs=4k --numjobs=20 --runtime=100ms";
/// One I/O at a time, and 300 us from the end of each to the next.
const PAUSING: &str = "--rw=randrw --bs=64k --thinktime=300us --runtime=100ms";

const DESIGNS: [&str; 6] =
    ["mmc-serial", "mmc-double-buffer-full", "mmc-mq-step4", "mmc-mq-step15", "mmc-blkmq", "hsq"];

#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "means are compared")]
fn near(part: f64, whole: u64) -> bool {
    (part - whole as f64).abs() <= 1e-6 * whole as f64
}

#[test]
#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "means are multiplied")]
fn from_one_transfer_to_the_next_the_parts_are_the_whole() {
    for design in DESIGNS {
        for job in [WRITES, READS, PAUSING] {
            let (report, figures) = run(job, design);
            let sent = |number: usize| figures.commands[number];
            let transfers = sent(17) + sent(18) + sent(24) + sent(25);
            let transfer = figures.transfer;
            let whole =
                (transfer.work_ns + transfer.idle_ns + transfer.absent_ns) * transfers as f64;
            assert!(near(whole, report.span.as_ns()), "{design} {job}: {whole}");
            let absent = if job == PAUSING { 300e3..330e3 } else { 0.0..1e3 };
            assert!(absent.contains(&transfer.absent_ns), "{design} {job}: {transfer:?}");
        }
    }
}

#[test]
fn every_transfer_is_mapped_and_unmapped_once_at_its_price() {
    for design in DESIGNS {
        let (report, _) = run(WRITES, design);
        let host = report.mmc.unwrap();
        let issued = report.stages.count(Action::Issue);
        assert!(issued > 500, "{design}");
        let times = [(host.map, 2000, "map"), (host.unmap, 1200, "unmap")];
        for (time, price_ns, name) in times {
            let spent = time.inside + time.outside;
            // Some of the requests are merged ones, and a few may not be done.
            let least = Duration::from_ns((issued - 20) * price_ns);
            let most = Duration::from_ns((issued + issued / 20) * price_ns);
            assert!(least <= spent && spent <= most, "{design}: {name} {spent:?} of {issued}");
        }
        let serial = design == "mmc-serial";
        assert_eq!(host.map.inside == Duration::ZERO, serial, "{design}");
        let late = matches!(design, "mmc-serial" | "mmc-mq-step4" | "mmc-mq-step15");
        assert_eq!(host.unmap.inside == Duration::ZERO, late, "{design}");
    }
}

#[test]
fn an_idle_bus_waits_for_threads_as_the_design_has_them() {
    // Who issues on completion wakes a thread for the status, and the next for the start; the host
    // software queue starts in the interrupt, its first version in a thread that the interrupt wakes.
    for (design, awaited) in [("mmc-blkmq", 2.0), ("hsq-v8", 1.0), ("hsq", 0.0)] {
        let (_, figures) = run(WRITES, design);
        let counted = figures.transfer.awaited_wakeups;
        assert!((counted - awaited).abs() < 0.01, "{design}: {counted}");
    }
}
