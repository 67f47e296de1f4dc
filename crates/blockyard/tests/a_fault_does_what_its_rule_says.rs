//! Checks each action of the fault layer from the view of a submitter and on the medium of the
//! disk. Above the layer and below it every call is checked against the contract.

mod rig;

use blockyard::bio::{Bio, Op};
use blockyard::driver::{Busy, Device, Outcome, TimedOut};
use blockyard::hardware_queue::RETRY_DELAY;
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::fault::{Action, Count, FaultRule, Faulty, Turns, When};
use blockyard::policy::Policies;
use blockyard::prng::Prng;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{CpuId, DriverTag, HctxId};
use rig::{Disk, Rig, SERVICE, TAGS, config};

type Stack = Checked<Faulty<Checked<Disk>>>;

fn rule(name: &str, when: When, then: Action) -> FaultRule {
    FaultRule { name: name.to_owned(), when, then }
}

fn nth(n: u64) -> When {
    When { turns: Turns::Between(n, n), ..When::default() }
}

fn rig_with(rules: Vec<FaultRule>, policies: Policies) -> Rig<Stack> {
    let terms = vec![Terms::of(&config(policies), &TAGS)];
    let disk = Checked::new(Disk::default(), terms.clone(), &TAGS);
    let faulty = Faulty::new(disk, rules, Prng::new(7), &TAGS);
    Rig::new(Checked::new(faulty, terms, &TAGS), policies)
}

/// Runs single requests under every design that differs at the driver.
fn rigs(rules: &[FaultRule]) -> impl Iterator<Item = Rig<Stack>> {
    let designs = [Policies::NONE, Policies::mq_deadline()];
    designs.into_iter().map(|policies| rig_with(rules.to_vec(), policies))
}

fn counts(rig: &Rig<Stack>) -> Vec<(u64, u64)> {
    let counts = rig.host.driver.below.counts();
    counts.map(|(_, Count { matched, fired })| (matched, fired)).collect()
}

fn disk(rig: &Rig<Stack>) -> &Disk {
    &rig.host.driver.below.below.below
}

/// Writes of 8 sectors far from each other, the one numbered `n` at sector 1000 x n.
fn writes(count: u64) -> impl Iterator<Item = Bio> {
    (0..count).map(|n| Bio::write(1000 * n, 8, n))
}

fn reads(count: u64) -> impl Iterator<Item = Bio> {
    (0..count).map(|n| Bio::read(1000 * n, 8, n))
}

/// When the bio called `cookie` ended.
fn ended_at<D>(rig: &Rig<D>, cookie: u64) -> Option<Instant> {
    rig.ends.iter().find(|end| end.cookie == cookie).map(|end| end.at)
}

/// The bios that failed, and their statuses.
fn failures<D>(rig: &Rig<D>) -> Vec<(u64, Status)> {
    let failed = rig.ends.iter().filter(|end| end.status != Status::Ok);
    failed.map(|end| (end.cookie, end.status)).collect()
}

/// Checks that every bio has ended and nothing is left.
fn assert_done(rig: &Rig<Stack>, count: usize) {
    assert_eq!(rig.ends.len(), count);
    rig.host.driver.all_ended();
    rig.host.driver.below.below.all_ended();
}

#[test]
fn a_request_that_fails_at_once_never_reaches_the_device() {
    for mut rig in rigs(&[rule("x", nth(3), Action::Fail(Status::NoSpace))]) {
        rig.run(writes(5));
        assert_done(&rig, 5);
        assert_eq!(failures(&rig), [(2, Status::NoSpace)]);
        assert_eq!(ended_at(&rig, 2), Some(Instant::ZERO), "no time passes");
        assert_eq!((disk(&rig).taken, disk(&rig).medium.get(&2000)), (4, None));
        assert_eq!(counts(&rig), [(5, 1)]);
    }
}

