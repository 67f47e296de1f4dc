//! Reads any bytes as fault rules. The result is rules that the fault layer accepts, or an error that
//! names the file and an existing line. Nothing panics.
#![no_main]

use blockyard::device::null::NullDevice;
use blockyard::layer::fault::Faulty;
use blockyard::prng::Prng;
use blockyard::tag::TagSetConfig;
use blockyard_devices::profile::{FaultRules, ProfileError};
use libfuzzer_sys::fuzz_target;

/// The file name in errors.
const NAME: &str = "faults.toml";

const TAGS: TagSetConfig = TagSetConfig {
    hctxs: 1,
    depth: 1,
    reserved: 0,
    shared_over_hctxs: false,
    queues: 1,
    max_waiters: 0,
};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match FaultRules::parse(NAME, &text) {
        Ok(FaultRules { rules, .. }) => {
            for rule in &rules {
                assert!(rule.when.one_in != Some(0));
                assert!(rule.when.sectors.as_ref().is_none_or(|sectors| !sectors.is_empty()));
            }
            let faulty = Faulty::new(NullDevice::new(1, 1), rules, Prng::new(0), &TAGS);
            drop(faulty);
        }
        Err(error) => {
            assert!(error.to_string().starts_with(NAME), "{error}");
            let ProfileError::Wrong { line, .. } = error else { panic!("{error}") };
            let last = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
            assert!((1..=last).contains(&line), "line {line} of {last}");
        }
    }
});
