//! Stacks of three and more layers: delays, rates, faults and records. A layer only
//! delays, reports what it held back, and keeps the fault that it chose.

mod rig;

use blockyard::bio::{Bio, Op};
use blockyard::driver::{Accept, DataEffect, Device, Outcome, TimedOut};
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::delay::{Delayed, Extra};
use blockyard::layer::fault::{Action, FaultRule, Faulty, When};
use blockyard::layer::rate::{Limited, Rates};
use blockyard::layer::trace::{Record, Ring, Step, Traced};
use blockyard::policy::Policies;
use blockyard::prng::Prng;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId};
use rig::{Disk, End, Rig, SERVICE, TAGS, config};

fn terms() -> Vec<Terms> {
    vec![Terms::of(&config(Policies::mq_deadline()), &TAGS)]
}

fn rig<D: Device>(stack: D) -> Rig<Checked<D>> {
    Rig::new(Checked::new(stack, terms(), &TAGS), Policies::mq_deadline())
}

fn reads(count: u64) -> impl Iterator<Item = Bio> {
    (0..count).map(|n| Bio::read(1000 * n, 8, n))
}

/// Submits `count` reads, which the device takes now.
fn submit<D: Device>(rig: &mut Rig<D>, count: u64) {
    for read in reads(count) {
        rig.queue.submit(&mut rig.host, CpuId(0), read, rig.now).expect("a tag is free");
    }
    rig.settle();
}

fn ends<D>(rig: &Rig<D>) -> Vec<u64> {
    rig.ends.iter().map(|end| end.at.as_ns() / 1000).collect()
}

#[test]
fn a_fixed_delay_is_added_to_each_request() {
    let extra = Extra::fixed(Duration::from_us(30));
    let mut rig = rig(Delayed::new(Disk::default(), extra, Prng::new(1), &TAGS));
    rig.run_each(reads(3));
    assert_eq!(ends(&rig), [130, 260, 390]);
}

#[test]
fn a_drawn_delay_stays_within_its_bounds_and_reaches_both() {
    let least = Duration::from_ns(7);
    let most = Duration::from_ns(9);
    let extra = Extra { min: least, max: most, op: Some(Op::Read) };
    let mut rig = rig(Delayed::new(Disk::default(), extra, Prng::new(1), &TAGS));
    let mut met = [0; 3];
    for read in reads(300) {
        let began = rig.now;
        rig.run([read]);
        let late = (rig.now.since(began) - SERVICE).as_ns();
        met[usize::try_from(late - 7).unwrap()] += 1;
    }
    assert!(met.iter().all(|times| *times > 50), "{met:?}");
    let began = rig.now;
    rig.run([Bio::write(0, 8, 0)]);
    assert_eq!(rig.now.since(began), SERVICE, "a write should not be delayed");
}

/// 4 KiB at 40.96 MB/s are 100 us.
#[test]
fn bytes_pass_at_their_rate_and_nothing_is_refused() {
    let rates = Rates { bytes_per_s: Some(40_960_000), ..Rates::NONE };
    let mut rig = rig(Limited::new(Disk::default(), rates, &TAGS));
    rig.run(reads(8));
    assert_eq!(ends(&rig), [100, 200, 300, 400, 500, 600, 700, 800]);
    assert_eq!(rig.host.driver.below.below.taken, 8);
}

#[test]
fn requests_pass_at_their_rate_whatever_their_size() {
    let rates = Rates { requests_per_s: Some(2000), ..Rates::NONE };
    let mut rig = rig(Limited::new(Disk::default(), rates, &TAGS));
    rig.run((0..3).map(|n| Bio::read(1000 * n, 64, n)));
    assert_eq!(ends(&rig), [500, 1000, 1500]);
}

#[test]
fn a_burst_passes_at_once_and_no_more() {
    let burst = Duration::from_ms(2);
    let rates = Rates { requests_per_s: Some(1000), burst, ..Rates::NONE };
    let mut rig = rig(Limited::new(Disk::default(), rates, &TAGS));
    rig.now = Instant::from_ns(1_000_000_000);
    rig.run(reads(5));
    let after_us = ends(&rig).into_iter().map(|at| at - 1_000_000);
    assert_eq!(after_us.collect::<Vec<_>>(), [100, 100, 1000, 2000, 3000]);
}