#[test]
fn an_error_comes_when_the_device_would_have_been_done_and_leaves_the_data_alone() {
    for mut rig in rigs(&[rule("x", nth(2), Action::Error(Status::Medium))]) {
        rig.run(writes(3));
        assert_done(&rig, 3);
        assert_eq!(failures(&rig), [(1, Status::Medium)]);
        assert_eq!(ended_at(&rig, 1), Some(Instant::ZERO + SERVICE));
        assert_eq!((disk(&rig).taken, disk(&rig).medium.get(&1000)), (3, None));
        assert_eq!(disk(&rig).medium.get(&2000), Some(&2));
    }
}

#[test]
fn a_delayed_request_ends_that_much_later_and_holds_up_nobody() {
    let delay = Duration::from_ms(50);
    for mut rig in rigs(&[rule("x", nth(1), Action::Delay(delay))]) {
        rig.run(reads(3));
        assert_done(&rig, 3);
        assert_eq!(ended_at(&rig, 0), Some(Instant::ZERO + SERVICE + delay));
        assert_eq!(ended_at(&rig, 1), Some(Instant::ZERO + SERVICE));
    }
}

#[test]
fn a_busy_device_is_asked_again_when_a_request_of_it_completes() {
    for kind in [Busy::Device, Busy::Host] {
        for mut rig in rigs(&[rule("x", nth(2), Action::Busy(kind))]) {
            rig.run(reads(2));
            assert_done(&rig, 2);
            assert_eq!(ended_at(&rig, 1), Some(Instant::ZERO + SERVICE + SERVICE), "{kind:?}");
            assert_eq!(counts(&rig), [(3, 1)], "offered once more");
        }
    }
}

/// [busy-promise-kept]: with nothing in flight no completion would make room, so the refusal
/// becomes one for lack of a resource. The checker above the layer would catch a broken promise.
#[test]
fn a_device_with_nothing_in_flight_is_never_said_to_be_full() {
    for kind in [Busy::Device, Busy::Host, Busy::Resource] {
        for mut rig in rigs(&[rule("x", nth(1), Action::Busy(kind))]) {
            rig.run(reads(1));
            assert_done(&rig, 1);
            assert_eq!(ended_at(&rig, 0), Some(Instant::ZERO + RETRY_DELAY + SERVICE), "{kind:?}");
        }
    }
}

/// A request that is in flight but lost makes no room either ([every-request-completes-below]).
#[test]
fn a_lost_request_counts_for_nothing_when_the_device_is_said_to_be_full() {
    let rules =
        [rule("lost", nth(1), Action::Lose), rule("busy", nth(1), Action::Busy(Busy::Device))];
    for mut rig in rigs(&rules) {
        let now = Instant::ZERO;
        rig.run(reads(2));
        assert_eq!(
            ended_at(&rig, 1),
            Some(now + RETRY_DELAY + SERVICE),
            "told to wait for nothing"
        );
        assert_eq!(rig.ends.len(), 1);
    }
}

#[test]
fn a_request_given_back_is_tried_again_and_only_then_reaches_the_medium() {
    for mut rig in rigs(&[rule("x", nth(1), Action::Again)]) {
        let now = Instant::ZERO;
        rig.queue.submit(&mut rig.host, CpuId(0), Bio::write(0, 8, 9), now).unwrap();
        rig.settle();
        assert_eq!((disk(&rig).taken, disk(&rig).medium.len()), (1, 0));
        rig.run([]);
        assert_done(&rig, 1);
        assert_eq!(failures(&rig), []);
        assert_eq!(ended_at(&rig, 9), Some(Instant::ZERO + SERVICE + SERVICE));
        assert_eq!((disk(&rig).taken, disk(&rig).medium.len()), (2, 8));
    }
}

#[test]
fn a_lost_completion_never_comes_though_the_data_is_there() {
    for mut rig in rigs(&[rule("x", nth(1), Action::Lose)]) {
        rig.run(writes(3));
        assert_eq!((rig.ends.len(), ended_at(&rig, 0)), (2, None));
        assert_eq!(disk(&rig).medium.get(&0), Some(&0));
        assert_eq!(rig.host.driver.below.lost(), 1);
        assert_eq!(rig.ask_for_first(), TimedOut::Reset, "it is never given up");
    }
}

