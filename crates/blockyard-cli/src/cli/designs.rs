//! The designs of an answer: by name, or as a grid of schedulers and MMC hosts.

use blockyard_answer::sweep::{Axis, Sweep};
use blockyard_devices::profile::{Device, DeviceModel};
use clap::Args;

use crate::message::Failure;

/// The designs that are compared.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Designs {
    /// Designs: their names or the paths of their files; ratios are relative to the first
    ///
    /// SCHEDULER+HOST is a design, too: kyber+hsq. Without --design, --scheduler and --host, the
    /// schedulers of Linux 7.3 are compared; on persistent memory, plain memory and two block
    /// translation tables.
    #[arg(long = "design", value_name = "DESIGN,...", value_delimiter = ',')]
    named: Vec<String>,

    /// Schedulers, each with every --host: none, mq-deadline, kyber, or a design for its scheduler
    #[arg(long, value_name = "SCHEDULER,...", value_delimiter = ',')]
    scheduler: Vec<String>,

    /// Hosts of eMMC and SD, each with every --scheduler: blkmq, hsq, cqe, or a design for its host
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    host: Vec<String>,

    /// Run each design with each value: queue.deadline.fifo-batch=1,4,16
    ///
    /// KEY is one that `blockyard show` prints for a design or a device. The option can be
    /// repeated: every combination runs, 64 at most. The answer names the best values for each
    /// goal, and how to set them. Without a design, that of the key's scheduler is taken.
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = axis)]
    sweep: Vec<Axis>,
}

fn axis(text: &str) -> Result<Axis, String> {
    Axis::parse(text).map_err(|error| error.to_string())
}

/// The designs of the keys of a scheduler.
const OF_KEYS: [(&str, &str); 4] = [
    ("queue.deadline.", "mq-deadline"),
    ("queue.kyber.", "kyber"),
    ("queue.bfq.", "bfq"),
    ("queue.adios.", "adios"),
];

const OF_LINUX: [&str; 3] = ["none", "mq-deadline", "kyber"];
const OF_MEMORY: [&str; 3] = ["pmem-raw", "btt-linux", "btt"];

impl Designs {
    /// Returns the only design that is named, or `usual` if none is; `None` if there are several,
    /// or values to sweep.
    pub(crate) fn one_or(&self, usual: &str) -> Option<String> {
        match self.asked().as_slice() {
            _ if !self.sweep.is_empty() => None,
            [] => Some(usual.to_owned()),
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    /// Returns the names of all designs to run on `device`, in order.
    pub(crate) fn names(&self, device: &Device) -> Vec<String> {
        let mut names = self.asked();
        if names.is_empty() {
            let of_key = |axis: &Axis| OF_KEYS.iter().find(|(keys, _)| axis.key.starts_with(keys));
            names.extend(self.sweep.iter().find_map(of_key).map(|(_, name)| (*name).to_owned()));
        }
        if names.is_empty() {
            let usual = match device.model {
                DeviceModel::Pmem(_) => OF_MEMORY,
                _ => OF_LINUX,
            };
            names.extend(usual.map(str::to_owned));
        }
        names
    }

    /// Returns the runs of the designs with these `names`: each with each combination of the values
    /// to sweep.
    pub(crate) fn sweep(&self, names: &[String]) -> Result<Sweep, Failure> {
        Sweep::new(&self.sweep, names).map_err(|error| Failure::Input(format!("--sweep: {error}")))
    }

    /// Whether there are values to sweep.
    pub(crate) const fn is_swept(&self) -> bool {
        !self.sweep.is_empty()
    }

    /// Returns `failure` as one of the option, if it is about the value of one of its keys.
    pub(crate) fn blamed(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Input(words)
                if self
                    .sweep
                    .iter()
                    .any(|of| words.starts_with(&format!("setting `{}", of.key))) =>
            {
                Failure::Input(format!("--sweep: {words}"))
            }
            other => other,
        }
    }

    /// Returns the names of all designs that the options ask for, in order.
    fn asked(&self) -> Vec<String> {
        let Self { named, scheduler, host, sweep: _ } = self;
        let mut names = named.clone();
        match (scheduler.as_slice(), host.as_slice()) {
            ([], []) => {}
            (schedulers, []) => names.extend_from_slice(schedulers),
            ([], hosts) => names.extend_from_slice(hosts),
            (schedulers, hosts) => {
                for host in hosts {
                    names.extend(schedulers.iter().map(|scheduler| format!("{scheduler}+{host}")));
                }
            }
        }
        names
    }
}
