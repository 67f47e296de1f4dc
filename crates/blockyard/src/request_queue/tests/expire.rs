use super::*;
use crate::driver::Outcome;

const TIMEOUT: Duration = Duration::from_secs(30);

fn rigs() -> [Rig; 2] {
    [Rig::none(4), Rig::mq_deadline(4)]
}

/// One read in flight at 100 ms.
fn in_flight(mut rig: Rig) -> Rig {
    rig.now = Instant::from_ns(100_000_000);
    rig.submit(CPU, Bio::read(0, 8, 0)).unwrap();
    rig.settle();
    rig
}

/// Advances time to the instant of the next poll.
fn sleep(rig: &mut Rig) {
    rig.now = rig.queue.poll_at().expect("there is a timer");
    rig.settle();
    rig.check();
}

#[test]
fn the_driver_is_asked_at_the_next_whole_second_and_again_after_another_timeout() {
    for mut rig in rigs().map(in_flight) {
        sleep(&mut rig);
        assert_eq!(rig.now, Instant::from_ns(31_000_000_000), "30.1 s, rounded up");
        rig.host.driver.timeouts.push_back(TimedOut::Ended(Outcome::Done(Status::Timeout)));
        assert_eq!(rig.queue.poll_at(), Some(rig.now + TIMEOUT));
        sleep(&mut rig);
        assert_eq!(rig.ended(), [(0, Status::Timeout)]);
        assert_eq!(rig.host.driver.finished, 1);
        assert!(rig.queue.is_empty());
    }
}

/// [first-end-wins]: the later one finds nothing and changes nothing.
#[test]
fn a_completion_after_the_timeout_finds_nothing() {
    for mut rig in rigs().map(in_flight) {
        let tag = rig.host.driver.sent[0].tag;
        rig.host.driver.timeouts.push_back(TimedOut::Ended(Outcome::Done(Status::Timeout)));
        sleep(&mut rig);
        let late = rig.queue.complete(&mut rig.host, H0, tag, Status::Ok, rig.now);
        assert_eq!(late, Err(NotInFlight));
        assert_eq!(rig.ended(), [(0, Status::Timeout)]);
    }
}

#[test]
fn a_timeout_after_the_completion_asks_nobody() {
    for mut rig in rigs().map(in_flight) {
        rig.host.driver.timeouts.push_back(TimedOut::Ended(Outcome::Done(Status::Timeout)));
        rig.complete();
        sleep(&mut rig);
        assert_eq!(rig.ended(), [(0, Status::Ok)]);
        assert_eq!(rig.host.driver.timeouts.len(), 1, "not asked");
        assert_eq!(rig.queue.poll_at(), None, "and not looked after again");
    }
}

#[test]
fn a_request_that_timed_out_may_be_tried_again() {
    for (outcome, prepared) in [(Outcome::Again, 2), (Outcome::AgainPrepared, 1)] {
        for mut rig in rigs().map(in_flight) {
            rig.host.driver.timeouts.push_back(TimedOut::Ended(outcome));
            sleep(&mut rig);
            assert_eq!(rig.sent_ops(), "r", "{outcome:?}");
            rig.complete();
            assert_eq!(rig.ended(), [(0, Status::Ok)]);
            assert_eq!((rig.host.driver.prepared, rig.host.driver.finished), (prepared, prepared));
        }
    }
}

/// Of many requests in flight only those that are due are asked about, and one check serves all of
/// a second ([asked-each-timeout]).
#[test]
fn only_requests_that_are_due_time_out() {
    for mut rig in rigs() {
        for at in 0..3 {
            rig.now = Instant::from_ns(at * 700_000_000);
            rig.submit(CPU, Bio::read(at * 64, 8, at)).unwrap();
            rig.settle();
        }
        let ended = TimedOut::Ended(Outcome::Done(Status::Timeout));
        rig.host.driver.timeouts.extend([ended; 3]);
        let mut looks = Vec::new();
        while rig.queue.in_flight() > 0 {
            sleep(&mut rig);
            looks.push((rig.now.as_ns() / 1_000_000_000, rig.ended().len()));
        }
        assert_eq!(looks, [(30, 1), (31, 1), (32, 1)]);
    }
}