#[test]
fn a_timed_out_request_is_given_up_when_asked_for_and_its_late_completion_is_dropped() {
    for mut rig in rigs(&[rule("x", nth(1), Action::TimeOut)]) {
        let now = Instant::ZERO;
        rig.queue.submit(&mut rig.host, CpuId(0), Bio::write(0, 8, 9), now).unwrap();
        rig.settle();
        assert_eq!(rig.ask_for_first(), TimedOut::Reset, "the device below is at it still");
        rig.run([]);
        assert_eq!(rig.ask_for_first(), TimedOut::Ended(Outcome::Done(Status::Timeout)));
        let (hctx, tag, now) = (HctxId(0), DriverTag(0), rig.now);
        rig.queue.complete(&mut rig.host, hctx, tag, Status::Timeout, now).unwrap();
        rig.now = now + Duration::from_secs(60);
        assert_eq!(rig.host.driver.next_finished(rig.now), None);
        rig.run(writes(1));
        assert_done(&rig, 2);
        assert_eq!(failures(&rig), [(9, Status::Timeout)]);
    }
}

/// A disk used to give a request back prepared while the layer still counted on its completion: the
/// layer then reported the device as full with nothing in flight. If a rule was to fail the
/// request, the layer made up a completion of a request that the disk no longer had. Now such a
/// request passes up unchanged ([undone-passes-up]).
#[test]
fn what_the_device_gives_back_prepared_passes_up_and_is_no_longer_in_flight() {
    let full = rule("full", nth(3), Action::Busy(Busy::Device));
    for action in [Action::Error(Status::IoError), Action::Again, Action::Lose, Action::TimeOut] {
        for mut rig in rigs(&[rule("x", nth(1), action), full.clone()]) {
            rig.host.driver.below.below.below.gives_back = 1;
            rig.run_each(reads(4));
            assert_eq!(failures(&rig), []);
            assert_eq!(counts(&rig), [(6, 1), (5, 1)], "{action:?}");
            assert_done(&rig, 4);
        }
    }
    for mut rig in rigs(&[full]) {
        rig.host.driver.below.below.below.gives_back = 1;
        rig.run_each(reads(4));
        assert_done(&rig, 4);
    }
}

#[test]
fn a_torn_write_leaves_its_first_sectors_and_is_said_to_be_done() {
    for mut rig in rigs(&[rule("x", nth(1), Action::TearWrite(3))]) {
        rig.run_each([Bio::read(0, 8, 5), Bio::write(0, 8, 1), Bio::write(0, 8, 2)]);
        assert_done(&rig, 3);
        assert_eq!(failures(&rig), []);
        assert!(disk(&rig).medium.values().all(|cookie| *cookie == 2), "the second was not torn");
        assert_eq!(counts(&rig), [(2, 1)], "a read cannot be torn");
    }
    for mut rig in rigs(&[rule("x", nth(2), Action::TearWrite(3))]) {
        rig.run_each([Bio::write(0, 8, 1), Bio::write(0, 8, 2)]);
        let left: Vec<_> = disk(&rig).medium.values().copied().collect();
        assert_eq!(left, [2, 2, 2, 1, 1, 1, 1, 1]);
    }
}

#[test]
fn a_lost_write_leaves_what_was_there() {
    for mut rig in rigs(&[rule("x", nth(2), Action::LoseWrite)]) {
        rig.run_each([Bio::write(0, 8, 1), Bio::write(0, 8, 2)]);
        assert_done(&rig, 2);
        assert_eq!(failures(&rig), []);
        assert!(disk(&rig).medium.values().all(|cookie| *cookie == 1));
    }
}

