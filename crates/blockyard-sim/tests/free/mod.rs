//! A machine whose processors need no time, for tests that compute every instant by hand.

use blockyard_devices::profile::Device;

/// The steps of a machine, as keys of `[cpu]` in a device.
const STEPS: [&str; 17] = [
    "syscall",
    "submit",
    "tag",
    "merge-try",
    "insert",
    "dispatch",
    "complete",
    "interrupt",
    "wakeup",
    "context-switch",
    "run-delay",
    "line-transfer",
    "elevator-lock",
    "lock-submit",
    "lock-merge",
    "lock-dispatch",
    "lock-complete",
];

/// Returns lines of `[cpu]` in which no step takes time.
pub(crate) fn steps() -> String {
    STEPS.iter().map(|step| format!("{step} = \"0ns\"\n")).collect()
}

/// Returns a disk with two commands at a time, each 100 us long, of a machine with `cpus`
/// processors, which need 10 us to copy a page and no other time. `limits` are further lines of
/// `[limits]`.
pub(crate) fn disk_of_two_commands(cpus: u32, limits: &str) -> Device {
    let free = steps();
    let text = format!(
        "base = \"null\"\n[limits]\nmax-sectors = 2048\nmax-segments = 256\n{limits}\
         [null]\ncompletion = \"timer\"\ncompletion-time = \"100us\"\nsubmit-queues = 1\ndepth = 2\n\
         [cpu]\ncpus = {cpus}\npage-copy = \"10us\"\n{free}"
    );
    Device::parse("test", &text).unwrap()
}
