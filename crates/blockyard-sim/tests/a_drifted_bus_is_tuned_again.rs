//! A bus in a tuned mode that has drifted, or that has transferred damaged data, is tuned before
//! the next transfer: in its mode, or in HS200 with a return to HS400. If the tuning fails, the
//! card is reset.

use blockyard_devices::profile::{Design, Device, FaultRules};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_mmc::block::Counts;
use blockyard_sim::simulate::{Conditions, Report, Simulation};

/// Runs a few thousand random reads in `timing`, with faults of the host and of the card.
fn reads(base: &str, timing: &str, design: &str, host: &str, card: &str) -> (Report, Counts) {
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=64m --rw=randread --bs=4k --numjobs=4 \
               --number_ios=300";
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let device = format!("base = \"{base}\"\n[card]\ntiming = \"{timing}\"\n");
    let device = Device::parse("card", &device).unwrap();
    let faults = format!("[host]\n{host}\n[card]\n{card}");
    let faults = FaultRules::parse("faults.toml", &faults).unwrap();
    let design = Design::lookup(design).unwrap();
    let conditions = Conditions { faults: Some(&faults), ..Conditions::new(1) };
    let mut simulation = Simulation::under(&jobs, &device, &design, conditions).unwrap();
    while simulation.advance(1000).unwrap() {}
    let counts = simulation.world().host.driver.model().mmc().unwrap().counts();
    (simulation.report(), counts)
}

fn command(report: &Report, number: usize) -> u64 {
    report.family.mmc.as_ref().unwrap().commands[number]
}

/// The number of blocks in one tuning.
const BLOCKS: u64 = 40;

#[test]
fn a_tuning_sends_the_commands_of_its_mode() {
    // The command that requests the block, and the switches of each tuning.
    for (base, timing, tuned_by, switches) in [
        ("emmc-hs400-sprd", "emmc-hs200", Some(21), 0),
        ("emmc-hs400-sprd", "emmc-hs400", Some(21), 6),
        ("emmc-hs400-sprd", "emmc-hs400es", None, 0),
        ("sd-hs-sprd", "sd-sdr104", Some(19), 0),
        ("sd-hs-sprd", "sd-hs", None, 0),
    ] {
        let (report, counts) = reads(base, timing, "mmc-blkmq", "drift-one-in = 50", "");
        let blocks = [19, 21].map(|number| command(&report, number));
        let tunings = blocks.iter().sum::<u64>() / BLOCKS;
        assert_eq!(tunings * BLOCKS, blocks.iter().sum::<u64>(), "{timing}");
        assert_eq!(tunings > 10, tuned_by.is_some(), "{timing}: {tunings}");
        assert!(tuned_by.is_none_or(|by| command(&report, by) > 0), "{timing}: {blocks:?}");
        assert_eq!(command(&report, 6), switches * tunings, "{timing}");
        assert_eq!((counts.failures, counts.resets), (0, 0), "{timing}");
    }
}

#[test]
fn a_command_queue_is_off_while_the_bus_is_tuned() {
    for timing in ["emmc-hs200", "emmc-hs400"] {
        let (report, counts) =
            reads("emmc-hs400-sprd", timing, "cqe", "", "read-crc-one-in = 2000");
        assert!(command(&report, 21) > 0 && counts.failures > 0 && counts.resets == 0, "{timing}");
        assert_eq!(report.jobs.iter().map(|job| job.stats.errors).sum::<u64>(), 0);
    }
}

#[test]
fn a_bus_without_a_sampling_point_is_reset_and_continues() {
    let faults = "drift-one-in = 50\ntuning-fails-one-in = 2";
    for design in ["mmc-serial", "hsq", "cqe"] {
        let (report, counts) = reads("emmc-hs400-sprd", "emmc-hs400", design, faults, "");
        // An engine's transactions do not drift, except those that turn it on and off.
        let some = if design == "cqe" { 0 } else { 5 };
        assert!(counts.resets >= some, "{design}: {counts:?}");
        assert_eq!(report.jobs.iter().map(|job| job.stats.errors).sum::<u64>(), 0, "{design}");
    }
}