#[test]
fn delays_and_rates_that_are_set_later_hold_from_then_on() {
    let none = Extra::fixed(Duration::ZERO);
    let mut delayed = rig(Delayed::new(Disk::default(), none, Prng::new(1), &TAGS));
    delayed.run_each(reads(1));
    let now = delayed.now;
    delayed.host.driver.below.set_extra(Extra::fixed(Duration::from_us(30)), now);
    delayed.run_each(reads(1));
    assert_eq!(ends(&delayed), [100, 230]);
    let mut limited = rig(Limited::new(Disk::default(), Rates::NONE, &TAGS));
    limited.run(reads(2));
    let rates = Rates { requests_per_s: Some(2000), ..Rates::NONE };
    let now = limited.now;
    limited.host.driver.below.set_rates(rates, now);
    limited.run(reads(2));
    assert_eq!(ends(&limited), [100, 100, 600, 1100]);
}

fn rates(per_s: u64) -> Rates {
    Rates { requests_per_s: Some(per_s), ..Rates::NONE }
}

/// Requests that waited for hours under a delay or a rate went on waiting when it was lifted. A
/// request counts as taken at the change, and a delay counts from the completion below.
#[test]
fn delays_and_rates_that_are_set_later_hold_for_requests_that_wait() {
    let us = Duration::from_us;
    // Both reads are below at the first change, after 50 us, and held at the second one, after 300
    // us.
    let hour = Extra::fixed(Duration::from_secs(3600));
    let mut delayed = rig(Delayed::new(Disk::default(), hour, Prng::new(1), &TAGS));
    submit(&mut delayed, 2);
    for (at, extra) in [(50, us(7200)), (300, us(250))] {
        delayed.now = Instant::ZERO + us(at);
        delayed.settle();
        delayed.host.driver.below.set_extra(Extra::fixed(extra), delayed.now);
    }
    delayed.run([]);
    assert_eq!(ends(&delayed), [550, 550], "they came from below when the rig looked, at 300 us");

    let mut limited = rig(Limited::new(Disk::default(), rates(1), &TAGS));
    submit(&mut limited, 3);
    for (at, per_s) in [(50, 2), (300, 2000)] {
        limited.now = Instant::ZERO + us(at);
        limited.settle();
        limited.host.driver.below.set_rates(rates(per_s), limited.now);
    }
    limited.run([]);
    assert_eq!(ends(&limited), [800, 1300, 1800], "500 us each, from the change on");
    let cookies: Vec<_> = limited.ends.iter().map(|end| end.cookie).collect();
    assert_eq!(cookies, [0, 1, 2], "in the order in which they came");
}

#[test]
fn a_smallest_delay_above_the_largest_is_refused() {
    let extra = Extra { min: Duration::from_ns(2), max: Duration::from_ns(1), op: None };
    let make = || Delayed::new(Disk::default(), extra, Prng::new(1), &TAGS);
    let _ = std::panic::catch_unwind(make).expect_err("2 is above 1");
}

/// A command of no data is not charged for bytes.
#[test]
fn bytes_are_those_of_reads_and_writes() {
    let rates = Rates { bytes_per_s: Some(1), ..Rates::NONE };
    let mut rig = rig(Limited::new(Disk::default(), rates, &TAGS));
    rig.run([Bio::new(Op::DriverOut, 0, 0, 0)]);
    assert_eq!(ends(&rig), [100]);
}

/// Stacks a delay, an error for a random third of the requests, and a rate over a disk.
fn three_deep(seed: u64) -> Vec<End> {
    let extra = Extra { min: Duration::ZERO, max: Duration::from_us(50), op: None };
    let delayed = Delayed::new(Disk::default(), extra, Prng::new(seed).fork(0), &TAGS);
    let checked = Checked::new(delayed, terms(), &TAGS);
    let when = When { one_in: Some(3), ..When::default() };
    let name = "x".to_owned();
    let rule = FaultRule { name, when, then: Action::Error(Status::Medium) };
    let faulty = Faulty::new(checked, vec![rule], Prng::new(seed).fork(1), &TAGS);
    let rates = Rates { bytes_per_s: Some(100_000_000), ..Rates::NONE };
    let mut rig = rig(Limited::new(faulty, rates, &TAGS));
    rig.run(reads(200));
    rig.host.driver.all_ended();
    rig.host.driver.below.below.below.all_ended();
    rig.ends
}

