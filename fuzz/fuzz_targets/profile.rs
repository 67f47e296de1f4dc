//! Reads any bytes as a design, as a device, as a file system, and as a value that replaces one of
//! a device. The result is a profile within its bounds, or an error that names the file or the key.
//! Nothing panics.
#![no_main]

use blockyard_devices::profile::{Design, Device, FileSystem, Override, ProfileError};
use libfuzzer_sys::fuzz_target;

/// The file name in errors.
const NAME: &str = "profile.toml";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match Design::parse(NAME, &text) {
        Ok(design) => {
            assert_eq!(design.name, NAME);
            assert!(design.hw_queues != Some(0) && design.depth != Some(0));
        }
        Err(error) => check(&error, &text),
    }
    match Device::parse(NAME, &text) {
        Ok(device) => {
            assert_eq!(device.name, NAME);
            assert!(device.limits.capacity_sectors > 0 && device.limits.max_sectors > 0);
        }
        Err(error) => check(&error, &text),
    }
    match FileSystem::parse(NAME, &text) {
        Ok(file_system) => check_sizes(&file_system),
        Err(error) => check(&error, &text),
    }
    if let Some((key, value)) = text.split_once('=') {
        replace(key.trim(), value.trim());
    }
});

/// Checks that the bios of data are whole pages, and that a bio of a commit has whole units and
/// fits the journal.
fn check_sizes(file_system: &FileSystem) {
    assert_eq!(file_system.name, NAME);
    let FileSystem { rules, commit, .. } = file_system;
    assert!(rules.write_max_bytes.is_multiple_of(4096) && rules.write_max_bytes > 0);
    assert!(commit.unit_bytes.is_multiple_of(512) && commit.head > 0 && commit.inodes > 0);
    assert!(commit.write_bytes >= commit.unit_bytes);
    assert!(commit.write_bytes.is_multiple_of(commit.unit_bytes));
    assert!(commit.write_bytes <= rules.journal_bytes);
}

/// Replaces the value of `key` in a card with most tables.
fn replace(key: &str, value: &str) {
    let set = Override { key: key.to_owned(), value: value.to_owned() };
    match Device::lookup_with("emmc-hs400", &[set]) {
        Ok(device) => assert!(device.name.starts_with("emmc-hs400 with ")),
        Err(error) => assert!(error.to_string().starts_with("setting `"), "{error}"),
    }
}

/// Checks that an error names the file and an existing line.
fn check(error: &ProfileError, text: &str) {
    assert!(error.to_string().starts_with(NAME), "{error}");
    let ProfileError::Wrong { line, .. } = error else {
        panic!("an error without a line: {error}")
    };
    let last = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
    assert!((1..=last).contains(line), "line {line} of {last}");
}
