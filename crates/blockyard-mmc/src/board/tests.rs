//! One command on a board whose events are written down, as hosts differ in the way they find the
//! end of busy.

use super::*;
use crate::command::Rca;
use crate::controller::{NotNow, Payload, SlotId};
use crate::host::HostCapabilities;
use crate::target::Target;
use blockyard::driver::Issue;
use std::collections::VecDeque;
use std::vec::Vec;

const ANSWERED: HostEvent =
    HostEvent::CommandDone { part: Part::Command, response: Response::Short(0x900) };
const LIMIT: Duration = Duration::from_ms(50);

struct Scripted {
    capabilities: HostCapabilities,
    now: Instant,
    /// What the controller reports, and when.
    events: VecDeque<(Instant, HostEvent)>,
    /// When the card releases DAT0.
    ready_at: Instant,
    block: [u8; 512],
    started: Vec<MmcRequest>,
    aborts: u32,
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn board(busy_detect: BusyDetect, events: &[(u64, HostEvent)]) -> Scripted {
    Scripted {
        capabilities: HostCapabilities { busy_detect, ..HostCapabilities::plain() },
        now: Instant::ZERO,
        events: events.iter().map(|&(us, event)| (at(us), event)).collect(),
        ready_at: at(0),
        block: [0; 512],
        started: Vec::new(),
        aborts: 0,
    }
}

impl Board for Scripted {
    fn now(&self) -> Instant {
        self.now
    }

    fn next_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front_if(|(at, _)| *at <= self.now).map(|(_, event)| event)
    }

    fn sleep(&mut self, limit: Instant) {
        let interrupt = self.events.front().map(|(at, _)| *at);
        self.now = self.now.max(interrupt.into_iter().chain([limit]).min().unwrap());
    }

    fn drive(&mut self, _: Mode) {}
}

impl HostController for Scripted {
    fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }
    fn start(&mut self, request: &MmcRequest, _: Instant) {
        self.started.push(*request);
    }
    fn block(&mut self) -> &mut [u8; 512] {
        &mut self.block
    }
    fn card_busy(&mut self, now: Instant) -> bool {
        now < self.ready_at
    }
    fn abort(&mut self, _: Instant) {
        self.aborts += 1;
    }
    fn accept(&mut self, _: SlotId, _: &Issue<'_>) {}
    fn prepare(&mut self, _: SlotId) {}
    fn post(&mut self, _: SlotId) {}
    fn start_atomic(&mut self, _: &MmcRequest, _: Instant) -> Result<(), NotNow> {
        Err(NotNow)
    }
    fn reset(&mut self, _: Instant) -> Result<Target, HostError> {
        Err(HostError::Timeout)
    }
}

/// Selects a card, which is busy afterwards.
fn select(board: &mut Scripted) -> Answer<'_> {
    send(board, Command::select(Rca(1)), LIMIT)
}

#[test]
fn a_command_ends_with_the_busy_of_its_card_however_the_host_finds_it() {
    let mut reports = board(BusyDetect::Hardware, &[(5, ANSWERED), (700, HostEvent::BusyReleased)]);
    assert!(matches!(select(&mut reports), Answer::Response(Response::Short(_))));
    assert_eq!(reports.now, at(700));

    let mut looks = Scripted { ready_at: at(700), ..board(BusyDetect::Line, &[(5, ANSWERED)]) };
    assert!(matches!(select(&mut looks), Answer::Response(_)));
    assert!(looks.now >= at(700) && looks.now < at(700) + LOOK_INTERVAL);

    let mut waits = board(BusyDetect::Status, &[(5, ANSWERED)]);
    assert!(matches!(select(&mut waits), Answer::Response(_)));
    assert_eq!(waits.now, Instant::ZERO + LIMIT, "it cannot know that the card is ready before");
}

#[test]
fn a_card_that_stays_busy_or_silent_is_given_up_at_the_limit() {
    let mut looks = Scripted { ready_at: at(90_000), ..board(BusyDetect::Line, &[(5, ANSWERED)]) };
    assert!(matches!(select(&mut looks), Answer::Error(BusError::Busy)));
    assert!(looks.now >= Instant::ZERO + LIMIT && looks.now < at(90_000));

    let mut silent = board(BusyDetect::Hardware, &[(5, ANSWERED)]);
    assert!(matches!(select(&mut silent), Answer::Error(BusError::Busy)));
    assert_eq!((silent.now, silent.aborts), (Instant::ZERO + LIMIT, 1));
}

#[test]
fn an_error_says_which_part_of_the_command_failed() {
    assert_eq!(bus_error(Part::Command, HostError::Timeout), BusError::NoResponse);
    assert_eq!(bus_error(Part::Command, HostError::Damaged), BusError::ResponseCrc);
    assert_eq!(bus_error(Part::Data, HostError::Timeout), BusError::Data);
    assert_eq!(bus_error(Part::Busy, HostError::Timeout), BusError::Busy);
    let mut gone = board(BusyDetect::Hardware, &[(5, HostEvent::CardGone)]);
    assert!(matches!(select(&mut gone), Answer::Error(BusError::NoResponse)));
}

fn bus_error(part: Part, error: HostError) -> BusError {
    let mut board =
        board(BusyDetect::Hardware, &[(5, HostEvent::Error { part, error, blocks: 0 })]);
    match send(&mut board, Command::send_ext_csd(), LIMIT) {
        Answer::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn registers_arrive_in_the_block_of_the_controller() {
    let mut board = board(BusyDetect::Hardware, &[(5, ANSWERED), (9, HostEvent::DataDone)]);
    board.block = [7; 512];
    match send(&mut board, Command::send_ext_csd(), LIMIT) {
        Answer::Data(_, data) => assert_eq!(data, [7; 512]),
        other => panic!("{other:?}"),
    }
    assert_eq!(board.started[0].payload, Payload::Block);
}
