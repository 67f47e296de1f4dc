//! Explanations of figures made up for the purpose, as data and as sentences.

#![expect(clippy::float_arithmetic, reason = "figures for reading")]

use blockyard::trace::Hold;

use super::difference::explain;
use super::*;
use crate::{
    CommandCounts, DriveFigures, FamilyFigures, FamilyLimit, Figures, Held, HoldFigures,
    HostFigures, JobTime, Latency, Life, LifeStage, LoadFigures, LockFigures, LockKind, MmcLimit,
    Overlapped, Parts, PartsFigures, PmemFigures, PmemParts, TransferCounts, TransferTimes, Woken,
    Work, WrittenFigures,
};

/// A run of a second in which `commands` of `ios_per_command` I/Os each spent 440 us at the device.
fn run(commands: u64, ios_per_command: f64) -> Figures {
    let commands_per_s = commands as f64;
    // A hold too short to be a reason: requests did wait for the device.
    let held_once = Held { count: 1, ..Held::default() };
    Figures {
        ios: 1_000_000,
        bytes: 4_096_000_000,
        read_bytes: 0,
        written_bytes: 0,
        iops: commands_per_s * ios_per_command,
        bytes_per_s: 4_096_000_000,
        lat_ns: Latency::default(),
        cpu_percent: 10.0,
        jobs_cpu_percent: 10.0,
        spinning_percent: 0.0,
        polling_percent: 0.0,
        commands,
        ios_per_command,
        commands_per_s,
        at_device: commands_per_s * 440e-6,
        command_ns: 440e3,
        device_busy_percent: 100.0,
        mean_idle_gap_ns: 0,
        wakeups_per_io: 0.1,
        runs_per_io: 0.2,
        refusals_per_io: 0.3,
        dequeued_percent: 0.0,
        jobs_ns: JobTime::default(),
        one_at_a_time: false,
        // Requests wait for a tag for a tenth of their time.
        life_ns: Life { waiting_for_tag: 44e3, in_driver: 396e3, ..Life::default() },
        read_life_ns: Life::default(),
        write_life_ns: Life::default(),
        holds: [(Hold::Device, held_once)].into_iter().collect(),
        locks: Vec::new(),
        family: FamilyFigures::default(),
        buffered: None,
    }
}

fn explained_on(device: &str, runs: &[(&str, Figures)]) -> Explanation {
    let device = Device::lookup(device).expect("a built-in device");
    let runs: Vec<_> = runs.iter().map(|(name, figures)| (*name, figures, &device)).collect();
    explain(&runs)
}

fn explained(runs: &[(&str, Figures)]) -> Explanation {
    explained_on("srp", runs)
}

fn text(runs: &[(&str, Figures)]) -> String {
    explained(runs).to_string()
}

#[test]
fn worse_merging_is_explained_by_early_dispatch() {
    let pulled = Figures {
        dequeued_percent: 97.0,
        refusals_per_io: 8.4,
        runs_per_io: 9.5,
        ..run(140_000, 1.0)
    };
    let explanation = explained(&[("a", run(50_000, 12.0)), ("b", pulled)]);
    assert_eq!((explanation.low.as_str(), explanation.factor), ("b", Factor::Merging));
    assert!((explanation.share - 0.2333).abs() < 1e-3, "{explanation:?}");
    assert_eq!(
        explanation.to_string(),
        "b reaches 23 % of a's IOPS: 1.00 I/Os per command instead of 12.0, 2.80 times the command \
         rate. Under b, requests leave the scheduler while the device is full: for 97 % of their time \
         before the driver they can no longer be merged (a: 0 %). Per I/O there are 8.40 refusals and \
         9.50 runs of hardware queues (a: 0.30 and 0.20)."
    );
}

fn merged_text(dequeued_percent: f64) -> String {
    let merged = Figures { dequeued_percent, ..run(50_000, 12.0) };
    text(&[("a", merged), ("b", run(50_000, 1.0))])
}

#[test]
fn worse_merging_without_early_dispatch_is_explained_by_neighbours_that_do_not_meet() {
    let end = ", but under b fewer adjacent requests are queued at the same time.";
    let both = " Under both, requests stay mergeable until dispatch";
    assert!(merged_text(0.0).ends_with(&format!("{both}{end}")), "{}", merged_text(0.0));
    let each = " Requests stay mergeable for 100 % of their time before dispatch under b (a: 70 %)";
    assert!(merged_text(30.0).ends_with(&format!("{each}{end}")), "{}", merged_text(30.0));
}

