//! The figures that decide between two designs and that no reading varies.
//!
//! Designs differ in some of their choices, and each choice works through the costs of some steps.
//! If readings cannot vary such a cost, they show nothing about the choice: that two designs are
//! equal in all of them is no finding.

use core::mem::discriminant;

use blockyard::policy::Merges;
use blockyard_devices::profile::{Basis, Design, Device};

/// The move of a lock from one processor to another.
const LOCK_MOVES: &[&str] = &["cpu.line-transfer", "cpu.lock-lines"];
const SINGLE_LOCK: &[&str] =
    &["cpu.lock-submit", "cpu.lock-merge", "cpu.lock-dispatch", "cpu.lock-complete"];
const ELEVATOR: &[&str] = &["cpu.elevator-lock", "cpu.insert", "cpu.merge-try", "cpu.tag"];
/// A thread that does what another context did before.
const HANDOVER: &[&str] = &["cpu.run-delay", "cpu.wakeup", "cpu.context-switch"];
const INTERRUPTS: &[&str] = &["cpu.interrupt", "cpu.complete"];
const POLLS: &[&str] = &["cpu.poll", "cpu.wakeup", "cpu.context-switch"];

/// Returns the keys of the costs through which the choices of two designs differ, each once and in
/// order of the alphabet.
fn deciding_keys(one: &Design, other: &Design) -> Vec<&'static str> {
    let [a, b] = [&one.policies, &other.policies];
    // Tunables of one elevator differ in the order of requests, which costs no step more.
    let same_elevator = discriminant(&a.elevator) == discriminant(&b.elevator);
    let same_lock = a.elevator.has_one_lock() == b.elevator.has_one_lock()
        && a.elevator.lists_insertions() == b.elevator.lists_insertions();
    let lists: [(bool, &[&[&'static str]]); 8] = [
        (a.model != b.model, &[SINGLE_LOCK, LOCK_MOVES, HANDOVER]),
        (!same_elevator, &[ELEVATOR]),
        (!same_lock || one.lock_batch != other.lock_batch, &[LOCK_MOVES]),
        ((a.merges == Merges::Off) != (b.merges == Merges::Off), &[&["cpu.merge-try"]]),
        (
            a.dispatch != b.dispatch
                || a.dequeue != b.dequeue
                || a.plug != b.plug
                || a.restart != b.restart,
            &[&["cpu.run-delay"]],
        ),
        (
            one.host != other.host || one.submitter_sleeps != other.submitter_sleeps,
            &[HANDOVER, INTERRUPTS],
        ),
        (one.hw_queues != other.hw_queues, &[INTERRUPTS]),
        (one.poll_queues.count != other.poll_queues.count, &[POLLS, INTERRUPTS]),
    ];
    let chosen = lists.into_iter().filter(|(differ, _)| *differ);
    let mut keys: Vec<_> = chosen.flat_map(|(_, lists)| lists.concat()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Whether readings show the part of `key`, or need not: the profile of `device` states a range for
/// it, or a document.
fn is_tested(device: &Device, key: &str) -> bool {
    let figure = device.figures.iter().find(|figure| figure.key == key);
    figure.is_some_and(|of| of.range.is_some() || of.basis() == Basis::Stated)
}

/// Returns the keys that decide between two designs on `device` although readings do not vary them.
pub(super) fn untested(device: &Device, one: &Design, other: &Design) -> Vec<String> {
    let keys = deciding_keys(one, other).into_iter();
    keys.filter(|key| !is_tested(device, key)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(device: &str, names: [&str; 2]) -> Vec<String> {
        let device = Device::parse("test", device).expect("a sound profile");
        let [one, other] = names.map(|name| Design::lookup(name).expect("a built-in design"));
        untested(&device, &one, &other)
    }

    /// Returns the profile of a card with this line in `[cpu]`.
    fn card_with(cpu: &str) -> String {
        format!("base = \"emmc-51-small\"\n[cpu]\n{cpu}\n")
    }

    /// The profile of `emmc-51-small` gives a range to each step of a processor. A value that
    /// replaces one has none, and `source:` says that the value is known.
    #[test]
    fn a_key_of_the_mechanism_without_a_range_is_named() {
        let hosts = ["hsq", "mmc-blkmq"];
        assert_eq!(found(&card_with(""), hosts), [""; 0]);
        assert_eq!(found(&card_with("run-delay = \"20us\""), hosts), ["cpu.run-delay"]);
        let measured = "run-delay = { value = \"20us\", origin = \"source: a test\" }";
        assert_eq!(found(&card_with(measured), hosts), [""; 0]);
        // A page copy has no part in what distinguishes hosts.
        assert_eq!(found(&card_with("page-copy = \"1us\""), hosts), [""; 0]);
        assert_eq!(found(&card_with("run-delay = \"20us\""), ["hsq", "hsq"]), [""; 0]);
    }

    /// Two designs with mq-deadline differ in who waits for its lock, or in whom a completion
    /// restarts, which a worker does after `run-delay`. Once their common elevator hid both.
    #[test]
    fn designs_with_one_elevator_differ_by_their_lock_or_their_restart() {
        let fixed = "base = \"null\"\n[cpu]\nline-transfer = \"50ns\"\nrun-delay = \"2us\"\n";
        let listed = ["mq-deadline-6.12", "mq-deadline-listed"];
        assert_eq!(found(fixed, listed), ["cpu.line-transfer"]);
        assert_eq!(found(fixed, ["mq-deadline", "mq-deadline-in-turn"]), ["cpu.run-delay"]);
        assert_eq!(found("base = \"null\"\n", listed), [""; 0]);
    }

    /// A `line-transfer` without a range replaces that of the class, so no reading shows what
    /// contention costs an elevator there. The `run-delay` of `srp` is fitted, without a range.
    #[test]
    fn what_contention_costs_is_tested_where_the_profile_has_a_range() {
        let designs = ["mq-none", "mq-deadline"];
        assert_eq!(found(&card_with(""), designs), [""; 0]);
        let of_card = found(&card_with("line-transfer = \"90ns\""), designs);
        assert_eq!(of_card, ["cpu.line-transfer"]);
        assert_eq!(found("base = \"null\"\n", designs), [""; 0]);
        let legacy = ["legacy-deadline", "mq-deadline"];
        assert_eq!(found("base = \"srp\"\n", legacy), ["cpu.run-delay"]);
    }
}