#[test]
fn a_misdirected_write_overwrites_what_others_wrote() {
    for mut rig in rigs(&[rule("x", nth(2), Action::MisdirectWrite(4))]) {
        rig.run_each([Bio::write(0, 8, 1), Bio::write(64, 8, 2)]);
        assert_done(&rig, 2);
        assert_eq!(failures(&rig), []);
        let medium: Vec<_> = disk(&rig).medium.iter().map(|(at, by)| (*at, *by)).collect();
        let expected = (0..4).map(|at| (at, 1)).chain((4..12).map(|at| (at, 2)));
        assert_eq!(medium, expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_rule_matches_by_op_and_by_any_sector_it_names() {
    let when = When { ops: vec![Op::Read], sectors: Some(1000..1008), ..When::default() };
    for mut rig in rigs(&[rule("bad block", when, Action::Error(Status::Medium))]) {
        let around = [(992, 8, 0), (1008, 8, 1), (1000, 1, 2), (1007, 1, 3), (990, 30, 4)];
        rig.run_each(around.map(|(sector, sectors, cookie)| Bio::read(sector, sectors, cookie)));
        rig.run_each([Bio::write(1000, 8, 5)]);
        assert_done(&rig, 6);
        let failed: Vec<_> = failures(&rig).into_iter().map(|(cookie, _)| cookie).collect();
        assert_eq!(failed, [2, 3, 4]);
        assert_eq!(counts(&rig), [(3, 3)]);
    }
}

#[test]
fn a_rule_fires_on_the_matches_whose_turn_it_is() {
    let failed_of_12 = |turns| {
        let when = When { turns, ..When::default() };
        let mut rig =
            rig_with(vec![rule("x", when, Action::Error(Status::IoError))], Policies::NONE);
        rig.run_each(reads(12));
        failures(&rig).into_iter().map(|(cookie, _)| cookie + 1).collect::<Vec<_>>()
    };
    assert_eq!(failed_of_12(Turns::Every(5)), [5, 10]);
    assert_eq!(failed_of_12(Turns::Between(5, 5)), [5]);
    assert_eq!(failed_of_12(Turns::Between(11, u64::MAX)), [11, 12]);
    assert_eq!(failed_of_12(Turns::All).len(), 12);
}

#[test]
fn the_first_rule_that_fires_decides_and_those_behind_are_not_asked() {
    let rules = vec![
        rule(
            "writes",
            When { ops: vec![Op::Write], ..When::default() },
            Action::Fail(Status::Gone),
        ),
        rule("second", nth(2), Action::Fail(Status::NoSpace)),
        rule("all", When::default(), Action::Fail(Status::Medium)),
    ];
    let mut rig = rig_with(rules, Policies::NONE);
    rig.run_each([Bio::read(0, 8, 0), Bio::write(0, 8, 1), Bio::read(0, 8, 2)]);
    let failures: Vec<_> = failures(&rig).into_iter().map(|(_, status)| status).collect();
    assert_eq!(failures, [Status::Medium, Status::Gone, Status::NoSpace]);
    assert_eq!(counts(&rig), [(1, 1), (2, 1), (1, 1)]);
}

#[test]
fn chance_fires_about_as_often_as_it_says() {
    let when = When { one_in: Some(20), ..When::default() };
    let mut rig = rig_with(vec![rule("x", when, Action::Error(Status::IoError))], Policies::NONE);
    rig.run((0..10_000).map(|n| Bio::read(n % 900 * 1000, 8, n)));
    let [(matched, fired)] = counts(&rig)[..] else { panic!("one rule") };
    assert_eq!(matched, 10_000);
    // 500 expected, 22 the standard deviation: five of them.
    assert!((390..=610).contains(&fired), "{fired}");
}

/// [refused-offer-uncounted]: a rule that fires on one request is not used up by a refusal of the
/// device below.
#[test]
fn an_offer_that_the_device_refuses_uses_up_no_rule() {
    let terms = vec![Terms::of(&config(Policies::NONE), &TAGS)];
    let refusals = vec![rule("refuse", nth(1), Action::Busy(Busy::Resource))];
    let below = Faulty::new(Disk::default(), refusals, Prng::new(1), &TAGS);
    let rules = vec![rule("x", nth(1), Action::Error(Status::Medium))];
    let faulty = Faulty::new(below, rules, Prng::new(1), &TAGS);
    let mut rig = Rig::new(Checked::new(faulty, terms, &TAGS), Policies::NONE);
    rig.run(reads(1));
    assert_eq!(failures(&rig), [(0, Status::Medium)]);
    let count = rig.host.driver.below.counts().next().map(|(_, count)| count);
    assert_eq!(count, Some(Count { matched: 1, fired: 1 }));
}