fn lock(kind: LockKind, mean_wait_ns: f64, held_percent: f64) -> LockFigures {
    LockFigures {
        kind,
        all: HoldFigures {
            per_io: 3.0,
            moved_percent: 0.0,
            held_percent,
            mean_hold_ns: 0.0,
            longest_hold_ns: 0,
            mean_wait_ns,
            longest_wait_ns: 9_000,
        },
        holders: Vec::new(),
    }
}

#[test]
fn a_lower_command_rate_is_explained_by_both_bottlenecks() {
    let locks = vec![lock(LockKind::Elevator, 900.0, 97.8), lock(LockKind::TagWords, 800.0, 98.0)];
    let locked = Figures { spinning_percent: 60.0, locks, ..run(70_000, 1.0) };
    let explanation = explained(&[("a", locked), ("b", run(140_000, 1.0))]);
    assert_eq!((explanation.factor, explanation.share), (Factor::CommandRate, 0.5));
    assert_eq!(
        explanation.to_string(),
        "a reaches 50 % of b's IOPS: same merging (1.00 I/Os per command), half the command rate. \
         On average, 30.8 commands are at the device instead of 61.6. Under a, the \
         scheduler's lock is the bottleneck (held 98 % of the time, 10 % of the jobs' CPUs in use, 60 % of \
         that waiting for locks); under b, the \
         device's queue depth is the bottleneck (61.6 of 62 commands at the device)."
    );
}

fn busy(commands: u64) -> Figures {
    Figures { jobs_cpu_percent: 100.0, ..run(commands, 1.0) }
}

#[test]
fn a_bottleneck_that_both_have_is_written_once_with_both_names() {
    let words = text(&[("a", busy(50_000)), ("b", busy(100_000))]);
    let end = " Under both a and b, the CPUs are the bottleneck (100 % of the jobs' CPUs in use).";
    assert!(words.ends_with(end), "{words}");
}

#[test]
fn the_run_furthest_from_the_first_is_explained_whatever_its_name() {
    let runs = [("x", run(100_000, 1.0)), ("y", run(99_000, 1.0)), ("z", run(300_000, 1.0))];
    assert!(text(&runs).starts_with("x reaches 33 % of z's IOPS: "), "{}", text(&runs));
}

#[test]
fn equal_designs_are_explained_by_their_bottleneck() {
    let words = text(&[("a", run(140_000, 1.0)), ("b", run(140_000, 1.0))]);
    let begin =
        "All designs are within 2 % of each other: the device's queue depth is the bottleneck";
    assert!(words.starts_with(begin), "{words}");
}

fn unheld() -> Figures {
    Figures { holds: crate::Holds::default(), ..run(140_000, 1.0) }
}

/// A reader asked why three schedulers were equal. No request had ever waited in one, and the
/// answer did not say so.
#[test]
fn an_answer_says_that_no_scheduler_had_a_choice() {
    const NEVER: &str = "No request ever waited in a scheduler";
    let held = || {
        let held = Held { count: 1, per_io: 0.1, percent: 1.0 };
        Figures { holds: [(Hold::Device, held)].into_iter().collect(), ..run(140_000, 1.0) }
    };
    assert!(text(&[("a", unheld()), ("b", unheld())]).contains(NEVER));
    assert!(!text(&[("a", unheld()), ("b", held())]).contains(NEVER));
    assert!(!text(&[("a", unheld())]).contains(NEVER), "a design alone is compared with none");
}

/// The same resource limited both designs at 97 and 98 %, and the answer named it twice.
#[test]
fn a_bottleneck_of_both_designs_is_named_once() {
    let evidence = [("a", 97.0), ("b", 98.0)].map(|(design, percent)| Evidence::Bottleneck {
        design: design.to_owned(),
        disk: None,
        bottleneck: Bottleneck::Family(FamilyLimit::Mmc(MmcLimit::BusAndCard { percent })),
    });
    let explanation = Explanation {
        low: "a".to_owned(),
        high: Some("b".to_owned()),
        factor: Factor::CommandRate,
        share: 0.5,
        evidence: evidence.to_vec(),
    };
    assert_eq!(
        explanation.to_string(),
        "a reaches 50 % of b's IOPS: Under both a and b, the bus and the card are the bottleneck (a: busy 97 % of \
         the time; b: busy 98 % of the time)."
    );
}

