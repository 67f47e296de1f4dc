//! Reads any bytes as a saved answer and compares it with a good one and with itself, as text, as data and as a page. The
//! result is a comparison or an error; nothing panics.
#![no_main]

use std::sync::OnceLock;

use blockyard_answer::whatif;
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_devices::profile::{Design, Device};
use blockyard_sim::simulate::Conditions;
use libfuzzer_sys::fuzz_target;

fn good() -> &'static str {
    static GOOD: OnceLock<String> = OnceLock::new();
    GOOD.get_or_init(|| {
        let args = "--name=a --rw=rw --size=64k --direct=1";
        let jobs = parse_args(args.split(' '), &NoSource).expect("a job");
        let designs = ["none", "kyber"].map(|name| Design::lookup(name).expect("a design"));
        let device = Device::lookup("null").expect("a device");
        let answer = whatif(&jobs, &device, &designs, &Conditions::new(1)).expect("an answer");
        serde_json::to_string(&answer).expect("an answer is JSON")
    })
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    // Most inputs are too far from an answer: they replace a part of a good one.
    let good = good();
    let at = bytes.first().map_or(0, |first| usize::from(*first) * good.len() / 256);
    let end = (at + text.len()).min(good.len());
    let spliced = match (good.is_char_boundary(at), good.is_char_boundary(end)) {
        (true, true) => format!("{}{text}{}", &good[..at], &good[end..]),
        _ => text.to_string(),
    };
    for other in [&*text, &spliced] {
        for (first, second) in [(good, other), (other, good), (other, other)] {
            if let Ok(compared) = blockyard_cli::compared(first, second) {
                assert!(compared.contains("</html>"), "{compared}");
            }
        }
    }
});
