//! A host that leaves transfers open sends one command for requests in sequence. Any other request
//! ([open-transfer-closes-first]), a flush ([flush-closes-transfer]) and a pause close it.

use blockyard_devices::mmc::host::HostReport;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

/// Runs eight I/Os of 4 KiB, one at a time, on a card whose writes take 100 us for each command.
fn run(design: &str, job: &str) -> HostReport {
    let common = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=32k --io_size=32k --bs=4k";
    let jobs = parse_args(common.split(' ').chain(job.split(' ')), &NoSource).unwrap();
    let device =
        "base = \"sd-hs\"\n[card]\ndeterministic = true\n[card.write]\ncommand = \"100us\"";
    let device = Device::parse("card", device).unwrap();
    let design = Design::lookup(design).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    report.family.mmc.unwrap()
}

/// Returns the number of commands that begin transfers, of those that stop one, and of transfers
/// without a command.
fn counts(design: &str, job: &str) -> (u64, u64, u64) {
    let report = run(design, job);
    let begun = [17, 18, 24, 25].map(|number| report.commands[number]).iter().sum();
    (begun, report.commands[12], report.continued.iter().sum())
}

const OPEN: &str = "mmc-blkmq-left-open";

#[test]
fn requests_in_sequence_share_a_command() {
    for job in ["--rw=write", "--rw=read"] {
        // The cards of `sd-hs` take CMD23, so transfers are announced.
        assert_eq!(counts("mmc-blkmq", job), (8, 0, 0), "{job}");
        // The run ends before the limit of 5 ms has passed.
        assert_eq!(counts(OPEN, job), (1, 0, 7), "{job}");
    }
}

/// The path of a host decides when a transfer ends, not whether it continues.
#[test]
fn every_pipeline_leaves_transfers_open() {
    for base in ["mmc-double-buffer-full", "mmc-mq-step15", "hsq", "hsq-v8-atomic", "mmc-pio"] {
        let text = format!("base = \"{base}\"\n[host]\ntransfers = \"left-open\"");
        let path = std::env::temp_dir().join(format!("blockyard-left-open-{base}.toml"));
        std::fs::write(&path, text).unwrap();
        assert_eq!(counts(path.to_str().unwrap(), "--rw=write"), (1, 0, 7), "{base}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn every_flush_closes_the_transfer() {
    // fio syncs before the next write, so none of these flushes follows the last one.
    assert_eq!(counts(OPEN, "--rw=write --fsync=1"), (8, 7, 0));
    assert_eq!(counts(OPEN, "--rw=write --fsync=4"), (2, 1, 6));
}

#[test]
fn a_request_elsewhere_closes_the_transfer() {
    // A random order of eight blocks: the seed of fio has no two of them in sequence more than
    // twice, so most requests close the transfer of the one before.
    let (begun, stopped, continued) = counts(OPEN, "--rw=randwrite");
    assert!(begun + continued == 8 && begun >= 5 && stopped == begun - 1, "{begun} {stopped}");
}

#[test]
fn a_pause_closes_the_transfer_once_it_has_lasted_for_the_limit() {
    // The limit is 5 ms.
    assert_eq!(counts(OPEN, "--rw=write --thinktime=4ms"), (1, 0, 7));
    let (begun, stopped, continued) = counts(OPEN, "--rw=write --thinktime=20ms");
    assert_eq!((begun, continued), (8, 0));
    assert!((7..=8).contains(&stopped), "{stopped}");
}