/// A life of 7 ms, 5 of them in the part that `spend` sets, and queues held for `reasons`.
fn living(spend: fn(&mut Life, f64), reasons: &[(Hold, f64)]) -> Figures {
    let mut life_ns = Life { in_driver: 2e6, ..Life::default() };
    spend(&mut life_ns, 5e6);
    Figures { life_ns, holds: holds_of(reasons), ..run(100_000, 1.0) }
}

fn holds_of(reasons: &[(Hold, f64)]) -> crate::Holds {
    let held =
        |(hold, percent): &(Hold, f64)| (*hold, Held { percent: *percent, ..Held::default() });
    reasons.iter().map(held).collect()
}

#[test]
fn the_longest_stage_is_named_with_its_reason() {
    let queued = |life: &mut Life, ns| life.queued = ns;
    let words = text(&[("a", living(queued, &[(Hold::Budget, 60.0), (Hold::Tag, 30.0)]))]);
    let end = " Under a, requests take 7.00 ms on average; for 5.00 ms of that they are queued in the \
               scheduler because the device has as many requests as its budget allows.";
    assert!(words.ends_with(end), "{words}");
    // Less than half is not worth a sentence.
    let spread = |life: &mut Life, ns| (life.queued, life.dequeued) = (ns, 4e6);
    assert!(!text(&[("a", living(spread, &[(Hold::Budget, 60.0)]))]).contains("Under a"));
    // No reason makes up half: none is named.
    let mixed = [(Hold::Budget, 30.0), (Hold::Tag, 30.0), (Hold::Order, 20.0)];
    let words = text(&[("a", living(queued, &mixed))]);
    assert!(words.ends_with(" for 5.00 ms of that they are queued in the scheduler."), "{words}");
    // What holds a queue does not keep a job from its results.
    let not_reaped = |life: &mut Life, ns| life.not_reaped = ns;
    let words = text(&[("a", living(not_reaped, &[(Hold::Budget, 99.0)]))]);
    assert!(words.ends_with(" they are complete and their job has not reaped them."), "{words}");
}

#[test]
fn time_in_the_driver_is_named_only_in_comparison() {
    let in_driver = |life: &mut Life, ns| life.in_driver = ns;
    let quick = living(in_driver, &[(Hold::Budget, 99.0)]);
    assert!(!text(&[("a", quick.clone())]).contains("Under a"));
    let held = living(|life, ns| life.dequeued = ns, &[(Hold::Device, 97.0)]);
    let explanation = explained(&[("a", Figures { iops: 3e5, ..quick }), ("b", held)]);
    let words = explanation.to_string();
    let end = " Under b, requests take 7.00 ms on average; for 5.00 ms of that they have left the \
               scheduler and wait because the device has no free slot (a: 5.00 ms of 5.00 ms in the driver).";
    assert!(words.ends_with(end), "{words}");
    let Some(Evidence::LongestStage { stage, hold, .. }) = explanation.evidence.last() else {
        panic!("{explanation:?}");
    };
    assert_eq!((*stage, *hold), (LifeStage::Dequeued, Some(Hold::Device)));
}

#[test]
fn cpus_that_poll_are_not_used_up() {
    let busy = Figures { jobs_cpu_percent: 100.0, ..run(10_000, 1.0) };
    let words = text(&[("a", busy.clone())]);
    assert!(words.starts_with("a: the CPUs are the bottleneck (100 % of"), "{words}");
    assert_eq!(
        text(&[("a", Figures { polling_percent: 98.0, ..busy })]),
        "a: the device's latency is the bottleneck (4.40 commands at the device, 100 % of the jobs' \
         CPUs in use, 98 % of that polling)."
    );
}

#[test]
fn a_run_without_ios_cannot_be_compared() {
    let none = Figures { ios: 0, ..run(0, 0.0) };
    let explanation = explained(&[("a", none), ("b", run(1, 1.0))]);
    assert_eq!(explanation.factor, Factor::NothingEnded);
    assert!(explanation.to_string().starts_with("No I/O completed"));
}

/// A transfer of an MMC host.
type Transfer = (TransferTimes, TransferCounts);

/// 40 us busy and 10 idle, one I/O each.
const TIMES: TransferTimes =
    TransferTimes { work: 40e3, idle: 10e3, absent: 0.0, map: 0.0, unmap: 100.0 };
const COUNTS: TransferCounts = TransferCounts { ios: 1.0, status: 0.0, awaited_wakeups: 0.0 };
const QUICK: Transfer = (TIMES, COUNTS);

