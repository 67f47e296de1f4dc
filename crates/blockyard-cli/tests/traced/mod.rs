//! Traced runs, shared by the tests that read the traces.

use std::path::{Path, PathBuf};

use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Report, Simulation};
use blockyard_trace::output::{Files, Recorder};

/// A run that shows something the other cases do not.
pub(crate) struct Case {
    /// The name of the case and of its files.
    pub(crate) name: &'static str,
    pub(crate) design: &'static str,
    /// The device's profile, as text.
    device: &'static str,
    /// Options in addition to the common ones.
    job: &'static str,
}

pub(crate) const CASES: [Case; 10] = [
    Case {
        name: "random",
        design: "mq-none",
        device: "base = \"srp\"",
        job: "--rw=randread --filename=/dev/sda --iodepth=64 --numjobs=4 --runtime=20ms",
    },
    Case {
        name: "elevator",
        design: "mq-deadline",
        device: "base = \"srp\"",
        job: "--rw=randread --filename=/dev/sda --iodepth=32 --numjobs=4 --runtime=20ms",
    },
    Case {
        name: "plugged",
        design: "mq-deadline",
        device: "base = \"srp\"",
        job: "--rw=rw --filename=/dev/sda --iodepth=64 --iodepth_batch=16 --numjobs=8 --runtime=10ms",
    },
    Case {
        name: "split",
        design: "legacy-deadline",
        device: "base = \"srp\"",
        job: "--rw=write --filename=/dev/sda --bs=4m --iodepth=2 --numjobs=2 --runtime=100ms",
    },
    Case {
        name: "refused",
        design: "mq-none-2017",
        device: "base = \"srp\"\n[hba]\nluns = 2\n[hba.refusal]\nmode = \"lun-full\"\nlimit = 16\n\
                 ramp-down-after = 4\nramp-up-period = \"1ms\"\n",
        job: "--rw=randwrite --filename=/dev/sda:/dev/sdb --iodepth=64 --numjobs=4 --runtime=20ms",
    },
    Case {
        name: "mmc-overlap",
        design: "mmc-double-buffer-full",
        device: "base = \"sd-ux500\"",
        job: "--rw=read --filename=/dev/mmcblk0 --bs=1m --iodepth=4 --runtime=900ms",
    },
    Case {
        name: "mmc-step-four",
        design: "mmc-mq-step4",
        device: "base = \"sd-ux500\"",
        job: "--rw=read --filename=/dev/mmcblk0 --bs=1m --iodepth=4 --runtime=900ms",
    },
    Case {
        name: "mmc-status",
        design: "mmc-blkmq-4.16",
        device: "base = \"emmc-hs400-sprd\"",
        job: "--rw=randwrite --filename=/dev/mmcblk0 --iodepth=1 --numjobs=20 --runtime=60ms",
    },
    Case {
        name: "mmc-polled",
        design: "mmc-blkmq-4.16",
        device: "base = \"emmc-hs400-sprd\"\n[host]\nbusy-detect = \"cmd13\"\n",
        job: "--rw=randwrite --filename=/dev/mmcblk0 --iodepth=1 --numjobs=20 --runtime=60ms",
    },
    Case {
        name: "mmc-hsq",
        design: "hsq",
        device: "base = \"emmc-hs400-sprd\"",
        job: "--rw=randwrite --filename=/dev/mmcblk0 --iodepth=1 --numjobs=20 --runtime=60ms",
    },
];

impl Case {
    /// Runs the case with the requested traces in `folder`, and returns its report.
    pub(crate) fn run(&self, folder: &Path, perfetto: bool, blktrace: bool) -> Report {
        let files = Files {
            perfetto: perfetto.then(|| self.perfetto(folder)),
            blktrace: blktrace.then(|| folder.join(self.name)),
        };
        let common = "--name=job --direct=1 --ioengine=libaio --time_based";
        let options = common.split(' ').chain(self.job.split(' '));
        let jobs = parse_args(options, &NoSource).unwrap();
        let device = Device::parse("device", self.device).unwrap();
        let design = Design::lookup(self.design).unwrap();
        let mut recorder = Recorder::create(&files).unwrap();
        let simulation =
            Simulation::observed(&jobs, &device, &design, Conditions::new(1), &mut recorder)
                .unwrap();
        let report = simulation.finish().unwrap();
        recorder.finish().unwrap();
        report
    }

    /// Returns the path of the Perfetto file that [`Self::run`] writes.
    pub(crate) fn perfetto(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", self.name))
    }
}
