//! The figures that decide between two designs and that no reading varies.
//!
//! Two kinds of mechanisms decide. Designs differ in some of their choices, and each choice works
//! through the costs of some steps. And each run is limited by a resource: were that faster, the
//! choices might show. If readings cannot vary what such a mechanism costs, they show nothing about
//! it: that two designs are equal in all of them is no finding. Profiles say which of their keys
//! charge a resource.

use core::mem::discriminant;

use blockyard::policy::{Merges, Policies};
use blockyard_devices::charges::{HANDOVER, INTERRUPTS, Resource};
use blockyard_devices::profile::{Basis, Design, Device};
use blockyard_fio::job::JobFile;
use blockyard_sim::machine::locks::LockKind;

use super::question::Question;
use crate::Answer;
use crate::explanation::{Bottleneck, bottleneck, load};
use crate::figures::Figures;

const ONE_LOCK: &[Resource] =
    &[Resource::SingleLock, Resource::LockMoves, Resource::SoftInterrupts];
const ELEVATOR: &[Resource] = &[Resource::Elevator];
const LOCK_MOVES: &[Resource] = &[Resource::LockMoves];
const MERGING: &[Resource] = &[Resource::Merging];
const RUNS: &[Resource] = &[Resource::Runs];
const POLLS: &[Resource] = &[Resource::Polls];

/// Returns the resources through which the choices of two designs differ.
fn of_choices(one: &Design, other: &Design) -> Vec<Resource> {
    let [a, b] = [&one.policies, &other.policies];
    // Tunables of one elevator differ in the order of requests, which costs no step more.
    let same_elevator = discriminant(&a.elevator) == discriminant(&b.elevator);
    let same_lock = a.elevator.has_one_lock() == b.elevator.has_one_lock()
        && a.elevator.lists_insertions() == b.elevator.lists_insertions();
    let hosts = one.host != other.host || one.submitter_sleeps != other.submitter_sleeps;
    let choices = [
        (a.model != b.model, ONE_LOCK),
        (a.model != b.model || hosts, HANDOVER),
        (!same_elevator, ELEVATOR),
        (!same_lock || one.lock_batch != other.lock_batch, LOCK_MOVES),
        ((a.merges == Merges::Off) != (b.merges == Merges::Off), MERGING),
        (runs_differ(a, b) || one.worker != other.worker, RUNS),
        (hosts || one.hw_queues != other.hw_queues, INTERRUPTS),
        (one.poll_queues.count != other.poll_queues.count, POLLS),
        (one.poll_queues.count != other.poll_queues.count, INTERRUPTS),
    ];
    choices.into_iter().filter(|(differ, _)| *differ).flat_map(|(_, of)| of).copied().collect()
}

/// Whether two designs differ in when or by whom queues are run.
fn runs_differ(a: &Policies, b: &Policies) -> bool {
    a.dispatch != b.dispatch || a.dequeue != b.dequeue || a.plug != b.plug || a.restart != b.restart
}

/// Returns the resources that limit the run of `figures` of `jobs` on `device`. Where a device's
/// queue is full, its commands take long.
fn of_limit(device: &Device, jobs: &JobFile, figures: &Figures) -> Vec<Resource> {
    match bottleneck(device, figures) {
        Bottleneck::Family(limit) => limit.part().resources(&load(figures)),
        Bottleneck::Lock { lock: LockKind::Queue, .. } => ONE_LOCK.to_vec(),
        Bottleneck::Lock { lock: LockKind::Elevator, .. } => [ELEVATOR, LOCK_MOVES].concat(),
        Bottleneck::Lock { .. } => LOCK_MOVES.to_vec(),
        Bottleneck::Cpus { .. } => {
            let copies = jobs.jobs.iter().any(|job| !job.direct).then_some(Resource::PageCopies);
            [Resource::Processors].into_iter().chain(copies).collect()
        }
        Bottleneck::Depth { .. } | Bottleneck::DeviceLatency { .. } => {
            [figures.family.own().resources(&load(figures)), vec![Resource::Device]].concat()
        }
        Bottleneck::Jobs { .. } => Vec::new(),
    }
}

/// Whether readings show the part of `key`, or need not: the profile of `device` states a range for
/// it, or a document.
fn is_tested(device: &Device, key: &str) -> bool {
    let figure = device.figures.iter().find(|figure| figure.key == key);
    figure.is_some_and(|of| of.range.is_some() || of.basis() == Basis::Stated)
}