/// A run on an MMC host that does nothing but transfers like this one.
fn hosted((transfer_ns, per_transfer): Transfer) -> Figures {
    let mut host = HostFigures {
        commands: CommandCounts([0; 64]),
        queue_status: 0,
        lost_writes: 0,
        doubtful_writes: 0,
        status_per_write: Some(per_transfer.status),
        bus_busy_percent: 50.0,
        mean_bus_gap_ns: 0,
        unnoticed_ns: 0,
        absent_percent: 0.0,
        memory_percent: 0.0,
        map_percent: Overlapped::default(),
        unmap_percent: Overlapped::default(),
        wakeups_per_io: 4.0,
        woken_per_io: Woken::default(),
        awaited_wakeups_per_io: 2.0,
        switches_per_io: 1.0,
        transfer_ns,
        per_transfer,
    };
    let period_ns = host.period_ns();
    host.absent_percent = 100.0 * transfer_ns.absent / period_ns;
    let commands_per_s = 1e9 / period_ns;
    Figures {
        iops: commands_per_s * per_transfer.ios,
        ios_per_command: per_transfer.ios,
        commands_per_s,
        device_busy_percent: 100.0 * transfer_ns.work / period_ns,
        family: FamilyFigures { mmc: Some(host), ..FamilyFigures::default() },
        ..run(1, 1.0)
    }
}

fn text_of_card(runs: &[(&str, Figures)]) -> String {
    explained_on("emmc-hs400-sprd", runs).to_string()
}

#[test]
fn longer_idle_time_is_explained_by_what_happens_in_it() {
    let slow = (
        TransferTimes { idle: 40e3, ..TIMES },
        TransferCounts { status: 1.0, awaited_wakeups: 2.0, ..COUNTS },
    );
    assert_eq!(
        text_of_card(&[("a", hosted(QUICK)), ("b", hosted(slow))]),
        "b reaches 62 % of a's IOPS: same merging (1.00 I/Os per command), 62 % of the command rate. \
         A transfer starts 80.0 us instead of 50.0 us after the previous one: the bus and the card are \
         busy for 40.0 us and idle for 40.0 us instead of 10.0 us while requests wait. Between two \
         transfers there are 1.00 CMD13s instead of 0.00 and 2.00 wake-ups that the bus waits for \
         instead of 0.00."
    );
}

#[test]
fn only_causes_of_the_idle_time_are_named() {
    // More CMD13s under the quicker design explain nothing; nor do 200 ns of 100 us.
    let quick = (TIMES, TransferCounts { status: 1.0, ..COUNTS });
    let slow = TransferTimes { idle: 60e3, map: 30e3, unmap: 300.0, ..TIMES };
    let words = text_of_card(&[("a", hosted(quick)), ("b", hosted((slow, COUNTS)))]);
    let cause =
        "Between two transfers there are 30.0 us of mapping on an idle bus instead of 0 ns.";
    assert!(words.contains(cause), "{words}");
    assert!(!words.contains("CMD13") && !words.contains("unmapping"), "{words}");
    // Where the card is slower, nothing between transfers is looked for.
    let slow = TransferTimes { work: 90e3, ..slow };
    let words = text_of_card(&[("a", hosted(QUICK)), ("b", hosted((slow, COUNTS)))]);
    assert!(words.contains("busy for 90.0 us instead of 40.0 us"), "{words}");
    let busy = (TransferTimes { work: 90e3, ..TIMES }, TransferCounts { status: 1.0, ..COUNTS });
    let words = text_of_card(&[("a", hosted(QUICK)), ("b", hosted(busy))]);
    assert!(!words.contains("Between two"), "{words}");
}

#[test]
fn jobs_that_keep_a_host_waiting_are_named() {
    let slow = hosted((TransferTimes { absent: 50e3, ..TIMES }, COUNTS));
    let jobs_ns = JobTime { alive: 1000, waiting: 400, pausing: 600, ..JobTime::default() };
    let words = text_of_card(&[("a", hosted(QUICK)), ("b", Figures { jobs_ns, ..slow })]);
    assert!(words.contains(" and without a request for 50.0 us instead of 0 ns."), "{words}");
    assert!(words.contains("Under b, the pace of the jobs is the bottleneck ("), "{words}");
    // Of 50 us, 40 are those of the bus and the card.
    let larger = "under a, the bus and the card are the bottleneck (busy 80 % of the time).";
    assert!(words.contains(larger), "{words}");
}

