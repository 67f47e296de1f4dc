//! Checks each action of the fault layer from the submitter's view and on the disk's medium. Every
//! call above and below the layer is checked against the contract.

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
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId};
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

/// Returns a rig for each design that differs at the driver.
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

/// Returns writes of 8 sectors far apart, number `n` at sector 1000 x n.
fn writes(count: u64) -> impl Iterator<Item = Bio> {
    (0..count).map(|n| Bio::write(1000 * n, 8, n))
}

fn reads(count: u64) -> impl Iterator<Item = Bio> {
    (0..count).map(|n| Bio::read(1000 * n, 8, n))
}

/// Returns the instant at which the bio called `cookie` ended.
fn ended_at<D>(rig: &Rig<D>, cookie: u64) -> Option<Instant> {
    rig.ends.iter().find(|end| end.cookie == cookie).map(|end| end.at)
}

/// Returns the failed bios and their statuses.
fn failures<D>(rig: &Rig<D>) -> Vec<(u64, Status)> {
    let failed = rig.ends.iter().filter(|end| end.status != Status::Ok);
    failed.map(|end| (end.cookie, end.status)).collect()
}

/// Checks that every bio has ended and no request is left.
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
        assert_eq!(ended_at(&rig, 2), Some(Instant::ZERO), "the bio should end at once");
        assert_eq!((disk(&rig).taken, disk(&rig).medium.get(&2000)), (4, None));
        assert_eq!(counts(&rig), [(5, 1)]);
    }
}

