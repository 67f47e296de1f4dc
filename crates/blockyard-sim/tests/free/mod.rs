//! A machine whose processors need no time, for tests that compute every instant by hand.

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