fn text_of_paced(waiting: u64, in_calls: u64, thinking: u64, paced: u64) -> String {
    let jobs_ns = JobTime {
        alive: 1000,
        waiting,
        in_calls,
        thinking,
        pausing: 1000 - waiting - in_calls - thinking,
        paced,
        ready: 0,
    };
    let slow = hosted((TransferTimes { absent: 50e3, ..TIMES }, COUNTS));
    text_of_card(&[("a", hosted(QUICK)), ("b", Figures { jobs_ns, ..slow })])
}

#[test]
fn of_the_latency_of_the_device_and_the_pace_of_the_jobs_the_larger_part_is_named() {
    let latency = "Under b, the device's latency is the bottleneck (";
    assert!(
        text_of_paced(990, 0, 0, 0).contains(latency)
            && text_of_paced(700, 280, 0, 0).contains(latency)
    );
    assert!(text_of_paced(900, 0, 0, 0).contains(latency), "{}", text_of_paced(900, 0, 0, 0));
    let pace = "Under b, the pace of the jobs is the bottleneck (";
    assert!(
        text_of_paced(400, 0, 0, 0).contains(pace)
            && text_of_paced(300, 150, 200, 0).contains(pace)
    );
    // A faster device does not raise the rate that a job asks for.
    assert!(text_of_paced(900, 0, 0, 100).contains(pace), "{}", text_of_paced(900, 0, 0, 100));
}

#[test]
fn idle_time_of_shared_transfers_is_given_per_io() {
    let counts = TransferCounts { ios: 8.0, ..COUNTS };
    let slow = (TransferTimes { idle: 40e3, ..TIMES }, counts);
    let words = text_of_card(&[("a", hosted((TIMES, counts))), ("b", hosted(slow))]);
    let end =
        " Each transfer carries 8.00 I/Os: the idle time per I/O is 5.00 us instead of 1.25 us.";
    assert!(words.ends_with(end), "{words}");
}

#[test]
fn equal_designs_whose_idle_time_differs_say_how_many_ios_share_it() {
    // Both take 50 us for each I/O: one merges more and idles longer.
    let long = TransferTimes { work: 460e3, idle: 40e3, ..TIMES };
    let long = hosted((long, TransferCounts { ios: 10.0, ..COUNTS }));
    let words = text_of_card(&[("a", hosted(QUICK)), ("b", long)]);
    let shared = " Between two transfers the bus and the card are idle for 10.0 us under a (1.00 I/Os \
                  per transfer: 10.0 us of 50.0 us per I/O) and for 40.0 us under b (10.0 I/Os per \
                  transfer: 4.00 us of 50.0 us per I/O).";
    let equal = "All designs are within 2 % of each other: ";
    assert!(words.starts_with(equal) && words.contains(shared), "{words}");
    // Where no transfer is shared, or the idle time is the same, there is nothing to say.
    let same = text_of_card(&[("a", hosted(QUICK)), ("b", hosted(QUICK))]);
    assert!(!same.contains("Between"), "{same}");
    let alone = (TransferTimes { work: 10e3, idle: 40e3, ..TIMES }, COUNTS);
    let words = text_of_card(&[("a", hosted(QUICK)), ("b", hosted(alone))]);
    assert!(!words.contains("Between"), "{words}");
}

fn memory(of: Transfer, memory_percent: f64) -> Figures {
    let figures = hosted(of);
    let host = figures.family.mmc.map(|host| HostFigures { memory_percent, ..host });
    Figures { family: FamilyFigures { mmc: host, ..FamilyFigures::default() }, ..figures }
}

#[test]
fn a_busy_card_memory_is_the_bottleneck_though_the_bus_is_idle() {
    let long = TransferTimes { work: 60e3, idle: 40e3, ..TIMES };
    let long = (long, TransferCounts { ios: 2.0, ..COUNTS });
    let words = text_of_card(&[("a", memory(QUICK, 99.0)), ("b", memory(long, 99.0))]);
    let held = "the card's memory is the bottleneck (it programs pages or reads ahead 99 % of the time). \
                Between two transfers the bus and the card are idle for 10.0 us under a";
    assert!(words.contains(held), "{words}");
    let slow = memory((TransferTimes { idle: 60e3, ..TIMES }, COUNTS), 20.0);
    let words = text_of_card(&[("a", memory(QUICK, 99.0)), ("b", slow)]);
    assert!(words.contains("Under b, the host's work between transfers is the"), "{words}");
    assert!(words.contains("under a, the card's memory is the bottleneck"), "{words}");
}

#[test]
fn a_card_that_is_always_busy_is_the_bottleneck() {
    let busy = hosted((TransferTimes { idle: 1e3, ..TIMES }, COUNTS));
    assert_eq!(
        text_of_card(&[("a", busy)]),
        "a: the bus and the card are the bottleneck (busy 98 % of the time)."
    );
}

