//! Every event of every kind of MMC request, and every error at each part.

use super::*;
use crate::command::state::CardState;
use crate::command::{BlockCount, Command};
use crate::controller::{Payload, SlotId};
use blockyard::time::Duration;
use std::vec::Vec;

const BLOCKS: u16 = 8;

fn transfer(announce: bool, command: Command, stop: Option<Direction>) -> MmcRequest {
    MmcRequest {
        announce: announce.then(|| Command::set_block_count(BlockCount::new(BLOCKS))),
        command,
        stop: stop.map(Command::stop_transmission),
        continues: false,
        stays_open: false,
        payload: Payload::Slot { slot: SlotId(0), skip: 0 },
        limit: Duration::ZERO,
    }
}

/// Returns every kind of transfer, with the parts that a host without busy detection reports.
fn ways() -> Vec<(MmcRequest, Vec<Part>)> {
    use Part::{Announce, Command as Cmd, Data, Stop};
    let read = Command::read_multiple(0, BLOCKS);
    let write = Command::write_multiple(0, BLOCKS);
    std::vec![
        (transfer(false, read, Some(Direction::Read)), std::vec![Cmd, Data, Stop]),
        (transfer(true, read, None), std::vec![Announce, Cmd, Data]),
        (transfer(false, Command::read_single(0), None), std::vec![Cmd, Data]),
        (transfer(false, write, Some(Direction::Write)), std::vec![Cmd, Data, Stop]),
        (transfer(true, write, None), std::vec![Announce, Cmd, Data]),
        (transfer(false, Command::write_single(0), None), std::vec![Cmd, Data]),
        (
            MmcRequest::plain(Command::send_status(crate::command::Rca(1)), Duration::ZERO),
            std::vec![Cmd],
        ),
    ]
}

fn r1(errors: u32) -> Response {
    Response::Short(Status::new(CardState::Transfer, true).0 | errors)
}

fn done(part: Part) -> HostEvent {
    match part {
        Part::Data => HostEvent::DataDone,
        Part::Busy => HostEvent::BusyReleased,
        _ => HostEvent::CommandDone { part, response: r1(0) },
    }
}

fn blocks(transaction: &MmcRequest) -> u16 {
    transaction.data().map_or(0, |data| data.blocks)
}

/// Feeds `parts`; only the last one ends the request.
fn feed(exchange: &mut Exchange, parts: &[Part]) {
    for (at, &part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let expected = if last { Progress::Ended } else { Progress::Waits };
        assert_eq!(exchange.event(done(part)), expected, "{part:?} of {parts:?}");
    }
}

/// [request-ends-once].
#[test]
fn a_request_ends_with_its_last_part_in_any_order() {
    for (transaction, parts) in ways() {
        for rotation in 0..parts.len() {
            let mut parts = parts.clone();
            parts.rotate_left(rotation);
            let mut exchange = Exchange::new(&transaction, BusyDetect::Status);
            feed(&mut exchange, &parts);
            assert_eq!((exchange.failure(), exchange.blocks()), (None, blocks(&transaction)));
            assert_eq!(exchange.event(done(Part::Command)), Progress::Stray, "[request-ends-once]");
        }
    }
}

#[test]
fn busy_is_a_part_of_each_write_with_hardware_busy_detection() {
    for (transaction, mut parts) in ways() {
        let writes = transaction.data().is_some_and(|data| data.direction == Direction::Write);
        assert_eq!(transaction.ends_busy(), writes);
        if writes {
            parts.push(Part::Busy);
        }
        let mut exchange = Exchange::new(&transaction, BusyDetect::Hardware);
        feed(&mut exchange, &parts);
        let mut exchange = Exchange::new(&transaction, BusyDetect::Line);
        assert_eq!(exchange.event(HostEvent::BusyReleased), Progress::Stray);
    }
}

#[test]
fn an_error_at_any_part_ends_the_request_and_names_the_part() {
    for (transaction, parts) in ways() {
        for (at, &part) in parts.iter().enumerate() {
            for error in [HostError::Timeout, HostError::Damaged, HostError::Memory] {
                let mut exchange = Exchange::new(&transaction, BusyDetect::Status);
                for &before in &parts[..at] {
                    assert_eq!(exchange.event(done(before)), Progress::Waits);
                }
                let event = HostEvent::Error { part, error, blocks: 3.min(blocks(&transaction)) };
                assert_eq!(exchange.event(event), Progress::Ended);
                let failure = Failure { part, cause: Cause::Host(error) };
                assert_eq!(exchange.failure(), Some(failure));
                let moved = if parts[..at].contains(&Part::Data) {
                    blocks(&transaction)
                } else {
                    3.min(blocks(&transaction))
                };
                assert_eq!(exchange.blocks(), moved);
                assert_eq!(exchange.event(done(part)), Progress::Stray, "[request-ends-once]");
            }
        }
    }
}