#[test]
fn three_layers_each_do_their_part() {
    let ends = three_deep(1);
    assert_eq!(ends.len(), 200);
    let failed = ends.iter().filter(|end| end.status == Status::Medium).count();
    assert!((40..=90).contains(&failed), "{failed} of 200, 67 expected");
    // 4 KiB at 100 MB/s take 40.96 us per request.
    let last = ends.last().unwrap().at;
    assert!(last >= Instant::from_ns(200 * 40_960), "{last}");
    assert!(ends.iter().all(|end| end.at >= Instant::ZERO + SERVICE));
}

#[test]
fn one_seed_gives_one_run() {
    assert_eq!(three_deep(5), three_deep(5));
    assert_ne!(three_deep(5), three_deep(6));
}

#[test]
fn a_trace_below_a_fault_layer_sees_the_effect_on_the_data() {
    let rule =
        FaultRule { name: "torn".to_owned(), when: When::default(), then: Action::TearWrite(3) };
    let traced = Traced { below: Disk::default(), sink: Ring::new(16) };
    let mut rig = rig(Faulty::new(traced, vec![rule], Prng::new(1), &TAGS));
    rig.run([Bio::write(64, 8, 0)]);
    let ring = &rig.host.driver.below.below.sink;
    let seen: Vec<_> = ring.records().map(|record| (record.at, record.step)).collect();
    let start = Instant::ZERO;
    let end = Instant::ZERO + SERVICE;
    let offered = Step::Offered(DataEffect::First(3), Accept::Queued);
    assert_eq!(
        seen,
        [
            (start, Step::Prepared),
            (start, offered),
            (end, Step::Named(Outcome::Done(Status::Ok))),
            (end, Step::CleanedUp),
        ]
    );
    assert_eq!(ring.records().find_map(|record| record.range), Some((Op::Write, 64, 8)));
}

#[test]
fn a_ring_keeps_the_last_calls() {
    let traced = Traced { below: Disk::default(), sink: Ring::new(6) };
    let mut rig = rig(traced);
    rig.run_each(reads(10));
    let ring = &rig.host.driver.below.sink;
    assert_eq!((ring.records().count(), ring.dropped()), (6, 34));
    let last = ring.records().last().map(|Record { range, .. }| *range);
    assert_eq!(last, Some(Some((Op::Read, 9000, 8))));
}

#[test]
fn a_ring_of_no_length_keeps_nothing() {
    let mut rig = rig(Traced { below: Disk::default(), sink: Ring::new(0) });
    rig.run_each(reads(1));
    let ring = &rig.host.driver.below.sink;
    assert_eq!((ring.records().count(), ring.dropped()), (0, 4));
}

/// A layer that holds a completion answers the request's timeout. Before that the device below
/// answers ([timed-out-not-finished]).
fn a_layer_answers_timeouts_of_held_requests<D: Device>(mut rig: Rig<Checked<D>>) {
    let now = rig.now;
    let gave_up = Outcome::Done(Status::Timeout);
    rig.queue.submit(&mut rig.host, CpuId(0), Bio::read(0, 8, 0), now).unwrap();
    rig.settle();
    rig.now = now + SERVICE;
    rig.settle();
    assert_eq!(rig.ends, [], "the completion should be held");
    assert_eq!(rig.ask_for_first(), TimedOut::Reset, "the held completion should still arrive");
    rig.run([]);
    assert_eq!((rig.ends.len(), rig.ends[0].status), (1, Status::Ok));

    let now = rig.now;
    rig.queue.submit(&mut rig.host, CpuId(0), Bio::read(0, 8, 1), now).unwrap();
    rig.settle();
    assert_eq!(
        rig.ask_for_first(),
        TimedOut::Ended(gave_up),
        "the device below should give up the request"
    );
    rig.queue.complete(&mut rig.host, HctxId(0), DriverTag(0), Status::Timeout, now).unwrap();
    rig.run([Bio::read(0, 8, 2)]);
    assert_eq!(rig.ends.len(), 3);
    rig.host.driver.all_ended();
}

fn disk() -> Disk {
    Disk { gives_up: true, ..Disk::default() }
}

#[test]
fn a_request_whose_completion_is_held_is_not_given_up() {
    let late = Duration::from_us(500);
    let delayed = Delayed::new(disk(), Extra::fixed(late), Prng::new(1), &TAGS);
    a_layer_answers_timeouts_of_held_requests(rig(delayed));
    let name = "late".to_owned();
    let when = When::default();
    let rules = vec![FaultRule { name, when, then: Action::Delay(late) }];
    a_layer_answers_timeouts_of_held_requests(rig(Faulty::new(disk(), rules, Prng::new(1), &TAGS)));
}
