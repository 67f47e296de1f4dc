//! The published jobs and their designs, for `simulator`, `instructions` and `tracing`.

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{JobFile, NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// A published job and its device.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The built-in device.
    pub device: &'static str,
    /// fio options, without the operation and the run time.
    options: &'static str,
    /// The number of instances of its job.
    instances: u64,
    /// The options that set its run time, in virtual time.
    pub timed: &'static str,
    /// Its operations: values of fio's `rw`.
    pub ops: &'static [&'static str],
    /// Names of built-in designs.
    pub designs: &'static [&'static str],
}

/// `reproduce scsi`: 64 jobs of depth 64, 4 KiB, one region. 2 s of virtual time.
pub const SCSI: Workload = Workload {
    device: "srp",
    options: "--name=scsi --filename=/dev/sda --direct=1 --ioengine=libaio --bs=4k --iodepth=64 \
              --numjobs=64 --group_reporting",
    instances: 64,
    timed: "--time_based --runtime=2",
    ops: &["read", "randread"],
    designs: &["mq-none", "mq-deadline", "legacy-deadline", "mq-none-2017", "mq-deadline-2017"],
};

/// `reproduce hsq`, on eMMC: 20 jobs with one I/O of 4 KiB at a time, on 1 GiB. 20 s of virtual
/// time.
pub const EMMC: Workload = Workload {
    device: "emmc-hs400-sprd",
    options: "--name=test_read --filename=/dev/mmcblk0p30 --direct=1 --bs=4K --size=1G \
              --numjobs=20 --group_reporting",
    instances: 20,
    timed: "--time_based --runtime=20",
    ops: &["read", "randread", "write", "randwrite"],
    designs: &["mmc-blkmq-4.16", "hsq-v8", "hsq-v8-atomic", "hsq", "cqe"],
};

/// `reproduce btt`: random I/Os of 4 KiB on persistent memory, 32 jobs. 20 ms of virtual time.
pub const PMEM: Workload = Workload {
    device: "pmem-dram-2015",
    options: "--name=fio --filename=/dev/pmem0 --direct=1 --bs=4k --numjobs=32 --group_reporting",
    instances: 32,
    timed: "--time_based --runtime=20ms",
    ops: &["randread", "randwrite"],
    designs: &["pmem-raw", "btt-linux-2015", "btt-linux", "btt"],
};

impl Workload {
    /// The options with which the job ends after `ios` I/Os, rounded down to the same number for
    /// each instance.
    #[must_use]
    pub fn amount(&self, ios: u64) -> String {
        format!("--number_ios={}", ios / self.instances)
    }

    /// The job with the operation `op`; the options in `amount` set its length.
    ///
    /// # Panics
    ///
    /// Panics if the options are not those of a job.
    #[must_use]
    pub fn jobs(&self, op: &str, amount: &str) -> JobFile {
        let options = format!("{} --rw={op} {amount}", self.options);
        parse_args(options.split_whitespace(), &NoSource).expect("job of a benchmark")
    }

    /// Simulates the job with the operation `op` under `design`; the options in `amount` set its
    /// length. Returns the number of I/Os.
    ///
    /// # Panics
    ///
    /// Panics if the job does not run on its device.
    #[must_use]
    pub fn simulate(&self, op: &str, design: &str, amount: &str) -> u64 {
        let jobs = self.jobs(op, amount);
        let device = Device::lookup(self.device).expect("name of a built-in device");
        let design = Design::lookup(design).expect("name of a built-in design");
        let simulation = Simulation::new(&jobs, &device, &design, 1)
            .expect("benchmark job that fits its device");
        ios(&simulation.finish().expect("benchmark job that ends"))
    }
}

/// The number of I/Os that a simulation measured.
#[must_use]
pub fn ios(report: &Report) -> u64 {
    report.jobs.iter().flat_map(|job| job.stats.measured()).map(|measured| measured.ios).sum()
}
