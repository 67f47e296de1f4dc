//! Interrupts between processors: a processor that wakes a thread on another one, which idles,
//! interrupts that one.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// Runs 100 reads of a job on `cpu`, one at a time, with `queues` hardware queues. Their vectors
/// interrupt the first processor that they serve.
fn run(device: &str, design: &str, cpu: u32, queues: u32) -> Report {
    let device = Device::parse("test", device).unwrap();
    let design = format!("base = \"{design}\"\n[queue]\nhw-queues = {queues}\n");
    let design = Design::parse("test", &design).unwrap();
    let job =
        format!("--name=x --direct=1 --bs=4k --rw=randread --number_ios=100 --cpus_allowed={cpu}");
    let jobs = parse_args(job.split(' '), &NoSource).unwrap();
    Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap()
}

/// A job sleeps through each of its 100 reads. The only vector of four processors interrupts
/// processor 0, and two vectors interrupt processors 0 and 2. A job that waits elsewhere is woken
/// from there.
#[test]
fn each_read_of_a_job_away_from_the_vector_interrupts_its_processor() {
    let host = "base = \"qla2xxx\"\n[cpu]\ncpus = 4\n";
    for (cpu, queues, expected) in [(1, 1, 100), (0, 1, 0), (3, 2, 100), (2, 2, 0)] {
        let totals = run(host, "mq-none", cpu, queues).totals;
        assert_eq!(totals.wakeups, 100, "processor {cpu}, {queues} queues");
        let sent = totals.interprocessor_interrupts;
        assert_eq!(sent, expected, "processor {cpu}, {queues} queues");
    }
}

#[test]
fn the_only_processor_interrupts_no_other() {
    let card = "base = \"emmc-hs400-sprd\"\n[cpu]\ncpus = 1\n";
    for design in ["mmc-serial", "mmc-blkmq", "hsq", "cqe"] {
        let totals = run(card, design, 0, 1).totals;
        assert!(totals.wakeups >= 100, "{design}: {totals:?}");
        assert_eq!(totals.interprocessor_interrupts, 0, "{design}");
    }
}
