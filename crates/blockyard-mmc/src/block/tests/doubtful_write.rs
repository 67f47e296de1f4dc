//! Writes whose fate is unknown, and the flushes that report them.

use super::direct_flush::direct_flush_with_response;
use super::exclusive::{FLUSH, bench, simple};
use super::*;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};

/// The first response after a reported write is damaged or missing, or its interrupt is lost, so
/// the write's fate is unknown. Flushes fail as for a lost write, and the write counts as in doubt
/// ([doubtful-write-fails-flush]).
#[test]
fn a_write_is_in_doubt_if_the_next_response_got_lost() {
    let lost = [HostError::Damaged, HostError::Timeout];
    let lost = lost.map(|error| Fault::Error(Part::Announce, error, 0)).into_iter();
    for fault in lost.chain([Fault::Silence]) {
        for pipeline in one_by_one() {
            let mut bench = bench(HostPolicy::new(pipeline, BusyDetect::Hardware));
            bench.writes(1);
            bench.settle();
            let next = bench.spans().len();
            bench.script().faults.insert(next, fault);
            bench.submit([Bio::read(5000, 8, 50)]);
            bench.settle();
            for cookie in 910..912 {
                bench.submit([Bio { cookie, ..FLUSH }]);
                bench.settle();
            }
            let ended = [0, 50, 910, 911].map(|cookie| bench.ended[&cookie]);
            let expected = [Status::Ok, Status::Ok, Status::IoError, Status::Ok];
            assert_eq!(ended, expected, "{pipeline:?} {fault:?}");
            let counts = bench.mmc().counts();
            assert_eq!(
                (counts.lost_writes, counts.doubtful_writes),
                (0, 1),
                "{pipeline:?} {fault:?}"
            );
        }
    }
}

/// A controller reports damaged data of a read before the response to the read's command, which is
/// the first after a write, and which nobody reads. CMD13 then reports a failure of earlier work.
/// It may be the write's, which is lost, or the read's, of which no block counts
/// ([failure-told-in-recovery]).
#[test]
fn a_failure_told_in_a_recovery_may_be_the_reads_too() {
    let mut bench = simple(BusyDetect::Hardware);
    bench.writes(1);
    bench.settle();
    let next = bench.spans().len();
    bench.script().faults.insert(next + 1, Fault::Bits(Part::Command, CardStatus::ERROR));
    bench.submit([Bio::read(5000, 8, 50)]);
    while bench.spans().len() == next {
        bench.until(bench.now + us(1));
    }
    let now = bench.now;
    bench.script().abort(now);
    let error = HostError::Damaged;
    bench.interrupt(HostEvent::Error { part: Part::Data, error, blocks: 4 });
    bench.settle();
    assert_eq!(bench.ended[&50], Status::Ok);
    assert_eq!(bench.script().well[&5000], 8, "all of it was read again");
    let counts = bench.mmc().counts();
    assert_eq!((counts.lost_writes, counts.doubtful_writes), (1, 0));
}

