//! The order of dispatch and the numbers of events, compared with recordings of Linux on null_blk,
//! and with what Linux itself repeats.
//!
//! `tests/null_blk_long` holds jobs of about a thousand requests, and of their recordings the
//! numbers of events and the requests in the order of dispatch. The recordings of `tests/null_blk`
//! are compared too. `oracle/repeated` has the result of a second recording of each job: how many
//! requests Linux itself displaced.
//!
//! The numbers of events must agree. A request is displaced if it is not part of the longest
//! sequence of requests that both orders have.
//!
//! Linux does not repeat the order of jobs whose threads compete for tags or for the processor:
//! which of two threads that were woken together runs first depends on some nanoseconds of the
//! processor time that each has used. Nor does it repeat an order in which two processors take
//! requests from an elevator at the same time. Such recordings are kept to show how far the two
//! orders of Linux agree, and how far ours does.

use crate::oracle;

use blockyard::trace::{Event, Sink};
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Conditions, Simulation};
use blockyard_trace::observe::Observer;
use oracle::{Recording, counts, dispatched, displaced};
use std::collections::BTreeMap;

const FOLDERS: [&str; 2] = ["null_blk", "null_blk_long"];

/// Returns how many requests two orders have in common before they differ.
fn alike(ours: &[&str], theirs: &[&str]) -> usize {
    ours.iter().zip(theirs).take_while(|(ours, theirs)| ours == theirs).count()
}

/// How well two orders agree: the requests that are displaced, and those before the first
/// difference.
#[derive(Clone, Copy)]
struct Agreement {
    displaced: usize,
    alike: usize,
}

impl Agreement {
    /// Whether at most 3 in 1000 of `requests` are displaced.
    const fn is_close(self, requests: usize) -> bool {
        self.displaced * 1000 <= requests * 3
    }
}

/// Returns how well Linux agrees with itself in a second recording of each job.
fn repeated() -> BTreeMap<&'static str, Agreement> {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let [displaced, alike] = [(); 2].map(|()| words.next().unwrap().parse().unwrap());
        (name, Agreement { displaced, alike })
    };
    include_str!("oracle/repeated").lines().map(line).collect()
}

/// The jobs `waiting...` need [woken-takes-next-queue], and that a waiter that found no tag runs
/// first.
#[test]
fn commands_and_merges_agree_and_nearly_all_orders_of_dispatch() {
    let repeated = repeated();
    let mut wrong = Vec::new();
    let mut all = 0;
    let mut close = 0;
    let mut repeats = 0;
    println!("{:44} {:^15} {:^15}", "", "displaced", "alike before");
    println!(
        "{:35} requests {:>7} {:>7} {:>7} {:>7}",
        "recording", "ours", "Linux", "ours", "Linux"
    );
    for recording in FOLDERS.into_iter().flat_map(Recording::all) {
        let name = recording.name();
        let ours = recording.simulate();
        let order = dispatched(&ours);
        let theirs = dispatched(&recording.events);
        let displaced = displaced(&order, &theirs);
        let alike = alike(&order, &theirs);
        let ours_agrees = Agreement { displaced, alike };
        let linux = repeated[&*name];
        let requests = theirs.len();
        println!(
            "{name:35} {requests:>8} {displaced:>7} {:>7} {alike:>7} {:>7}",
            linux.displaced, linux.alike
        );
        all += 1;
        close += u32::from(ours_agrees.is_close(requests));
        repeats += u32::from(linux.is_close(requests));
        let ours = counts(&ours);
        let theirs = counts(&recording.events);
        if ours != theirs {
            wrong.push(format!("{name}: Linux has {theirs:?}, we have {ours:?}"));
        }
        if linux.is_close(requests) && !ours_agrees.is_close(requests) {
            wrong.push(format!("{name}: {displaced} of {requests} are displaced"));
        }
    }
    println!("of {all}, at most 3 in 1000 displaced: ours {close}, Linux itself {repeats}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all >= 40, "{all} recordings");
    assert!(close * 100 >= all * 85, "{close} of {all} orders agree");
}

#[test]
fn each_long_job_has_the_recordings_it_names() {
    Recording::assert_complete("null_blk_long");
}

#[test]
fn what_moved_is_displaced() {
    let order = ["a", "b", "c", "d", "e"];
    for (other, expected) in [
        (vec!["a", "b", "c", "d", "e"], 0),
        (vec!["b", "c", "d", "e", "a"], 1),
        (vec!["a", "c", "b", "e", "d"], 2),
        (vec!["e", "d", "c", "b", "a"], 4),
        (vec!["a", "b", "d", "e"], 1),
        (vec!["a", "b", "c", "x", "d", "e"], 1),
    ] {
        assert_eq!(displaced(&other, &order), expected, "{other:?}");
    }
    assert_eq!(displaced(&["a", "a", "b"], &["a", "b", "a"]), 1);
}

/// Records the instants of dispatches and completions, in microseconds.
#[derive(Default)]
struct Instants(Vec<(char, u64)>);

impl Sink for Instants {
    fn event(&mut self, event: &Event<'_>) {
        if let Some(letter @ ('D' | 'C')) = event.action.letter() {
            self.0.push((letter, event.at.as_ns() / 1000));
        }
    }
}

impl Observer for Instants {}

/// The device takes one command at a time, and the second read waits for the tag of the first.
/// Linux 6.12 and 7.3 leave the run to a worker, which begins 7 us after the completion in
/// `tests/kernels`. The interrupt itself dispatched it here.
#[test]
fn a_worker_dispatches_what_waited_for_a_tag() {
    for run_delay_us in [50, 200] {
        let device = format!(
            "base = \"null\"\n[null]\ndepth = 1\ncompletion = \"timer\"\ncompletion-time = \"10ms\"\n\
             [cpu]\nrun-delay = \"{run_delay_us}us\"\n"
        );
        let device = Device::parse("null_blk", &device).unwrap();
        let design = Design::lookup("mq-deadline").unwrap();
        let job = "--name=a --filename=/dev/a --rw=randread --ioengine=libaio --iodepth=2 \
                   --direct=1 --number_ios=2 --iodepth_batch_submit=2";
        let jobs = parse_args(job.split_ascii_whitespace(), &NoSource).unwrap();
        let mut instants = Instants::default();
        let conditions = Conditions::new(1);
        let simulation =
            Simulation::observed(&jobs, &device, &design, conditions, &mut instants).unwrap();
        simulation.finish().unwrap();
        let [('D', _), ('C', ended), ('D', dispatched), ('C', _)] = *instants.0 else {
            panic!("{:?}", instants.0)
        };
        assert_eq!(dispatched - ended, run_delay_us);
    }
}
