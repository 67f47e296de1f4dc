//! Reads any bytes as a goal, and judges an answer by it. The result is a verdict or an error; nothing panics.
#![no_main]

use std::sync::OnceLock;

use blockyard_answer::goal::Goal;
use blockyard_answer::{Answer, whatif};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_devices::profile::{Design, Device};
use blockyard_sim::simulate::Conditions;
use libfuzzer_sys::fuzz_target;

/// An answer about two jobs, of which one reads and one reads, writes and syncs.
fn answer() -> &'static Answer {
    static ANSWER: OnceLock<Answer> = OnceLock::new();
    ANSWER.get_or_init(|| {
        let args = "--name=a --rw=read --size=64k --direct=1 --name=b.p99 --rw=rw --size=64k --direct=1 --fsync=1";
        let jobs = parse_args(args.split(' '), &NoSource).expect("a job");
        let designs = ["none", "kyber"].map(|name| Design::lookup(name).expect("a design"));
        let device = Device::lookup("null").expect("a device");
        whatif(&jobs, &device, &designs, &Conditions::new(1)).expect("an answer")
    })
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(goal) = Goal::parse(&text) else { return };
    assert_eq!(goal.text, text);
    match goal.judge(&answer().designs) {
        Ok(result) => {
            assert_eq!(result.designs.len(), 2);
            let judged = Answer { goals: vec![result], ..answer().clone() };
            assert!(!judged.goal_sentences().is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
