//! With a command queue engine the card holds as many requests as its queue depth and works on
//! several at a time. The gain follows from the figures of the profile.

use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// 20 jobs with one random read each at a time, for 200 ms, on a card with an access time of 100 us
/// and `parallel` accesses at a time.
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
        let busy = report.family.mmc.unwrap();
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

/// A read takes the card 100 us to access, and nothing else is in its queue. The engine asks right
/// after it has queued the task, and then every 60 us: at 120 us instead of 100. Three of its
/// questions are about each read, of which only the last finds it ready. Without a period it asks
/// once, at the right instant. So 20 us separate two reads of one job, within 1 us.
#[test]
fn an_engine_that_asks_in_periods_finds_a_task_late() {
    let [exact, late] = ["0us", "60us"].map(|period| {
        let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=1g --rw=randread --bs=4k \
                   --time_based --runtime=200ms";
        let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
        let device = format!(
            "base = \"emmc-hs400-sprd\"\n[host]\nqueue-engine-poll = \"{period}\"\n\
             [card.read]\naccess = \"100us\"\ngap = \"0ns\"\nparallel = 1"
        );
        let device = Device::parse("card", &device).unwrap();
        let design = Design::lookup("cqe").unwrap();
        let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
        let asked = report.family.mmc.as_ref().unwrap().queue_status;
        (report.span.as_ns() / done(&report), asked, done(&report))
    });
    assert!((19_000..=21_000).contains(&(late.0 - exact.0)), "{exact:?} {late:?}");
    // The run ends while a read is under way.
    assert!(exact.1.abs_diff(exact.2) <= 1, "a question for each read: {exact:?}");
    assert!(late.1.abs_diff(3 * late.2) <= 3, "three questions for each read: {late:?}");
}

#[test]
fn parallel_accesses_are_limited_by_the_queue_depth() {
    let [one, two, four] = [1, 2, 4].map(|depth| done(&random_reads("cqe", 4, depth)));
    // 100 us per place in 200 ms, plus the path of a request to the card and back.
    assert!(one < 2000 && two < 4000 && four < 8000, "{one} {two} {four}");
    assert!(two > one * 3 / 2 && four > two * 3 / 2, "{one} {two} {four}");
}

/// A job with 32 reads of 4 KiB in flight, in sequence. Its thread dispatches each of them at once,
/// so nothing merges: the card has the next ones in its queue before it has sent the first.
#[test]
fn reads_in_sequence_that_are_queued_together_are_one_stream() {
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=1g --rw=read --bs=4k \
               --ioengine=libaio --iodepth=32 --time_based --runtime=100ms";
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let device = "base = \"emmc-hs400\"\n[card]\ndeterministic = true\n[card.read]\naccess = \"1ms\"\nparallel = 1\n\
                  [card.ahead]\nper-kib = \"5us\"";
    let device = Device::parse("card", device).unwrap();
    // In 7.3 a worker sends lone requests, and some merge before it does.
    let design = Design::lookup("cqe-6.12").unwrap();
    let report = Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap();
    let reads = done(&report);
    assert_eq!(reads, report.stages.count(Action::Issue), "nothing merges");
    // An access each would be 100 reads; 20 us for each 4 KiB are 5000.
    assert!(reads > 3000, "{reads}");
}

#[test]
fn each_read_is_three_commands_and_the_queue_status_is_read_when_it_is_ready() {
    let report = random_reads("cqe", 2, 32);
    let commands = report.family.mmc.as_ref().unwrap().commands;
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
