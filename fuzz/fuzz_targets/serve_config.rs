//! Reads any bytes as a file for `serve --config`. The result is disks to serve, or an error that
//! names the file and an existing line. Nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// The file name in errors.
const NAME: &str = "disks.toml";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match blockyard_cli::disks_of_config(NAME, &text) {
        Ok(disks) => assert!(disks > 0, "an accepted file names at least one disk"),
        Err(error) => {
            let place = error.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(':'));
            let line = place.and_then(|place| place.split(':').next());
            let line: usize = line.and_then(|line| line.parse().ok()).expect(&error);
            let last = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
            assert!((1..=last).contains(&line), "line {line} of {last}");
        }
    }
});
