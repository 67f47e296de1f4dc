//! Sleep states of processors: the longer a processor has idled, the later it begins new work.

use blockyard::time::Duration;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Simulation;

const STATES: &str = "idle-residency = \"780us\"\nidle-exit = \"140us\"\n\
                      deep-residency = \"4ms\"\ndeep-exit = \"915us\"\n";

/// Returns the time of 100 reads, each of which the job issues `think` microseconds after the end
/// of the one before, on processors with `states`.
fn span(think: u64, states: &str) -> Duration {
    let device = Device::parse("null", &format!("base = \"null\"\n[cpu]\n{states}")).unwrap();
    let design = Design::lookup("mq-none").unwrap();
    let job =
        format!("--name=x --direct=1 --bs=4k --rw=randread --number_ios=100 --thinktime={think}");
    let jobs = parse_args(job.split(' '), &NoSource).unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    report.span
}

#[test]
fn a_wake_up_costs_the_exit_latency_of_the_state_that_the_idle_time_reaches() {
    // After 5 us the processor waits for an interrupt, after 1 ms it is in its first state, and
    // after 10 ms in its deepest one. There is a pause between any two of 100 reads, and the job
    // may think once more at its end: 99 or 100 wake-ups.
    for (think, latency) in [(5, 0), (1000, 140), (10_000, 915)] {
        let later = (span(think, STATES) - span(think, "")).as_ns() / 1000;
        assert!((99 * latency..=100 * latency).contains(&later), "{think} us: {later} us later");
    }
}

#[test]
fn a_processor_without_states_is_never_late() {
    let none = "idle-exit = \"0us\"\ndeep-exit = \"0us\"\n";
    let unused = "idle-residency = \"780us\"\ndeep-residency = \"4ms\"\n";
    assert_eq!(span(10_000, none), span(10_000, ""));
    assert_eq!(span(10_000, unused), span(10_000, ""), "states that take no time to leave");
}
