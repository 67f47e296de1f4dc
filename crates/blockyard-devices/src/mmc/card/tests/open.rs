//! Transfers that the host leaves open between requests.

use super::*;
use crate::mmc::profile::AheadTiming;

/// A card with pages of 32 KiB that take 1 ms, 100 us for each write command, and 50 us for its
/// end.
fn paged() -> CardTiming {
    let mut timing = CardTiming::instant(1 << 15);
    timing.write.page_bytes = 1 << 15;
    timing.write.program = ONE_MS;
    timing.write.command = Duration::from_us(100);
    timing.write.finish = Duration::from_us(50);
    timing
}

impl Host {
    fn data_events(&mut self) -> Vec<DataEvent<u32>> {
        self.card.advance_data(self.now);
        core::iter::from_fn(|| self.card.next_data_event()).collect()
    }

    /// Begins a transfer at sector 0 that stays open, and moves `requests` of 8 blocks.
    fn run_open(&mut self, direction: Direction, requests: u32) {
        let _ = self.send(&match direction {
            Direction::Read => Command::read_multiple(0, 8),
            Direction::Write => Command::write_multiple(0, 8),
        });
        self.card.stay_open();
        for request in 0..requests {
            if request > 0 {
                self.card.go_on(8, self.now).unwrap();
            }
            assert_eq!(self.transfer(8).error, None);
        }
    }
}

/// A clock is 20 ns, and a command with its response takes 98 of them: 1.96 us. A block takes 1051:
/// 2 before it, 1024 of data, 16 of CRC, 2 around them, 7 for the CRC status. Eight take 168.16 us.
/// A write of 4 KiB by itself: CMD25, data, a page of 1.1 ms, 50 us, CMD13; CMD12 passes meanwhile.
/// So eight of them take 8 * (1.96 + 168.16 + 1100 + 50 + 1.96) = 10576.64 us. In one transfer they
/// share the page: 1.96 + 8 * 168.16 + 1100 + 50 = 2497.24 us.
#[test]
fn eight_writes_in_an_open_transfer_are_one_command_one_page_and_one_end() {
    let mut stopped = Host::new(sd(), paged());
    let alone: Vec<_> = (0..8).map(|at| stopped.run(Direction::Write, 8 * at, 8).as_ns()).collect();
    assert_eq!(alone.iter().sum::<u64>(), 10_576_640);
    let mut open = Host::new(sd(), paged());
    open.run_open(Direction::Write, 8);
    assert_eq!(open.card.busy_until(), None, "the card waits for more");
    let _ = open.send(&Command::stop_transmission(Direction::Write));
    open.wait();
    assert_eq!(open.now.as_ns(), 2_497_240);
}

/// The data of five requests is in a page that is not complete: 20 KiB of 32. A loss of power takes
/// it. After CMD12 the page is programmed as it is.
#[test]
fn a_page_that_has_begun_is_certain_only_once_the_transfer_is_closed() {
    let mut host = Host::new(sd(), paged());
    host.card.keep_data();
    host.run_open(Direction::Write, 5);
    host.idle(Duration::from_secs(1));
    assert_eq!(host.card.unprogrammed_bytes(host.now), 5 * 4096);
    // Each request hears of its own data, from its own first sector.
    let received = |request: u64| DataEvent::Received {
        place: 0,
        sectors: 8 * request..8 * request + 8,
        page: 1,
    };
    assert_eq!(host.data_events(), [0, 1, 2, 3, 4].map(received));
    let mut cut = Host { card: host.card.clone(), now: host.now };
    assert_eq!(cut.card.power_cut(cut.now), 5 * 4096);
    let _ = host.send(&Command::stop_transmission(Direction::Write));
    host.wait();
    let certain =
        |request: u64| DataEvent::Certain { page: 1, sectors: 8 * request..8 * request + 8 };
    assert_eq!(host.data_events(), [0, 1, 2, 3, 4].map(certain));
    assert_eq!(host.card.unprogrammed_bytes(host.now), 0);
}

/// An access takes 500 us. The card reads ahead at 10 us for each KiB, up to 64 KiB, and each
/// command of a stream takes it 30 us. The first 4 KiB: CMD18 of 1.96 us, an access, and the data
/// at the rate of the bus. After a pause of 10 ms the window is full, and the next 4 KiB come at
/// that rate too, with neither access nor command.
#[test]
fn a_read_goes_on_without_command_and_access() {
    let mut timing = CardTiming::instant(1 << 15);
    timing.read.access = Duration::from_us(500);
    timing.read.ahead = Some(AheadTiming {
        per_kib: Duration::from_us(10),
        window_bytes: 1 << 16,
        command: Duration::from_us(30),
        streams: 1,
    });
    let mut host = Host::new(sd(), timing);
    host.run_open(Direction::Read, 1);
    let bus = host.now.as_ns() - 1_960 - 500_000;
    host.idle(Duration::from_ms(10));
    let begin = host.now;
    host.card.go_on(8, host.now).unwrap();
    assert_eq!(host.transfer(8).error, None);
    assert_eq!(host.now.since(begin).as_ns(), bus);
    let _ = host.send(&Command::stop_transmission(Direction::Read));
    assert_eq!(host.card.state(host.now), CardState::Transfer);
}

#[test]
fn a_transfer_that_is_not_open_does_not_go_on() {
    let mut host = Host::new(sd(), paged());
    assert!(host.card.go_on(8, host.now).is_err(), "there is none");
    let _ = host.send(&Command::write_multiple(0, 8));
    let _ = host.transfer(8);
    assert!(host.card.go_on(8, host.now).is_err(), "the host wants to stop it");
    let _ = host.send(&Command::stop_transmission(Direction::Write));
    host.wait();
    host.run_open(Direction::Write, 1);
    assert!(host.card.go_on(1 << 21, host.now).is_err(), "the card ends before");
}
