//! Canaries: hosts that break a rule. Controller and card must catch them.

use super::card::Card;
use super::controller::{Controller, RCA};
use super::fault::Faults;
use super::registers::registers;
use crate::mmc::profile::{CardFaults, HostCosts, HostFaults};
use crate::profile::{Device, DeviceModel};
use blockyard::prng::Prng;
use blockyard::time::{Duration, Instant};
use blockyard_mmc::command::queue::{TaskId, TaskParameters};
use blockyard_mmc::command::{Command, Direction, SwitchAccess};
use blockyard_mmc::controller::{HostController, HostError, HostEvent, MmcRequest};
use blockyard_mmc::engine::{QueueEngine, Task};
use blockyard_mmc::host::{HostCapabilities, Transfer};
use blockyard_mmc::mode::{Mode, Timing};
use blockyard_mmc::register::ext_csd::index;

/// A host that follows the test's orders, one per second.
struct Host {
    controller: Controller,
    now: Instant,
}

impl Host {
    /// Returns a host of an eMMC device whose reads occasionally bring no data.
    fn new(no_data_one_in: Option<u32>) -> Self {
        Self::with(CardFaults { no_data_one_in, ..CardFaults::default() })
    }

    /// Returns a host of an eMMC device with the given faults.
    fn with(faults: CardFaults) -> Self {
        Self::of(HostCapabilities::full(), HostFaults::default(), faults)
    }

    /// Returns a host of an eMMC device, each with its faults.
    fn of(capabilities: HostCapabilities, of_host: HostFaults, faults: CardFaults) -> Self {
        let device = Device::lookup("emmc-hs400-sprd").unwrap();
        let DeviceModel::Mmc(mut profile) = device.model else { unreachable!("it is a card") };
        let card = &mut profile.card;
        card.mode = Mode::new(Timing::Hs400, card.mode.width);
        card.timing.faults = faults;
        let registers = registers(card, 1 << 20);
        let model = Card::new(registers, card.timing, card.mode, Prng::new(1)).unwrap();
        let faults = Faults::new(of_host, Prng::new(2));
        let controller =
            Controller::new(model, capabilities, false, card.mode, faults, &HostCosts::default());
        Self { controller, now: Instant::ZERO }
    }

    /// Sends `command` with data that belongs to no request. Returns whether there was no error.
    fn send(&mut self, command: Command) -> bool {
        self.now = self.now + Duration::from_secs(1);
        let transaction = MmcRequest::plain(command, Duration::from_ms(100));
        self.controller.start(&transaction, self.now);
        let events: Vec<_> = core::iter::from_fn(|| self.controller.next_event()).collect();
        !events.iter().any(|event| matches!(event, HostEvent::Error { .. }))
    }

    /// Returns a host that has written a block that could not be programmed.
    fn with_a_write_that_failed() -> Self {
        let mut host = Self::with(CardFaults { program_one_in: Some(1), ..CardFaults::default() });
        assert!(host.send(Command::write_single(0)));
        host
    }

    fn tune(&mut self) -> Result<(), HostError> {
        self.now = self.now + Duration::from_secs(1);
        self.controller.retune(self.now)
    }

    /// Lets the engine send `command` and complete it.
    fn direct(&mut self, command: Command) {
        self.now = self.now + Duration::from_secs(1);
        self.controller.direct(&command, self.now);
        self.now = self.now + Duration::from_secs(1);
        while let Some((at, serial)) = self.controller.take_schedule() {
            self.controller.happens(serial, at.max(self.now));
        }
    }

    /// Gives a task to the engine.
    fn task(&mut self) {
        let parameters = TaskParameters::new(TaskId::new(0), Direction::Read, 8);
        self.controller.queue(&Task { parameters, address: 0, skip: 0 }, self.now);
    }

    fn queue(&mut self, on: bool) {
        let switch = Command::switch(SwitchAccess::WriteByte, index::CMDQ_MODE_EN, u8::from(on));
        assert!(self.send(switch));
        assert!(self.send(Command::send_status(RCA)));
    }

