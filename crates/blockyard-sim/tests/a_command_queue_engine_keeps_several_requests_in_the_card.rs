//! With a command queue engine the card holds as many requests as its queue depth and works on several at a time. The
//! gain follows from the figures of the profile.

use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_sim::job::{NoSource, parse_args};
use blockyard_sim::profile::{Design, Device};
use blockyard_sim::simulate::{Report, Simulation};

/// 20 jobs with one random read each at a time, for 200 ms, on a card with an access time of 100 us and
/// `parallel` accesses at a time.
fn random_reads(design: &str, parallel: u8, depth: u8) -> Report {
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=1g --rw=randread --bs=4k \
               --numjobs=20 --time_based --runtime=200ms";
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let device = format!(
        "base = \"emmc-hs400-sprd\"\n[card]\nqueue-depth = {depth}\n[card.read]\naccess = \"100us\"\n\
         gap = \"0ns\"\nparallel = {parallel}"
    );
    let device = Device::parse("card", &device).unwrap();
    let design = Design::lookup(design).unwrap();
    Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap()
}

/// Returns the number of completed reads.
fn done(report: &Report) -> u64 {
    report.stages.count(Action::Complete(Status::Ok))
}

#[test]
fn random_reads_take_the_access_time_divided_by_the_parallel_accesses() {
    for parallel in [1, 2, 4] {
        let report = random_reads("cqe", parallel, 32);
        let rounds = report.span.as_ns() / 100_000;
        let expected = rounds * u64::from(parallel);
        let reads = done(&report);
        assert!(reads <= expected + expected / 200, "{parallel}: {reads} of {expected}");
        assert!(reads >= expected - expected / 50, "{parallel}: {reads} of {expected}");
        let busy = report.mmc.unwrap();
        assert!(busy.bus_busy < report.span, "{parallel}: the bus is free during an access");
    }
    let one = done(&random_reads("mmc-blkmq", 1, 32));
    assert_eq!(
        done(&random_reads("mmc-blkmq", 4, 32)),
        one,
        "the design should never have two reads in the card"
    );
    assert!(one < 1800, "host and wire add to the access: {one}");
}

#[test]
fn parallel_accesses_are_limited_by_the_queue_depth() {
    let [one, two, four] = [1, 2, 4].map(|depth| done(&random_reads("cqe", 4, depth)));
    // 100 us per place in 200 ms, plus the path of a request to the card and back.
    assert!(one < 2000 && two < 4000 && four < 8000, "{one} {two} {four}");
    assert!(two > one * 3 / 2 && four > two * 3 / 2, "{one} {two} {four}");
}

#[test]
fn each_read_is_three_commands_and_the_queue_status_is_read_when_it_is_ready() {
    let report = random_reads("cqe", 2, 32);
    let commands = report.mmc.as_ref().unwrap().commands;
    let reads = done(&report);
    for number in [44, 45, 46] {
        assert!((reads..reads + 21).contains(&commands[number]), "CMD{number}: {commands:?}");
    }
    assert_eq!([17, 18, 23].map(|number| commands[number]), [0; 3]);
    assert_eq!(commands[6], 1, "the queue should be turned on once and stay on");
    assert!(
        commands[13] <= reads + 21,
        "every status command should find a ready task: {}",
        commands[13]
    );
}