/// An I/O with 1 us on the path, and `parts` in the order copy, tracking, locks, log, map, fences.
fn in_memory(parts: [f64; 6]) -> PmemFigures {
    let [copy, tracking, locks, log, map, fences] = parts;
    let io_ns = 1000.0 + parts.iter().sum::<f64>();
    let parts_ns = PmemParts { path: 1000.0, copy, tracking, locks, log, map, fences };
    PmemFigures {
        io_ns,
        parts_ns,
        percent: PmemParts::new(100_000.0 / io_ns, |part| 100.0 * parts_ns.of(part) / io_ns),
        fences: 2.0,
        write_backs: 3.0,
        scans: 0.0,
        transfers: 0.0,
        lock_wait_ns: 0.0,
        channels_percent: 50.0,
    }
}

fn memory_run(pmem: PmemFigures) -> Figures {
    let iops = 1e9 / pmem.io_ns;
    let family = FamilyFigures { pmem: Some(pmem), ..FamilyFigures::default() };
    Figures { iops, family, ..run(1, 1.0) }
}

#[test]
fn longer_parts_of_an_io_are_named_largest_first_with_their_counters() {
    let own = in_memory([400.0, 0.0, 10.0, 20.0, 20.0, 150.0]);
    let linux = PmemFigures {
        fences: 4.0,
        scans: 1.0,
        transfers: 12.5,
        ..in_memory([400.0, 800.0, 20.0, 20.0, 20.0, 300.0])
    };
    let runs = [("linux", memory_run(linux)), ("own", memory_run(own))];
    let words = explained_on("pmem-dram-2015", &runs).to_string();
    let begin = "linux reaches 62 % of own's IOPS: an I/O takes 2.56 us of CPU time instead of 1.60 us. The \
         additional 960 ns include 800 ns for tracking readers (1.00 scans of all readers instead of 0.00, \
         12.5 cache lines from other CPUs instead of 0.00) and 150 ns for fences (4.00 fences instead of \
         2.00). Under linux, an I/O takes 2.56 us of CPU time: ";
    assert!(words.starts_with(begin), "{words}");
}

#[test]
fn the_parts_of_an_io_add_up() {
    let figures = in_memory([500.0, 0.0, 5.0, 100.0, 100.0, 295.0]);
    let words = explained_on("pmem-dram-2015", &[("btt", memory_run(figures))]).to_string();
    let end = " Under btt, an I/O takes 2.00 us of CPU time: 25 % for copying, 15 % for fences, 5 % for \
               the log, 5 % for the map and 50 % before and after the memory access.";
    assert!(words.ends_with(end), "{words}");
}

/// Flash whose dies are occupied with `work`, and whose channels are in use for `channels` percent
/// of the time.
fn flash(channels: f64, work: &[(Work, f64)], buffer_full_percent: f64) -> DriveFigures {
    let parts = |parts, percent, work: &[(Work, f64)]| PartsFigures {
        parts,
        units: 8,
        percent,
        work: work.to_vec(),
    };
    let dies = work.iter().map(|(_, percent)| percent).sum();
    DriveFigures {
        commands_per_doorbell: 1.0,
        interrupts_per_command: 1.0,
        controller_percent: 30.0,
        link_percent: 40.0,
        medium_percent: 50.0,
        disk: None,
        medium: Vec::new(),
        engine_percent: 0.0,
        at_device: 31.9,
        load: LoadFigures {
            parts: vec![parts(Parts::Channels, channels, &[]), parts(Parts::Dies, dies, work)],
            buffer_full_percent,
            waited_percent: 0.0,
            written: Some(WrittenFigures {
                past_cache_percent: 60.0,
                folded_percent: 0.0,
                collected_percent: 250.0,
            }),
        },
    }
}

/// A run on a drive with one queue of 32 commands, all of which are at the device.
fn text_of_flash(channels: f64, work: &[(Work, f64)], buffer_full_percent: f64) -> String {
    text_of_drive(flash(channels, work, buffer_full_percent))
}

fn text_of_linked(work: &[(Work, f64)], buffer_full_percent: f64) -> String {
    text_of_drive(DriveFigures { link_percent: 97.0, ..flash(40.0, work, buffer_full_percent) })
}

fn of_drive(drive: DriveFigures) -> FamilyFigures {
    FamilyFigures { drive: Some(drive), ..FamilyFigures::default() }
}