/// Returns the keys that decide between two designs on `device` although readings do not vary them,
/// each once and in order of the alphabet. `runs` have the figures of `jobs` under both.
fn untested(
    device: &Device,
    jobs: &JobFile,
    designs: [&Design; 2],
    runs: [&Figures; 2],
) -> Vec<String> {
    let [one, other] = designs;
    let choices = of_choices(one, other);
    // Runs of one design have no choice that the limit could hide.
    let limits = if choices.is_empty() { Vec::new() } else { runs.to_vec() };
    let limits = limits.into_iter().flat_map(|figures| of_limit(device, jobs, figures));
    let resources = choices.into_iter().chain(limits);
    let keys = resources.flat_map(|resource| device.keys_that_charge(resource));
    let mut keys: Vec<_> = keys.filter(|key| !is_tested(device, key)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

impl Question<'_> {
    /// Returns the keys that decide between two of the designs, by their places in `answer`,
    /// although readings do not vary them.
    pub(super) fn untested(&self, answer: &Answer, pair: [usize; 2]) -> Vec<String> {
        debug_assert_eq!(self.designs.len(), answer.designs.len(), "an outcome for each design");
        let runs = pair.map(|at| &answer.designs[at].figures);
        untested(self.device_of(pair[1]), self.jobs, pair.map(|at| &self.designs[at]), runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whatif;
    use blockyard_fio::job::{NoSource, parse_args};
    use blockyard_sim::simulate::Conditions;

    /// Returns the untested keys of two designs whose jobs ask for no more.
    fn found(device: &str, names: [&str; 2]) -> Vec<String> {
        let job = "--name=x --rw=randread --bs=4k --number_ios=20 --rate_iops=1 --direct=1";
        found_in(device, names, job)
    }

    /// Returns the untested keys of two designs that run `job` on a device.
    fn found_in(device: &str, names: [&str; 2], job: &str) -> Vec<String> {
        let device = Device::parse("test", device).expect("a sound profile");
        let [one, other] = names.map(|name| Design::lookup(name).expect("a built-in design"));
        let jobs = parse_args(job.split(' '), &NoSource).expect("a sound job");
        let conditions = Conditions::new(1);
        let designs = [one, other];
        let answer = whatif(&jobs, &device, &designs, &conditions).expect("runs");
        let [first, second] = answer.designs.as_slice() else { panic!("{:?}", answer.unsuited) };
        untested(&device, &jobs, designs.each_ref(), [&first.figures, &second.figures])
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

    /// The readings called two designs equal in all, although the flash that limited both had a
    /// time without a range. A read has no part in a job that writes.
    #[test]
    fn a_figure_of_the_medium_that_limits_both_designs_is_named() {
        let designs = ["mq-none", "mq-deadline"];
        let random = "--name=x --bs=4k --iodepth=32 --ioengine=libaio --runtime=300ms --time_based --direct=1";
        let disk = "base = \"hdd-7200\"\n[platters.read]\naverage = \"9ms\"\n";
        let reads = format!("{random} --rw=randread --size=100g");
        assert_eq!(found_in(disk, designs, &reads), ["platters.read.average"]);
        assert_eq!(found(disk, designs), [""; 0], "the pace of the job decides");
        let ranged = disk.replace(
            "\"9ms\"",
            "{ value = \"9ms\", range = [\"8ms\", \"10ms\"], origin = \"assumed: a test\" }",
        );
        assert_eq!(found_in(&ranged, designs, &reads), [""; 0]);
        let flash =
            "base = \"sata-ssd\"\n[flash]\nprogram = \"4ms\"\nread = \"70us\"\nslc = \"0B\"\n";
        let writes = format!("{random} --rw=randwrite");
        assert_eq!(found_in(flash, designs, &writes), ["flash.program"]);
    }

    /// Two jobs fill a processor with reads of one 4 KiB page each. A direct read copies no page.
    #[test]
    fn copies_of_pages_are_named_where_buffered_jobs_fill_the_processors() {
        let slow = "base = \"null\"\n[cpu]\ncpus = 1\npage-copy = \"2us\"\n";
        let job = "--name=x --rw=read --bs=4k --numjobs=2 --runtime=20ms --time_based --size=64m";
        let designs = ["mq-none", "mq-deadline"];
        let buffered = found_in(slow, designs, &format!("{job} --direct=0"));
        assert!(buffered.iter().any(|key| key == "cpu.page-copy"), "{buffered:?}");
        let direct = found_in(slow, designs, &format!("{job} --direct=1"));
        assert!(direct.iter().all(|key| key != "cpu.page-copy"), "{direct:?}");
    }

    /// A processor without a state has no key of it.
    #[test]
    fn a_sleep_state_without_a_range_is_named_where_threads_hand_over() {
        let hosts = ["hsq", "mmc-blkmq"];
        assert_eq!(found(&card_with("idle-exit = \"100us\""), hosts), ["cpu.idle-exit"]);
        let none = "idle-residency = \"0us\"\nidle-exit = \"0us\"";
        assert_eq!(found(&card_with(none), hosts), [""; 0]);
    }
}
