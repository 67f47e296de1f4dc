//! The built-in designs and devices: names, titles, processors, and the origin of each figure.

use super::*;

#[test]
fn every_builtin_is_complete_and_has_a_title() {
    for builtin in builtin_designs() {
        let design = Design::lookup(builtin.name).unwrap();
        assert!(!design.title.is_empty() && !design.title.contains('\n'), "{}", builtin.name);
        assert!(!design.origin.is_empty() && !design.origin.contains('\n'), "{}", builtin.name);
    }
    for builtin in builtin_devices() {
        let device = Device::lookup(builtin.name).unwrap();
        assert!(!device.title.is_empty() && !device.title.contains('\n'), "{}", builtin.name);
    }
}

/// Returns the value of `key` at the top of a file.
fn top<'a>(file: &'a str, key: &str) -> Option<&'a str> {
    let line = file
        .lines()
        .take_while(|line| !line.starts_with('['))
        .find(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(" = ")))?;
    line.split('"').nth(1)
}

#[test]
fn every_builtin_device_names_its_processors() {
    for device in builtin_devices() {
        let mut file = *device;
        while top(file.text, "processors").is_none() {
            let base = top(file.text, "base").unwrap_or_else(|| panic!("{}", device.name));
            file = builtin(base).unwrap();
        }
    }
}

#[test]
fn every_class_of_processors_has_all_costs() {
    for class in builtin_processors() {
        let file = format!(
            "processors = \"{}\"\n[limits]\ncapacity = \"1GiB\"\n[null]\ncompletion = \"none\"\n\
             submit-queues = 1\ndepth = 1\n[cpu]\ncpus = 1\n",
            class.name
        );
        let device = Device::parse("d", &file).unwrap();
        assert!(device.machine.lock_complete > Duration::ZERO, "{}", class.name);
        assert!(top(class.text, "title").is_some_and(|title| !title.is_empty()), "{}", class.name);
    }
}

#[test]
fn processors_come_after_the_file_and_before_its_base() {
    let file = "base = \"srp\"\nprocessors = \"cortex-a72\"\n[cpu]\nsyscall = \"9us\"\n";
    let srp = Device::lookup("srp").unwrap();
    let a72 = Device::parse("d", file).unwrap();
    assert_eq!(a72.machine.syscall, Duration::from_us(9));
    assert_eq!(a72.machine.dispatch, Duration::from_ns(700));
    assert_ne!(a72.machine.dispatch, srp.machine.dispatch);
    assert_eq!((a72.machine.cpus, a72.machine.softirq_delay), (16, srp.machine.softirq_delay));
    assert_eq!((a72.model, a72.title.as_str()), (srp.model, ""));
    assert_eq!(
        Device::parse("my.toml", "processors = \"cortex-a27\"\n").unwrap_err().to_string(),
        "my.toml:1: unknown value `cortex-a27` for `processors`: did you mean `cortex-a72`?"
    );
}

#[test]
fn no_two_builtins_share_a_name() {
    for profile in all_builtin() {
        assert_eq!(all_builtin().filter(|other| other.name == profile.name).count(), 1);
        assert_eq!(builtin(profile.name).unwrap(), *profile);
    }
}

#[test]
fn every_figure_of_a_builtin_device_states_its_origin() {
    const KINDS: &[&str] = &["fitted: ", "source: ", "default: ", "assumed: "];
    fn check(name: &str, key: &str, value: &DeValue<'_>) {
        let DeValue::Table(table) = value else {
            let quantity = value.as_str().is_some_and(|s| s.starts_with(|c: char| c.is_numeric()));
            assert!(!value.is_integer() && !quantity, "{name}: `{key}` has no origin");
            return;
        };
        if let Some(origin) = table.get("origin") {
            let origin = origin.get_ref().as_str().unwrap();
            assert!(KINDS.iter().any(|kind| origin.starts_with(kind)), "{name}: `{key}`: {origin}");
        } else {
            table.iter().for_each(|(key, value)| check(name, key.get_ref(), value.get_ref()));
        }
    }
    let parts = builtin_processors().iter().chain(builtin_file_systems());
    for builtin in builtin_devices().iter().chain(parts) {
        let whole = DeValue::Table(DeTable::parse(builtin.text).unwrap().into_inner());
        check(builtin.name, "", &whole);
    }
}