fn text_of_drive(drive: DriveFigures) -> String {
    let figures = Figures { at_device: 31.9, family: of_drive(drive), ..run(10_000, 1.0) };
    explained_on("sata-ssd", &[("a", figures)]).to_string()
}

#[test]
fn a_medium_for_which_writes_wait_is_named_before_the_depth() {
    let work = [(Work::CachePrograms, 50.0), (Work::PastCache, 30.0)];
    let cache = "a: the drive's full SLC cache is the bottleneck (the write buffer is full 55 % of the time; 60 % \
                 of the data written bypassed the cache; dies 80 % in use: 50 % programs into the cache, 30 % \
                 programs that bypass the cache).";
    assert_eq!(text_of_flash(40.0, &work, 55.0), cache);
    assert_eq!(text_of_flash(40.0, &work, 20.0), cache.replace("55 %", "20 %"));
    let depth =
        "a: the device's queue depth is the bottleneck (31.9 of 32 commands at the device).";
    assert_eq!(text_of_flash(40.0, &work, 10.0), depth);
    // What is used up all the time goes before what is used up for a smaller part of it.
    assert!(
        text_of_linked(&work, 20.0).starts_with("a: the link to the device is the bottleneck"),
        "{}",
        text_of_linked(&work, 20.0)
    );
    assert_eq!(text_of_linked(&work, 55.0), cache);
}

#[test]
fn extra_work_is_the_cause_if_it_takes_a_third_of_the_busy_time() {
    let collecting = text_of_flash(
        40.0,
        &[(Work::Collection, 40.0), (Work::PastCache, 35.0), (Work::Erases, 21.0)],
        0.0,
    );
    assert_eq!(
        collecting,
        "a: the drive's garbage collection is the bottleneck (garbage collection relocates 2.50 bytes per byte \
         written; dies 96 % in use: 40 % moving data, 35 % programs that bypass the cache, 21 % erases)."
    );
    let full = text_of_flash(
        40.0,
        &[(Work::Collection, 30.0), (Work::PastCache, 35.0), (Work::Reads, 31.0)],
        0.0,
    );
    assert!(full.starts_with("a: the drive's full SLC cache is"), "{full}");
    let little = text_of_flash(
        40.0,
        &[(Work::Programs, 70.0), (Work::Collection, 20.0), (Work::Erases, 10.0)],
        0.0,
    );
    assert!(little.starts_with("a: the drive's flash is the bottleneck (dies 100 %"), "{little}");
    let folding = [(Work::Folding, 96.0)];
    let mut drive = flash(40.0, &folding, 0.0);
    drive.load.written = Some(WrittenFigures {
        past_cache_percent: 0.0,
        folded_percent: 98.0,
        collected_percent: 0.0,
    });
    let folded = text_of_drive(drive);
    assert!(
        folded.contains("(98 % of the data written was folded; dies 96 % in use: 96 % folding)"),
        "{folded}"
    );
}

#[test]
fn channels_that_are_used_up_are_named_before_the_dies_that_wait_for_them() {
    let text = text_of_flash(96.0, &[(Work::Reads, 99.0)], 0.0);
    assert!(
        text.starts_with("a: the drive's flash channels are the bottleneck (96 % in use)"),
        "{text}"
    );
    let text = text_of_flash(90.0, &[(Work::Reads, 99.0)], 0.0);
    assert!(
        text.starts_with("a: the drive's flash is the bottleneck (dies 99 % in use: 99 % reads)"),
        "{text}"
    );
}

#[test]
fn folding_in_idle_time_limits_nobody() {
    let work = [(Work::IdleFolding, 90.0), (Work::CachePrograms, 9.0)];
    let mut drive = flash(5.0, &work, 20.0);
    drive.load.written = None;
    let text = text_of_drive(drive.clone());
    let programs = "a: the drive's flash is the bottleneck (the write buffer is full 20 % of the time; dies 9 % in use: \
                    9 % programs into the cache).";
    assert_eq!(text, programs);
    drive.load.buffer_full_percent = 0.0;
    let text = text_of_drive(drive);
    assert!(text.starts_with("a: the device's queue depth is the bottleneck"), "{text}");
}

fn text_of_pausing(pausing: u64, thinking: u64) -> String {
    let waiting = 1000 - pausing - thinking;
    let jobs_ns = JobTime { alive: 1000, waiting, pausing, thinking, ..JobTime::default() };
    let family = of_drive(flash(10.0, &[(Work::CachePrograms, 20.0)], 20.0));
    let figures = Figures { jobs_ns, family, at_device: 3.0, ..run(10_000, 1.0) };
    explained_on("sata-ssd", &[("a", figures)]).to_string()
}

