//! The designs of an answer: by name, or as a grid of schedulers and MMC hosts.

use blockyard_devices::profile::{Device, DeviceModel};
use clap::Args;

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
}

const OF_LINUX: [&str; 3] = ["none", "mq-deadline", "kyber"];
const OF_MEMORY: [&str; 3] = ["pmem-raw", "btt-linux", "btt"];

impl Designs {
    /// Returns the only design that is named, or `usual` if none is; `None` if there are several.
    pub(crate) fn one_or(&self, usual: &str) -> Option<String> {
        match self.asked().as_slice() {
            [] => Some(usual.to_owned()),
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    /// Returns the names of all designs to run on `device`, in order.
    pub(crate) fn names(&self, device: &Device) -> Vec<String> {
        let mut names = self.asked();
        if names.is_empty() {
            let usual = match device.model {
                DeviceModel::Pmem(_) => OF_MEMORY,
                _ => OF_LINUX,
            };
            names.extend(usual.map(str::to_owned));
        }
        names
    }

    /// Returns the names of all designs that the options ask for, in order.
    fn asked(&self) -> Vec<String> {
        let Self { named, scheduler, host } = self;
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