#[test]
fn an_error_ends_on_time_and_leaves_the_data_unchanged() {
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
fn a_delay_affects_only_its_own_request() {
    let delay = Duration::from_ms(50);
    for mut rig in rigs(&[rule("x", nth(1), Action::Delay(delay))]) {
        rig.run(reads(3));
        assert_done(&rig, 3);
        assert_eq!(ended_at(&rig, 0), Some(Instant::ZERO + SERVICE + delay));
        assert_eq!(ended_at(&rig, 1), Some(Instant::ZERO + SERVICE));
    }
}

#[test]
fn a_busy_device_gets_a_retry_at_its_next_completion() {
    for kind in [Busy::Device, Busy::Host] {
        for mut rig in rigs(&[rule("x", nth(2), Action::Busy(kind))]) {
            rig.run(reads(2));
            assert_done(&rig, 2);
            assert_eq!(ended_at(&rig, 1), Some(Instant::ZERO + SERVICE + SERVICE), "{kind:?}");
            assert_eq!(counts(&rig), [(3, 1)], "the request should be offered once more");
        }
    }
}

/// [busy-promise-kept]: with no request in flight, no completion would free the device. The refusal
/// therefore becomes one for lack of a resource. The checker above the layer would catch a broken
/// promise.
#[test]
fn an_idle_device_is_never_reported_as_full() {
    for kind in [Busy::Device, Busy::Host, Busy::Resource] {
        for mut rig in rigs(&[rule("x", nth(1), Action::Busy(kind))]) {
            rig.run(reads(1));
            assert_done(&rig, 1);
            assert_eq!(ended_at(&rig, 0), Some(Instant::ZERO + RETRY_DELAY + SERVICE), "{kind:?}");
        }
    }
}

/// A lost request in flight does not free the device either.
#[test]
fn a_lost_request_does_not_justify_a_full_device() {
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
fn a_requeued_request_reaches_the_medium_only_on_its_retry() {
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

/// What the device below still has, it may give up ([timed-out-not-finished]).
#[test]
fn a_request_that_is_to_be_lost_may_be_given_up_below() {
    for action in [Action::Lose, Action::TimeOut] {
        for mut rig in rigs(&[rule("x", nth(1), action)]) {
            rig.host.driver.below.below.below.gives_up = true;
            let now = rig.now;
            rig.queue.submit(&mut rig.host, CpuId(0), Bio::write(0, 8, 9), now).unwrap();
            rig.settle();
            assert_eq!(rig.ask_for_first(), TimedOut::Ended(Outcome::Done(Status::Timeout)));
            let hctx = HctxId(0);
            let tag = DriverTag(0);
            rig.queue.complete(&mut rig.host, hctx, tag, Status::Timeout, now).unwrap();
            rig.settle();
            assert_done(&rig, 1);
        }
    }
}

#[test]
fn rules_that_are_lifted_do_nothing() {
    for mut rig in rigs(&[rule("x", When::default(), Action::Fail(Status::Medium))]) {
        rig.run_each(reads(1));
        rig.host.driver.below.lift();
        rig.run_each(reads(3));
        assert_eq!((failures(&rig).len(), counts(&rig)), (1, vec![(1, 1)]));
    }
}

#[test]
fn a_rule_matches_by_queue_and_by_certain_chance() {
    for (queue, fired) in [(0, 3), (1, 0)] {
        let when = When { queue: Some(QueueId(queue)), one_in: Some(1), ..When::default() };
        for mut rig in rigs(&[rule("x", when.clone(), Action::Error(Status::Medium))]) {
            rig.run_each(reads(3));
            assert_eq!(
                (failures(&rig).len(), counts(&rig)),
                (fired, vec![(fired as u64, fired as u64)])
            );
        }
    }
}

#[test]
fn a_lost_completion_never_arrives_but_the_data_is_written() {
    for mut rig in rigs(&[rule("x", nth(1), Action::Lose)]) {
        rig.run(writes(3));
        assert_eq!((rig.ends.len(), ended_at(&rig, 0)), (2, None));
        assert_eq!(disk(&rig).medium.get(&0), Some(&0));
        assert_eq!(rig.host.driver.below.lost(), 1);
        assert_eq!(rig.ask_for_first(), TimedOut::Reset, "the request should not be given up");
    }
}

#[test]
fn a_timed_out_request_is_given_up_and_its_late_completion_dropped() {
    for mut rig in rigs(&[rule("x", nth(1), Action::TimeOut)]) {
        let now = Instant::ZERO;
        rig.queue.submit(&mut rig.host, CpuId(0), Bio::write(0, 8, 9), now).unwrap();
        rig.settle();
        assert_eq!(
            rig.ask_for_first(),
            TimedOut::Reset,
            "the device below should still have the request"
        );
        rig.run([]);
        assert_eq!(rig.ask_for_first(), TimedOut::Ended(Outcome::Done(Status::Timeout)));
        let hctx = HctxId(0);
        let tag = DriverTag(0);
        let now = rig.now;
        rig.queue.complete(&mut rig.host, hctx, tag, Status::Timeout, now).unwrap();
        rig.now = now + Duration::from_secs(60);
        assert_eq!(rig.host.driver.next_finished(rig.now), None);
        rig.run(writes(1));
        assert_done(&rig, 2);
        assert_eq!(failures(&rig), [(9, Status::Timeout)]);
    }
}

/// If a disk gave a request back prepared, the layer used to expect its completion still, and
/// reported the device as full with no request in flight. If a rule failed the request, the layer
/// invented a completion of a request that the disk no longer had. Now such a request passes up
/// unchanged.
#[test]
fn a_request_given_back_prepared_passes_up() {
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
fn a_torn_write_stores_its_first_sectors_and_succeeds() {
    for mut rig in rigs(&[rule("x", nth(1), Action::TearWrite(3))]) {
        rig.run_each([Bio::read(0, 8, 5), Bio::write(0, 8, 1), Bio::write(0, 8, 2)]);
        assert_done(&rig, 3);
        assert_eq!(failures(&rig), []);
        assert!(
            disk(&rig).medium.values().all(|cookie| *cookie == 2),
            "the second write should be complete"
        );
        assert_eq!(counts(&rig), [(2, 1)], "the rule should not count reads");
    }
    for mut rig in rigs(&[rule("x", nth(2), Action::TearWrite(3))]) {
        rig.run_each([Bio::write(0, 8, 1), Bio::write(0, 8, 2)]);
        let left: Vec<_> = disk(&rig).medium.values().copied().collect();
        assert_eq!(left, [2, 2, 2, 1, 1, 1, 1, 1]);
    }
}

#[test]
fn a_lost_write_leaves_the_old_data() {
    for mut rig in rigs(&[rule("x", nth(2), Action::LoseWrite)]) {
        rig.run_each([Bio::write(0, 8, 1), Bio::write(0, 8, 2)]);
        assert_done(&rig, 2);
        assert_eq!(failures(&rig), []);
        assert!(disk(&rig).medium.values().all(|cookie| *cookie == 1));
    }
}

#[test]
fn a_misdirected_write_overwrites_other_data() {
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
fn a_rule_matches_by_op_and_sectors() {
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

fn failed_of_12(turns: Turns) -> Vec<u64> {
    let when = When { turns, ..When::default() };
    let mut rig = rig_with(vec![rule("x", when, Action::Error(Status::IoError))], Policies::NONE);
    rig.run_each(reads(12));
    failures(&rig).into_iter().map(|(cookie, _)| cookie + 1).collect::<Vec<_>>()
}

#[test]
fn a_rule_fires_on_the_matches_whose_turn_it_is() {
    assert_eq!(failed_of_12(Turns::Every(5)), [5, 10]);
    assert_eq!(failed_of_12(Turns::Between(5, 5)), [5]);
    assert_eq!(failed_of_12(Turns::Between(11, u64::MAX)), [11, 12]);
    assert_eq!(failed_of_12(Turns::All).len(), 12);
}

fn never() -> Vec<FaultRule> {
    vec![rule("x", When { turns: Turns::Every(0), ..When::default() }, Action::Again)]
}

/// A rule for every 0th match would never fire.
#[test]
fn a_rule_that_cannot_fire_is_refused() {
    let makes: [fn(); 2] = [
        || _ = Faulty::new(Disk::default(), never(), Prng::new(1), &TAGS),
        || {
            let mut faulty = Faulty::new(Disk::default(), vec![], Prng::new(1), &TAGS);
            faulty.set_rules(never(), Instant::ZERO);
        },
    ];
    for make in makes {
        let _ = std::panic::catch_unwind(make).expect_err("every 0th match");
    }
}

#[test]
fn rules_that_are_set_later_count_from_then_on() {
    let error = Action::Error(Status::Medium);
    for mut rig in rigs(&[rule("first", When::default(), error)]) {
        rig.run_each(reads(2));
        let now = rig.now;
        let s = Duration::from_secs;
        let when = When { during: Some(s(1)..s(2)), ..nth(2) };
        rig.host.driver.below.set_rules(vec![rule("second", when, error)], now);
        assert_eq!(counts(&rig), [(0, 0)]);
        for (at, cookies) in [(now, 2..4), (now + s(1), 4..7), (now + s(2), 7..9)] {
            rig.now = rig.now.max(at);
            rig.run_each(cookies.map(|cookie| Bio::read(1000 * cookie, 8, cookie)));
        }
        assert_done(&rig, 9);
        let failed: Vec<_> = failures(&rig).into_iter().map(|(cookie, _)| cookie).collect();
        assert_eq!((failed, counts(&rig)), (vec![0, 1, 5], vec![(3, 1)]));
    }
}

#[test]
fn the_first_rule_that_fires_ends_the_search() {
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
fn a_chance_fires_at_about_its_rate() {
    let when = When { one_in: Some(20), ..When::default() };
    let mut rig = rig_with(vec![rule("x", when, Action::Error(Status::IoError))], Policies::NONE);
    rig.run((0..10_000).map(|n| Bio::read(n % 900 * 1000, 8, n)));
    let [(matched, fired)] = counts(&rig)[..] else { panic!("one rule") };
    assert_eq!(matched, 10_000);
    // 500 expected, within five standard deviations of 22.
    assert!((390..=610).contains(&fired), "{fired}");
}

/// An offer that the device below refuses does not count for a rule.
#[test]
fn a_refused_offer_does_not_count_for_a_rule() {
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