/// The same with a command queue: at one of the engine's own commands, at a direct command, or when
/// the engine is turned off.
#[test]
fn a_write_is_in_doubt_if_the_engines_next_response_got_lost() {
    let lost = Fault::Error(Part::Command, HostError::Damaged, 0);
    for (direct, fault, bio, flushed) in [
        (true, lost, Bio::read(500, 8, 50), Status::Ok),
        (true, lost, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (true, Fault::Silence, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (false, lost, Bio { cookie: 50, ..FLUSH }, Status::IoError),
        (false, Fault::Silence, Bio { cookie: 50, ..FLUSH }, Status::IoError),
    ] {
        let mut bench = bench(HostPolicy::new(Pipeline::Cqe, BusyDetect::Hardware));
        bench.script().capabilities.queue_engine_direct = direct;
        bench.writes(1);
        bench.settle();
        let next = bench.spans().len();
        bench.script().faults.insert(next, fault);
        bench.until(bench.now + us(1));
        bench.submit([bio]);
        bench.settle();
        for cookie in 910..912 {
            bench.submit([Bio { cookie, ..FLUSH }]);
            bench.settle();
        }
        let ended = [0, 50, 910, 911].map(|cookie| bench.ended[&cookie]);
        assert_eq!(ended, [Status::Ok, flushed, Status::IoError, Status::Ok], "{bio:?} {direct}");
        let counts = bench.mmc().counts();
        assert_eq!((counts.lost_writes, counts.doubtful_writes), (0, 1), "{bio:?} {direct}");
    }
}

/// The card is reset before it has responded after a reported write ([doubtful-write-fails-flush]).
#[test]
fn a_write_is_in_doubt_if_the_card_is_reset_before_it_responds() {
    let mut bench = simple(BusyDetect::Hardware);
    bench.submit([Bio::write(0, 8, 0).with_flags(Flags::FUA)]); // nothing else can be lost
    bench.settle();
    let now = bench.now + us(1);
    bench.until(now);
    assert!(bench.mmc().has_unconfirmed_write() && bench.mmc().reset_host(now));
    for cookie in 910..912 {
        bench.submit([Bio { cookie, ..FLUSH }]);
        bench.settle();
    }
    let ended = [910, 911].map(|cookie| bench.ended[&cookie]);
    assert_eq!(ended, [Status::IoError, Status::Ok]);
    assert_eq!(bench.mmc().counts().doubtful_writes, 1);
}

/// A write is in doubt and not reported yet. A flush that is accepted before the report does not
/// cover it, so the next flush also fails ([reset-loss-fails-flush]).
#[test]
fn a_flush_accepted_before_a_doubtful_write_is_reported_does_not_cover_it() {
    let mut bench = bench(HostPolicy::new(Pipeline::Hsq(HsqPolicy::TODAY), BusyDetect::Hardware));
    bench.writes(1);
    while !matches!(bench.mmc().unconfirmed, UnconfirmedWrite::Held(_)) {
        bench.until(bench.now + us(1));
    }
    bench.mmc().unconfirmed_write_in_doubt();
    bench.until(bench.now + us(1));
    bench.submit([FLUSH]);
    bench.until(bench.now);
    assert!(bench.ended.is_empty() && bench.mmc().exclusive.is_some());
    bench.settle();
    for cookie in 910..912 {
        bench.submit([Bio { cookie, ..FLUSH }]);
        bench.settle();
    }
    let ended = [0, 900, 910, 911].map(|cookie| bench.ended[&cookie]);
    assert_eq!(ended, [Status::Ok, Status::IoError, Status::IoError, Status::Ok]);
}

/// DAT0 shows that a card is busy with a write beyond its limit. The card is reset and the write is
/// repeated, so the write is not in doubt. The cache's content is lost ([reset-loss-fails-flush]).
#[test]
fn a_write_that_takes_too_long_is_not_in_doubt() {
    let mut bench = simple(BusyDetect::Line);
    bench.script().busy = Duration::from_secs(100);
    bench.writes(1);
    bench.until(Instant::ZERO + Duration::from_secs(5));
    bench.script().busy = us(10);
    bench.settle();
    bench.all_ended_with(Status::Ok, 1);
    let counts = bench.mmc().counts();
    assert_eq!((counts.resets, counts.lost_writes, counts.doubtful_writes), (1, 0, 0));
}

/// Bits for earlier work in the response to a direct command are about the write before
/// ([late-error-is-the-writes]), which was reported by then. The flush fails
/// ([late-write-error-fails-flush]), as does the next, and the queue stays on.
#[test]
fn a_late_write_error_fails_a_direct_flush_which_is_not_repeated() {
    let mut bench = direct_flush_with_response(CardStatus::ERROR);
    assert_eq!(bench.mmc().counts().lost_writes, 1);
    assert!(bench.script().engine.disables.is_empty());
}

/// After a write is reported, the card reports its failure in the response to a read or to a flush.
/// One later flush fails ([late-write-error-fails-flush]). If a flush is in flight, another
/// submitter may have requested the next one before the failure, so both fail.
#[test]
fn a_late_write_error_fails_the_flush_under_way_and_the_next_one() {
    for pipeline in one_by_one() {
        for read_first in [true, false] {
            let mut bench = bench(HostPolicy::new(pipeline, BusyDetect::Hardware));
            bench.writes(1);
            bench.settle();
            bench.until(bench.now + us(1));
            let next = bench.spans().len();
            let first = if read_first { Part::Announce } else { Part::Command };
            bench.script().faults.insert(next, Fault::Bits(first, CardStatus::ERROR));
            if read_first {
                bench.submit([Bio::read(5000, 8, 50)]);
                bench.settle();
            }
            bench.submit([910, 911].map(|cookie| Bio { cookie, ..FLUSH }));
            bench.settle();
            bench.submit([Bio { cookie: 912, ..FLUSH }]);
            bench.settle();
            let second = if read_first { Status::Ok } else { Status::IoError };
            let ended = [910, 911, 912].map(|cookie| bench.ended[&cookie]);
            assert_eq!(ended, [Status::IoError, second, Status::Ok], "{pipeline:?} {read_first}");
            assert_eq!(bench.mmc().counts().lost_writes, 1, "{pipeline:?}");
        }
    }
}