#[test]
fn jobs_that_pause_for_longer_than_writes_wait_are_named() {
    for (pausing, thinking) in [(800, 0), (150, 60)] {
        let text = text_of_pausing(pausing, thinking);
        assert!(text.starts_with("a: the pace of the jobs is the bottleneck (3.00"), "{text}");
    }
    let text = text_of_pausing(150, 40);
    assert!(text.starts_with("a: the drive's flash is the bottleneck (the write"), "{text}");
}

fn text_of_waiting(at_device: f64, life_ns: Life, reasons: &[(Hold, f64)]) -> String {
    let holds = holds_of(reasons);
    let family = of_drive(flash(40.0, &[(Work::Reads, 20.0)], 0.0));
    let figures = Figures { at_device, life_ns, holds, family, ..run(10_000, 1.0) };
    explained_on("sata-ssd", &[("a", figures)]).to_string()
}

#[test]
fn a_depth_is_named_for_requests_that_wait_for_it() {
    let served = Life { in_driver: 100.0, ..Life::default() };
    let for_tag = Life { waiting_for_tag: 100.0, ..served };
    // Jobs that wait for a tag cannot reap what is complete.
    let blocked = Life { not_reaped: 9000.0, ..for_tag };
    let queued = Life { queued: 5.0, dequeued: 5.0, ..served };
    let depth = "a: the device's queue depth is the bottleneck (";
    let latency = "a: the device's latency is the bottleneck (";
    // A full device before which nobody waits would gain nothing by more depth.
    assert!(text_of_waiting(31.9, served, &[]).starts_with(latency));
    assert!(
        text_of_waiting(31.9, Life { queued: 5.0, ..served }, &[]).starts_with(latency),
        "that is little"
    );
    assert!(
        text_of_waiting(31.9, for_tag, &[]).starts_with(depth)
            && text_of_waiting(31.9, queued, &[]).starts_with(depth)
    );
    // Slots are empty for a moment between two commands.
    assert!(text_of_waiting(29.0, for_tag, &[]).starts_with(depth));
    assert!(
        text_of_waiting(29.0, blocked, &[]).starts_with(depth),
        "{}",
        text_of_waiting(29.0, blocked, &[])
    );
    assert!(text_of_waiting(29.0, queued, &[(Hold::Device, 20.0)]).starts_with(depth));
    assert!(text_of_waiting(29.0, queued, &[(Hold::Order, 20.0)]).starts_with(latency));
    assert!(
        text_of_waiting(20.0, for_tag, &[]).starts_with(latency),
        "a third of the depth is free"
    );
}

fn text_of_dies(at_device: f64, waited_percent: f64) -> String {
    let mut drive = flash(40.0, &[(Work::Reads, 88.0)], 0.0);
    drive.load.waited_percent = waited_percent;
    drive.at_device = at_device;
    let life_ns = Life { in_driver: 100.0, ..Life::default() };
    let family = of_drive(drive);
    let figures = Figures { at_device, life_ns, family, ..run(10_000, 1.0) };
    explained_on("sata-ssd", &[("a", figures)]).to_string()
}

#[test]
fn many_commands_that_wait_for_dies_are_limited_by_them() {
    let flash = "a: the drive's flash is the bottleneck (commands queue for the dies 60 % of their time; dies 88 % in \
                 use: 88 % reads).";
    assert_eq!(text_of_dies(16.0, 60.0), flash);
    let latency = "a: the device's latency is the bottleneck (";
    assert!(
        text_of_dies(15.0, 60.0).starts_with(latency),
        "eight dies have seven commands to wait"
    );
    assert!(text_of_dies(16.0, 40.0).starts_with(latency), "most of the time passes elsewhere");
}

#[test]
fn what_takes_commands_one_by_one_has_the_name_of_the_kind_of_drive() {
    for (device, part) in [
        ("sata-ssd", "the drive's controller"),
        ("usb-ssd", "the USB bridge"),
        ("virtio-3dxpoint", "the host's virtio thread"),
    ] {
        let used = flash(40.0, &[(Work::Reads, 50.0)], 0.0);
        let family = of_drive(DriveFigures { controller_percent: 97.0, ..used });
        let words = explained_on(device, &[("a", Figures { family, ..run(10, 1.0) })]).to_string();
        assert_eq!(words, format!("a: {part} is the bottleneck (97 % in use)."));
    }
}