#[test]
fn errors_in_a_response_fail_the_request_but_not_its_parts() {
    let (transaction, _) = ways().swap_remove(0);
    let mut exchange = Exchange::new(&transaction, BusyDetect::Status);
    let refused = r1(Status::ADDRESS_MISALIGN);
    let answer = HostEvent::CommandDone { part: Part::Command, response: refused };
    assert_eq!(exchange.event(answer), Progress::Waits);
    // No data follows, and the first failure is kept.
    let late = HostEvent::Error { part: Part::Data, error: HostError::Timeout, blocks: 0 };
    assert_eq!(exchange.event(late), Progress::Ended);
    let status = refused.status().unwrap();
    let failure = Failure { part: Part::Command, cause: Cause::Card(status) };
    assert_eq!((exchange.failure(), exchange.status()), (Some(failure), Some(status)));
}

/// [earlier-bits-ignored].
#[test]
fn errors_of_an_earlier_command_fail_nothing() {
    let ways = ways();
    let open = &ways[0].0;
    let close = &ways[1].0;
    assert!(!fails(open, Part::Command, Status::ILLEGAL_COMMAND), "[earlier-bits-ignored]");
    assert!(!fails(close, Part::Announce, Status::COM_CRC_ERROR), "[earlier-bits-ignored]");
    assert!(
        fails(close, Part::Command, Status::ILLEGAL_COMMAND),
        "the card did not understand CMD23"
    );
    assert!(fails(open, Part::Stop, Status::COM_CRC_ERROR));
    assert!(fails(open, Part::Command, Status::OUT_OF_RANGE));
    assert!(!fails(open, Part::Command, Status::EXCEPTION_EVENT), "not an error");
}

fn fails(transaction: &MmcRequest, part: Part, bits: u32) -> bool {
    let mut exchange = Exchange::new(transaction, BusyDetect::Status);
    let response = r1(bits);
    let _ = exchange.event(HostEvent::CommandDone { part, response });
    exchange.failure().is_some()
}

#[test]
fn reading_ahead_over_the_end_of_the_card_fails_no_read() {
    for (way, data_first, fails) in [(0, true, false), (0, false, true), (3, true, true)] {
        let (transaction, _) = ways().swap_remove(way);
        let mut exchange = Exchange::new(&transaction, BusyDetect::Status);
        let _ = exchange.event(done(Part::Command));
        if data_first {
            let _ = exchange.event(done(Part::Data));
        }
        let response = r1(Status::OUT_OF_RANGE);
        let _ = exchange.event(HostEvent::CommandDone { part: Part::Stop, response });
        assert_eq!(exchange.failure().is_some(), fails, "way {way}, data first: {data_first}");
    }
}

#[test]
fn exceptions_are_noted_and_a_removed_card_overrides_other_failures() {
    let (transaction, _) = ways().swap_remove(3);
    let mut exchange = Exchange::new(&transaction, BusyDetect::Hardware);
    let response = r1(Status::EXCEPTION_EVENT | Status::WP_VIOLATION);
    let _ = exchange.event(HostEvent::CommandDone { part: Part::Command, response });
    assert!(exchange.exception());
    assert_eq!(exchange.event(HostEvent::CardGone), Progress::Ended);
    assert_eq!(exchange.failure().map(|failure| failure.cause), Some(Cause::Gone));
}

#[test]
fn a_timeout_names_the_part_that_was_awaited() {
    for (transaction, parts) in ways() {
        for at in 0..parts.len() {
            let mut exchange = Exchange::new(&transaction, BusyDetect::Status);
            for &before in &parts[..at] {
                let _ = exchange.event(done(before));
            }
            exchange.timed_out();
            let failure = Failure { part: parts[at], cause: Cause::Host(HostError::Timeout) };
            assert_eq!(exchange.failure(), Some(failure));
        }
    }
}

/// An event of a part that is not awaited, or of any part after the end, is stray and changes
/// nothing.
#[test]
fn an_event_that_is_not_awaited_changes_nothing() {
    const PARTS: [Part; 5] = [Part::Announce, Part::Command, Part::Data, Part::Stop, Part::Busy];
    for (transaction, parts) in ways() {
        for known in 0..=parts.len() {
            let mut exchange = Exchange::new(&transaction, BusyDetect::Status);
            for &part in &parts[..known] {
                let _ = exchange.event(done(part));
            }
            for part in PARTS.into_iter().filter(|part| !parts[known..].contains(part)) {
                let error = HostEvent::Error { part, error: HostError::Damaged, blocks: 1 };
                for event in [done(part), error] {
                    let before = exchange;
                    assert_eq!(exchange.event(event), Progress::Stray, "{event:?} after {known}");
                    assert_eq!(exchange, before, "{event:?} after {known} of {parts:?}");
                }
            }
            if known == parts.len() {
                let before = exchange;
                assert_eq!(exchange.event(HostEvent::CardGone), Progress::Stray);
                assert_eq!(exchange, before, "[request-ends-once]");
            }
        }
    }
}
