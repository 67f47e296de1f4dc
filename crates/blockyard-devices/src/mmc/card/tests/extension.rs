//! The cache of an SD card, in pages of 4 KiB that take 1 ms, and its extension registers.

use super::*;
use blockyard_mmc::command::queue::{TaskId, TaskParameters};
use blockyard_mmc::register::extension::{ExtensionPlace, performance_place};

/// The places of the settings: bytes 260 to 262 of page 0 of function 1.
const ENABLE: ExtensionPlace = ExtensionPlace::of_argument(1 << 27 | 260 << 9);
const FLUSH: ExtensionPlace = ExtensionPlace::of_argument(1 << 27 | 261 << 9);

const QUEUE: ExtensionPlace = ExtensionPlace::of_argument(1 << 27 | 262 << 9);

/// A card with a cache of 64 KiB, 16 pages, a buffer of two pages, and a queue of 8 tasks.
fn host() -> Host {
    let mut registers = sd();
    if let RegistersKind::Sd { enhancement, .. } = &mut registers.kind {
        *enhancement = Some(Enhancement::new(1 << 16, 8));
    }
    Host::new(registers, slow())
}

impl Host {
    /// Writes `value` to a setting. Returns how long the card is busy.
    fn set(&mut self, place: ExtensionPlace, value: u8) -> Duration {
        let _ = self.send(&Command::write_extension_byte(place));
        let mut block = [0; 512];
        block[0] = value;
        self.card.show_block(&block).unwrap();
        let done = self.transfer(1);
        done.busy_until.unwrap().since(done.end)
    }

    fn byte(&mut self, place: ExtensionPlace) -> u8 {
        let _ = self.send(&Command::read_extension_byte(place));
        let _ = self.transfer(1);
        self.card.register()[0]
    }
}

#[test]
fn a_host_finds_the_cache_turns_it_on_and_a_reset_turns_it_off() {
    let mut host = host();
    let _ = host.send(&Command::read_extension(ExtensionPlace::GENERAL));
    let _ = host.transfer(1);
    let place = performance_place(host.card.register().try_into().unwrap()).unwrap();
    assert_eq!((place.function(), place.offset()), (1, 0));
    assert_eq!(host.byte(ExtensionPlace::of_argument(1 << 27 | 4 << 9)), 1, "it has a cache");
    assert!(!host.card.cache_on());
    // A switch takes 2 ms.
    assert_eq!(host.set(ENABLE, 1), Duration::from_ms(2));
    host.wait();
    assert!(host.card.cache_on() && host.byte(ENABLE) == 1);
    host.card.power_cut(host.now);
    assert!(!host.card.cache_on());
}

/// Eight pages fit in the cache, so the write ends early, after its `finish` of 50 us. A flush
/// waits until the last page is programmed, 1 ms after the other, and adds 50 us for the tables and
/// 3 ms. A card whose cache is off has no flush: the busy time is that of a setting, 2 ms.
#[test]
fn a_flush_waits_for_the_pages_of_the_cache() {
    for is_on in [true, false] {
        let mut host = host();
        host.set(ENABLE, u8::from(is_on));
        host.wait();
        host.card.keep_data();
        let first = host.begin_write(0, 64);
        let written = host.transfer(64);
        let busy = written.busy_until.unwrap().since(written.end);
        host.wait();
        let flush_busy = host.set(FLUSH, 1);
        if !is_on {
            assert_eq!(flush_busy, Duration::from_ms(2));
            continue;
        }
        assert_eq!(busy, Duration::from_us(50));
        // The first page is complete after 8 blocks of 512 bytes; then eight pages take 8 ms.
        let page = Duration::from_ns(written.end.since(first).as_ns() / 8);
        let programmed = first + page + Duration::from_ms(8);
        let expected = programmed + Duration::from_us(3050);
        let off = (host.now + flush_busy).as_ns().abs_diff(expected.as_ns());
        assert!(off < 10_000, "{flush_busy:?}, off by {off} ns");
        let lost = host.card.power_cut(host.now + flush_busy);
        assert_eq!(lost, 0);
    }
}

/// CMD49 keeps a card busy for 1 s at most. A flush of two pages of 1 s each goes on, as its bit
/// says, and the card takes a read meanwhile.
#[test]
fn a_flush_that_takes_long_goes_on_behind_the_busy_time() {
    let mut host = host();
    host.card.timing.write.program = Duration::from_secs(1);
    host.set(ENABLE, 1);
    host.wait();
    let _ = host.begin_write(0, 16);
    let _ = host.transfer(16);
    host.wait();
    assert_eq!(host.set(FLUSH, 1), Duration::from_secs(1));
    host.wait();
    host.idle(Duration::ZERO);
    assert_eq!(host.byte(FLUSH), 1);
    // The other page, and 3.05 ms as above.
    host.idle(Duration::from_ms(1004));
    assert_eq!(host.byte(FLUSH), 0);
}

/// CMD43 forgets a task, and only then is the queue empty enough for CMD49 to turn it off.
#[test]
fn the_queue_of_an_sd_card_takes_tasks_while_it_is_on() {
    let mut host = host();
    let read = TaskParameters::new(TaskId::new(7), Direction::Read, 8);
    let describe = Command::queue_task_parameters(read);
    assert!(matches!(host.misuse(&describe), Wrong::Illegal(_)), "the queue is off");
    host.set(QUEUE, 1);
    host.wait();
    assert_eq!(
        (host.byte(QUEUE), host.byte(ExtensionPlace::of_argument(1 << 27 | 6 << 9))),
        (1, 7)
    );
    let ninth = TaskParameters::new(TaskId::new(8), Direction::Read, 8);
    assert_eq!(host.misuse(&Command::queue_task_parameters(ninth)), Wrong::Task(8));
    let _ = host.send(&describe);
    let _ = host.send(&Command::queue_task_address(0));
    let off = Command::write_extension_byte(QUEUE);
    assert!(matches!(host.misuse(&off), Wrong::Illegal(_)), "a task is in it");
    assert!(matches!(host.misuse(&Command::read_single(0)), Wrong::Illegal(_)));
    let _ = host.send(&Command::sd_discard_queue());
    host.wait();
    host.set(QUEUE, 0);
    host.wait();
    let _ = host.send(&Command::read_single(0));
}

/// Settings that the card does not model end a simulation, and so does another card's register.
#[test]
fn other_registers_and_masks_are_refused() {
    let mut host = host();
    for command in [
        Command::write_extension_byte(ExtensionPlace::of_argument(1 << 27 | 300 << 9)),
        Command::write_extension_byte(ExtensionPlace::of_argument(2 << 27 | 260 << 9)),
        Command { argument: 1 << 27 | 1 << 26 | 260 << 9, ..Command::write_extension_byte(ENABLE) },
        Command { argument: 1 << 27 | 260 << 9 | 7, ..Command::write_extension_byte(ENABLE) },
        Command::read_extension_byte(ExtensionPlace::of_argument(3 << 27)),
    ] {
        assert!(matches!(host.misuse(&command), Wrong::Unmodelled(_)), "{command}");
    }
    let mut plain = Host::new(sd(), slow());
    assert!(matches!(plain.misuse(&Command::write_extension_byte(ENABLE)), Wrong::Unmodelled(_)));
}