    /// Returns a host whose read has failed and that has stopped the card.
    fn failed() -> Self {
        let mut host = Self::new(Some(1));
        assert!(!host.send(Command::read_single(0)));
        assert!(host.send(Command::stop_transmission(Direction::Read)));
        host
    }
}

/// [misuse-ends-simulation]
#[test]
#[should_panic(expected = "CMD17 (ReadSingle) is illegal in state Transfer with the queue Empty")]
fn a_host_that_reads_with_the_queue_on_is_caught() {
    let mut host = Host::new(None);
    host.queue(true);
    host.send(Command::read_single(0));
}

/// [failed-transfer-recovered-first]
#[test]
#[should_panic(expected = "[failed-transfer-recovered-first]")]
fn a_host_that_goes_on_while_a_failure_is_recovered_from_is_caught() {
    Host::failed().send(Command::read_single(8));
}

/// [misuse-ends-simulation]
#[test]
#[should_panic(expected = "is illegal in state Data")]
fn a_host_that_does_not_stop_a_card_that_waits_is_caught() {
    let mut host = Host::new(Some(1));
    assert!(!host.send(Command::read_single(0)));
    assert!(host.send(Command::send_status(RCA)));
    host.send(Command::set_block_count(blockyard_mmc::command::BlockCount::new(8)));
}

/// Returns a host whose engine is on and has flushed the cache by a direct command.
fn flushed_directly() -> Host {
    let mut host = Host::new(None);
    host.queue(true);
    host.controller.enable(host.now);
    host.direct(Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 1));
    host
}

/// [status-read-after-switch]
#[test]
#[should_panic(expected = "[status-read-after-switch] CMD44")]
fn a_host_that_does_not_ask_how_a_direct_flush_went_is_caught() {
    flushed_directly().task();
}

/// [status-read-after-switch]
#[test]
#[should_panic(expected = "[status-read-after-switch] CMD17")]
fn a_host_that_does_not_ask_how_a_flush_went_is_caught() {
    let mut host = Host::new(None);
    assert!(host.send(Command::switch(SwitchAccess::WriteByte, index::FLUSH_CACHE, 1)));
    host.send(Command::read_single(0));
}

/// [tuning-hides-no-write-error]
#[test]
#[should_panic(expected = "[tuning-hides-no-write-error]")]
fn a_host_that_tunes_the_bus_and_does_not_ask_after_a_write_is_caught() {
    let _ = Host::with_a_write_that_failed().tune();
}

/// Does the canaries' work correctly.
#[test]
fn a_host_that_asks_first_is_not() {
    let mut host = Host::failed();
    assert!(host.send(Command::send_status(RCA)));
    host.send(Command::read_single(8));
    let mut host = Host::new(None);
    host.queue(true);
    host.queue(false);
    assert!(host.send(Command::read_single(0)));
    let mut host = flushed_directly();
    host.direct(Command::send_status(RCA));
    host.task();
    let mut host = Host::with_a_write_that_failed();
    assert!(host.send(Command::send_status(RCA)));
    assert_eq!(host.tune(), Ok(()));
}

/// A card is removed after 500 ms. A read by PIO at 1 s would bring no data, so it ends in the same
/// call as it begins: then the bus counts as used up to the end of the command, which is later.
#[test]
fn a_read_without_data_from_a_card_that_was_removed_ends_with_the_removal() {
    let pio = HostCapabilities { transfer: Transfer::Pio, ..HostCapabilities::full() };
    let removed_at = Some(Duration::from_ms(500));
    let no_data = CardFaults { no_data_one_in: Some(1), ..CardFaults::default() };
    let mut host = Host::of(pio, HostFaults { removed_at, ..HostFaults::default() }, no_data);
    let read = MmcRequest::plain(Command::read_single(0), Duration::from_ms(100));
    host.controller.start(&read, Instant::from_ns(1_000_000_000));
    assert_eq!(host.controller.next_event(), Some(HostEvent::CardGone));
    assert_eq!(host.controller.next_event(), None);
}
