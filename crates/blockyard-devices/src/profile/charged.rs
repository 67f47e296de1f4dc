//! The keys of a device by the resource whose time they charge. Where a run says which resource
//! decides, this tells which figures do.

use super::device::Device;
use crate::charges::{Charges, Resource};
use blockyard::time::Duration;

/// The lists of all tables, by their paths.
const ALL: &[(&str, Charges)] = &[
    ("cpu", crate::machine::CHARGES),
    ("null", crate::null::profile::CHARGES),
    ("hba", crate::scsi::profile::CHARGES),
    ("ahci", crate::fronts::ahci::profile::CHARGES),
    ("nvme", crate::fronts::nvme::profile::CHARGES),
    ("ufs", crate::fronts::ufs::profile::CHARGES),
    ("usb", crate::fronts::usb::profile::CHARGES),
    ("virtio", crate::fronts::virtio::profile::CHARGES),
    ("flash", crate::flash::profile::CHARGES),
    ("crosspoint", crate::crosspoint::profile::CHARGES),
    ("platters", crate::disk::profile::CHARGES),
    ("platters.read", crate::disk::profile::SEEK_CHARGES),
    ("platters.write", crate::disk::profile::SEEK_CHARGES),
    ("volume", crate::volume::profile::CHARGES),
    ("volume.iops", crate::volume::profile::IOPS_CHARGES),
    ("volume.bytes", crate::volume::profile::BYTES_CHARGES),
    ("card.read", crate::mmc::profile::READ_CHARGES),
    ("card.write", crate::mmc::profile::WRITE_CHARGES),
];

impl Device {
    /// Returns the keys of this device's tables that charge `resource`, such as `flash.program` for
    /// programs of a drive. A machine without a sleep state, or without a delay before soft
    /// interrupts, has no keys of it.
    #[must_use]
    pub fn keys_that_charge(&self, resource: Resource) -> Vec<String> {
        let has = match resource {
            Resource::SoftInterrupts => self.machine.softirq_delay > Duration::ZERO,
            Resource::Sleep => self.machine.idle_residency > Duration::ZERO,
            Resource::DeepSleep => self.machine.deep_residency > Duration::ZERO,
            _ => true,
        };
        let own = self.model.tables();
        let tables = ALL.iter().filter(|(path, _)| {
            let root = path.split('.').next().unwrap_or(path);
            has && (root == "cpu" || own.contains(&root))
        });
        let keys = tables.flat_map(|(path, keys)| {
            let charging = keys.iter().filter(|(_, charged)| charged.contains(&resource));
            charging.map(move |(key, _)| format!("{path}.{key}"))
        });
        keys.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Work;
    use crate::profile::{Problem, ProfileError, builtin_devices};

    /// A list that names a key that no table has would let its figure pass for tested.
    #[test]
    fn each_key_is_one_of_its_table() {
        for (path, keys) in ALL {
            let base = builtin_devices().iter().find(|of| {
                let device = Device::lookup(of.name).expect("a built-in device");
                let root = path.split('.').next().unwrap_or(path);
                root == "cpu" || device.model.tables().contains(&root)
            });
            let base = base.expect("a device with the table").name;
            for (key, charged) in *keys {
                assert!(!charged.is_empty(), "{path}.{key} charges nothing");
                let text = format!("base = \"{base}\"\n[{path}]\n{key} = {{}}\n");
                let error = Device::parse("x", &text).expect_err("a table is no value");
                let ProfileError::Wrong { problem, .. } = &error else { panic!("{error}") };
                let is_known = matches!(problem, Problem::MissingKey { .. });
                assert!(is_known, "{path}.{key}: {error}");
            }
        }
    }

    /// A step of the path that is in no list would never be named as not tested.
    #[test]
    fn each_cost_of_a_processor_is_charged_to_something() {
        let listed: Vec<_> = crate::machine::CHARGES.iter().map(|(key, _)| *key).collect();
        let missing: Vec<_> =
            crate::machine::KEYS.iter().filter(|key| !listed.contains(*key)).collect();
        let no_costs = [
            "cpus",
            "memory",
            "dirty-background-bytes",
            "dirty-bytes",
            "dirty-expire",
            "dirty-writeback",
            "wake-on-waker",
        ];
        assert_eq!(missing, no_costs.each_ref(), "numbers, settings and a choice");
    }

    #[test]
    fn a_device_has_the_keys_of_its_own_tables() {
        for (name, resource, keys) in [
            ("sata-ssd", Resource::Work(Work::Programs), &["flash.program"][..]),
            ("hdd-7200", Resource::Work(Work::Programs), &[]),
            ("hdd-7200", Resource::Work(Work::Rotation), &["platters.rpm"]),
            ("sd-ux500", Resource::DeepSleep, &[]),
            ("sd-hs", Resource::Sleep, &["cpu.idle-residency", "cpu.idle-exit"]),
        ] {
            let device = Device::lookup(name).expect("a built-in device");
            assert_eq!(device.keys_that_charge(resource), keys, "{name}");
        }
    }
}
