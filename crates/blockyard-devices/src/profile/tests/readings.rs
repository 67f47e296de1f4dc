//! Assumed figures: their ranges, and the readings that are drawn from them.

use super::*;

/// Figures that describe what is modelled or how finely, rather than how fast it is.
const NOT_VARIED: &[&str] = &[
    "capacity",
    "cpus",
    "luns",
    "hw-queues",
    "max-sectors",
    "max-segments",
    "queue-engine-depth",
    "queue-depth",
    "packed-writes",
    "pmem.channels",
    "loads-of-word",
    "limit",
    "width",
    "open",
    "page",
    "generation",
    "lanes",
    "payload",
    "programs",
    "simulated",
];

/// Each assumed figure has a range, or is a choice of what to model, or is the 0 of what is not
/// there.
#[test]
fn an_assumed_figure_has_a_range() {
    for builtin in builtin_devices() {
        let device = Device::lookup(builtin.name).unwrap();
        for Figure { key, origin, range, place } in &device.figures {
            let own = key.rsplit('.').next().unwrap();
            let is_assumed = origin.starts_with("assumed");
            let zero = ["window", "cache", "unmap", "context-switch", "slc"].contains(&own);
            let missing = is_assumed
                && range.is_none()
                && !NOT_VARIED.contains(&own)
                && !NOT_VARIED.contains(&key.as_str())
                && !zero;
            assert!(!missing, "{}: {key} has no range", builtin.name);
            assert!(is_assumed || range.is_none(), "{}: {key} is not assumed", builtin.name);
            assert_eq!(*place, None, "the stated values");
        }
    }
}

fn keys(device: &Device) -> Vec<String> {
    device.figures.iter().map(|of| of.key.clone()).collect::<Vec<_>>()
}

#[test]
fn every_reading_of_a_device_is_sound_and_has_other_figures() {
    for builtin in builtin_devices() {
        let stated = Device::lookup(builtin.name).unwrap();
        let readings = Device::readings(builtin.name, &[], 1, 8).unwrap();
        let varies = stated.figures.iter().any(|figure| figure.range.is_some());
        for reading in &readings {
            assert_eq!(keys(reading), keys(&stated), "{}", builtin.name);
            let differs = (&reading.model, &reading.machine) != (&stated.model, &stated.machine);
            assert_eq!(differs, varies, "{}", builtin.name);
        }
        assert_eq!(readings[..2], Device::readings(builtin.name, &[], 1, 2).unwrap());
    }
}

#[test]
fn a_reading_stays_within_the_range() {
    let text = "base = \"null\"\n[null]\ncompletion = \"timer\"\ndepth = 64\n\
                completion-time = { value = \"100us\", range = [\"50us\", \"200us\"], origin = \"assumed: x\" }\n\
                bandwidth-limit = { value = \"1GB/s\", range = [\"500MB/s\", \"2GB/s\"], origin = \"assumed: x\" }\n\
                submit-queues = { value = 2, range = [1, 4], origin = \"assumed: x\" }\n";
    let path = std::env::temp_dir().join(format!("a-reading-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let readings = Device::readings(path.to_str().unwrap(), &[], 7, 200).unwrap();
    std::fs::remove_file(&path).unwrap();
    let null = |device: &Device| match device.model {
        DeviceModel::Null(null) => null,
        _ => unreachable!("a null device"),
    };
    let times: Vec<_> = readings.iter().map(|of| null(of).completion_time.as_ns()).collect();
    assert!(times.iter().all(|ns| (50_000..=200_000).contains(ns)));
    let below = times.iter().filter(|ns| **ns < 100_000).count();
    assert!((75..125).contains(&below), "{below} of 200 below the geometric mean");
    assert!(readings.iter().all(|of| {
        null(of).bandwidth_limit.is_some_and(|rate| (500_000_000..=2_000_000_000).contains(&rate))
    }));
    let queues: std::collections::BTreeSet<_> =
        readings.iter().map(|of| null(of).submit_queues).collect();
    assert!(queues.iter().eq(&[1, 2, 3, 4]), "{queues:?}");
}

fn with_range(range: &str) -> String {
    format!(
        "base = \"null\"\n[null]\ncompletion-time = {{ value = \"1us\", range = {range}, origin = \"assumed: x\" }}"
    )
}

#[test]
fn a_range_that_is_none_is_refused() {
    for (range, words) in [
        ("\"1us\"", "a lowest and a highest value"),
        ("[\"1us\"]", "a lowest and a highest value"),
        ("[\"2us\", \"1us\"]", "the lowest value of a range is above the highest"),
        ("[\"1us\", 3]", "a time with its unit"),
    ] {
        let error = Device::parse("my.toml", &with_range(range)).unwrap_err().to_string();
        assert!(error.starts_with("my.toml:3: ") && error.contains(words), "{range}: {error}");
    }
}
